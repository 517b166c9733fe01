"""Check this host's GPUs, driver, CUDA and TensorFlow: one line for each question, PASS, FAIL or SKIP.

    gpu-check [--json] [--list] [NAME ...]
    gpu-check --accept [--json]      measure the copies of idle GPUs, and compare them with card and links
    gpu-check --yarn-health          for its timer: write whether a GPU is so sick that the host must leave YARN

Reads, and writes nothing but that answer. Exit status: 0 nothing failed, 1 something failed, 2 misuse, 3 no Python to run it. For operators and cron.
In a container (an engine of CDSW, docker, Kubernetes) it answers for the container's user; what only the host knows is a SKIP there.
Questions that compute are a SKIP where other processes compute on the GPUs, unless they are asked for by name.
What is expected is in /opt/deeplearning/etc/gpu-check.json (and gpu-check-cuda.json, gpu-check-cudnn.json,
gpu-check-nccl.json), written by the roles. Every FAIL names what is required, what was found, and what to do next.
"""

import json
import os
import sys

from ansible.module_utils.hadoop_dl_host.text_columns import write

from gpu_check import compute, dcgm, driver, health, packages, toolkit, yarn_health
from gpu_check.acceptance import STEPS, Run
from gpu_check.acceptance import report as accepted
from gpu_check.host import Host
from gpu_check.questions import QUESTIONS, Fail, results

OPTIONS = ("--accept", "--json", "--list", "--yarn-health")
ORDER = [module.__name__ for module in (driver, toolkit, packages, compute, health, dcgm)]  # those that have questions
QUESTIONS.sort(key=lambda question: ORDER.index(question[1].__module__))


def misuse(arguments, names):
    """Why these arguments cannot be obeyed, or None."""
    question_names = [name for name, _ in QUESTIONS]
    wrong = [item for item in arguments if item.startswith("-") and item not in OPTIONS]
    wrong += [name for name in names if name not in question_names]
    if wrong:
        return "gpu-check does not know %s. Questions: %s. Options: %s.\n" % (
            ", ".join(wrong),
            ", ".join(question_names),
            ", ".join(OPTIONS),
        )
    if "--yarn-health" in arguments and len(arguments) > 1:
        return "--yarn-health takes nothing else, but got %s.\n" % " ".join(arguments)
    if names and "--accept" in arguments:
        return "--accept measures everything and takes no question, but got %s.\n" % ", ".join(names)
    return None


def main(arguments):
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(__doc__)
        return 0
    names = [item for item in arguments if not item.startswith("-")]
    problem = misuse(arguments, names)
    if problem:
        sys.stderr.write(problem)
        return 2
    if "--list" in arguments:
        sys.stdout.write("".join("%-28s %s\n" % (name, function.__doc__) for name, function in QUESTIONS))
        return 0
    os.chdir("/")  # no library is loaded from where the caller happens to be
    try:
        host = Host(named=names)
    except Fail as problem:
        write("%s\n" % problem, sys.stderr)
        return 1
    if "--yarn-health" in arguments:
        return yarn_health.main(host)
    run = Run(host) if "--accept" in arguments else None
    answers = []
    for answer in results(run, (), STEPS) if run else results(host, names):
        answers.append(answer)
        if "--json" not in arguments:
            write("%(outcome)s  %(name)s: %(message)s\n" % answer)
    if "--json" in arguments:
        sys.stdout.write(json.dumps(accepted(run, answers) if run else answers, indent=1) + "\n")
    return 1 if any(answer["outcome"] == "FAIL" for answer in answers) else 0
