"""The plan's part about driver, CUDA, cuDNN and NCCL that a site pins: one line for the licence, now → wanted."""

from typing import Any

import pytest
from gpu_layer_hosts import KERNELS, NODE, NOTHING, WISH, changed, gpu_rows, host, made

from hadoop_dl.plan import gpu_layer, gpu_request, target
from hadoop_dl_dev import invented_hosts


def installed() -> dict[str, Any]:
    """The node as it is once everything of WISH is there, with the receipts that the playbooks wrote."""
    node = changed(
        nvidia={"installed": "470.82.01", "driver": "470.82.01", "module_kernels": KERNELS},
        cuda={"toolkits": {"10.0": "/usr/local/cuda-10.0"}, "cudnn": ["7", "7.6.5"], "nccl": ["2", "2.4.8"]},
        managed={"cuda": ["10.0"], "cudnn": ["7.6.5.32"], "nccl": ["2.4.8"]},
    )
    digests = made(host(node, **WISH)).hosts["data1"]["digests"]
    node["deeplearning"]["receipts"] = {
        role: {"digest": digests[role], "problem": None} for role in (*gpu_request.ROLES, "gpu_check")
    }
    return node


def test_a_site_that_takes_care_itself_is_left_alone():
    answer = made(host(**NOTHING))
    assert answer.problems == []
    assert gpu_rows(answer) == {}
    assert answer.hosts["data1"]["needs"][:2] == ["gpu", "gpu_check"]  # a driver of the site's own is checked, too
    assert answer.hosts["data1"]["gpu"] == {}


def test_a_host_without_gpus_gets_none_of_it_and_is_told_so():
    answer = made(host(changed(nvidia={"gpus": []}), name="edge1", groups=("edge_nodes",), **WISH))
    assert answer.problems == []
    assert gpu_rows(answer) == {}
    gpu_warnings = [warning for warning in answer.warnings if "the host has no GPU" in warning]
    assert [warning.split()[1] for warning in gpu_warnings] == [
        gpu_request.variable(role) for role in gpu_request.ROLES
    ]


def test_a_bare_host_gets_all_of_it_before_the_environment():
    answer = made(host(**WISH))
    assert answer.problems == []
    needs = answer.hosts["data1"]["needs"]
    assert needs[:6] == ["gpu", "nvidia_driver", "cuda", "cudnn", "nccl", "gpu_check"]
    assert "needs_gpu" in answer.changes()[0]["groups"]
    rows = gpu_rows(answer)
    assert (rows["nvidia_driver"].now, rows["nvidia_driver"].wanted) == ("none", "470.82.01")
    assert (rows["cudnn"].now, rows["cudnn"].wanted) == ("none", "7.6.5.32")
    assert all(role in answer.table() for role in gpu_request.ROLES)


def test_a_host_that_is_as_wanted_is_not_addressed():
    answer = made(host(installed(), **WISH))
    assert answer.problems == []
    assert gpu_rows(answer) == {}
    assert "gpu" not in answer.hosts["data1"]["needs"]


@pytest.mark.parametrize(
    ("variables", "needed", "wanted"),
    [
        ({}, [], None),
        ({"gpu_check_gpu_count": "2"}, ["gpu", "gpu_check"], "inputs changed"),
        ({"gpu_check_state": "absent"}, ["gpu", "gpu_check"], "no longer requested"),
    ],
)
def test_gpu_check_follows_its_inputs(variables, needed, wanted):
    answer = made(host(installed(), **WISH, **variables))
    assert [need for need in answer.hosts["data1"]["needs"] if need.startswith("gpu")] == needed
    assert {row.reason for row in answer.rows if row.component == "gpu_check"} == ({wanted} if wanted else set())


def test_gpu_check_expects_the_driver_that_was_planned():
    for node in (NODE, installed()):
        answer = made(host(node, **WISH))
        assert answer.hosts["data1"]["gpu"]["gpu_check_driver_version"] == "470.82.01"


def test_gpu_check_stays_where_the_gpus_do_not_show_any_more_and_is_not_removed_where_it_is_not():
    node = installed()
    node["nvidia"]["gpus"] = []
    rows = [row for row in made(host(node, **WISH)).rows if row.component == "gpu_check"]
    assert [row.reason for row in rows] == ["inputs changed"], "it expects no driver version now, and is not removed"
    assert "gpu_check" not in made(host(gpu_check_state="absent")).hosts["data1"]["needs"]


def test_the_licence_is_one_line_for_all_hosts_and_everything_of_nvidias():
    wish = {**WISH, "nvidia_license_accepted": False}
    answer = made(host(**wish), host(name="data2", **wish))
    (problem,) = answer.problems
    assert problem.startswith("data1, data2: driver 470.82.01, CUDA 10.0, cuDNN 7.6.5.32, NCCL 2.4.8: ")
    assert "nothing of NVIDIA's was downloaded" in problem
    assert "nvidia_license_accepted: true" in problem


