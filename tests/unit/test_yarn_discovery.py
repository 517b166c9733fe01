"""What the role yarn_gpu makes of nvidia-smi -x -q, which a NodeManager runs as its own account."""

import os
from typing import Any

import pytest
from host_modules import run

from hadoop_dl.data.yarn_discovery import discovered, drop_in

# The elements as driver 580 prints them, of which Hadoop's GpuDeviceInformationParser reads the second.
CARD = '<gpu id="00000000:%02X:00.0">\n<uuid>GPU-1</uuid>\n<minor_number>%s</minor_number>\n</gpu>\n'


def answer(*minors: str, seconds: float = 1.5, rc: int = 0) -> dict[str, Any]:
    text = "".join(CARD % pair for pair in enumerate(minors))
    return {"rc": rc, "stdout": f"<nvidia_smi_log>\n{text}</nvidia_smi_log>", "seconds": seconds}


@pytest.mark.parametrize(
    ("result", "devices", "count", "words"),
    [
        (answer("1", "0"), "auto", 2, []),
        (answer("1", "0", seconds=8.4), "auto", 2, ["within 8 s", "needed 8.4", "yarn_gpu_devices", "(0:1,1:0)"]),
        (answer("1", "0", seconds=8.4), "0:1,1:0", 2, []),
        (answer(rc=124, seconds=60.0), "auto", 0, ["needed 60.", "such as 0:0,1:1"]),
        (answer("1", "N/A"), "auto", 2, ["of 2 GPUs only 1 have one", "yarn_gpu_devices"]),
        (answer("1", "N/A"), "0:1", 2, []),
        (answer("1", rc=9), "auto", 0, []),
        (answer(), "auto", 0, []),
        (answer("1"), "auto", 1, ["must list the 2 GPUs of the host, but lists 1 (0:1). Run gpu-check"]),
        (answer("1"), "0:1", 1, []),
        (answer("1", "0"), "0:1,1:7,2:8", 2, ["lists (0:1,1:0), but has 1:7, 2:8. Correct it."]),
        ({"skipped": True}, "auto", 0, []),
    ],
)  # fmt: skip
def test_what_a_nodemanager_would_find_is_known_before_its_restart(result, devices, count, words):
    look = discovered(result, devices, 2)
    assert (look["count"], bool(look["problem"])) == (count, bool(words))
    assert [word for word in words if word not in look["problem"]] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another account")
def test_a_program_runs_as_the_account_and_is_measured():
    result = run("limited_command", argv=["sh", "-c", "id -un; sleep 0.3"], user="nobody")
    assert result["stdout"] == "nobody"
    assert 0.3 <= result["seconds"] < 30
    refused = run("limited_command", argv=["true"], user="nobody-here")
    assert refused["msg"] == "user must be an account of this host, but is nobody-here. Nothing was run"


@pytest.mark.parametrize(
    ("command", "unit"),
    [
        ("systemctl restart hadoop-yarn-nodemanager", ["hadoop-yarn-nodemanager.service"]),
        ("/usr/bin/systemctl restart nm@1.service ", ["nm@1.service"]),
        ("sudo systemctl restart nm", ["nm.service"]),
        ("systemctl restart nm rm", []),
        ("systemctl restart ../../nm", []),
        ("service hadoop-yarn-nodemanager restart", ["hadoop-yarn-nodemanager.service"]),
        ("/sbin/service nm.service restart", ["nm.service"]),
        ("service nm restart && true", []),
        ("/opt/site/restart-nm", []),
        ("", []),
    ],
)
def test_a_unit_is_known_where_the_command_is_systemctls(command, unit):
    assert drop_in(command, "x.conf") == [f"/etc/systemd/system/{name}.d/x.conf" for name in unit]
