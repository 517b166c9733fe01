"""A layered network on handwritten digits with summaries for TensorBoard, after TensorFlow's mnist_with_summaries: python digits_with_summaries.py

It is written as for TensorFlow 1 (a graph and a session); with TensorFlow 2 it uses tf.compat.v1. CUDA_VISIBLE_DEVICES=-1 leaves GPUs alone.
"""

from __future__ import absolute_import, division, print_function

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import digits
import numpy as np
import tensorflow as tf

if hasattr(tf, "compat") and hasattr(tf.compat, "v1"):
    tf = tf.compat.v1
    tf.disable_eager_execution()

STEPS = int(os.environ.get("STEPS", "400"))
BATCH = 100
LOGS = os.path.join("logs", "summaries")


def variable_summaries(variable):
    with tf.name_scope("summaries"):
        mean = tf.reduce_mean(variable)
        tf.summary.scalar("mean", mean)
        tf.summary.scalar("stddev", tf.sqrt(tf.reduce_mean(tf.square(variable - mean))))
        tf.summary.histogram("histogram", variable)


def layer(inputs, size, name, activation):
    with tf.name_scope(name):
        with tf.name_scope("weights"):
            weights = tf.Variable(tf.truncated_normal([int(inputs.shape[1]), size], stddev=0.1, seed=7))
            variable_summaries(weights)
        with tf.name_scope("biases"):
            biases = tf.Variable(tf.constant(0.1, shape=[size]))
            variable_summaries(biases)
        activations = activation(tf.matmul(inputs, weights) + biases)
        tf.summary.histogram("activations", activations)
        return activations


def graph():
    """(the pixels' placeholder, the digits' placeholder, a step of training, the accuracy)."""
    pixels = tf.placeholder(tf.float32, [None, digits.PIXELS], name="pixels")
    answers = tf.placeholder(tf.int64, [None], name="answers")
    tf.summary.image("image", tf.reshape(pixels, [-1, 8, 8, 1]), 10)
    hidden = layer(pixels, 500, "hidden", tf.nn.relu)
    logits = layer(hidden, digits.CLASSES, "logits", tf.identity)
    with tf.name_scope("cross_entropy"):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answers, logits=logits))
    tf.summary.scalar("cross_entropy", loss)
    with tf.name_scope("train"):
        step = tf.train.AdamOptimizer(0.002).minimize(loss)
    with tf.name_scope("accuracy"):
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), answers), tf.float32))
    tf.summary.scalar("accuracy", accuracy)
    return pixels, answers, step, accuracy


def main():
    begin = time.time()
    training, held_out = digits.split(digits.lines())
    train_pixels, train_answers = digits.arrays(training)
    test_pixels, test_answers = digits.arrays(held_out)
    random = np.random.RandomState(7)
    with tf.Session() as session:
        pixels, answers, step, accuracy = graph()
        merged = tf.summary.merge_all()
        writers = [tf.summary.FileWriter(os.path.join(LOGS, name), session.graph) for name in ("train", "test")]
        session.run(tf.global_variables_initializer())
        test = {pixels: test_pixels, answers: test_answers}
        for number in range(STEPS):
            indices = random.randint(0, len(train_pixels), BATCH)
            summary, _ = session.run([merged, step], {pixels: train_pixels[indices], answers: train_answers[indices]})
            writers[0].add_summary(summary, number)
            if number % 50 == 0:
                summary, share = session.run([merged, accuracy], test)
                writers[1].add_summary(summary, number)
                print("step %d: accuracy %.3f" % (number, share))
        share = float(session.run(accuracy, test))
        for writer in writers:
            writer.close()
    print("RESULT " + digits.result(share, len(held_out), time.time() - begin, 1, ["here"]))
    return 0 if share >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
