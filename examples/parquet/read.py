"""Executors read a table in HDFS, written as Parquet, by themselves: its rows become batches of a tf.data.Dataset. Python 3.6 and later.

tfos-submit --executors 2 --gpus 0 --venv ~/arrow read.py hdfs://namenode:8020/user/me/model-parquet/table --columns pixels digit
"""

import argparse


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="hdfs://NAMENODE:PORT/PATH of a directory with files of Parquet")
    parser.add_argument("--columns", nargs="+", required=True, help="numbers, or lists of numbers with the same length")
    parser.add_argument("--batch", type=int, default=64, help="rows of a batch")
    parser.add_argument("--petastorm", action="store_true", help="read with Petastorm instead of pyarrow")
    return parser.parse_args()


def batches(arguments, number, workers):
    """(array for each column) of the files with which this worker, one of so many, has to do."""
    import pyarrow.dataset
    from pyarrow import fs

    hdfs, path = fs.FileSystem.from_uri(arguments.table)
    table = pyarrow.dataset.dataset(path, filesystem=hdfs, format="parquet")
    for file in sorted(table.get_fragments(), key=lambda fragment: fragment.path)[number::workers]:
        for rows in file.to_batches(columns=arguments.columns, batch_size=arguments.batch):
            yield tuple(numbers(rows.column(column)) for column in range(rows.num_columns))


def numbers(column):
    """One row of the array for each row of the table, without a Python object for each number."""
    from pyarrow import types

    shape = (len(column), -1) if types.is_list(column.type) else (len(column),)
    values = column.flatten() if types.is_list(column.type) else column
    return values.to_numpy(zero_copy_only=False).reshape(shape).astype("float32")


def dataset(tf, arguments, number, workers):
    if arguments.petastorm:
        from petastorm import make_batch_reader
        from petastorm.tf_utils import make_petastorm_dataset

        share = {"cur_shard": number, "shard_count": workers, "num_epochs": 1}
        return make_petastorm_dataset(make_batch_reader(arguments.table, schema_fields=arguments.columns, **share))
    kinds = (tf.float32,) * len(arguments.columns)
    return tf.data.Dataset.from_generator(lambda: batches(arguments, number, workers), kinds)


def main(arguments, context):
    """In every executor. model.fit takes such a dataset; here its rows are counted and its numbers are added up."""
    import tensorflow as tf

    number = 0 if context.job_name == "chief" else context.task_index + 1
    rows, total = 0, 0.0
    for batch in dataset(tf, arguments, number, context.num_workers):
        rows += int(batch[0].shape[0])
        total += sum(float(tf.reduce_sum(tf.cast(column, tf.float64))) for column in batch)
    print("RESULT worker %d rows %d sum %.0f" % (number, rows, total))


if __name__ == "__main__":
    from pyspark import SparkContext
    from tensorflowonspark import TFCluster

    spark = SparkContext()
    executors = int(spark.getConf().get("spark.executor.instances"))
    TFCluster.run(spark, main, options(), executors, 0, master_node="chief").shutdown()
