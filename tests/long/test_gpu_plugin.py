"""The GPU plugin of a real NodeManager (3.3.6) whose nvidia-smi is slow or fails, and a real ResourceManager that gives out its GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import yarn_nodes
from test_hadoop27 import add
from waiting import until
from yarn_processes import JOB, NAMES, NODES, Cluster

PLUGINS = "yarn.nodemanager.resource-plugins"
SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
# The elements that Hadoop's GpuDeviceInformationParser reads.
GPU = """<gpu id="00000000:3B:0{0}.0"><product_name>Tesla P100</product_name><uuid>GPU-{0}</uuid><minor_number>{0}</minor_number>
<fb_memory_usage><total>16280 MiB</total><used>10 MiB</used><free>100 MiB</free></fb_memory_usage><utilization><gpu_util>0 %</gpu_util></utilization>
<temperature><gpu_temp>32 C</gpu_temp><gpu_temp_max_threshold>85 C</gpu_temp_max_threshold><gpu_temp_slow_threshold>82 C</gpu_temp_slow_threshold>
</temperature></gpu>"""


class Gpus(Cluster):
    """Two NodeManagers with two GPUs each: `seconds` and `status` of their nvidia-smi are files."""

    def __init__(self, directory: Path, devices: str = "auto") -> None:
        super().__init__(directory)
        self.smi = directory / "bin/nvidia-smi"
        self.smi.parent.mkdir()
        log = directory / "bin/log.xml"
        log.write_text(f"<nvidia_smi_log>{GPU.format(0)}{GPU.format(1)}</nvidia_smi_log>", encoding="utf-8")
        self.behaves()
        text = f"sleep $(cat {directory}/bin/seconds)\nstatus=$(cat {directory}/bin/status)\n[ $status != 0 ] || cat {log}\nexit $status\n"
        self.program("bin/nvidia-smi", text)
        for name in ("rm", *NODES):
            (self.conf(name) / "resource-types.xml").write_text("<configuration></configuration>", encoding="utf-8")
            add(self.conf(name) / "resource-types.xml", {"yarn.resource-types": "yarn.io/gpu"})
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

    def gpus(self) -> dict[str, int]:
        """What YARN has of each node."""
        rows = (self.ask("/nodes").get("nodes") or {}).get("node", [])
        return {NAMES[row["nodeHostName"]]: yarn_nodes.gpus(row) for row in rows if row["nodeHostName"] in NAMES}


@pytest.fixture
def gpus(tmp_path: Path) -> Callable[..., Gpus]:
    return lambda **options: Gpus(tmp_path, **options)


@pytest.mark.parametrize("policy", ["fair", "drf", None])
def test_the_fair_scheduler_gives_no_gpu_twice_with_either_policy(
    gpus: Callable[..., Gpus], policy: str | None
) -> None:
    """Three containers want two GPUs each, and there are four. None: the CapacityScheduler with the DominantResourceCalculator."""
    cluster = gpus()
    if policy:
        cluster.is_fair(policy)
    with cluster.running():
        count = cluster.directory / "count"
        cluster.submit("gpus", command=cluster.java(cluster.conf("rm"), str(JOB.with_name("GpuJob.java")), str(count)))
        until(
            lambda: count.exists() and int(count.read_text(encoding="utf-8") or 0) >= 2,
            120,
            "two containers must be given",
        )
        time.sleep(15)
        assert int(count.read_text(encoding="utf-8")) == 2


def test_a_nodemanager_ends_if_its_nvidia_smi_needs_more_than_ten_seconds(
    gpus: Callable[..., Gpus],
) -> None:
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


def test_with_named_gpus_a_nodemanager_starts_whatever_its_nvidia_smi_does(gpus: Callable[..., Gpus]) -> None:
    cluster = gpus(devices="0:0,1:1")
    cluster.behaves(seconds=11, status=1)
    with cluster.running():
        assert cluster.gpus() == {"data1": 2, "data2": 2}
