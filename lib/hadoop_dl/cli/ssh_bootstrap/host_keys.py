"""Host keys: looked up in known_hosts, and recorded there."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import paramiko

from hadoop_dl.cli.ssh_bootstrap.model import Host, HostKeyRefused


def fingerprint(key: paramiko.PKey) -> str:
    """As ssh-keygen -lf prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{digest} ({key.get_name()})"


def family(key_type: str) -> str:
    return "ssh-rsa" if key_type.startswith("rsa-sha2") else key_type


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
        """Lines that cannot be read are ignored, as by OpenSSH: their host is new, and the operator is asked."""
        try:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
        except paramiko.hostkeys.InvalidHostKey:
            return
        if entry is not None and entry.key is not None:
            for name in entry.hostnames:
                self.keys.add(name, entry.key.get_name(), entry.key)

    def types(self, host: Host) -> list[str]:
        recorded_keys = self.keys.lookup(host.known_as)
        return list(recorded_keys.keys()) if recorded_keys else []

    def verdict(self, host: Host, key: paramiko.PKey) -> str:
        """known, new, changed or revoked. Another type of key than the recorded ones counts as changed."""
        if key.get_base64() in self.revoked:
            return "revoked"
        recorded_keys = self.keys.lookup(host.known_as)
        if not recorded_keys:
            return "new"
        return "known" if recorded_keys.get(key.get_name()) == key else "changed"

    def remember(self, host: Host, key: paramiko.PKey) -> None:
        self.keys.add(host.known_as, key.get_name(), key)

    def write(self, added: Iterable[tuple[Host, paramiko.PKey]]) -> None:
        """Append under a lock, so that two runs at once lose nothing."""
        lines = [f"{host.known_as} {key.get_name()} {key.get_base64()}\n" for host, key in added]
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            file.seek(0)
            content = file.read()
            if content and not content.endswith("\n"):
                file.write("\n")
            present = set(content.splitlines(keepends=True))
            file.writelines(line for line in dict.fromkeys(lines) if line not in present)


def check_host_key(host: Host, key: paramiko.PKey, known_hosts: KnownHosts) -> str:
    """Refuse a changed or revoked key; return whether it is known or new."""
    verdict = known_hosts.verdict(host, key)
    if verdict == "revoked":
        raise HostKeyRefused(
            f"its host key {fingerprint(key)} is marked @revoked in {known_hosts.path}. Nothing was sent to it."
        )
    if verdict == "changed":
        recorded = [fingerprint(old) for old in (known_hosts.keys.lookup(host.known_as) or {}).values()]
        raise HostKeyRefused(
            f"its host key is not the recorded one: {known_hosts.path} has {', '.join(recorded)}, but the host shows {fingerprint(key)}. "
            "Somebody may be between you and the host; nothing was sent to it. If the host was installed again, compare the fingerprint on "
            f"its console, then: ssh-keygen -f {shlex.quote(str(known_hosts.path))} -R {shlex.quote(host.known_as)}"
        )
    return verdict
