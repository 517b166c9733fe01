"""The sets of packages of the GPU layer that a mirror holds: what each kind of planned host needs, and what is refused."""

import json
from pathlib import Path
from typing import Any

import gpu_layer_hosts
import pytest
from gpu_layer_hosts import ACCEPTED, KERNELS, NODE, changed, el8, host, made
from plan_hosts import REPOSITORY, make_host

from hadoop_dl.hosts import mirror_contents

T4 = {"gpus": [{"vendor": "10de", "device": "1eb8"}]}
EL9 = {"id": "rhel", "family": "RedHat", "short": "el9", "name": "RHEL 9.4"}
NONE = gpu_layer_hosts.NOTHING


def node(system: str, **parts: Any) -> dict[str, Any]:
    """A host of this system with a T4."""
    if system == "el7":
        return changed(nvidia=T4, **parts)
    fresh = el8(**parts)
    return {**fresh, "os": EL9, "glibc": "2.34"} if system == "el9" else fresh


def packages(system: str = "el9", facts: Any = None, **variables: Any) -> list[str]:
    """What the mirror holds for one host of this system, which pins its versions."""
    answer = made(host(facts or node(system), **{**NONE, **ACCEPTED, **variables}))
    assert set(answer.gpu_packages) <= {system}
    return [name for entry in answer.gpu_packages.values() for name in entry["packages"]]


def driver(version: str, system: str = "el9", **variables: Any) -> list[str]:
    return [name.replace(f"-{version}", "") for name in packages(system, nvidia_driver_version=version, **variables)]


