"""A host of Cloudera's Data Science Workbench (CDSW), and sessions on it.

Docker is a real one inside the node. Stand-ins: CDSW (demo/cdsw), Cloudera's base image (demo/engine), NVIDIA's packages (demo/gpu, demo/containers), the
kernel that loads the driver (molecule/upgrade_driver). `make demo CDSW=1` adds such a host; tests/long/test_cdsw_host.py walks one through all steps.
"""

import json
from typing import Any

import yaml

from hadoop_dl.data.cdsw import driver_path, support
from hadoop_dl_dev.demo import container_packages, engine_base, gpu_packages, nodes, workbench_packages
from hadoop_dl_dev.demo.images import DATA, REPOSITORY

NAME, ENGINE = "cdsw1", "engine"
IMAGE, STACK = "el7", "tf1.15-py27-el7"  # of the node, and the one in the engine
DRIVER = "470.82.01"
RUNNING = "/srv/cdsw/running.conf"  # with what CDSW was restarted
KINDS = ("1.4.0", "1.10.5", "1.4.0-parcel", "1.10.5-parcel")
# What a GPU's host may do with its devices, and what docker exec needs for a process of another user.
OPTIONS = ("--cap-add", "SYS_PTRACE", "--device-cgroup-rule", "c 195:* rwm", "--device-cgroup-rule", "c 511:* rwm")
# What only a GPU and its driver can answer: the fixture's libraries have no device, and its daemon of persistence does nothing.
COMPUTES = (
    "test_cuda_computes_on_every_gpu",
    "test_tensorflow_sees_every_gpu",
    "test_tensorflow_computes_on_the_first_gpu",
    "test_tensorflow_convolves_on_the_first_gpu",
)
DRIVES = ("test_gpu_nvml_reachable", "test_gpu_persistence")
# The same of a session, by the names of gpu-check's questions.
OF_A_GPU = (
    "nvml_reachable",
    "cuda_computes",
    "tensorflow_lists_gpus",
    "tensorflow_computes_on_gpu",
    "tensorflow_convolves_on_gpu",
)
PRODUCT = (
    "import os, tensorflow as tf; print(os.getuid(), tf.__version__, tf.Session().run(tf.matmul([[2.0]], [[3.0]])))"
)
PREPARED = "/run/workbench-prepared"  # gone with a restart of the node
WITH_GPU = "/srv/kernel.log"  # the last file of stand_in_kernel.sh


def mounts() -> list[str]:
    """The node's mounts: Docker's directory, and the packages that a site has in its repositories."""
    return [
        "/var/lib/docker",  # a container's own file system cannot be a layer of another
        f"{engine_base.ensure()}:/srv/engine-base:ro",
        f"{container_packages.ensure()}:/srv/container-packages:ro",
        f"{gpu_packages.ensure(IMAGE)}:/srv/gpu-packages:ro",
        f"{container_packages.make(['docker', IMAGE])}:/srv/docker:ro",
        f"{workbench_packages.ensure()}:/srv/workbench:ro",
        f"{DATA / 'cdsw'}:/srv/demo-cdsw:ro",
        f"{DATA / 'containers'}:/srv/demo-containers:ro",
        f"{REPOSITORY / 'molecule/gpu_layer/gpu_in_sysfs.sh'}:/srv/gpu_in_sysfs.sh:ro",
    ]


def variables() -> dict[str, Any]:
    """The variables of cdsw_hosts in docs/operate/cdsw.md."""
    return {
        "gpu_count": 1,
        "nvidia_license_accepted": True,
        "nvidia_driver_version": DRIVER,
        "nvidia_driver_repository_url": "file:///srv/gpu-packages",
        "nvidia_driver_repository_key": str(gpu_packages.ensure(IMAGE) / "RPM-GPG-KEY-fixtures"),
        # The fixture's NVML and libcuda answer nothing.
        "nvidia_driver_upgrade_checks": [
            "driver_runs",
            "versions_agree",
            "gpus_by_driver_as_declared",
            "device_nodes",
        ],
        # The libraries of CUDA are in the image.
        **dict.fromkeys(("cuda_versions", "cudnn_versions", "nccl_versions"), "none"),
        "container_runtime_repository_url": "file:///srv/container-packages",
        "container_runtime_repository_key": str(container_packages.ensure() / "RPM-GPG-KEY-fixtures"),
        "cdsw_timeout": 20,
        "cdsw_engine_stack": STACK,
        "cdsw_engine_base": engine_base.IMAGE,
        "cdsw_engine_version": "10",
        "cdsw_engine_cuda_packages": ["cuda-libraries-10-0=10.0.130-1", "libcudnn7=7.6.5.32-1+cuda10.0"],
        "cdsw_engine_cuda_repository": "http://127.0.0.1:8001/apt",
        "cdsw_engine_cuda_key": str(engine_base.ensure() / "apt/key.asc"),
    }


