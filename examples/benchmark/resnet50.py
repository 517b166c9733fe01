"""How fast ResNet-50 trains on the executors of a Spark job, and where the time of a step goes. TensorFlow 2.4 to 2.15.

tfos-submit --executors 2 --gpus 1 --name "ResNet-50 on 2" resnet50.py

Each round measures every part once, in turn, so that a load which changes meets all of them alike. All workers begin a part together: none
counts the wait for another one, but the step contains it as it is.
"""

from __future__ import absolute_import, division, print_function

import argparse

WARM_UP = 2  # rounds that do not count: they build the graphs and choose algorithms
PARTS = ("input", "compute", "all_reduce")  # and what is left of the step
COLUMNS = "%7s %5s %9s  %7s %7s %10s %9s %7s %6s"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image-size", type=int, default=224, help="pixels of a side, 32 at least (%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="images of a step, for each GPU (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="that count, after two others (%(default)s)")
    return parser.parse_args()


def measure(spec, context):
    """Runs in every executor; adds this worker's seconds of each part and round to spec["reports"]."""
    import socket
    import time

    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    replicas, size, batch = strategy.num_replicas_in_sync, spec["image_size"], spec["batch"]
    with strategy.scope():
        model = tf.keras.applications.ResNet50(weights=None, input_shape=(size, size, 3))
        optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    shapes = [variable.shape for variable in model.trainable_variables]

    def add_up(tensors):
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    def gradients(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.keras.losses.sparse_categorical_crossentropy(labels, model(images, training=True))
            loss = tf.reduce_mean(losses) / replicas  # the workers' gradients are added up
        return loss, tape.gradient(loss, model.trainable_variables)

    def learn(images, labels):
        loss, gradient_list = gradients(images, labels)
        optimizer.apply_gradients(list(zip(gradient_list, model.trainable_variables)))
        return loss

    def add_up_ones(one, shapes):
        """The answer is there when all of them are."""
        ones = add_up([tf.fill(shape, one) for shape in shapes])
        with tf.control_dependencies(ones):
            return tf.reshape(ones[0], [-1])[0]

    def on_replicas(function):
        # Without autograph, which cannot read this lambda.
        return tf.function(lambda *values: strategy.run(function, args=values), autograph=False)

    # The gradient of the first layer is computed last; the others are returned so that none is left out.
    compute = on_replicas(lambda images, labels: gradients(images, labels)[1])
    all_reduce = on_replicas(lambda one: add_up_ones(one, shapes))
    begin, step = on_replicas(lambda one: add_up_ones(one, [()])), on_replicas(learn)

    def wait(values):
        return [value.numpy() for value in strategy.experimental_local_results(values)]

    labels = tf.random.uniform((batch,), 0, 1000, tf.int32)
    noise = tf.cast(tf.random.uniform((batch, size, size, 3), 0, 256, tf.int32), tf.uint8)
    dataset = tf.data.Dataset.from_tensors((noise, labels)).repeat()
    dataset = dataset.map(
        lambda pixels, digits: (tf.image.random_flip_left_right(tf.cast(pixels, tf.float32) / 127.5 - 1), digits)
    )
    batches, one = iter(dataset), tf.constant(1.0)
    local = max(1, len(tf.config.list_logical_devices("GPU")))  # replicas of this worker: each needs a batch

    def images():
        return [next(batches) for _ in range(local)][-1]

    first = images()
    parts = {
        "input": images,
        "compute": lambda: wait(compute(*first)[0]),
        "all_reduce": lambda: wait(all_reduce(one)),
        "step": lambda: wait(step(*images())),
    }
    seconds = {name: [] for name in parts}
    for number in range(WARM_UP + spec["rounds"]):
        for name, part in parts.items():
            wait(begin(one))
            start = time.perf_counter()  # novermin
            part()
            spent = time.perf_counter() - start  # novermin
            seconds[name] += [spent] if number >= WARM_UP else []
    (total,) = set(wait(all_reduce(one)))
    gpus = tf.config.list_physical_devices("GPU")
    names = [tf.config.experimental.get_device_details(gpu).get("device_name", "GPU") for gpu in gpus]
    report = {"host": socket.gethostname(), "gpus": names, "replicas": replicas, "sum_of_ones": float(total)}
    spec["reports"].add([dict(report, seconds=seconds)])


def table(reports, workers, batch):
    """The titles and the row of this job. A part takes as long as on the slowest worker of its round: the others wait for it."""
    replicas = reports[0]["replicas"] if reports else 0
    sums = [one["sum_of_ones"] for one in reports]
    if len(reports) != workers or replicas < workers or sums != [replicas] * workers:
        words = "%d workers must report, and add up a one from each of theirs, but %d reported, and the sums are %s."
        raise SystemExit(words % (workers, len(reports), sums))
    rounds = [
        sorted(max(each) for each in zip(*[one["seconds"][part] for one in reports])) for part in PARTS + ("step",)
    ]
    medians = [values[len(values) // 2] for values in rounds]
    step, quarter = medians.pop(), len(rounds[-1]) // 4
    times = ["%.3f" % seconds for seconds in medians + [step - sum(medians), step]]
    spread = "%.0f%%" % (100 * (rounds[-1][-1 - quarter] - rounds[-1][quarter]) / step)
    hosts = len(set(one["host"] for one in reports))
    titles = ("workers", "hosts", "images/s", "input", "compute", "all-reduce", "remainder", "step", "spread")
    row = [workers, hosts, "%.1f" % (replicas * batch / step)] + times + [spread]
    return COLUMNS % titles + "\n" + COLUMNS % tuple(row)


def main(arguments):
    from pyspark import AccumulatorParam, SparkContext
    from tensorflowonspark import TFCluster

    class Reports(AccumulatorParam):
        def zero(self, value):
            return []

        def addInPlace(self, value, more):
            return value + more

    spark = SparkContext()
    workers = int(spark.getConf().get("spark.executor.instances"))
    spec = dict(vars(arguments), reports=spark.accumulator([], Reports()))
    TFCluster.run(spark, measure, spec, workers, 0, master_node="chief").shutdown()
    spark.stop()
    reports = spec["reports"].value
    print(table(reports, workers, arguments.batch))
    gpus = [gpu for one in reports for gpu in one["gpus"]]
    print("GPUs: %s" % (", ".join(gpus) or "none, so this says nothing about GPUs"))


if __name__ == "__main__":
    main(options())
