# -*- coding: utf-8 -*-
"""Check this host's GPUs, driver, CUDA and TensorFlow: one line for each question, PASS, FAIL or SKIP.

    gpu-check [--json] [--junit FILE] [--list] [NAME ...]

Reads, never writes. Exit status: 0 nothing failed, 1 something failed, 2 misuse. For the operator and for cron.
In a container (an engine of CDSW, docker, Kubernetes) it answers for the container's user; what only the host knows is a SKIP there.
Questions that compute are a SKIP where other processes compute on the GPUs, unless they are asked for by name.
What is expected is in /opt/deeplearning/etc/gpu-check.json (and gpu-check-cuda.json, gpu-check-cudnn.json,
gpu-check-nccl.json), written by the roles. Every FAIL names what is required, what was found, and what to do next.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import sys
import traceback

from gpu_check import compute, driver, health, packages, toolkit
from gpu_check.host import Host
from gpu_check.questions import QUESTIONS, Fail, Skip

ORDER = [module.__name__ for module in (driver, toolkit, packages, compute, health)]  # those that have questions
QUESTIONS.sort(key=lambda one: ORDER.index(one[1].__module__))


def results(host, names):
    for name, function in QUESTIONS:
        if names and name not in names:
            continue
        try:
            outcome, message = "PASS", function(host)
        except Skip as reason:
            outcome, message = "SKIP", str(reason)
        except Fail as problem:
            outcome, message = "FAIL", str(problem)
        except Exception:  # one question that breaks must not hide the others
            said = traceback.format_exc().strip().splitlines()
            outcome, message = (
                "FAIL",
                "gpu-check itself failed: %s (%s). Report it with this line." % (said[-1], said[-3].strip()),
            )
        yield {"name": name, "question": function.__doc__, "outcome": outcome, "message": message}


def junit(found):
    from xml.sax.saxutils import escape, quoteattr

    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<testsuite name="gpu-check" tests="%d">' % len(found)]
    for one in found:
        inner = {
            "FAIL": "<failure>%s</failure>",
            "SKIP": "<skipped>%s</skipped>",
            "PASS": "<system-out>%s</system-out>",
        }[one["outcome"]]
        lines.append(
            '<testcase classname="gpu-check" name=%s>%s</testcase>'
            % (quoteattr(one["name"]), inner % escape(one["message"]))
        )
    return "\n".join(lines + ["</testsuite>", ""])


def main(arguments):
    report = None
    if "--junit" in arguments:
        at = arguments.index("--junit")
        report = os.path.abspath(arguments[at + 1]) if len(arguments) > at + 1 else None
        arguments = arguments[:at] + arguments[at + 2 :]
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(__doc__)
        return 0
    names = [item for item in arguments if not item.startswith("-")]
    known = [name for name, _ in QUESTIONS]
    wrong = [item for item in arguments if item.startswith("-") and item not in ("--json", "--list")]
    wrong += [name for name in names if name not in known]
    if wrong:
        sys.stderr.write(
            "gpu-check does not know %s. Questions: %s. Options: --json, --junit FILE, --list.\n"
            % (", ".join(wrong), ", ".join(known))
        )
        return 2
    if "--list" in arguments:
        sys.stdout.write("".join("%-28s %s\n" % (name, function.__doc__) for name, function in QUESTIONS))
        return 0
    os.chdir("/")  # no library is loaded from where the caller happens to be
    found = []
    for one in results(Host(named=names), names):
        found.append(one)
        if "--json" not in arguments:
            sys.stdout.write("%(outcome)s  %(name)s: %(message)s\n" % one)
            sys.stdout.flush()
    if "--json" in arguments:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if report:
        with open(report, "w") as handle:
            handle.write(junit(found))
    return 1 if any(one["outcome"] == "FAIL" for one in found) else 0
