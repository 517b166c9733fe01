"""Programs that are hostile, run by root in a cell on this machine: none runs as root, reaches what is root's, or remains."""

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

import pytest
from ansible.module_utils.hadoop_dl_host import processes, sandbox_cell
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from other_processes import lasting
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")

VARIABLES = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
# What every program below begins with.
BEGIN = """
import json, os, socket, sys, time

def attempt(action):
    try:
        return "done: %r" % (action(),)
    except Exception as error:
        return type(error).__name__

def report(**found):
    print(json.dumps(found))
"""


class Cell:
    """A cell below a directory that all users can enter, and what is left of it."""

    def __init__(self, directory: Path, python: str) -> None:
        self.path, self.python, self.number = directory / "cell", python, -1

    def run(self, program: str, seconds: int = 60) -> processes.Answer:
        with sandbox_cell.Cell(str(self.path)) as cell:
            self.number = cell.number
            return cell.run([self.python, "-c", BEGIN + program], seconds, VARIABLES)

    def report(self, program: str) -> dict[str, Any]:
        answer = self.run(program)
        assert answer.status == 0, answer.problem
        return json.loads(answer.output.splitlines()[-1])

    @property
    def left(self) -> list[str]:
        """Processes of its user, and its directory."""
        pids = [str(pid) for pid in sandbox_cell.of_processes().get(self.number, [])]
        return pids + [str(self.path)] * self.path.exists()


@pytest.fixture
def cell(open_directory: Path, open_python: str) -> Iterator[Cell]:
    new_cell = Cell(open_directory, open_python)
    yield new_cell
    sandbox_cell.clear(str(new_cell.path))


# --- as whom a program runs -------------------------------------------------------------------------------------------


IDENTITY = """
status = dict(line.strip().split(":", 1) for line in open("/proc/self/status"))
import resource
mask = os.umask(0)
open("written", "w").close()
report(
    uid=os.getresuid(), gid=os.getresgid(), groups=os.getgroups(), mask=mask, cwd=os.getcwd(), home=os.environ["HOME"],
    temporary=os.environ["TMPDIR"], secret=os.environ.get("SECRET"), privileges=status["NoNewPrivs"].strip(),
    capabilities=status["CapEff"].strip() + status["CapPrm"].strip(), descriptors=sorted(os.listdir("/proc/self/fd")),
    processes=resource.getrlimit(resource.RLIMIT_NPROC), size=resource.getrlimit(resource.RLIMIT_FSIZE),
)
"""


def test_a_program_runs_as_a_user_that_no_account_has(cell, monkeypatch):
    monkeypatch.setenv("SECRET", "root's")
    report = cell.report(IDENTITY)
    [number] = set(report["uid"]) | set(report["gid"])
    assert number in sandbox_cell.NUMBERS
    assert report["groups"] == []
    assert report["mask"] == 0o077
    path = str(cell.path)
    assert (report["cwd"], report["home"], report["temporary"]) == (path, path, f"{path}/tmp")
    assert report["secret"] is None
    assert report["privileges"] == "1"
    assert set(report["capabilities"]) == {"0"}
    assert report["descriptors"] == ["0", "1", "2", "3"]  # the last is the listing's own: not the lock, no socket
    assert report["processes"] == [256, 256]
    assert report["size"] == [512 << 20, 512 << 20]
    assert cell.left == []


# --- what it reaches ---------------------------------------------------------------------------------------------------


def test_a_program_changes_nothing_of_root(cell, open_directory):
    (open_directory / "file").touch()
    places = ["/opt", str(open_directory), "/etc", "/root"]
    report = cell.report(
        f"report(writes=[attempt(lambda: open(path + '/evil', 'w')) for path in {places!r}],"
        f" replaced=attempt(lambda: os.rename({str(open_directory / 'file')!r}, 'file')))"
    )
    assert report == {"writes": ["PermissionError"] * len(places), "replaced": "PermissionError"}


def test_a_program_reads_no_secret_of_root(cell, open_directory):
    secret = open_directory / "secret"
    secret.write_text("password")
    secret.chmod(0o600)
    report = cell.report(
        f"report(secret=attempt(lambda: open({str(secret)!r}).read()), shadow=attempt(lambda: open('/etc/shadow').read()),"
        f" environment=attempt(lambda: open('/proc/{os.getpid()}/environ').read()),"
        f" signal=attempt(lambda: os.kill({os.getpid()}, 0)), link=attempt(lambda: os.link({str(secret)!r}, 'secret')))"
    )
    assert set(report.values()) == {"PermissionError"}


