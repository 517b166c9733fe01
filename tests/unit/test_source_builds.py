"""Source distributions whose setup.py is hostile, built by root on this machine: none runs as root, reaches what is root's, or remains."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
from ansible.module_utils import confinement, source_builds
from ansible.module_utils.environment_packages import Refused
from environments import Site, copy_of
from interpreters import HOST_PYTHONS
from source_distributions import interpreter, sdist

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")

UTILS = Path(confinement.__file__).parent


class Host(Site):
    """A host whose component keras is one source distribution."""

    def offer(self, setup: str) -> None:
        content = sdist(setup)
        self.mirror.files["evil-1.0.tar.gz"] = content
        digest = hashlib.sha256(content).hexdigest()
        self.lines["keras"] = [f"evil==1.0 --hash=sha256:{digest}  # evil-1.0.tar.gz {len(content)}"]

    def build(self, setup: str) -> None:
        self.offer(setup)
        self.install("keras")

    @property
    def report(self) -> dict[str, Any]:
        text = (self.packages / "evil.py").read_text()
        found: dict[str, Any] = ast.literal_eval(text.partition("REPORT = ")[2])
        return found

    @property
    def left(self) -> list[str]:
        """What is left of builds: processes, and directories in the tree's state."""
        users = confinement.of_processes()
        found = [pid for number in confinement.NUMBERS for pid in users.get(number, []) if not self.is_of_another(pid)]
        state = self.tree / ".deeplearning"
        return [str(pid) for pid in found] + [name for name in ("build", "tmp") if (state / name).exists()]

    def is_of_another(self, pid: int) -> bool:
        """Whether it belongs to a container of this machine, or to a build of another test, which has another home."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            homes = [os.fsdecode(text[5:]) for text in environment if text.startswith(b"HOME=")]
            return os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid") or not all(
                Path(home).is_relative_to(self.tree) for home in homes
            )
        except OSError:  # it has ended
            return True


@pytest.fixture
def host(without_keras: tuple[Path, Path], open_directory: Path) -> Iterator[Host]:
    with copy_of(without_keras, open_directory / "deeplearning", Host) as found:
        yield found


# --- as whom a build runs ---------------------------------------------------------------------------------------------


IDENTITY = """
status = dict(line.strip().split(":", 1) for line in open("/proc/self/status"))
import resource
mask = os.umask(0)
report(
    uid=os.getresuid(), gid=os.getresgid(), groups=os.getgroups(), mask=mask, cwd=os.getcwd(), home=os.environ["HOME"],
    temporary=os.environ["TMPDIR"], secret=os.environ.get("SECRET"), privileges=status["NoNewPrivs"].strip(),
    capabilities=status["CapEff"].strip() + status["CapPrm"].strip(), descriptors=sorted(os.listdir("/proc/self/fd")),
    processes=resource.getrlimit(resource.RLIMIT_NPROC), size=resource.getrlimit(resource.RLIMIT_FSIZE),
)
"""


def test_a_source_distribution_is_built_by_a_user_that_no_account_has(host: Host, monkeypatch) -> None:
    monkeypatch.setenv("SECRET", "root's")
    host.build(IDENTITY)
    found = host.report
    [number] = set(found["uid"]) | set(found["gid"])
    assert number in confinement.NUMBERS
    assert found["groups"] == []
    assert found["mask"] == 0o077
    cell = str(host.tree / ".deeplearning" / "build")
    assert (found["cwd"], found["home"], found["temporary"]) == (f"{cell}/evil-1.0", cell, f"{cell}/tmp")
    assert found["secret"] is None
    assert found["privileges"] == "1"
    assert set(found["capabilities"]) == {"0"}
    assert found["descriptors"] == ["0", "1", "2", "3"]  # the last is the listing's own: not the lock, no socket
    assert found["processes"] == (256, 256)
    assert found["size"] == (512 << 20, 512 << 20)
    assert host.left == []
    # What it built is root's.
    assert {path.lstat().st_uid for path in host.tree.rglob("*")} == {0}


def test_an_environment_with_source_distributions_is_sealed_and_stays(host: Host) -> None:
    host.offer("wheel(text='VALUE = 1')")
    assert host.install("keras")["changed"] is True
    host.seal(imports=["tensorflow", "evil"])
    assert host.install("keras")["changed"] is False
    assert host.seal(imports=["tensorflow", "evil"])["sealed"] is False


def test_two_hosts_build_the_same_files(host: Host, open_directory: Path) -> None:
    contents = []
    for name in ("first", "second"):
        shutil.copytree(host.root, open_directory / name / "deeplearning", symlinks=True)
        other = Host(open_directory / name / "deeplearning", host.mirror, host.fixtures)
        other.build("wheel(text='HASHES = %r' % ({'a', 'b', 'c', 'd'},))")
        contents.append(other.content())
    assert contents[0] == contents[1]


# --- what it reaches ---------------------------------------------------------------------------------------------------


def test_a_build_changes_nothing_of_root(host: Host) -> None:
    places = ["/opt", str(host.tree), str(host.packages), str(host.tree / ".deeplearning"), "/etc", "/root"]
    host.build(
        f"report(writes=[attempt(lambda: open(path + '/evil', 'w')) for path in {places!r}],"
        f" replaced=attempt(lambda: os.rename({str(host.packages / 'six.py')!r}, 'six.py')))"
    )
    assert host.report == {"writes": ["PermissionError"] * len(places), "replaced": "PermissionError"}


def test_a_build_reads_no_secret_of_root(host: Host, open_directory: Path) -> None:
    secret = open_directory / "secret"
    secret.write_text("password")
    secret.chmod(0o600)
    host.build(
        f"report(secret=attempt(lambda: open({str(secret)!r}).read()), shadow=attempt(lambda: open('/etc/shadow').read()),"
        f" environment=attempt(lambda: open('/proc/{os.getpid()}/environ').read()),"
        f" signal=attempt(lambda: os.kill({os.getpid()}, 0)), link=attempt(lambda: os.link({str(secret)!r}, 'secret')))"
    )
    assert set(host.report.values()) == {"PermissionError"}


def test_a_build_has_no_network_and_no_socket_of_a_service(host: Host) -> None:
    abstract, name = socket.socket(socket.AF_UNIX), f"\0evil-{os.getpid()}"
    abstract.bind(name)
    abstract.listen()
    service, path = socket.socket(socket.AF_UNIX), f"/run/evil-{os.getpid()}"
    service.bind(path)
    os.chmod(path, 0o777)  # noqa: S103  (all users may connect)
    service.listen()
    server = socket.create_server(("127.0.0.1", 0))
    try:
        host.build(
            "def unix(path):\n    socket.socket(socket.AF_UNIX).connect(path)\n"
            f"report(tcp=attempt(lambda: socket.create_connection({server.getsockname()!r}, 5)),"
            f" abstract=attempt(lambda: unix({name!r})), service=attempt(lambda: unix({path!r})),"
            " devices=os.listdir('/sys/class/net') and open('/proc/net/dev').read().count(':'))"
        )
        assert host.report == {
            "tcp": "OSError",
            "abstract": "ConnectionRefusedError",
            "service": "FileNotFoundError",
            "devices": 1,
        }
    finally:
        os.unlink(path)
        for one in (abstract, service, server):
            one.close()


def test_a_build_leaves_no_file_outside(host: Host) -> None:
    name = f"evil-{os.getpid()}"
    host.build(
        f"report(done=[attempt(lambda: open(place + '/{name}', 'w').write('x')) for place in ('/var/tmp', '/dev/shm', '/run')])"
    )
    assert host.report == {"done": ["done: 1"] * 3}
    assert [place for place in ("/var/tmp", "/dev/shm", "/run") if os.path.exists(f"{place}/{name}")] == []


# --- what is left of it ------------------------------------------------------------------------------------------------

DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            open("alive", "w").close()
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists("alive"):
    time.sleep(0.01)
"""


