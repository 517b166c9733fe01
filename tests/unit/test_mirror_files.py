"""The mirror against a server that goes wrong: what has a final name is always right, and every problem is a sentence."""

import json
import multiprocessing
import os
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_programs
import pytest
from ansible.module_utils.hadoop_dl_host import mirror_files, mirror_index, mirror_prune, mirror_served
from ansible.module_utils.hadoop_dl_host.mirror_index import MirrorError
from faulty_server import Index
from host_modules import run

from hadoop_dl.cli import mirror
from hadoop_dl.data.stacks import load_stack

BIG = bytes(range(256)) * 20000  # 5 MB: several chunks
WHEEL = "numpy-1.16.6-py3-none-any.whl"


def fetch(index: Index, root: Path, *artifacts: dict[str, object], address: str = "", **more: Any) -> list[str]:
    address = address or index.url + "/simple"
    return mirror_files.fetch_artifacts(list(artifacts), str(root), address, pause=lambda seconds: None, **more)


@pytest.fixture
def wheel(index: Index) -> dict[str, object]:
    return index.artifact(WHEEL, BIG)


def final_names(root: Path) -> list[str]:
    return sorted(p.name for folder in ("wheels", "files") for p in (root / folder).glob("*"))


@pytest.mark.parametrize("form", ["html", "json"])
def test_artifacts_arrive_whole_and_the_second_run_fetches_nothing(index, wheel, tmp_path, form):
    index.form = form
    file = index.artifact("pyspark-3.0.3.tar.gz", b"spark", folder="files")
    assert fetch(index, tmp_path, wheel, file) == [WHEEL, "pyspark-3.0.3.tar.gz"]
    assert (tmp_path / "wheels" / WHEEL).read_bytes() == BIG
    assert set(mirror_files.manifest_of(str(tmp_path))) == {f"wheels/{WHEEL}", "files/pyspark-3.0.3.tar.gz"}
    request_count = len(index.requests)
    assert fetch(index, tmp_path, wheel, file) == []
    assert len(index.requests) == request_count


JAR = "tensorflow-hadoop-1.15.0.jar"


def by_address(index: Index, address: str) -> dict[str, object]:
    artifact = index.artifact(JAR, b"jar", folder="files")
    del artifact["project"]
    return {**artifact, "url": f"{address}/org/tensorflow/tensorflow-hadoop/1.15.0/{JAR}"}


def test_an_artifact_with_an_address_of_its_own_is_not_looked_up_in_the_index(index, tmp_path):
    assert fetch(index, tmp_path, by_address(index, index.url + "/maven2")) == [JAR]
    assert (tmp_path / "files" / JAR).read_bytes() == b"jar"
    assert [path for path, _ in index.requests] == [f"/maven2/org/tensorflow/tensorflow-hadoop/1.15.0/{JAR}"]


def test_a_sites_copy_of_maven_central_is_used(index, tmp_path, monkeypatch):
    monkeypatch.setenv("MAVEN_CENTRAL_URL", index.url + "/copy/")
    assert fetch(index, tmp_path, by_address(index, mirror_index.MAVEN_CENTRAL)) == [JAR]
    assert index.requests[0][0].startswith("/copy/org/tensorflow/")


def test_other_bytes_from_an_address_are_refused(index, tmp_path):
    artifact = by_address(index, index.url)
    index.files[JAR] = b"bad"
    with pytest.raises(MirrorError, match=f"{JAR} with sha256"):
        fetch(index, tmp_path, artifact)
    assert final_names(tmp_path) == []


@pytest.mark.parametrize(
    "faults",
    [["503", "503"], ["truncate"], ["truncate", "norange"], ["hang"], ["truncate", "503", "truncate", "hang"]],
    ids="-".join,
)
def test_a_passing_fault_is_survived(index, wheel, tmp_path, faults):
    index.faults[WHEEL] = list(faults)
    assert fetch(index, tmp_path, wheel) == [WHEEL]
    assert (tmp_path / "wheels" / WHEEL).read_bytes() == BIG


