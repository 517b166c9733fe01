# -*- coding: utf-8 -*-
"""What the examples share on top of TensorFlow 1.15 and 2: a TensorFlow that knows hdfs://, and the held-out digits."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import time
import xml.etree.ElementTree as ElementTree

import digits


def tensorflow():
    """TensorFlow with HDFS: 1.x has it built in, from 2.6 on importing tensorflow_io registers it."""
    import tensorflow as tf

    if not tf.__version__.startswith("1."):
        import tensorflow_io  # noqa: F401 (importing registers the file system)
    return tf


def held_out(tf, data):
    """The held-out digits as TensorFlow reads them from HDFS: (pixels, digits)."""
    rows = []
    for path in sorted(tf.io.gfile.glob(data + "/csv/held-out/part-*")):
        with tf.io.gfile.GFile(path, "r") as handle:
            rows += handle.read().split()
    if not rows:
        raise SystemExit(
            "The held-out digits are needed in %s/csv/held-out, and there are none. "
            "Write them first: tfos-submit --local prepare.py %s" % (data, data)
        )
    return digits.arrays(rows)


def write(tf, path, text):
    with tf.io.gfile.GFile(path, "w") as handle:
        handle.write(text + "\n")


def fresh(tf, directory):
    """An empty directory: what an earlier run of the same job left would be taken for this one's."""
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)
    tf.io.gfile.makedirs(directory)


def wait(tf, path, seconds):
    """Wait for a file that a worker writes when it is done. Where it never comes, the cluster's shutdown tells why."""
    deadline = time.time() + seconds
    while time.time() < deadline and not tf.io.gfile.exists(path):
        time.sleep(1)


def demand(accuracy, minimum):
    """End with a sentence where the model is worse than asked."""
    if accuracy < minimum:
        raise SystemExit(
            "The model names %.1f %% of the held-out digits, and %.1f %% are asked for (--minimum-accuracy). "
            "Train for more epochs." % (100 * accuracy, 100 * minimum)
        )


def address(text):
    """A directory's address as an argument, hdfs:/// with the cluster's own NameNode written out.

    TensorFlow takes an address without a NameNode for the local file system, and says nothing.
    """
    if not text.startswith("hdfs:///"):
        return text.rstrip("/")
    path = os.path.join(os.environ.get("HADOOP_CONF_DIR", "/etc/hadoop/conf"), "core-site.xml")
    try:
        entries = ElementTree.parse(path).getroot().iter("property")  # noqa: S314 (the cluster's own configuration)
    except (IOError, OSError, ElementTree.ParseError) as error:
        raise argparse.ArgumentTypeError(  # noqa: B904 (Python 2.7 has no "from")
            "the NameNode is needed, and is neither in %s nor in %s (%s); write it: hdfs://namenode:8020/user/me"
            % (text, path, error)
        )
    found = dict(((entry.findtext("name") or "").strip(), (entry.findtext("value") or "").strip()) for entry in entries)
    default = found.get("fs.defaultFS") or found.get("fs.default.name") or ""
    if not default.startswith("hdfs://"):
        raise argparse.ArgumentTypeError(
            "the NameNode is needed, and %s has %r as fs.defaultFS; write it: hdfs://namenode:8020/user/me"
            % (path, default)
        )
    return default.rstrip("/") + text[len("hdfs://") :].rstrip("/")