def test_a_process_that_a_build_leaves_behind_is_ended(host: Host) -> None:
    host.build(DAEMON + "report()")
    assert host.left == []


def test_processes_that_kill_their_killer_are_ended(host: Host) -> None:
    """A process may signal all others of its user: who ends them has the number as its effective one only."""
    host.build(
        "import signal\nfor _ in range(8):\n    if os.fork() == 0:\n        os.setsid()\n        open('alive', 'w').close()\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n        end = time.time() + 60\n        while time.time() < end:\n"
        "            for pid in os.listdir('/proc'):\n                if pid.isdigit() and int(pid) > os.getpid() + 20:\n"
        "                    attempt(lambda: os.kill(int(pid), 9))\n        os._exit(0)\n"
        "while not os.path.exists('alive'):\n    time.sleep(0.01)\nreport()"
    )
    assert host.left == []


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("time.sleep(600)", "did not end within 3 s"),
        (
            "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True: pass",
            "did not end within 3 s",
        ),
        (
            "def fork():\n    while True:\n        try:\n            if os.fork() == 0:\n                os.setsid()\n"
            "        except OSError:\n            time.sleep(0.01)\nfork()",
            "did not end within 3 s",
        ),
        ("open('large', 'w').truncate(1 << 40)", "status"),
        ("x = bytearray(16 << 30)", "MemoryError"),
    ],
    ids=["sleeps", "ignores signals", "forks without end", "fills the disk", "fills the memory"],
)
def test_a_build_has_limits(host: Host, monkeypatch, setup: str, words: str) -> None:
    monkeypatch.setattr(source_builds, "SECONDS", 3)
    start = time.monotonic()
    with pytest.raises(Refused, match=rf"evil-1\.0\.tar\.gz could not be built \(.*{words}"):
        host.build(setup)
    assert time.monotonic() - start < 30
    assert host.left == []


