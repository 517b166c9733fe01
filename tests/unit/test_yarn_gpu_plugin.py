"""A NodeManager's GPU plugin after a change of the driver: what it answers, and the module that its nvidia-smi keeps in the kernel."""

import json
import os
import subprocess
from typing import Any

import host_modules
import pytest
import python_files
import yaml
from ansible_programs import REPOSITORY
from loopback import Quiet, served
from resource_manager import write_settings

PLUGIN = python_files.load(REPOSITORY / "plugins/modules/yarn_gpu_plugin.py")
# As a NodeManager of 3.3.6 answers (tests/long/test_gpu_plugin.py).
TEN = "Failed to execute GPU device detection script (/usr/bin/nvidia-smi) for 10 times, skipping following executions!"
AFTER = "Failed to execute GPU device information detection script for 10 times, skip following executions."
ONCE = "Failed to execute GPU device detection script, failed times: 1"


def error(message: str) -> dict[str, Any]:
    return {"RemoteException": {"exception": "YarnException", "message": message}}


@pytest.mark.parametrize(
    ("code", "answer", "state", "words"),
    [
        (200, {"gpuDeviceInformation": {}, "totalGpuDevices": [{"index": 0, "minorNumber": 0}]}, "works", ""),
        (200, {"gpuDeviceInformation": {}, "totalGpuDevices": []}, "silent", "no totalGpuDevices"),
        (200, None, "silent", "no totalGpuDevices"),
        (500, error(TEN), "ended", "for 10 times"),
        (500, error(AFTER), "ended", "for 10 times"),
        (500, error(ONCE), "fails", "failed times: 1"),
        (404, {}, "silent", ""),
    ],
)
def test_what_a_nodemanager_says_of_its_gpus_is_one_of_four_states(tmp_path, code, answer, state, words):
    paths = []

    class Handler(Quiet):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.answer(code, json.dumps(answer).encode())

    with served(Handler) as address:
        settings = {"yarn.nodemanager.webapp.address": address.removeprefix("http://")}
        write_settings(tmp_path / "yarn-site.xml", settings)
        result = host_modules.run("yarn_gpu_plugin", conf_dir=str(tmp_path), patience=0)
    assert (result["state"], paths) == (state, ["/ws/v1/node/resources/yarn.io%2Fgpu"])
    assert words in result["words"]


@pytest.mark.parametrize(("name", "state"), [("127.0.0.1", "closed"), ("no-host.invalid", "silent")])
def test_a_nodemanager_that_does_not_run_is_told_from_one_that_gives_no_answer(tmp_path, name, state):
    write_settings(tmp_path / "yarn-site.xml", {"yarn.nodemanager.webapp.address": f"{name}:1"})
    assert host_modules.run("yarn_gpu_plugin", conf_dir=str(tmp_path), patience=0)["state"] == state


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "http://HERE:8042"),
        ({"webapp.address": "${yarn.nodemanager.hostname}:8142"}, "http://HERE:8142"),
        ({"webapp.address": "${yarn.nodemanager.hostname}:8142", "hostname": "d1"}, "http://d1:8142"),
        ({"webapp.address": "0.0.0.0:8142"}, "http://HERE:8142"),
        ({"webapp.address": "d1.example.com:81"}, "http://d1.example.com:81"),
        ({"webapp.https.address": "0.0.0.0:8144", "policy": "HTTPS_ONLY"}, "https://HERE:8144"),
    ],
)
def test_it_is_asked_at_its_own_address(monkeypatch, settings, address):
    monkeypatch.setattr(PLUGIN.socket, "getfqdn", lambda: "HERE")
    configuration = {f"yarn.nodemanager.{name}": value for name, value in settings.items()}
    configuration["yarn.http.policy"] = settings.get("policy", "HTTP_ONLY")
    assert PLUGIN.address(configuration) == address


@pytest.mark.parametrize(("looks", "status"), [(0, 0), (2, 0), (99, 1)])
def test_a_module_that_a_look_holds_is_unloaded_after_it(tmp_path, looks, status):
    """modprobe fails as long as an nvidia-smi has the devices open."""
    variables = yaml.safe_load((REPOSITORY / "roles/nvidia_driver/vars/main.yml").read_text(encoding="utf-8"))
    calls = tmp_path / "calls"
    programs = {
        "modprobe": f'echo "$*" >> {calls}\n[ $(wc -l < {calls}) -gt {looks} ] || {{ echo Module nvidia is in use. >&2; exit 1; }}\n',
        "sleep": "exit 0\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    completed = subprocess.run(
        variables["__nvidia_driver_unload"], env=path, capture_output=True, text=True, check=False
    )
    tries = calls.read_text(encoding="utf-8").splitlines()
    assert (completed.returncode, len(tries)) == (status, min(looks + 1, 11))
    assert set(tries) == {"-r nvidia_uvm nvidia_drm nvidia_modeset nvidia"}
    assert completed.stderr == ("Module nvidia is in use.\n" if status else "")
