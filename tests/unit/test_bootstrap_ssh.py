"""playbooks/bootstrap_ssh.yml against real SSH servers on loopback, whose shell lives in a temporary directory."""

import logging
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from ansible_programs import REPOSITORY
from python_files import write_script

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives for one test
PROGRAMS = Path(sys.executable).parent
TOOLS = ("sh", "grep", "tail", "head", "mkdir", "chmod", "stat", "true")


class FakeHost(paramiko.ServerInterface):
    """An SSH server whose home, /usr/bin and sudo are a directory; commands really run there."""

    def __init__(self, root: Path) -> None:
        self.home, self.bin = root / "home", root / "bin"
        self.home.mkdir(parents=True)
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.tool("id", "echo 1000")
        self.tool("sudo", "echo 0")
        self.tool("python3", "echo 3.6.8")
        self.host_key: paramiko.PKey = paramiko.ECDSAKey.generate()
        self.password, self.hangs = PASSWORD, False
        self.password_tries: list[str] = []
        self.stop = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def tool(self, name: str, script: str) -> None:
        write_script(self.bin / name, script)

    @property
    def authorized_keys(self) -> Path:
        return self.home / ".ssh" / "authorized_keys"

    def _serve(self) -> None:
        while not self.stop.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            transport.start_server(event=threading.Event(), server=self)

    def close(self) -> None:
        self.stop.set()
        self.listener.close()

    def get_allowed_auths(self, username):
        return "password,publickey"

    def check_auth_password(self, username, password):
        self.password_tries.append(password)
        return paramiko.AUTH_SUCCESSFUL if password == self.password else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username, key):
        strict = stat.S_IMODE(self.home.stat().st_mode) & 0o022 == 0
        is_authorized = self.authorized_keys.is_file() and key.get_base64() in self.authorized_keys.read_text()
        return paramiko.AUTH_SUCCESSFUL if is_authorized and strict else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        if not self.hangs:
            threading.Timer(0.5, self._execute, (channel, command)).start()  # after the answer that it begins
        return True

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        script = command.replace(b"/usr/bin/", f"{self.bin}/".encode()).replace(b"/usr/libexec/", b"/no/such/")
        environment = {"HOME": str(self.home), "PATH": str(self.bin)}
        done = subprocess.run([self.bin / "sh", "-c", script], env=environment, capture_output=True, check=False)
        channel.sendall(done.stdout)
        channel.sendall_stderr(done.stderr)
        channel.send_exit_status(done.returncode)
        channel.close()


class Site:
    """A controller: its home with a key pair, and its hosts."""

    def __init__(self, root: Path) -> None:
        self.root, self.hosts, self.lines = root, dict[str, FakeHost](), list[str]()
        self.known_hosts = root / ".ssh" / "known_hosts"
        self.known_hosts.parent.mkdir(mode=0o700)
        key = paramiko.ECDSAKey.generate()
        key.write_private_key_file(str(root / ".ssh/id_ecdsa"))
        self.public_key = f"{key.get_name()} {key.get_base64()} operator@controller"
        (root / ".ssh/id_ecdsa.pub").write_text(f"{self.public_key}\n")
        (root / "opener").write_text("opener\n")
        (root / "password.yml").write_text(f"ansible_password: {PASSWORD}\n")
        vault = [PROGRAMS / "ansible-vault", "encrypt", "--vault-password-file", root / "opener", root / "password.yml"]
        subprocess.run(vault, check=True, capture_output=True)

    def host(self, name: str) -> FakeHost:
        host = self.hosts[name] = FakeHost(self.root / name)
        self.add(name, f"ansible_host=127.0.0.1 ansible_port={host.port}")
        return host

    def add(self, name: str, variables: str) -> None:
        self.lines.append(f"{name} {variables}\n")

    def run(self, *options: str, password: bool = True) -> tuple[int, str]:
        """The exit status, and the output in one line for each host that failed."""
        (self.root / "hosts").write_text("".join(["[all:vars]\nansible_user=operator\n[all]\n", *self.lines]))
        command = [PROGRAMS / "ansible-playbook", "-i", self.root / "hosts", REPOSITORY / "playbooks/bootstrap_ssh.yml"]
        if password:
            command += ["--vault-password-file", self.root / "opener", "-e", f"@{self.root}/password.yml"]
        environment = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
        answer = subprocess.run(
            [*command, *options],
            cwd=REPOSITORY,
            env=environment | {"HOME": str(self.root), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        output = answer.stdout + answer.stderr
        assert PASSWORD not in output
        return answer.returncode, output


def failure(output: str, name: str) -> str:
    """What the playbook says of a host that is not ready; nothing of one that is."""
    match = re.search(rf"^fatal: \[{name}\]:.*?(?=^\S+: \[|^TASK|^PLAY|\Z)", output, re.MULTILINE | re.DOTALL)
    return match[0] if match else ""


def recap(output: str, name: str) -> dict[str, int]:
    line = re.search(rf"^{name} +: (.*)$", output, re.MULTILINE)
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line[1])} if line else {}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for host in site.hosts.values():
        host.close()


logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # its threads print tracebacks of scans
YES = ("-e", "assume_yes=true")


def test_bare_hosts_get_the_key_and_a_second_run_changes_nothing(site):
    bare, others, comment, loose, root, asks = map(site.host, ("bare", "others", "comment", "loose", "root", "asks"))
    site.add("here", "ansible_connection=local")
    for host in (others, comment, loose):
        host.authorized_keys.parent.mkdir()
    others.authorized_keys.write_text('# people\nfrom="10.0.0.1" ssh-rsa AAAA colleague')  # without a line end
    comment.authorized_keys.write_text(f"# {site.public_key}\n")
    loose.authorized_keys.parent.chmod(0o777)
    loose.authorized_keys.touch()
    loose.authorized_keys.chmod(0o666)
    bare.tool("restorecon", f'echo "$@" > {bare.home}/restored')
    root.tool("id", "echo 0")
    (root.bin / "sudo").unlink()
    asks.tool("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    other = f"other ecdsa-sha2-nistp256 {paramiko.ECDSAKey.generate().get_base64()}"
    site.known_hosts.write_text(f"# ours\n{other}")  # without a line end

    code, output = site.run(*YES)
    assert code == 0, output
    assert recap(output, "here").get("ok", 0) <= 2, "it is not reached by SSH"
    for host in site.hosts.values():
        assert host.authorized_keys.read_text().splitlines()[-1] == site.public_key
        assert (mode(host.authorized_keys), mode(host.authorized_keys.parent)) == (0o600, 0o700)
        assert f"[127.0.0.1]:{host.port} (ECDSA)" in output, "the fingerprint is shown"
        subprocess.run(["ssh-keygen", "-f", site.known_hosts, "-F", f"[127.0.0.1]:{host.port}"], check=True)
    assert others.authorized_keys.read_text().splitlines()[:2] == [
        "# people",
        'from="10.0.0.1" ssh-rsa AAAA colleague',
    ]
    assert bare.password_tries == [PASSWORD]
    assert (bare.home / "restored").read_text().split() == ["-R", str(bare.home / ".ssh")]
    assert site.known_hosts.read_text().splitlines()[:2] == ["# ours", other]
    assert "python=3.6.8" in output
    assert "sudo=password: run playbooks with -K" in output

    subprocess.run(["ssh-keygen", "-q", "-H", "-f", site.known_hosts], check=True, capture_output=True)
    before = site.known_hosts.read_text()
    assert "127.0.0.1" not in before
    code, output = site.run(password=False)
    assert (code, {recap(output, name)["changed"] for name in site.hosts}) == (0, {0}), output
    assert site.known_hosts.read_text() == before


# The sentences of sudo 1.8.23 and 1.9.5.
NO_TERMINAL = "echo 'sudo: no tty present and no askpass program specified' >&2; exit 1"
NO_REQUIRED_TERMINAL = "echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1"
TEMPLATE = '{{ lookup("ansible.builtin.pipe", "touch ~/harm") }}'
FAULTS: dict[str, tuple[Callable[[FakeHost], object], str]] = {
    "open": (lambda host: host.home.chmod(0o777), "sshd on open must accept the key.*drwxrwxrwx"),
    "file": (lambda host: host.authorized_keys.parent.write_text("a file"), r"\.ssh"),
    "python": (lambda host: (host.bin / "python3").unlink(), "must have Python 2.7 or 3"),
    "tty": (lambda host: host.tool("sudo", NO_REQUIRED_TERMINAL), "visudo: Defaults:USER !requiretty"),
    "askpass": (lambda host: host.tool("sudo", NO_TERMINAL), "NOPASSWD: ALL"),
    "missing": (lambda host: (host.bin / "sudo").unlink(), "sudo=missing"),
    "cursor": (lambda host: host.tool("sudo", "printf 'no\\033[2J' >&2; exit 1"), "sudo=no"),
    "template": (lambda host: host.tool("sudo", f"echo '{TEMPLATE}' >&2; exit 1"), "answers sudo=no {{ lookup"),
    "wrong": (lambda host: setattr(host, "password", "another"), "UNREACHABLE.*uthenticat"),
    "hangs": (lambda host: setattr(host, "hangs", True), "expected time ?frame"),
}


def test_each_host_that_is_not_ready_is_named_and_stops_no_other(site):
    good = site.host("good")
    site.add("silent", "ansible_host=127.0.0.1 ansible_port={}")
    site.add("none", "ansible_host=data1..example.com")
    site.add("down", "ansible_host=127.0.0.1 ansible_port=1")
    site.add("bastion", "ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_common_args='-o ProxyJump=gate.example.com'")
    for name, (change, _) in FAULTS.items():
        change(site.host(name))
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        site.lines[1] = site.lines[1].format(silent.getsockname()[1])
        code, output = site.run(*YES, "-e", "__seconds=20")
    assert time.monotonic() - begin < 150
    assert code != 0
    told = {name: failure(output, name) for name in FAULTS}
    assert {n: t for n, t in told.items() if not re.search(FAULTS[n][1], t, re.DOTALL)} == {}
    assert re.search("ssh reports|time ?frame", failure(output, "silent"))
    assert "ssh reports: ssh: Could not resolve" in failure(output, "none")
    assert "Connection refused" in failure(output, "down")
    assert "run this playbook on the bastion" in failure(output, "bastion")
    assert "\x1b" not in output
    assert not (site.root / "harm").exists()
    assert site.hosts["wrong"].password_tries == [PASSWORD], "a password is tried once"
    assert site.hosts["tty"].authorized_keys.exists(), "the key is installed all the same"
    assert (failure(output, "good"), good.authorized_keys.read_text()) == ("", f"{site.public_key}\n")


@pytest.mark.parametrize("case", ["changed", "type", "revoked"])
def test_a_host_key_that_must_not_be_trusted_is_refused_whatever_was_asked(site, case):
    host = site.host("data1")
    recorded: paramiko.PKey = paramiko.ECDSAKey.generate() if case != "type" else paramiko.RSAKey.generate(2048)
    mark, name = ("@revoked ", "*") if case == "revoked" else ("", f"[127.0.0.1]:{host.port}")
    key = host.host_key if case == "revoked" else recorded
    content = f"{mark}{name} {key.get_name()} {key.get_base64()}\n"
    site.known_hosts.write_text(content)
    code, output = site.run(*YES)
    assert code == 2
    assert "Nothing was sent to it" in failure(output, "data1")
    assert "ssh-keygen -R" in failure(output, "data1")
    assert (site.known_hosts.read_text(), host.password_tries, host.authorized_keys.exists()) == (content, [], False)


def test_an_unknown_host_key_is_not_recorded_without_consent(site):
    host = site.host("data1")
    code, output = site.run()
    assert code == 2
    assert "No host was changed. Type yes, or add -e assume_yes=true" in failure(output, "data1")
    assert "SHA256:" in output
    assert (site.known_hosts.exists(), host.password_tries) == (False, [])


def test_check_mode_writes_nothing_anywhere(site):
    host = site.host("data1")
    assert site.run("--check")[0] == 0
    assert (site.known_hosts.exists(), list(host.home.iterdir())) == (False, [])
    key = host.host_key
    site.known_hosts.write_text(f"[127.0.0.1]:{host.port} {key.get_name()} {key.get_base64()}\n")
    code, output = site.run("--check")
    assert (code, "key=would be added" in output, list(host.home.iterdir())) == (0, True, []), output


@pytest.mark.parametrize("content", [b"\xff\xfe\x00binary", b"-----BEGIN PRIVATE KEY-----\n", None])
def test_a_private_or_a_binary_or_a_missing_key_is_never_installed(site, content):
    site.add("data1", "ansible_host=127.0.0.1 ansible_port=1")
    path = site.root / "key.pub"
    if content:
        path.write_bytes(content)
    code, output = site.run("-e", f"bootstrap_public_key={path}")
    assert code == 2
    assert "A public key in one line is required" in failure(output, "data1")


def test_a_login_without_a_key_is_told_how_to_make_one(site):
    site.add("data1", "ansible_host=127.0.0.1 ansible_port=1")
    for path in (site.root / ".ssh").iterdir():
        path.unlink()
    code, output = site.run()
    assert (code, "~/.ssh has none. No host was contacted" in failure(output, "data1")) == (2, True), output
