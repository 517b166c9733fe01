"""Make hosts reachable for Ansible, many at once: host keys, the operator's public key, Python and sudo.

Three rounds. First every host shows its host key; what known_hosts does not know is shown and recorded when the operator
agrees, and a key that differs from the recorded one is refused, always. Then the public key is installed, with an existing
key or a password. Then a new connection proves the key. Passwords come from a prompt or a vault, never from arguments.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import getpass
import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import paramiko

from hadoop_dl.terminal import printable

MISUSE, SOME_FAILED = 1, 2
KEY_FILES = ("id_ed25519", "id_ecdsa", "id_rsa")
T = TypeVar("T")

# The remote half: POSIX sh for any login shell, read from standard input. It prints name=value lines.
SCRIPT = r"""
bootstrap() {
    umask 077
    PATH=$PATH:/usr/sbin:/sbin
    directory=$HOME/.ssh file=$HOME/.ssh/authorized_keys
    if [ -f "$file" ] && grep -v '^[[:space:]]*#' "$file" | grep -qF "$blob"; then
        echo key=there
    elif [ "$dry_run" = yes ]; then
        echo 'key=would be added'
    else
        mkdir -p "$directory" || return 1
        # A last line without an end would swallow the new key.
        if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then echo >>"$file" || return 1; fi
        printf '%s\n' "$public_key" >>"$file" || return 1
        grep -qF "$blob" "$file" || return 1
        echo key=added
    fi
    if [ "$dry_run" = no ]; then
        # sshd's StrictModes ignores keys that others could have written.
        [ "$(stat -c %a "$directory")" = 700 ] || chmod 700 "$directory" || return 1
        [ "$(stat -L -c %a "$file")" = 600 ] || chmod 600 "$file" || return 1
        if command -v restorecon >/dev/null 2>&1; then restorecon -R "$directory" || return 1; fi
    fi
    echo "home=$(stat -L -c %A "$HOME") $HOME"
    for python in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python; do
        if version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null); then
            echo "python=$version $python"
            break
        fi
    done
    if [ "$(id -u)" = 0 ]; then
        echo sudo=root
    elif ! command -v sudo >/dev/null 2>&1; then
        echo sudo=missing
    elif said=$(LC_ALL=C sudo -n id -u 2>&1 </dev/null) && [ "$said" = 0 ]; then
        echo sudo=yes
    elif [ "$said" = "sudo: a password is required" ]; then
        echo sudo=password
    else
        echo "sudo=no $said" | head -n 1
    fi
    echo end=reached
}
bootstrap
"""


class Misuse(Exception):
    """The command line or a file it names cannot be used; nothing was contacted."""


class HostProblem(Exception):
    """Why one host cannot be made ready, in a sentence."""


class HostKeyRefused(HostProblem):
    """The host showed a key that must not be trusted."""


@dataclass(frozen=True)
class Host:
    """Where SSH finds a host."""

    name: str
    address: str
    port: int
    user: str
    through: str = ""  # the ssh argument that names a bastion

    @property
    def known_as(self) -> str:
        """The name that OpenSSH looks up in known_hosts."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"


@dataclass
class Result:
    """What is true about one host at the end."""

    host: str
    address: str
    host_key: str = ""
    key: str = ""
    python: str = ""
    sudo: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Settings:
    public_key: str
    identities: tuple[paramiko.PKey, ...]
    password: str | None
    known_hosts: Path
    accept_new: bool
    dry_run: bool
    timeout: float
    parallel: int

    @property
    def blob(self) -> str:
        return self.public_key.split()[1]


