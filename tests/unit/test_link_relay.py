"""The slow link of scripts/bench link: what it delays, and what it counts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hadoop_dl_dev import link_bench


@pytest.fixture
def echo() -> Iterator[tuple[str, str]]:
    """A server that sends back what it gets, until its one client ends."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield "127.0.0.1", str(server.getsockname()[1])
    thread.join(10)
    server.close()


def through(echo: tuple[str, str], record: Path, sizes: list[int], round_trip: float, rate: float) -> float:
    """Seconds until each of these many bytes had come back, one after the other."""
    command = [sys.executable, str(link_bench.RELAY), *echo, str(round_trip), str(rate), str(record)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdin.write(b".")  # it runs
        relay.stdin.flush()
        relay.stdout.read(1)
        start = time.monotonic()
        for size in sizes:
            relay.stdin.write(b"." * size)
            relay.stdin.flush()
            assert len(relay.stdout.read(size)) == size
        seconds = time.monotonic() - start
        relay.stdin.close()
        assert relay.wait(10) == 0
    return seconds


def test_each_answer_comes_after_the_round_trip_and_is_counted(echo: tuple[str, str], tmp_path: Path) -> None:
    assert through(echo, tmp_path / "record", [5, 7, 9], round_trip=0.2, rate=1e9) >= 0.6
    (line,) = (tmp_path / "record").read_text().splitlines()
    assert json.loads(line) == {"host": echo[0], "up": 22, "down": 22, "rounds": 4}


def test_no_more_than_the_rate_passes_each_way(echo: tuple[str, str], tmp_path: Path) -> None:
    """The bytes come back while others are still on their way there."""
    assert through(echo, tmp_path / "record", [50_000], round_trip=0, rate=1e6) >= 0.4
