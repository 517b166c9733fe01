"""What ends a build of TensorFlow in the middle, with real bazel and a real kernel: no memory, SIGKILL of the build, SIGKILL of the controller.

The sources are demo/tensorflow's release, which waits or takes memory if a file of the host says so. Each test builds a wheel of its own (another flag),
of which nothing was compiled or published before. A full disk is in molecule/tensorflow_build.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from building_host import ROOT, Site, said_once

from hadoop_dl_dev.demo.build_site import HELD
from hadoop_dl_dev.demo.shell import run
from hadoop_dl_dev.demo.tensorflow_source import HOLD, HUNGRY, HUNGRY_FILE

NODE = "faults-el7"
PLAYBOOK = "playbooks/build_tensorflow.yml"
USER = "deeplearning-build"
PLENTY = "16g"
# What all of the node and a bazel need, and not a compiler that takes gigabytes.
LITTLE = "1500m"


class Faulty(Site):
    """A node on which things go wrong."""

    begun: list[subprocess.Popen[str]]

    def flag(self, name: str) -> None:
        """Request a wheel that nobody has built."""
        self.request(HELD, tensorflow_build_flags=[f"--copt=-DHELD_AS={name}"])

    def start_build(self) -> subprocess.Popen[str]:
        process = self.begin(PLAYBOOK)
        self.begun.append(process)
        return process

    def kill_controller(self, process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def hold(self) -> None:
        self.shell(f"touch {HOLD}")

    def let_go(self) -> None:
        self.shell(f"rm -f {HOLD}")

    def memory(self, limit: str) -> None:
        run("docker", "update", "--memory", limit, "--memory-swap", limit, self.node)

    def processes(self, word: str = "") -> list[int]:
        """The build user's, whose command line has this word."""
        lines = self.shell(f"ps -u {USER} -o pid= -o args=", check=False).splitlines()
        return [int(line.split()[0]) for line in lines if word in line.split(None, 1)[1]]

    def waits(self) -> bool:
        """Whether everything before the step that waits is compiled."""
        return bool(self.processes(HOLD))

    def started(self) -> dict[str, Any]:
        """The build that was started last: its key, and the process that drives it."""
        return json.loads(self.shell(f"cat {ROOT}/running.json"))

    def key(self) -> str:
        return str(self.started()["key"])

    def builder(self) -> int:
        return int(self.started()["pid"])

    def log(self) -> str:
        return self.shell(f"cat {ROOT}/builds/{self.key()}/build.log")

    def bazels(self) -> int:
        """How often bazel was started for it."""
        return self.log().count("bazel --batch ")

    def published(self) -> list[str]:
        return self.shell(f"ls {ROOT}/published").split()

    def succeeds(self, *arguments: str) -> str:
        code, output = self.play(PLAYBOOK, *arguments)
        assert code == 0, output[-6000:]
        return output

    def is_published_once(self) -> None:
        """One wheel of the last build: on the build host, on the mirror, and in the inventory."""
        record = self.record(HELD)
        assert self.published().count(record["key"]) == 1
        assert not [name for name in self.published() if name.endswith(".new")]
        words = self.shell(f"sha256sum /srv/deeplearning-mirror/wheels/tensorflow-*-0{record['key'][:12]}-*").split()
        assert words == [record["wheel"]["sha256"], f"/srv/deeplearning-mirror/wheels/{record['wheel']['name']}"]
        assert self.processes() == []

    def restore(self) -> None:
        """No run, no build and nothing in its way."""
        for process in self.begun:
            if process.poll() is None:
                self.kill_controller(process)
        self.begun = []
        self.memory(PLENTY)
        self.shell(f"rm -f {HOLD} {HUNGRY_FILE}")
        if self.processes():  # a build that a test has left
            self.shell(f"kill -KILL {self.builder()}; pkill -KILL -u {USER}", check=False)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    site = Faulty(NODE, tmp_path_factory.mktemp("site"))
    site.begun = []
    site.start()
    yield site
    site.remove()


