"""How fast this host reads the same rows from HDFS as Parquet and as TFRecords, beside the bare bytes. Python 3.6 and later.

deeplearning run --venv ~/arrow measure.py hdfs://namenode:8020/user/me/measured
"""

import argparse
import time

import read

COLUMNS, WIDTH, FILES = ["pixels", "digit"], 64, 4


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "directory", help="hdfs://NAMENODE:PORT/PATH, which does not exist: it gets made rows, and is removed"
    )
    parser.add_argument("--megabytes", type=int, default=200, help="of each form")
    parser.add_argument("--rounds", type=int, default=5, help="each reads every form once")
    parser.add_argument("--batch", type=int, default=256, help="rows of a batch")
    return parser.parse_args()


def write(tf, arguments, hdfs, path):
    """The same rows in both forms; their number."""
    import numpy
    import pyarrow
    from pyarrow import parquet

    rows = arguments.megabytes * 1000000 // (4 * WIDTH) // FILES
    for directory in ("parquet", "tfrecord"):
        hdfs.create_dir(path + "/" + directory)
    for number in range(FILES):
        random = numpy.random.RandomState(number)
        pixels, digits = random.rand(rows, WIDTH).astype("float32"), random.randint(0, 10, rows)
        lists = pyarrow.ListArray.from_arrays(numpy.arange(0, rows * WIDTH + 1, WIDTH, "int32"), pixels.reshape(-1))
        table = pyarrow.Table.from_arrays([lists, pyarrow.array(digits)], COLUMNS)
        parquet.write_table(table, "%s/parquet/%d.parquet" % (path, number), filesystem=hdfs)
        with tf.io.TFRecordWriter("%s/tfrecord/%d" % (arguments.directory, number)) as writer:
            for row, digit in zip(pixels, digits):  # noqa: B905 (Python 3.6)
                feature = {
                    "pixels": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
                    "digit": tf.train.Feature(int64_list=tf.train.Int64List(value=[digit])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return rows * FILES


def records(tf, arguments):
    """Batches of the TFRecords, parsed a batch at a time."""
    features = {"pixels": tf.io.FixedLenFeature([WIDTH], tf.float32), "digit": tf.io.FixedLenFeature([], tf.int64)}
    files = sorted(tf.io.gfile.glob(arguments.directory + "/tfrecord/*"))
    batches = tf.data.TFRecordDataset(files).batch(arguments.batch)
    return batches.map(lambda batch: tuple(tf.io.parse_example(batch, features)[name] for name in COLUMNS))


def main(arguments):
    import tensorflow as tf
    import tensorflow_io  # noqa: F401  TensorFlow reads hdfs:// with it
    from pyarrow import fs

    hdfs, path = fs.FileSystem.from_uri(arguments.directory)
    if hdfs.get_file_info(path).type != fs.FileType.NotFound:
        raise SystemExit("A directory that does not exist is required, but %s does." % arguments.directory)
    rows = write(tf, arguments, hdfs, path)
    table = argparse.Namespace(
        table=arguments.directory + "/parquet", columns=COLUMNS, batch=arguments.batch, petastorm=False
    )

    def bare():
        for file in hdfs.get_file_info(fs.FileSelector(path + "/parquet")):
            with hdfs.open_input_stream(file.path) as stream:
                while stream.read(8 << 20):
                    pass

    def counted(batches):
        count = sum(int(batch[0].shape[0]) for batch in batches)
        if count != rows:
            raise SystemExit("%d rows were written, but %d were read" % (rows, count))

    ways = {
        "bare bytes of the Parquet": bare,
        "TFRecords by TensorFlow": lambda: counted(records(tf, arguments)),
        "Parquet by pyarrow": lambda: counted(read.dataset(tf, table, 0, 1)),
    }
    durations = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            start = time.time()
            way()
            durations[name].append(time.time() - start)
    first = durations["bare bytes of the Parquet"]
    print("%-26s %10s %8s %22s" % ("%d rows" % rows, "rows/s", "s", "times the bare bytes"))
    for name, seconds in durations.items():
        ratios = sorted(duration / base for duration, base in zip(seconds, first))  # noqa: B905 (Python 3.6)
        median = sorted(seconds)[len(seconds) // 2]
        text = "%.1f (%.1f - %.1f)" % (ratios[len(ratios) // 2], ratios[0], ratios[-1])
        print("%-26s %10.0f %8.2f %22s" % (name, rows / median, median, text))
    hdfs.delete_dir(path)


if __name__ == "__main__":
    main(options())
