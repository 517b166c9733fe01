# -*- coding: utf-8 -*-
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
        help="directory for the model, the events and result.json; emptied first",
    )
    parser.add_argument("--result", help="file on this host for the result, too")
    parser.add_argument(
        "--input-mode", choices=["spark", "tensorflow"], default="spark", help="who reads the training data"
    )
    parser.add_argument("--epochs", type=int, default=20, help="how often each training row is used")
    parser.add_argument("--batch-size", type=int, default=64, help="rows per step and worker")
    parser.add_argument("--num-gpus", type=int, default=1, help="GPUs for each worker; 0 trains on CPUs")
    parser.add_argument("--minimum-accuracy", type=float, default=0.0, help="fail below this")
    return parser.parse_args()


def run(arguments, train, evaluate, parameter_servers=0, **cluster_options):
    """Train in every executor, evaluate here, and leave result.json beside the model."""
    from pyspark import SparkConf, SparkContext
    from tensorflowonspark import TFCluster

    started = time.time()
    context = SparkContext(conf=SparkConf().setAppName("digits, input mode " + arguments.input_mode))
    executors = int(context.getConf().get("spark.executor.instances", "2"))
    storage.fresh(storage.tensorflow(), arguments.output)
    rows = context.textFile(arguments.data + "/csv/train").map(digits.parse)
    arguments.rows = rows.count()

    mode = TFCluster.InputMode.SPARK if arguments.input_mode == "spark" else TFCluster.InputMode.TENSORFLOW
    cluster_options.update(num_ps=parameter_servers, input_mode=mode, reservation_timeout=300)
    cluster = TFCluster.run(context, train, arguments, executors, **cluster_options)
    if arguments.input_mode == "spark":
        # TensorFlowOnSpark moves item by item, and looks once a second whether a partition has been taken: feed blocks
        # of rows, and all epochs from one partition for each worker.
        blocks = functools.partial(digits.blocks, size=arguments.batch_size, epochs=arguments.epochs)
        cluster.train(rows.repartition(executors - parameter_servers).mapPartitions(blocks), num_epochs=1)
        # The last rows are in the workers' queues now, not yet in the model.
        storage.wait(storage.tensorflow(), arguments.output + "/finished", seconds=180)
    hosts = {node["host"] for node in cluster.cluster_info}
    cluster.shutdown()
    context.stop()

    accuracy, held_out = evaluate(arguments)
    report = digits.result(
        accuracy,
        held_out,
        time.time() - started,
        executors,
        hosts,
        input_mode=arguments.input_mode,
        model=arguments.output + "/model",
    )
    storage.write(storage.tensorflow(), arguments.output + "/result.json", report)
    if arguments.result:
        with open(arguments.result, "w") as handle:
            handle.write(report + "\n")
    print("RESULT " + report)
    storage.demand(accuracy, arguments.minimum_accuracy)
