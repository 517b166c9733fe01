"""Train on 32 x 32 colour images with Keras, on one host.

deeplearning run plain.py --output ~/runs/images
"""

from __future__ import absolute_import, division, print_function

import argparse

import images


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="directory for the model and the events")
    parser.add_argument("--data", help="directory with the batches of CIFAR-10; images are made without it")
    parser.add_argument("--epochs", type=int, default=4, help="how often each image is used")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="of Adam")
    return parser.parse_args()


def main(arguments):
    import tensorflow as tf

    images.add_hdfs()
    tf.compat.v1.enable_v2_behavior()  # TensorFlow 1.15
    training, held_out = images.load(tf, arguments.data)
    strategy = tf.distribute.get_strategy()
    with strategy.scope():
        model = images.network(tf.keras)
        adam = tf.keras.optimizers.Adam(arguments.learning_rate)
        model.compile(adam, "sparse_categorical_crossentropy", ["accuracy"])
    events = tf.keras.callbacks.TensorBoard(arguments.output + "/events", profile_batch=0)
    model.fit(*training, batch_size=64, epochs=arguments.epochs, callbacks=[events], verbose=2)
    print("RESULT accuracy %.3f" % model.evaluate(*held_out, verbose=0)[1])
    tf.saved_model.save(model, arguments.output + "/model")


if __name__ == "__main__":
    main(options())
