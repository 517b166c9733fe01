# -*- coding: utf-8 -*-
"""From a DataFrame to a DataFrame: Spark writes TFRecords, TensorFlow trains on them, executors apply the model to other rows.

    tfos-submit --executors 2 --py-files digits.py,job.py,storage.py,train_tf2.py frames.py \\
        --data hdfs:///user/me/digits --output hdfs:///user/me/model-dataframe

In the output directory: tfrecords/, model/, events/, and guesses/ (Parquet with the columns digit and guess).
"""

from __future__ import absolute_import, division, print_function

import functools
import importlib
import time

import digits
import job
import storage


def guesses(rows, guess, model):
    """Runs in every executor: (digit, guess) for the rows of a partition, which the model gets at once."""
    import numpy as np

    rows = list(rows)
    if rows:
        pixels = np.array([row.pixels for row in rows], "float32")
        for row, guessed in zip(rows, guess(storage.tensorflow(), model, pixels)):  # noqa: B905
            yield row.digit, int(guessed)


def main():
    from pyspark.sql import SparkSession
    from tensorflowonspark import dfutil

    arguments = job.options(__doc__.splitlines()[0])
    arguments.input_mode = "tensorflow"
    started = time.time()
    tf = storage.tensorflow()
    network = importlib.import_module("train_tf%d" % storage.version(tf)[0])
    spark = SparkSession.builder.appName("digits, from DataFrame to DataFrame").getOrCreate()
    context = spark.sparkContext
    count = job.executors(context)
    storage.fresh(tf, arguments.output)

    rows = context.textFile(arguments.data + "/csv/train").map(digits.parse)
    training = spark.createDataFrame(rows, ["pixels", "digit"])
    held_out = dfutil.loadTFRecords(context, arguments.data + "/tfrecords/held-out")  # TensorFlow wrote these
    arguments.rows, arguments.data = training.count(), arguments.output
    dfutil.saveAsTFRecords(training, arguments.data + "/tfrecords/train")

    nodes = job.start(context, arguments, network.train, network.CLUSTER)
    nodes.shutdown()

    apply_model = functools.partial(guesses, guess=network.guess, model=arguments.output + "/model")
    guessed = held_out.repartition(count).rdd.mapPartitions(apply_model)
    spark.createDataFrame(guessed, ["digit", "guess"]).write.parquet(arguments.output + "/guesses")
    there = spark.read.parquet(arguments.output + "/guesses")
    there.filter("digit != guess").show()
    pairs = there.collect()
    context.stop()
    job.report(arguments, started, [row.guess for row in pairs], [row.digit for row in pairs], nodes, count)


if __name__ == "__main__":
    main()
