"""deeplearning grid: a script once for each set of parameters, as one job: the options, the job's settings, and the table at the end."""

from __future__ import absolute_import, division, print_function

import argparse
import collections
import hashlib
import io
import itertools
import json
import os
import pkgutil
import random
import re

from ansible.module_utils.hadoop_dl_host.text_columns import columns, write
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from tfos_submit.options import address, arguments_parser, count
from tfos_submit.outcome import FAILED, OK, say

OPTION = "--grid"  # as the first one; deeplearning grid adds it
MOST = 1000  # trials: each is a directory in HDFS
FORM = '{"learning-rate": [0.1, 0.01], "batch-size": {"from": 16, "to": 256, "scale": "log"}}'


def parser():
    """deeplearning grid --help explains them."""
    parser = arguments_parser()
    parser.prog, parser.description, parser.epilog = "deeplearning grid", None, None
    parser.add_argument("--params", type=parameters, required=True)
    parser.add_argument("--output", type=address, required=True)
    parser.add_argument("--random", type=count)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--lowest", action="store_true")
    return parser


def parameters(path):
    """What is asked of each option, in the order of the file."""
    try:
        with io.open(path, encoding="utf-8") as handle:
            options = json.load(handle, object_pairs_hook=collections.OrderedDict)
    except (IOError, OSError, ValueError) as error:
        raise argparse.ArgumentTypeError("%s must be JSON such as %s: %s" % (path, FORM, error))
    problem = None if isinstance(options, dict) and options else "is no object with options"
    for name, values in options.items() if not problem else ():
        problem = problem or problem_of(name, values)
    if problem:
        raise argparse.ArgumentTypeError("%s must be like %s, but %s" % (path, FORM, problem))
    return options


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def problem_of(name, values):
    """Why these cannot be the values of an option; None if they can."""
    if not re.match(r"^[A-Za-z][\w-]*$", name) or name == "output":
        return "%r is no name of an option that a grid can give" % str(name)
    if isinstance(values, dict):
        low, high, scale = (values.get(key, "linear") for key in ("from", "to", "scale"))
        range_valid = number(low) and number(high) and low < high and (scale == "linear" or low > 0)
        if range_valid and scale in ("linear", "log") and set(values) <= {"from", "to", "scale"}:
            return None
        return 'the range of %s needs "from" below "to", and "scale" can be "log" above 0' % name
    texts = ["%s" % value for value in values] if isinstance(values, list) else []
    if texts and len(set(texts)) == len(texts) and all(number(item) or hasattr(item, "strip") for item in values):
        return None
    return "%s has no list of different numbers and texts" % name


def sets(choices, how_many):
    """The parameters of each trial by its name; how_many: at random, None: all combinations."""
    ranges = [name for name, values in choices.items() if isinstance(values, dict)]
    if how_many is None and ranges:
        raise NotReady("the range of %s has no end of values. Say how many to try: --random 20." % ranges[0])
    if how_many is None:
        combinations = itertools.product(*choices.values())
    else:
        dice = random.Random(0)  # noqa: S311 (no secret); more of them later begin with the same ones
        combinations = ([drawn(values, dice.random()) for values in choices.values()] for _ in range(how_many))
    first = list(itertools.islice(combinations, MOST + 1))
    if len(first) > MOST:
        raise NotReady("at most %d trials are possible, but these are more. Ask for fewer, or for --random 20." % MOST)
    parameter_sets = [collections.OrderedDict(zip(choices, values)) for values in first]
    return collections.OrderedDict((name_of(parameter_set), parameter_set) for parameter_set in parameter_sets)


def drawn(values, share):
    """One of a list, or a number of a range. share: from 0 to below 1."""
    if isinstance(values, list):
        return values[int(share * len(values))]
    low, high = values["from"], values["to"]
    value = low * (high / low) ** share if values.get("scale") == "log" else low + (high - low) * share
    whole = isinstance(low, int) and isinstance(high, int)
    return int(round(value)) if whole else float("%.4g" % value)


def name_of(parameter_set):
    """The directory of a trial: readable in TensorBoard, and allowed in HDFS."""
    text = ",".join("%s=%s" % pair for pair in parameter_set.items())
    name = re.sub(r"[^A-Za-z0-9_.,=+-]", "_", text)[:100]
    return name if name == text else name + "-" + hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def sources(options):
    """The script's text, and the sha256 of all code that a trial has. An option of which nothing speaks is refused."""
    texts = []
    for path in [options.script] + (options.py_files or "").split(","):
        if path and "://" not in path:
            with open(path, "rb") as handle:
                texts.append(handle.read())
    code = b"\0".join(texts)
    for name in list(options.params) + ["output"]:
        if not takes(code.decode("utf-8", "replace"), name):
            raise NotReady(
                "%s must have the option --%s, but neither it nor --py-files names it. Add the option, or correct --params."
                % (options.script, name)
            )
    return texts[0].decode("utf-8"), hashlib.sha256(code).hexdigest()