@pytest.fixture
def site(host: Faulty) -> Iterator[Faulty]:
    yield host
    host.restore()


@pytest.mark.parametrize("victim", ["compiler", "bazel"])
def test_where_the_kernel_ends_the_build_for_memory_the_jobs_are_named(site, victim):
    """The kernel ends the process with the most memory, or bazel if its oom_score_adj says so. With fewer jobs the same command resumes."""
    site.flag(f"NO_MEMORY_{victim}")
    site.shell(f"cat > {HUNGRY_FILE} <<'END'\n{HUNGRY}\nEND")
    before = kills(site)
    site.memory(LITTLE)
    process = site.start_build()
    if victim == "bazel":
        site.until("bazel builds", lambda: bool(site.processes(": build ")))
        site.shell(f"echo 1000 > /proc/{site.processes(': build ')[0]}/oom_score_adj")
    code, output = site.end(process)
    assert code != 0
    assert (
        "The build ran out of memory: bazel or a compiler was killed. Lower tensorflow_build_jobs (now "
        in said_once(output)
    )
    assert kills(site) > before
    assert site.processes() == []
    assert not (site.directory / "stacks/built").exists() or f"NO_MEMORY_{victim}" not in json.dumps(site.record(HELD))
    site.shell(f"rm {HUNGRY_FILE}")
    site.succeeds("-e", "tensorflow_build_jobs=1")
    assert "--jobs=1 " in site.log()
    site.is_published_once()


def kills(site: Faulty) -> int:
    """How often the kernel has ended a process of the node for memory."""
    text = site.shell(
        "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2> /dev/null", check=False
    )
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))


def held_build(site: Faulty, flag: str) -> subprocess.Popen[str]:
    """A run whose bazel waits in the middle; the flag makes its build another one than those of other tests."""
    site.flag(flag)
    site.hold()
    process = site.start_build()
    site.until("bazel waits", lambda: site.waits() or process.poll() is not None)
    assert process.poll() is None, site.end(process)[1][-6000:]
    return process


def test_a_build_that_is_killed_is_resumed_by_the_same_command(site):
    process = held_build(site, "KILLED")
    object_times = objects(site)
    site.shell(f"kill -KILL {site.builder()}")
    code, output = site.end(process)
    assert code != 0
    assert "It was stopped in the step build, by a reboot or a kill. Run the same command again" in said_once(output)
    site.let_go()
    site.succeeds()
    assert site.bazels() == 2
    assert objects(site) == object_times  # what is compiled stays
    site.is_published_once()


def objects(site: Faulty) -> dict[str, str]:
    """What is compiled, and when."""
    lines = site.shell(
        f"find {ROOT}/bazel -path '*/sandbox/*' -prune -o -path '*/_objs/*' -name '*.o' -printf '%p %T@\\n'"
    ).splitlines()
    object_times = dict(line.split() for line in lines)
    assert object_times
    return object_times


def test_a_build_goes_on_without_its_controller_and_the_same_command_follows_it(site):
    process = held_build(site, "FOLLOWED")
    builder = site.builder()
    site.kill_controller(process)
    second = site.start_build()
    site.until(
        "the second run has the host", lambda: f'"pid": "{second.pid}"' in site.shell("cat /opt/deeplearning/.run.json")
    )
    assert site.waits()
    site.let_go()
    code, output = site.end(second)
    assert code == 0, output[-6000:]
    assert "is taken over: process" in said_once(output)
    assert (site.builder(), site.bazels()) == (builder, 1)
    site.is_published_once()


def test_a_wheel_that_was_built_after_its_controller_is_taken_by_the_same_command(site):
    process = held_build(site, "TAKEN")
    builder = site.builder()
    site.kill_controller(process)
    site.let_go()
    site.until("the wheel is published", lambda: site.key() in site.published())
    site.succeeds()
    assert (site.builder(), site.bazels()) == (builder, 1)
    site.is_published_once()
