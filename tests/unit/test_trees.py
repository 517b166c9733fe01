"""The node reader and the resolver on recorded hosts: what is read is what decides."""

from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import host_reader
from plan_hosts import REPOSITORY, SITE
from trees import TREES, build

from hadoop_dl import plan
from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostProfile, read_facts
from hadoop_dl.plan import model as plan_model
from hadoop_dl.resolver import compose
from hadoop_dl.resolver.named_stacks import fitting

OLD, NEW = "3.10.0-1160.el7.x86_64", "3.10.0-1160.119.1.el7.x86_64"
EL7, EL9 = "tf1.15-py27-el7", "tf2.15-py3-el9"
DRIVER = {"nvidia_driver_version": "470.82.01", "nvidia_license_accepted": True}
SIGNING = {"nvidia_driver_signing_certificate": "/site.der", "nvidia_driver_signing_key": "/site.key"}
NEWER = {"nvidia_driver_version": "580.95.05", "nvidia_license_accepted": True}


def profile(tmp_path: Path, name: str) -> HostProfile:
    """What the resolver takes of a host that was read."""
    return read_facts(host_reader.read(str(build(tmp_path, TREES[name])))).profile


@pytest.mark.parametrize("name", sorted(TREES))
def test_the_reader_sees_what_the_tree_says(name, tmp_path):
    tree = TREES[name]
    node = host_reader.read(str(build(tmp_path, tree)))
    assert [gpu["device"] for gpu in node["nvidia"]["gpus"]] == list(tree.gpus)
    assert node["nvidia"]["nvswitches"] == tree.nvswitches
    assert (node["nvidia"]["driver"], node["nvidia"]["module"]) == (tree.driver, tree.module if tree.driver else None)
    assert node["nvidia"]["installed"] == tree.driver
    assert node["nvidia"]["module_kernels"] == ([node["kernel"]["running"]] if tree.driver else [])
    assert ("nouveau" in node["kernel"]["modules"]) is ("nouveau" in tree.modules)
    assert (node["kernel"]["running"] in node["kernel"]["headers"]) is tree.headers
    assert (node["kernel"]["default_boot"] != node["kernel"]["running"]) is tree.pending
    assert node["secure_boot"] is tree.secure_boot
    assert node["cdsw"] is tree.cdsw


@pytest.mark.parametrize(
    ("name", "system", "gpus", "hadoop"),
    [
        ("p100", "rhel-7.9", ("10de:15f8",), "cdh-5.16.2"),
        ("h100", "rhel-9.4", ("10de:2330",), "cdh-5.16.2"),
        ("amd_only", "rhel-9.4", (), "cdh-5.16.2"),
        ("debian", "debian-12", ("10de:1eb8",), "apache-3.3.6"),
    ],
)
def test_the_resolver_takes_its_facts_from_what_was_read(name, system, gpus, hadoop, tmp_path):
    host = profile(tmp_path, name)
    assert (host.os, host.gpus, host.hadoop) == (system, gpus, hadoop)


@pytest.mark.parametrize(
    ("name", "request_", "words"),
    [
        ("a100_nvswitch", {"tensorflow": "1.15"}, "TensorFlow 1.15.5 runs on Python 3.6 and 3.7, but the host has Python 3.9 and 3.11"),
        ("a100_nvswitch", {"cuda": "10.1"}, "CUDA 10.1 has no code for A100"),
        ("t4", {"python": "2.7"}, "but the host has Python 3.9 and 3.11"),
        ("old_cpu", {"tensorflow": "1.15", "tensorflow_source": "prebuilt"}, "need a CPU with avx"),
        ("p100", {"pyspark": "4.0"}, "Java"),
        ("mixed", {"cdsw": True}, "same make and model of GPU"),
    ],
)  # fmt: skip
def test_a_read_host_refuses_in_its_own_words(name, request_, words, tmp_path):
    host = profile(tmp_path, name)
    resolution = compose(request_, host)
    assert resolution.status == "conflict"
    assert words in " ".join(resolution.problems)
    assert all(compose(request, host).fits for request in resolution.nearest)


def test_what_is_offered_to_a_read_host_leaves_the_host_as_it_is(tmp_path):
    host = profile(tmp_path, "debian")
    requests = compose({"tensorflow": "1.15", "python": "2.7"}, host).nearest
    assert requests
    assert all(set(request) <= {"tensorflow", "python", "cuda"} for request in requests), requests
    assert all(compose(request, host).fits for request in requests)


@pytest.mark.parametrize(
    ("name", "expected", "stack"),
    [
        ("p100", {"cuda": "11.2", "driver_branch": "535", "driver_module": "proprietary", "python": "3.6"}, "tf1.15-spark2-py36-el7"),
        # The driver that runs is kept where it is new enough: 450 on the V100, 535 on the A100.
        ("v100", {"cuda": "11.2", "driver_branch": "450", "driver_module": "proprietary", "python": "3.6"}, "tf1.15-spark2-py36-el7"),
        ("mixed", {"cuda": "11.2", "driver_branch": "450", "driver_module": "proprietary"}, "tf1.15-spark2-py36-el7"),
        ("t4", {"cuda": "12.5", "driver_branch": "580", "python": "3.11"}, "tf2.21-tfos-py311"),
        ("a100_nvswitch", {"cuda": "12.5", "driver_branch": "535", "python": "3.11"}, "tf2.17-py311"),
        ("h100", {"cuda": "12.5", "driver_branch": "580", "python": "3.11"}, "tf2.17-py311"),
        ("amd_only", {"tensorflow_package": "tensorflow-cpu", "cuda": None, "driver_branch": None}, "tf2.17-cpu-py311"),
        ("no_gpu", {"tensorflow_package": "tensorflow-cpu", "cuda": None, "driver_branch": None}, "tf1.15-spark2-cpu-py36-el7"),
        ("old_cpu", {"tensorflow": "1.5.1", "cuda": None, "cpu_features": None}, "tf1.4-spark2-cpu-py27-el7"),
    ],
)  # fmt: skip
def test_a_read_host_gets_what_it_can_run(name, expected, stack, tmp_path):
    host = profile(tmp_path, name)
    stack_data = compose({}, host).stack
    assert {key: stack_data.get(key) for key in expected} == expected
    assert fitting(load(), {}, host)[0].name == stack