class Host:
    """One host of CDSW, by the name of its container."""

    def __init__(self, container: str) -> None:
        self.node = container

    def prepare(self, kind: str) -> None:
        """Install Docker, a GPU, and CDSW of this release and kind; restore what a restart of the node removed."""
        if self.has(PREPARED):
            return
        self.script("molecule/shared/docker_node.sh")
        self.script("molecule/cdsw_engine/prepare.sh")
        if not self.has(WITH_GPU):
            listed = yaml.safe_load((DATA / "gpu/packages.yml").read_text(encoding="utf-8"))
            kernel = listed[IMAGE]["kernels"][0]
            self.script("molecule/shared/platform_python.sh")
            self.script("molecule/shared/gpu_node.sh", kernel, kernel)
            self.script("demo/cdsw/gpu.sh")
            self.script("molecule/upgrade_driver/stand_in_kernel.sh")
        self.on_host("nvidia-modprobe -u")  # as nvidia-persistenced at each boot; that in /usr/bin makes files
        self.install(kind)
        self.on_host(f"touch {PREPARED}")

    def install(self, kind: str) -> None:
        """CDSW as an administrator installs or upgrades it."""
        release, _, parcel = kind.partition("-")
        self.script(f"demo/cdsw/install_{parcel or 'rpm'}.sh", release)
        row = support(release)
        if row and not row.runtime:
            self.script("demo/cdsw/runtime.sh")

    def restart_parcel(self, enabled: str, path: str = "") -> None:
        """Restart the service as Cloudera Manager does, after which its settings are on the host."""
        self.on_host(f"printf 'NVIDIA_GPU_ENABLE=%s\\nNVIDIA_LIBRARY_PATH=%s\\n' '{enabled}' '{path}' > {RUNNING}")

    def enter_settings(self, kind: str, driver: str = DRIVER) -> bool:
        """Enter an administrator's settings for a parcel in Cloudera Manager and restart. False: there was nothing to enter."""
        release, _, parcel = kind.partition("-")
        if not parcel or "NVIDIA_GPU_ENABLE=true" in self.on_host(f"cat {RUNNING}"):
            return False
        self.restart_parcel("true", driver_path(release, driver))
        return True

    def script(self, path: str, *arguments: str) -> None:
        nodes.execute(self.node, "sh", "-s", *arguments, stdin=(REPOSITORY / path).read_text(encoding="utf-8"))

    def on_host(self, command: str, check: bool = True) -> str:
        return nodes.execute(self.node, "sh", "-c", command, check=check)

    def has(self, path: str) -> bool:
        return nodes.succeeds(self.node, "test", "-e", path)

    def active_image(self) -> str:
        record = json.loads(self.on_host("cat /opt/deeplearning/etc/cdsw_engine.json"))
        return str(record["active"])

    def session(self, image: str, *mounted: str) -> None:
        """An engine as CDSW starts one, with what its settings give it."""
        options = " ".join(f"--volume {mount}" for mount in mounted)
        self.on_host(f"/srv/workbench/session {ENGINE} {image} {options}")

    def inside(self, command: str, check: bool = True) -> str:
        """In that engine, as its user."""
        return nodes.execute(self.node, "docker", "exec", ENGINE, "sh", "-c", command, check=check)

    def python(self, program: str) -> str:
        return self.inside(f"python2.7 -c '{program}' 2>/dev/null").strip()

    def gpu_check(self, *questions: str) -> dict[str, tuple[str, str]]:
        """Outcome and message of each question; some fail if no GPU computes."""
        output = self.inside(f"gpu-check --json {' '.join(questions)}", check=False)
        return {answer["name"]: (answer["outcome"], answer["message"]) for answer in json.loads(output)}
