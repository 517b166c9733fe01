"""Deep learning on this host, for the people who train: deeplearning --help."""

import sys

from ansible.module_utils.hadoop_dl_host.user_environment import NotReady

from deeplearning_command import grid, listing, notebook, programs, tensorboard, venv
from deeplearning_command.options import NOT_READY, OK, USAGE, Refused, say

COMMANDS = (
    ("list", listing.main),
    ("run", programs.run),
    ("python", programs.python),
    ("pip", programs.pip),
    ("venv", venv.main),
    ("notebook", notebook.main),
    ("kernel", notebook.kernel),
    ("tensorboard", tensorboard.main),
    ("grid", grid.main),
)
HELP = """\
usage: deeplearning COMMAND ...

TensorFlow and what belongs to it is installed on this host as an environment: a Python with packages
that were tested together. It never changes, and it has the same name on all hosts of the cluster.

commands (deeplearning COMMAND --help explains one, with an example):
  list         the environments of this host, and which one is the default
  run          run a Python script in an environment
  python       start an environment's Python
  pip          show what an environment has: pip list, pip show NAME
  venv         a directory of your own with more packages, on top of an environment
  notebook     Jupyter on this host, in your browser
  kernel       an environment as a kernel of another Jupyter, such as JupyterHub
  tensorboard  show a training's events in your browser
  grid         a script with many sets of parameters at once, on the cluster, and a table of the results

a first hour:
  deeplearning list
  deeplearning python -c 'import tensorflow as tf; print(tf.__version__)'
  deeplearning run train.py --epochs 5
  deeplearning venv ~/my && ~/my/bin/pip install pandas
  deeplearning run --venv ~/my train.py --epochs 5
  ~/my/bin/pip install notebook && deeplearning notebook --venv ~/my ~/notebooks
  deeplearning tensorboard ~/runs
  tfos-submit --executors 2 train.py      on the cluster (YARN), from an edge node: tfos-submit --help

All of them take --stack NAME for another environment than the default, as tfos-submit does.
exit status: the script's own; 2 for wrong usage; 3 if something is missing on this host.
"""


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return OK if arguments else USAGE
    command = dict(COMMANDS).get(arguments[0])
    if command is None:
        say(
            "%s is no command. The commands are %s; deeplearning --help explains them."
            % (arguments[0], ", ".join(name for name, _ in COMMANDS))
        )
        return USAGE
    try:
        return command(arguments[1:])
    except Refused as error:
        say(str(error))
        return USAGE
    except NotReady as error:
        say(str(error))
        return NOT_READY
