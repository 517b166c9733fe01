"""A slow link for one ssh connection, as its ProxyCommand: link_relay.py HOST PORT ROUND_TRIP_S BITS_PER_S RECORD.

Both directions are held back for half of the round trip and let through at the rate. At the end RECORD gets a JSON line: the host, bytes to it
(`up`) and from it (`down`), and `rounds`, how often it was sent something after it had answered.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

CHUNK = 65536


class Link:
    """Reads one side and writes the other, later; both directions count."""

    def __init__(self, delay: float, rate: float) -> None:
        self.delay, self.rate = delay, rate
        self.lock = threading.Lock()
        self.counts = {"up": 0, "down": 0, "rounds": 0}
        self.last = "down"

    def carry(self, way: str, read: Callable[[], bytes], write: Callable[[bytes], None]) -> None:
        """Until the reader ends; what is on its way arrives."""
        on_its_way: queue.Queue[tuple[float, bytes]] = queue.Queue()
        arrives = threading.Thread(target=self.deliver, args=(on_its_way, write), daemon=True)
        arrives.start()
        data = b"-"
        while data:
            try:
                data = read()
            except OSError:
                data = b""
            with self.lock:
                self.counts[way] += len(data)
                self.counts["rounds"] += bool(data) and (way, self.last) == ("up", "down")
                self.last = way if data else self.last
            on_its_way.put((time.monotonic(), data))
        arrives.join()

    def deliver(self, on_its_way: queue.Queue[tuple[float, bytes]], write: Callable[[bytes], None]) -> None:
        free = 0.0  # when the link has sent what came before
        while True:
            arrival, data = on_its_way.get()
            free = max(free, arrival) + 8 * len(data) / self.rate
            time.sleep(max(0.0, free + self.delay - time.monotonic()))
            with contextlib.suppress(OSError):
                write(data)
            if not data:
                return


def main(host: str, port: str, round_trip: str, rate: str, record: str) -> None:
    link = Link(float(round_trip) / 2, float(rate))
    far = socket.create_connection((host, int(port)))
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def to_host(data: bytes) -> None:
        far.sendall(data) if data else far.shutdown(socket.SHUT_WR)

    def to_ssh(data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def end(*_: int | FrameType | None) -> None:
        with open(record, "a", encoding="utf-8") as file:
            file.write(json.dumps({"host": host, **link.counts}) + "\n")
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGHUP):  # ssh's way to end it
        signal.signal(number, end)
    up = threading.Thread(target=link.carry, args=("up", lambda: os.read(0, CHUNK), to_host), daemon=True)
    down = threading.Thread(target=link.carry, args=("down", lambda: far.recv(CHUNK), to_ssh), daemon=True)
    up.start()
    down.start()
    down.join()
    end()


if __name__ == "__main__":
    main(*sys.argv[1:])