def test_a_program_has_no_network_and_no_socket_of_a_service(cell):
    abstract, name = socket.socket(socket.AF_UNIX), f"\0evil-{os.getpid()}"
    abstract.bind(name)
    abstract.listen()
    service, path = socket.socket(socket.AF_UNIX), f"/run/evil-{os.getpid()}"
    service.bind(path)
    os.chmod(path, 0o777)  # noqa: S103  (all users may connect)
    service.listen()
    server = socket.create_server(("127.0.0.1", 0))
    try:
        report = cell.report(
            "def unix(path):\n    socket.socket(socket.AF_UNIX).connect(path)\n"
            f"report(tcp=attempt(lambda: socket.create_connection({server.getsockname()!r}, 5)),"
            f" abstract=attempt(lambda: unix({name!r})), service=attempt(lambda: unix({path!r})),"
            " devices=os.listdir('/sys/class/net') and open('/proc/net/dev').read().count(':'))"
        )
        expected_errors = {"tcp": "OSError", "abstract": "ConnectionRefusedError", "service": "FileNotFoundError"}
        assert report == {**expected_errors, "devices": 1}
    finally:
        os.unlink(path)
        for listener in (abstract, service, server):
            listener.close()


def test_a_program_leaves_no_file_outside(cell):
    name = f"evil-{os.getpid()}"
    report = cell.report(
        f"report(done=[attempt(lambda: open(place + '/{name}', 'w').write('x')) for place in ('/var/tmp', '/dev/shm', '/run')])"
    )
    assert report == {"done": ["done: 1"] * 3}
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


def test_a_process_that_a_program_leaves_behind_is_ended(cell):
    cell.report(DAEMON + "report()")
    assert cell.left == []


def test_processes_that_kill_their_killer_are_ended(cell):
    """A process may signal all others of its user: who ends them has the number as its effective one only."""
    cell.report(
        "import signal\nfor _ in range(8):\n    if os.fork() == 0:\n        os.setsid()\n        open('alive', 'w').close()\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n        end = time.time() + 60\n        while time.time() < end:\n"
        "            for pid in os.listdir('/proc'):\n                if pid.isdigit() and int(pid) > os.getpid() + 20:\n"
        "                    attempt(lambda: os.kill(int(pid), 9))\n        os._exit(0)\n"
        "while not os.path.exists('alive'):\n    time.sleep(0.01)\nreport()"
    )
    assert cell.left == []


FORKS = """
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("time.sleep(600)", "within 3 s"),
        ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True: pass", "within 3 s"),
        (FORKS, "within 3 s"),
        ("open('large', 'w').truncate(1 << 40)", "status"),
        ("x = bytearray(16 << 30)", "MemoryError"),
    ],
    ids=["sleeps", "ignores signals", "forks without end", "fills the disk", "fills the memory"],
)
def test_a_program_has_limits(cell, program, words):
    start = time.monotonic()
    answer = cell.run(program, 3)
    assert answer.status != 0
    assert words in answer.problem
    assert time.monotonic() - start < 30
    assert cell.left == []


def test_directories_deeper_than_a_path_can_name_are_removed(cell):
    cell.report("for _ in range(3000):\n    os.mkdir('directory')\n    os.chdir('directory')\nreport()")
    assert cell.left == []


CALLER = """
from ansible.module_utils.hadoop_dl_host import sandbox_cell
with sandbox_cell.Cell(sys.argv[2]) as cell:
    cell.run(["/bin/sh", "-c", "setsid sleep 600 & touch begun; sleep 600"], 600, {"PATH": "/usr/bin:/bin"})
"""


def test_a_kill_of_the_caller_ends_the_program_and_the_next_run_removes_the_rest(cell):
    caller = subprocess.Popen([sys.executable, "-c", WITHOUT_ANSIBLE + CALLER, UTILITIES, str(cell.path)])
    try:
        until((cell.path / "begun").exists)
        cell.number = cell.path.stat().st_uid
        assert cell.number in sandbox_cell.NUMBERS
        caller.send_signal(signal.SIGKILL)
        caller.wait()
        # The program itself ends with its caller; what it started waits for the next run.
        until(lambda: len(sandbox_cell.of_processes().get(cell.number, [])) < 3)
        assert cell.left
        sandbox_cell.clear(str(cell.path))
        assert cell.left == []
    finally:
        caller.kill()


# --- where it cannot be confined ----------------------------------------------------------------------------------------


def test_without_a_network_of_its_own_nothing_runs(cell, open_directory):
    """As in a container without CAP_SYS_ADMIN: the kernel refuses, and the caller ends with a sentence."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv (util-linux) on this machine")
    program = [sys.executable, "-c", WITHOUT_ANSIBLE + CALLER, UTILITIES, str(cell.path)]
    argv = [setpriv, "--bounding-set=-sys_admin", *program]
    completed = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert completed.stderr.splitlines()[-1] == (
        f"{sandbox_cell.__name__}.NotConfined: This host must be able to confine a program but refuses a network of its own "
        "(Operation not permitted)."
    )
    assert not cell.path.exists()


