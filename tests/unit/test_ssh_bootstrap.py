"""scripts/bootstrap_ssh against real SSH servers on loopback, whose shell lives in a temporary directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
import time
import traceback
from pathlib import Path

import paramiko
import pytest
from python_files import write_script

from hadoop_dl.cli.ssh_bootstrap import cli, connections, credentials, host_keys, model, targets
from hadoop_dl.cli.ssh_bootstrap.model import Misuse

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives for one test
TOOLS = ("sh", "grep", "tail", "head", "mkdir", "chmod", "stat")


class FakeHost(paramiko.ServerInterface):
    """An SSH server whose home, /usr/bin and sudo are a directory; `sh -s` really runs there."""

    def __init__(self, root: Path) -> None:
        self.home, self.bin = root / "home", root / "bin"
        self.home.mkdir(parents=True)
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.tool("id", "echo 1000")
        self.tool("sudo", "echo 0")
        self.tool("python3", "echo 3.6.8")
        self.host_key = paramiko.ECDSAKey.generate()
        self.hang = self.deaf = False
        self.status_first = False
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
        return paramiko.AUTH_SUCCESSFUL if password == PASSWORD else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username, key):
        strict = stat.S_IMODE(self.home.stat().st_mode) & 0o022 == 0
        is_authorized = self.authorized_keys.exists() and key.get_base64() in self.authorized_keys.read_text()
        return paramiko.AUTH_SUCCESSFUL if is_authorized and strict else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        if self.deaf:
            self.stop.wait(30)
        threading.Thread(target=self._execute, args=(channel, command), daemon=True).start()
        return True

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        script = b""
        while part := channel.recv(65536):
            script += part
        if self.hang:
            self.stop.wait(30)
            return
        completed = subprocess.run(
            [str(self.bin / "sh"), *command.decode().split()[1:]],
            input=script.replace(b"/usr/bin/", f"{self.bin}/".encode()).replace(b"/usr/libexec/", b"/no/such/"),
            env={"HOME": str(self.home), "PATH": str(self.bin)},
            capture_output=True,
            check=False,
        )
        if self.status_first:  # as sshd does when the program has ended, but what it wrote is still in the pipe
            channel.sendall(completed.stdout[: len(completed.stdout) // 2])
            channel.send_exit_status(completed.returncode)
            time.sleep(0.3)
            channel.sendall(completed.stdout[len(completed.stdout) // 2 :])
        else:
            channel.sendall(completed.stdout)
            channel.send_exit_status(completed.returncode)
        channel.sendall_stderr(completed.stderr)
        channel.close()


@pytest.fixture
def start(tmp_path):
    hosts: list[FakeHost] = []

    def start() -> FakeHost:
        hosts.append(FakeHost(tmp_path / f"host{len(hosts)}"))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


@pytest.fixture
def server(start):
    return start()


@pytest.fixture(scope="session")
def keypair(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "id_ecdsa"
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(path))
    path.with_suffix(".pub").write_text(f"{key.get_name()} {key.get_base64()} operator@controller\n")
    return path


@pytest.fixture
def known_hosts(tmp_path) -> Path:
    return tmp_path / "ssh" / "known_hosts"


@pytest.fixture
def run(keypair, known_hosts, monkeypatch, capsys):
    """Call the command for servers or names; the password is what the prompt would answer. Returns exit code, results, and what was said."""

    def run(*hosts, options=("--accept-new",), password: str | None = PASSWORD):
        monkeypatch.setattr(credentials.getpass, "getpass", lambda prompt: password)
        code = cli.main(
            [
                *(host if isinstance(host, str) else f"operator@127.0.0.1:{host.port}" for host in hosts),
                f"--public-key={keypair}.pub",
                f"--known-hosts={known_hosts}",
                "--no-agent",
                "--timeout=30",  # a busy machine answers late; what must time out says so itself
                "--json",
                *(["--ask-password"] if password is not None else []),
                *options,
            ]
        )
        streams = capsys.readouterr()
        return code, json.loads(streams.out or "[]"), streams.err

    return run


def problems(results) -> str:
    return " ".join(problem for result in results for problem in result["problems"])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_bare_host_gets_the_key_and_is_described(run, server, keypair, known_hosts):
    code, [result], output = run(server)
    assert (code, result["problems"]) == (0, [])
    assert server.authorized_keys.read_text() == Path(f"{keypair}.pub").read_text()
    assert (mode(server.authorized_keys), mode(server.authorized_keys.parent)) == (0o600, 0o700)
    assert (result["host_key"], result["key"], result["sudo"]) == ("recorded", "added", "yes")
    assert result["python"].startswith("3.6.8 ")
    assert host_keys.fingerprint(server.host_key) in output
    assert known_hosts.read_text().startswith(f"[127.0.0.1]:{server.port} ecdsa-sha2-nistp256 ")
    assert mode(known_hosts) == 0o600
    subprocess.run(
        ["ssh-keygen", "-f", known_hosts, "-F", f"[127.0.0.1]:{server.port}"], check=True
    )  # OpenSSH finds it


def test_a_second_run_changes_nothing_and_needs_no_password(run, server, known_hosts):
    run(server)
    before = (server.authorized_keys.read_text(), known_hosts.read_text())
    code, [result], _ = run(server, options=(), password=None)
    assert (code, result["host_key"], result["key"]) == (0, "known", "there")
    assert (server.authorized_keys.read_text(), known_hosts.read_text()) == before


def test_an_answer_that_comes_after_the_exit_status_is_read(run, server):
    server.status_first = True
    code, [result], _ = run(server)
    assert (code, result["problems"], result["sudo"]) == (0, [], "yes")


def test_other_keys_stay_and_an_unfinished_last_line_does_not_swallow_ours(run, server, keypair):
    server.authorized_keys.parent.mkdir()
    server.authorized_keys.write_text('# people\nfrom="10.0.0.1" ssh-rsa AAAA colleague')
    assert run(server)[0] == 0
    assert server.authorized_keys.read_text().splitlines() == [
        "# people",
        'from="10.0.0.1" ssh-rsa AAAA colleague',
        Path(f"{keypair}.pub").read_text().strip(),
    ]


def test_a_key_that_stands_in_a_comment_is_not_there(run, server, keypair):
    server.authorized_keys.parent.mkdir()
    server.authorized_keys.write_text(f"# {Path(f'{keypair}.pub').read_text()}")
    code, [result], _ = run(server)
    assert (code, result["key"]) == (0, "added")


def test_loose_modes_are_tightened_because_sshd_would_ignore_the_key(run, server):
    server.authorized_keys.parent.mkdir(mode=0o777)
    server.authorized_keys.parent.chmod(0o777)
    server.authorized_keys.touch()
    server.authorized_keys.chmod(0o666)
    assert run(server)[0] == 0
    assert (mode(server.authorized_keys), mode(server.authorized_keys.parent)) == (0o600, 0o700)


def test_selinux_labels_are_restored_where_there_are_any(run, server):
    server.tool("restorecon", f'echo "$@" > {server.home}/restored')
    assert run(server)[0] == 0
    assert (server.home / "restored").read_text().split() == ["-R", str(server.home / ".ssh")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda server: server.home.chmod(0o777), "sshd does not accept it.*drwxrwxrwx"),
        (lambda server: server.authorized_keys.parent.write_text("a file"), "could not be written"),
        (lambda server: (server.bin / "python3").unlink(), "needs Python 2.7 or 3"),
    ],
)
def test_a_host_that_lacks_something_is_told(run, server, change, words):
    change(server)
    code, results, _ = run(server)
    assert code == 2
    assert re.search(words, problems(results))


def test_a_changed_host_key_is_refused_whatever_was_asked(run, server, known_hosts):
    run(server)
    content = known_hosts.read_text()
    server.authorized_keys.unlink()
    server.host_key = paramiko.ECDSAKey.generate()
    server.password_tries.clear()
    code, [result], _ = run(server)
    assert (code, result["host_key"]) == (2, "REFUSED")
    assert "nothing was sent to it" in problems([result])
    assert "ssh-keygen -f" in problems([result])
    assert server.password_tries == []
    assert known_hosts.read_text() == content
    assert not server.authorized_keys.exists()


def test_another_type_of_host_key_than_the_recorded_one_is_refused(run, server):
    run(server)
    server.host_key = paramiko.RSAKey.generate(2048)
    assert run(server)[1][0]["host_key"] == "REFUSED"


def test_a_revoked_host_key_is_refused(run, server, known_hosts):
    known_hosts.parent.mkdir()
    known_hosts.write_text(f"@revoked * {server.host_key.get_name()} {server.host_key.get_base64()}\n")
    code, results, _ = run(server)
    assert code == 2
    assert "@revoked" in problems(results)


def test_an_unknown_host_key_is_not_recorded_without_consent(run, server, known_hosts, monkeypatch):
    monkeypatch.setattr(cli.sys, "stdin", open(os.devnull))  # noqa: SIM115 - closed with the test
    code, [result], output = run(server, options=())
    assert (code, result["host_key"]) == (2, "not accepted")
    assert host_keys.fingerprint(server.host_key) in output
    assert not known_hosts.exists()
    assert server.password_tries == []


def test_an_unknown_host_key_is_recorded_after_a_yes(run, server, known_hosts, monkeypatch):
    monkeypatch.setattr(cli, "agree_on_terminal", lambda lines: True)
    assert run(server, options=())[0] == 0
    assert known_hosts.exists()


def test_a_hashed_known_hosts_is_understood(run, server, known_hosts):
    run(server)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known_hosts)], check=True, capture_output=True)
    assert "127.0.0.1" not in known_hosts.read_text()
    assert run(server, options=())[1][0]["host_key"] == "known"


def test_known_hosts_keeps_what_it_had(run, server, known_hosts):
    known_hosts.parent.mkdir()
    known_hosts.write_text(
        "# ours\nother ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0000000000000000000000000000000000000000000"
    )
    assert run(server)[0] == 0
    lines = known_hosts.read_text().splitlines()
    assert lines[0] == "# ours"
    assert [line.split()[0] for line in lines[1:]] == ["other", f"[127.0.0.1]:{server.port}"]


def test_a_wrong_password_is_tried_once(run, server):
    code, results, _ = run(server, password="wrong")  # noqa: S106
    assert code == 2
    assert "could not log in with 1 key(s) and the password" in problems(results)
    assert server.password_tries == ["wrong"]
    assert "wrong" not in problems(results).replace("wrong use", "")


@pytest.mark.parametrize(
    ("sudo", "words"),
    [
        # The sentences of sudo 1.8.23 and 1.9.5.
        ("echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1", "visudo: Defaults:operator !requiretty"),
        ("echo 'sudo: no tty present and no askpass program specified' >&2; exit 1", "NOPASSWD: ALL"),
        ("echo 'ops is not in the sudoers file.  This incident will be reported.' >&2; exit 1", "NOPASSWD: ALL"),
        ("echo 'sudo: /etc/sudoers is world writable' >&2; exit 1", "reports: sudo: /etc/sudoers is world writable."),
        (None, "not installed"),
    ],
)
def test_no_sudo(run, server, sudo, words):
    (server.bin / "sudo").unlink()
    if sudo:
        server.tool("sudo", sudo)
    code, results, _ = run(server)
    assert code == 2
    assert words in problems(results)
    assert ("NOPASSWD" in words) == ("NOPASSWD" in problems(results)), "no remedy of another fault"
    assert server.authorized_keys.exists(), "the key is installed all the same"


def test_root_needs_no_sudo(run, server):
    server.tool("id", "echo 0")
    (server.bin / "sudo").unlink()
    code, [result], _ = run(server)
    assert (code, result["sudo"]) == (0, "root")


def test_a_host_that_is_down_does_not_stop_the_others(run, start):
    first, closed_host, second = start(), start(), start()
    closed_host.close()
    code, results, _ = run(first, closed_host, second)
    assert code == 2
    assert [result["problems"] == [] for result in results] == [True, False, True]
    assert "does not answer" in problems(results)


def test_a_host_that_hangs_after_the_login_is_bounded(run, start):
    good_host, hanging_host = start(), start()
    hanging_host.hang = True
    begin = time.monotonic()
    code, results, _ = run(good_host, hanging_host, options=("--accept-new", "--timeout=1"))
    assert time.monotonic() - begin < 10
    assert code == 2
    assert "did not answer within 1 s" in problems(results)
    assert results[0]["problems"] == []


def test_a_host_that_never_answers_the_command_is_bounded(run, server):
    """paramiko waits for that answer without a limit of its own."""
    server.deaf = True
    start = time.monotonic()
    code, (result,), _ = run(server, options=("--accept-new", "--timeout=3"))
    assert (code, result["ok"]) == (2, False)
    assert "did not answer within 3 s" in result["problems"][0]
    assert time.monotonic() - start < 25


@pytest.mark.parametrize("name", ["data1..example.com", "a" * 64 + ".example.com"])
def test_a_name_that_is_none_does_not_stop_the_others(run, server, name):
    code, (bad, good), _ = run(f"me@{name}", server)
    assert code == 2
    assert "cannot be resolved" in bad["problems"][0]
    assert good["ok"]


def test_a_sudo_that_asks_for_a_password_is_a_state_and_no_failure(run, server):
    server.tool("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    code, (result,), _ = run(server)
    assert (code, result["sudo"]) == (0, "password")
    assert "--ask-become-pass (-K)" in result["notes"][0]


def test_what_a_host_says_cannot_move_the_operators_cursor(run, server):
    server.tool("sudo", "printf 'no\\033[2J\\033]0;title\\007' >&2; exit 1")
    _, (result,), _ = run(server)
    table = cli.table([model.Result("data1", "192.0.2.1", problems=["\x1b[2Jwiped"])])
    assert "\x1b" not in table + json.dumps(result, ensure_ascii=False)


@pytest.mark.parametrize("port", ["abc", "70000"])
def test_an_inventory_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, keypair, capsys, port):
    (tmp_path / "hosts").write_text(f"data1 ansible_port={port}\n")
    assert cli.main(["-i", str(tmp_path / "hosts"), f"--public-key={keypair.with_suffix('.pub')}"]) == 1
    assert "ansible_port of data1 must be a number" in capsys.readouterr().err


def test_a_bastion_is_named_because_it_cannot_be_used(tmp_path):
    (tmp_path / "hosts").write_text("data1 ansible_ssh_common_args='-o ProxyJump=gate.example.com'\n")
    (host,) = targets.inventory_hosts([str(tmp_path / "hosts")], None, "me")
    with pytest.raises(model.HostProblem, match="through a bastion .*ProxyJump=gate.example.com"):
        connections.open_transport(host, None, None)


@pytest.mark.parametrize("private", [False, True])
def test_a_private_or_a_binary_key_is_never_installed(tmp_path, keypair, capsys, private):
    (tmp_path / "key.pub").write_bytes(b"\xff\xfe\x00binary")
    assert cli.main(["data1", f"--public-key={keypair if private else tmp_path / 'key.pub'}"]) == 1
    assert "must be a public key" in capsys.readouterr().err


def test_an_executable_vault_password_file_is_run(tmp_path):
    path = write_script(tmp_path / "opener.sh", "echo opener")
    assert credentials.vault_secret(path) == "opener"
    path.chmod(0o644)
    assert credentials.vault_secret(path) == "#!/bin/sh\necho opener"


def test_a_port_that_accepts_and_stays_silent_is_bounded(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        code, results, _ = run(f"operator@127.0.0.1:{silent.getsockname()[1]}", options=("--timeout=1",))
        assert time.monotonic() - begin < 10
    assert code == 2
    assert "no SSH server answered within 1 s" in problems(results)


def test_a_dry_run_writes_nothing_anywhere(run, server, known_hosts):
    code, [result], _ = run(server, options=("--accept-new", "--dry-run"))
    assert (code, result["host_key"], result["key"]) == (0, "would be recorded", "would be added")
    assert list(server.home.iterdir()) == []
    assert not known_hosts.exists()


def test_twenty_hosts_at_once(run, start):
    hosts = [start() for _ in range(20)]
    code, results, _ = run(*hosts)
    assert (code, {result["key"] for result in results}) == (0, {"added"})


def test_the_table_has_a_line_for_each_host_and_each_problem():
    results = [
        model.Result("data1", "data1", "known", "there", "3.6.8 /usr/bin/python3", "yes"),
        model.Result("data2", "data2", problems=["port 22 of data2 does not answer."]),
    ]
    assert cli.table(results).splitlines() == [
        "HOST   HOST KEY  KEY    PYTHON  SUDO  RESULT",
        "data1  known     there  3.6.8   yes   ok",
        "data2  -         -      -       -     FAILED",
        "data2: port 22 of data2 does not answer.",
    ]


def test_hosts_come_from_an_inventory(tmp_path):
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        "all: {children: {data_nodes: {hosts: {data1: {ansible_host: 192.0.2.7, ansible_port: 2222, ansible_user: ops},"
        " data2: {}, here: {ansible_connection: local}}}}}\n"
    )
    hosts = targets.inventory_hosts([str(inventory)], None, None)
    assert [(host.name, host.known_as) for host in hosts] == [("data1", "[192.0.2.7]:2222"), ("data2", "data2")]
    assert [host.name for host in targets.inventory_hosts([str(inventory)], "data2", None)] == ["data2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data1", ("data1", 22, "me")),
        ("ops@data1:2222", ("data1", 2222, "ops")),
        ("[2001:db8::7]:2222", ("2001:db8::7", 2222, "me")),
        ("ops@[2001:db8::7]", ("2001:db8::7", 22, "ops")),
    ],
)
def test_hosts_come_from_the_command_line(text, expected):
    host = targets.named_host(text, 22, "me")
    assert (host.address, host.port, host.user) == expected


@pytest.mark.parametrize("text", ["", "data1:ssh", "ops@"])
def test_what_is_not_a_host_is_refused(text):
    with pytest.raises(Misuse, match="USER@"):
        targets.named_host(text, 22, "me")


@pytest.fixture
def vault(tmp_path):
    from ansible.parsing.vault import VaultLib, VaultSecret

    def vault(text: str) -> Path:
        path = tmp_path / "secret.yml"
        path.write_bytes(VaultLib([("default", VaultSecret(b"opener"))]).encrypt(text))
        return path

    return vault


def test_the_password_comes_from_a_vault(vault):
    path = vault(f"ansible_password: {PASSWORD}\n")
    assert credentials.vault_password(path, "opener") == PASSWORD


def test_a_vault_that_is_not_yaml_never_shows_its_content(vault):
    path = vault(f"ansible_password: {PASSWORD}: [\n")
    with pytest.raises(Misuse, match="must hold a line 'ansible_password") as error:
        credentials.vault_password(path, "opener")
    text = "".join(traceback.format_exception(error.value))
    assert PASSWORD not in text


def test_a_vault_that_cannot_be_used_is_refused(vault, tmp_path):
    plain = tmp_path / "plain.yml"
    plain.write_text("ansible_password: x\n")
    for path, words in ((vault("other: x"), "ansible_password"), (plain, "plain text")):
        with pytest.raises(Misuse, match=words):
            credentials.vault_password(path, "opener")
    with pytest.raises(Misuse, match="cannot be decrypted"):
        credentials.vault_password(vault("ansible_password: x"), "wrong")


@pytest.mark.parametrize(
    "arguments",
    [[], ["--password", "secret", "data1"], ["data1", "--limit", "x"], ["data1", "--parallel", "0"], ["a:b"]],
)
def test_misuse_exits_with_1_and_contacts_nobody(arguments, capsys):
    assert cli.main(arguments) == 1
    assert "bootstrap_ssh: " in capsys.readouterr().err
