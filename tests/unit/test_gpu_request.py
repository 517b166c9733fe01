"""What a stack decides about the GPU layer of a host, what a site may pin, and what contradicts."""

from dataclasses import replace
from typing import Any

import pytest
from gpu_layer_hosts import (
    ACCEPTED,
    KERNELS,
    NOTHING,
    REPOSITORY,
    WISH,
    changed,
    el8,
    gpu_rows,
    host,
    layer,
    made,
    part,
)

from hadoop_dl.data import stacks
from hadoop_dl.hosts import mirror_contents
from hadoop_dl.plan import gpu_contradictions, gpu_request, target
from hadoop_dl.plan import model as plan_model
from hadoop_dl_dev import invented_hosts

NO_GPUS = {"gpus": []}


@pytest.mark.parametrize(
    ("stack", "node", "driver", "cuda", "cudnn"),
    [
        ("tf1.15-py27-el7", changed(), "470.82.01", "10.0.130", "7.6.5.32"),
        ("tf2.4-py38-el8", el8(), "580.178.04", "11.0.3", "8.0.5.39"),
        ("tf2.11-py39", el8(), "580.178.04", "11.2.2", "8.1.1.33"),
    ],
)
def test_a_bare_host_with_gpus_gets_what_its_stack_decides(stack, node, driver, cuda, cudnn):
    """To the last number: a host that is installed a year later gets the same."""
    answer = made(host(node, deeplearning_request=stack, **ACCEPTED))
    toolkit = cuda.rpartition(".")[0]
    assert part(answer) == layer(driver, toolkit, cudnn)
    assert answer.hosts["data1"]["gpu"]["cuda_package_versions"] == {toolkit: cuda}


def test_the_release_of_a_toolkit_is_the_sites_if_it_names_one():
    named = {"cuda_package_versions": {"10.0": "10.0.130-2"}}
    for pins, releases in (
        (named, named),
        ({"cuda_versions": ["10.0"], **named}, named),
        ({"cuda_versions": ["10.0"]}, {}),
    ):
        gpu = made(host(**ACCEPTED, **pins)).hosts["data1"]["gpu"]
        assert {name: gpu[name] for name in ("cuda_package_versions",) if name in gpu} == releases


@pytest.mark.parametrize(
    ("system", "branch", "release"),
    [
        ("el7", "470", "470.82.01"),
        ("el7", "535", "535.104.05"),
        ("el7", "550", "550.54.15"),
        ("el7", "410", None),  # packages of the time before dkms
        ("el7", "580", None),
        ("el8", "470", "470.239.06"),
        ("el9", "535", "535.309.01"),
        ("debian12", "535", None),
    ],
)
def test_a_default_is_a_release_that_the_systems_repository_has(monkeypatch, system, branch, release):
    node = changed(os={"short": system}, nvidia={"gpus": [{"vendor": "10de", "device": "1eb8"}]})
    bare = gpu_request.GpuHost(invented_hosts.host("data1", (), {}, node), target.Target())
    monkeypatch.setattr(gpu_request.GpuHost, "required", lambda _, name: {"driver_branch": branch}.get(name, "396.00"))
    assert gpu_request.driver_of_stack(bare) == ([release] if release else None)
    problems = [text for text in gpu_contradictions.driver_contradictions(bare) if "Set nvidia_driver_version" in text]
    assert bool(problems) is (release is None)


def test_the_licence_is_asked_for_what_the_stack_decides():
    (problem,) = made(host()).problems
    assert "driver 470.82.01, CUDA 10.0, cuDNN 7.6.5.32: this is NVIDIA's" in problem
    assert "nvidia_license_accepted: true" in problem


def test_what_the_site_pins_is_taken_instead():
    pins = {**layer("450.80.02", "10.0", "7.6.4.38"), "cuda_versions": ["9.0", "10.0"]}
    assert part(made(host(**ACCEPTED, **pins))) == pins