def test_the_licence_is_not_asked_for_what_is_there_or_goes():
    taken_back = {"nvidia_license_accepted": False, "nvidia_driver_license_accepted": "{{ nvidia_license_accepted }}"}
    assert gpu_rows(made(host(installed(), **{**WISH, **taken_back}))) == {}
    inputs = {"nvidia_driver_state": "absent", "cuda_state": "absent", "cudnn_versions": [], "nccl_state": "absent"}
    answer = made(host(installed(), **inputs))
    assert answer.problems == []
    assert {role: row.wanted for role, row in gpu_rows(answer).items()} == dict.fromkeys(gpu_request.ROLES, "none")


@pytest.mark.parametrize(
    ("parts", "role", "reason"),
    [
        ({"nvidia": {"module_kernels": KERNELS[:1]}}, "nvidia_driver", f"kernel {KERNELS[1]} has no module"),
        ({"nvidia": {"installed": None}}, "nvidia_driver", "missing"),
        ({"cuda": {"toolkits": {}}}, "cuda", "10.0 missing"),
        ({"cuda": {"cudnn": []}}, "cudnn", "7.6.5.32 missing"),
        ({"cuda": {"nccl": ["2", "2.4.2"]}}, "nccl", "2.4.8 missing"),
        ({"managed": {"cuda": ["8.0", "10.0"]}}, "cuda", "8.0 no longer requested"),
    ],
)
def test_what_differs_on_the_host_is_the_reason(parts, role, reason):
    node = installed()
    for part, values in parts.items():
        node[part].update(values)
    answer = made(host(node, **WISH))
    assert answer.problems == []
    assert {name: row.reason for name, row in gpu_rows(answer).items()} == {role: reason}


def test_a_host_that_keeps_its_toolkits_is_not_addressed_for_them_in_every_run():
    variables = {**WISH, "cuda_versions": []}
    assert gpu_rows(made(host(installed(), **variables)))["cuda"].reason == "10.0 no longer requested"
    for purge_enabled in (False, "no", "false"):
        assert gpu_rows(made(host(installed(), **variables, cuda_purge_enabled=purge_enabled))) == {}


@pytest.mark.parametrize(
    ("receipt", "reason"),
    [
        (None, "installed outside this project"),
        ({"digest": "0" * 12, "problem": None}, "inputs changed"),
        ({"digest": "0" * 12, "problem": "/usr/local/cuda does not point to cuda-10.0"}, "does not point"),
    ],
)
def test_receipts_tell_what_versions_do_not(receipt, reason):
    node = installed()
    node["deeplearning"]["receipts"]["cuda"] = receipt
    if receipt is None:
        del node["deeplearning"]["receipts"]["cuda"]
    rows = gpu_rows(made(host(node, **WISH)))
    assert list(rows) == ["cuda"]
    assert reason in rows["cuda"].reason


def test_another_stack_changes_nothing_about_cuda():
    node = installed()
    node["pythons"]["3.6"] = "/usr/bin/python3.6"
    assert gpu_rows(made(host(node, **{**WISH, "deeplearning_request": "tf1.15-py36-el7"}))) == {}


def test_another_driver_is_the_upgrades_work():
    wish = {**WISH, "nvidia_driver_version": "460.91.03"}
    answer = made(host(installed(), **wish))
    assert any("470.82.01 is installed" in problem and "upgrade_driver.yml" in problem for problem in answer.problems)
    answer = made(host(installed(), **wish), driver_upgrade=True)
    assert answer.problems == []
    assert gpu_rows(answer)["nvidia_driver"].reason == "another version is installed"
    assert "driver 470.82.01 runs; not allowed, it will be reported" in answer.table()


K20, T4, H100, B200, B300, RTX_PRO = "1021", "1eb8", "2330", "2901", "3182", "2bb5"
OPEN = {"nvidia_driver_module": "open"}
FROM_FILE = {"nvidia_driver_source": "runfile"}


def driver_problems(node: dict[str, Any], version: str, variables: dict[str, Any]) -> list[str]:
    bare = gpu_request.GpuHost(invented_hosts.host("data1", (), variables, node), target.Target())
    return gpu_layer.driver_problems(version, bare, upgrade=False)


