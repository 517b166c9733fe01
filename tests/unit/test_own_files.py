"""own_files: rows before files, links that are never taken from somebody else, and the way back."""

import json
from pathlib import Path
from typing import Any

import host_modules
import own_files
import pytest
import tensorflow_build_info
from ansible.module_utils.hadoop_dl_host import earlier_records, ledger, removal_reader
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock
from environments import Module

COMPONENT = "tensorflowonspark"
NOTHING: dict[str, Any] = {"paths": [], "accounts": [], "places": [], "state": "exact"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "usr").mkdir()
    return tmp_path / "deeplearning"


def paths_of(root: Path) -> list[str]:
    return [str(root / "bin/tfos-submit"), str(root.parent / "usr/tfos-submit")]


def run(root: Path, *paths: str, **more: Any) -> dict[str, Any]:
    return host_modules.run("own_files", component=COMPONENT, paths=list(paths), root=str(root), **more)


def install(root: Path) -> tuple[Path, Path]:
    assert run(root, *paths_of(root))["changed"] is True
    program, link = map(Path, paths_of(root))
    program.write_text("")
    return program, link


def test_a_component_has_its_rows_and_links_and_loses_all(root):
    assert run(root, *paths_of(root), _ansible_check_mode=True)["changed"] is True
    assert not root.exists()
    program, link = install(root)
    assert str(link.readlink()) == str(program)
    assert [row["path"] for row in ledger.rows(COMPONENT, str(root), "own")] == paths_of(root)
    assert run(root, *paths_of(root))["changed"] is False
    assert run(root, _ansible_check_mode=True)["removed"] == paths_of(root)
    assert link.exists()
    assert run(root)["changed"] is True
    assert (root.exists(), link.is_symlink()) == (False, False)
    assert run(root)["changed"] is False


def test_a_path_that_is_no_longer_requested_goes_and_one_that_is_only_added_does_not(root):
    program, link = install(root)
    assert run(root, str(root / "etc/a"), state="added")["changed"] is False
    assert [row["path"] for row in ledger.rows(COMPONENT, str(root), "own")] == [*paths_of(root), str(root / "etc/a")]
    assert run(root, str(program))["removed"] == [str(link)]
    assert (program.exists(), link.is_symlink()) == (True, False)
    assert run(root, str(root / "etc/a"), str(link), state="absent")["changed"] is False
    assert run(root, str(program), state="absent")["removed"] == [str(program)]
    assert not root.exists()


def test_keys_of_files_and_the_receipt_stay_beside_the_rows(root):
    install(root)
    host_modules.run("file_keys", component=COMPONENT, files={str(root.parent / "a.json"): {"a": 1}}, root=str(root))
    host_modules.run("receipt", component=COMPONENT, digest="0", paths=[], state_directory=str(root / "state"))
    assert run(root)["changed"] is True
    content = json.loads((root / "state" / f"{COMPONENT}.json").read_text())
    assert ([row["kind"] for row in content["rows"]], content["digest"]) == (["file", "key"], "0")


def test_directories_of_a_ledger_that_had_keys_alone_go(root):
    path = root.parent / "a.json"
    path.write_text("{}")
    for files in ({str(path): {"a": 1}}, {}):
        host_modules.run("file_keys", component=COMPONENT, files=files, root=str(root))
    assert list((root / "state").iterdir()) == []
    assert run(root)["changed"] is False
    assert not root.exists()


@pytest.mark.parametrize("kind", ["a file", "a directory", "a link to /opt/site/tfos-submit"])
def test_what_this_project_did_not_create_is_refused_and_stays(root, kind):
    path = root.parent / "usr/tfos-submit"
    if kind == "a file":
        path.write_text("of the site")
    elif kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to("/opt/site/tfos-submit")
    answer = run(root, *paths_of(root))
    assert f"{path} must be a link to {root}/bin/tfos-submit but is {kind}" in answer["msg"]
    assert [entry.name for entry in root.iterdir()] == [".lock"]
    path.rename(root.parent / "site")
    install(root)[1].unlink()
    (root.parent / "site").rename(path)
    assert run(root)["removed"] == [str(root / "bin/tfos-submit")]
    assert path.is_symlink() or path.exists()


def test_an_account_goes_and_a_place_is_known_until_the_component_goes(root, monkeypatch):
    """Unless they were there before: what the first run found counts, also if the directory changes."""
    commands: list[tuple[str, ...]] = []
    accounts = {"site"}
    monkeypatch.setattr(own_files, "has_account", lambda name: name in accounts)
    monkeypatch.setattr(own_files, "command", lambda *words: commands.append(words) or accounts.discard(words[1]))
    old, new = root.parent / "old", root.parent / "new"
    old.mkdir()

    def change(**requested: list[str]) -> bool:
        return bool(own_files.work(Module({**NOTHING, **requested}, False), "mirror", str(root))[0]["changed"])

    (root / "state").mkdir(parents=True)
    log = str(root.parent / "log")
    for place in (old, new):
        change(paths=[log], accounts=["site", "mirror"], places=[str(place)])
        accounts.add("mirror")
    new.mkdir()
    places = {row["path"]: row["existed"] for row in ledger.rows("mirror", str(root), "place")}
    assert places == {str(old): True, str(new): False}
    assert (change(), commands, accounts) == (True, [("userdel", "mirror")], {"site"})
    assert (old.is_dir(), new.is_dir()) == (True, True)
    assert change() is False


