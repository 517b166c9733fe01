"""Connections to hosts, and what is done over them: log in, install the key, look at Python and sudo."""

from __future__ import annotations

import shlex
import socket
import threading
import time
from pathlib import Path

import paramiko

from hadoop_dl.cli.ssh_bootstrap.host_keys import KnownHosts, check_host_key, family
from hadoop_dl.cli.ssh_bootstrap.model import Host, HostProblem, Result, Settings
from hadoop_dl.data.terminal import printable

REMOTE = Path(__file__).with_name("remote.sh")


def open_transport(host: Host, known_hosts: KnownHosts, settings: Settings) -> paramiko.Transport:
    """Connect and exchange keys; nothing secret has been sent yet."""
    if host.through:
        raise HostProblem(
            f"it is reached through a bastion ({host.through}), which bootstrap_ssh cannot use. Run bootstrap_ssh on the bastion, or install "
            "the key by hand: ssh-copy-id"
        )
    try:
        connection = socket.create_connection((host.address, host.port), timeout=settings.timeout)
    except (socket.gaierror, UnicodeError) as error:  # UnicodeError: a label is empty or longer than 63 characters
        cause = error.strerror if isinstance(error, socket.gaierror) else "it is not a host name"
        raise HostProblem(
            f"the name {host.address} cannot be resolved ({cause}). Correct it, or set ansible_host."
        ) from error
    except OSError as error:
        raise HostProblem(
            f"port {host.port} of {host.address} does not answer ({error.strerror or error}). Is it up, and is sshd running?"
        ) from error
    transport = paramiko.Transport(connection)
    transport.banner_timeout = transport.auth_timeout = transport.handshake_timeout = settings.timeout
    options = transport.get_security_options()
    recorded = {family(name) for name in known_hosts.types(host)}
    # Ask first for the type of key that is recorded, as OpenSSH does.
    options.key_types = sorted(options.key_types, key=lambda name: family(name) not in recorded)
    try:
        transport.start_client(timeout=settings.timeout)
        if not transport.initial_kex_done:  # at its timeout start_client returns without an error
            raise TimeoutError("timed out")
    except (paramiko.SSHException, OSError, EOFError) as error:
        transport.close()
        raise HostProblem(
            f"port {host.port} of {host.address} is open, but no SSH server answered within {settings.timeout:.0f} s ({error}). "
            "Look at sshd on it."
        ) from error
    return transport


def read_host_key(host: Host, known_hosts: KnownHosts, settings: Settings) -> tuple[str, paramiko.PKey]:
    transport = open_transport(host, known_hosts, settings)
    try:
        key = transport.get_remote_server_key()
    finally:
        transport.close()
    return check_host_key(host, key, known_hosts), key


def log_in(
    host: Host, known_hosts: KnownHosts, settings: Settings, only: str | None = None
) -> paramiko.Transport | None:
    """A logged-in connection, by key or password. With `only`, use that public key alone; None when it is not accepted."""
    transport = open_transport(host, known_hosts, settings)
    try:
        if check_host_key(host, transport.get_remote_server_key(), known_hosts) == "new":
            raise HostProblem(f"its host key is not in {known_hosts.path}. Run again and accept it.")
        for identity in settings.identities:
            if only is not None and identity.get_base64() != only:
                continue
            try:
                transport.auth_publickey(host.user, identity)
            except paramiko.AuthenticationException:
                continue
            return transport
        if only is None and settings.password is not None:
            transport.auth_password(host.user, settings.password)
            return transport
    except paramiko.AuthenticationException:
        pass
    except (paramiko.SSHException, OSError, EOFError) as error:
        transport.close()
        raise HostProblem(f"the login as {host.user} broke off ({error or type(error).__name__}).") from error
    except HostProblem:
        transport.close()
        raise
    transport.close()
    if only is not None:
        return None
    tried = f"{len(settings.identities)} key(s)" + (" and the password" if settings.password is not None else "")
    raise HostProblem(
        f"{host.user} could not log in with {tried}. Check the user (--user, ansible_user) and the password "
        "(--ask-password), or give a key that works there (--identity)."
    )


def run_script(transport: paramiko.Transport, script: str, timeout: float) -> tuple[dict[str, str], str]:
    """Run the remote script; return its name=value lines and its error output."""
    # paramiko waits for the answer to exec_command without a limit; a closed connection ends that wait.
    late = threading.Event()

    def end() -> None:
        late.set()
        transport.close()

    guard = threading.Timer(timeout, end)
    guard.daemon = True
    guard.start()
    try:
        answer = talk(transport, script, timeout)
    finally:
        guard.cancel()
    if late.is_set():
        raise TimeoutError
    return answer