OLD = ["nvidia-driver-NVML", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common"]
NEW = ["libnvidia-ml", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common"]
TOOLS = ["nvidia-modprobe", "nvidia-persistenced"]


@pytest.mark.parametrize(
    ("version", "system", "module", "names"),
    [
        ("535.104.05", "el9", "proprietary", ["kmod-nvidia-latest-dkms", *OLD, *TOOLS]),
        ("535.104.05", "el8", "open", ["kmod-nvidia-open-dkms", *OLD, *TOOLS]),
        ("580.82.07", "el9", "open", ["kmod-nvidia-open-dkms", *NEW, *TOOLS]),
        ("580.82.07", "el8", "proprietary", ["kmod-nvidia-latest-dkms", *NEW, *TOOLS]),
    ],
)
def test_the_driver_of_rhel_8_and_9_is_that_of_the_role(version, system, module, names):
    assert driver(version, system, nvidia_driver_module=module) == sorted(names)


def test_the_driver_of_rhel_7_has_its_flavor_in_every_name():
    names = driver("470.82.01", "el7")
    assert len(names) == 11
    assert all("latest-dkms" in name for name in names)


def test_precompiled_modules_are_for_the_kernels_that_may_run():
    names = driver("535.104.05", nvidia_driver_build="precompiled")
    assert [name for name in names if "kmod-nvidia" in name] == [
        f"kmod-nvidia-{kernel.partition('.el')[0]}" for kernel in KERNELS
    ]


def test_switches_bring_the_fabric_manager_by_either_of_its_names():
    facts = node("el9")
    facts["nvidia"] = {**facts["nvidia"], "gpus": [{"vendor": "10de", "device": "20b0"}], "nvswitches": 6}
    names = packages("el9", facts, nvidia_driver_version="535.104.05", nvidia_driver_dcgm_version="4.2.3")
    assert "nvidia-fabric-manager-535.104.05|nvidia-fabricmanager-535.104.05" in names
    assert {"datacenter-gpu-manager-4-cuda12-4.2.3", "libnvidia-nscq-535-535.104.05"} <= set(names)


def test_toolkit_and_libraries_have_exactly_the_versions_that_the_roles_install():
    libraries = {
        "cuda_versions": ["12.2"],
        "cuda_package_versions": {"12.2": "12.2.2"},
        "cudnn_versions": [{"version": "8.9.7.29", "cuda": "12.2"}, {"version": "9.1.0.70", "cuda": "12.2"}],
        "nccl_versions": [{"version": "2.18.5", "cuda": "12.2"}],
    }
    assert packages(**libraries) == [
        "cuda-toolkit-12-2-12.2.2",
        *(f"libcudnn8{part}-8.9.7.29-1.cuda12.2" for part in ("", "-devel")),
        *(f"libcudnn9{part}-cuda-12-9.1.0.70" for part in ("", "-devel", "-headers")),
        *(f"libnccl{part}-2.18.5-1+cuda12.2" for part in ("", "-devel")),
    ]


def test_archives_and_installers_are_no_packages():
    sources = {"nvidia_driver_source": "runfile", "cudnn_source": "tarball", "cuda_source": "runfile"}
    library = {"version": "8.9.7.29", "cuda": "12.2"}
    pins = {"nvidia_driver_version": "535.104.05", "cuda_versions": ["12.2"], "cudnn_versions": [library]}
    assert packages(**sources, **pins) == []


def test_the_runtime_of_containers_is_in_the_set():
    assert packages(container_runtime="nvidia-container-toolkit", container_runtime_version="1.17.8-1") == [
        "nvidia-container-toolkit-1.17.8-1"
    ]


def test_what_the_stack_decides_is_in_the_set_and_stays_there_once_it_is_installed():
    """A mirror that forgets what its hosts have cannot serve the next one."""
    answer = made(host(NODE, **ACCEPTED))
    before = answer.gpu_packages["el7"]["packages"]
    assert any(name.startswith("cuda-toolkit-10-0-") for name in before)
    assert "libcudnn7" in " ".join(before)
    version = answer.hosts["data1"]["gpu"]["nvidia_driver_version"]
    facts = changed(
        nvidia={"driver": version, "installed": version, "module_kernels": KERNELS},
        cuda={"toolkits": {"10.0": "/usr/local/cuda-10.0"}},
        managed={"cuda": ["10.0"]},
    )
    facts["deeplearning"] = {**facts["deeplearning"], "receipts": {"nvidia_driver": {"digest": "1", "problem": None}}}
    assert made(host(facts, **ACCEPTED)).gpu_packages["el7"]["packages"] == before


def test_hosts_of_two_systems_have_a_set_each_and_hosts_without_gpus_none():
    pins = {**NONE, **ACCEPTED, "nvidia_driver_version": "535.104.05"}
    without = changed(nvidia={"gpus": []})
    answer = made(
        host(node("el8"), "data1", **pins), host(node("el9"), "data2", **pins), host(without, "data3", **pins)
    )
    assert {system: entry["hosts"] for system, entry in answer.gpu_packages.items()} == {
        "el8": ["data1"],
        "el9": ["data2"],
    }
    assert answer.as_json()["gpu_packages"] == answer.gpu_packages


URLS = {"el9": "http://cuda.example.com/el9 http://epel.example.com/9"}
INPUTS = {"mirror_gpu_key": __file__, "mirror_gpu_repositories": URLS}


@pytest.fixture
def plan_file(tmp_path):
    """Write a plan's file, as playbooks/plan.yml does. The stack's own problems on these systems are not of interest here."""

    def write(answer: Any, **changes: Any) -> Any:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({**answer.as_json(), "problems": [], **changes}))
        return path

    return write


def planned(*names: str, system: str = "el9") -> Any:
    pins = {**NONE, **ACCEPTED, "nvidia_driver_version": "535.104.05"}
    return made(*(host(node(system), name, **pins) for name in names))


def contents(plan: Any, *hosts: str, **variables: Any) -> mirror_contents.Contents:
    """What the mirror of these hosts holds; this file is that of the keys."""
    listed = [make_host(name, ("data_nodes",), None) for name in hosts]
    mirror_host = make_host("mirror1", ("mirror_host",), None, **{**INPUTS, **variables})

    return mirror_contents.contents([*listed, mirror_host], (), REPOSITORY, plan)


def test_the_plan_makes_a_set_of_the_repositories_that_the_site_names(plan_file):
    answer = planned("data1")
    site = contents(plan_file(answer), "data1")
    assert site.problems == []
    (package_set,) = site.sets
    assert package_set["name"] == "gpu-el9"
    assert package_set["packages"] == answer.gpu_packages["el9"]["packages"]
    assert package_set["repositories"] == URLS["el9"].split()
    assert package_set["key"] == Path(__file__).read_text().rstrip()
    assert site.hosts == {"el9": ["data1"]}
    assert site.warnings == ["The plan does not have mirror1, so that packages which they alone need may be missing."]


@pytest.mark.parametrize("system", ["el7", "el8", "el9"])
def test_nvidias_and_epels_repositories_are_the_default_of_each_system(plan_file, system):
    (package_set,) = contents(plan_file(planned("data1", system=system)), "data1", mirror_gpu_repositories={}).sets
    urls = package_set["repositories"]
    assert f"https://developer.download.nvidia.com/compute/cuda/repos/rhel{system[2]}/x86_64" in urls
    assert any(f"epel/{system[2]}/" in url for url in urls)


def test_without_a_plan_there_is_no_set_and_no_key_is_required():
    site = contents(None, "data1", mirror_gpu_key="")
    assert (site.sets, site.problems) == ([], [])


@pytest.mark.parametrize(
    ("changes", "variables", "words"),
    [
        ({}, {"mirror_gpu_key": ""}, "http://epel.example.com/9, but it is not set. Put their keys into one file"),
        ({}, {"mirror_gpu_key": "keys/lost.asc"}, "but there is no keys/lost.asc"),
        ({"hosts": {"data1": {}, "data9": {}}}, {}, "has data9, which the inventory does not have"),
        ({"problems": ["data1: GPU lost."]}, {}, "has 1: data1: GPU lost."),
        ({"gpu_packages": {"el9": {"hosts": [], "packages": ["--repo=x"]}}}, {}, "the package '--repo=x'"),
        ({"gpu_packages": None}, {}, "must name a plan's file of this release"),
        (
            {"gpu_packages": {"debian12": {"hosts": ["data1"], "packages": ["libnccl"]}}},
            {},
            "data1: packages of the GPU layer are known for el7, el8, el9, but the plan has debian12.",
        ),
        ({}, {"mirror_gpu_repositories": {"el9": "file:///srv"}}, "mirror_gpu_repositories must be a mapping from el7"),
        ({}, {"mirror_gpu_repositories": {"sles15": "http://x"}}, "mirror_gpu_repositories must be a mapping from el7"),
    ],
)
def test_a_plan_that_does_not_decide_the_sets_is_a_sentence(plan_file, changes, variables, words):
    problems = contents(plan_file(planned("data1"), **changes), "data1", **variables).problems
    assert words in "\n".join(problems)


def test_a_file_that_is_missing_or_cut_short_is_no_plan(plan_file, tmp_path):
    path = plan_file(planned("data1"))
    path.write_text(path.read_text()[:200])
    for file in (path, tmp_path / "lost.json"):
        assert "but" in contents(file, "data1").problems[0]
        assert "playbooks/plan.yml -e preflight_plan_file" in contents(file, "data1").problems[0]
