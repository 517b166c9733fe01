"""From a DataFrame to a DataFrame: TensorFlow trains on a table in Parquet, executors apply the model to other rows.

    tfos-submit --executors 2 --py-files digits.py,job.py,storage.py,train_tf2.py frames.py \\
        --data hdfs:///user/me/digits --output hdfs:///user/me/model-dataframe

tensorflow: Spark writes the table's rows as TFRecords, which each worker reads; spark: Spark feeds them, also if TensorFlow knows no HDFS.
In the output directory: table/ (Parquet with the columns pixels and digit, as a table of yours), model/, events/, guesses/ (Parquet
with the columns digit and guess), and for tensorflow tfrecords/.
"""

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
        for row, guessed in zip(rows, guess(storage.tensorflow(), model, pixels)):
            yield row.digit, int(guessed)


def main():
    from pyspark.sql import SparkSession
    from tensorflowonspark import dfutil

    arguments = job.options(__doc__.splitlines()[0])
    start_time = time.time()
    tf = storage.tensorflow()
    network = importlib.import_module("train_tf%d" % storage.version(tf)[0])
    spark = SparkSession.builder.appName("digits, from DataFrame to DataFrame").getOrCreate()
    context = spark.sparkContext
    count = job.executors(context)
    storage.begin(tf, arguments.output, job.name(context))

    training, held_out = (
        spark.createDataFrame(context.textFile(arguments.data + part).map(digits.parse), ["pixels", "digit"])
        for part in ("/csv/train", "/csv/held-out")
    )
    training.write.parquet(arguments.output + "/table")
    training = spark.read.parquet(arguments.output + "/table")
    if arguments.input_mode == "tensorflow":
        held_out = dfutil.loadTFRecords(context, arguments.data + "/tfrecords/held-out")  # TensorFlow wrote these
        dfutil.saveAsTFRecords(training, arguments.output + "/tfrecords/train")
    arguments.rows, arguments.data = training.count(), arguments.output

    nodes = job.start(context, arguments, network.train, network.CLUSTER)
    rows = training.rdd.map(lambda row: (row.pixels, row.digit))
    job.finish(arguments, nodes, rows, count - network.CLUSTER["num_ps"])

    apply_model = functools.partial(guesses, guess=network.guess, model=arguments.output + "/model")
    guessed = held_out.repartition(count).rdd.mapPartitions(apply_model)
    spark.createDataFrame(guessed, ["digit", "guess"]).write.parquet(arguments.output + "/guesses")
    guess_rows = spark.read.parquet(arguments.output + "/guesses")
    guess_rows.filter("digit != guess").show()
    pairs = guess_rows.collect()
    context.stop()
    job.report(arguments, start_time, [row.guess for row in pairs], [row.digit for row in pairs], nodes, count)


if __name__ == "__main__":
    main()
