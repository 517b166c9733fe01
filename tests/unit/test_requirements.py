"""What a role would refuse later is refused by the plan: files on the controller, paths and accounts on hosts, the mirror's port, groups."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_programs import READ_ONLY, run
from plan_hosts import changed_node, made, make_host

from hadoop_dl.hosts import host_script
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import requirements
from hadoop_dl.plan.problems import mirror_problems

REPOSITORY = Path(__file__).resolve().parents[2]
GPUS = {"gpus": [{"vendor": "10de", "device": "1eb8", "address": "0000:3b:00.0"}]}
KEY = str(Path(__file__))
ENGINE = {"cdsw_engine_stack": "tf1.15-py36-el7", "cdsw_engine_base": "cdsw/engine:13"}


def named(paths: dict[str, bool] | None = None, **accounts: Any) -> dict[str, Any]:
    return changed_node(named={"paths": paths or {}, "accounts": accounts})


def problems(*hosts: plan_model.Host) -> list[str]:
    return made(*hosts).problems


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cuda_repository_key", "/nowhere/nvidia.asc"),
        ("bazel_repository_key", "nowhere.asc"),
        ("cdsw_engine_cuda_key", "/nowhere/key.asc"),
        ("nvidia_driver_runfile", "/nowhere/driver.run"),
        ("nvidia_driver_repository_key", "/etc"),
        ("mirror_files", {"x.tgz": {"file": "/nowhere/x.tgz", "sha256": "0" * 64}}),
        ("tensorflow_build_source", {"file": "/nowhere/x.bundle", "sha256": "0" * 64}),
    ],
)
def test_a_file_that_the_controller_lacks_is_refused(name, value):
    (problem,) = problems(make_host(**{name: value}))
    assert problem.startswith(f"data1: {name} must name a file on the controller, but there is no ")


def test_files_that_the_controller_has_and_addresses_are_accepted():
    archive = {"file": "https://example.com/x.tgz", "sha256": "0" * 64}
    assert problems(make_host(cuda_repository_key=KEY, mirror_files={"x.tgz": archive}, mirror_ca="/etc/ca.pem")) == []


@pytest.mark.parametrize(
    ("groups", "name", "node"),
    [
        (("data_nodes",), "hadoop_client_hadoop_home", {}),
        (("data_nodes",), "hadoop_client_java_home", {}),
        (("edge_nodes",), "spark_home", {}),
        (("build_hosts",), "nvidia_driver_signing_certificate", {"nvidia": {**changed_node()["nvidia"], **GPUS}}),
    ],
)
def test_a_path_that_the_host_lacks_is_refused(groups, name, node):
    answer = {**named({"/opt/x": False}), **node}
    refusals = [text for text in problems(make_host(groups=groups, node=answer, **{name: "/opt/x"})) if name in text]
    assert refusals == [
        f'data1: {name} must name what the host has, but there is no "/opt/x". Correct it, or remove it from the inventory.'
    ]
    for other_node in ({**named({"/opt/x": True}), **node}, {**changed_node(), **node}):
        assert not any(
            "must name what" in text for text in problems(make_host(groups=groups, node=other_node, **{name: "/opt/x"}))
        )


def test_a_path_of_other_hosts_is_not_missing_here():
    """group_vars/all has the client's home, and the mirror's host has no Hadoop."""
    host = make_host("mirror1", ("mirror_host",), named({"/opt/x": False}), hadoop_client_hadoop_home="/opt/x")
    assert problems(host) == []


@pytest.mark.parametrize(
    ("group", "name", "account", "refused"),
    [
        ("build_hosts", "tensorflow_build_user", {"uid": 27, "home": "/var/lib/mysql"}, True),
        ("build_hosts", "tensorflow_build_user", {"uid": 0, "home": "/root"}, True),
        ("build_hosts", "tensorflow_build_user", {"uid": 990, "home": "/var/lib/deeplearning-build/home"}, False),
        ("build_hosts", "tensorflow_build_user", {"uid": 1001, "home": "/home/builder"}, False),
        ("build_hosts", "tensorflow_build_user", None, False),
        ("edge_nodes", "upgrade_canary_user", {"uid": 27, "home": "/var/lib/mysql"}, True),
        ("edge_nodes", "upgrade_canary_user", {"uid": 1001, "home": "/home/analyst"}, False),
        ("data_nodes", "upgrade_canary_user", {"uid": 27, "home": "/var/lib/mysql"}, False),
    ],
)
def test_an_account_of_the_system_is_refused_unless_the_role_made_it(group, name, account, refused):
    host = make_host(groups=(group,), node=named(someone=account), **{name: "someone"})
    account_problems = [problem for problem in problems(host) if name in problem]
    assert bool(account_problems) is refused
    assert not account_problems or "someone has " in account_problems[0]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"mirror_url": "http://mirror1:8901"}, "mirror_port 8900, but has 8901"),
        ({"mirror_url": "http://mirror1"}, "mirror_port 8900, but has 80"),
        ({"mirror_port": 9000}, "mirror_port 9000, but has 8900"),
        ({"mirror_url": "https://mirror1:8900"}, "begins with https:// if mirror_tls_certificate"),
        ({"mirror_url": "http://mirror1:8901", "mirror_server": "none"}, ""),
        ({"mirror_url": "https://mirror1", "mirror_mode": "external"}, ""),
        ({"mirror_tls_certificate": KEY, "mirror_tls_key": KEY, "mirror_url": "https://mirror1:8900"}, ""),
        ({"mirror_tls_certificate": KEY, "mirror_tls_key": KEY}, "begins with https:// if mirror_tls_certificate"),
    ],
)
def test_the_mirror_serves_at_its_address(variables, words):
    address_problems = problems(make_host("mirror1", ("mirror_host",), **variables))
    assert [problem for problem in address_problems if words not in problem] == []
    assert len(address_problems) == bool(words)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"cdsw_engine_cuda_packages": ["cuda-libraries-10-0=10.0.130-1"]},
            "set cdsw_engine_cuda_repository (http://…) and cdsw_engine_cuda_key",
        ),
        ({"cdsw_engine_stack": "tf0.1"}, "cdsw_engine_stack cannot be used. The name of a stack is required"),
        ({"cdsw_engine_stack": "tf0.1", "cdsw_engine_python": "3.9"}, "cdsw_engine_stack cannot be used."),
        ({"cdsw_engine_python": "3.11"}, "cdsw_engine_python must be one of the Pythons of tf1.15-py36-el7"),
        ({"cdsw_engine_version": "1"}, ""),
    ],
)
def test_an_engine_that_cannot_be_built_is_refused_with_its_input(variables, words):
    engine_problems = problems(make_host(), make_host("engine1", ("cdsw_engine_host",), **{**ENGINE, **variables}))
    assert any(words in problem for problem in engine_problems) if words else engine_problems == []


def test_a_group_that_is_nearly_one_of_ours_is_refused():
    hosts = [make_host(), make_host("edge1", ("edgenodes", "rack4"))]
    (problem,) = problems(*hosts)
    assert problem.startswith("edge1: it must be in one of the groups mirror_host, data_nodes")
    assert "but is in edgenodes. Rename that group to edge_nodes" in problem
    for groups in (("edgenodes", "data_nodes"), ("zookeepers",)):
        assert problems(make_host(), make_host("edge1", groups)) == []


def test_environments_without_a_mirror_host_are_refused():
    hosts = [make_host(), make_host("data2", mirror_mode="external"), make_host("build1", ("build_hosts",))]
    (problem,) = mirror_problems(hosts, [])
    assert problem.startswith("data1: its environment comes from the mirror, but no host is in the group mirror_host.")
    assert mirror_problems(hosts, ["mirror1"]) == []


@pytest.mark.parametrize("script", [host_script.reader, host_script.report_reader], ids=["plan", "report"])
def test_a_host_is_asked_for_the_paths_and_accounts_that_its_inputs_name(script, tmp_path):
    account = pwd.getpwuid(os.getuid())
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.11-2.4.0-cdh6.3.4.jar").touch()
    text = script([str(tmp_path), "/no'where\"", account.pw_name, "nobody-at-all"])
    completed = subprocess.run(
        [sys.executable, "-E", "-s", "-"], input=text, capture_output=True, text=True, timeout=60, check=True
    )
    answer = json.loads(completed.stdout)
    assert answer.get("facts", answer)["named"] == {
        "paths": {str(tmp_path): True, "/no'where\"": False},
        "accounts": {account.pw_name: {"uid": account.pw_uid, "home": account.pw_dir}, "nobody-at-all": None},
        "sparks": {str(tmp_path): "2.4.0"},
    }


def test_the_paths_of_a_host_are_its_own_values_of_its_inputs(tmp_path):
    (tmp_path / "hosts").write_text(f"[data_nodes]\ndata1 {READ_ONLY} place={tmp_path}\n", encoding="utf-8")
    values = {
        "hadoop_client_hadoop_home": "{{ place }}/none",
        "hadoop_client_java_home": "{{ place }}",
        "spark_home": "{{ nowhere }}",
        "tensorboard_services": [{"keytab": "{{ place }}/keytab", "user": "nobody-at-all"}, "x", {"port": 1}],
    }
    answer = run("ansible", "-i", str(tmp_path / "hosts"), "data1", "-m", "host_facts", "-e", json.dumps(values))
    assert answer.returncode == 0, answer.stdout
    assert f"{tmp_path}/none: false" in answer.stdout
    assert f"{tmp_path}: true" in answer.stdout
    assert f"{tmp_path}/keytab: false" in answer.stdout
    assert "nobody-at-all: null" in answer.stdout


def test_a_file_below_the_operators_home_is_found(monkeypatch, tmp_path):
    """Ansible expands it, too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key.pem").write_text("x", encoding="utf-8")
    assert [path.is_file() for path in requirements.places("~/key.pem", tmp_path)] == [True]


