"""What the modules of the roles cdsw and container_runtime do to cdsw.conf and daemon.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import host_modules
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = (REPOSITORY / "demo/cdsw/cdsw.conf").read_text(encoding="utf-8")
DRIVERS = "/var/lib/nvidia-docker/volumes/nvidia_driver"
WANTED = {"NVIDIA_GPU_ENABLE": "true", "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/418.67"}
NEWER = {**WANTED, "NVIDIA_LIBRARY_PATH": f"{DRIVERS}/440.64"}
RUNTIME = {"args": [], "path": "nvidia-container-runtime"}


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
    assert [line for line in SAMPLE.splitlines() if line not in lines] == [
        "NVIDIA_GPU_ENABLE=false",
        'NVIDIA_LIBRARY_PATH=""',
    ]
    assert conf.stat().st_mode & 0o777 == 0o640
    assert "a-secret" not in str(answer)
    assert set_keys(conf, settings=WANTED)["changed"] is False


def test_values_are_compared_without_their_quotes_and_remarks(conf: Path) -> None:
    text = SAMPLE.replace("ENABLE=false", "ENABLE='true'  # since May").replace('PATH=""', f"PATH={DRIVERS}/418.67")
    conf.write_text(text, encoding="utf-8")
    assert set_keys(conf, settings=WANTED)["keys"] == []
    assert conf.read_text(encoding="utf-8") == text


def test_the_previous_file_comes_back_and_the_removal_knows_the_first(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    first = conf.read_text(encoding="utf-8")
    set_keys(conf, settings=NEWER)
    assert set_keys(conf, state="previous")["keys"] == ["NVIDIA_LIBRARY_PATH"]
    assert conf.read_text(encoding="utf-8") == first
    conf.write_text(first.replace("cdsw.example.com", "other.example.com"), encoding="utf-8")
    with_gpus = conf.read_text(encoding="utf-8")
    assert set_keys(conf, state="absent")["changed"]
    assert conf.read_text(encoding="utf-8") == SAMPLE.replace("cdsw.example.com", "other.example.com")
    assert set_keys(conf, state="previous")["changed"], "the way back where CDSW does not come back without GPUs"
    assert conf.read_text(encoding="utf-8") == with_gpus


def test_a_removal_that_was_killed_before_the_restart_restarts_again(conf: Path) -> None:
    set_keys(conf, settings=WANTED)
    assert set_keys(conf, state="absent")["keys"] == sorted(WANTED)
    again = set_keys(conf, state="absent")
    assert (again["changed"], again["keys"]) == (False, sorted(WANTED)), "the role restarts CDSW where there are keys"
    assert set_keys(conf, state="forgotten")["changed"]
    assert list((conf.parent / "opt/etc").iterdir()) == []
    assert set_keys(conf, state="absent")["keys"] == []


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


def test_a_cdsw_conf_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    answer = set_keys(tmp_path / "cdsw.conf", settings=WANTED)
    assert answer["failed"]
    assert "cdsw.conf must be readable text that root may write" in answer["msg"]


# --- daemon.json ----------------------------------------------------------------------------------------------------

SITE = '{\n  "storage-driver": "devicemapper",\n  "log-opts": {"max-size": "10m"}\n}'


def runtime(directory: Path, **arguments: Any) -> dict[str, Any]:
    paths = {"path": str(directory / "docker/daemon.json"), "record": str(directory / "opt/etc/daemon.json")}
    return host_modules.run("daemon_json", **paths, **arguments)


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
    [
        RUNTIME,
        {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []},  # as nvidia-docker2 2.0.3 wrote it
    ],
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
