"""deeplearning grid: a script with many sets of parameters, on the cluster. tfos-submit does it, and has the options of a job."""

import os

from deeplearning_command import options
from deeplearning_command.options import OK, USAGE

OPTIONS = (
    ("--params", "FILE", "JSON: the values of each option, as in the example"),
    ("--output", "DIR", "where all hosts can write: hdfs://..."),
    (
        "--random",
        "N",
        'N of the combinations; allows ranges: {"from": 0.0001, "to": 0.1, "scale": "log"}, or without scale',
    ),
    ("--metric", "NAME", "by what the table is sorted, the highest first (accuracy)"),
    (
        "--executors",
        "N",
        "trials at once (2); this and all others are those of tfos-submit, such as --gpus, --py-files, --venv",
    ),
)


def main(arguments):
    parser = options.parser(
        "grid",
        "--params FILE --output DIR [OPTION ...] SCRIPT [ARGUMENT ...]",
        "Run a script once for each combination of parameters, on executors of one job in YARN, and compare the results.\n"
        "Each trial gets its parameters and --output, a directory of its own in DIR. It is done if it ends with status 0 and\n"
        'has printed numbers: RESULT accuracy 0.9, or RESULT {"accuracy": 0.9}; the last such line counts. A trial that fails\n'
        "ends no other. The same command again runs what is missing or failed. With Spark 3, executors that have nothing\n"
        "more to do go back to YARN. The exit status is that of tfos-submit, and 1 if a trial failed.",
        [
            "deeplearning grid --params grid.json --output hdfs:///user/anna/grid --executors 4 --gpus 1 train.py",
            'with {"learning-rate": [0.1, 0.01], "epochs": [2, 4]} in grid.json: four executors with a GPU each run',
            "  train.py --learning-rate=0.1 --epochs=2 --output=hdfs://.../user/anna/grid/learning-rate=0.1,epochs=2",
            "  and the other three",
        ],
    )
    for name, value, text in OPTIONS:
        parser.add_argument(name, metavar=value, help=text)
    parser.add_argument("--lowest", action="store_true", help="the lowest first, as for a loss")
    if not arguments or "-h" in arguments or "--help" in arguments:
        parser.print_help()
        return OK if arguments else USAGE
    program = options.tfos_submit()
    return os.execv(program, [program, "--grid"] + arguments)  # noqa: S606 (no shell is wanted)
