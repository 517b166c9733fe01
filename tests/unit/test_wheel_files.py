"""Unpacking wheels: the same tree as pip's, for wheels with everything that the format allows, and nothing outside of it."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host.wheel_files import Wheel, WheelProblem
from interpreters import bundled_pip

SITE = "lib/python{}.{}/site-packages".format(*sys.version_info[:2])
INFORMATION = "demo_tool-1.2.dist-info"
MEMBERS = {
    "demo_tool/__init__.py": "VERSION = '1.2'\n\n\ndef main():\n    print('main')\n",
    "demo_tool/data, with a comma.txt": "x\n",
    "demo_tool/ümläut.txt": "x\n",
    "demo_tool/empty.py": "",
    "demo_tool/__pycache__/__init__.cpython-311.pyc": "of the one who built it",
    "demo_tool/only.pyc": "bytecode without a source",
    "demo_tool/run.sh": "#!/bin/sh\n",
    "demo_tool-1.2.data/scripts/demo-script": "#!python -E\nprint('script')\n",
    "demo_tool-1.2.data/scripts/demo-shell": "#!/bin/sh\necho shell\n",
    "demo_tool-1.2.data/data/share/demo/file.txt": "shared\n",
    "demo_tool-1.2.data/headers/demo.h": "int x;\n",
    "demo_tool-1.2.data/purelib/demo_pure.py": "",
    f"{INFORMATION}/METADATA": "Metadata-Version: 2.1\nName: demo-tool\nVersion: 1.2\n",
    f"{INFORMATION}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFORMATION}/entry_points.txt": (
        "[console_scripts]\ndemo-main = demo_tool:main\npip3.9 = demo_tool:main\n\n[other]\nx = y:z\n"
    ),
}


def make(directory: Path, **changed: str) -> Path:
    path = directory / "demo_tool-1.2-py3-none-any.whl"
    content = {**MEMBERS, **changed}
    record = "".join(f'"{member}",,\n' for member in content) + f"{INFORMATION}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in {**content, f"{INFORMATION}/RECORD": record}.items():
            info = zipfile.ZipInfo(member)
            info.external_attr = (0o100755 if member.endswith("run.sh") or "/scripts/" in member else 0o100644) << 16
            archive.writestr(info, text)
    return path


def unpack(path: Path, root: Path) -> dict[str, tuple[str, int]]:
    rows = Wheel(str(path), SITE, str(root / "bin" / "python")).install(str(root))
    return {path.decode(): row for path, row in rows.items()}


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of every file that an installer decides about."""
    content = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        records = (".pyc", "/INSTALLER", "/REQUESTED", "/direct_url.json", "/RECORD")
        is_own = name.endswith(records) or name in ("bin/demo-main", "bin/pip3.9")
        if path.is_file() and not path.is_symlink() and not is_own:
            content[name] = (path.stat().st_mode & 0o777, path.read_bytes().replace(str(root).encode(), b"ROOT"))
    return content


def test_the_tree_is_the_one_that_pip_makes(tmp_path):
    mask = os.umask(0o022)
    try:
        path = make(tmp_path)
        for name in ("ours", "pips"):
            venv.create(tmp_path / name, with_pip=False, symlinks=True)
        unpack(path, tmp_path / "ours")
        command = [str(tmp_path / "pips/bin/python"), f"{bundled_pip()}/pip", "install", "--no-index"]
        subprocess.run([*command, "--no-compile", "--disable-pip-version-check", str(path)], check=True)
    finally:
        os.umask(mask)
    own_files, pip_files = (
        {name: file for name, file in tree(tmp_path / root).items() if "ctivate" not in name and name != "pyvenv.cfg"}
        for root in ("ours", "pips")
    )
    assert own_files == pip_files


def environment(root: Path, wheel: Path) -> dict[str, tuple[str, int]]:
    """A new environment with this wheel; the files that were written."""
    venv.create(root, with_pip=False, symlinks=True)
    return unpack(wheel, root)


@pytest.fixture
def installed(tmp_path):
    return tmp_path / "env", environment(tmp_path / "env", make(tmp_path))