DEBIAN = {"id": "debian", "family": "Debian", "short": "debian12", "name": "Debian GNU/Linux 12 (bookworm)"}


def on_debian(**variables: Any) -> list[str]:
    bare = invented_hosts.host("data1", (), variables, changed(os=DEBIAN))
    return gpu_contradictions.contradictions(gpu_request.GpuHost(bare, target.Target()))


@pytest.mark.parametrize(
    ("variables", "named", "way_out"),
    [
        ({"cuda_versions": ["12.2"]}, "CUDA 12.2 is requested", "cuda_versions: none,"),
        ({"cuda_versions": ["12.2"], "cuda_source": "runfile"}, "CUDA 12.2 is requested", "cuda_versions: none,"),
        (
            {"cudnn_versions": [{"version": "8.9.7.29", "cuda": "12.2"}], "nccl_versions": WISH["nccl_versions"]},
            "cuDNN 8.9.7.29; NCCL 2.4.8 are requested",
            "cudnn_versions: none and nccl_versions: none,",
        ),
    ],
)
def test_toolkits_and_libraries_are_for_rhel_alone(variables, named, way_out):
    (problem,) = on_debian(**variables)
    words = "CUDA, cuDNN and NCCL are installed on RHEL 7, 8 and 9 only, but the host has Debian GNU/Linux 12"
    assert problem.startswith(words)
    assert named in problem
    assert way_out in problem


@pytest.mark.parametrize("variables", [{"cuda_versions": "none"}, {"cuda_versions": [], "nccl_state": "absent"}])
def test_what_nobody_requests_is_no_problem_on_debian(variables):
    assert on_debian(**variables) == []


def test_a_driver_and_libraries_of_the_site_that_serve_are_left_alone():
    node = changed(
        nvidia={"installed": "450.80.02", "driver": "450.80.02", "module_kernels": KERNELS},
        cuda={"toolkits": {"10.0": "/usr/local/cuda-10.0"}, "cudnn": ["7", "7.6.4"]},
    )
    answer = made(host(node))
    assert answer.problems == []
    assert gpu_rows(answer) == {}


def test_what_this_project_installed_stays_and_is_looked_after():
    node = changed(
        nvidia={"installed": "460.91.03", "driver": "460.91.03", "module_kernels": KERNELS},
        cuda={"toolkits": {"10.0": "/usr/local/cuda-10.0"}, "cudnn": ["7", "7.6.4"]},
        managed={"cuda": ["10.0"], "cudnn": ["7.6.4.38"], "cudnn_items": [{"version": "7.6.4.38", "cuda": "10.0"}]},
    )
    damaged_receipt = {"digest": "0" * 12, "problem": "/usr/lib64/libcuda.so.460.91.03 was changed"}
    node["deeplearning"]["receipts"] = {role: damaged_receipt for role in gpu_request.ROLES[:3]}
    answer = made(host(node, **ACCEPTED))
    assert part(answer) == layer("460.91.03", "10.0", "7.6.4.38")
    assert "cuda_package_versions" not in answer.hosts["data1"]["gpu"], "a repair changes no release"
    assert {row.reason for row in gpu_rows(answer).values()} == {damaged_receipt["problem"]}


