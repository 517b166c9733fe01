"""scripts/stack resolve --host and --inventory: one row for each host, and it is the plan's answer."""

import json
import subprocess
from pathlib import Path
from typing import Any

import agreement
import pytest
import yaml
from ansible_programs import LOCAL, UNREACHABLE
from stack_command import STACK, run

from hadoop_dl.cli import stack_hosts
from hadoop_dl.resolver import resolve
from hadoop_dl_dev import invented_hosts


def written(path: Path, system: str, gpu: str, hadoop: str, driver: str, **changed: Any) -> Path:
    """A file as `ansible -m host_facts --tree` writes it."""
    facts = invented_hosts.answer(agreement.parts(system, gpu, hadoop, driver))
    path.write_text(json.dumps({"changed": False, "facts": {**facts, **changed}}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("host", "request_"),
    [
        (("rhel-8.10", "10de:20b2", "cdp-7.1", "535.183.06"), {"tensorflow": "2.17"}),
        (("rhel-7.9", "V100-PCIE-16GB", "cdh-6.3", "430.50"), {"tensorflow": "1.15", "python": "2.7"}),
        (("rhel-9.4", "L40S", "apache-3.3.6", ""), {"tensorflow": "2.15"}),
    ],
)
def test_facts_in_a_file_get_the_stack_that_their_names_get(
    host: tuple[str, str, str, str], request_: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system, gpu, hadoop, driver = host
    host_request = {"os": system, "gpu": gpu, "hadoop": hadoop, **({"driver": driver} if driver else {})}
    expected = resolve({**host_request, **request_}, suggest=False)
    constraints = " ".join(f"{key}={value}" for key, value in request_.items())
    line = f"resolve --host {written(tmp_path / 'data1', *host)} {constraints}"
    status, output, errors = run(line, capsys)
    assert (status, errors) == (0, ""), output
    assert output.splitlines()[1].split() == ["data1", expected.name, expected.stack["python"], "–"]
    content = json.loads(run(f"{line} --format json", capsys)[1])
    assert (content["status"], content["problems"], content["hosts"][0]["stack"]) == ("ok", [], expected.name)
    assert yaml.safe_load(content["next"][0]) == {"deeplearning_request": request_}


def test_each_host_has_a_row_and_one_that_does_not_fit_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = written(tmp_path / "data1.example.com", "rhel-8.10", "10de:20b2", "cdp-7.1", "535.183.06")
    old = written(tmp_path / "data2.json", "rhel-8.10", "10de:20b2", "cdp-7.1", "470.57.02")
    status, output, _ = run(f"resolve --host {good} --host {old} tensorflow=2.17", capsys)
    assert status == 2
    assert [line.split()[0] for line in output.splitlines()[1:3]] == ["data1.example.com", "data2"]
    assert "470.57.02" in output.partition("Problems:")[2]
    assert "Do next" not in output
    (tmp_path / "other").mkdir()
    namesake = written(tmp_path / "other" / "data2", "rhel-8.10", "none", "", "")
    assert "two files are called data2" in run(f"resolve --host {old} --host {namesake}", capsys)[2]


def test_facts_without_a_form_are_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "data1", "rhel-8.10", "none", "cdp-7.1", "", glibc="2.28; rm -rf /")
    status, output, _ = run(f"resolve --host {path} tensorflow=2.17", capsys)
    assert status == 2
    assert output.splitlines()[1].split() == ["data1", "–", "–", "not", "read"]
    assert "for glibc, which must be a version" in output


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", "", "cannot be read as one. Write it with: ansible HOST"),
        ("[" * 9000, "", "cannot be read as one"),
        ('{"msg": "unreachable"}', "", "has none. Write it with"),
        ("{}", "--os rhel-9.4", "--os cannot be given with --host"),
        ("{}", "--explain", "--explain cannot be given with --host"),
        ("{}", "--inventory hosts", "--host cannot be given with --inventory"),
        ("{}", "tensorfow=1", "Did you mean tensorflow?"),
    ],
)
def test_misuse_is_a_sentence(
    text: str, options: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "facts").write_text(text, encoding="utf-8")
    status, output, errors = run(f"resolve --host {tmp_path / 'facts'} {options}", capsys)
    assert (status, output) == (1, "")
    assert words in errors


def test_the_next_step_of_an_inventory_names_it_and_its_own_request_is_not_repeated() -> None:
    """Paths may have spaces; if nothing was asked, the inventory has the request."""
    plan = {"hosts": {"data1": {"stack": {"name": "tf2.17-py311"}, "python": "3.11"}}, "problems": []}
    answers = stack_hosts.Answers({**plan, "problems_by_host": {}, "warnings": [], "unreachable": []}, {}, "my sites/a")
    assert answers.next == ["ansible-playbook -i 'my sites/a' playbooks/plan.yml"]
    assert answers.text().splitlines()[1].split() == ["data1", "tf2.17-py311", "3.11", "–"]


def test_an_inventorys_hosts_are_read_and_answered_by_the_plan(tmp_path: Path) -> None:
    groups = {"build_hosts": {"build1": LOCAL}, "data_nodes": {"data1": LOCAL, "gone1": UNREACHABLE}}
    children = {name: {"hosts": hosts} for name, hosts in groups.items()}
    site = {"deeplearning_request": "tf0.1", "mirror_url": "http://mirror1:8900", "mirror_mode": "external"}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"vars": site, "children": children}}), encoding="utf-8")

    def asked(*constraints: str) -> tuple[int, dict[str, Any]]:
        command = [STACK, "resolve", "--inventory", inventory, "--format", "json", *constraints]
        completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        return completed.returncode, json.loads(completed.stdout)

    status, content = asked()
    assert status == 2
    assert [(row["host"], row["read"]) for row in content["hosts"]] == [("build1", True), ("data1", True), ("gone1", False)]  # fmt: skip
    assert any("tf0.1" in problem for problem in content["hosts"][1]["problems"])
    _, content = asked("tensorflow=1.16")
    assert any("There is no TensorFlow 1.16" in problem for problem in content["hosts"][1]["problems"])