def planned(tmp_path: Path, name: str, request: object, **variables: object) -> plan_model.Plan:
    node = host_reader.read(str(build(tmp_path, TREES[name])))
    site = {**SITE, "deeplearning_request": request, "hadoop_client_hadoop_home": "/opt/hadoop", **variables}
    return plan.make_plan([plan_model.host_of("data1", ("data_nodes",), site, node)], REPOSITORY)


@pytest.mark.parametrize(
    ("name", "request_", "variables", "words"),
    [
        ("p100", EL7, {"gpu_count": 1}, "gpu_count is 1, but the host shows 2 GPUs (2 on the PCI bus"),
        ("v100", EL7, {"gpu_count": 8}, "gpu_count is 8, but the host shows 4"),
        ("a100_nvswitch", EL9, {"gpu_count": 14}, "gpu_count is 14, but the host shows 8"),  # 6 are switches
        ("h100", EL9, {"gpu_count": 12}, "gpu_count is 12, but the host shows 8"),
        ("amd_only", EL9, {"gpu_count": 2}, "gpu_count is 2, but the host shows 0"),
        ("no_gpu", EL7, {"gpu_count": 2}, "gpu_count is 2, but the host shows 0"),
        ("a100_nvswitch", EL7, {}, "tf1.15-py27-el7 is made for el7, but the host runs Red Hat Enterprise Linux 9.4"),
        ("p100", EL7, DRIVER, "driver 418.67 is installed and its version locked, but nvidia_driver_version is 470.82.01"),
        ("mixed", EL7, {**NEWER, "nvidia_driver_module": "open"}, "older than Turing and require the proprietary module"),
        ("h100", EL9, DRIVER, "the host's GPUs require a driver of branch 520 to any"),
        ("secure_boot", EL9, NEWER, "Secure Boot is on, so the host loads only modules that are signed"),
        ("secure_boot", EL9, {**NEWER, "nvidia_driver_signing_certificate": "/k.der"}, "Secure Boot is on"),
        ("old_driver", EL9, {}, "tf2.15-py3-el9 requires driver 525.60.13 or later for CUDA 12.2, but driver 470.82.01 runs on the host"),
        ("cdsw_mixed", EL7, {}, "CDSW requires the same make and model of GPU on all its hosts, but there are 2: P100 on data1; V100 on data1"),
        ("old_cpu", EL7, {}, "need a CPU with avx"),
    ],
)  # fmt: skip
def test_the_plan_refuses_what_a_read_host_cannot_have(name, request_, variables, words, tmp_path):
    site_plan = planned(tmp_path, name, request_, **variables)
    assert words in " ".join(site_plan.problems), site_plan.problems
    assert "no host was changed" in site_plan.failure()


@pytest.mark.parametrize(
    ("name", "request_", "variables", "words"),
    [
        ("p100", EL7, {"gpu_count": 2}, "does not schedule GPUs"),
        ("nouveau", EL7, DRIVER, "data1 (nouveau holds the GPU; not allowed, it will be reported)"),
        ("no_headers", EL7, DRIVER, f"building the driver's module requires kernel-devel-{OLD}, which the host does not have"),
        ("pending_new", EL7, DRIVER, f"for the running kernel {OLD} and for {NEW}, which boots next"),
        ("pending_new", EL7, DRIVER, f"requires kernel-devel-{NEW}, which the host does not have"),
        ("pending_kernel", EL7, {**DRIVER, "nvidia_driver_version": "418.67"}, f"kernel {NEW} has no module"),
        ("h100", EL9, {}, "compiles it from PTX 8.0"),
        ("secure_boot", EL9, {**NEWER, **SIGNING}, "none  580.95.05"),
    ],
)  # fmt: skip
def test_the_plan_tells_what_a_read_host_means_for_the_work(name, request_, variables, words, tmp_path):
    site_plan = planned(tmp_path, name, request_, **variables)
    text = " ".join([*site_plan.warnings, *site_plan.reboots, site_plan.table()])
    assert words in text, text
    assert site_plan.problems == []


@pytest.mark.parametrize("name", ["no_gpu", "amd_only"])
def test_a_host_without_nvidia_gpus_is_told_only_that_it_gets_no_driver(name, tmp_path):
    site_plan = planned(tmp_path, name, EL7 if name == "no_gpu" else EL9, gpu_count=0, **DRIVER)
    assert (site_plan.problems, site_plan.reboots) == ([], {})
    spark, driver = sorted(site_plan.warnings, key=lambda text: "driver" in text)
    assert " was not run on CDH 5.16.2 (Hadoop 2.6.0): only Spark 2 was run on Hadoop 2" in spark
    assert driver == "data1: nvidia_driver_version is set, but the host has no GPU: it gets no driver."
    assert "nvidia_driver" not in site_plan.table()
