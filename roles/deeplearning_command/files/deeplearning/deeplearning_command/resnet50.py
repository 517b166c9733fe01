"""deeplearning benchmark --resnet50: whether training on more hosts pays. Each number of workers is a job on YARN by tfos-submit (resnet50_job.py)."""

from __future__ import absolute_import, division, print_function

import argparse
import collections
import io
import json
import os
import pkgutil
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from ansible.module_utils.hadoop_dl_host import environment_packages, processes
from ansible.module_utils.hadoop_dl_host.text_columns import write
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from deeplearning_command import listing, options, programs
from deeplearning_command.options import FAILED, INTERRUPTED, OK, USAGE, say

OPTION = "--resnet50"
PARTS = ("input", "compute", "all_reduce")  # and what is left of the step
GRACE = 5  # seconds in which an interrupted tfos-submit notices it by itself
LEAST, MOST = (2, 4), (2, 15)  # TensorFlow: MultiWorkerMirroredStrategy, and Keras 2
OF_JOBS = (
    ("--gpus", "N", "of each worker, from YARN", None),
    ("--per-node", "N", "at most N workers on a host, if YARN does not know GPUs", None),
    ("--queue", "NAME", "YARN queue", None),
    ("--node-label", "LABEL", "run workers only on nodes with this label", None),
    ("--cores", "N", "of each worker (1)", None),
    ("--memory", "SIZE", "of each worker (6g)", "6g"),
    ("--deploy-mode", "MODE", "client or cluster", None),
    ("--wait", "SECONDS", "without all workers after a job began to run (40)", None),
    ("--timeout", "SECONDS", "of each job, those in the queue included (3600)", "3600"),
    ("--principal", "NAME", "with --keytab: who the jobs run as", None),
    ("--keytab", "FILE", "the keys of --principal", None),
)
COLUMNS = "%7s %5s %9s %10s  %7s %7s %10s %9s %7s %6s"
TITLES = ("workers", "hosts", "images/s", "efficiency", "input", "compute", "all-reduce", "remainder", "step", "spread")


def main(arguments):
    args = parser().parse_args(arguments)
    program = options.tfos_submit()
    environment, _ = programs.place(args)
    check(environment)
    report = {
        "host": socket.getfqdn(),
        "environment": os.path.basename(environment),
        "gpus": [],
        "networks": [],
        "resnet50": {"image_size": args.image_size, "batch": args.batch, "rounds": args.rounds, "workers": []},
    }
    options.write_result(args.output, report)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: no job stays behind
    work = tempfile.mkdtemp(prefix="deeplearning-resnet50.")
    try:
        return measure(args, program, work, report)
    except KeyboardInterrupt:
        say("interrupted, and the job was ended; what is above was measured")
        return INTERRUPTED
    finally:
        shutil.rmtree(work)


def parser():
    parser = options.parser(
        "benchmark " + OPTION,
        "[--workers N,N] [--output FILE] [OPTION ...]",
        "Train ResNet-50 on made images with 1, 2, 4 ... workers (TensorFlow's all-reduce), and show what more of them bring and\n"
        "where the time of a step goes. Each number is a job on YARN. Rounds measure each part once, in turn; medians count.\n"
        "  efficiency  images/s of N workers, by N times those of one\n"
        "  input       the next batch, on the host's CPU\n"
        "  compute     forward and backward\n"
        "  all-reduce  the workers add up their gradients\n"
        "  remainder   step - input - compute - all-reduce: the update of the weights and the wait for others; negative if\n"
        "              the exchange runs beside the computation\n"
        "  spread      the middle half of the steps, as a share of their median; above 10 % the hosts were not idle",
        [
            "deeplearning benchmark --resnet50 --workers 1,2,4 --gpus 1 --output resnet50.json",
            "deeplearning benchmark --resnet50 --workers 1,2 --image-size 64 --batch 4 --rounds 5     on CPUs",
        ],
    )
    options.add_environment(parser)
    parser.add_argument(OPTION, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=counts, default=[1, 2], help="how many, separated by commas (1,2)")
    parser.add_argument("--image-size", type=number(32), default=224, metavar="N", help="pixels of a side (224)")
    parser.add_argument("--batch", type=number(1), default=32, metavar="N", help="images of a step, for each GPU (32)")
    parser.add_argument("--rounds", type=number(2), default=20, metavar="N", help="that count, after two others (20)")
    parser.add_argument("--output", metavar="FILE", help="the same as JSON, with every round; - is standard output")
    jobs = parser.add_argument_group("as in tfos-submit")
    for name, value, text, default in OF_JOBS:
        jobs.add_argument(name, metavar=value, help=text, default=default)
    jobs.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a Spark setting")
    return parser


def number(least):
    def check_number(text):
        if not re.match(r"^\d{1,6}$", text) or int(text) < least:
            raise argparse.ArgumentTypeError("a whole number from %d is required, but this is %r" % (least, text))
        return int(text)

    return check_number


def counts(text):
    return sorted(set(number(1)(word) for word in text.split(",")))


def check(environment):
    """Refuse an environment in which the jobs would fail."""
    pairs = dict(entry.split(" ", 1) for entry in environment_packages.installed(environment))
    version = ([pairs[name] for name in listing.TENSORFLOW if name in pairs] or ["none"])[0]
    if LEAST <= tuple(int(part) for part in re.findall(r"\d+", version)[:2]) <= MOST and "tensorflowonspark" in pairs:
        return
    raise NotReady(
        "%s requires TensorFlow %d.%d to %d.%d and TensorFlowOnSpark, but %s has TensorFlow %s and TensorFlowOnSpark %s. Name another "
        "environment with --stack (deeplearning list); without one, ask the operator for a stack with both."
        % ((OPTION,) + LEAST + MOST + (os.path.basename(environment), version, pairs.get("tensorflowonspark", "none")))
    )


