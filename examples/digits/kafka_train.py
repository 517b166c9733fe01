"""Read the digits from a Kafka topic with TensorFlow and train on them, here, in this process.

    tfos-submit --local kafka_train.py --brokers edge1:9092 --topic digits

TensorFlow 1.15 reads with tf.contrib.kafka, TensorFlow 2 with tensorflow-io.
"""

from __future__ import absolute_import, division, print_function

import argparse
import ctypes
import os
import socket
import time

import digits
import storage

HIDDEN, STEPS, BATCH = 64, 400, 128


def check_brokers(servers):
    """End if none of host:port,host:port takes a connection: to TensorFlow's readers that is an empty topic."""
    problems = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host, int(port)), 10).close()
            return
        except (OSError, IOError, ValueError) as error:  # socket.error of Python 2 is an IOError
            problems.append("%s: %s" % (server, error))
    raise SystemExit("no broker of Kafka answers at %s. Check --brokers." % ", ".join(problems))


def load_contrib(tf):
    """Load the Kafka reader of TensorFlow 1.15 so that it uses its own functions; without this it crashes on RHEL 8 and later.

    The librdkafka inside brings C11 threads of its own (thrd_create, ...), whose success is 1. glibc has functions of the
    same names since 2.28, whose success is 0, and the dynamic linker would take those. RTLD_DEEPBIND prefers the library's.
    """
    now, deepbind = 2, 8  # <bits/dlfcn.h>; Python 2.7 has no names for them
    path = os.path.join(tf.sysconfig.get_lib(), "contrib", "kafka", "_dataset_ops.so")
    ctypes.CDLL(path, mode=now | deepbind)


def read_contrib(tf, arguments):
    """Every message of the topic's first partition (TensorFlow 1.15)."""
    load_contrib(tf)
    from tensorflow.contrib.kafka import KafkaDataset

    dataset = KafkaDataset(
        ["%s:0:0:-1" % arguments.topic], servers=arguments.brokers, group="digits-%d" % os.getpid(), eof=True
    )
    message = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    messages = []
    with tf.Session() as session:
        while True:
            try:
                messages.append(session.run(message))
            except tf.errors.OutOfRangeError:
                return messages


def read_io(arguments):
    """Every message of the topic's first partition (TensorFlow 2)."""
    import tensorflow_io as tfio

    dataset = tfio.IODataset.from_kafka(arguments.topic, partition=0, offset=0, servers=arguments.brokers)
    return [message.numpy() for message, _ in dataset]


def train(tf, pixels, answers):
    """A dense network by plain gradient steps, in the graph form that both TensorFlows understand; returns a guesser."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(7)
        features = v1.placeholder(tf.float32, [None, digits.PIXELS])
        targets = v1.placeholder(tf.int64, [None])

        def dense(values, size, name):
            weights = v1.get_variable(
                name, [int(values.shape[1]), size], initializer=v1.glorot_uniform_initializer(seed=7)
            )
            return tf.matmul(values, weights) + v1.get_variable(
                name + "_bias", [size], initializer=v1.zeros_initializer()
            )

        logits = dense(tf.nn.relu(dense(features, HIDDEN, "hidden")), digits.CLASSES, "output")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
        learn = v1.train.AdamOptimizer(5e-3).minimize(loss)
        guesses = tf.argmax(logits, 1)
        session = v1.Session(graph=graph)
        session.run(v1.global_variables_initializer())
        for step in range(STEPS):
            first = step * BATCH % len(answers)
            session.run(learn, {features: pixels[first : first + BATCH], targets: answers[first : first + BATCH]})
    return lambda images: session.run(guesses, {features: images})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", required=True, help="host:port of a broker")
    parser.add_argument("--topic", required=True, help="where kafka_produce.py sent the digits")
    parser.add_argument("--result", help="file for the result as JSON")
    parser.add_argument("--minimum-accuracy", type=float, default=0.0, help="fail below this")
    arguments = parser.parse_args()

    start_time = time.time()
    check_brokers(arguments.brokers)
    tf = storage.tensorflow()
    rows = read_contrib(tf, arguments) if tf.__version__.startswith("1.") else read_io(arguments)
    rows = [row.decode("ascii") for row in rows]
    training, held_out = digits.split(digits.lines())
    if rows != training + held_out:
        raise SystemExit(
            "%d rows are required from the topic %s, as kafka_produce.py sent them, but TensorFlow read %d%s. Use a new topic."
            % (
                len(training + held_out),
                arguments.topic,
                len(rows),
                "" if len(rows) != len(training + held_out) else " others",
            )
        )
    # From here on only what came out of Kafka is used; the sender put the held-out rows last.
    guess = train(tf, *digits.arrays(rows[: len(training)]))
    pixels, answers = digits.arrays(rows[len(training) :])
    accuracy = float((guess(pixels) == answers).mean())
    report = digits.result(
        accuracy,
        len(answers),
        time.time() - start_time,
        1,
        [socket.gethostname()],
        input_mode="kafka",
        topic=arguments.topic,
    )
    if arguments.result:
        with open(arguments.result, "w") as handle:
            handle.write(report + "\n")
    print("RESULT " + report)
    storage.demand(accuracy, arguments.minimum_accuracy)


if __name__ == "__main__":
    main()
