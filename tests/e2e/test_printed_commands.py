"""Every command that the demo prints at its end works, typed as printed. The list is the one that prints them."""

import os
import pty
import select
import subprocess
import time
import urllib.request

import pytest

from hadoop_dl_dev import check_steps
from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.cluster import Cluster

LIMIT = 120  # seconds
CLUSTER = check_steps.e2e_cluster(os.environ.get("E2E_STACK", Cluster.stack))
STEPS = [list(step.command) for part in check_steps.e2e_steps(images.REPOSITORY, CLUSTER.stack) for step in part]
TYPED = [
    one for one in tour.suggestions(CLUSTER) if one.command.split() not in STEPS
]  # the others are steps themselves


def run_in_terminal(command: str, typed: tuple[str, ...]) -> tuple[int, str]:
    """Run a command that wants a terminal, and type the lines into it: its exit status and all that was shown."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", command],  # as a newcomer types it
        cwd=images.REPOSITORY,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    # An exit for each shell that a line opened; the status of the last command becomes the status of all of them.
    shells = 1 + sum(line.startswith("su ") for line in typed)
    os.write(controller, "".join(f"{line}\n" for line in [*typed, *(["exit"] * shells)]).encode())
    output, end = b"", time.monotonic() + LIMIT
    try:
        while time.monotonic() < end:
            if select.select([controller], [], [], 1)[0]:
                try:
                    output += os.read(controller, 65536)
                except OSError:  # the terminal is closed
                    break
            elif process.poll() is not None:
                break
        return process.wait(timeout=max(1, end - time.monotonic())), output.decode("utf-8", "replace")
    finally:
        process.kill()
        os.close(controller)


@pytest.mark.parametrize("suggestion", TYPED, ids=lambda suggestion: suggestion.command)
def test_a_printed_command_works(cluster, suggestion):
    status, output = run_in_terminal(suggestion.command, suggestion.typed)
    assert status == 0, output[-4000:]
    if suggestion.typed:
        assert "exit status:" in output, "tfos-submit --help ends with its exit statuses"


@pytest.mark.parametrize("name", sorted(tour.web_pages(CLUSTER)))
def test_a_printed_page_answers(cluster, name):
    with urllib.request.urlopen(tour.web_pages(cluster)[name], timeout=30) as answer:  # noqa: S310 (http, of this project's own)
        assert answer.status == 200
