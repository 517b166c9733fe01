"""`make demo CDSW=1` as a newcomer runs it: a host of CDSW beside the Hadoop cluster, its driver, the switch, an engine image, a session that computes.

A cluster of its own for each kind of CDSW, removed at the end. What is real and what is a stand-in: hadoop_dl_dev.demo.workbench. The tests are steps of one
walk, in their order.
"""

import json
import re
from collections.abc import Iterator

import pytest
from cdsw_sessions import assert_a_session_computes, assert_a_session_gets_the_driver
from demo_commands import play, run

from hadoop_dl_dev.demo import cluster, tour, workbench

# Where a session finds the driver.
LIBRARIES = {"1.4.0": "/usr/local/nvidia/lib64", "1.10.5-parcel": "/usr/lib/x86_64-linux-gnu"}


class Demo(workbench.Host):
    """A demo with CDSW of one kind; `printed` is what the first run printed."""

    def __init__(self, kind: str) -> None:
        self.kind, self.library, self.printed = kind, LIBRARIES[kind], ""
        self.cluster = cluster.Cluster(name="cdswdemo", cdsw=kind)
        super().__init__(self.cluster.container(workbench.NAME))

    def command(self, name: str, *options: str, status: int = 0) -> str:
        return run("scripts/demo", name, "--name", self.cluster.name, *options, status=status)

    def run(self) -> str:
        return self.command("run", "--cdsw", self.kind)

    def play(self, *arguments: str, status: int = 0) -> str:
        """What it printed, on one line."""
        return " ".join(play(self.cluster, *arguments, status=status).split())

    def images_and_restarts(self) -> str:
        restarts = "grep -c restart /srv/cdsw/calls || true"  # that of a parcel is Cloudera Manager's
        return self.on_host(f"docker images --quiet --no-trunc --all | sort; {restarts}")

    def active(self, host: str) -> str:
        return run("docker", "exec", self.cluster.container(host), "readlink", "/opt/deeplearning/current")


@pytest.fixture(scope="module", params=LIBRARIES)
def demo(request: pytest.FixtureRequest) -> Iterator[Demo]:
    demo = Demo(request.param)
    try:
        demo.printed = demo.run()
        yield demo
    finally:
        demo.command("down")


def test_the_end_says_what_was_done_and_how_to_look_at_it(demo):
    end = demo.printed[demo.printed.index("\nWhat is where") :]
    assert f"\nThe session of CDSW {demo.kind} on {workbench.NAME}\n  image {demo.active_image()}\n" in end
    assert "on the CPU: (8536, '1.15.0', array([[6.]], dtype=float32))\n" in end
    assert f"because only a GPU can answer them: {', '.join(workbench.OF_A_GPU)}\n" in end
    for suggestion in tour.suggestions(demo.cluster):
        assert f"\n  {suggestion.command} " in end
    assert ("LEFT TO DO" in demo.printed) is demo.kind.endswith("parcel")


def test_site_yml_serves_the_host_with_the_others(demo):
    assert f"Kernel Module  {workbench.DRIVER} " in demo.on_host("cat /proc/driver/nvidia/version")
    assert demo.active(workbench.NAME) == demo.active("data1") == demo.active("edge1")


def test_the_session_has_the_gpu_and_computes(demo):
    assert_a_session_computes(demo)
    assert_a_session_gets_the_driver(demo, demo.library, workbench.DRIVER)


def test_what_is_typed_in_a_shell_of_the_host_works(demo):
    """As it is printed; gpu-check ends with 1, because no GPU computes."""
    (commands,) = [step.typed for step in tour.suggestions(demo.cluster) if workbench.NAME in step.command]
    check, status = commands
    assert "PASS  versions_agree: " in demo.on_host(f"{check} || test $? = 1")
    assert "Cloudera Data Science Workbench is ready!" in demo.on_host(status)


def test_the_status_names_the_host(demo):
    output = demo.command("status")
    assert re.search(rf"^  {workbench.NAME} +\S+ +running +{workbench.STACK}-", output, re.MULTILINE), output


def test_the_same_command_again_changes_nothing(demo):
    before = demo.images_and_restarts()
    counts = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", demo.run(), re.MULTILINE)
    assert counts
    assert {count for _, count in counts} == {"0"}, counts
    assert demo.images_and_restarts() == before


def test_a_demo_without_the_host_names_it_and_the_way_out(demo):
    output = demo.command("up", status=1)
    assert f"but there are more: {demo.node} " in output
    assert f"scripts/demo down --name {demo.cluster.name}" in output


def test_a_restarted_host_has_driver_docker_and_cdsw_of_before(demo):
    image = demo.active_image()
    run("docker", "restart", demo.node)
    demo.run()
    assert demo.active_image() == image
    assert_a_session_gets_the_driver(demo, demo.library, workbench.DRIVER)


def test_down_leaves_nothing(demo):
    mounts = json.loads(run("docker", "inspect", demo.node))[0]["Mounts"]
    (volume,) = [mount["Name"] for mount in mounts if mount["Type"] == "volume"]
    demo.command("down")
    assert cluster.existing(demo.cluster.name) == []
    assert volume not in run("docker", "volume", "ls", "--quiet").split()
    assert demo.cluster.name not in run("docker", "network", "ls", "--format", "{{.Name}}").split()
    assert not demo.cluster.state.exists()
