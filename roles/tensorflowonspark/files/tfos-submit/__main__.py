"""The program that the launcher starts. Python 2.7 and 3, standard library only."""

import os
import sys

# Nothing is imported from the current directory, even if another user's Python starts this file.
PROGRAM = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [PROGRAM] + [place for place in sys.path[1:] if os.path.isabs(place)]

from tfos_submit.cli import main  # the path above comes first

if __name__ == "__main__":
    status = main(sys.argv[1:])
    try:
        sys.stderr.flush()
    except (IOError, OSError):  # nobody reads any more: Python's own flush at the end would change the status to 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.exit(status)
