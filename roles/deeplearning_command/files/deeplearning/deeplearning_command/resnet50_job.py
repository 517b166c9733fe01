"""The job of deeplearning benchmark --resnet50, in the environment's Python 3: the driver, and what each worker measures.

TensorFlow 2.4 to 2.15. Each round measures every part once, in turn, so that a load which changes meets all of them alike. All workers
begin a part together: none counts the wait for another one, but the step contains it as it is.
"""

from __future__ import absolute_import, division, print_function

import json
import sys

WARM_UP = 2  # rounds that do not count: they build the graphs and choose algorithms


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
    size_of_gradients = 4 * sum(shape.num_elements() for shape in shapes)
    report = {"host": socket.gethostname(), "gpus": names, "replicas": replicas, "sum_of_ones": float(total)}
    spec["reports"].add([dict(report, gradient_bytes=size_of_gradients, seconds=seconds)])


def main(path, text):
    from pyspark import AccumulatorParam, SparkContext
    from tensorflowonspark import TFCluster

    class Reports(AccumulatorParam):
        def zero(self, value):
            return []

        def addInPlace(self, value, more):
            return value + more

    spark = SparkContext()
    spec = dict(json.loads(text), reports=spark.accumulator([], Reports()))
    TFCluster.run(spark, measure, spec, spec["workers"], 0, master_node="chief").shutdown()
    spark.stop()
    with open(path, "w") as output:
        json.dump(spec["reports"].value, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