def test_a_broken_download_continues_where_it_stopped(index, wheel, tmp_path):
    index.faults[WHEEL] = ["truncate"]
    fetch(index, tmp_path, wheel)
    assert [header for path, header in index.requests if path.endswith(WHEEL)] == [None, f"bytes={len(BIG) // 2}-"]


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (["flip"] * 9, f"{WHEEL} with sha256 .* is required, .* delivered 5120000 bytes with sha256"),
        (["login"] * 9, f"{WHEEL} is required, .* answers with a web page instead .*captive portal"),
        (["404"] * 9, f"{WHEEL} is required, but .* answers 404 .*Check the index's address"),
        (["503"] * 9, f"{WHEEL} is required, but .* did not deliver it in 5 attempts .*503"),
        (["truncate", "503", "503", "503", "503", "503"], "the same command again: it continues"),
    ],
    ids=["flip", "login", "404", "503", "truncate"],
)
def test_a_lasting_fault_is_told_and_leaves_no_final_name(index, wheel, tmp_path, faults, words):
    index.faults[WHEEL] = faults
    with pytest.raises(MirrorError, match=words):
        fetch(index, tmp_path, wheel)
    assert final_names(tmp_path) == []
    index.faults.clear()
    assert fetch(index, tmp_path, wheel) == [WHEEL]


def test_one_bad_artifact_does_not_stop_the_others(index, tmp_path):
    wheels = [index.artifact(f"p{n}-1.0-py3-none-any.whl", b"%d" % n) for n in range(6)]
    index.faults["p3-1.0-py3-none-any.whl"] = ["404"]
    with pytest.raises(MirrorError, match="5 other artifacts were fetched and stay"):
        fetch(index, tmp_path, *wheels)
    assert len(final_names(tmp_path)) == 5


def test_an_old_part_with_other_bytes_is_thrown_away_and_fetched_anew(index, wheel, tmp_path):
    mirror_files.prepare(str(tmp_path))
    (tmp_path / ".staging" / str(wheel["sha256"])).write_bytes(b"x" * 1000)
    assert fetch(index, tmp_path, wheel) == [WHEEL]
    assert (tmp_path / "wheels" / WHEEL).read_bytes() == BIG


def test_a_damaged_file_is_fetched_again(index, wheel, tmp_path):
    fetch(index, tmp_path, wheel)
    path = tmp_path / "wheels" / WHEEL
    path.write_bytes(BIG[:-1] + b"x")
    assert mirror_files.problems_of([wheel], str(tmp_path)) == {WHEEL: "other bytes than the lock's"}
    assert fetch(index, tmp_path, wheel) == [WHEEL]
    assert path.read_bytes() == BIG


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"announced": {WHEEL: "0" * 64}}, "the index offers other bytes under that name"),
        ({"form": "login"}, "lists no files.*login page"),
        ({"files": {"numpy-1.0-py3-none-any.whl": b"old"}}, "lists 1 files of numpy without it.*PIP_INDEX_URL"),
    ],
    ids=["other bytes", "login page", "another version"],
)
def test_an_index_that_does_not_offer_the_file_is_told_and_not_asked_for_it(index, wheel, tmp_path, change, words):
    vars(index).update(change)
    with pytest.raises(MirrorError, match=words):
        fetch(index, tmp_path, wheel)
    assert not any(path.endswith(WHEEL) for path, _ in index.requests)


def test_an_index_that_is_not_there_is_told_without_the_password_of_its_address(index, wheel, tmp_path):
    with pytest.raises(MirrorError, match="Connection refused.*Check network, proxy and DNS") as error:
        fetch(index, tmp_path, wheel, address="http://user:geheim@127.0.0.1:9/simple")
    assert "geheim" not in str(error.value)


def test_too_little_room_is_told_before_anything_is_fetched(index, wheel, tmp_path, monkeypatch):
    full = SimpleNamespace(f_bavail=1, f_frsize=os.statvfs(tmp_path).f_frsize)
    monkeypatch.setattr(mirror_files.os, "statvfs", lambda path: full)
    with pytest.raises(MirrorError, match=r"5\.1 MB are required under .*, but 0\.0 MB are free"):
        fetch(index, tmp_path, wheel)
    assert index.requests == []


def test_an_index_that_trickles_its_page_ends_in_time(index, tmp_path):
    """A byte now and then: no read of it is ever late."""
    index.form = "trickle"
    artifact = index.artifact(WHEEL, BIG)
    environment = {"PIP_INDEX_URL": index.url + "/simple", "no_proxy": "*"}
    start = time.monotonic()
    result = run("mirror_artifacts", root=str(tmp_path), artifacts=[artifact], environment=environment, timeout=1)
    assert time.monotonic() - start < 20
    assert "The mirror must be complete within 1 s (mirror_timeout)" in result["msg"]
    assert final_names(tmp_path) == []
    index.form = "html"
    next_result = run("mirror_artifacts", root=str(tmp_path), artifacts=[artifact], environment=environment, timeout=60)
    assert next_result["fetched"] == [WHEEL]


