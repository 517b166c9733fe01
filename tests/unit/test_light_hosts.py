"""scripts/bench noop and first: what is left of hosts that are processes, and what is counted."""

import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from other_processes import having
from waiting import until

from hadoop_dl_dev import light_hosts

APART = "import sys; from hadoop_dl_dev import light_hosts; light_hosts.run_apart(['sh', '-c', sys.argv[1]])"
COUNTED = """
import subprocess, sys
from hadoop_dl_dev import measurements
code = "import time; block = b'x' * (100 << 20)\\nwhile time.process_time() < 1.5: pass"
cost = measurements.of_programs(lambda: subprocess.run([sys.executable, "-c", code], check=True))
print(cost.cpu, cost.memory)
"""


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and namespaces require root")


@as_root
def test_processes_and_mounts_end_with_a_bench_that_is_killed(tmp_path):
    mark = f"bench-{uuid.uuid4().hex}"
    script = f"mount -t tmpfs tmpfs {tmp_path}; for i in 1 2 3; do (exec setsid perl -e sleep {mark} &); done; exec perl -e sleep {mark}"
    parent = subprocess.Popen([sys.executable, "-c", APART, script])
    until(lambda: len(having(mark)) == 6, 120)  # four, and the two that started them
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    parent.kill()
    parent.wait()
    until(lambda: not having(mark), 120)


def test_the_next_start_deletes_what_a_killed_one_left(tmp_path, monkeypatch):
    removed = []
    monkeypatch.setattr(light_hosts, "BASE", tmp_path / "bench")
    monkeypatch.setattr(light_hosts.nodes, "remove", removed.append)
    (tmp_path / "bench" / "hosts" / "0" / "upper").mkdir(parents=True)
    light_hosts.clean()
    assert (list(tmp_path.iterdir()), removed) == ([], [light_hosts.CONTAINER])


@as_root
def test_the_cost_of_a_program_is_its_processor_time_and_its_memory():
    command = [sys.executable, "-c", APART, shlex.join(["exec", sys.executable, "-c", COUNTED])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.split())
    assert 1.4 < seconds < 4
    assert 100 <= megabytes < 200
