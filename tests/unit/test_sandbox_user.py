"""A compilation that is hostile, as a user without root: it reaches neither root, nor a network, nor the user's files."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import locked_command
import pytest
from ansible.module_utils.hadoop_dl_host import sandbox_user
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from python_files import write_script

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")

CALLER = """
import json, os
from ansible.module_utils.hadoop_dl_host import processes, sandbox_user
home, kind = sys.argv[2:]
os.environ["PATH"] = home + "/jdk/bin:" + home + "/.local/bin:" + os.environ["PATH"]
read = sandbox_user.named_in_homes([os.environ["PATH"]])
prepare = sandbox_user.UserSandbox(home + "/bazel", read) if kind == "foreign" else None
answer = processes.run(["sh", home + "/bazel/compile.sh"], 60, dict(os.environ, KIND=kind), prepare=prepare)
print(json.dumps([answer.status, answer.output, answer.error]))
"""
# What compile.sh of bazel's sources could do: each line is what it reaches.
HOSTILE = """
cat $HOME/.ssh/id_rsa
tool
hidden-tool
cat $HOME/.local/share/keyring
echo $KIND >> $HOME/.bashrc && echo wrote .bashrc
cp $HOME/bazel/compile.sh $HOME/jdk/bin/sudo && echo wrote sudo
echo $KIND > $HOME/bazel/output && echo wrote output
$HOME/bazel/sudo -u | grep '^0$'
grep -c : /proc/net/dev
echo $KIND > %s/socket-of-others && echo wrote below tmp
umount -l $HOME && cat $HOME/.ssh/id_rsa
true
"""


@pytest.fixture
def home(open_directory: Path) -> Path:
    """Of the user nobody, with a key, a JDK of the user's own, a setuid program, and the sources below bazel/."""
    directory = open_directory / "home"
    for name in (".ssh", ".local/share", "bazel"):
        (directory / name).mkdir(parents=True)
    (directory / ".ssh/id_rsa").write_text("the key\n")
    (directory / ".local/share/keyring").write_text("the keyring\n")
    for name in ("jdk/bin/tool", ".local/bin/hidden-tool"):
        write_script(directory / name, "echo a ${0##*/}")
    shared_directory = open_directory / "others"
    shared_directory.mkdir(mode=0o777)
    shared_directory.chmod(0o777)
    (directory / "bazel/compile.sh").write_text(HOSTILE % shared_directory)
    for path in [directory, *directory.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    shutil.copy("/usr/bin/id", directory / "bazel/sudo")
    (directory / "bazel/sudo").chmod(0o4755)
    shutil.copytree(UTILITIES, open_directory / "utilities")
    return directory


def compiled(python: str, home: Path, kind: str) -> list[str]:
    argv = [python, "-c", WITHOUT_ANSIBLE + CALLER, str(home.parent / "utilities"), str(home), kind]
    completed = subprocess.run(
        argv, env={"PATH": "/usr/bin:/bin", "HOME": str(home)}, cwd="/", user=NOBODY, group=NOBODY, extra_groups=[],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.stderr == ""
    status, output, error = json.loads(completed.stdout)
    assert status == 0, error
    return output.splitlines()


@pytest.fixture(params=HOST_PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """A Python of hosts that nobody may run, which one below a closed home is not."""
    try:
        subprocess.run([request.param, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=True)
    except PermissionError:
        pytest.skip(f"{request.param} cannot be run by nobody: a directory above it is closed")
    return str(request.param)


def test_without_a_retreat_a_compilation_reaches_everything(home, open_python):
    lines = compiled(open_python, home, "trusted")
    traces = ["the key", "a tool", "a hidden-tool", "the keyring", "wrote .bashrc", "wrote sudo", "wrote output", "0"]
    assert lines == [*traces, str(len(socket.if_nameindex())), "wrote below tmp"]


def test_a_compilation_has_no_network_no_root_and_no_file_of_the_home(python, home):
    lines = compiled(python, home, "foreign")
    assert lines == ["a tool", "a hidden-tool", "wrote .bashrc", "wrote output", "1"]
    assert not (home / ".bashrc").exists(), "it wrote one that went with it"
    assert (home / "bazel/output").read_text() == "foreign\n"
    assert sorted(path.name for path in home.iterdir()) == [".local", ".ssh", "bazel", "jdk"]
    assert not list((home.parent / "others").iterdir())


def test_what_the_kernel_refuses_is_a_warning_and_sudo_stays_closed(monkeypatch):
    """As RHEL 7's kernel with user.max_user_namespaces=0."""
    warnings: list[str] = []

    class Module:
        params: dict[str, Any] = {"root": "/tmp", "environment": {}, "purpose": "compiling bazel 0.26.1"}
        warn = staticmethod(warnings.append)

    monkeypatch.setattr(sandbox_user, "NAMESPACES", 1)
    assert type(locked_command.secluded(Module())) is sandbox_user.WithoutSudo
    assert warnings == [
        "This host should let users have namespaces (sysctl user.max_user_namespaces) but refuses namespaces of its own (Invalid argument). "
        "The network and the files of the user were open to it: compiling bazel 0.26.1."
    ]