def test_what_builds_put_into_a_directory_goes_with_it_and_a_build_that_runs_keeps_all(root):
    old, new = root.parent / "old", root.parent / "new"
    old.mkdir()
    for place in (old, new):  # an inventory that named another one
        paths = [str(place / "source"), str(place / ".lock")]
        assert tensorflow_build_info.foreign_entries(str(place)) == []
        run(root, *paths, places=[str(place)], state="added")
        (place / "source/inside").mkdir(parents=True)
        with HostLock("building", 0, str(place)):
            assert "building (process" in run(root)["msg"]
        assert (place / "source/inside").exists()
    (old / "thesis.tex").write_text("keep")
    assert run(root)["changed"] is True
    assert (new.exists(), [path.name for path in old.iterdir()]) == (False, ["thesis.tex"])
    assert tensorflow_build_info.foreign_entries(str(old)) == ["thesis.tex"], "never recorded as this project's"


class Killed(BaseException):
    pass


def units(root: Path) -> list[str]:
    directory = root.parent / "etc/systemd/system"
    return [str(directory / name) for name in ("a.service", "a.timer", "x.service.d/deeplearning.conf")]


@pytest.mark.parametrize("call", range(4))
def test_a_removal_that_is_killed_anywhere_continues(root, monkeypatch, call):
    """Units are stopped before their files go, and systemd forgets them, also if the first run was killed between two steps."""
    calls: list[tuple[str, ...]] = []

    def command(program: str, *words: str) -> None:
        assert program == "systemctl"
        if len(calls) == call:
            calls.append(("killed",))
            raise Killed
        calls.append(words)

    monkeypatch.setattr(own_files, "command", command)
    parameters = {**NOTHING, "paths": units(root)}
    own_files.work(Module(parameters, False), "tensorboard", str(root))
    for path in map(Path, units(root)):
        path.write_text("")
    try:
        own_files.work(Module({**parameters, "paths": []}, False), "tensorboard", str(root))
    except Killed:
        own_files.work(Module({**parameters, "paths": []}, False), "tensorboard", str(root))
    assert [words for words in calls if words[0] == "disable"] == [
        ("disable", "--now", "a.timer"),
        ("disable", "--now", "a.service"),
    ]
    assert calls[-1] == ("daemon-reload",)
    assert not any(Path(path).exists() for path in units(root))
    assert list((root / "state").iterdir()) == []


def test_a_killed_installation_has_its_rows(root, monkeypatch):
    def killed(path: str) -> None:
        raise Killed

    monkeypatch.setattr(own_files.atomic_files, "make_directory", lambda path: killed(path) if "bin" in path else None)
    (root / "state").mkdir(parents=True)
    with pytest.raises(Killed):
        own_files.work(Module({**NOTHING, "paths": paths_of(root)}, False), COMPONENT, str(root))
    assert [row["path"] for row in ledger.rows(COMPONENT, str(root), "own")] == paths_of(root)


def test_a_unit_that_does_not_stop_is_named(monkeypatch):
    answer = own_files.processes.Answer(1, "", "", False, "it ended with status 1")
    monkeypatch.setattr(own_files.processes, "run", lambda argv, seconds: answer)
    with pytest.raises(own_files.Refused, match="`systemctl disable --now a.service` must work, but it ended"):
        own_files.command("systemctl", "disable", "--now", "a.service")


def test_own_files_of_release_0_2_are_known_by_their_names(tmp_path):
    """To be removed with earlier_records.py."""
    system, root = tmp_path / "system", tmp_path / "deeplearning"
    for path in (root / "bin/gpu-check", system / "etc/systemd/system/deeplearning-ticket-a.timer"):
        path.parent.mkdir(parents=True)
        path.write_text("")
    (system / "usr/local/bin").mkdir(parents=True)
    (system / "usr/local/bin/gpu-check").symlink_to(root / "bin/gpu-check")
    (system / "etc/pip.conf").symlink_to("/etc/site/pip.conf")
    (root / "etc").mkdir()
    (root / "etc/mirror.json").write_text('{"roots": {"/a": true}, "user_existed": false}')
    (system / "build/home").mkdir(parents=True)
    record = {"roots": {str(system / "build"): False}, "users": {"builder": True, "deeplearning-build": False}}
    (root / "etc/tensorflow_build.json").write_text(json.dumps(record))
    own = {name: earlier_records.own_rows(name, str(root), str(system)) for name in earlier_records.OWN}
    assert [row["path"] for row in own["gpu_check"]] == [
        str(root / "bin/gpu-check"),
        str(system / "usr/local/bin/gpu-check"),
    ]
    assert [len(own[name]) for name in ("tensorboard", "deeplearning_command", "mirror")] == [1, 0, 3]
    assert own["mirror"][:2] == [
        {"kind": "place", "path": "/a", "existed": True},
        {"kind": "account", "path": "deeplearning-mirror", "existed": False},
    ]
    assert [(row["kind"], row["path"]) for row in own["tensorflow_build"]] == [
        ("place", str(system / "build")),
        ("account", "builder"),
        ("account", "deeplearning-build"),
        ("own", str(system / "build/home")),
        ("own", str(root / "etc/tensorflow_build.json")),
    ]
    assert removal_reader.Removal(str(root)).build() == [str(system / "build"), "the account deeplearning-build"]
