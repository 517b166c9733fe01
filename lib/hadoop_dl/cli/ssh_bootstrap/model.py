"""Data of bootstrap_ssh: a host, its result, and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import paramiko


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
    """The state of one host at the end."""

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