def test_a_page_without_end_is_refused(index, monkeypatch):
    monkeypatch.setattr(mirror_index, "LARGEST_PAGE", 100)
    index.artifact(WHEEL, BIG)
    with pytest.raises(MirrorError, match="sends more. Check the index's address"):
        mirror_index.offers("numpy", index.url + "/simple")


def test_time_that_is_over_is_told_and_the_part_stays(index, wheel, tmp_path):
    with pytest.raises(MirrorError, match="not complete when the time was over.*it continues"):
        fetch(index, tmp_path, wheel, deadline=1e-9)
    assert (tmp_path / ".staging" / str(wheel["sha256"])).stat().st_size > 0


@pytest.mark.parametrize("name", ["../evil.whl", ".hidden", "a/b.whl", "", "a\nb"])
def test_a_name_that_leaves_the_directory_is_refused(index, wheel, tmp_path, name):
    with pytest.raises(MirrorError, match="A plain file name is required"):
        fetch(index, tmp_path, {**wheel, "name": name})


def test_two_locks_that_disagree_are_refused(index, wheel, tmp_path):
    with pytest.raises(MirrorError, match=f"{WHEEL} must have one sha256"):
        fetch(index, tmp_path, wheel, {**wheel, "sha256": "0" * 64})


def test_others_can_read_the_mirror_and_not_the_staging(index, tmp_path):
    root = tmp_path / "mirror"
    fetch(index, root, index.artifact(WHEEL, BIG))
    modes = {
        path: stat.S_IMODE((root / path).stat().st_mode) for path in (".", "wheels", ".staging", f"wheels/{WHEEL}")
    }
    assert modes == {".": 0o755, "wheels": 0o755, ".staging": 0o700, f"wheels/{WHEEL}": 0o644}


def test_the_manifest_keeps_what_other_stacks_brought_and_drops_what_is_gone(index, tmp_path):
    first, second = index.artifact(WHEEL, BIG), index.artifact("six-1.17.0-py3-none-any.whl", b"six")
    fetch(index, tmp_path, first)
    fetch(index, tmp_path, second)
    assert set(mirror_files.manifest_of(str(tmp_path))) == {f"wheels/{WHEEL}", "wheels/six-1.17.0-py3-none-any.whl"}
    (tmp_path / "wheels" / WHEEL).unlink()
    fetch(index, tmp_path, second)
    assert set(mirror_files.manifest_of(str(tmp_path))) == {"wheels/six-1.17.0-py3-none-any.whl"}


def _hold(root: str, seconds: float) -> None:
    with mirror_files.only_one(root):
        time.sleep(seconds)


def test_two_runs_take_turns_and_a_wait_is_bounded(index, tmp_path, monkeypatch):
    mirror_files.prepare(str(tmp_path))
    other_run = multiprocessing.get_context("fork").Process(target=_hold, args=(str(tmp_path), 30))
    other_run.start()
    try:
        time.sleep(0.3)
        monkeypatch.setattr(mirror_files, "LOCK_WAIT", 1)
        with pytest.raises(MirrorError, match="One run at a time"):
            fetch(index, tmp_path, index.artifact(WHEEL, BIG))
    finally:
        other_run.terminate()
        other_run.join()
    assert fetch(index, tmp_path, index.artifact(WHEEL, BIG)) == [WHEEL]


