"""All hosts go back to an earlier environment, or none: playbooks/rollback.yml with the real ansible-playbook; the hosts are directories."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import ansible_programs
import environment_records
import pytest
from environments import NAME as NEW
from environments import point, second_environment
from host_modules import run as run_module
from other_processes import ended
from python_files import write_script

from hadoop_dl.hosts import runs

OLD, OLDER = "old-stack-000000000001", "older-stack-000000000002"
GROUPS = {"data1": "data_nodes", "data2": "data_nodes", "edge1": "edge_nodes", "cdsw1": "cdsw_hosts"}


def activated(root: Path, name: str, number: int) -> None:
    (root / "envs" / name / ".deeplearning" / "activated.json").write_text(json.dumps({"number": number}))


def host(root: Path, stage: Path) -> None:
    """A host whose environments were active in this order: OLDER, OLD, NEW."""
    shutil.copytree(stage, root, symlinks=True)
    for number, name in enumerate((OLDER, OLD), 1):
        second_environment(root, name, number)
    activated(root, NEW, 3)


@pytest.fixture
def cluster(tmp_path, stages):
    hosts = {}
    for name in GROUPS:
        host(tmp_path / name, stages["active"])
        hosts[name] = {"environment_root": str(tmp_path / name)}
    ansible_programs.write_inventory(tmp_path / "hosts.yml", GROUPS, hosts)
    return tmp_path


def run(cluster: Path, *options: str, **variables: object) -> tuple[int, str]:
    playbook = ansible_programs.playbook_for_directories("rollback.yml", cluster)
    return ansible_programs.play("-i", cluster / "hosts.yml", playbook, "-e", json.dumps(variables), *options)


def active(cluster: Path) -> dict[str, str]:
    return {name: os.readlink(cluster / name / "current") for name in GROUPS}


def everywhere(name: str) -> dict[str, str]:
    return dict.fromkeys(GROUPS, f"envs/{name}")


def test_the_same_command_ends_where_a_killed_one_was_going(cluster):
    """Some hosts are switched and some are not; one has been released already."""
    for name in ("data1", "edge1", "cdsw1"):
        point(cluster / name, f"envs/{OLD}")
        activated(cluster / name, OLD, 4)
    pid = ended()
    for name in ("data1", "data2", "cdsw1"):
        record = runs.this_run(pid, "rollback.yml", OLD)
        (cluster / name / ".run.json").write_text(json.dumps(record), encoding="utf-8")
    code, output = run(cluster)
    assert (code, active(cluster)) == (0, everywhere(OLD)), output
    assert f"process {pid} is gone" in output
    assert not list(cluster.glob("*/.run.json"))


def test_an_earlier_one_is_named_by_its_name_or_its_stack_and_check_mode_changes_nothing(cluster):
    limit = ("--limit", "data1,cdsw1")
    code, output = run(cluster, "--check", *limit, rollback_to=OLDER)
    assert (code, active(cluster)) == (0, everywhere(NEW)), output
    assert f"{NEW} -> {OLDER}" in output
    code, output = run(cluster, *limit, rollback_to="older-stack")
    assert (code, active(cluster)) == (0, everywhere(NEW) | dict.fromkeys(("data1", "cdsw1"), f"envs/{OLDER}")), output


def test_hosts_where_it_is_gone_or_damaged_or_cannot_be_read_keep_all_and_are_named(cluster):
    shutil.rmtree(cluster / "edge1" / "envs" / f"{OLD}.1")
    (cluster / "edge1" / "envs" / OLD).unlink()
    shutil.rmtree(next((cluster / "data2" / "envs" / f"{OLD}.1").glob("lib/python*")))
    (cluster / "cdsw1" / "current").unlink()
    (cluster / "cdsw1" / "current").mkdir()
    code, output = run(cluster, rollback_to="old-stack")
    assert code == 2, output
    assert "edge1: old-stack is not installed" in output
    assert f"data2: {OLD}: " in output
    assert f"cdsw1: {cluster / 'cdsw1' / 'current'} must be a link to the active environment" in output
    assert "No host was changed" in output
    assert all(os.readlink(cluster / name / "current") == f"envs/{NEW}" for name in ("data1", "data2", "edge1"))


def test_the_hosts_of_one_cluster_go_back_to_one_environment(cluster):
    activated(cluster / "edge1", OLDER, 5)
    activated(cluster / "edge1", NEW, 6)
    code, output = run(cluster)
    assert (code, active(cluster)) == (2, everywhere(NEW)), output
    assert f"data_nodes and edge_nodes would go back to {OLD}, {OLDER}" in output


@pytest.mark.parametrize("refuses", ["its lock", "its rollback"])
def test_the_others_go_back_with_the_limit_that_the_first_message_names(cluster, stages, refuses):
    if refuses == "its lock":
        record = runs.this_run(os.getpid(), "site.yml", NEW)
        (cluster / "cdsw1" / ".run.json").write_text(json.dumps(record), encoding="utf-8")
        reason = "cdsw1 is being changed by"
    else:
        shutil.rmtree(cluster / "cdsw1")
        shutil.copytree(stages["active"], cluster / "cdsw1", symlinks=True)
        reason = f"cdsw1: no other environment was active (installed: {NEW})"
    code, output = run(cluster)
    assert (code, active(cluster)) == (2, everywhere(NEW)), output
    message = " ".join(output.partition("fatal: ")[2].partition("fatal: ")[0].split()).replace("''", "'")
    assert reason in message
    (limit,) = re.findall(r"--limit '([^']+)'", message)
    code, output = run(cluster, "--limit", limit)
    assert code == 0, output
    assert active(cluster) == {**everywhere(OLD), "cdsw1": f"envs/{NEW}"}


def test_an_unreachable_host_holds_nobody_back_and_keeps_what_it_has(cluster):
    ansible_programs.change_host(cluster / "hosts.yml", "data2", ansible_programs.UNREACHABLE)
    code, output = run(cluster)
    assert code == 4, output  # Ansible's status for unreachable hosts
    assert active(cluster) == {**everywhere(OLD), "data2": f"envs/{NEW}"}


def test_a_host_that_hangs_is_named_and_left_out_and_the_others_go_back(cluster):
    """The limits are those of the playbook, but a question may take 30 s here, not 60."""
    playbook = ansible_programs.playbook_for_directories("rollback.yml", cluster)
    playbook.write_text(playbook.read_text(encoding="utf-8").replace("timeout: 60", "timeout: 30"), encoding="utf-8")
    ssh = write_script(cluster / "ssh", "[ $# -lt 3 ] || exec sleep 600")
    variables = {"ansible_connection": "ssh", "ansible_ssh_executable": str(ssh)}
    ansible_programs.change_host(cluster / "hosts.yml", "data2", variables)
    code, text = ansible_programs.play("-i", cluster / "hosts.yml", playbook)
    assert code == 2, text
    assert active(cluster) == {**everywhere(OLD), "data2": f"envs/{NEW}"}
    assert (
        "data2 did not answer within 60 s and keep what is active there. The other hosts go back without them." in text
    )


def test_a_full_disk_does_not_prevent_the_way_back(tmp_path, small, stages):
    root = small("size=60m") / "data1"
    host(root, stages["active"])
    run_module("environment_activate", root=str(root), path=str(root / "envs" / NEW))  # as an earlier run did
    subprocess.run(["dd", "if=/dev/zero", f"of={root}/full", "bs=4096"], capture_output=True, check=False)
    back = {"root": str(root), "path": str(root / "envs" / OLD)}
    assert not run_module("environment_activate", state="ready", **back).get("failed")
    assert run_module("environment_activate", **back)["activated"]
    assert os.readlink(root / "current") == f"envs/{OLD}"
    shutil.rmtree(root / ".reserve", ignore_errors=True)  # without it, the disk is full
    subprocess.run(["dd", "if=/dev/zero", f"of={root}/more", "bs=4096"], capture_output=True, check=False)
    refusal = run_module("environment_activate", root=str(root), path=str(root / "envs" / NEW), state="ready")
    assert "No space left" in refusal["msg"], "nothing is reserved any more"


def settled(root: Path, name: str) -> None:
    """What roles leave on a host for this environment, as a run that ended well keeps it."""
    point(root, f"envs/{name}")
    settings, program = root / "etc" / "gpu-check.json", root / "bin" / "gpu-check"
    for path in (settings, program):
        path.parent.mkdir(exist_ok=True)
    settings.write_text(f"driver of {name}")
    program.write_text("the same program")
    for component, paths in (("gpu_check", [settings, program]), ("verify", [])):
        run_module(
            "receipt",
            component=component,
            digest=name,
            paths=list(map(str, paths)),
            state_directory=str(root / "state"),
        )
    assert run_module("environment_records", root=str(root), state="kept")["changed"]


def of_gpu_check(root: Path) -> tuple[str, str]:
    receipt = json.loads((root / "state" / "gpu_check.json").read_text())
    return (root / "etc" / "gpu-check.json").read_text(), receipt["digest"]


def test_after_a_switch_that_one_host_failed_all_go_back_with_their_receipts_and_forward_again(cluster):
    """The next site.yml with the old request has nothing to do: receipts, and what gpu-check expects, are those of the environment."""
    for name in ("data1", "edge1"):
        settled(cluster / name, OLD)
        settled(cluster / name, NEW)
    (cluster / "edge1" / "bin" / "gpu-check").write_text("another program, installed since")
    (cluster / "edge1" / ".new-current").mkdir()  # no rename can replace it
    code, output = run(cluster)
    assert (code, active(cluster)) == (2, everywhere(NEW)), output
    assert f"but edge1 did not switch. data1 is back at {NEW}." in output
    assert of_gpu_check(cluster / "data1") == (f"driver of {NEW}", NEW)
    (cluster / "edge1" / ".new-current").rmdir()
    code, output = run(cluster)
    assert (code, active(cluster)) == (0, everywhere(OLD)), "the order of activations is as before: " + output
    assert "Set deeplearning_request to old-stack in the inventory" in output
    assert f"{NEW} -> {OLD}" in output
    assert all((cluster / name / "envs" / OLDER).is_dir() for name in GROUPS)
    assert of_gpu_check(cluster / "data1") == (f"driver of {OLD}", OLD)
    assert json.loads((cluster / "data1" / "state" / "verify.json").read_text())["digest"] == OLD
    assert of_gpu_check(cluster / "edge1") == (f"driver of {NEW}", NEW), (
        "if the host was changed since, the roles run again"
    )
    code, output = run(cluster)
    assert (code, active(cluster)) == (0, everywhere(NEW)), output
    assert of_gpu_check(cluster / "data1") == (f"driver of {NEW}", NEW)


def test_a_receipt_that_comes_back_leaves_the_rows_of_what_came_since(tmp_path):
    """Otherwise a removal would leave Spark of the environment that was active before."""
    root, state = str(tmp_path), str(tmp_path / "state")
    records = []
    for name in ("old", "new"):
        run_module("own_files", component="tensorflowonspark", paths=[f"{root}/spark/{name}"], state="added", root=root)
        run_module("receipt", component="tensorflowonspark", digest=name, paths=[], state_directory=state)
        records.append(environment_records.recorded(root))
    _, [(path, text)] = environment_records.outdated(root, records[0])
    content = json.loads(text)
    assert (path, content["digest"]) == (f"{state}/tensorflowonspark.json", "old")
    assert [row["path"] for row in content["rows"]] == [f"{root}/spark/old", f"{root}/spark/new"]
    assert environment_records.outdated(root, records[1]) == (["tensorflowonspark"], [])


@pytest.mark.parametrize("name", ["rollback", "layers/canary", "layers/activate"])
def test_every_play_on_hosts_has_a_limit(name):
    assert {play["timeout"] for play in ansible_programs.plays_of(name) if "hosts" in play} <= {60, 300}