def test_directories_deeper_than_a_path_can_name_are_removed(host: Host) -> None:
    host.build("for _ in range(3000):\n    os.mkdir('directory')\n    os.chdir('directory')\nreport()")
    assert host.left == []


def test_a_kill_of_the_installer_ends_the_build_and_the_next_run_removes_the_rest(host: Host) -> None:
    host.offer(DAEMON + "open('begun', 'w').close()\ntime.sleep(600)")
    arguments = {
        "environment": str(host.path),
        "component": "keras",
        "lock": host.section("keras"),
        "mirror_url": host.mirror.url,
    }
    process = host_modules.start("locked_packages", **arguments)
    cell = host.tree / ".deeplearning" / "build"
    try:
        wait_for(lambda: (cell / "evil-1.0" / "begun").exists())
        number = cell.stat().st_uid
        assert number in confinement.NUMBERS
        process.send_signal(signal.SIGKILL)
        process.wait()
        # pip itself ends with its caller; what it started waits for the next run.
        wait_for(lambda: not [pid for pid in confinement.of_processes().get(number, []) if b"-m\0pip" in command(pid)])
        assert confinement.of_processes()[number]
        host.offer("wheel()")
        host.install("keras")
        assert number not in confinement.of_processes()
        assert host.left == []
    finally:
        process.kill()
        confinement.clear(str(cell))


def test_a_tree_of_a_killed_build_is_removed_with_its_processes(host: Host) -> None:
    """A tree that cannot be continued is built again by the component pip."""
    cell = confinement.Cell(str(host.tree / ".deeplearning" / "build")).__enter__()  # and no end, as after a kill
    left = subprocess.Popen(["/bin/sleep", "600"], user=cell.number, cwd=cell.path)
    try:
        (host.tree / ".deeplearning" / "failed").touch()
        host.install("pip", python=interpreter())
        assert left.wait(10) == -signal.SIGKILL
        assert not Path(cell.path).exists()
        assert [path.name for path in (host.root / "envs").iterdir() if path.name.startswith(".")] == []
    finally:
        left.kill()


def test_a_killed_build_of_another_stack_is_removed_with_its_environment(host: Host) -> None:
    """The operator requested another stack after the kill: no run continues the build, and its processes use nothing."""
    other = host.root / "envs" / "other-stack-fedcba987654.1"
    (other / ".deeplearning").mkdir(parents=True)
    cell = confinement.Cell(str(other / ".deeplearning" / "build")).__enter__()
    left = subprocess.Popen(["/bin/sleep", "600"], user=cell.number, cwd=cell.path)
    try:
        host.build("wheel()")
        host.seal(imports=["evil"])
        result = host.activate()
        assert (result["removed"], result["spared"]) == (["other-stack-fedcba987654"], {})
        assert left.wait(10) == -signal.SIGKILL
        assert not other.exists()
    finally:
        left.kill()


