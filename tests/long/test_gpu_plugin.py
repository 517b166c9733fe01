"""The GPU plugin of a real NodeManager (3.3.6) whose nvidia-smi is slow or fails, and a real ResourceManager that gives out its GPUs.

Also the health script of real NodeManagers, which reads what gpu-check's timer wrote.
"""

import getpass
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import ansible_programs
import pytest
import python_files
import report_reader
import yaml
from ansible.module_utils.hadoop_dl_host import gpu_use as host_gpu_use
from ansible.module_utils.hadoop_dl_host import yarn_cluster, yarn_nodes
from ansible.module_utils.hadoop_dl_host.gpu_health import MINUTES, PATH
from drain_operator import SETTINGS
from gpu_check import yarn_health
from gpu_check_hosts import host as gpu_host
from resource_manager import write_settings
from tfos_submit import shortage
from tfos_submit.yarn import node_summary
from waiting import until
from yarn_processes import JOB, NAMES, NODES, Cluster, Job, add

from hadoop_dl.data import yarn_work
from hadoop_dl.data.report_answers import asked_of
from hadoop_dl.hosts import gpu_use
from hadoop_dl.plan.model import host_of

MODULES = ansible_programs.REPOSITORY / "plugins/modules"
PLUGIN, GPU_HOST_INFO = (python_files.load(MODULES / f"{name}.py") for name in ("yarn_gpu_plugin", "gpu_host_info"))
PLUGINS = "yarn.nodemanager.resource-plugins"
SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
# The elements that Hadoop's GpuDeviceInformationParser reads.
GPU = """<gpu id="00000000:3B:0{0}.0"><product_name>Tesla P100</product_name><uuid>GPU-{0}</uuid><minor_number>{0}</minor_number>
<fb_memory_usage><total>16280 MiB</total><used>10 MiB</used><free>100 MiB</free></fb_memory_usage><utilization><gpu_util>0 %</gpu_util></utilization>
<temperature><gpu_temp>32 C</gpu_temp><gpu_temp_max_threshold>85 C</gpu_temp_max_threshold><gpu_temp_slow_threshold>82 C</gpu_temp_slow_threshold>
</temperature></gpu>"""


class Gpus(Cluster):
    """Two NodeManagers with two GPUs each: `seconds` and `status` of their nvidia-smi are files."""

    def __init__(self, directory: Path, devices: str = "auto", image: str = "el9") -> None:
        super().__init__(directory, image)
        self.smi = directory / "bin/nvidia-smi"
        self.smi.parent.mkdir()
        log = directory / "bin/log.xml"
        log.write_text(f"<nvidia_smi_log>{GPU.format(0)}{GPU.format(1)}</nvidia_smi_log>", encoding="utf-8")
        self.behaves()
        text = f"sleep $(cat {directory}/bin/seconds)\nstatus=$(cat {directory}/bin/status)\n[ $status != 0 ] || cat {log}\nexit $status\n"
        self.program("bin/nvidia-smi", text)
        for name in ("rm", *NODES):
            write_settings(self.conf(name) / "resource-types.xml", {"yarn.resource-types": "yarn.io/gpu"})
        for name in NODES:
            gpus = {"allowed-gpu-devices": devices, "path-to-discovery-executables": str(self.smi.parent)}
            settings = {PLUGINS: "yarn.io/gpu", **{f"{PLUGINS}.gpu.{key}": value for key, value in gpus.items()}}
            add(self.conf(name) / "yarn-site.xml", settings)
        calculator = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        add(self.conf("rm") / "capacity-scheduler.xml", {"yarn.scheduler.capacity.resource-calculator": calculator})

    def behaves(self, seconds: int = 0, status: int = 0) -> None:
        for name, value in (("seconds", seconds), ("status", status)):
            (self.smi.parent / name).write_text(f"{value}\n", encoding="utf-8")

    def is_fair(self, policy: str) -> None:
        queues = self.directory / "fair.xml"
        policies = f"<defaultQueueSchedulingPolicy>{policy}</defaultQueueSchedulingPolicy>"
        masters = "<queueMaxAMShareDefault>-1.0</queueMaxAMShareDefault>"
        queues.write_text(f"<allocations>{masters}{policies}</allocations>", encoding="utf-8")
        fair = {"allocation.file": str(queues), "user-as-default-queue": "false"}
        settings = {"yarn.resourcemanager.scheduler.class": SCHEDULER, "yarn.scheduler.increment-allocation-mb": "128"}
        settings |= {f"yarn.scheduler.fair.{name}": value for name, value in fair.items()}
        add(self.conf("rm") / "yarn-site.xml", settings)

    def holds(self, count: Path, containers: int, gpus: int) -> Job:
        """A job that wants so many containers with so many GPUs each, and writes into that file how many it got."""
        command = self.java(self.conf("rm"), *map(str, (JOB.with_name("GpuJob.java"), count, containers, gpus)))
        return self.submit(count.name, command=command)

    def gpus(self) -> dict[str, int]:
        """What YARN has of each node."""
        rows = (self.ask("/nodes").get("nodes") or {}).get("node", [])
        return {NAMES[row["nodeHostName"]]: yarn_nodes.gpus(row) for row in rows if row["nodeHostName"] in NAMES}