def measure(args, program, work, result):
    """Run the jobs, and show and write each row when it is there; the exit status."""
    script, rows = os.path.join(work, "resnet50.py"), result["resnet50"]["workers"]
    with io.open(script, "w", encoding="utf-8") as output:
        output.write(pkgutil.get_data("deeplearning_command", "resnet50_job.py").decode("utf-8"))
    words = "ResNet-50, images of %dx%d, batches of %d, %d rounds; the parts of a step in seconds"
    print(words % (args.image_size, args.image_size, args.batch, args.rounds))
    print(COLUMNS % TITLES)
    for workers in args.workers:
        sys.stdout.flush()
        say("a job of %d worker%s begins" % (workers, "" if workers == 1 else "s"))
        status, problem, reports = job(args, program, workers, script, os.path.join(work, "reports"))
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status == USAGE:
            return USAGE
        rows.append(row(workers, args.batch, reports, problem, rows))
        result["gpus"] = rows[-1]["gpus"] or result["gpus"]
        print(line(rows[-1]))
        options.write_result(args.output, result)
    if not result["gpus"] and not all(entry["problem"] for entry in rows):
        print("nothing with GPUs was measured: this is on CPUs, and says nothing about GPUs")
    if args.output == "-":
        print(json.dumps(result, sort_keys=True))
    return FAILED if any(entry["problem"] for entry in rows) else OK


def job(args, program, workers, script, path):
    """(exit status, why it failed, what the workers reported)."""
    command = [program, "--executors", str(workers), "--name", "ResNet-50 on %d" % workers, "--result", path]
    for name in ["--stack", "--venv", "--root"] + [option[0] for option in OF_JOBS]:
        value = getattr(args, name[2:].replace("-", "_"))
        command += [name, value] if value is not None else []
    for setting in args.conf:
        command += ["--conf", setting]
    spec = {"workers": workers, "image_size": args.image_size, "batch": args.batch, "rounds": args.rounds}
    status, problem = follow(command + [script, path, json.dumps(spec)])
    if status != OK:
        return status, problem, []
    with io.open(path, encoding="utf-8") as handle:
        reports = json.load(handle)
    os.unlink(path)
    return status, None, reports


def follow(command):
    """(exit status, why it failed) of tfos-submit, whose own messages are shown; those of Spark are in YARN's logs."""
    with open(os.devnull) as no_input:
        process = subprocess.Popen(command, stdin=no_input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    messages, last = [], collections.deque(maxlen=1)
    try:
        for line in iter(process.stdout.readline, b""):
            text = line.decode("utf-8", "replace").rstrip()
            last.extend([text] if text else [])
            if text.startswith("tfos-submit: "):
                messages.append(text[len("tfos-submit: ") :])
                write(text + "\n", sys.stderr)
        status = process.wait()
    finally:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        if process.poll() is None:  # it ends the application and then itself, also if Ctrl-C reached this process alone
            timer = processes.Timer(GRACE, process.terminate)
            process.stdout.read()
            process.wait()
            timer.cancel()
        signal.signal(signal.SIGINT, handler)
    causes = [text for text in messages[:-1] if text.startswith("the first error: ")] + (messages[-1:] or list(last))
    return status, "%s (exit status %d)" % ("; ".join(text.rstrip(".:") for text in causes), status)


def row(workers, batch, reports, problem, earlier):
    """What a job of so many workers measured. A part takes as long as on the slowest worker of its round: the others wait for it."""
    item = {"workers": workers, "problem": problem, "images_per_second": None, "efficiency": None}
    item.update(hosts=sorted(set(one["host"] for one in reports)), gpus=[gpu for one in reports for gpu in one["gpus"]])
    if problem:
        return item
    sums = [one["sum_of_ones"] for one in reports]
    replicas = reports[0]["replicas"] if reports else 0
    if len(reports) != workers or replicas < workers or sums != [replicas] * workers:
        words = "%d workers must report, and add up a one from each of theirs, but %d reported, and the sums are %s"
        return dict(item, problem=words % (workers, len(reports), sums))
    rounds = dict((part, slowest(reports, part)) for part in PARTS + ("step",))
    medians = dict((part, quantile(values, 0.5)) for part, values in rounds.items())
    medians["remainder"] = medians["step"] - sum(medians[part] for part in PARTS)
    spread = dict((part, quantile(values, 0.75) - quantile(values, 0.25)) for part, values in rounds.items())
    speed = replicas * batch / medians["step"]
    one = [job_row["images_per_second"] for job_row in earlier if job_row["workers"] == 1]
    alone = speed if workers == 1 else one[0] if one else None
    return dict(
        item,
        images_per_second=speed,
        efficiency=speed / (workers * alone) if alone else None,
        replicas=replicas,
        gradient_bytes=reports[0]["gradient_bytes"],
        seconds=medians,
        spread=spread,
        rounds=rounds,
    )


def slowest(reports, part):
    return [max(values) for values in zip(*[report["seconds"][part] for report in reports])]


def quantile(values, share):
    """The value below which this share of them is, between two of them in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def line(entry):
    if entry["problem"]:
        return "%7d %5s  %s" % (entry["workers"], "-", entry["problem"])
    efficiency = "-" if entry["efficiency"] is None else "%.2f" % entry["efficiency"]
    times = tuple("%.3f" % entry["seconds"][part] for part in PARTS + ("remainder", "step"))
    spread = "%.0f %%" % (100 * entry["spread"]["step"] / entry["seconds"]["step"])
    return COLUMNS % (
        (entry["workers"], len(entry["hosts"]), "%.1f" % entry["images_per_second"], efficiency) + times + (spread,)
    )
