"""Ask gpu-check inside the YARN containers of a job: one line for each executor and question, and an exit status.

    tfos-submit --executors 2 --files /opt/deeplearning/bin/gpu-check ask_executors.py [QUESTION ...]

A shell on a host and a container on the same host can see different GPUs: another user, other rights, other device
rules, another LD_LIBRARY_PATH. Questions: gpu-check --list; none means those about TensorFlow.
"""

from __future__ import print_function

import json
import os
import socket
import subprocess
import sys

QUESTIONS = ["tensorflow_lists_gpus", "tensorflow_computes_on_gpu", "tensorflow_computes_on_cpu"]
GPU_CHECK = "gpu-check"  # where --files puts it: the working directory of the container


def ask(questions):
    """Run in an executor: where this is, and gpu-check's answers as a list of mappings (its own --json)."""
    if not os.path.exists(GPU_CHECK):
        raise IOError(
            "gpu-check must be sent with the job, but is not in %s. Submit with --files /opt/deeplearning/bin/gpu-check"
            % os.getcwd()
        )
    process = subprocess.Popen(
        [sys.executable, GPU_CHECK, "--json"] + questions, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = (part.decode("utf-8", "replace") for part in process.communicate())
    if process.returncode not in (0, 1):
        raise ValueError("gpu-check ended with status %d: %s" % (process.returncode, errors.strip()))
    return {
        "host": socket.gethostname(),
        "container": os.environ.get("CONTAINER_ID", "no YARN container"),
        "answers": json.loads(output),
    }


def report(reports):
    """The lines to print, hosts in order."""
    return [
        "%s  %s  %s: %s" % (answer["outcome"], place["host"], answer["name"], answer["message"])
        for place in sorted(reports, key=lambda place: (place["host"], place["container"]))
        for answer in place["answers"]
    ]


def main(arguments):
    """Exit status 0: every executor is well; 1: something failed."""
    from pyspark import SparkContext  # the executors run ask() without it

    context = SparkContext()
    executors = int(context.getConf().get("spark.executor.instances"))
    questions = arguments or QUESTIONS
    # A barrier: all parts at once, so that each executor gets one of them.
    parts = context.parallelize(range(executors), executors).barrier()
    reports = parts.mapPartitions(lambda numbers: [ask(questions) for number in numbers]).collect()
    print("\n".join(report(reports)))
    print("RESULT " + json.dumps(reports, sort_keys=True))
    context.stop()
    return 1 if any(answer["outcome"] == "FAIL" for place in reports for answer in place["answers"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
