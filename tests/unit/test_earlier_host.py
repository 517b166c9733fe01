"""A host that the version before installed is upgraded by one run of site.yml without installing again what did not change.

earlier_host.json is such a host: a data node with RHEL 7 and two P100 after a run of the version of 22 November 2026 (before
the layers of lib/hadoop_dl and the role _cuda_package), which planned nothing more for it. Its environment, seal, receipts
and records were written by that version's modules, plan and roles; the wheels are small ones, and the lock is theirs. The
name of the environment is the real one of that stack's lock. Of the scripts that activate it, sh's alone is there. ENVIRONMENT
stands for its directory. Files without a mode have 644, and all without a time that of the run.
"""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import environment_activate
import environment_check
import environment_seal
import locked_packages
import pytest
from ansible.module_utils.hadoop_dl_host import host_reader
from environments import Module

from hadoop_dl import plan
from hadoop_dl.data import stacks
from hadoop_dl.plan import gpu_request
from hadoop_dl.plan import model as plan_model

REPOSITORY = Path(__file__).resolve().parents[2]
EARLIER: dict[str, Any] = json.loads(Path(__file__).with_name("earlier_host.json").read_text(encoding="utf-8"))
TIME = 1795365926
STACK = EARLIER["variables"]["deeplearning_request"]
ENVIRONMENT = EARLIER["environments"][f"{STACK}/2.7"]["environment"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The host's file system."""
    for name, content in EARLIER["files"].items():
        entry = {"text": content} if isinstance(content, str) else content
        path = tmp_path / name.replace("ENVIRONMENT", f"/opt/deeplearning/envs/{ENVIRONMENT}")[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        if "link" in entry:
            path.symlink_to(entry["link"])
        elif "directory" in entry:
            path.mkdir()
            continue
        else:
            path.write_bytes(base64.b64decode(entry["base64"]) if "base64" in entry else entry["text"].encode())
            path.chmod(int(entry.get("mode", "644"), 8))
        os.utime(path, (entry.get("time", TIME),) * 2, follow_symlinks=False)
    for directory, _, _ in os.walk(tmp_path):
        Path(directory).chmod(0o755)
    return tmp_path


def facts_of(root: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(json.dumps(host_reader.read(str(root))))
    return {**facts, "architecture": "x86_64", "disk_free_mb": {"/opt": 90000}}


def planned(root: Path) -> plan_model.Plan:
    host = plan_model.host_of("data1", ["data_nodes"], EARLIER["variables"], facts_of(root))
    return plan.make_plan([host], REPOSITORY)


def content(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Every entry with what a reinstallation would change."""
    entries = {}
    for path in (directory, *sorted(directory.rglob("*"))):
        status = path.lstat()
        text = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        entries[str(path.relative_to(directory))] = (status.st_ino, status.st_mode, int(status.st_mtime), text)
    return entries


def test_the_plan_installs_nothing_again_and_removes_nothing(root):
    site_plan = planned(root)
    assert site_plan.problems == []
    rows = {row.component: row for row in site_plan.rows}
    # Roles whose files changed run once more: what they find is what is requested.
    assert rows.pop("deeplearning_command").reason == "missing"  # nor had it that command
    assert {row.reason for row in rows.values()} <= {"inputs changed"}
    for role in {*gpu_request.ROLES} & set(rows):
        assert rows[role].wanted.startswith(rows[role].now)  # files of cuDNN have three of the four numbers


def test_what_the_roles_recorded_is_read(root):
    facts = facts_of(root)
    assert facts["managed"]["cuda"] == ["10.0"]
    assert facts["managed"]["cudnn_items"] == [{"cuda": "10.0", "version": "7.6.5.32"}]
    assert facts["deeplearning"]["current"] == ENVIRONMENT
    [(name, environment)] = facts["deeplearning"]["environments"].items()
    assert (name, environment["problem"], environment["python"]) == (ENVIRONMENT, None, None)
    receipts = facts["deeplearning"]["receipts"]
    assert set(receipts) == {"nvidia_driver", "cuda", "cudnn", "gpu_check", "hadoop_client", "verify"}
    assert {name: receipt["problem"] for name, receipt in receipts.items()} == dict.fromkeys(receipts)


def steps(root: Path) -> list[tuple[Any, dict[str, Any]]]:
    """What the roles of the environment run, with a mirror that does not answer: nothing can come from there."""
    path, sections = str(root / "envs" / ENVIRONMENT), EARLIER["lock"]
    source = {"environment": path, "mirror_url": "http://127.0.0.1:9", "mirror_ca": None, "mirror_login": None}
    source.update(python=None, timeout=5)
    lock = "# Lock\n" + "".join(f"\n{sections[name]}" for name in sections)
    seal = {"path": path, "stack": STACK, "digest": ENVIRONMENT.rpartition("-")[2], "lock": lock, "imports": ["six"]}
    active: dict[str, Any] = {"root": str(root), "path": path, "state": "active", "keep": 1, "keep_names": []}
    return [
        *((locked_packages, {**source, "component": name, "lock": sections[name]}) for name in sections),
        (environment_seal, {**seal, "timeout": 5}),
        (environment_activate, {**active, "previous": "", "timeout": 5, "principal": "", "keytab": ""}),
    ]


def test_the_modules_leave_the_environment_as_it_is(root):
    """Also if the roles run, as with apply=all."""
    directory = root / "opt/deeplearning"
    environment = directory / "envs" / f"{ENVIRONMENT}.1"
    link = directory / "current"
    before, link_status = content(environment), (link.lstat().st_ino, link.lstat().st_mtime)
    results = [module.work(Module(parameters, False)) for module, parameters in steps(directory)]
    assert [result["changed"] for result in results] == [False] * 5
    assert content(environment) == before
    assert (link.lstat().st_ino, link.lstat().st_mtime) == link_status
    assert [row.component for row in planned(root).rows if row.component == "environment"] == []


def test_every_byte_of_the_environment_is_as_it_was_sealed(root):
    path = root / "opt/deeplearning/envs" / ENVIRONMENT
    assert environment_check.work(Module({"path": str(path)}, False)) == {"changed": False, "added": []}


SHIPPED = [(name, python) for name in stacks.stack_names() for python in stacks.load_stack(name).pythons]


@pytest.mark.parametrize(("stack", "python"), [pair for pair in SHIPPED if "/".join(pair) in EARLIER["environments"]])
def test_a_lock_that_did_not_change_has_its_environment(stack, python):
    """And one that changed has another one, beside it."""
    earlier = EARLIER["environments"][f"{stack}/{python}"]
    lock = stacks.load_stack(stack).lock(python)
    unchanged = hashlib.sha256(lock.text.encode()).hexdigest() == earlier["sha256"]
    assert (f"{stack}-{lock.digest}" == earlier["environment"]) is unchanged