def fingerprint(key: paramiko.PKey) -> str:
    """As ssh-keygen -lf prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{digest} ({key.get_name()})"


class KnownHosts:
    """A known_hosts file: lookups as OpenSSH does them, additions at the end, never a change of what is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys = paramiko.HostKeys()
        self.revoked: set[str] = set()
        for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
            fields = line.split()
            if fields[:1] == ["@revoked"]:
                self.revoked.update(fields[3:4])
            elif fields and not fields[0].startswith(("#", "@")):
                self._load(line)

    def _load(self, line: str) -> None:
        """Lines that cannot be read count for nothing, as with OpenSSH: their host is new, and somebody is asked."""
        try:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
        except paramiko.hostkeys.InvalidHostKey:
            return
        if entry is not None and entry.key is not None:
            for name in entry.hostnames:
                self.keys.add(name, entry.key.get_name(), entry.key)

    def types(self, host: Host) -> list[str]:
        known = self.keys.lookup(host.known_as)
        return list(known.keys()) if known else []

    def verdict(self, host: Host, key: paramiko.PKey) -> str:
        """known, new, changed or revoked. Another type of key than the recorded ones counts as changed."""
        if key.get_base64() in self.revoked:
            return "revoked"
        known = self.keys.lookup(host.known_as)
        if not known:
            return "new"
        return "known" if known.get(key.get_name()) == key else "changed"

    def remember(self, host: Host, key: paramiko.PKey) -> None:
        self.keys.add(host.known_as, key.get_name(), key)

    def write(self, added: Iterable[tuple[Host, paramiko.PKey]]) -> None:
        """Append under a lock, so that two runs at once lose nothing."""
        lines = [f"{host.known_as} {key.get_name()} {key.get_base64()}\n" for host, key in added]
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            file.seek(0)
            there = file.read()
            if there and not there.endswith("\n"):
                file.write("\n")
            present = set(there.splitlines(keepends=True))
            file.writelines(line for line in dict.fromkeys(lines) if line not in present)


def open_transport(host: Host, known: KnownHosts, settings: Settings) -> paramiko.Transport:
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
    recorded = {family(name) for name in known.types(host)}
    # Ask first for the type of key that is recorded, as OpenSSH does.
    options.key_types = sorted(options.key_types, key=lambda name: family(name) not in recorded)
    try:
        transport.start_client(timeout=settings.timeout)
        if not transport.initial_kex_done:  # at its timeout start_client returns as if all were well
            raise TimeoutError("timed out")
    except (paramiko.SSHException, OSError, EOFError) as error:
        transport.close()
        raise HostProblem(
            f"port {host.port} of {host.address} is open, and no SSH server answered within {settings.timeout:.0f} s ({error}). "
            "Look at sshd on it."
        ) from error
    return transport


def family(key_type: str) -> str:
    return "ssh-rsa" if key_type.startswith("rsa-sha2") else key_type


def check_host_key(host: Host, key: paramiko.PKey, known: KnownHosts) -> str:
    """Refuse a changed or revoked key; say whether it is known or new."""
    verdict = known.verdict(host, key)
    if verdict == "revoked":
        raise HostKeyRefused(
            f"its host key {fingerprint(key)} is marked @revoked in {known.path}. Nothing was sent to it."
        )
    if verdict == "changed":
        recorded = [fingerprint(old) for old in (known.keys.lookup(host.known_as) or {}).values()]
        raise HostKeyRefused(
            f"its host key is not the recorded one: {known.path} has {', '.join(recorded)}, and it shows {fingerprint(key)}. "
            "Somebody may be between you and the host; nothing was sent to it. If the host was installed again, compare the fingerprint on "
            f"its console, then: ssh-keygen -f {shlex.quote(str(known.path))} -R {shlex.quote(host.known_as)}"
        )
    return verdict


def read_host_key(host: Host, known: KnownHosts, settings: Settings) -> tuple[str, paramiko.PKey]:
    transport = open_transport(host, known, settings)
    try:
        key = transport.get_remote_server_key()
    finally:
        transport.close()
    return check_host_key(host, key, known), key


