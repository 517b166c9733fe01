"""playbooks/report.yml and scripts/report with the real ansible-playbook: this machine is a host, and one port answers nobody."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import ansible_programs
import pytest
from ansible_programs import READ_ONLY, REPOSITORY
from resource_manager import application, gpu_node, gpus, serving, write_settings

HERE = f"[build_hosts]\nbuild1 {READ_ONLY}\n"
GONE = "gone1 ansible_host=127.0.0.1 ansible_port=1\n"
WRONG = f"[data_nodes]\ndata1 {READ_ONLY} deeplearning_request=tf0.1\n"


def report(tmp_path: Path, inventory: str, *options: str) -> tuple[int, str, str]:
    (tmp_path / "hosts").write_text(inventory, encoding="utf-8")
    return command(tmp_path, "-i", str(tmp_path / "hosts"), "--directory", str(tmp_path / "out"), *options)


def command(directory: Path, *arguments: str) -> tuple[int, str, str]:
    environment = {key: value for key, value in os.environ.items() if key != "ANSIBLE_CONFIG"}
    program = str(REPOSITORY / "scripts" / "report")
    options = {"capture_output": True, "text": True, "timeout": 120}
    completed = subprocess.run([program, *arguments], cwd=directory, env=environment, **options)
    return completed.returncode, completed.stdout, completed.stderr


@pytest.mark.parametrize(
    ("inventory", "status", "first"),
    [
        (HERE, 0, "1 host: 1 as planned."),
        (HERE + WRONG + GONE, 4, "3 hosts: 1 as planned, 1 drift, 1 unreachable."),
        (f"[data_nodes]\n{GONE}", 4, "1 host: 1 unreachable."),
    ],
    ids=["as planned", "unreachable", "nobody answers"],
)
def test_the_command_prints_the_text_alone_and_ends_as_hosts_stand(inventory, status, first, tmp_path):
    code, output, errors = report(tmp_path, inventory)
    assert (code, errors) == (status, ""), output + errors
    assert output.splitlines()[0].endswith(first)
    text = (tmp_path / "out" / "report.txt").read_text(encoding="utf-8")
    assert output == f"{text}\nThe page: {tmp_path / 'out' / 'report.html'}\n"
    assert "<title>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    report_ = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert (report_["status"], report_["inventory"]) == (status, [str(tmp_path / "hosts")])
    if GONE in inventory:
        assert "gone1: " in output
        assert "Connection refused" in output


def test_a_connection_that_hangs_is_a_row_after_the_time_of_the_task(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        inventory = f"gone1 ansible_host=127.0.0.1 ansible_port={port} ansible_ssh_timeout=60 ansible_ssh_retries=0\n"
        (tmp_path / "hosts").write_text(inventory, encoding="utf-8")
        arguments = ("-i", tmp_path / "hosts", "gone1", "-m", "report_facts", "--task-timeout", "3")
        completed = ansible_programs.run("ansible", *arguments, timeout=60)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "unanswered: no answer within 3 s" in completed.stdout


def test_json_for_machines_and_options_of_ansible(tmp_path):
    code, output, _ = report(tmp_path, HERE + WRONG + GONE, "--format", "json", "--limit", "build1,data1")
    states = {entry["host"]: entry["state"] for entry in json.loads(output)["hosts"]}
    assert (code, states) == (3, {"build1": "as planned", "data1": "drift"})


def test_a_master_names_who_holds_gpus_and_a_host_that_shows_none_makes_nobody_idle(tmp_path):
    """YARN's answers are a stand-in's; by them data1 has two GPUs."""

    def answer(path: str) -> Any:
        if path.endswith("/nodes"):
            return {"nodes": {"node": [{**gpu_node("data1", 2), "nodeHTTPAddress": "data1:8042"}]}}
        if path.endswith("/appattempts"):
            return {"appAttempts": {"appAttempt": [{"id": 1}]}}
        containers = [{"containerId": "container_1_0001_01_000001", "nodeHttpAddress": "data1:8042"}]
        running = [application(1, "RUNNING", user="anna", resourceInfo=gpus(2))]
        return {"container": containers} if path.endswith("/containers") else {"apps": {"app": running}}

    write_settings(tmp_path / "core-site.xml", {})
    inventory = f"[masters]\nmaster1 {READ_ONLY} yarn_gpu_conf_dir={tmp_path}\n[data_nodes]\ndata1 {READ_ONLY}\n"
    with serving(answer, tmp_path):
        _, output, errors = report(tmp_path, inventory)
    assert "  2 held, 0 busy, the use on data1 is not known: " in output, output + errors
    (row,) = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))["applications"]
    assert (row["user"], row["idle_since"]) == ("anna", None)


def test_without_a_new_report_an_old_one_is_not_printed(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("report.txt", "report.json", "report.html"):
        (tmp_path / "out" / name).write_text("{}", encoding="utf-8")
    code, output, errors = report(tmp_path, HERE, "--syntax-check")
    assert (code, output) == (1, "")
    assert "there is no new report" in errors


def test_a_directory_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "out").write_text("", encoding="utf-8")
    code, _, errors = report(tmp_path, HERE)
    assert code == 1
    assert "report_directory must be a directory that the controller can write" in errors
    assert "Traceback" not in errors


def test_misuse_is_a_sentence(tmp_path):
    code, _, errors = command(tmp_path)
    assert (code, "--inventory" in errors) == (1, True)
    expected = "report: the inventory must exist, but /nowhere does not. See: scripts/report --help\n"
    assert command(tmp_path, "-i", "/nowhere") == (1, "", expected)
