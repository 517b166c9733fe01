"""What the modules of the roles cdsw and container_runtime do to cdsw.conf and daemon.json."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
from test_exchange import killed, module_main

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = (REPOSITORY / "demo/cdsw/cdsw.conf").read_text(encoding="utf-8")
DRIVERS = "/var/lib/nvidia-docker/volumes/nvidia_driver"
WANTED = {"NVIDIA_GPU_ENABLE": "true", "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/418.67"}
NEWER = {**WANTED, "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/440.64"}
RUNTIME = {"args": [], "path": "nvidia-container-runtime"}
STEPS = ("chmod", "fchmod", "chown", "fchown", "rename")


def killed_runs(prepare: Callable[[], object], name: str, **arguments: Any) -> Iterator[int]:
    """Runs of the module, each on a prepared host, that end before the first of these steps, the second, …, until one ends by itself."""
    for point in range(20):
        prepare()
        dead = killed(module_main(name, arguments), point + 1, STEPS)
        yield point
        if not dead:
            return
    pytest.fail("the module does not end")


def readable_by_others(directory: Path) -> list[str]:
    return [str(path) for path in directory.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "cdsw.conf"
    path.write_text(SAMPLE, encoding="utf-8")
    path.chmod(0o640)
    return path


def set_keys(conf: Path, **arguments: Any) -> dict[str, Any]:
    return host_modules.run("cdsw_conf", path=str(conf), record=str(conf.parent / "opt/etc/cdsw.json"), **arguments)


def test_two_lines_change_and_every_other_stays(conf: Path) -> None:
    answer = set_keys(conf, settings=WANTED)
    assert (answer["changed"], answer["keys"]) == (True, sorted(WANTED))
    lines = conf.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line not in SAMPLE.splitlines()] == [f'{key}="{WANTED[key]}"' for key in WANTED]
    removed_lines = ["NVIDIA_GPU_ENABLE=false", 'NVIDIA_LIBRARY_PATH=""']
    assert [line for line in SAMPLE.splitlines() if line not in lines] == removed_lines
    assert conf.stat().st_mode & 0o777 == 0o640
    assert "a-secret" not in str(answer)
    assert set_keys(conf, settings=WANTED)["changed"] is False


def test_no_kill_opens_cdsw_conf_or_its_copy_to_others(conf: Path) -> None:
    def prepare() -> None:
        shutil.rmtree(conf.parent / "opt", ignore_errors=True)
        conf.write_text(SAMPLE, encoding="utf-8")
        conf.chmod(0o600)

    record = conf.parent / "opt/etc/cdsw.json"
    for point in killed_runs(prepare, "cdsw_conf", path=str(conf), record=str(record), settings=WANTED):
        assert readable_by_others(conf.parent) == [], point
    assert point >= 6, "mode and name of three files"
    assert Path(f"{record}.previous").read_text(encoding="utf-8") == SAMPLE


def test_the_diff_of_cdsw_conf_has_the_changed_lines_alone_and_no_login(conf: Path) -> None:
    set_keys(conf, settings={**WANTED, "DOMAIN": "a.example.com"})
    conf.write_text(conf.read_text() + 'HTTP_PROXY="http://service:a-secret@proxy.example.com:3128"\n')
    answer = set_keys(conf, settings={**NEWER, "HTTP_PROXY": "http://proxy:3128"}, _ansible_diff=True)
    assert answer["diff"]["before"].splitlines() == [
        'HTTP_PROXY="http://***@proxy.example.com:3128"',
        f'NVIDIA_LIBRARY_PATH="{DRIVERS}/418.67"',
    ]
    assert answer["diff"]["after"].count("\n") == 2


def test_values_are_compared_without_their_quotes_and_remarks(conf: Path) -> None:
    text = SAMPLE.replace("ENABLE=false", "ENABLE='true'  # since May").replace('PATH=""', f"PATH={DRIVERS}/418.67")
    conf.write_text(text, encoding="utf-8")
    assert set_keys(conf, settings=WANTED)["keys"] == []
    assert conf.read_text(encoding="utf-8") == text


def test_the_previous_file_comes_back_and_the_removal_knows_the_first(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    first = conf.read_text(encoding="utf-8")
    set_keys(conf, state="restarted")
    set_keys(conf, settings=NEWER)
    assert set_keys(conf, state="previous")["keys"] == ["NVIDIA_LIBRARY_PATH"]
    assert conf.read_text(encoding="utf-8") == first
    conf.write_text(first.replace("cdsw.example.com", "other.example.com"), encoding="utf-8")
    with_gpus = conf.read_text(encoding="utf-8")
    assert set_keys(conf, state="previous")["changed"] is False, "what the site changed since stays"
    set_keys(conf, state="restarted")
    assert set_keys(conf, state="absent")["changed"]
    assert conf.read_text(encoding="utf-8") == SAMPLE.replace("cdsw.example.com", "other.example.com")
    assert set_keys(conf, state="previous")["changed"], "the way back where CDSW does not come back without GPUs"
    assert conf.read_text(encoding="utf-8") == with_gpus


def test_a_removal_that_was_killed_before_the_restart_restarts_again(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    assert set_keys(conf, state="absent")["keys"] == sorted(WANTED)
    answer = set_keys(conf, state="absent")
    assert (answer["changed"], answer["keys"]) == (False, sorted(WANTED)), "the role restarts CDSW if there are keys"
    assert set_keys(conf, state="forgotten")["changed"]
    assert list((conf.parent / "opt/etc").iterdir()) == []
    assert set_keys(conf, state="absent")["keys"] == []


def test_a_change_that_was_killed_before_the_restart_restarts_again_and_goes_back_to_what_ran(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    set_keys(conf, state="restarted")
    text = conf.read_text(encoding="utf-8")
    set_keys(conf, settings=NEWER)
    answer = set_keys(conf, settings=NEWER)
    assert (answer["changed"], answer["keys"]) == (False, sorted(NEWER)), "the role restarts CDSW if there are keys"
    set_keys(conf, settings={**NEWER, "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/535.54.03"})
    set_keys(conf, state="previous")
    assert conf.read_text(encoding="utf-8") == text, "CDSW never ran with what came between"
    assert set_keys(conf, state="restarted")["changed"]
    assert set_keys(conf, settings=WANTED)["keys"] == []


@pytest.mark.parametrize("last", ["cdsw.json.previous", "cdsw.json"])
def test_a_run_killed_while_it_writes_is_completed(conf: Path, last: str) -> None:
    """`last`: the last of its own files that was written before cdsw.conf."""
    set_keys(conf, settings=WANTED)
    complete = conf.read_text(encoding="utf-8")
    if last == "cdsw.json.previous":
        (conf.parent / "opt/etc/cdsw.json").unlink()
    conf.write_text(SAMPLE, encoding="utf-8")
    assert set_keys(conf, settings=WANTED)["keys"] == sorted(WANTED)
    assert conf.read_text(encoding="utf-8") == complete
    assert set_keys(conf, settings=WANTED)["keys"] == sorted(WANTED)
    set_keys(conf, state="previous")
    assert conf.read_text(encoding="utf-8") == SAMPLE


def test_the_record_goes_where_cdsw_was_removed_meanwhile(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    conf.unlink()
    assert set_keys(conf, state="absent") | {"invocation": 0} == {"changed": False, "keys": [], "invocation": 0}
    set_keys(conf, state="forgotten")
    assert list((conf.parent / "opt/etc").iterdir()) == []


def test_a_key_that_was_not_there_leaves_with_its_line(conf: Path) -> None:
    conf.write_text("DOMAIN=x\n", encoding="utf-8")
    set_keys(conf, settings=WANTED)
    assert conf.read_text(encoding="utf-8").count("\n") == 3
    set_keys(conf, state="absent")
    assert conf.read_text(encoding="utf-8") == "DOMAIN=x\n"


def test_check_mode_names_the_keys_and_prints_nothing_else(conf: Path) -> None:
    answer = set_keys(conf, settings=WANTED, _ansible_check_mode=True)
    assert (answer["changed"], answer["keys"]) == (True, sorted(WANTED))
    assert "a-secret" not in str(answer)
    assert conf.read_text(encoding="utf-8") == SAMPLE


def test_a_value_that_a_shell_would_read_is_refused(conf: Path) -> None:
    answer = set_keys(conf, settings={"NVIDIA_LIBRARY_PATH": '/x"; reboot; "'})
    assert answer["failed"]
    assert "must be a key in capitals with a plain value" in answer["msg"]


def test_a_cdsw_conf_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    answer = set_keys(tmp_path / "cdsw.conf", settings=WANTED)
    assert answer["failed"]
    assert "cdsw.conf must be readable text that root may write" in answer["msg"]


# --- daemon.json ----------------------------------------------------------------------------------------------------

SITE = '{\n  "storage-driver": "devicemapper",\n  "log-opts": {"max-size": "10m"}\n}'


def places(directory: Path) -> dict[str, str]:
    return {"path": str(directory / "docker/daemon.json"), "record": str(directory / "opt/etc/daemon.json")}


def runtime(directory: Path, **arguments: Any) -> dict[str, Any]:
    return host_modules.run("daemon_json", **places(directory), **arguments)


def written(directory: Path, text: str) -> Path:
    path = directory / "docker/daemon.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_runtime_comes_beside_the_keys_of_the_site_and_leaves_without_a_trace(tmp_path: Path) -> None:
    path = written(tmp_path, SITE)
    assert runtime(tmp_path)["changed"]
    settings = json.loads(path.read_text(encoding="utf-8"))
    assert list(settings) == ["storage-driver", "log-opts", "runtimes"]
    assert settings["runtimes"] == {"nvidia": RUNTIME}
    assert runtime(tmp_path)["changed"] is False
    assert runtime(tmp_path, state="absent")["changed"]
    assert path.read_text(encoding="utf-8") == SITE
    assert runtime(tmp_path, state="absent")["changed"] is False


@pytest.mark.parametrize("state", ["present", "absent"])
def test_no_kill_opens_daemon_json_or_its_copy_to_others(tmp_path: Path, state: str) -> None:
    def prepare() -> None:
        shutil.rmtree(tmp_path / "opt", ignore_errors=True)
        written(tmp_path, SITE).chmod(0o600)
        if state == "absent":
            runtime(tmp_path)

    for point in killed_runs(prepare, "daemon_json", state=state, **places(tmp_path)):
        assert readable_by_others(tmp_path) == [], point
    assert point >= 2


def test_the_diff_of_daemon_json_has_the_runtime_alone(tmp_path: Path) -> None:
    written(tmp_path, json.dumps({"proxies": {"http-proxy": "http://service:a-secret@proxy:3128"}}))
    present, second_answer = runtime(tmp_path, _ansible_diff=True), runtime(tmp_path, _ansible_diff=True)
    absent = runtime(tmp_path, state="absent", _ansible_diff=True)
    assert "a-secret" not in f"{present}{second_answer}{absent}"
    assert (present["diff"]["before"], json.loads(present["diff"]["after"])) == ("", {"runtimes": {"nvidia": RUNTIME}})
    assert (json.loads(absent["diff"]["before"]), absent["diff"]["after"]) == ({"runtimes": {"nvidia": RUNTIME}}, "")
    assert second_answer["diff"]["before"] == second_answer["diff"]["after"]


def test_a_file_of_another_owner_keeps_its_owner_and_mode(tmp_path: Path) -> None:
    path = written(tmp_path, SITE)
    path.chmod(0o640)
    owner = (12345, 12346) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    runtime(tmp_path)
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (*owner, 0o640)


def test_what_the_site_changed_since_stays(tmp_path: Path) -> None:
    path = written(tmp_path, SITE)
    runtime(tmp_path)
    settings = {**json.loads(path.read_text(encoding="utf-8")), "debug": True}
    path.write_text(json.dumps(settings), encoding="utf-8")
    runtime(tmp_path, state="absent")
    assert json.loads(path.read_text(encoding="utf-8")) == {**json.loads(SITE), "debug": True}


def test_a_file_that_was_not_there_is_removed(tmp_path: Path) -> None:
    assert runtime(tmp_path)["changed"]
    assert (tmp_path / "docker/daemon.json").exists()
    runtime(tmp_path, state="absent")
    assert not (tmp_path / "docker/daemon.json").exists()


@pytest.mark.parametrize(
    "there",
    [RUNTIME, {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}],  # as nvidia-docker2 2.0.3 wrote it
)
def test_the_same_runtime_in_another_form_is_accepted(tmp_path: Path, there: dict[str, Any]) -> None:
    text = json.dumps({"runtimes": {"nvidia": there, "kata": {"path": "/opt/kata"}}})
    path = written(tmp_path, text)
    assert runtime(tmp_path)["changed"] is False
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{'runtimes': {}}", "must be JSON, a mapping, but is not"),
        ('["nvidia"]', "it or its runtimes is none"),
        ('{"runtimes": {"nvidia": {"path": "/opt/site/runtime"}}}', "that this project did not add"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_and_not_touched(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    answer = runtime(tmp_path)
    assert answer["failed"]
    assert words in answer["msg"]
    assert "It was left as it is" in answer["msg"]
    assert path.read_text(encoding="utf-8") == text
    assert not (tmp_path / "opt/etc/daemon.json").exists()


def test_check_mode_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, SITE)
    assert runtime(tmp_path, _ansible_check_mode=True)["changed"]
    assert path.read_text(encoding="utf-8") == SITE