def log_in(host: Host, known: KnownHosts, settings: Settings, only: str | None = None) -> paramiko.Transport | None:
    """A logged-in connection, by key or password. With `only`, use that public key alone; None when it is not accepted."""
    transport = open_transport(host, known, settings)
    try:
        if check_host_key(host, transport.get_remote_server_key(), known) == "new":
            raise HostProblem(f"its host key is not in {known.path}. Run again and accept it.")
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
    """Run the remote half; return its name=value lines and what it complained."""
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
    channel.exec_command("sh -s")  # noqa: S601 - fixed text; the script travels on standard input
    channel.sendall(script.encode())
    channel.shutdown_write()
    output, errors = b"", b""
    while not (channel.exit_status_ready() and not channel.recv_ready() and not channel.recv_stderr_ready()):
        if time.monotonic() > end:
            raise TimeoutError
        if channel.recv_ready():
            output += channel.recv(65536)
        elif channel.recv_stderr_ready():
            errors += channel.recv_stderr(65536)
        elif channel.closed:
            break
        else:
            time.sleep(0.02)
    lines = (line.partition("=") for line in printable(output.decode(errors="replace")).splitlines())
    return {name: value for name, equals, value in lines if equals}, printable(errors.decode(errors="replace")).strip()


def make_ready(host: Host, result: Result, known: KnownHosts, settings: Settings) -> None:
    """Install the key, look at Python and sudo, and prove the key with a new connection."""
    script = (
        f"public_key={shlex.quote(settings.public_key)} blob={settings.blob} "
        f"dry_run={'yes' if settings.dry_run else 'no'}\n{SCRIPT}"
    )
    transport = log_in(host, known, settings)
    assert transport is not None  # noqa: S101 - only a restricted login may answer None
    try:
        answer, errors = run_script(transport, script, settings.timeout)
    except (TimeoutError, OSError, EOFError, paramiko.SSHException) as error:
        raise HostProblem(
            f"it let {host.user} in and then did not answer within {settings.timeout:.0f} s "
            f"({type(error).__name__}). Look at its load, its disks and its name service."
        ) from error
    finally:
        transport.close()
    result.key, result.python, result.sudo = answer.get("key", ""), answer.get("python", ""), answer.get("sudo", "")
    if "end" not in answer:
        said = errors.splitlines()[-1] if errors else "nothing"
        raise HostProblem(f"authorized_keys of {host.user} could not be written; it said: {said}")
    result.problems += shortcomings(host, answer)
    if result.sudo == "password":
        result.notes.append(f"sudo asks {host.user} for a password; run the playbooks with --ask-become-pass (-K).")
    if not settings.dry_run and any(key.get_base64() == settings.blob for key in settings.identities):
        proof = log_in(host, known, settings, only=settings.blob)
        if proof is None:
            result.problems.append(
                f"the key is in authorized_keys of {host.user}, and sshd does not accept it (its home is {answer['home']}; "
                "sshd wants nobody else able to write there). Look at: journalctl -u sshd"
            )
        else:
            proof.close()


def shortcomings(host: Host, answer: dict[str, str]) -> list[str]:
    """What Ansible would stumble over on a host that lets us in."""
    found = []
    if "python" not in answer:
        found.append(
            "Ansible needs Python 2.7 or 3 on the host, and none was found in /usr/bin or /usr/libexec. "
            "Install it with the operating system's package manager."
        )
    sudo = answer["sudo"]
    if sudo == "missing":
        found.append(f"{host.user} needs sudo, and it is not installed. Install it, or log in as root.")
    elif sudo.startswith("no"):
        found.append(
            f"{host.user} needs sudo without a password, and sudo said: {sudo[3:] or 'nothing'}. Add a file to /etc/sudoers.d "
            f"(visudo -f): {host.user} ALL=(ALL) NOPASSWD: ALL"
        )
    return found


def each(hosts: Sequence[Host], parallel: int, work: Callable[[Host], T]) -> list[T]:
    with ThreadPoolExecutor(max_workers=min(parallel, max(len(hosts), 1))) as pool:
        return list(pool.map(work, hosts))


