"""What the examples share on top of every TensorFlow from 1.4 on: files in HDFS, and the held-out digits."""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import digits

MAPR_CLUSTERS = "/opt/mapr/conf/mapr-clusters.conf"  # a line for each cluster, which begins with its name


def tensorflow():
    """TensorFlow with HDFS, if it can: up to 2.5 it is built in, later importing tensorflow_io registers it."""
    import tensorflow as tf

    try:
        import tensorflow_io  # noqa: F401 (importing registers the file system)
    except ImportError:
        return tf  # a stack without it
    return tf


def reads_hdfs(tf):
    """Whether TensorFlow itself reads and writes hdfs:// in this stack."""
    return version(tf) < (2, 6) or "tensorflow_io" in sys.modules


def version(tf):
    return tuple(int(number) for number in tf.__version__.split(".")[:2])


class OldFiles(object):
    """tf.io.gfile for TensorFlow before 1.13, which has the same under other names."""

    def __init__(self, tf):
        self.exists, self.glob, self.GFile = tf.gfile.Exists, tf.gfile.Glob, tf.gfile.GFile
        self.makedirs, self.rmtree = tf.gfile.MakeDirs, tf.gfile.DeleteRecursively


def files(tf):
    """The file functions of this TensorFlow under their names of today."""
    gfile = getattr(getattr(tf, "io", None), "gfile", None)
    return gfile or OldFiles(tf)


def hdfs(*arguments):
    """Run Hadoop's own command, for a TensorFlow that does not know hdfs://. Returns the exit status of a test; all else must succeed."""
    home = os.environ.get("HADOOP_HDFS_HOME") or os.environ.get("HADOOP_HOME") or "/usr"
    program = os.path.join(home, "bin", "hdfs")
    variables = dict(
        (name, value) for name, value in os.environ.items() if name != "CLASSPATH"
    )  # that one is libhdfs's
    command = [program if os.path.exists(program) else "hdfs", "dfs"] + list(arguments)
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = process.communicate()[0].decode("utf-8", "replace")
    if process.returncode and arguments[0] != "-test":
        raise SystemExit("%s failed with status %d: %s" % (" ".join(command), process.returncode, text.strip()[-500:]))
    return process.returncode


def by_command(tf, path):
    """Whether the path must go through Hadoop's command."""
    return path.startswith("hdfs://") and not reads_hdfs(tf)


def exists(tf, path):
    return hdfs("-test", "-e", path) == 0 if by_command(tf, path) else files(tf).exists(path)


def remove(tf, path):
    if by_command(tf, path):
        hdfs("-rm", "-r", "-f", "-skipTrash", path)
    elif files(tf).exists(path):
        files(tf).rmtree(path)


def fresh(tf, directory):
    """An empty directory: what an earlier run of the same job left would be taken for this one's."""
    remove(tf, directory)
    if by_command(tf, directory):
        hdfs("-mkdir", "-p", directory)
    else:
        files(tf).makedirs(directory)


def begin(tf, directory, job):
    """An empty directory; of a job that is submitted again (tfos-submit --attempts) it keeps the events and checkpoints."""
    mark = directory + "/job-" + job
    if not job or exists(tf, directory + "/finished") or not exists(tf, mark):
        fresh(tf, directory)
        fresh(tf, directory + "/checkpoints")
        write(tf, mark, "")
    for name in ("model", "table", "tfrecords", "guesses"):
        remove(tf, directory + "/" + name)


@contextlib.contextmanager
def scratch(name="scratch"):
    """A local path of that name in a new directory, which is removed afterwards."""
    directory = tempfile.mkdtemp(prefix="digits-")
    try:
        yield os.path.join(directory, name)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def writable(tf, path):
    """A path for TensorFlow to write to: the path itself, or a local one that is uploaded at the end."""
    if not by_command(tf, path):
        yield path
        return
    with scratch(os.path.basename(path)) as local:
        yield local
        hdfs("-mkdir", "-p", os.path.dirname(path))
        hdfs("-put", "-f", local, os.path.dirname(path))


@contextlib.contextmanager
def readable(tf, path):
    """A path for TensorFlow to read from: the path itself, or a local copy of it."""
    if not by_command(tf, path):
        yield path
        return
    with scratch(os.path.basename(path)) as local:
        hdfs("-get", path, local)
        yield local


def held_out(tf, data):
    """The held-out digits from HDFS: (pixels, digits)."""
    if not exists(tf, data + "/csv/held-out"):
        raise SystemExit(
            "The held-out digits are required in %s/csv/held-out but are missing. "
            "Write them first: tfos-submit --local prepare.py %s" % (data, data)
        )
    rows = []
    with readable(tf, data + "/csv/held-out") as directory:
        for path in sorted(files(tf).glob(directory + "/part-*")):
            with files(tf).GFile(path, "r") as handle:
                rows += handle.read().split()
    return digits.arrays(rows)


def write(tf, path, text):
    with writable(tf, path) as target, files(tf).GFile(target, "w") as handle:
        handle.write(text + "\n")


def wait(tf, path, seconds):
    """Wait for a file that a worker writes when it is done. If it never comes, the cluster's shutdown tells why."""
    deadline = time.time() + seconds
    while time.time() < deadline and not exists(tf, path):
        time.sleep(1)


def demand(accuracy, minimum):
    """End with a sentence if the model is worse than required."""
    if accuracy < minimum:
        raise SystemExit(
            "The model names %.1f %% of the held-out digits, and %.1f %% are asked for (--minimum-accuracy). "
            "Train for more epochs." % (100 * accuracy, 100 * minimum)
        )


def address(text):
    """A directory's address as an argument, hdfs:/// with the cluster's own NameNode written out.

    TensorFlow takes an address without a NameNode for the local file system, and says nothing. MapR's is where its file system is mounted.
    """
    if not text.startswith(("hdfs:///", "maprfs:///")):
        return text.rstrip("/")
    path = os.path.join(os.environ.get("HADOOP_CONF_DIR", "/etc/hadoop/conf"), "core-site.xml")
    try:
        entries = ElementTree.parse(path).getroot().iter("property")  # noqa: S314 (the cluster's own configuration)
    except (IOError, OSError, ElementTree.ParseError) as error:
        raise argparse.ArgumentTypeError(  # Python 2.7 has no "from"
            "the NameNode is required, but is neither in %s nor in %s (%s); write it: hdfs://namenode:8020/user/me"
            % (text, path, error)
        )
    conf = dict(((entry.findtext("name") or "").strip(), (entry.findtext("value") or "").strip()) for entry in entries)
    default = conf.get("fs.defaultFS") or conf.get("fs.default.name") or ""
    if default.startswith("maprfs://"):
        with open(MAPR_CLUSTERS) as handle:
            return "/mapr/" + handle.read().split()[0] + text.partition("://")[2].rstrip("/")
    if not default.startswith("hdfs://"):
        raise argparse.ArgumentTypeError(
            "the NameNode is required, but %s has %r as fs.defaultFS; write it: hdfs://namenode:8020/user/me"
            % (path, default)
        )
    return default.rstrip("/") + text[len("hdfs://") :].rstrip("/")
