"""The program that the launcher starts. Python 2.7 and 3, standard library only."""

import os
import sys

# Nothing is imported from the current directory, even if another user's Python starts this file.
PROGRAM = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [PROGRAM] + [place for place in sys.path[1:] if os.path.isabs(place)]

from gpu_check.cli import main  # the path above comes first

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