@pytest.mark.parametrize(
    ("script", "words"), [("demo-main", "main"), ("demo-script", "script"), ("demo-shell", "shell")]
)
def test_scripts_start(installed, script, words):
    assert subprocess.check_output([installed[0] / "bin" / script], text=True).strip() == words


def test_a_script_that_a_process_of_its_own_imports_runs_nothing(installed):
    """multiprocessing imports the main program again where it starts new processes."""
    program = f"import runpy; runpy.run_path({str(installed[0] / 'bin/demo-main')!r}, run_name='__mp_main__')"
    assert subprocess.check_output([installed[0] / "bin/python", "-c", program], text=True) == ""


def test_a_script_ends_with_what_its_function_returns(tmp_path):
    environment(tmp_path / "env", make(tmp_path, **{"demo_tool/__init__.py": "def main():\n    return 7\n"}))
    assert subprocess.run([tmp_path / "env/bin/demo-main"], check=False).returncode == 7


def test_scripts_start_below_a_long_path(tmp_path):
    """Linux reads 127 bytes of the first line, up to 5.0."""
    root = tmp_path / ("long" * 30) / "env"
    environment(root, make(tmp_path))
    assert subprocess.check_output([root / "bin" / "demo-main"], text=True).strip() == "main"
    assert subprocess.check_output(["sh", root / "bin" / "demo-script"], text=True).strip() == "script"


def test_every_file_is_listed_with_its_sha256_and_in_record(installed):
    root, records = installed
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "demo" in str(path)}
    assert files <= set(records) | {"bin/python"}
    program = "from importlib.metadata import files; print([f for f in files('demo-tool') if not f.locate().exists()])"
    assert subprocess.check_output([root / "bin" / "python", "-c", program], text=True).strip() == "[]"
    assert f"{SITE}/demo_tool/__pycache__/__init__.cpython-311.pyc" not in records
    assert f"{SITE}/demo_tool/only.pyc" in records
    assert "bin/pip3.9" not in records


def test_a_file_is_never_written_through_an_old_one(installed, tmp_path):
    """A running process keeps the old file; a link in its place is replaced, not followed."""
    root, _ = installed
    victim = tmp_path / "victim"
    victim.write_text("mine")
    target = root / SITE / "demo_tool" / "empty.py"
    target.unlink()
    target.symlink_to(victim)
    unpack(tmp_path / "demo_tool-1.2-py3-none-any.whl", root)
    assert victim.read_text() == "mine"
    assert not target.is_symlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"../../evil.py": ""}, "a member outside of its own tree: ../../evil.py"),
        ({"/etc/evil": ""}, "a member outside of its own tree: /etc/evil"),
        ({"demo_tool-1.2.data/rootfs/etc/passwd": ""}, "data of an unknown kind"),
        ({"other-1.dist-info/WHEEL": "Wheel-Version: 1.0\n"}, "must have one dist-info directory but has 2"),
        ({f"{INFORMATION}/WHEEL": "Wheel-Version: 2.0\n"}, "a wheel format other than 1"),
        *(
            ({f"{INFORMATION}/entry_points.txt": f"[console_scripts]\n{script}\n"}, "a script that cannot be written")
            for script in ("../x = a:b", "x = a:b;import os")
        ),
    ],
)
def test_a_wheel_that_is_wrong_is_refused(tmp_path, change, words):
    root = tmp_path / "env"
    with pytest.raises(WheelProblem, match=words):
        unpack(make(tmp_path, **change), root)
    assert not (tmp_path / "evil.py").exists()


def test_something_else_than_a_wheel_is_refused(tmp_path):
    (tmp_path / "x.whl").write_bytes(b"<html>")
    with pytest.raises(WheelProblem, match=r"x\.whl is not a wheel"):
        Wheel(str(tmp_path / "x.whl"), SITE, "/bin/python")


def test_a_wheel_whose_members_are_damaged_is_refused(tmp_path):
    """By whoever built it: its bytes are those of the lock."""
    path = make(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"int x;", b"int y;"))
    with pytest.raises(WheelProblem, match=r"demo_tool-1\.2-py3-none-any\.whl cannot be unpacked: Bad CRC-32"):
        unpack(path, tmp_path / "env")
