"""Ansible's own programs with the project's settings; hosts are directories of this machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
# Variables of a host that is this machine, as the user of the tests.
LOCAL = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
# The same for a host that a playbook only reads, in an inventory of lines.
READ_ONLY = "ansible_connection=local ansible_become=false ansible_python_interpreter=auto_silent"
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


def playbook_for_directories(name: str, directory: Path) -> Path:
    """A copy of the playbooks, of which this one takes hosts whose environment_root is another directory. Its own check refuses that."""
    copy = directory / "playbooks"
    if not copy.exists():
        shutil.copytree(REPOSITORY / "playbooks", copy)
        plays = yaml.safe_load((copy / name).read_text(encoding="utf-8"))
        assert "checked_inputs" in plays[0]["tasks"].pop(0)
        (copy / name).write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    return copy / name


def write_inventory(path: Path, groups: Mapping[str, str], hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Hosts of this machine with their variables; each is in one group."""
    children: dict[str, Any] = {}
    for name, group in groups.items():
        children.setdefault(group, {"hosts": {}})["hosts"][name] = dict(hosts[name])
    path.write_text(yaml.safe_dump({"all": {"vars": LOCAL, "children": children}}), encoding="utf-8")


def change_host(path: Path, name: str, variables: Mapping[str, Any]) -> None:
    """Give a host of such an inventory other variables."""
    inventory = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group in inventory["all"]["children"].values():
        if name in group["hosts"]:
            group["hosts"][name] |= variables
    path.write_text(yaml.safe_dump(inventory), encoding="utf-8")


def plays_of(name: str) -> list[dict[str, Any]]:
    """The plays of a file below playbooks/."""
    path = REPOSITORY / "playbooks" / f"{name}.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def imports(name: str) -> list[str]:
    """What each play of a playbook imports, or nothing."""
    return [play.get("ansible.builtin.import_playbook", "") for play in plays_of(name)]


def tasks_of(found: Any) -> Iterator[dict[str, Any]]:
    """Every task of a file: those of plays and blocks, too."""
    for item in found if isinstance(found, list) else ():
        yield item
        for part in ("pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from tasks_of(item.get(part))


@cache
def tasks_in(path: Path) -> tuple[dict[str, Any], ...]:
    """Every task of a file, which is read once."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(tasks_of(yaml.load(path.read_text(encoding="utf-8"), loader)))  # noqa: S506 (a safe loader)


def run(
    program: str, *arguments: str | Path, timeout: int = 300, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook, ansible or another one, without a terminal."""
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *map(str, arguments)],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def start(*arguments: str | Path, cwd: Path = REPOSITORY, **environment: str) -> subprocess.Popen[str]:
    """Start ansible-playbook in a session of its own, so that all of it can be killed. The directory's ansible.cfg is used."""
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "ansible-playbook"), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def play(*arguments: str | Path, timeout: int = 120, **environment: str) -> tuple[int, str]:
    """Exit status and output of ansible-playbook, without line breaks."""
    completed = run("ansible-playbook", *arguments, timeout=timeout, **environment)
    return completed.returncode, " ".join((completed.stdout + completed.stderr).split())


def play_tasks(
    directory: Path, tasks: list[Any], inventory: Mapping[str, Any], hosts: str = "all", **environment: str
) -> tuple[int, str]:
    """Run these tasks on hosts that are this machine. inventory: what is below `all`."""
    plays = [{"hosts": hosts, "gather_facts": False, "tasks": tasks}]
    (directory / "play.yml").write_text(json.dumps(plays))
    (directory / "hosts.yml").write_text(
        yaml.safe_dump({"all": {**inventory, "vars": {**LOCAL, **inventory.get("vars", {})}}})
    )
    return play("-i", directory / "hosts.yml", directory / "play.yml", **environment)
