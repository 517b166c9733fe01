"""Name the script that trains in this stack, or say why the stack cannot train in that way.

tfos-submit --local choose.py spark
"""

from __future__ import absolute_import, division, print_function

import argparse
import re


def installed():
    """The distributions of this environment, by name."""
    import pkg_resources  # TensorFlowOnSpark needs it, too

    return dict((re.sub("[-_.]+", "-", item.project_name).lower(), item.version) for item in pkg_resources.working_set)


def script(mode, distributions):
    """The training script for this mode; ValueError says what the stack lacks."""
    versions = [
        distributions[name] for name in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu") if name in distributions
    ]
    if not versions:
        raise ValueError("TensorFlow is required in this environment but is not installed.")
    major, minor = [int(number) for number in versions[0].split(".")[:2]]
    if mode == "kafka" and "kafka-python" not in distributions:
        raise ValueError("This stack cannot read Kafka. Use another mode (spark), or a stack with kafka: true.")
    if mode == "tensorflow" and (major, minor) >= (2, 6) and "tensorflow-io" not in distributions:
        raise ValueError(
            "TensorFlow %s reads HDFS only with tensorflow-io, which this stack does not have. "
            "Use mode spark, or a stack with hdfs: true." % versions[0]
        )
    return "kafka_train.py" if mode == "kafka" else "train_tf%d.py" % major


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["spark", "tensorflow", "kafka"], help="how the training data is read")
    mode = parser.parse_args().mode
    try:
        print(script(mode, installed()))
    except ValueError as error:
        raise SystemExit(str(error))  # Python 2.7 has no "from"


if __name__ == "__main__":
    main()