def test_a_served_mirror_is_asked_for_every_file(index, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # hosts ask without it
    wheel, other_wheel = index.artifact(WHEEL, BIG), index.artifact("six-1.0-py3-none-any.whl", b"six")
    assert mirror_served.problems([wheel, other_wheel], index.url) == []
    del index.files["six-1.0-py3-none-any.whl"]
    index.files[WHEEL] = BIG[:-1]
    problems = mirror_served.problems([wheel, other_wheel], index.url)
    assert f"{WHEEL} must have 5120000 bytes, but" in problems[0]
    assert "answers 404" in problems[1]


def test_a_served_mirror_has_to_list_its_wheels(index, wheel):
    index.hidden = (WHEEL,)
    assert f"does not link to {WHEEL}" in mirror_served.problems([wheel], index.url)[0]


def with_login(index: Index) -> str:
    index.login = "svc:can/ary"
    return index.url.replace("http://", "http://svc:can%2Fary@") + "/simple"


def test_the_login_of_an_index_is_sent_for_its_files_and_goes_to_no_other_server(index, wheel, tmp_path):
    index.faults[WHEEL] = ["redirect"]  # from 127.0.0.1 to localhost
    address = with_login(index)
    assert fetch(index, tmp_path, wheel, address=address) == [WHEEL]
    assert {login for host, login in index.received if host == "localhost"} == {""}
    assert {login for host, login in index.received if host == "127.0.0.1"} == {index.login}


@pytest.mark.parametrize(
    "url", ["https://index/x.whl", "http://index:81/x.whl", "http://other/x.whl", "http://index.evil/x.whl"]
)
def test_another_scheme_port_or_host_is_another_server(url):
    assert mirror_index.with_login_of("http://svc:canary@index/simple", url) == url
    address = mirror_index.with_login_of("http://svc:canary@index/simple", "http://index:80/x.whl")
    assert address == "http://svc:canary@index:80/x.whl"


def test_what_is_secret_of_the_downloads_variables():
    variables = {
        "https_proxy": "http://svc:can%2Fary@proxy:3128",
        "PIP_INDEX_URL": "https://token@index.example.com/simple?key=sig",
        "SSL_CERT_FILE": "/etc/pki/site.pem",
        "no_proxy": "localhost",
        "VENDOR_TOKEN": "abc",
    }
    assert mirror_index.secrets_of(variables) == {"svc:can%2Fary", "can%2Fary", "can/ary", "token", "key=sig", "abc"}


def test_scripts_mirror_takes_no_password_on_its_command_line(capsys):
    with pytest.raises(SystemExit):
        mirror.main(["list", "tf1.15-py27-el7", "--index-url", "https://svc:canary@index/simple"])
    assert "Set PIP_INDEX_URL" in capsys.readouterr().err


# The role itself, as a site runs it, with everything that Ansible can print.
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: mirror
        tasks_from: fetch
      vars:
        mirror_root: {root}/mirror
        __mirror_log: {root}/mirror.log
        mirror_python: {python}
        mirror_timeout: 60
        mirror_artifacts: {artifacts}
        mirror_environment: {environment}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the role gives its files to root")
@pytest.mark.parametrize("fails", [False, True], ids=["works", "fails"])
def test_passwords_are_in_no_command_line_log_or_message(index, wheel, tmp_path, fails):
    index.faults[WHEEL] = ["404"] if fails else ["hang"]  # hangs for a second: time to look
    environment = {"PIP_INDEX_URL": with_login(index), "https_proxy": "http://svc:canary2@127.0.0.1:9"}
    settings = {"artifacts": json.dumps([wheel]), "environment": json.dumps(environment)}
    (tmp_path / "play.yml").write_text(PLAY.format(root=tmp_path, python=sys.executable, **settings))
    (tmp_path / "hosts").write_text(f"localhost ansible_connection=local ansible_python_interpreter={sys.executable}\n")
    arguments = ("-vvvv", "-i", tmp_path / "hosts", tmp_path / "play.yml")
    process = ansible_programs.start(*arguments, ANSIBLE_LOG_PATH=str(tmp_path / "ansible.log"))
    command_lines: set[str] = set()
    stop = threading.Event()
    watcher = threading.Thread(target=watch_command_lines, args=(command_lines, stop))
    watcher.start()
    output, _ = process.communicate(timeout=120)
    stop.set()
    watcher.join()
    assert (process.returncode != 0) is fails, output
    assert any("ansible" in line for line in command_lines)
    if fails:  # the message names the address all the same
        assert f"{index.url}/files/{WHEEL} answers 404" in " ".join(output.split())
    logs = [path.read_text() for path in tmp_path.rglob("*.log")]
    for text in [output, *command_lines, *logs]:
        for secret in ("canary2", "can/ary", "can%2Fary"):
            assert secret not in text


def watch_command_lines(seen: set[str], done: threading.Event) -> None:
    while not done.is_set():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                seen.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        time.sleep(0.01)


def held_by(root: Path) -> list[str]:
    """What the manifest lists; the files are there, and the pages are of it."""
    rows = json.loads((root / "manifest.json").read_text())["artifacts"]
    files = [path for folder in ("wheels", "files", "built") for path in (root / folder).rglob("*") if path.is_file()]
    assert sorted(rows) == sorted(str(path.relative_to(root)) for path in files)
    projects = {path.parent.name for path in root.glob("simple/*/index.html")}
    assert projects == {path.removeprefix("wheels/").split("-")[0] for path in rows if path.startswith("wheels/")}
    return sorted(rows)


TENSORFLOW = "wheels/tensorflow-1.6.0-cp27-cp27mu-linux_x86_64.whl"


def filled(index: Index, root: Path) -> dict[str, dict[str, object]]:
    """A mirror with two wheels, a source distribution, and TensorFlow as the site built it."""
    artifacts = {
        "kept": index.artifact("kept-1.0-py3-none-any.whl", b"kept"),
        "old": index.artifact("old-1.0-py3-none-any.whl", b"old"),
        "source": index.artifact("gast-0.2.2.tar.gz", b"source"),
    }
    fetch(index, root, *artifacts.values())
    folder, _, name = TENSORFLOW.rpartition("/")
    (root / TENSORFLOW).write_bytes(b"built here")
    digest = mirror_files.atomic_files.sha256_of(str(root / TENSORFLOW))
    mirror_files.write_manifest([{"folder": folder, "name": name, "sha256": digest}], str(root))
    return artifacts


def test_named_artifacts_leave_the_mirror(index, tmp_path):
    artifacts = filled(index, tmp_path)
    (tmp_path / "wheels" / "site.txt").write_text("the site's")
    other_bytes = {**artifacts["kept"], "sha256": "0" * 64}  # the site's own file of that name
    old_artifacts = [artifacts["old"], artifacts["source"], other_bytes]
    paths = ["wheels/gast-0.2.2.tar.gz", "wheels/old-1.0-py3-none-any.whl"]
    assert mirror_prune.prune(tmp_path, old_artifacts, dry=True) == paths
    assert len(mirror_files.manifest_of(str(tmp_path))) == 4
    assert mirror_prune.prune(tmp_path, old_artifacts) == paths
    assert (tmp_path / "wheels" / "site.txt").exists()
    (tmp_path / "wheels" / "site.txt").unlink()
    assert held_by(tmp_path) == ["wheels/kept-1.0-py3-none-any.whl", TENSORFLOW]
    assert mirror_prune.prune(tmp_path, old_artifacts) == []


def test_a_pruning_that_was_killed_is_ended_by_the_next_one(index, tmp_path):
    artifacts = filled(index, tmp_path)
    (tmp_path / "wheels/old-1.0-py3-none-any.whl").unlink()  # as far as it came
    assert mirror_prune.prune(tmp_path, [artifacts["old"]]) == ["wheels/old-1.0-py3-none-any.whl"]
    assert len(held_by(tmp_path)) == 3


def test_the_controllers_mirror_loses_what_other_stacks_alone_need(tmp_path, capsys):
    stack, other_stack = "tf1.15-cpu-py27-el7", "tf2.15-cpu-py3-el9"
    artifacts = {
        name: [artifact for py in load_stack(name).pythons for artifact in load_stack(name).artifacts(py)]
        for name in (stack, other_stack)
    }
    paths = {name: {f"{entry['folder']}/{entry['name']}" for entry in entries} for name, entries in artifacts.items()}
    rows = {
        f"{item['folder']}/{item['name']}": {"sha256": item["sha256"], "size": 1}
        for item in artifacts[stack] + artifacts[other_stack]
    }
    rows |= dict.fromkeys(("files/bazel-0.26.1", TENSORFLOW), {"sha256": "0" * 64, "size": 1})  # the site's
    for path in rows:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"1")
    (tmp_path / ".staging").mkdir()
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "artifacts": rows}))
    assert mirror.main(["prune", "--root", str(tmp_path), stack]) == 0
    assert set(mirror_files.manifest_of(str(tmp_path))) == paths[stack] | {"files/bazel-0.26.1", TENSORFLOW}
    output = capsys.readouterr().out
    assert f"removed {min(paths[other_stack] - paths[stack])}" in output
    assert f"removed {len(paths[other_stack] - paths[stack])} artifacts of other stacks" in output
