"""What the wheels of an environment may do when it is verified: their code is a stranger's, and root runs none of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import environment_seal
import pytest
from ansible.module_utils.hadoop_dl_host import environment_build, environment_imports, sandbox_cell
from environments import Site
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from other_processes import ended
from source_distributions import interpreter

from hadoop_dl.hosts import host_script, verify

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")
REPOSITORY = Path(__file__).resolve().parents[2]
# A module that says as whom it is imported, and what it could do then.
FOREIGN = """
import json, os, socket
def attempt(action):
    try:
        return repr(action())
    except Exception as error:
        return type(error).__name__
found = {
    "uid": os.getuid(), "secret": os.environ.get("SECRET"), "name": __name__,
    "writes": attempt(lambda: open(os.path.join(os.path.dirname(__file__), "evil.py"), "w")),
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line],
    "device": attempt(lambda: os.read(os.open("/dev/zero", os.O_RDWR), 1) and "read"),  # one that users may open, as a GPU's
}
raise RuntimeError(json.dumps(found))
"""


def test_the_seal_imports_as_a_user_that_no_account_has(unproved, monkeypatch):
    monkeypatch.setenv("SECRET", "root's")
    unproved.put("keras", FOREIGN)
    [problem] = environment_seal.import_problems(str(unproved.tree), ["keras"], 60)
    report = json.loads(problem.partition("RuntimeError: ")[2].rstrip("."))
    assert report.pop("uid") in sandbox_cell.NUMBERS
    assert report.pop("interfaces") == ["lo"]
    assert report == {"secret": None, "name": "keras", "writes": "PermissionError", "device": "'read'"}
    assert not list((unproved.tree / ".deeplearning").glob("cell-*"))
    assert not (unproved.packages / "evil.py").exists()


def test_a_tree_that_users_cannot_read_is_named_at_the_seal(unproved):
    unproved.tree.chmod(0o700)
    [problem] = environment_seal.import_problems(str(unproved.tree), ["keras"], 60)
    assert f"All users must be able to read {unproved.tree}" in problem


def test_what_a_killed_seal_left_is_no_user_of_the_tree_and_goes_with_it(done):
    tree = done.tree
    place = str(tree / ".deeplearning" / f"cell-{ended()}")
    cell = sandbox_cell.Cell(place).__enter__()  # and no end, as after a kill
    python = str(tree / "bin/python")
    orphan = subprocess.Popen([python, "-c", "import time; time.sleep(600)"], user=cell.number, group=cell.number)
    own_cell = sandbox_cell.Cell(str(tree / ".deeplearning" / f"cell-{os.getpid()}")).__enter__()
    environment_imports.clear(str(tree))
    assert orphan.wait(timeout=20) == -9
    assert [path.name for path in (tree / ".deeplearning").glob("cell-*")] == [f"cell-{os.getpid()}"], "it may run"
    own_cell.__exit__()


PROGRAM = """
import json
from ansible.module_utils.hadoop_dl_host import environment_imports
with environment_imports.runner(sys.argv[2]) as run:
    answers = [run([sys.argv[2] + "/bin/python", "-c", "import os; print(os.getuid())"], 60, {}) for _ in range(2)]
print(json.dumps([[answer.status, answer.output, answer.error] for answer in answers]))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_the_pythons_of_hosts_import_in_one_cell(python, open_directory):
    for name in ("bin", ".deeplearning"):
        (open_directory / name).mkdir()
    (open_directory / "bin/python").symlink_to(interpreter() or sys.executable)
    argv = [python, "-c", WITHOUT_ANSIBLE + PROGRAM, UTILITIES, str(open_directory)]
    completed = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert completed.stderr == ""
    first, second = json.loads(completed.stdout)
    assert (first[0], first[2], int(first[1]) in sandbox_cell.NUMBERS) == (0, "", True)
    assert first == second


def probed(site: Site, environment: dict[str, str]) -> dict[str, Any]:
    script, command = verify.probe_script({"environment": str(site.path)}), ["sh", "-c", host_script.command()]
    options: dict[str, Any] = {"input": script, "env": {**os.environ, **environment}, "timeout": 200}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_the_probe_imports_in_a_cell_and_asks_hdfs_as_nobody(done):
    done.put("tensorflow", FOREIGN)
    answers = probed(done, {"SECRET": "root's"})["inside"]
    assert answers["python"]["value"] == ".".join(map(str, sys.version_info[:2]))
    report = json.loads(answers["import tensorflow"]["error"].partition("RuntimeError: ")[2])
    assert report["uid"] in sandbox_cell.NUMBERS
    assert (report["interfaces"], report["secret"], report["writes"]) == (["lo"], None, "PermissionError")
    report = json.loads(answers["hdfs"]["error"].partition("RuntimeError: ")[2])
    assert (report["uid"], report["secret"], report["writes"]) == (65534, None, "PermissionError")
    assert not list((done.tree / ".deeplearning").glob("cell-*"))


def test_what_a_wheel_has_for_every_start_of_python_does_not_run_as_root(with_pip, tmp_path):
    mark = tmp_path / "ran"
    (with_pip.packages / "evil.pth").write_text(f"import os; open({str(mark)!r}, 'w')\n")
    with_pip.install("tensorflow")
    assert list(with_pip.packages.glob("__pycache__/six.*")), "it was compiled"
    assert not mark.exists()


def test_the_python_2_7_of_virtualenv_finds_its_library_without_site(tmp_path):
    (tmp_path / "lib/python2.7").mkdir(parents=True)
    (tmp_path / "lib/python2.7/orig-prefix.txt").write_text("/usr")
    environment = environment_build.standard_library(str(tmp_path))
    assert environment == {"PYTHONPATH": "/usr/lib64/python2.7:/usr/lib/python2.7"}