@pytest.fixture
def gpus(tmp_path: Path) -> Callable[..., Gpus]:
    return lambda **options: Gpus(tmp_path, **options)


@pytest.mark.parametrize("policy", ["fair", "drf", None])
def test_the_fair_scheduler_gives_no_gpu_twice_with_either_policy(gpus, policy):
    """Three containers want two GPUs each, and there are four. None: the CapacityScheduler with the DominantResourceCalculator."""
    cluster = gpus()
    if policy:
        cluster.is_fair(policy)
    with cluster.running():
        count = cluster.directory / "count"
        cluster.holds(count, 3, 2)
        until(
            lambda: count.exists() and int(count.read_text(encoding="utf-8") or 0) >= 2,
            120,
            "two containers must be given",
        )
        time.sleep(15)
        assert int(count.read_text(encoding="utf-8")) == 2


def test_a_nodemanager_ends_if_its_nvidia_smi_needs_more_than_ten_seconds(gpus):
    cluster = gpus()
    cluster.behaves(seconds=11)
    try:
        cluster.run("rm", "data1")
        log = cluster.directory / "data1/out"
        until(
            lambda: log.exists() and "Error starting NodeManager" in log.read_text(encoding="utf-8"), 60, "it must end"
        )
    finally:
        cluster.stop()


