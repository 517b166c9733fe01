"""Train on the digits with TensorFlowOnSpark and TensorFlow 2: two or more workers, all-reduce after every step.

    tfos-submit --executors 2 --py-files digits.py,job.py,storage.py train_tf2.py \\
        --data hdfs:///user/me/digits --output hdfs:///user/me/model --input-mode spark

spark: Spark reads the CSV rows and feeds them to the workers; tensorflow: each worker reads its TFRecords itself.
The driver then loads the model from HDFS, asks it about the held-out digits, and writes result.json beside it.
"""

from __future__ import absolute_import, division, print_function

import digits
import job
import storage

CLUSTER = {"num_ps": 0, "master_node": "chief"}
SAVE = 100  # steps from one checkpoint to the next


def network(tf):
    """Two convolutions and two dense layers; gives the logits."""
    return tf.keras.Sequential(
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


def fed_batches(arguments, feed):
    """Batches of the rows that Spark feeds to this worker."""
    import numpy as np

    rows = []
    while not feed.should_stop():
        rows += [row for block in feed.next_batch(1) for row in block]
        while len(rows) >= arguments.batch_size:
            batch, rows = rows[: arguments.batch_size], rows[arguments.batch_size :]
            yield np.array([row[0] for row in batch], "float32"), np.array([row[1] for row in batch], "int64")


def record_batches(tf, arguments, number, workers):
    """Batches of the rows that this worker, one of so many, reads from HDFS itself."""
    files = sorted(tf.io.gfile.glob(arguments.data + "/tfrecords/train/part-*"))[number::workers]
    features = {
        "pixels": tf.io.FixedLenFeature([digits.PIXELS], tf.float32),
        "digit": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        row = tf.io.parse_single_example(record, features)
        return row["pixels"], row["digit"]

    dataset = tf.data.TFRecordDataset(files).map(parse).cache().repeat().shuffle(2000, seed=7)
    return iter(dataset.batch(arguments.batch_size, drop_remainder=True))


def learner(tf, strategy, model, optimizer):
    """A function that takes one step on all workers together; gives this worker's loss and accuracy.

    Written out, because the fit() of Keras 3 does not know MultiWorkerMirroredStrategy.
    """

    def step(pixels, answers):
        with tf.GradientTape() as tape:
            logits = model(pixels, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answers, logits=logits)
            loss = tf.reduce_mean(losses)
            share = loss / strategy.num_replicas_in_sync  # the workers' gradients are added up
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))
        return loss, tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), answers), tf.float32))

    return tf.function(lambda pixels, answers: strategy.run(step, args=(pixels, answers)))


def train(arguments, context):
    """Runs in every executor."""
    tf = storage.tensorflow()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    chief = context.job_name == "chief"
    workers = context.num_workers
    fed = arguments.input_mode == "spark"
    with strategy.scope():
        tf.random.set_seed(7)
        model = network(tf)
        optimizer = tf.keras.optimizers.Adam(2e-3)
        learn = learner(tf, strategy, model, optimizer)
        done = tf.Variable(0, dtype=tf.int64, trainable=False)  # steps
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, done=done)

    # All workers must take the same number of steps, but Spark's feed is not dealt out evenly to the last row.
    steps = digits.steps(arguments.rows, arguments.epochs, arguments.batch_size * workers, 0.9 if fed else 1.0)
    feed = context.get_data_feed() if fed else None
    number = 0 if chief else context.task_index + 1
    batches = fed_batches(arguments, feed) if fed else record_batches(tf, arguments, number, workers)
    output, checkpoints = (arguments.output + name for name in ("/events", "/checkpoints"))
    # The optimizer reads its part of the checkpoint when it takes its first step.
    with storage.readable(tf, checkpoints) as saved, place(tf, output, chief) as events:
        checkpoint.restore(tf.train.latest_checkpoint(saved))
        print("begins after step %d" % done.numpy())
        write_graph(tf, guesser(tf, model).get_concrete_function().graph, events)
        writer = tf.summary.create_file_writer(events)
        for step in range(int(done.numpy()) + 1, steps + 1):
            loss, accuracy = learn(*next(batches))
            if step % 20 == 0:
                with writer.as_default():
                    write_scalar(tf, "loss", loss, step)
                    write_scalar(tf, "accuracy", accuracy, step)
            if step % SAVE == 0:
                done.assign(step)
                with place(tf, checkpoints, chief) as directory:
                    tf.train.CheckpointManager(checkpoint, directory, max_to_keep=2).save(step)
        writer.close()

    with place(tf, arguments.output + "/model", chief) as path:
        export(tf, model, path)
    if fed:
        feed.terminate()
    if chief:
        storage.write(tf, arguments.output + "/finished", "the model and the events are complete")


def place(tf, path, chief):
    """Every worker takes part in saving; only the chief's copy is kept."""
    return storage.writable(tf, path) if chief else storage.scratch()


def write_scalar(tf, name, value, step):
    """What tf.summary.scalar writes; that one needs TensorBoard, which TensorFlow no longer brings from 2.21 on."""
    kind = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    tf.summary.write(name, value, step, metadata=tf.compat.v1.SummaryMetadata(plugin_data=kind))


def write_graph(tf, graph, directory):
    """What tf.summary.graph writes; that one is new in TensorFlow 2.5. The file sorts before that of the scalars, which TensorBoard reads next."""
    with graph.as_default():  # outside of a graph FileWriter is refused
        tf.compat.v1.summary.FileWriter(directory, graph).close()


def guesser(tf, model):
    """The model as a function: pixels in, guesses out."""
    signature = [tf.TensorSpec([None, digits.PIXELS], tf.float32, name="pixels")]
    return tf.function(
        lambda pixels: {"guesses": tf.argmax(model(pixels, training=False), 1)}, input_signature=signature
    )


def export(tf, model, path):
    """Save the model so that any TensorFlow 2 loads it, whatever its Keras."""
    module = tf.Module()
    module.model = model
    module.guess = guesser(tf, model)
    tf.saved_model.save(module, path, signatures=module.guess)


def guess(tf, model, pixels):
    """What the saved model takes each of these digits for."""

    with storage.readable(tf, model) as path:
        loaded = tf.saved_model.load(path)  # kept: with it TensorFlow 2.4 gives up the variables, too
        return loaded.signatures["serving_default"](pixels=tf.constant(pixels))["guesses"].numpy()


if __name__ == "__main__":
    job.run(job.options(__doc__.splitlines()[0]), train, guess, CLUSTER)
