"""Serve a saved model: load it without its program, and ask it about images that it never saw.

deeplearning run predict.py ~/runs/images/model
"""

from __future__ import absolute_import, division, print_function

import sys

import images


def main(path):
    import tensorflow as tf

    images.add_hdfs()
    tf.compat.v1.enable_v2_behavior()  # TensorFlow 1.15
    pixels, answers = images.made(500, seed=2)
    model = tf.compat.v2.saved_model.load(path)
    (chances,) = model.signatures["serving_default"](tf.constant(pixels)).values()
    guesses = chances.numpy().argmax(axis=1)
    print("first guesses %s, right %s" % (guesses[:10].tolist(), answers[:10].tolist()))
    print("RESULT accuracy %.3f" % (guesses == answers).mean())


if __name__ == "__main__":
    main(sys.argv[1])