def bootstrap(
    hosts: Sequence[Host], settings: Settings, agree: Callable[[list[str]], bool], say: Callable[[str], None]
) -> list[Result]:
    """All rounds over all hosts; one result each, in the order of the hosts."""
    known = KnownHosts(settings.known_hosts)
    results = {host: Result(host.name, host.known_as) for host in hosts}

    def guarded(work: Callable[[Host], T]) -> Callable[[Host], T | None]:
        def run(host: Host) -> T | None:
            try:
                return work(host)
            except HostProblem as problem:
                results[host].problems.append(str(problem))
                if isinstance(problem, HostKeyRefused):
                    results[host].host_key = "REFUSED"
                return None
            except Exception as error:  # noqa: BLE001 - one host never stops the others
                results[host].problems.append(f"it could not be checked: {type(error).__name__}: {error}.")
                return None

        return run

    shown = each(hosts, settings.parallel, guarded(lambda host: read_host_key(host, known, settings)))
    new = []
    for host, answer in zip(hosts, shown, strict=True):
        if answer is None:
            continue
        if answer[0] == "known":
            results[host].host_key = "known"
        else:
            new.append((host, answer[1]))
    if new:
        lines = [f"{host.name} ({host.known_as}) {fingerprint(key)}" for host, key in new]
        say(f"Host keys that are not in {settings.known_hosts}:\n  " + "\n  ".join(lines))
        accepted = settings.accept_new or agree(lines)
        for host, key in new:
            if accepted:
                known.remember(host, key)
                results[host].host_key = "would be recorded" if settings.dry_run else "recorded"
            else:
                results[host].host_key = "not accepted"
                results[host].problems.append(
                    "its host key is not known and was not accepted. Compare the fingerprint on its console, then run again and "
                    "say yes, or use --accept-new."
                )
        if accepted and not settings.dry_run:
            known.write(new)
    reachable = [host for host in hosts if results[host].ok]
    each(reachable, settings.parallel, guarded(lambda host: make_ready(host, results[host], known, settings)))
    return [results[host] for host in hosts]


def table(results: Sequence[Result]) -> str:
    head = ("HOST", "HOST KEY", "KEY", "PYTHON", "SUDO", "RESULT")
    rows = [
        (
            r.host,
            r.host_key or "-",
            r.key or "-",
            r.python.split()[0] if r.python else "-",
            r.sudo.split()[0] if r.sudo else "-",
            "ok" if r.ok else "FAILED",
        )
        for r in results
    ]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    ]
    lines += [f"{r.host}: {sentence}" for r in results for sentence in r.problems + r.notes]
    return printable("\n".join(lines))