def test_an_address_that_needs_the_plan_is_not_compared_yet():
    assert not list(requirements.served_elsewhere({"mirror_url": "http://{{ stack.name }}:8900"}))


def test_one_machine_under_two_names_is_refused():
    """It would be two hosts of a batch, with two locks of one file."""
    hosts = [make_host("data1", ansible_host="10.0.0.1"), make_host("data2", ansible_host="10.0.0.1")]
    words = "Each machine must have one name in the inventory, but data1 and data2 have the same address (10.0.0.1). Remove all names but one."
    assert words in problems(*hosts)
    assert problems(make_host("data1", ansible_host="h"), make_host("data2", ansible_host="h", ansible_port=2222)) == []


def test_a_batch_that_differs_between_hosts_is_refused():
    (problem,) = problems(make_host("data1", upgrade_batch=1), make_host("data2", upgrade_batch="50%"))
    assert problem.startswith("upgrade_batch must be the same for all hosts, but is 1 and 50%.")


@pytest.mark.parametrize(
    ("url", "other"),
    [("http://mirror2:8900", "mirror2"), ("http://10.0.0.2:8900/", "mirror2"), ("http://cdn:8900", "")],
)
def test_a_mirror_at_the_address_of_another_host_is_refused(url, other):
    """mirror1 would be filled, and mirror2 asked. The name service may have other names of mirror1."""
    mirror = make_host("mirror1", ("mirror_host",), mirror_url=url)
    found = problems(mirror, make_host("mirror2", ("edge_nodes",), mirror_url=url, ansible_host="10.0.0.2"))
    text = f"mirror_url must be the address of a host in the group mirror_host, but {url} is that of {other}."
    assert [problem.startswith(text) for problem in found] == ([True] if other else [])
