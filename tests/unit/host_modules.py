"""Runs a module of this project as Ansible does: a process of its own, with its arguments on standard input."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
BOOT = """
import runpy, sys, hadoop_dl
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(name: str, /, **arguments: Any) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BOOT, str(PLUGINS / "modules" / f"{name}.py")]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
    process.stdin.close()
    process.stdin = None
    return process


def answer(process: subprocess.Popen[str], seconds: float = 60) -> dict[str, Any]:
    output, _ = process.communicate(timeout=seconds)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    assert lines, output  # a traceback
    return json.loads(lines[-1])


def run(name: str, /, **arguments: Any) -> dict[str, Any]:
    return answer(start(name, **arguments))


def has(**more: Any) -> dict[str, Any]:
    """What a host answers that has this and nothing else."""
    lists = dict.fromkeys(("environments", "container_runtime", "build", "mirror", "stays", "users"), [])
    parts = dict.fromkeys(("yarn_gpu", "cdsw", "gpu", "bazel", "applications"), {})
    return {**lists, **parts, "hdfs": {"files": [], "directories": [], "user": ""}, **more}
