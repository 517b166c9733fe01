"""The job of a grid, in the environment's Python: the driver, and what it has each executor do. grid.py adds the last line, which starts it.

HDFS is reached through the driver's own Java, which has its login: any file system of Hadoop will do, and TensorFlow is not needed.
"""

import base64
import collections
import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from multiprocessing.dummy import Pool

MARK = "RESULT "
OUTCOME = (
    "a trial failed: "  # then its outcome, packed: all that a driver gets of a failed task is the text of its error
)
LOST = r"most recent failure: (?:Lost task .*?\): )?(?:.* Reason: )?(.*)"  # in what Spark says
LAST = 40  # lines of a trial's output that are kept


def numbers(text):
    """The metrics of RESULT {"accuracy": 0.9}, or of RESULT accuracy 0.9; what is no finite number is left out."""
    try:
        content = json.loads(text)
    except ValueError:
        words = text.split()
        content = dict(zip(words[::2], words[1::2]))
    metrics = {}
    for name, value in content.items() if isinstance(content, dict) else ():
        try:
            value = value if isinstance(value, (bool, list, dict)) else float(value)
        except (TypeError, ValueError):
            continue
        if isinstance(value, float) and abs(value) < float("inf"):
            metrics[name] = value
    return metrics


def attempt(spec, trial, output):
    """Run the script in this executor with one set of parameters; how it ended, as an error if it failed: Spark then tries another host."""
    from pyspark import TaskContext

    directory, began = tempfile.mkdtemp(prefix="grid-"), time.time()
    output += "/retry" if TaskContext.get().attemptNumber() else ""
    try:
        script = os.path.join(directory, spec["script"])
        with open(script, "wb") as target:
            target.write(spec["text"].encode("utf-8"))
        command = [sys.executable, "-u", script] + spec["same"]["arguments"]
        command += ["--%s=%s" % pair for pair in list(trial["parameters"].items()) + [("output", output)]]
        command = [word if isinstance(word, str) else word.encode("utf-8") for word in command]  # Python 2.7
        # What Spark brought, such as --py-files, is on this process's path alone.
        variables = dict(os.environ, PYTHONPATH=os.pathsep.join(place for place in sys.path if place))
        resource = getattr(TaskContext.get(), "resources", dict)().get("gpu")
        gpus = list(resource.addresses) if resource else []
        variables.update({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {})
        if output.startswith("/") and not os.path.isdir(output):  # HDFS creates it
            os.makedirs(output)
        outcome = dict(run(command, variables), host=socket.gethostname(), gpus=gpus, output=output)
        outcome["seconds"] = time.time() - began
    finally:
        shutil.rmtree(directory)
    if outcome["status"] == "failed":
        packed = base64.b64encode(zlib.compress(json.dumps(outcome).encode("utf-8")))
        raise RuntimeError(OUTCOME + packed.decode("ascii"))
    return outcome


def failure(text):
    """The outcome of a trial that failed, or whose executor is gone, from Spark's words."""
    packed = re.search(OUTCOME + r"([\w+/]+=*)", text)
    if packed:
        return json.loads(zlib.decompress(base64.b64decode(packed.group(1))).decode("utf-8"))
    reason = re.search(LOST, text) or re.search(r"(.*)", text)
    return {
        "status": "failed",
        "error": reason.group(1),
        "metrics": {},
        "said": [],
        "host": "-",
        "gpus": [],
        "seconds": 0,
    }


def run(command, variables):
    """Run a trial's process; what it says is in the executor's log, too."""
    log, last_lines, metrics = getattr(sys.stderr, "buffer", sys.stderr), collections.deque(maxlen=LAST), {}
    with open(os.devnull) as no_input:
        process = subprocess.Popen(
            command, env=variables, stdin=no_input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    for line in iter(process.stdout.readline, b""):
        log.write(line)
        log.flush()
        text = line.decode("utf-8", "replace").strip()
        if text.startswith(MARK):
            metrics = numbers(text[len(MARK) :])
        last_lines.extend([text[-500:]] if text else [])
    status, error = process.wait(), ""
    if status:
        error = "%s (exit status %d)" % (last_lines[-1] if last_lines else "it said nothing", status)
    elif not metrics:
        error = "it printed no line such as RESULT accuracy 0.9"
    return {"status": "failed" if error else "done", "error": error, "metrics": metrics, "said": list(last_lines)}


class Directory(object):
    """Where the trials are."""

    def __init__(self, context, address):
        self.java = context._jvm
        path = self.java.org.apache.hadoop.fs.Path(address)
        self.system = path.getFileSystem(context._jsc.hadoopConfiguration())
        self.system.setWriteChecksum(False)
        # TensorFlow takes hdfs:///user/me for the local disk, and knows no file:/.
        self.root = re.sub("^file:/+", "/", self.system.makeQualified(path).toString())

    def path(self, name):
        return self.java.org.apache.hadoop.fs.Path(self.root + "/" + name)

    def read(self, name):
        """What a file has; None if there is none, or a part of one."""
        if not self.system.exists(self.path(name)):
            return None
        stream = self.system.open(self.path(name))
        try:
            return json.loads(self.java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        except ValueError:
            return None
        finally:
            stream.close()

    def write(self, name, text):
        stream = self.system.create(self.path(name), True)
        stream.write(bytearray(text.encode("utf-8")))
        stream.close()

    def begin(self, name):
        """An empty directory. Only one that has a trial's file is emptied."""
        if self.system.exists(self.path(name + "/trial.json")):
            self.system.delete(self.path(name), True)
        self.system.mkdirs(self.path(name))
        return self.root + "/" + name

    def add(self, name, local):
        for entry in os.listdir(local):
            self.system.copyFromLocalFile(
                self.java.org.apache.hadoop.fs.Path("file://" + os.path.join(local, entry)), self.path(name)
            )


def add_hparams(directory, trial):
    """For TensorBoard's page HPARAMS, if the environment's TensorBoard has one."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.plugins.hparams import api
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        return
    values = [summary_pb2.Summary.Value(tag=name, simple_value=value) for name, value in trial["metrics"].items()]
    local = tempfile.mkdtemp(prefix="grid-")
    try:
        writer = EventFileWriter(local)
        for summary in (api.hparams_pb(trial["parameters"], trial_id=trial["name"]), summary_pb2.Summary(value=values)):
            writer.add_event(event_pb2.Event(wall_time=time.time(), summary=summary))
        writer.close()
        directory.add(trial["name"], local)
    finally:
        shutil.rmtree(local)


def one(spec, context, directory, trial):
    """Run a trial as a Spark job of its own: what ends it, or its executor, ends no other."""
    trial = dict(trial, application=context.applicationId, **spec["same"])
    path = trial["name"] + "/trial.json"
    output = directory.begin(trial["name"])
    directory.write(path, json.dumps(dict(trial, status="running")))
    try:
        (outcome,) = context.parallelize([trial], 1).map(lambda trial: attempt(spec, trial, output)).collect()
    except Exception as error:  # noqa: B902 (of Java: the trial failed, or the executor is gone)
        outcome = failure(str(error))
    trial.update(outcome)
    add_hparams(directory, trial)
    directory.write(path, json.dumps(trial, indent=1, sort_keys=True))
    return trial


def results(spec, context):
    """Run what is missing; {"problem", "trials"}."""
    directory, done_trials, missing = Directory(context, spec["output"]), [], []
    for trial in spec["trials"]:
        old_trial = directory.read(trial["name"] + "/trial.json")
        finished = old_trial and old_trial["status"] == "done"
        for name in ("sha256", "arguments") if finished else ():
            if old_trial[name] != spec["same"][name]:
                words = "%s/%s was made by another %s (%s: %s). Name another --output, or remove that directory."
                return {"problem": words % (directory.root, trial["name"], spec["script"], name, old_trial[name])}
        (done_trials if finished else missing).append(old_trial if finished else trial)
    say("%d trials in %s, %d of them done before" % (len(spec["trials"]), directory.root, len(done_trials)))
    directory.write("code-%s/%s" % (spec["same"]["sha256"][:12], spec["script"]), spec["text"])
    pool = Pool(spec["executors"])
    for trial in pool.imap_unordered(functools.partial(one, spec, context, directory), missing):
        done_trials.append(trial)
        summary = ", ".join("%s %.4g" % pair for pair in sorted(trial["metrics"].items()))
        say("%d of %d: %s: %s" % (len(done_trials), len(spec["trials"]), trial["name"], trial["error"] or summary))
    return {"problem": None, "trials": [dict(trial, said=[]) for trial in done_trials]}


def say(text):
    """In any locale."""
    getattr(sys.stdout, "buffer", sys.stdout).write((text + "\n").encode("utf-8"))
    sys.stdout.flush()


def main(spec):
    from pyspark import SparkContext

    context = SparkContext()
    try:
        outcome = results(spec, context)
        with open(sys.argv[1], "w") as output:
            json.dump(outcome, output)
    finally:
        context.stop()
