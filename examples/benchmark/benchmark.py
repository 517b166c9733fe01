"""How much faster the first GPU of a host, or of a CDSW session, trains than its CPU.

deeplearning run benchmark.py [--seconds N] [NETWORK ...]     in a session: python benchmark.py ...

It takes all cores and the memory of every GPU. The networks and what they measure: networks.py.
"""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import subprocess
import sys
import tempfile

import networks

COLUMNS = "%-14s %-15s %-24s %-24s %7s"


def main():
    parser = argparse.ArgumentParser(
        description="Samples per second of networks on made data, on the CPU and the first GPU."
    )
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement (%(default)s)")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="some of: %s" % ", ".join(networks.NAMES))
    args = parser.parse_args()
    unknown = [name for name in args.networks if name not in networks.NAMES]
    if unknown:
        parser.error("some of %s are required, but found %s" % (", ".join(networks.NAMES), ", ".join(unknown)))
    gpus = ask(["gpus"])
    print(gpus[0] if gpus else "TensorFlow sees no GPU, so nothing is compared")
    print("samples per second (batch, spread)")
    print(COLUMNS % ("network", "data", "CPU", "GPU", "factor"))
    for name in args.networks or networks.NAMES:
        answers = [ask([name, args.seconds], hidden=True)] + [ask([name, args.seconds]) for _ in gpus[:1]]
        cells = ["%(samples_per_second).1f (%(batch)d, %(percent)d%%)" % answer for answer in answers]
        factor = "%.1fx" % (answers[1]["samples_per_second"] / answers[0]["samples_per_second"]) if gpus else "-"
        data_kind = networks.NETWORKS[networks.NAMES.index(name)][1]
        print(COLUMNS % tuple([name, data_kind] + (cells if gpus else cells + ["-"]) + [factor]))
        sys.stdout.flush()


def ask(arguments, hidden=False):
    """The answer of networks.py in a process of its own, which leaves no memory of a GPU taken; without GPUs if they are hidden."""
    variables = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", **({"CUDA_VISIBLE_DEVICES": ""} if hidden else {}))
    number, path = tempfile.mkstemp()
    os.close(number)
    call = "import networks; networks.main(%s)" % ", ".join(repr(value) for value in [path] + arguments)
    try:
        status = subprocess.call(
            [sys.executable, "-c", call], env=variables, cwd=os.path.dirname(os.path.abspath(__file__))
        )
        if status:
            device = "the CPU" if hidden else "the GPU"
            sys.exit(
                "benchmark.py: %s did not run on %s (exit status %d). What TensorFlow said is above."
                % (arguments[0], device, status)
            )
        with open(path) as answer:
            return json.load(answer)
    finally:
        os.remove(path)


if __name__ == "__main__":
    main()
