"""Show the logs of a training in your browser: python run_tensorboard.py [DIRECTORY]; it runs until you stop it.

CDSW passes ports of a session on to the browser. Which one there is, and its address, depends on the release:

    CDSW_READONLY_PORT   https://read-only-ENGINE.DOMAIN   later releases: for what shows results
    CDSW_PUBLIC_PORT     http://ENGINE.DOMAIN              CDSW 1.2; deprecated later

Whoever may see the project may see the page.
"""

from __future__ import absolute_import, division, print_function

import os
import subprocess
import sys


def place(environment):
    """(port, host to listen on, address for the browser), or None outside of a session."""
    name = "%s.%s" % (environment.get("CDSW_ENGINE_ID", "ENGINE"), environment.get("CDSW_DOMAIN", "DOMAIN"))
    if environment.get("CDSW_READONLY_PORT"):
        return environment["CDSW_READONLY_PORT"], "127.0.0.1", "https://read-only-" + name
    if environment.get("CDSW_PUBLIC_PORT"):
        # The port is reached from outside of the container there.
        return environment["CDSW_PUBLIC_PORT"], "0.0.0.0", "http://" + name  # noqa: S104
    return None


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "logs"
    endpoint = place(os.environ)
    if endpoint is None:
        sys.stderr.write(
            "run_tensorboard.py: CDSW_READONLY_PORT or CDSW_PUBLIC_PORT must be set, but is not. Run it in a session of CDSW.\n"
        )
        return 1
    if not os.path.isdir(directory):
        sys.stderr.write(
            "run_tensorboard.py: %s must be a directory with logs, but there is none. Train first.\n" % directory
        )
        return 1
    try:
        __import__("tensorboard.main")
    except ImportError as error:
        sys.stderr.write("run_tensorboard.py: this stack has no TensorBoard (%s). Use a stack that has it.\n" % error)
        return 1
    port, host, address = endpoint
    print("TensorBoard: %s" % address)
    sys.stdout.flush()
    argv = [sys.executable, "-m", "tensorboard.main", "--logdir", directory, "--port", port, "--host", host]
    try:
        return subprocess.call(argv)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