def wait_for(condition: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# --- what it answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("sys.exit('no compiler')", r"could not be built \(status 1\): no compiler\."),
        ("pass", "it must leave one wheel but left 0: none"),
        ("wheel()\nwheel('evil-1.0-py2-none-any.whl')", "it must leave one wheel but left 2: evil-1.0-py2"),
        ("wheel('six-1.0-py3-none-any.whl')", "must become evil 1.0 but six-1.0-py3-none-any.whl is of six 1.0"),
        ("wheel('evil-1.1-py3-none-any.whl')", r"is of evil 1\.1"),
        ("wheel(project='six')", "is of six 1.0"),
        ("wheel(version='2.0')", r"is of evil 2\.0"),
        ("wheel('evil-1.0.exe')", "left evil-1.0.exe, which is no name of a wheel"),
        ("wheel('evil-1.0-py3-none-any.whl\\n')", "which is no name of a wheel"),
        ("os.symlink('/etc/shadow', target + '/evil-1.0-py3-none-any.whl')", "is a link or something else than a file"),
        ("os.mkfifo(target + '/evil-1.0-py3-none-any.whl')", "is a link or something else than a file"),
        ("os.mkdir(target + '/evil-1.0-py3-none-any.whl')", "is a link or something else than a file"),
        ("wheel()\nos.link(target + '/evil-1.0-py3-none-any.whl', '../other')", "is another file of this host"),
        ("os.rmdir(target)\nos.symlink('/etc', target)", "it replaced the directory of its wheels"),
        ("os.rmdir(target)", "it left no wheel"),
        ("open(target + '/evil-1.0-py3-none-any.whl', 'w').write('<html>')", "cannot be read: File is not a zip file"),
        ("wheel(**{'../../../evil.py': ''})", "a member outside of its own tree"),
        ("wheel(**{'/etc/evil.py': ''})", "a member outside of its own tree"),
        ("wheel(**{'evil-1.0.data/data/lib/python3.11/os.py': ''})", "a file outside of the places of a package: lib/"),
        (
            "wheel(**{'evil-1.0.data/data/.deeplearning/sealed.json': ''})",
            "outside of the places of a package: .deeplearn",
        ),
        ("wheel(**{'evil-1.0.data/scripts/python': ''})", "a file outside of the places of a package: bin/python"),
        (
            "wheel(**{'evil-1.0.dist-info/entry_points.txt': '[console_scripts]\\npython3 = evil:main'})",
            "a file outside of the places of a package: bin/python3",
        ),
        ("wheel(**{'evil-1.0.data/scripts/activate': ''})", "a file of another wheel: bin/activate"),
        ("wheel(**{'six.py': 'evil = True'})", "a file of another wheel: lib/python"),
        ("wheel(**{'six.py/evil.py': ''})", r"a file in place of a directory: .*six\.py/evil\.py"),
        ("wheel(**{'six-1.0.dist-info': ''})", "metadata of another project"),
        ("wheel(**{'evil-1.0.data/data/share': ''})", "a file outside of the places of a package: share"),
        ("wheel(**{'x/y': '', 'x': ''})", "a file in place of a directory"),
        ("wheel(**{'x' * 256: ''})", "too long a name"),
        ("wheel(**{'x' * 200 + ('/' + 'x' * 200) * 5: ''})", "too long a name"),
        ("wheel(**{'six.pyc': ''})", r"bytecode: .*six\.pyc"),
        ("wheel(**{'__pycache__/six.cpython-311.pyc': ''})", "bytecode: "),
        ("wheel(**{'evil.pth': 'import os'})", r"a file that Python runs whenever it starts: .*evil\.pth"),
        ("wheel(**{'sitecustomize.py': ''})", "a file that Python runs whenever it starts"),
        ("wheel(**{'usercustomize/__init__.py': ''})", "a file that Python runs whenever it starts"),
        ("wheel(**{'six-9.dist-info/METADATA': ''})", "metadata of another project"),
        ("wheel(**{'six-9.dist-info/WHEEL': ''})", "must have one dist-info directory but has 2"),
        ("wheel(evil='x' * 5000000)", "has more in it than it may"),
        ("wheel(**{'evil-1.0.dist-info/entry_points.txt': 'x' * 2000000})", "has more in it than it may"),
        ("wheel(text=os.urandom(3000000))", "is larger than 2 MB"),
        ("wheel(**{str(number): '' for number in range(500)})", "has more than 400 files"),
        (
            "import warnings\nwarnings.simplefilter('ignore')\nwheel()\nz = zipfile.ZipFile(target + '/evil-1.0-py3-none-any.whl', 'a')\nz.writestr('evil.py', '')\nz.close()",
            "two files of one name",
        ),
        ("print('\\x1b[2J')\nsys.exit(1)", r"\): \?\[2J\."),
    ],
)
def test_what_a_build_leaves_is_examined(host: Host, monkeypatch, setup: str, words: str) -> None:
    for name, value in (("LARGEST", 2 << 20), ("CONTENT", 4 << 20), ("INFORMATION", 1 << 20), ("MEMBERS", 400)):
        monkeypatch.setattr(source_builds, name, value)
    before = {path: path.lstat().st_mtime_ns for path in host.tree.rglob("*") if ".deeplearning" not in str(path)}
    with pytest.raises(Refused, match=words):
        host.build(setup)
    after = {path: path.lstat().st_mtime_ns for path in host.tree.rglob("*") if ".deeplearning" not in str(path)}
    assert after == before
    assert host.left == []


