"""Playbooks: each one in playbooks/ can be run alone, through the real ansible-playbook, and refuses in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PLAYBOOKS = sorted((REPOSITORY / "playbooks").glob("*.yml"))
PLAN_FIRST = [path for path in PLAYBOOKS if path.stem != "preflight"]
LOCAL = "ansible_connection=local ansible_become=false ansible_python_interpreter=auto_silent"


def play(playbook: str, tmp_path: Path, groups: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook against this machine, which the plan only reads."""
    text = "".join(f"[{group}]\n{name} {LOCAL}\n" for name, group in groups.items())
    (tmp_path / "hosts").write_text(text, encoding="utf-8")
    program = Path(sys.executable).parent / "ansible-playbook"
    return subprocess.run(
        [str(program), "-i", str(tmp_path / "hosts"), str(REPOSITORY / "playbooks" / playbook), *options],
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("path", PLAN_FIRST, ids=lambda path: path.stem)
def test_a_playbook_plans_before_it_addresses_hosts(path: Path) -> None:
    first = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    assert first["ansible.builtin.import_playbook"] == "preflight.yml"


def test_the_layers_see_the_same_variables_as_the_playbooks() -> None:
    here, there = (REPOSITORY / "playbooks" / name / "group_vars" / "all.yml" for name in ("", "layers"))
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("playbook", ["gpu.yml", "mirror.yml", "frameworks.yml", "hadoop.yml"])
def test_a_playbook_that_is_run_alone_says_what_it_would_do(playbook: str, tmp_path: Path) -> None:
    answer = play(playbook, tmp_path, {"build1": "build_hosts"}, "--check")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "PLAN: 1 hosts are as they should be; nothing to do." in answer.stdout
