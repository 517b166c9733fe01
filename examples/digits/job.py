"""What both training scripts do around their network: the options, TensorFlow nodes in Spark's executors, and the result."""

from __future__ import absolute_import, division, print_function

import argparse
import functools
import time

import digits
import storage


def options(description):
    """The options of a training job."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=storage.address, required=True, help="where prepare.py wrote the digits")
    parser.add_argument(
        "--output",
        type=storage.address,
        required=True,
        help="directory for the model, the events and result.json; emptied first, unless a lost job is submitted again",
    )
    parser.add_argument("--result", help="file on this host for the result, too")
    parser.add_argument(
        "--input-mode", choices=["spark", "tensorflow"], default="spark", help="who reads the training data"
    )
    parser.add_argument("--epochs", type=int, default=20, help="how often each training row is used")
    parser.add_argument("--batch-size", type=int, default=64, help="rows per step and worker")
    parser.add_argument(
        "--num-gpus",
        type=int,
        help="GPUs for each worker, if YARN does not count GPUs; without it those of tfos-submit --gpus",
    )
    parser.add_argument("--minimum-accuracy", type=float, default=0.0, help="fail below this")
    return parser.parse_args()


def executors(context):
    return int(context.getConf().get("spark.executor.instances", "2"))


def name(context):
    """What tfos-submit calls this job, the same in each of its --attempts."""
    return context.getConf().get("spark.deeplearning.job", "")


def start(context, arguments, train, cluster):
    """Run a function in every executor, as TensorFlow nodes that know each other."""
    from tensorflowonspark import TFCluster

    if arguments.num_gpus is None:
        arguments.num_gpus = int(context.getConf().get("spark.task.resource.gpu.amount", "0"))
    mode = TFCluster.InputMode.SPARK if arguments.input_mode == "spark" else TFCluster.InputMode.TENSORFLOW
    return TFCluster.run(
        context, train, arguments, executors(context), input_mode=mode, reservation_timeout=300, **cluster
    )


def finish(arguments, nodes, rows, workers):
    """Train until the model is complete; in input mode spark with these rows, (pixels, digit)."""
    if arguments.input_mode == "spark":
        # TensorFlowOnSpark moves item by item, and looks once a second whether a partition has been taken: feed blocks
        # of rows, and all epochs from one partition for each worker.
        blocks = functools.partial(digits.blocks, size=arguments.batch_size, epochs=arguments.epochs)
        nodes.train(rows.repartition(workers).mapPartitions(blocks), num_epochs=1)
        # The last rows are in the workers' queues now, not yet in the model.
        storage.wait(storage.tensorflow(), arguments.output + "/finished", seconds=180)
    nodes.shutdown()


def run(arguments, train, guess, cluster):
    """Train in every executor, ask the model about the held-out digits here, and leave result.json beside it."""
    from pyspark import SparkConf, SparkContext

    start_time = time.time()
    context = SparkContext(conf=SparkConf().setAppName("digits, input mode " + arguments.input_mode))
    storage.begin(storage.tensorflow(), arguments.output, name(context))
    rows = context.textFile(arguments.data + "/csv/train").map(digits.parse)
    arguments.rows = rows.count()

    nodes = start(context, arguments, train, cluster)
    finish(arguments, nodes, rows, executors(context) - cluster["num_ps"])
    count = executors(context)
    context.stop()

    tf = storage.tensorflow()
    pixels, answers = storage.held_out(tf, arguments.data)
    report(arguments, start_time, guess(tf, arguments.output + "/model", pixels), answers, nodes, count)


def report(arguments, start_time, guesses, answers, nodes, count):
    """Write and print the result; SystemExit if the model is worse than asked."""
    accuracy = sum(int(guess) == int(answer) for guess, answer in zip(guesses, answers)) / len(answers)
    text = digits.result(
        accuracy,
        len(answers),
        time.time() - start_time,
        count,
        {node["host"] for node in nodes.cluster_info},
        input_mode=arguments.input_mode,
        model=arguments.output + "/model",
    )
    storage.write(storage.tensorflow(), arguments.output + "/result.json", text)
    if arguments.result:
        with open(arguments.result, "w") as handle:
            handle.write(text + "\n")
    print("RESULT " + text)
    storage.demand(accuracy, arguments.minimum_accuracy)