def inventory_hosts(sources: Sequence[str], limit: str | None, user: str | None) -> list[Host]:
    """The hosts of an Ansible inventory that SSH reaches."""
    beside = shutil.which(
        "ansible-inventory", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    command = [beside or "ansible-inventory", "--list", *(f"--inventory={source}" for source in sources)]
    command += [f"--limit={limit}"] if limit else []
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise Misuse(f"ansible-inventory could not read {', '.join(sources)}: {answer.stderr.strip()}")
    listed: dict[str, Any] = json.loads(answer.stdout)
    variables = listed["_meta"]["hostvars"]
    names = sorted({name for group in listed.values() for name in group.get("hosts", [])} | set(variables))
    hosts = []
    for name in names:
        own = variables.get(name, {})
        if str(own.get("ansible_connection", "ssh")) not in ("ssh", "smart", "paramiko", "paramiko_ssh"):
            continue
        values = {
            "ansible_host": own.get("ansible_host", name),
            "ansible_port": own.get("ansible_port", 22),
            "ansible_user": user or own.get("ansible_user", getpass.getuser()),
        }
        for variable, value in values.items():
            if "{{" in str(value):
                raise Misuse(
                    f"{variable} of {name} is a template ({value}), and a plain value is needed here. Write it out."
                )
        if not str(values["ansible_port"]).isdecimal() or not 0 < int(values["ansible_port"]) < 65536:
            raise Misuse(
                f"ansible_port of {name} must be a number from 1 to 65535, but it is {values['ansible_port']!r}. Correct the inventory."
            )
        address, port, login = str(values["ansible_host"]), int(values["ansible_port"]), str(values["ansible_user"])
        hosts.append(Host(name, address, port, login, bastion(own)))
    return hosts


def bastion(variables: Mapping[str, Any]) -> str:
    """The argument of ssh that sends a host's connections through another one."""
    for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args"):
        found = re.search(r"(ProxyJump|ProxyCommand)[ =]\S+|-J *\S+", str(variables.get(name, "")))
        if found:
            return f"{name}: {found[0]}"
    return ""


def named_host(text: str, port: int, user: str | None) -> Host:
    """[USER@]HOST[:PORT]; an IPv6 address stands in brackets."""
    login, _, place = text.rpartition("@")
    if place.startswith("["):
        address, _, rest = place[1:].partition("]")
        given = rest.removeprefix(":")
    else:
        address, _, given = place.partition(":")
    if not address or (given and not given.isdigit()):
        raise Misuse(f"a host is written [USER@]HOST[:PORT], and {text!r} is not. Write an IPv6 address in brackets.")
    return Host(address, address, int(given or port), login or user or getpass.getuser())


def read_public_key(path: Path | None, home: Path) -> tuple[str, Path]:
    """The line to install, and where its private half should be."""
    candidates = [path] if path else [home / ".ssh" / f"{name}.pub" for name in KEY_FILES]
    for candidate in candidates:
        if candidate.is_file():
            text = candidate.read_text(errors="replace").strip()
            try:
                kind, blob = text.split()[:2]
                valid = base64.b64decode(blob, validate=True)[4 : 4 + len(kind)] == kind.encode()
            except ValueError:
                valid = False
            if not valid or "\n" in text or "PRIVATE" in text:
                raise Misuse(f"{candidate} must be a public key in one line but is not. Give the .pub file.")
            return text, candidate.with_suffix("")
    raise Misuse(
        f"a public key is needed, and there is none at {', '.join(map(str, candidates))}. "
        "Make one with: ssh-keygen -t ed25519, or name it with --public-key."
    )


def load_identities(paths: Sequence[Path], agent: bool = True) -> tuple[paramiko.PKey, ...]:
    """Private keys from files and the agent. A key with a passphrase is used through the agent."""
    found: list[paramiko.PKey] = []
    for path in paths:
        try:
            found.append(paramiko.PKey.from_path(path))
        except (paramiko.PasswordRequiredException, TypeError):
            logging.getLogger(__name__).warning("%s has a passphrase; it is used only if ssh-agent holds it.", path)
        except FileNotFoundError:
            continue
        except (paramiko.SSHException, ValueError, OSError) as error:
            raise Misuse(f"{path} must be a private key but cannot be read: {error}.") from error
    if agent:
        found += paramiko.Agent().get_keys()
    # sshd closes the connection at the sixth try, and the password must be among them.
    return tuple({key.get_base64(): key for key in found}.values())[:5]


def vault_password(path: Path, secret: str) -> str:
    """The value of ansible_password in an encrypted YAML file."""
    import yaml
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import VaultLib, VaultSecret, is_encrypted

    data = path.read_bytes()
    if not is_encrypted(data):
        raise Misuse(f"{path} must be encrypted but is plain text. Encrypt it with: ansible-vault encrypt {path}")
    try:
        plain = VaultLib([("default", VaultSecret(secret.encode()))]).decrypt(data)
    except AnsibleError as error:
        raise Misuse(f"{path} cannot be decrypted with this vault password.") from error
    try:
        content = yaml.safe_load(plain)
    except yaml.YAMLError:
        content = None  # the parser's message quotes the decrypted text
    if not isinstance(content, dict) or not isinstance(content.get("ansible_password"), str):
        raise Misuse(
            f"{path} must hold a line 'ansible_password: ...' but does not. Edit it with: ansible-vault edit {path}"
        )
    return str(content["ansible_password"])


def vault_secret(path: Path) -> str:
    """The vault's password from a file, or from the program that an executable file is."""
    from ansible.errors import AnsibleError
    from ansible.parsing.dataloader import DataLoader
    from ansible.parsing.vault import get_file_vault_secret

    try:
        secret = get_file_vault_secret(filename=str(path.resolve()), loader=DataLoader())
        secret.load()
    except AnsibleError as error:
        raise Misuse(f"{path} must hold or print the vault's password, but it cannot be used: {error}.") from error
    return bytes(secret.bytes).decode()


def read_password(options: argparse.Namespace) -> str | None:
    if options.password_vault:
        if options.vault_password_file:
            secret = vault_secret(options.vault_password_file)
        else:
            secret = getpass.getpass(f"Vault password of {options.password_vault}: ")
        return vault_password(options.password_vault, secret)
    return getpass.getpass("SSH password: ") if options.ask_password else None


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misuse(message)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="scripts/bootstrap_ssh",
        description="Make hosts reachable for Ansible: record host keys, install a public key, check Python and sudo.",
        epilog="Exit status: 0 every host is ready, 1 wrong use (nothing was contacted), 2 some hosts are not ready.",
    )
    parser.add_argument("hosts", nargs="*", metavar="[USER@]HOST[:PORT]")
    parser.add_argument("-i", "--inventory", action="append", default=[], help="read hosts from this inventory")
    parser.add_argument("-l", "--limit", help="only these hosts of the inventory")
    parser.add_argument("-u", "--user", help="log in as this user (default: ansible_user, else yours)")
    parser.add_argument("--port", type=int, default=22, help="port of hosts named here (default: %(default)s)")
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="the key to install (default: yours in ~/.ssh)")
    parser.add_argument(
        "--identity", type=Path, action="append", default=[], help="a private key that already works there"
    )
    parser.add_argument("--no-agent", action="store_true", help="do not use keys of ssh-agent")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("-k", "--ask-password", action="store_true", help="ask for one password for all hosts")
    password.add_argument(
        "--password-vault", type=Path, metavar="FILE", help="ansible-vault file with ansible_password"
    )
    parser.add_argument("--vault-password-file", type=Path, metavar="FILE", help="opens --password-vault")
    parser.add_argument("--known-hosts", type=Path, default=Path.home() / ".ssh" / "known_hosts", metavar="FILE")
    parser.add_argument(
        "--accept-new", action="store_true", help="record unknown host keys without asking (shown all the same)"
    )
    parser.add_argument("--dry-run", action="store_true", help="look, and write nothing here or there")
    parser.add_argument("--parallel", type=int, default=20, metavar="N", help="hosts at a time (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=15, metavar="SECONDS", help="for each wait (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if not options.hosts and not options.inventory:
        parser.error("hosts are needed, and none are named. Name them, or give an inventory: -i inventories/SITE")
    if options.limit and not options.inventory:
        parser.error("--limit needs an inventory (-i), and there is none.")
    if options.parallel < 1 or options.timeout <= 0:
        parser.error("--parallel and --timeout must be greater than 0.")
    return options


def agree_on_terminal(lines: list[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"Record {len(lines)} host key(s) as shown? Type yes or no: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


def main(arguments: Sequence[str] | None = None) -> int:
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # its threads print tracebacks of dead peers
    try:
        options = parse(arguments)
        hosts = inventory_hosts(options.inventory, options.limit, options.user) if options.inventory else []
        hosts += [named_host(text, options.port, options.user) for text in options.hosts]
        hosts = list(dict.fromkeys(hosts))
        if not hosts:
            raise Misuse("the inventory has no host that SSH reaches. Look at: ansible-inventory --graph")
        public_key, private = read_public_key(options.public_key, Path.home())
        settings = Settings(
            public_key=public_key,
            identities=load_identities([private, *options.identity], agent=not options.no_agent),
            password=read_password(options),
            known_hosts=options.known_hosts,
            accept_new=options.accept_new,
            dry_run=options.dry_run,
            timeout=options.timeout,
            parallel=options.parallel,
        )
    except (Misuse, OSError) as error:
        print(f"bootstrap_ssh: {error}", file=sys.stderr)
        return MISUSE
    results = bootstrap(hosts, settings, agree_on_terminal, lambda text: print(text, file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps([{**asdict(result), "ok": result.ok} for result in results], indent=2))
    else:
        print(table(results))
    return 0 if all(result.ok for result in results) else SOME_FAILED


if __name__ == "__main__":
    sys.exit(main())
