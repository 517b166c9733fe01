"""Write the digits into HDFS, as CSV (for InputMode.SPARK) and as TFRecords (for InputMode.TENSORFLOW).

    tfos-submit --local prepare.py hdfs:///user/me/digits

TensorFlow itself writes them where its stack knows HDFS, so this is also the first check that it reaches it.
"""

from __future__ import absolute_import, division, print_function

import argparse

import digits
import storage


def example(tf, row):
    pixels, digit = digits.parse(row)
    features = {
        "pixels": tf.train.Feature(float_list=tf.train.FloatList(value=pixels)),
        "digit": tf.train.Feature(int64_list=tf.train.Int64List(value=[digit])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_csv(tf, path, rows):
    with storage.files(tf).GFile(path, "w") as handle:
        handle.write("".join(row + "\n" for row in rows))


def write_records(tf, path, rows):
    records = tf.python_io if storage.version(tf) < (1, 13) else tf.io
    with records.TFRecordWriter(path) as writer:
        for row in rows:
            writer.write(example(tf, row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "target",
        type=storage.address,
        help="directory for the data, such as hdfs:///user/me/digits; what is there is replaced",
    )
    parser.add_argument("--shards", type=int, default=4, help="training files of each kind (at least one per worker)")
    arguments = parser.parse_args()

    tf = storage.tensorflow()
    training, held_out = digits.split(digits.lines())
    target = arguments.target
    for kind, suffix, write in (("csv", ".csv", write_csv), ("tfrecords", ".tfrecord", write_records)):
        storage.remove(tf, "%s/%s" % (target, kind))
        with storage.writable(tf, "%s/%s" % (target, kind)) as directory:
            storage.files(tf).makedirs(directory + "/train")
            storage.files(tf).makedirs(directory + "/held-out")
            for number, rows in enumerate(digits.shards(training, arguments.shards)):
                write(tf, "%s/train/part-%05d%s" % (directory, number, suffix), rows)
            write(tf, "%s/held-out/part-00000%s" % (directory, suffix), held_out)
    print(
        "%d training rows and %d held-out rows are in %s, as csv and as tfrecords."
        % (len(training), len(held_out), target)
    )


if __name__ == "__main__":
    main()
