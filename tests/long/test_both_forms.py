"""The white paper's set on a cluster with GPUs in one data node alone: two forms of it in one environment, and jobs that use both.

TensorFlow's wheel for GPUs is the real one. What it is linked to is a stand-in: libraries with the functions that it names,
each of which answers 100, CUDA's code for "no device". A cluster of its own, removed at the end.
"""

import re
import shlex
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_commands import nodes_alone, play, run

from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.cluster import Cluster

CLUSTER = Cluster("tf1.4-py27-el7", name="forms", gpu_nodes=1)
LIBRARIES = [f"lib{name}.so.8.0" for name in ("cublas", "cudart", "cufft", "curand", "cusolver")] + ["libcudnn.so.6"]
JOB = """
import pkg_resources, tensorflow
from pyspark import SparkContext
def form(_):
    import pkg_resources, tensorflow
    with tensorflow.Session() as session:
        answer = session.run(tensorflow.constant(2) * 21)
    return "%s=%d" % (" ".join({"tensorflow", "tensorflow-gpu"} & set(pkg_resources.working_set.by_key)), answer)
print("DRIVER " + form(0))
print("EXECUTORS " + " ".join(sorted(SparkContext().parallelize(range(2), 2).map(form).collect())))
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with nodes_alone(CLUSTER):
        yield


def on(host: str, text: str) -> str:
    return run("docker", "exec", CLUSTER.container(host), "sh", "-c", text)


def functions() -> list[str]:
    """The functions of NVIDIA's libraries that TensorFlow names."""
    (wheel,) = (images.REPOSITORY / ".cache/mirror/wheels").glob("tensorflow_gpu-1.4.1-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [archive.read(name) for name in archive.namelist() if name.endswith(".so")]
    names = {name.decode() for data in libraries for name in re.findall(rb"\0((?:__cuda|cu)[A-Za-z0-9_]+)(?=\0)", data)}
    return sorted(name for name in names if not name.startswith("curl"))


def install_libraries(directory: Path) -> None:
    write = [sys.executable, str(images.REPOSITORY / "demo/gpu/files/elf.py"), "library"]
    run(*write, str(directory / "libcuda.so.1"), "libcuda.so.1", *(f"{name}=100" for name in functions()))
    for soname in LIBRARIES:
        run(*write, str(directory / soname), soname, "stand_in=100")
    run("docker", "cp", f"{directory}/.", f"{CLUSTER.container('data1')}:/usr/local/lib/")
    on("data1", "ldconfig")


def test_both_forms(tmp_path: Path) -> None:
    """One test, because each step starts from the one before."""
    output = play(CLUSTER, "site.yml", status=2)
    assert re.search(
        r"import tensorflow fails: ImportError: lib\S+: cannot open shared object file", re.sub(r"\s+", " ", output)
    )
    on("edge1", "test ! -e /opt/deeplearning/current")  # nothing is active anywhere

    install_libraries(tmp_path)
    assert "0 failed, 4 failed as expected" in play(CLUSTER, "site.yml")
    names = {on(host, "readlink -f /opt/deeplearning/current") for host in ("edge1", *CLUSTER.data_hosts)}
    assert len(names) == 1
    assert not re.findall(r"changed=[1-9]", play(CLUSTER, "site.yml")), "nothing is left to do"

    analyst = shlex.quote(f"printf %s {shlex.quote(JOB)} > form.py; tfos-submit --per-node 1 --timeout 300 form.py")
    lines = on("edge1", f"su - analyst -c {analyst}").splitlines()
    assert "DRIVER tensorflow=42" in lines
    assert "EXECUTORS tensorflow-gpu=42 tensorflow=42" in lines
    result = tour.train(CLUSTER)  # TensorFlowOnSpark 1.4 asks nvidia-smi if TensorFlow is the form for GPUs
    assert (result["accuracy"] >= 0.95, len(result["hosts"])) == (True, 2)

    run("docker", "cp", "molecule/gpu_layer/gpu_in_sysfs.sh", f"{CLUSTER.container('edge1')}:/usr/local/sbin/")
    on("edge1", "sh /usr/local/sbin/gpu_in_sysfs.sh 0x15f8")
    output = re.sub(r"\s+", " ", play(CLUSTER, "playbooks/plan.yml", "-e", '{"gpu_count": 1}', status=2))
    assert "was installed there as on hosts without GPUs, but the host has 1 now" in output