def test_the_libraries_of_the_stack_before_stay_for_its_environment():
    node = el8(
        nvidia={"installed": "580.178.04", "driver": "580.178.04", "module_kernels": KERNELS},
        cuda={"toolkits": {"10.0": "/usr/local/cuda-10.0"}, "cudnn": ["7", "7.6.5"]},
        managed={"cuda": ["10.0"], "cudnn": ["7.6.5.32"], "cudnn_items": [{"version": "7.6.5.32", "cuda": "10.0"}]},
    )
    answer = made(host(node, deeplearning_request="tf2.11-py39", **ACCEPTED))
    assert part(answer) == {
        "cuda_versions": ["10.0", "11.2"],
        "cudnn_versions": [{"version": "7.6.5.32", "cuda": "10.0"}, {"version": "8.1.1.33", "cuda": "11.2"}],
    }
    assert answer.hosts["data1"]["gpu"]["cuda_package_versions"] == {"11.2": "11.2.2"}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"cuda_versions": ["12.2"], "nvidia_driver_version": "535.104.05"}, "requires CUDA 10.0, but cuda_versions has 12.2"),
        ({"cuda_versions": []}, "requires CUDA 10.0, but cuda_versions has none and the host has none"),
        ({"cuda_versions": ["10.0", "12.2"], "nvidia_driver_version": "470.82.01"}, "CUDA 12.2 requires driver 525.60.13 or later"),
        ({"cudnn_versions": [{"version": "6.0.21", "cuda": "10.0"}]}, "cuDNN 6.0.21 is made for CUDA 8.0, but cudnn_versions names CUDA 10.0"),
        ({"cudnn_versions": [{"version": "6.0.21", "cuda": "8.0"}]}, "but cudnn_versions has 6.0.21"),
        ({"cudnn_versions": [{"version": "8.0.5.39", "cuda": "11.0"}]}, "but cudnn_versions has 8.0.5.39"),
        ({"nvidia_driver_version": "390.157"}, "requires driver 410.48 or later"),
        ({"cuda_default": "12.2"}, "cuda_default must be one of the host's toolkits (10.0), but is 12.2"),
        ({"nvidia_driver_source": "runfile"}, "requires nvidia_driver_version, the version of that file"),
        ({"cuda_source": "runfile"}, "requires an entry of cuda_runfiles for 10.0"),
    ],
)  # fmt: skip
def test_pinned_versions_that_contradict_the_stack_are_problems(variables, words):
    problems = made(host(**{**ACCEPTED, **variables})).problems
    assert any(words in problem and problem.startswith("data1: ") for problem in problems), problems


def test_a_part_that_the_site_installs_itself_is_no_warning_but_a_note_until_it_is_there():
    answer = made(host(**NOTHING))
    assert not any("is none" in warning for warning in answer.warnings)
    needs = {"nvidia_driver_version": "driver 410.48", "cuda_versions": "CUDA 10.0", "cudnn_versions": "cuDNN"}
    for name, requirement in needs.items():
        assert any(f"{name} is none and the host has no {requirement}" in note for note in answer.notes), answer.notes
    toolkits = {"10.0": "/usr/local/cuda-10.0"}
    node = changed(nvidia={"installed": "470.82.01"}, cuda={"toolkits": toolkits, "cudnn": ["7.6.5"]})
    assert not any("is none" in note for note in made(host(node, **NOTHING)).notes)


def test_a_build_host_gets_the_toolkit_that_is_named_and_no_driver():
    answer = made(host(changed(nvidia=NO_GPUS), groups=("build_hosts",), cuda_versions=["10.0"], **ACCEPTED))
    assert part(answer) == {"cuda_versions": ["10.0"]}


def test_a_library_of_which_no_release_is_known_is_a_problem(monkeypatch):
    monkeypatch.setattr(gpu_request, "exact", lambda *_: None)
    (problem,) = made(host(**ACCEPTED)).problems
    assert "requires cuDNN 7.6, but no release is known" in problem


def edge(stack: str, **parts: dict[str, Any]) -> plan_model.Plan:
    """The plan of an edge node without GPUs."""
    node = changed(**{"nvidia": NO_GPUS, **parts})
    node["pythons"]["3.6"] = "/usr/bin/python3.6"
    return made(host(node, groups=("edge_nodes",), deeplearning_request=stack, **ACCEPTED))


@pytest.mark.parametrize("stack", ["tf1.15-py36-el7", "tf1.15-py27-el7"])
def test_a_wheel_that_imports_without_cuda_gets_none_on_a_host_without_gpus(stack):
    """tensorflow-gpu 1.15.5 looks for CUDA when it runs, as tensorflow 1.15.0 does."""
    assert part(edge(stack)) == {}