def takes(text, name):
    """Whether a program may have an option. Not all write the two hyphens; --learning-rate is not --learning_rate."""
    exact, word, hyphenated = (
        re.search(form + r"(?![\w-])", text)
        for form in ("--" + name, r"(?<![\w-])" + name, "--" + name.replace("_", "-"))
    )
    return bool(exact or (word and not hyphenated))


def prepare(options, environment, version, directory):
    """Make the options those of a job that runs all trials. version: of Spark. directory: for the job's file."""
    text, digest = sources(options)
    trials = sets(options.params, options.random)
    options.executors = min(options.executors, len(trials))
    spec = {
        "trials": [{"name": name, "parameters": values} for name, values in trials.items()],
        "script": os.path.basename(options.script),
        "text": text,
        "executors": options.executors,
        "output": options.output,
        "same": {"sha256": digest, "arguments": options.arguments, "environment": os.path.basename(environment)},
    }
    source = pkgutil.get_data("tfos_submit", "grid_job.py").decode("utf-8")
    options.name = options.name or "grid of " + spec["script"]
    options.script, options.result = (os.path.join(directory, name) for name in ("grid_job.py", "grid.json"))
    options.arguments = [options.result]
    with io.open(options.script, "w", encoding="utf-8") as output:
        output.write(source + "\nmain(json.loads(%s))\n" % json.dumps(json.dumps(spec)))
    # A trial that takes its executor with it is one row: others go on in new ones.
    settings = [("spark.yarn.max.executor.failures", str(2 * len(trials) + 3))] + exclusion(version, options.executors)
    if version and version >= (3, 0):  # without Spark's shuffle service: no trial leaves anything on its executor
        settings += [("spark.dynamicAllocation." + name, "true") for name in ("enabled", "shuffleTracking.enabled")]
        settings.append(("spark.dynamicAllocation.maxExecutors", str(options.executors)))
    options.conf = settings + options.conf


def exclusion(version, executors):
    """Settings: a trial that failed runs once more on another host. If it is done there, Spark counts it against the first: two exclude a host.

    A trial that fails on both is the fault of its parameters, and counts against nobody.
    """
    if executors < 2 or not version or version < (2, 2):  # Spark 2.1 excludes for a task and a stage alone
        return []
    prefix = "spark.excludeOnFailure." if version >= (3, 1) else "spark.blacklist."
    settings = [(prefix + "enabled", "true"), (prefix + "task.maxTaskAttemptsPerNode", "1")]
    return settings + [(prefix + "application.maxFailedExecutorsPerNode", "1"), ("spark.task.maxFailures", "2")]


def report(options, status):
    """Print the table of a job that ended with this status; returns the grid's."""
    if status != OK:
        say("trials that ended are kept in %s: the same command runs the others." % options.output)
        return status
    with io.open(options.result, encoding="utf-8") as handle:
        answer = json.load(handle)
    if answer["problem"]:
        say(answer["problem"])
        return FAILED
    write("\n".join(columns(table(answer["trials"], list(options.params), options.metric, options.lowest))) + "\n")
    done_count = sum(trial["status"] == "done" for trial in answer["trials"])
    words = "%d of %d trials are done. To see them: deeplearning tensorboard %s"
    say(words % (done_count, len(answer["trials"]), options.output))
    return OK if done_count == len(answer["trials"]) else FAILED


def table(trials, names, metric, lowest):
    """Rows for a terminal, the best first, those without the metric last."""

    def place(trial):
        value = trial["metrics"].get(metric)
        return (trial["status"] != "done", value is None, 0 if value is None else value if lowest else -value)

    metrics = sorted(set(name for run in trials for name in run["metrics"]), key=lambda name: (name != metric, name))
    rows = [[title.upper() for title in metrics + names + ["seconds", "host", "status"]]]
    for run in sorted(trials, key=place):
        numbers = ["%.4g" % run["metrics"][name] if name in run["metrics"] else "-" for name in metrics]
        last = run["status"] + (": " + run["error"][:100] if run["error"] else "")
        rows.append(
            numbers + [run["parameters"][name] for name in names] + ["%.0f" % run["seconds"], run["host"], last]
        )
    return rows
