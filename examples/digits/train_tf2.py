# -*- coding: utf-8 -*-
"""Train on the digits with TensorFlowOnSpark and TensorFlow 2: two or more workers, all-reduce after every step.

    tfos-submit --executors 2 --py-files digits.py,storage.py train_tf2.py \\
        --data hdfs:///user/me/digits --output hdfs:///user/me/model --input-mode spark

spark: Spark reads the CSV rows and feeds them to the workers; tensorflow: each worker reads its TFRecords itself.
The driver then loads the model from HDFS, asks it about the held-out digits, and writes result.json beside it.
"""

from __future__ import absolute_import, division, print_function

import argparse
import time

import digits
import storage


def train(arguments, context):
    """Runs in every executor."""
    import tempfile

    tf = storage.tensorflow()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    chief = context.job_name == "chief"
    workers = context.num_workers
    batch = arguments.batch_size * workers

    with strategy.scope():
        tf.random.set_seed(7)
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((digits.PIXELS,), name="pixels"),
                tf.keras.layers.Reshape((8, 8, 1)),
                tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
                tf.keras.layers.MaxPooling2D(),
                tf.keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(64, activation="relu"),
                tf.keras.layers.Dense(digits.CLASSES),
            ]
        )
        model.compile(
            optimizer=tf.keras.optimizers.Adam(2e-3),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    if arguments.input_mode == "spark":
        feed = context.get_data_feed()

        def rows():
            while not feed.should_stop():
                for pixels, digit in feed.next_batch(arguments.batch_size):
                    yield pixels, digit

        data = tf.data.Dataset.from_generator(
            rows, output_signature=(tf.TensorSpec((digits.PIXELS,), tf.float32), tf.TensorSpec((), tf.int64))
        )
    else:
        number = 0 if chief else context.task_index + 1
        files = sorted(tf.io.gfile.glob(arguments.data + "/tfrecords/train/part-*"))[number::workers]
        features = {
            "pixels": tf.io.FixedLenFeature([digits.PIXELS], tf.float32),
            "digit": tf.io.FixedLenFeature([], tf.int64),
        }

        def parse(record):
            row = tf.io.parse_single_example(record, features)
            return row["pixels"], row["digit"]

        data = tf.data.TFRecordDataset(files).map(parse).cache().repeat().shuffle(2000, seed=7)

    options = tf.data.Options()
    # Each worker's rows are its own already.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    data = data.batch(batch, drop_remainder=True).with_options(options)

    # All workers have to take the same number of steps, and Spark's feed is not dealt out evenly to the last row.
    # (A shuffle buffer would keep the last rows for itself: Spark's rows come shuffled.)
    share = 0.9 if arguments.input_mode == "spark" else 1.0
    steps = digits.steps(arguments.rows, arguments.epochs, batch, share)
    passes = 10
    callbacks = [tf.keras.callbacks.TensorBoard(arguments.output + "/events", update_freq=20)] if chief else []
    model.fit(
        data, epochs=passes, steps_per_epoch=max(1, steps // passes), callbacks=callbacks, verbose=2 if chief else 0
    )

    # Every worker takes part in saving; only the chief's copy is kept.
    model.save(arguments.output + "/model" if chief else tempfile.mkdtemp(prefix="worker-model-"), save_format="tf")
    if arguments.input_mode == "spark":
        feed.terminate()
    if chief:
        storage.write(tf, arguments.output + "/finished", "the model and the events are complete")


def evaluate(arguments):
    """The share of held-out digits that the model in HDFS names right, and how many there are."""

    tf = storage.tensorflow()
    pixels, answers = storage.held_out(tf, arguments.data)
    model = tf.keras.models.load_model(arguments.output + "/model", compile=False)
    guesses = model.predict(pixels, verbose=0).argmax(axis=1)
    return float((guesses == answers).mean()), len(answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=storage.address, required=True, help="where prepare.py wrote the digits")
    parser.add_argument(
        "--output",
        type=storage.address,
        required=True,
        help="directory for the model, the events and result.json; emptied first",
    )
    parser.add_argument(
        "--input-mode", choices=["spark", "tensorflow"], default="spark", help="who reads the training data"
    )
    parser.add_argument("--epochs", type=int, default=20, help="how often each training row is used")
    parser.add_argument("--batch-size", type=int, default=64, help="rows per step and worker")
    parser.add_argument("--num-gpus", type=int, default=1, help="GPUs for each worker; 0 trains on CPUs")
    parser.add_argument("--minimum-accuracy", type=float, default=0.0, help="fail below this")
    arguments = parser.parse_args()

    from pyspark import SparkConf, SparkContext
    from tensorflowonspark import TFCluster

    started = time.time()
    context = SparkContext(conf=SparkConf().setAppName("digits, input mode " + arguments.input_mode))
    executors = int(context.getConf().get("spark.executor.instances", "2"))
    storage.fresh(storage.tensorflow(), arguments.output)
    rows = context.textFile(arguments.data + "/csv/train").map(digits.parse)
    arguments.rows = rows.count()

    mode = TFCluster.InputMode.SPARK if arguments.input_mode == "spark" else TFCluster.InputMode.TENSORFLOW
    cluster = TFCluster.run(
        context, train, arguments, executors, num_ps=0, input_mode=mode, master_node="chief", reservation_timeout=300
    )
    if arguments.input_mode == "spark":
        cluster.train(rows.repartition(executors), arguments.epochs)
        # The last rows are in the workers' queues now, not yet in the model.
        storage.wait(storage.tensorflow(), arguments.output + "/finished", seconds=180)
    hosts = {node["host"] for node in cluster.cluster_info}
    cluster.shutdown(grace_secs=5)
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
    print("RESULT " + report)
    storage.demand(accuracy, arguments.minimum_accuracy)


if __name__ == "__main__":
    main()