def both(**edge_node: Any) -> list[plan_model.Host]:
    """A data node with a GPU and an edge node without one, of the white paper's set."""
    values = {"deeplearning_request": "tf1.4-py27-el7", **ACCEPTED}
    node = changed(nvidia={**NO_GPUS, "installed": "470.82.01"}) | edge_node
    return [host(**values), host(node, "edge1", ("edge_nodes",), **values), host(node, "mirror1", ("mirror_host",))]


def test_hosts_with_and_without_gpus_have_both_forms_of_a_set_in_one_environment():
    """Its jobs name one environment; only the data node can import the TensorFlow that is linked to the driver's library."""
    answer = made(*both())
    assert answer.problems == []
    data1, edge1 = answer.hosts["data1"], answer.hosts["edge1"]
    assert data1["environment"] == edge1["environment"]
    assert data1["environment"].startswith("tf1.4-py27-el7-")
    assert [host["stack"]["tensorflow_package"] for host in (data1, edge1)] == ["tensorflow-gpu", "tensorflow"]
    assert "cuda_versions" in data1["gpu"]
    assert "cuda_versions" not in edge1["gpu"]
    forms = ["tf1.4-cpu-py27-el7", "tf1.4-py27-el7"]
    assert [entry[0] for entry in answer.hosts["mirror1"]["mirror_environments"]] == forms
    contents = mirror_contents.contents(both(), (), REPOSITORY)
    assert sorted(name for name, _ in contents.environments) == forms


def test_a_form_for_hosts_without_gpus_that_has_another_package_is_refused(tmp_path, monkeypatch):
    """The environment's name would not change with that one."""
    gpu_form, cpu_form = (stacks.load_stack(name) for name in ("tf1.4-py27-el7", "tf1.4-cpu-py27-el7"))
    lock = cpu_form.lock_path("2.7").read_text()
    other_form = replace(cpu_form, directory=tmp_path)
    other_form.lock_path("2.7").parent.mkdir()
    other_form.lock_path("2.7").write_text(lock.replace("werkzeug==1.0.1", "werkzeug==1.0.0"))
    monkeypatch.setattr(stacks, "load_stack", lambda _: other_form)
    with pytest.raises(stacks.StackError, match=r"wheel alone, but do in 2\.7\."):
        _ = gpu_form.without_gpus


def test_a_form_for_hosts_without_gpus_that_does_not_exist_is_a_problem(monkeypatch):
    load_stack = stacks.load_stack
    stack = replace(load_stack("tf1.4-py27-el7"), data={**load_stack("tf1.4-py27-el7").data, "without_gpus": "lost"})
    monkeypatch.setattr(stacks, "load_stack", lambda name: stack if name == stack.name else load_stack(name))
    (problem,) = edge("tf1.4-py27-el7").problems
    assert "none is called 'lost'" in problem


def test_a_host_that_got_its_first_gpu_needs_the_other_form():
    name = made(*both()).hosts["edge1"]["environment"]
    locks = [stacks.load_stack("tf1.4-py27-el7").lock(), stacks.load_stack("tf1.4-cpu-py27-el7").lock()]
    gpu_form, cpu_form = (lock.section_digest("tensorflow") for lock in locks)
    facts = {"current": name, "receipts": {}, "environments": {name: {"problem": None, "lock": cpu_form}}}
    assert made(*both(deeplearning=facts)).problems == []
    facts["environments"][name]["lock"] = gpu_form
    (problem,) = made(*both(deeplearning=facts)).problems
    assert problem.startswith(f"edge1: {name} was installed there as on hosts with GPUs, but the host has 0 now.")


def test_a_wheel_that_is_linked_to_the_driver_is_a_problem_on_a_host_without_it(monkeypatch):
    monkeypatch.setattr(stacks.Stack, "without_gpus", None)
    (problem,) = edge("tf1.4-py27-el7").problems
    assert problem.startswith("data1: the TensorFlow of tf1.4-py27-el7 is linked to libcuda.so.1 of NVIDIA's driver")
    assert "tf1.4-cpu-py27-el7" in problem


