"""A host of release 0.2 is taken over and goes back. To be removed with earlier_records.py."""

import json
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import atomic_files, earlier_records, ledger
from host_modules import run

SITE = "<configuration>\n  <property><name>a</name><value>%s</value></property>\n</configuration>\n"
CDSW = "NVIDIA_GPU_ENABLE=false\nDOMAIN=x\n"
DAEMON = '{"debug": true}'
RUNTIME = {"args": [], "path": "nvidia-container-runtime"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records and files as the modules of 0.2 wrote them; a run was killed before CDSW's second restart."""
    for name in ("CDSW_CONF", "DAEMON_JSON"):
        path = tmp_path / Path(getattr(earlier_records, name)).name
        monkeypatch.setattr(earlier_records, name, str(path))
    (tmp_path / "a.xml").write_text(SITE % "ours")
    (tmp_path / "cdsw.conf").write_text('NVIDIA_GPU_ENABLE="newer"\nDOMAIN=x\n')
    runtimes = json.dumps({"debug": True, "runtimes": {"nvidia": RUNTIME}})
    (tmp_path / "daemon.json").write_text(runtimes)
    etc = tmp_path / "opt/etc"
    etc.mkdir(parents=True)
    setting = {"before": "<value>site</value>", "wanted": "ours", "ours": "ours", "list": False}
    entry = {"created": False, "settings": {"a": setting}}
    yarn = {"files": {str(tmp_path / "a.xml"): entry}, "services": ["nodemanager"]}
    records = {"yarn_gpu": yarn, "cdsw": {"before": {"NVIDIA_GPU_ENABLE": CDSW.split()[0]}, "restart_pending": True}}
    records["daemon"] = {"sha256": atomic_files.sha256_of(str(tmp_path / "daemon.json"))}
    for name, record in records.items():
        (etc / f"{name}.json").write_text(json.dumps(record))
    (etc / "cdsw.json.previous").write_text('NVIDIA_GPU_ENABLE="true"\nDOMAIN=x\n')
    (etc / "daemon.json.before").write_text(DAEMON)
    return tmp_path


def test_its_rows_are_read_before_anything_is_written(host):
    root = str(host / "opt")
    assert [(row["key"], row["now"]) for row in ledger.rows("yarn_gpu", root)] == [("a", "ours")]
    assert (ledger.services("yarn_gpu", root), ledger.pending("yarn_gpu", root)) == (["nodemanager"], False)
    assert ledger.pending("cdsw", root) is True
    assert ledger.rows("cdsw", root)[0]["ran"] == 'NVIDIA_GPU_ENABLE="true"'


def test_a_directory_of_an_archive_is_complete_with_its_mark(tmp_path):
    place, link = tmp_path / "cudnn-8", {"lib64": "lib"}
    (place / "lib").mkdir(parents=True)
    (place / "lib/libcudnn.so.8").write_text("content")
    (place / "lib64").symlink_to("lib")
    (place / ".sha256").write_text("aa\n")
    (place / ".sizes.json").write_text(json.dumps({**link, "lib/libcudnn.so.8": 7}))
    arguments = {"path": str(place), "archive": "/nowhere", "sha256": "aa", "root": str(tmp_path / "opt")}
    assert run("placed_tree", **arguments, only_check=True)["complete"] is True
    assert sorted(path.name for path in place.iterdir()) == [".deeplearning.json", "lib", "lib64"]
    assert run("placed_tree", **arguments)["changed"] is False
    (place / "lib/libcudnn.so.8").write_text("")
    assert run("placed_tree", **arguments, only_check=True)["complete"] is False


def test_its_records_become_rows_by_which_everything_goes_back(host):
    root = str(host / "opt")
    for component in earlier_records.RECORDS:
        book = ledger.Ledger(component, root)
        book.write(book.rows)
    assert list((host / "opt/etc").iterdir()) == []
    for component in earlier_records.RECORDS:
        assert run("file_keys", component=component, root=root)["changed"] is True
        run("file_keys", component=component, root=root, state="restarted")
    assert (host / "a.xml").read_text() == SITE % "site"
    assert (host / "cdsw.conf").read_text() == CDSW
    assert (host / "daemon.json").read_text() == DAEMON
    assert list((host / "opt/state").iterdir()) == []
