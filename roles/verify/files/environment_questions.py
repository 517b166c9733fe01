"""Questions that the environment's own Python answers: 2.7 or 3, TensorFlow 1 or 2. probe.py gives it this text.

A line of JSON for each answer: a library that crashes takes the process along, and what was answered before still counts.
"""

import importlib
import json
import os
import pkgutil
import re
import sys
import traceback
import xml.etree.ElementTree as ElementTree

MAPR_CLUSTERS = "/opt/mapr/conf/mapr-clusters.conf"  # a line for each cluster, which begins with its name
MODULES = ("tensorflow", "keras", "tensorflowonspark", "tensorflow_io", "kafka")


def python():
    return "%d.%d" % sys.version_info[:2]


def versions():
    try:
        from importlib.metadata import distributions  # novermin

        pairs = [(item.metadata["Name"], item.version) for item in distributions()]
    except ImportError:  # Python 2.7, 3.6
        import pkg_resources

        pairs = [(item.project_name, item.version) for item in pkg_resources.working_set]
    return dict((re.sub("[-_.]+", "-", name).lower(), version) for name, version in pairs)


def product():
    import tensorflow as tf

    left, right = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    if not tf.__version__.startswith("1."):
        return tf.matmul(tf.constant(left), tf.constant(right)).numpy().tolist()
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.matmul(tf.constant(left), tf.constant(right))).tolist()


def keras_model():
    try:
        import keras
    except ImportError:  # a stack without a keras of its own
        from tensorflow import keras
    import numpy

    model = keras.models.Sequential([keras.layers.Dense(1, input_shape=(3,))])
    return list(model.predict(numpy.ones((2, 3)), verbose=0).shape)


def hdfs():
    """The names in the root directory of HDFS."""
    import tensorflow as tf

    if "tensorflow_io" in [name for _, name, _ in pkgutil.iter_modules()]:
        importlib.import_module("tensorflow_io")  # later releases of TensorFlow 2 have hdfs:// from there
    site = ElementTree.parse(os.environ["HADOOP_CONF_DIR"] + "/core-site.xml")  # noqa: S314 (the site's own settings)
    values = dict((entry.findtext("name").strip(), entry.findtext("value").strip()) for entry in site.iter("property"))
    root = values["fs.defaultFS"]
    if root.startswith("maprfs://"):  # TensorFlow reads it where it is mounted
        with open(MAPR_CLUSTERS) as handle:
            root = "/mapr/" + handle.read().split()[0]
    # TensorFlow 1.4 has no tf.io; the gfile of 2 has no ListDirectory.
    files = getattr(getattr(tf, "io", None), "gfile", None)
    return sorted((files.listdir if files else tf.gfile.ListDirectory)(root.rstrip("/") + "/"))


def answer(name, question):
    try:
        reply = {"name": name, "value": question(), "error": None}
    except BaseException:
        report = traceback.format_exc().strip().splitlines()
        # TensorFlow 1 prints advice below the line that names the error.
        errors = [line for line in report if re.match(r"[\w.]*(Error|Exception|Interrupt|Exit)\b", line)]
        reply = {"name": name, "value": None, "error": (errors or report)[-1]}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main(arguments):
    """arguments: hdfs alone, which needs the network; or nothing for all others."""
    if arguments:
        answer("hdfs", hdfs)
        return
    answer("python", python)
    answer("versions", versions)
    for module in MODULES:
        answer("import " + module, lambda name=module: importlib.import_module(name) and None)
    answer("product", product)
    answer("keras model", keras_model)


if __name__ == "__main__":
    main(sys.argv[1:])