def role(cluster: Gpus, name: str, **variables: object) -> tuple[int, str]:
    """tasks/plugin.yml of the role yarn_gpu on a NodeManager, as playbooks/layers/upgrade.yml runs it."""
    include = {"name": "yarn_gpu", "tasks_from": "plugin"}
    play = {"hosts": name, "gather_facts": False, "tasks": [{"ansible.builtin.include_role": include}]}
    (cluster.directory / "plugin.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    port = PLUGIN.address(yarn_cluster.hadoop_configuration(cluster.conf(name))).rpartition(":")[2]
    inventory = cluster.inventory(
        yarn_gpu_conf_dir=str(cluster.conf(name)), yarn_gpu_nodemanager_port=port, yarn_gpu_timeout=120, **variables
    )
    process = ansible_programs.start("-i", inventory, cluster.directory / "plugin.yml", **SETTINGS)
    output = process.communicate(timeout=600)[0]
    return process.returncode, " ".join(output.split())


def test_a_nodemanager_that_gave_up_on_its_nvidia_smi_is_restarted(gpus):
    """The driver is away longer than ten looks, as in an upgrade without a drain."""
    cluster = gpus()
    with cluster.running():
        status, output = role(cluster, "data1")
        assert status == 0, output
        cluster.behaves(status=9)
        url = PLUGIN.address(yarn_cluster.hadoop_configuration(cluster.conf("data1"))) + PLUGIN.PATH
        until(lambda: PLUGIN.look(url)[0] == "ended", 120, "it must give up")
        cluster.behaves()
        status, output = role(cluster, "data1")
        assert status != 0
        assert (
            "The GPU plugin of the NodeManager of data1 must work after the change of the driver, but ended" in output
        )
        command = f"{cluster.directory}/start-data1"
        status, output = role(cluster, "data1", yarn_gpu_nodemanager_command=command, yarn_gpu_restart_allowed=True)
        assert status == 0, output
        assert "changed=1" in output
        until(lambda: cluster.gpus() == {"data1": 2, "data2": 2}, 120, "YARN must have its GPUs")


def test_a_look_of_a_nodemanager_is_no_use_of_the_gpus(gpus):
    """It sleeps in nvidia-smi, so that an upgrade meets it."""
    cluster = gpus()
    host = GPU_HOST_INFO.Host()
    with cluster.running():
        cluster.behaves(seconds=7)

        def looks() -> list[str]:
            names = {path.parent.name: path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm")}
            return [pid for pid, name in names.items() if name == "nvidia-smi" and host.watches(host.parent(pid))]

        until(lambda: bool(looks()), 60, "an nvidia-smi must run below the NodeManager")


def test_with_named_gpus_a_nodemanager_starts_whatever_its_nvidia_smi_does(gpus):
    cluster = gpus(devices="0:0,1:1")
    cluster.behaves(seconds=11, status=1)
    with cluster.running():
        assert cluster.gpus() == {"data1": 2, "data2": 2}


NVIDIA_SMI = "nvidia-smi --query-gpu=index,"
ANSWERS = {"ecc.errors.uncorrected.volatile.total": "0", "gpu_recovery_action": "None", "remapped_rows.failure": "No"}


@pytest.mark.parametrize("image", ["el9", "el7-hadoop31", "el7-hadoop2"])
def test_a_sick_gpu_takes_its_host_out_of_yarn_until_it_is_repaired(gpus, image):
    """The properties of the role, but a root of its own for each host's answer, and a look each second."""
    cluster = gpus(devices="0:0,1:1", image=image)
    roots = {name: cluster.directory / name / "root" for name in NODES}
    for name, root in roots.items():
        (root / PATH[1:]).parent.mkdir(parents=True)
        place = {PATH: str(root / PATH[1:]), "-user root": f"-user {getpass.getuser()}", "60000": "1000"}
        for key, value in yarn_work.HEALTH_SETTINGS.items():
            for found, replaced in place.items():
                value = value.replace(found, replaced)
            add(cluster.conf(name) / "yarn-site.xml", {key: value})
    with cluster.running():
        job = cluster.submit("on a host that leaves")
        leaves = job.host
        answer = roots[leaves] / PATH[1:]

        def looks(count: int, **sick: str) -> None:
            rows = {NVIDIA_SMI + name: (0, f"0, {good}\n1, {sick.get(name, good)}\n") for name, good in ANSWERS.items()}
            for _ in range(count):
                yarn_health.main(gpu_host(roots[leaves], gpus=2, answers=rows))

        def node() -> dict[str, object]:
            rows = cluster.ask("/nodes")["nodes"]["node"]
            return next(row for row in rows if NAMES.get(row["nodeHostName"]) == leaves)

        def comes(state: str, why: str) -> None:
            until(lambda: cluster.states() == {**good, leaves: state}, 60, f"{leaves} must be {state}: {why}")

        def stays(state: str, why: str) -> None:
            time.sleep(5)
            assert cluster.states() == {**good, leaves: state}, why

        good = dict.fromkeys(NODES, "RUNNING")
        looks(1)
        stays("RUNNING", "every GPU is good")
        looks(1, gpu_recovery_action="Reset")
        stays("RUNNING", "it was seen once")
        assert job.state == "RUNNING"
        looks(1, gpu_recovery_action="Reset")
        comes("UNHEALTHY", "the driver asks for a reset")
        until(lambda: job.state == "FAILED", 60, "YARN ends the containers of a node that leaves")
        reason = "ERROR: sick GPU (gpu-check): GPU 1: the driver asks for Reset."
        assert str(node()["healthReport"]).startswith(reason)
        assert f"is UNHEALTHY ({reason} The node comes back by itself" in shortage.state_words(node_summary(node()))
        looks(1)
        stays("UNHEALTHY", "one good look is not enough")
        looks(1)
        comes("RUNNING", "it was repaired")
        looks(2, **{"remapped_rows.failure": "Yes"})
        comes("UNHEALTHY", "a row of memory")
        old = time.time() - 60 * (MINUTES + 1)
        os.utime(answer, (old, old))
        comes("RUNNING", "an old answer throws no node out")
        answer.unlink()
        stays("RUNNING", "nor does a missing one")


def process_of(job: Job) -> str:
    """The number of the process in the job's container, whose working directory is the container's."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has ended
            if path.read_text() == "sleep\n" and job.application in str((path.parent / "cwd").readlink()):
                return path.parent.name
    return ""


@pytest.mark.parametrize("image", ["el9", "el7-hadoop31"])
def test_the_report_tells_a_job_that_computes_from_one_that_only_holds_its_gpu(gpus, monkeypatch, image):
    """Two jobs hold a GPU each. nvidia-smi names a process of one, which computes first and later not; YARN isolates no container."""
    cluster = gpus(image=image)
    smi = ansible_programs.REPOSITORY / "demo/gpu/files/nvidia-smi"
    state = cluster.directory / "state.json"
    (cluster.directory / "host").mkdir()
    cluster.program("host/nvidia-smi", f'exec python3 {smi} "$@"\n')
    monkeypatch.setenv("PATH", f"{cluster.directory}/host:{os.environ['PATH']}")
    monkeypatch.setenv("NVIDIA_SMI_STAND_IN", str(state))

    def computes(load: int, pid: str) -> None:
        cards = [{"uuid": f"GPU-{n}", "bus_id": f"00000000:3B:00.{n}", "utilization.gpu": load * n} for n in range(2)]
        content = {"driver": "535.104.05", "gpus": cards, "processes": [{"gpu_uuid": "GPU-1", "pid": pid}]}
        state.write_text(json.dumps(content), encoding="utf-8")

    def look(earlier: dict[str, int], now: int) -> dict[str, object]:
        holders, problem = host_gpu_use.holders([str(cluster.conf("rm"))])
        assert problem is None
        nvidia = {"gpus": [], "listed": ["GPU"]}
        busy = report_reader.use(report_reader.health(nvidia, True)["results"])
        hosts = [host_of("master1", ("masters",), {}, None), host_of("data1", ("data_nodes",), {}, None)]
        hosts[1].variables.update(ansible_host=NODES["data1"])
        answers = {"master1": asked_of({"holders": holders, "busy": []}), "data1": asked_of({"busy": busy})}
        rows = gpu_use.applications(hosts, answers, earlier, now)
        return {row["id"]: (row["gpus"], row["busy"], row["unseen"], row["idle_since"]) for row in rows}

    try:
        cluster.run("rm", "data1")
        until(lambda: cluster.gpus().get("data1") == 2, 240, "YARN must start")
        working, waiting = (cluster.holds(cluster.directory / name, 1, 1) for name in ("working", "waiting"))
        for job in (working, waiting):
            until(lambda job=job: process_of(job) != "", 120, f"{job.application} must have its container")
        computes(97, process_of(working))
        assert look({}, 0) == {
            waiting.application: (1, 0, [], "1970-01-01T00:00:00Z"),
            working.application: (1, 1, [], None),
        }
        computes(0, process_of(working))
        since = {waiting.application: 0}
        assert look(since, 3600) == {
            waiting.application: (1, 0, [], "1970-01-01T00:00:00Z"),
            working.application: (1, 0, [], "1970-01-01T01:00:00Z"),
        }
        (cluster.directory / "waiting").unlink()
        until(lambda: waiting.state == "SUCCEEDED", 60, "it must end")
        assert list(look(since, 7200)) == [working.application]
    finally:
        cluster.stop()