def test_after_a_refusal_the_same_command_installs_the_right_file(host: Host) -> None:
    with pytest.raises(Refused):
        host.build("wheel(version='2.0')")
    host.build("wheel(text='VALUE = 1')")
    assert (host.packages / "evil.py").read_text() == "VALUE = 1"
    assert host.install("keras")["changed"] is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.2.3-2", "3.2.3.post2"),
        ("3.2.3_2", "3.2.3.post2"),
        ("1.0-rc1", "1.0rc1"),
        ("2026.01.2", "2026.1.2"),
        ("0.9999999", "0.9999999"),
        ("1.0.dev3", "1.0dev3"),
    ],
)
def test_versions_are_compared_as_what_they_mean(one: str, other: str) -> None:
    assert source_builds.release(one) == source_builds.release(other)
    assert source_builds.release(one) != source_builds.release(other + "1")


# --- where it cannot be confined ----------------------------------------------------------------------------------------


def test_without_a_network_of_its_own_nothing_is_built(host: Host, open_directory: Path) -> None:
    """As in a container without CAP_SYS_ADMIN: the kernel refuses, and the run ends with a sentence."""
    host.offer(f"open({str(open_directory / 'ran')!r}, 'w')\nreport()")
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv (util-linux) on this machine")
    arguments = {
        "environment": str(host.path),
        "component": "keras",
        "lock": host.section("keras"),
        "mirror_url": host.mirror.url,
    }
    module = [str(host_modules.PLUGINS / "modules" / "locked_packages.py"), str(host_modules.PLUGINS / "module_utils")]
    done = subprocess.run(
        [setpriv, "--bounding-set=-sys_admin", sys.executable, "-c", host_modules.BOOT, *module],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    message = json.loads(done.stdout)["msg"]
    assert message == (
        "evil-1.0.tar.gz is a source distribution, which is never built as root. This host must be able to confine a program "
        "but refuses a network of its own (Operation not permitted)."
    )
    assert host.left == []


def test_a_tree_that_users_cannot_read_is_named(host: Host, open_directory: Path) -> None:
    host.root.chmod(0o700)
    with pytest.raises(Refused, match=rf"must be able to enter {host.root} \(chmod o\+x\)"):
        host.build("report()")
    assert host.left == []


def test_numbers_of_accounts_groups_and_processes_are_not_used(monkeypatch) -> None:
    account, group, process, free = confinement.NUMBERS[:4]

    def only(number: int) -> Any:
        def ask(asked: int) -> None:
            if asked != number:
                raise KeyError(asked)

        return ask

    monkeypatch.setattr(confinement.pwd, "getpwuid", only(account))
    monkeypatch.setattr(confinement.grp, "getgrgid", only(group))
    sleeping = subprocess.Popen(["/bin/sleep", "60"], user=process)
    try:
        assert confinement.free_numbers(4, [account, group, process, free]) == [free]
    finally:
        sleeping.kill()
        sleeping.wait()


def test_only_processes_of_confined_programs_are_ended() -> None:
    with pytest.raises(confinement.NotConfined, match="0 is no user number of confined programs"):
        confinement.end_processes(0)
    with pytest.raises(confinement.NotConfined, match="65534 is no user number"):
        confinement.end_processes(65534)


PROGRAM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import confinement
path = sys.argv[2]
with confinement.Cell(path) as cell:
    program = "id -u; id -g; id -G; umask; pwd; cat /proc/net/dev | grep -c :; setsid sleep 600 & echo $!"
    answer = cell.run(["/bin/sh", "-c", program], 20, {"PATH": "/usr/bin:/bin"})
    alive = os.path.exists("/proc/%s/exe" % answer.output.split()[-1])
    number = cell.number
print(json.dumps([answer.status, answer.output.splitlines()[:-1], number, alive, os.path.exists(path)]))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_program_is_confined_by_the_pythons_of_hosts(python: str, open_directory: Path) -> None:
    done = subprocess.run(
        [python, "-c", PROGRAM, str(UTILS), str(open_directory / "cell")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    status, output, number, alive, there = json.loads(done.stdout)
    assert status == 0
    assert output == [str(number)] * 3 + ["0077", str(open_directory / "cell"), "1"]
    assert (alive, there) == (False, False)
