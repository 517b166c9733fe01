"""check_wheel.py WHEEL REQUEST: unpack a wheel where nothing else is, and let it show what it can. Python 2.7 and 3.

Prints one line of JSON: what was found, and each difference from the request as a clause. check_wheel.py --symbols WHEEL prints the dynamic section
of each library in it.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HDFS = "hdfs://localhost:1/"  # nobody listens there: what matters is whether the scheme is known
LIBRARY = b"\x7fELF"


def unpack(wheel, directory):
    """As an installation does: what is under NAME.data/purelib or platlib belongs beside the rest."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            place = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", info.filename)
            if place.endswith("/") or ".." in place.split("/") or place.startswith("/"):
                continue
            path = os.path.join(directory, place)
            if not os.path.isdir(os.path.dirname(path)):
                os.makedirs(os.path.dirname(path))
            with archive.open(info) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def product(tf):
    """[[1, 2], [3, 4]] times itself, as TensorFlow 1 or 2 computes it."""
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    matrix = tf.matmul(a, a)
    if hasattr(matrix, "numpy"):
        matrix = matrix.numpy()
    else:
        with tf.Session() as session:
            matrix = session.run(matrix)
    return [[float(value) for value in row] for row in matrix]


def knows_hdfs(tf):
    """Whether the wheel has HDFS's file system: one that it does not have is refused by its name."""
    exists = tf.io.gfile.exists if hasattr(getattr(tf, "io", None), "gfile") else tf.gfile.Exists
    try:
        exists(HDFS)
    except Exception as error:
        return "not implemented" not in str(error)
    return True


def knows_kafka():
    try:
        from tensorflow.contrib import kafka

        return bool(kafka.KafkaDataset)
    except ImportError:
        return False


def look(request):
    import tensorflow as tf

    version = getattr(tf, "version", None)
    properties = {
        "version": tf.__version__,
        "git_version": getattr(version, "GIT_VERSION", None) or getattr(tf, "GIT_VERSION", ""),
        "product": product(tf),
        "hdfs": knows_hdfs(tf),
        "kafka": knows_kafka(),
        "cuda": bool(tf.test.is_built_with_cuda()),
    }
    expected = {"product": [[7.0, 10.0], [15.0, 22.0]]}
    expected.update(request)
    problems = [
        "%s must be %s but is %s" % (name, json.dumps(value), json.dumps(properties[name]))
        for name, value in sorted(expected.items())
        if properties[name] != value
    ]
    return {"found": properties, "problems": problems}


def symbols(directory):
    for top, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as handle:
                is_library = handle.read(4) == LIBRARY
            if is_library:
                print(subprocess.check_output(["objdump", "-p", path]).decode("utf-8", "replace"))


def main(arguments):
    directory = tempfile.mkdtemp(prefix="wheel-")
    try:
        wheel = arguments[1] if arguments[0] == "--symbols" else arguments[0]
        unpack(wheel, directory)
        if arguments[0] == "--symbols":
            symbols(directory)
            return 0
        sys.path.insert(0, directory)
        with open(arguments[1]) as handle:
            request = json.load(handle)
        try:
            answer = look(request)
        except Exception as error:
            answer = {"found": {}, "problems": ["%s: %s" % (type(error).__name__, error)]}
        print(json.dumps(answer))
        return 1 if answer["problems"] else 0
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