QUESTION = """
from ansible.module_utils.hadoop_dl_host import host_reader
print(host_reader.read()["cell_problem"])
"""


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        ("-sys_admin", "This host must be able to confine a program but refuses a network of its own (Operation not permitted)."),
        ("-setuid", "This host must be able to confine a program but refuses [Errno 1] Operation not permitted."),
        ("+sys_admin", "None"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_whether_the_kernel_grants_a_cell_is_known_before_anything_is_fetched(python, refused, sentence):
    argv = ["setpriv", f"--bounding-set={refused}", python, "-c", WITHOUT_ANSIBLE + QUESTION, UTILITIES]
    completed = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (completed.stdout.strip(), completed.stderr) == (sentence, "")


FRENCH = r"""
from ansible.module_utils.hadoop_dl_host import sandbox_child, processes

text = b"Op\xc3\xa9ration non permise"

class Refused(sandbox_child.Child):
    def enter(self):
        raise OSError(text if str is bytes else text.decode("utf-8"))

answer = processes.run(["/bin/true"], 20, prepare=Refused())
print([answer.status, answer.error.encode("utf-8") == text + b"."])
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_refusal_in_the_hosts_own_language_is_a_sentence(python):
    argv = [python, "-c", WITHOUT_ANSIBLE + FRENCH, UTILITIES]
    completed = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (completed.stdout.strip(), completed.stderr) == ("[125, True]", "")


def test_a_directory_that_users_cannot_enter_is_named(cell, open_directory):
    open_directory.chmod(0o700)
    with pytest.raises(sandbox_cell.NotConfined, match=rf"must be able to enter {open_directory} \(chmod o\+x\)"):
        cell.run("report()")


def test_numbers_of_accounts_groups_and_processes_are_not_used(monkeypatch):
    account, group, process, free = sandbox_cell.NUMBERS[:4]

    monkeypatch.setattr(sandbox_cell.pwd, "getpwuid", {account: "its entry"}.__getitem__)
    monkeypatch.setattr(sandbox_cell.grp, "getgrgid", {group: "its entry"}.__getitem__)
    with lasting(user=process):
        assert sandbox_cell.free_numbers(4, [account, group, process, free]) == [free]


def test_processes_are_ended_although_the_accounts_of_the_host_give_no_answer(monkeypatch):
    monkeypatch.setattr(sandbox_cell, "has_account", lambda number: pytest.fail("the accounts were read"))
    with lasting(user=sandbox_cell.NUMBERS[0]) as sleeper:
        sandbox_cell.end_processes(sandbox_cell.NUMBERS[0])
        assert sleeper.wait(5) == -signal.SIGKILL


def test_only_processes_of_confined_programs_are_ended():
    with pytest.raises(sandbox_cell.NotConfined, match="0 is no user number of confined programs"):
        sandbox_cell.end_processes(0)
    with pytest.raises(sandbox_cell.NotConfined, match="65534 is no user number"):
        sandbox_cell.end_processes(65534)


PROGRAM = """
import json, os
from ansible.module_utils.hadoop_dl_host import sandbox_cell
path = sys.argv[2]
with sandbox_cell.Cell(path) as cell:
    program = "id -u; id -g; id -G; umask; pwd; cat /proc/net/dev | grep -c :; setsid sleep 600 & echo $!"
    answer = cell.run(["/bin/sh", "-c", program], 20, {"PATH": "/usr/bin:/bin"})
    alive = os.path.exists("/proc/%s/exe" % answer.output.split()[-1])
    number = cell.number
print(json.dumps([answer.status, answer.output.splitlines()[:-1], number, alive, os.path.exists(path)]))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_program_is_confined_by_the_pythons_of_hosts(python, open_directory):
    argv = [python, "-c", WITHOUT_ANSIBLE + PROGRAM, UTILITIES, str(open_directory / "cell")]
    completed = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert completed.stderr == ""
    status, output, number, alive, exists = json.loads(completed.stdout)
    assert status == 0
    assert output == [str(number)] * 3 + ["0077", str(open_directory / "cell"), "1"]
    assert (alive, exists) == (False, False)
