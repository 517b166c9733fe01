"""Train on the digits with TensorFlowOnSpark and TensorFlow 1.4 to 1.15: one parameter server, the other executors are workers.

    tfos-submit --executors 2 --py-files digits.py,job.py,storage.py train_tf1.py \\
        --data hdfs:///user/me/digits --output hdfs:///user/me/model --input-mode spark

spark: Spark reads the CSV rows and feeds them to the workers; tensorflow: each worker reads its TFRecords itself.
The driver then loads the model from HDFS, asks it about the held-out digits, and writes result.json beside it.
"""

from __future__ import absolute_import, division, print_function

import time

import digits
import job
import storage

CLUSTER = {"num_ps": 1}
PATIENCE = 120  # seconds for the other workers: each begins up to 30 s after the chief, and ends as much later


def network(tf, pixels):
    """Two convolutions and two dense layers; returns the logits."""

    images = tf.reshape(pixels, [-1, 8, 8, 1])
    hidden = tf.layers.conv2d(images, 32, 3, padding="same", activation=tf.nn.relu)
    hidden = tf.layers.max_pooling2d(hidden, 2, 2)
    hidden = tf.layers.conv2d(hidden, 64, 3, padding="same", activation=tf.nn.relu)
    hidden = tf.layers.dense(tf.reshape(hidden, [-1, 4 * 4 * 64]), 64, activation=tf.nn.relu)
    return tf.layers.dense(hidden, digits.CLASSES)


def record_batches(tf, arguments, context):
    """Batches that this worker reads from HDFS itself."""

    workers = len(context.cluster_spec["worker"])
    files = sorted(tf.gfile.Glob(arguments.data + "/tfrecords/train/part-*"))[context.task_index :: workers]
    features = {
        "pixels": tf.FixedLenFeature([digits.PIXELS], tf.float32),
        "digit": tf.FixedLenFeature([], tf.int64),
    }

    def parse(record):
        row = tf.parse_single_example(record, features)
        return row["pixels"], row["digit"]

    dataset = tf.data.TFRecordDataset(files).map(parse).cache().repeat().shuffle(2000, seed=7)
    return dataset.batch(arguments.batch_size).make_one_shot_iterator().get_next()


def train(arguments, context):
    """Runs in every executor."""

    tf = storage.tensorflow()
    cluster, server = context.start_cluster_server(arguments.num_gpus)
    if context.job_name == "ps":
        server.join()
        return

    chief = context.task_index == 0
    fed = arguments.input_mode == "spark"
    # All workers count their steps together; Spark's feed is not dealt out evenly to the last row.
    steps = digits.steps(arguments.rows, arguments.epochs, arguments.batch_size, 0.9 if fed else 1.0)
    placed = tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % context.task_index, cluster=cluster)
    with tf.Graph().as_default(), tf.device(placed):
        tf.set_random_seed(7)
        if fed:
            pixels = tf.placeholder(tf.float32, [None, digits.PIXELS])
            answers = tf.placeholder(tf.int64, [None])
        else:
            pixels, answers = record_batches(tf, arguments, context)
        logits = network(tf, pixels)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answers, logits=logits))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), answers), tf.float32))
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("accuracy", accuracy)
        step = tf.train.get_or_create_global_step()
        learn = tf.train.AdamOptimizer(2e-3).minimize(loss, global_step=step)

        feed = context.get_data_feed() if fed else None
        if chief:
            print("begins after %s" % tf.train.latest_checkpoint(arguments.output + "/events"))
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            checkpoint_dir=arguments.output + "/events",
            save_checkpoint_secs=60,
            save_summaries_steps=20,
            hooks=[tf.train.StopAtStepHook(last_step=steps)],
        ) as session:
            while not session.should_stop() and not (fed and feed.should_stop()):
                if not fed:
                    session.run(learn)
                    continue
                for rows in feed.next_batch(1):
                    if rows:
                        batch = {pixels: [row[0] for row in rows], answers: [row[1] for row in rows]}
                        session.run(learn, batch)
                    elif chief:
                        wait_for_the_others(session, step, batch)
        if fed:
            feed.terminate()
    if chief:
        export(tf, arguments)
        storage.write(tf, arguments.output + "/finished", "the model and the events are complete")


def wait_for_the_others(session, step, batch):
    """The chief's rows are used up. The feed ends for nobody before the chief has saved the model, so it must not ask for more.

    batch: its last one, for the summaries.
    """
    end = time.time() + PATIENCE
    while not session.should_stop() and time.time() < end:
        session.run(step, batch)
        time.sleep(0.5)


def export(tf, arguments):
    """Turn the last checkpoint into a SavedModel."""

    with tf.Graph().as_default(), tf.Session() as session:
        pixels = tf.placeholder(tf.float32, [None, digits.PIXELS], name="pixels")
        guesses = tf.argmax(network(tf, pixels), 1, name="guesses")
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(arguments.output + "/events"))
        builder = tf.saved_model.builder.SavedModelBuilder(arguments.output + "/model")
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"pixels": pixels}, {"guesses": guesses})
        builder.add_meta_graph_and_variables(
            session, [tf.saved_model.tag_constants.SERVING], {"serving_default": signature}
        )
        builder.save()


def guess(tf, model, pixels):
    """What the saved model takes each of these digits for."""

    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], model)
        return session.run("guesses:0", {"pixels:0": pixels})


if __name__ == "__main__":
    job.run(job.options(__doc__.splitlines()[0]), train, guess, CLUSTER)
