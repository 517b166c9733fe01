"""One host of CDSW from a driver to a session that computes, by the playbooks of docs/operate/cdsw.md: CDSW 1.4.0 and 1.10.5, from the RPM and as a parcel.

Docker is a real one inside the node. Stand-ins: CDSW (demo/cdsw), Cloudera's base image (demo/engine), NVIDIA's packages (demo/gpu, demo/containers), the
kernel that loads the driver (molecule/upgrade_driver). The tests are steps of one walk, in their order.
What roles do alone, with every refusal, is in molecule: cdsw, cdsw_engine, container_runtime.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_hosts import MIRROR, Hosts
from cdsw_sessions import assert_a_container_has_the_driver, assert_a_session_computes, assert_a_session_gets_the_driver

from hadoop_dl.cli import mirror
from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import engine_base, workbench

STACK = workbench.STACK
DRIVER, NEWER = workbench.DRIVER, "535.104.05"
NAME, ENGINE = workbench.NAME, workbench.ENGINE
CONF, DRIVERS = "/etc/cdsw/config/cdsw.conf", "/var/lib/nvidia-docker/volumes/nvidia_driver"
GPU, PATH = "cdsw.enable.gpu.config", "cdsw.nvidia.lib.path.config"
ALLOWED = ("-e", "cdsw_restart_allowed=true")
EXPECTED_FAILURES = [*workbench.COMPUTES, *workbench.DRIVES]


class Workbench(Hosts, workbench.Host):
    """One host of CDSW with a GPU, as far as files and packages show one."""

    group = "cdsw_hosts"
    options = workbench.OPTIONS
    skipped = ()

    def __init__(self, directory: Path) -> None:
        super().__init__("workbench", (NAME,), directory)
        self.node = self.container(NAME)
        self.mounts = tuple(workbench.mounts())
        self.variables = {
            **workbench.variables(),
            "deeplearning_request": STACK,
            "verify_parts": ["environment", "hadoop_client"],  # no NameNode runs
            "verify_expected_failures": EXPECTED_FAILURES,
        }

    def start(self) -> None:
        mirror.fetch_artifacts(stacks.load_stack(STACK).artifacts(), MIRROR)
        super().start()
        self.prepare("1.4.0")

    def run_playbook(self, *arguments: str) -> tuple[int, str]:
        """Its exit status, and what it printed, on one line."""
        code, output = self.finish(self.start_play(*arguments))
        return code, " ".join(output.split())

    def must(self, *arguments: str) -> str:
        code, output = self.run_playbook(*arguments)
        assert code == 0, output[-6000:]
        return output

    def changes(self, *arguments: str) -> int:
        return int(re.findall(rf"{NAME}\s+: ok=\d+\s+changed=(\d+)", self.must(*arguments))[0])

    def settings(self) -> list[str]:
        return self.on_host(f"grep ^NVIDIA {CONF}").split()


@pytest.fixture(scope="module")
def cdsw1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    host = Workbench(tmp_path_factory.mktemp("w"))
    with host.running():
        yield host


def test_the_driver_is_installed_and_runs(cdsw1):
    cdsw1.must("playbooks/gpu.yml")
    assert f"Kernel Module  {DRIVER} " in cdsw1.on_host("cat /proc/driver/nvidia/version")
    assert cdsw1.changes("playbooks/gpu.yml") == 0


def test_the_plan_counts_the_sessions_that_a_restart_ends(cdsw1):
    cdsw1.session(engine_base.IMAGE)
    output = cdsw1.must("playbooks/plan.yml")
    assert "restart of CDSW (1 session runs; a restart ends it), but cdsw_restart_allowed is false." in output
    output = cdsw1.must("playbooks/plan.yml", *ALLOWED)
    assert f"CDSW restarts on {NAME} (CDSW 1.4.0: 1 session runs; a restart ends it)." in output


def test_in_a_window_the_switches_are_set_once(cdsw1):
    cdsw1.must("playbooks/cdsw.yml", *ALLOWED)
    assert cdsw1.settings() == ['NVIDIA_GPU_ENABLE="true"', f'NVIDIA_LIBRARY_PATH="{DRIVERS}/{DRIVER}"']
    restarts = cdsw1.on_host("grep -c restart /srv/cdsw/calls")
    assert cdsw1.changes("playbooks/cdsw.yml", *ALLOWED) == 0
    assert cdsw1.on_host("grep -c restart /srv/cdsw/calls") == restarts
    components = re.findall(rf"\(item={NAME}: ([^)]*)\)", cdsw1.must("playbooks/plan.yml"))
    assert components == ["environment, deeplearning_command, hadoop_client, verify"], "a window leaves nothing to do"


def test_an_image_of_the_stack_is_built_once_and_told(cdsw1):
    output = cdsw1.must("playbooks/cdsw_engine.yml")
    image = cdsw1.active_image()
    assert image.startswith(f"deeplearning-engine:{STACK}-")
    assert f'Repository:Tag \\"{image}\\"' in output or f'Repository:Tag "{image}"' in output
    assert cdsw1.changes("playbooks/cdsw_engine.yml") == 0
    assert cdsw1.active_image() == image


def test_a_session_of_the_image_computes(cdsw1):
    cdsw1.session(cdsw1.active_image())
    assert_a_session_computes(cdsw1)


def test_the_session_has_the_gpu_by_nvidia_docker_1(cdsw1):
    assert_a_session_gets_the_driver(cdsw1, "/usr/local/nvidia/lib64", DRIVER)
    assert "Read-only file system" in cdsw1.inside("touch /usr/local/nvidia/lib64/x 2>&1", check=False)
    answer = cdsw1.gpu_check("tensorflow_lists_gpus")["tensorflow_lists_gpus"]
    assert answer[0] == "FAIL"
    assert answer[1].startswith("TensorFlow must list 1 GPUs but lists 0."), answer


def test_the_suite_passes_on_the_host(cdsw1):
    """site.yml verifies what it changed; verify.yml also compares every byte."""
    cdsw1.must("site.yml")
    assert cdsw1.changes("site.yml") == 0
    output = cdsw1.must("playbooks/verify.yml")
    passed, failed, expected = re.findall(
        r"verify: 1 hosts, (\d+) passed, (\d+) failed, (\d+) failed as expected", output
    )[-1]
    assert (int(passed) > 10, failed, int(expected)) == (True, "0", len(EXPECTED_FAILURES)), output[-3000:]


def test_another_driver_reaches_the_sessions(cdsw1):
    cdsw1.on_host(f"docker rm --force {ENGINE}")
    cdsw1.must("playbooks/upgrade_driver.yml", "-e", f"nvidia_driver_version={NEWER}", *ALLOWED)
    cdsw1.variables["nvidia_driver_version"] = NEWER
    cdsw1.write_inventory(NAME)
    assert cdsw1.settings()[1] == f'NVIDIA_LIBRARY_PATH="{DRIVERS}/{NEWER}"'
    cdsw1.session(cdsw1.active_image())
    assert_a_session_gets_the_driver(cdsw1, "/usr/local/nvidia/lib64", NEWER)
    assert cdsw1.changes("playbooks/cdsw.yml", *ALLOWED) == 0


def test_a_cdsw_that_was_upgraded_to_1_10_needs_the_driver_only(cdsw1):
    cdsw1.install("1.10.5")
    assert cdsw1.changes("playbooks/cdsw.yml", *ALLOWED) > 0
    assert cdsw1.on_host("rpm --query nvidia-docker", check=False).strip() == "package nvidia-docker is not installed"
    assert cdsw1.on_host(f"ls {DRIVERS}", check=False) == ""
    cdsw1.session(cdsw1.active_image())
    assert_a_session_gets_the_driver(cdsw1, "/usr/lib/x86_64-linux-gnu", NEWER)
    assert cdsw1.changes("playbooks/cdsw.yml", *ALLOWED) == 0


def test_it_leaves_before_cdsw_becomes_a_parcel(cdsw1):
    options = ("-e", "remove_confirmed=true", *ALLOWED)
    output = cdsw1.must("playbooks/remove.yml", "--tags", "cdsw,container_runtime", *options)
    assert "/opt/deeplearning/engines (engine images: playbooks/cdsw_engine.yml -e cdsw_engine_state=absent)" in output
    assert cdsw1.settings() == ["NVIDIA_GPU_ENABLE=false", 'NVIDIA_LIBRARY_PATH=""']
    cdsw1.on_host("rpm --erase cloudera-data-science-workbench && rm -rf /etc/cdsw")


def test_a_parcel_of_1_10_is_told_for_cloudera_manager(cdsw1):
    cdsw1.install("1.10.5-parcel")
    output = cdsw1.must("playbooks/cdsw.yml", *ALLOWED)
    assert f"LEFT TO DO for {NAME}: in Cloudera Manager, service CDSW, Configuration, set" in output
    assert "CDSW detects 0 of 1 GPUs here." in output


def test_a_parcel_of_1_10_is_complete_with_the_setting(cdsw1):
    cdsw1.enter_settings("1.10.5-parcel", NEWER)
    assert "LEFT TO DO" not in cdsw1.must("playbooks/cdsw.yml", *ALLOWED)
    assert cdsw1.changes("playbooks/cdsw.yml", *ALLOWED) == 0
    cdsw1.session(cdsw1.active_image())
    assert_a_session_gets_the_driver(cdsw1, "/usr/lib/x86_64-linux-gnu", NEWER)


def test_a_parcel_of_1_4_gets_the_path_that_is_printed(cdsw1):
    cdsw1.must("playbooks/remove.yml", "--tags", "cdsw,container_runtime", "-e", "remove_confirmed=true", *ALLOWED)
    cdsw1.install("1.4.0-parcel")
    output = cdsw1.must("playbooks/cdsw.yml", *ALLOWED)
    assert f'"{PATH}": "{DRIVERS}/{NEWER}"' in output.replace("\\", "")
    cdsw1.restart_parcel("true", f"{DRIVERS}/{NEWER}")
    cdsw1.session(cdsw1.active_image())
    assert_a_session_gets_the_driver(cdsw1, "/usr/local/nvidia/lib64", NEWER)


def test_a_docker_of_the_sites_own_has_the_gpu_by_the_toolkit(cdsw1):
    """The host leaves CDSW and keeps its Docker."""
    image = cdsw1.active_image()
    cdsw1.must("playbooks/remove.yml", "--tags", "cdsw,container_runtime", "-e", "remove_confirmed=true", *ALLOWED)
    cdsw1.on_host(f"docker rm --force {ENGINE} && rm -rf /opt/cloudera /var/lib/cdsw /usr/bin/cdsw")
    cdsw1.group = "data_nodes"
    cdsw1.variables.update(container_runtime="nvidia-container-toolkit", container_runtime_version="1.17.8-1")
    cdsw1.write_inventory(NAME)
    cdsw1.must("playbooks/cdsw.yml")
    options = f"--name {ENGINE} --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=all --user 8536:8536 --network none"
    cdsw1.on_host(f"docker run --detach {options} --entrypoint sleep {image} infinity")
    assert_a_container_has_the_driver(cdsw1, "/usr/lib/x86_64-linux-gnu", NEWER)
    assert cdsw1.changes("playbooks/cdsw.yml") == 0


def test_the_images_leave_by_the_playbook_that_made_them(cdsw1):
    cdsw1.on_host(f"docker rm --force {ENGINE}")
    cdsw1.group = "cdsw_hosts"
    cdsw1.write_inventory(NAME)
    cdsw1.must("playbooks/cdsw_engine.yml", "-e", "cdsw_engine_state=absent")
    assert cdsw1.on_host("docker images --format '{{.Repository}}:{{.Tag}}'").split() == [engine_base.IMAGE]
    assert cdsw1.on_host("ls -d /opt/deeplearning/engines", check=False) == ""
