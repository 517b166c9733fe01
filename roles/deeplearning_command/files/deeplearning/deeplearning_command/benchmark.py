"""deeplearning benchmark: how much faster the GPU of this host trains than its CPU."""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from ansible.module_utils.hadoop_dl_host import processes
from ansible.module_utils.hadoop_dl_host.user_environment import HIDDEN, NotReady, program_variables

from deeplearning_command import networks, options, programs, resnet50
from deeplearning_command.options import FAILED, INTERRUPTED, OK, say, write_result

SECONDS = 20
BAR = 2.0  # times faster for each #
START = 600  # seconds in which TensorFlow starts and trains its first batches, on the slowest disk and CPU
COLUMNS = "%-14s %-15s %-24s %-24s %7s  %s"
CALL = "import sys; sys.path.insert(0, sys.argv[1]); from deeplearning_command import networks; networks.main(%s)"


def main(arguments):
    if resnet50.OPTION in arguments:
        return resnet50.main(arguments)
    parser = options.parser(
        "benchmark",
        "[--stack NAME | --venv DIR] [--networks NAME,NAME] [--seconds N] [--output FILE]",
        "Train small networks on made data, on the CPU and then on the first GPU, and show samples per second. It needs an idle\n"
        "host: it takes all cores, and the memory of every GPU. Networks: %s.\n"
        "Whether more hosts train faster: deeplearning benchmark %s --help"
        % (", ".join(networks.NAMES), resnet50.OPTION),
        ["deeplearning benchmark --networks lstm,resnet110", "deeplearning benchmark --output benchmark.json"],
    )
    options.add_environment(parser)
    parser.add_argument("--networks", type=names, default=networks.NAMES, help="some of them, separated by commas")
    parser.add_argument("--seconds", type=positive, default=SECONDS, help="of each measurement (%d)" % SECONDS)
    parser.add_argument("--output", metavar="FILE", help="the same as JSON; - is standard output, at the end")
    args = parser.parse_args(arguments)
    environment, python = programs.place(args)
    work = tempfile.mkdtemp(prefix="deeplearning-benchmark.")
    try:
        return compare(args, Trainer(environment, python, work, args.seconds + START))
    except KeyboardInterrupt:
        say("interrupted; what is above was measured")
        return INTERRUPTED
    finally:
        shutil.rmtree(work)


def names(text):
    requested_names = [name for name in text.split(",") if name]
    wrong = [name for name in requested_names if name not in networks.NAMES]
    if wrong or not requested_names:
        raise argparse.ArgumentTypeError(
            "some of %s are required, but this is %r" % (", ".join(networks.NAMES), ", ".join(wrong) or text)
        )
    return requested_names


def positive(text):
    try:
        if 0 < float(text) <= 3600:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError("seconds up to 3600 are required, but this is %r" % text)


class Trainer(object):
    """Trains a network in a process of its own, which leaves no memory taken, and is ended at its limit in seconds."""

    def __init__(self, environment, python, work, limit):
        self.environment, self.python, self.work, self.limit = environment, python, work, limit
        self.variables = program_variables(os.environ, environment, {})
        self.variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        self.program = os.path.abspath(sys.argv[0])

    def ask(self, arguments, hidden=False):
        """(answer, None), or (None, why there is none)."""
        variables = dict(self.variables, **(dict(HIDDEN) if hidden else {}))
        answer, words = os.path.join(self.work, "answer"), os.path.join(self.work, "words")
        command = [self.python, "-c", CALL % ", ".join([repr(answer)] + [repr(arg) for arg in arguments]), self.program]
        with open(words, "wb") as log:
            status = self.wait(subprocess.Popen(command, env=variables, cwd=self.work, stdout=log, stderr=log))
        if status is None:
            return None, "it did not end within %g s" % self.limit
        if status == 0:
            with open(answer) as source:
                return json.load(source), None
        with open(words, "rb") as log:
            lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return None, "%s (exit status %d)" % (lines[-1].strip() if lines else "it said nothing", status)

    def wait(self, training):
        """Its exit status; None if the limit ended it. In this process group, so that Ctrl-C reaches it."""
        end = processes.clock() + self.limit
        timer = processes.Timer(self.limit, training.kill)
        try:
            status = training.wait()
        finally:
            timer.cancel()
            if training.poll() is None:
                training.kill()
                training.wait()
        return None if processes.clock() >= end else status


def compare(args, trainer):
    gpus, problem = trainer.ask(["gpus"])
    if problem:
        raise NotReady("TensorFlow must import in %s, but does not: %s" % (trainer.environment, problem))
    report = {
        "host": socket.getfqdn(),
        "environment": os.path.basename(trainer.environment),
        "gpus": gpus,
        "seconds": args.seconds,
        "networks": [],
    }
    write_result(args.output, report)
    print("%s on %s: %s" % (report["environment"], report["host"], gpus[0] if gpus else "TensorFlow sees no GPU"))
    print(COLUMNS % ("network", "data", "CPU", "GPU", "factor", "samples/s (batch, spread); # is %dx" % BAR))
    for name in args.networks:
        entry = row(name, args.seconds, trainer, gpus)
        report["networks"].append(entry)
        print(line(entry))
        sys.stdout.flush()
        write_result(args.output, report)  # after each: an interrupted run keeps what it has
    if args.output == "-":
        print(json.dumps(report, sort_keys=True))
    if not gpus:
        say("nothing was compared: there is no GPU that TensorFlow sees here (gpu-check says why)")
    return FAILED if any(entry["problem"] for entry in report["networks"]) else OK


def row(name, seconds, trainer, gpus):
    """What a network reaches on each, in samples per second, and with which batch."""
    entry = {"network": name, "cpu": None, "gpu": None, "factor": None, "problem": None, "measured": {}}
    for device in ("cpu", "gpu") if gpus else ("cpu",):
        answer, problem = trainer.ask([name, seconds], hidden=device == "cpu")
        if problem:
            return dict(entry, problem="%s: %s" % (device.upper(), problem))
        entry[device] = answer["samples_per_second"]
        entry["measured"][device] = {"batch": answer["batch"], "spread": answer["spread"]}
    return dict(entry, factor=entry["gpu"] / entry["cpu"]) if gpus else entry


def rate(samples, measured):
    return "%.1f (%d, %d%%)" % (samples, measured["batch"], round(100 * measured["spread"])) if samples else "-"


def line(entry):
    numbers = [rate(entry[device], entry["measured"].get(device)) for device in ("cpu", "gpu")]
    factor = "%.1fx" % entry["factor"] if entry["factor"] else "-"
    data_kind = networks.NETWORKS[networks.NAMES.index(entry["network"])][1]
    last = entry["problem"] or "#" * int(round((entry["factor"] or 0) / BAR))
    return (COLUMNS % (entry["network"], data_kind, numbers[0], numbers[1], factor, last)).rstrip()