def talk(transport: paramiko.Transport, script: str, timeout: float) -> tuple[dict[str, str], str]:
    end = time.monotonic() + timeout
    channel = transport.open_session(timeout=timeout)
    channel.settimeout(timeout)
    channel.exec_command("sh -s")  # fixed text; the script travels on standard input
    channel.sendall(script.encode())
    channel.shutdown_write()
    output, errors = b"", b""
    while True:
        # sshd may send the exit status before the last output: only the end of the output says that there is no more. A
        # program that the login shell left behind may hold it open, so the script's last line is an end, too.
        at_end = channel.eof_received or channel.closed or b"end=reached\n" in output
        if channel.recv_ready():
            output += channel.recv(65536)
        elif channel.recv_stderr_ready():
            errors += channel.recv_stderr(65536)
        elif at_end:
            break
        elif time.monotonic() > end:
            raise TimeoutError
        else:
            time.sleep(0.02)
    lines = (line.partition("=") for line in printable(output.decode(errors="replace")).splitlines())
    return {name: value for name, equals, value in lines if equals}, printable(errors.decode(errors="replace")).strip()


def make_ready(host: Host, result: Result, known_hosts: KnownHosts, settings: Settings) -> None:
    """Install the key, look at Python and sudo, and verify the key with a new connection."""
    script = (
        f"public_key={shlex.quote(settings.public_key)} blob={settings.blob} "
        f"dry_run={'yes' if settings.dry_run else 'no'}\n{REMOTE.read_text(encoding='utf-8')}"
    )
    transport = log_in(host, known_hosts, settings)
    assert transport is not None  # noqa: S101 - only a restricted login may answer None
    try:
        answer, errors = run_script(transport, script, settings.timeout)
    except (TimeoutError, OSError, EOFError, paramiko.SSHException) as error:
        raise HostProblem(
            f"it let {host.user} in, but then did not answer within {settings.timeout:.0f} s "
            f"({type(error).__name__}). Look at its load, its disks and its name service."
        ) from error
    finally:
        transport.close()
    result.key, result.python, result.sudo = answer.get("key", ""), answer.get("python", ""), answer.get("sudo", "")
    if "end" not in answer:
        reason = errors.splitlines()[-1] if errors else "nothing"
        raise HostProblem(f"authorized_keys of {host.user} could not be written: {reason}")
    result.problems += shortcomings(host, answer)
    if result.sudo == "password":
        result.notes.append(f"sudo asks {host.user} for a password; run the playbooks with --ask-become-pass (-K).")
    if not settings.dry_run and any(key.get_base64() == settings.blob for key in settings.identities):
        proof = log_in(host, known_hosts, settings, only=settings.blob)
        if proof is None:
            result.problems.append(
                f"the key is in authorized_keys of {host.user}, but sshd does not accept it (its home is {answer['home']}; "
                "sshd requires that nobody else can write there). Look at: journalctl -u sshd"
            )
        else:
            proof.close()


# What sudo 1.8.6 to 1.9 prints (plugins/sudoers) and the line of sudoers that it asks for; for other words none is known.
SUDO_REMEDIES = (
    ("you must have a tty", "Defaults:{user} !requiretty"),
    ("no tty present and no askpass", "{user} ALL=(ALL) NOPASSWD: ALL"),
    ("a terminal is required", "{user} ALL=(ALL) NOPASSWD: ALL"),
    ("a password is required", "{user} ALL=(ALL) NOPASSWD: ALL"),
    ("is not in the sudoers file", "{user} ALL=(ALL) NOPASSWD: ALL"),
    ("may not run sudo", "{user} ALL=(ALL) NOPASSWD: ALL"),
    ("is not allowed to", "{user} ALL=(ALL) NOPASSWD: ALL"),
)


def shortcomings(host: Host, answer: dict[str, str]) -> list[str]:
    """Reasons why Ansible cannot work on a host that accepts the login."""
    problems = []
    if "python" not in answer:
        problems.append(
            "Ansible needs Python 2.7 or 3 on the host, but none was found in /usr/bin or /usr/libexec. "
            "Install it with the operating system's package manager."
        )
    sudo = answer["sudo"]
    if sudo == "missing":
        problems.append(f"{host.user} requires sudo, but it is not installed. Install it, or log in as root.")
    elif sudo.startswith("no"):
        refusal = sudo[3:] or "nothing"
        remedies = [text for words, text in SUDO_REMEDIES if words in refusal]
        problems.append(
            f"{host.user} requires sudo without a password, but sudo reports: {refusal.rstrip('.')}."
            + "".join(f" Add a line with visudo: {text.format(user=host.user)}" for text in remedies[:1])
        )
    return problems
