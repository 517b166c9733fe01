"""What builds of TensorFlow create on a host, and that nothing else is removed with it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import build_place, removal_reader
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked
from ansible_programs import REPOSITORY, tasks_in
from host_modules import run

Accounts = dict[str, SimpleNamespace]


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> Accounts:
    """The accounts of the host; userdel removes one."""
    entries = {
        "root": SimpleNamespace(pw_uid=0, pw_dir="/root"),
        "hdfs": SimpleNamespace(pw_uid=994, pw_dir="/var/lib/hadoop-hdfs"),
        "builder": SimpleNamespace(pw_uid=1200, pw_dir="/home/builder"),
    }

    def userdel(argv: list[str], seconds: int) -> Any:
        if argv[0] != "/usr/sbin/userdel":
            raise AssertionError(argv)
        entries.pop(argv[1])
        return SimpleNamespace(status=0, output="", error="", problem=None)

    monkeypatch.setattr(build_place, "account", entries.get)
    monkeypatch.setattr(build_place, "processes", SimpleNamespace(run=userdel))
    return entries


def built(root: Path, accounts: Accounts) -> None:
    """What the role makes after its record."""
    accounts.setdefault("deeplearning-build", SimpleNamespace(pw_uid=990, pw_dir=f"{root}/home"))
    for name in build_place.OWN:
        (root / name).mkdir(parents=True)
        (root / name / "inside").write_text("x")


@pytest.mark.parametrize("user", ["root", "hdfs"])
def test_an_account_of_the_system_that_the_role_did_not_make_never_builds(user, accounts, tmp_path):
    with pytest.raises(build_place.Refused, match=f"but {user} is there with uid {accounts[user].pw_uid}"):
        build_place.recorded({}, str(tmp_path / "build"), user)


def test_an_account_of_the_site_builds_and_stays(accounts, tmp_path):
    root = tmp_path / "build"
    record = build_place.recorded({}, str(root), "builder")
    assert record == {"roots": {str(root): False}, "users": {"builder": True}}
    built(root, accounts)
    build_place.remove(record, dry=False)
    assert "builder" in accounts
    assert not root.exists()


def test_a_removal_takes_what_the_role_made_and_nothing_else(accounts, tmp_path):
    root = tmp_path / "build"
    root.mkdir()
    record = build_place.recorded({}, str(root), "deeplearning-build")
    assert record == {"roots": {str(root): True}, "users": {"deeplearning-build": False}}
    built(root, accounts)
    (root / "thesis.tex").write_text("keep")
    assert build_place.recorded(record, str(root), "deeplearning-build") == record, "a later run finds what it made"
    dry = build_place.remove(record, dry=True)
    assert (root / "builds" / "inside").exists()
    assert build_place.remove(record, dry=False) == dry
    assert [path.name for path in root.iterdir()] == [".lock", "thesis.tex"]
    assert sorted(accounts) == ["builder", "hdfs", "root"]
    (root / "thesis.tex").unlink()
    build_place.remove(record, dry=False)
    assert list(root.iterdir()) == [], "the directory was there before"


def test_a_directory_with_entries_of_another_owner_is_refused(accounts, tmp_path):
    (tmp_path / "source").mkdir()
    with pytest.raises(build_place.Refused, match=f"new or empty directory.*but {tmp_path} has source"):
        build_place.recorded({}, str(tmp_path), "deeplearning-build")


def test_what_an_earlier_release_made_is_known_by_its_account(accounts, tmp_path):
    built(tmp_path / "build", accounts)
    record = build_place.recorded({}, str(tmp_path / "build"), "deeplearning-build")
    assert record == {"roots": {str(tmp_path / "build"): False}, "users": {"deeplearning-build": False}}


def test_an_account_that_has_the_name_of_the_removed_one_stays(accounts, tmp_path):
    record = {"roots": {str(tmp_path): False}, "users": {"builder": False}}
    assert build_place.present(record) == ([(str(tmp_path), [])], [])


def test_a_build_that_runs_keeps_all(accounts, tmp_path):
    root = tmp_path / "build"
    record = build_place.recorded({}, str(root), "deeplearning-build")
    built(root, accounts)
    with HostLock("building", 0, str(root)), pytest.raises(HostLocked):
        build_place.remove(record, dry=False)
    assert "deeplearning-build" in accounts
    assert (root / "builds" / "inside").exists()


def test_without_a_record_nothing_is_removed_or_listed(tmp_path):
    """The inventory names a directory; removal reads the record alone."""
    home = tmp_path / "home" / "alice"
    (home / "source").mkdir(parents=True)
    record = tmp_path / "etc" / "tensorflow_build.json"
    inputs = {"root": str(home), "user": "root", "record": str(record)}
    assert run("tensorflow_build_place", state="absent", **inputs)["removed"] == []
    assert (home / "source").exists()
    assert removal_reader.Removal(str(tmp_path)).build() == []


def test_the_record_is_written_before_the_first_change_and_goes_last(tmp_path):
    record, root = tmp_path / "etc" / "tensorflow_build.json", tmp_path / "build"
    inputs = {"record": str(record), "root": str(root), "user": "deeplearning-build-of-a-test"}
    assert run("tensorflow_build_place", state="recorded", _ansible_check_mode=True, **inputs)["creates_user"] is True
    assert not record.exists()
    assert run("tensorflow_build_place", state="recorded", **inputs)["changed"] is True
    assert run("tensorflow_build_place", state="recorded", **inputs)["changed"] is False
    assert json.loads(record.read_text())["roots"] == {str(root): False}
    (root / "source").mkdir(parents=True)
    assert removal_reader.Removal(str(tmp_path)).build() == [str(root), str(record)]
    paths = run("tensorflow_build_place", state="absent", record=str(record))["removed"]
    assert paths == [str(root / "source"), str(record)]
    assert not root.exists()


def test_the_role_records_first_and_the_removal_goes_by_the_record_alone():
    prepare = tasks_in(REPOSITORY / "roles/tensorflow_build/tasks/prepare.yml")
    assert prepare[0]["tensorflow_build_place"]["state"] == "recorded"
    assert prepare[1]["when"] == "__tensorflow_build_place.creates_user"
    removing = tasks_in(REPOSITORY / "playbooks/layers/remove.yml")
    places = [task["tensorflow_build_place"] for task in removing if "tensorflow_build_place" in task]
    assert places == [{"state": "absent"}]