@pytest.mark.parametrize(
    ("device", "version", "variables", "words"),
    [
        (K20, "535.104.05", {}, "branch any to 470"),
        (T4, "615.71.09", {}, "packages of the proprietary module end with branch 610"),
        (T4, "620.10", FROM_FILE, "the proprietary module ends with branch 615"),
        (RTX_PRO, "580.95.05", {}, "have no proprietary module"),
        (B200, "580.95.05", OPEN, "NVLink subnet manager (nvlsm)"),
        (B300, "580.95.05", OPEN, "set nvidia_driver_version: none"),
        (T4, "610.57.04", {}, ""),
        (T4, "615.71.09", OPEN, ""),
        (T4, "615.71.09", FROM_FILE, ""),
        (RTX_PRO, "580.95.05", OPEN, ""),  # Blackwell without NVLink
        (H100, "580.95.05", {}, ""),  # its NVSwitches need the fabric manager alone
    ],
)
def test_a_branch_module_or_fabric_that_the_gpus_cannot_have_is_refused_and_no_other(device, version, variables, words):
    node = changed(nvidia={"gpus": [{"vendor": "10de", "device": device}]}, os={"short": "el9"})
    problems = driver_problems(node, version, variables)
    assert len(problems) == bool(words)
    assert words in "".join(problems)


A100 = {"vendor": "10de", "device": "20f1"}


@pytest.mark.parametrize(
    ("nvidia", "name"),
    [
        ({"gpus": [{"vendor": "10de", "device": "1db6", "virtual": "GRID V100D-8Q"}]}, "GRID V100D-8Q"),
        ({"gpus": [], "listed": ["GRID V100D-8Q"]}, "GRID V100D-8Q"),
        ({"gpus": [{**A100, "subsystem": "1493"}] * 2}, "10de:20f1 (PCI subsystem 10de:1493)"),
        ({"gpus": [{**A100, "subsystem": "183d"}]}, "10de:20f1 (PCI subsystem 10de:183d)"),
    ],
)
def test_no_data_center_driver_is_planned_for_a_virtual_gpu(nvidia, name):
    node = changed(nvidia=nvidia)
    answer = made(host(node, nvidia_license_accepted=True))
    assert "nvidia_driver" not in gpu_rows(answer)
    assert any(problem.startswith(f"data1: {name} is a virtual GPU") for problem in answer.problems)
    (problem,) = driver_problems(node, "535.104.05", {})
    assert problem.startswith(f"{name} is a virtual GPU")
    assert "nvidia_driver_version: none" in problem


@pytest.mark.parametrize("subsystem", ["145f", "", None])
def test_a_card_with_its_own_subsystem_is_no_virtual_gpu(subsystem):
    assert driver_problems(changed(nvidia={"gpus": [{**A100, "subsystem": subsystem}]}), "535.104.05", {}) == []


@pytest.mark.parametrize(
    ("system", "short", "name"),
    [
        ("ubuntu", "ubuntu2204", "Ubuntu 22.04.4 LTS"),
        ("debian", "debian12", "Debian GNU/Linux 12 (bookworm)"),
        ("rhel", "el10", "Red Hat Enterprise Linux 10.0 (Coughlan)"),
    ],
)
def test_a_driver_for_a_system_that_nobody_tested_is_refused(system, short, name):
    node = changed(os={"id": system, "short": short, "name": name})
    (problem,) = driver_problems(node, "535.104.05", {})
    assert f"known on RHEL 7, 8 and 9, but the host has {name}. Install the driver there by its own means" in problem
    assert "nvidia_driver_version: none" in problem


def test_rhel_7_has_no_packages_of_the_open_module():
    node = changed(nvidia={"gpus": [{"vendor": "10de", "device": "1eb8"}]})
    words = "RHEL 7 has no packages of the open module"
    assert words in " ".join(driver_problems(node, "535.104.05", OPEN))
    assert words not in " ".join(driver_problems(node, "535.104.05", {**OPEN, **FROM_FILE}))


@pytest.mark.parametrize("switches", [0, 6])
def test_the_plan_tells_the_role_of_nvswitches(switches):
    """playbooks/group_vars/all.yml turns the fabric manager on by it."""
    node = changed(nvidia={"nvswitches": switches})
    assert made(host(node, **WISH)).hosts["data1"]["gpu"]["nvswitches"] == switches


def test_wheels_that_bring_cuda_are_told(monkeypatch):
    monkeypatch.setattr(gpu_request.GpuHost, "brings_wheels", True)
    assert any("has CUDA in its nvidia-* wheels" in warning for warning in made(host(**WISH)).warnings)


def test_nouveau_means_a_reboot_and_the_plan_says_so():
    node = changed(kernel={"modules": ["nouveau"]})
    for reboot_allowed in (True, "yes"):
        table = made(host(node, **{**WISH, "nvidia_driver_reboot_allowed": reboot_allowed})).table()
        assert "A reboot may be needed: data1 (nouveau holds the GPU; allowed)." in table
    assert "No reboot." in made(host(**WISH)).table()


def test_apply_all_runs_every_role_that_is_asked_for():
    assert set(gpu_rows(made(host(installed(), **WISH, apply="all")))) == set(gpu_request.ROLES)