def test_a_wheel_that_is_linked_to_the_driver_gets_cudas_libraries_beside_it(monkeypatch):
    monkeypatch.setattr(stacks.Stack, "without_gpus", None)
    answer = part(edge("tf1.4-py27-el7", nvidia={**NO_GPUS, "installed": "470.82.01"}))
    assert answer["cuda_versions"] == ["8.0"]
    assert "nvidia_driver_version" not in answer


def test_the_white_papers_set_takes_the_cudnn_that_exists_as_an_archive_only():
    gpu = made(host(deeplearning_request="tf1.4-py27-el7", **ACCEPTED)).hosts["data1"]["gpu"]
    assert (gpu["cudnn_versions"], gpu["cudnn_source"]) == ([{"version": "6.0.21", "cuda": "8.0"}], "tarball")
    host_plan = made(host(deeplearning_request="tf1.4-py27-el7", cudnn_source="package", **ACCEPTED)).hosts["data1"]
    assert host_plan["gpu"]["cudnn_source"] == "package"


def test_a_stack_for_the_cpu_decides_nothing():
    for variables in ({}, {"nvidia_driver_source": "runfile", "cuda_source": "runfile", "cuda_default": "12.2"}):
        assert part(made(host(deeplearning_request="tf1.15-cpu-py27-el7", **variables))) == {}


def test_a_stack_with_cuda_in_its_wheels_decides_the_driver_alone(monkeypatch):
    monkeypatch.setattr(gpu_request.GpuHost, "brings_wheels", True)
    assert part(made(host(**ACCEPTED))) == {"nvidia_driver_version": "470.82.01"}


@pytest.mark.parametrize(
    ("role", "required", "found", "good"),
    [
        ("cuda", "12.2", "12.4", True),
        ("cuda", "10.0", "10.1", False),
        ("cuda", "8.0", "8.0", True),
        ("cudnn", "7.6", "7.4.2", False),
        ("cudnn", "7.6", "7.6.5", True),
        ("cudnn", "8.1", "8.9.7", True),
        ("cudnn", "8.1", "9.1.0", False),
        ("cudnn", "6", "6.0.21", True),
        ("nccl", "2.16.5", "2.18.5", True),
        ("nccl", "2.16.5", "2.8.3", False),
    ],
)
def test_which_versions_serve_what_a_stack_was_built_with(role, required, found, good):
    assert gpu_request.serves(role, required, found) is good


def test_a_driver_that_goes_is_named_by_the_version_that_is_installed():
    node = changed(nvidia={"installed": "470.82.01", "driver": "470.82.01", "module_kernels": KERNELS})
    answer = made(host(node, **{**NOTHING, "nvidia_driver_state": "absent"}))
    assert part(answer) == {"nvidia_driver_version": "470.82.01"}


def test_the_open_module_in_a_request_is_that_of_the_driver():
    answer = made(host(el8(), deeplearning_request={"tensorflow": "2.11", "driver_module": "open"}, **ACCEPTED))
    assert answer.problems == []
    assert answer.hosts["data1"]["stack"]["driver_module"] == "open"


@pytest.mark.parametrize(
    ("variables", "nvidia", "warns"),
    [
        ({}, {}, True),  # the stack's own branch is installed
        ({"nvidia_driver_version": "470.82.01"}, {}, True),
        ({"nvidia_driver_version": "550.54.15"}, {}, False),
        ({"nvidia_driver_version": "none"}, {}, False),
        ({"nvidia_driver_version": "none"}, {"installed": "470.82.01"}, True),
    ],
)
def test_the_end_of_a_branch_is_a_warning_where_the_host_has_it(variables, nvidia, warns):
    words = "Driver branch 470 is past its end of life"
    answer = made(host(changed(nvidia=nvidia), **ACCEPTED, **variables))
    assert any(words in warning for warning in answer.warnings) is warns
