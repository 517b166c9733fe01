"""Define a repository with the key that signs its packages, or remove both: copy, file, yum_repository, rpm_key and apt in one task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from hadoop_dl.hosts import os_packages
from hadoop_dl.hosts.actions import HostAction

ROOT = {"owner": "root", "group": "root", "mode": "0644"}


class ActionModule(HostAction):
    """signed_repository: a repository that only this role uses; it is disabled for everything else.

    name: of the repository, which begins with `deeplearning-`. manager: dnf, yum or apt. url: empty for the repositories that the host
    has. key: path on the controller of the key that signs it, or of both during a change of keys (docs/operate/operations.md). suite: suite and components (apt). description: for people (dnf, yum).
    metadata_signed: true has dnf and yum check the signature of the repository's metadata too (repo_gpgcheck); apt always does.
    state: `present` or `absent`. dnf and yum read a repository of the mirror with `mirror_ca`; apt has no setting for one source.
    Returns `repository`, which pinned_packages takes: name, url, key, key_file, `usable` (false if check mode has not defined it), and
    `unsigned`: the host's repositories that check no signatures, so that the host is asked once for all packages of a role.
    With dnf and yum the definition stays disabled between runs, so an ordinary update of the host never meets it. With apt the
    lists are read; a source that apt cannot read would stop every other use of apt, so it is removed again. A removal takes the key out of
    rpm's key ring when no other repository of this project is left that uses it, and rpm did not trust it before.
    """

    REQUIRED = ("name", "manager")
    OPTIONAL = ("description", "url", "key", "suite", "metadata_signed", "state")

    def act(self) -> dict[str, Any]:
        name, manager, url = self.args["name"], self.args["manager"], self.args.get("url") or ""
        state = self.args.get("state", "present")
        if (
            manager not in os_packages.MANAGERS
            or not name.startswith("deeplearning-")
            or state not in ("present", "absent")
        ):
            self.misused(
                f"a name that begins with deeplearning-, a manager ({', '.join(os_packages.MANAGERS)}) and state: present or absent"
            )
        if state == "absent":
            self._remove(name, rpm=manager != "apt")
            return {}
        key = self.args.get("key") or "" if url else ""
        if url and not key:
            raise AnsibleActionFail(
                f"The repository {url} requires the key that signs its packages, but none is named. Set the role's repository_key to its file on "
                "the controller; unsigned packages are not installed."
            )
        files = os_packages.repository_files(name, manager, key)
        if manager == "apt":
            self._define_apt(url, key, files)
        elif url:
            self._define_rpm(name, url, key, files)
        usable = not (self.checking and self.changed)
        return {
            "repository": {
                "name": name if url else "",
                "url": url,
                "key": key,
                "key_file": files.key if url else "",
                "usable": usable,
                "unsigned": self.unsigned_repositories(manager) if usable else [],
            }
        }

    def _define_rpm(self, name: str, url: str, key: str, files: os_packages.RepositoryFiles) -> None:
        old_keys = self._keys_of(files.key)
        if self.copy(files.key, src=key, mode="0644").get("changed") and not self.checking:
            self._change_trust(files.key, old_keys)
        self.module(
            "ansible.legacy.yum_repository",
            name=name,
            description=self.args.get("description") or name,
            baseurl=url,
            enabled=False,
            gpgcheck=True,
            repo_gpgcheck=boolean(self.args.get("metadata_signed") or False),
            gpgkey=f"file://{files.key}",
            sslcacert=self.mirror_ca(url),
            skip_if_unavailable=False,  # what cannot be read, or is not signed, is an error and no empty answer
            module_hotfixes=True,  # no module stream hides a version
            **ROOT,
        )

    def _define_apt(self, url: str, key: str, files: os_packages.RepositoryFiles) -> None:
        if url:
            self.module("ansible.legacy.file", path="/etc/apt/keyrings", state="directory", **dict(ROOT, mode="0755"))
            self.copy(files.key, src=key, mode="0644")
            old_key = self._key_of(files.definition)
            source = os_packages.apt_source(url, self.args.get("suite") or "/", files.key)
            self.copy(files.definition, content=source, mode="0644")
            if old_key not in ("", files.key):
                self._drop_key(old_key, files.definition)
        if self.checking:
            return
        # It changes what apt knows, not the host.
        answer = self.ask_module(
            "ansible.legacy.apt",
            update_cache=True,
            cache_valid_time=0 if self.changed else 3600,
        )
        if answer.get("failed"):
            try:
                reason = "\n".join([str(answer.get("msg", "")), *self._apt_reason(files.definition if url else "")])
                key_listing = self.command(os_packages.show_key(files.key))["stdout"] if url else ""
            finally:  # also if apt or gpg does not answer in time
                if url:
                    self.absent(files.definition)
                    self._drop_key(files.key, files.definition)
            raise AnsibleActionFail(
                os_packages.unreadable(
                    os_packages.Source("apt", url=url, key=key),
                    reason,
                    host=self.host,
                    key=os_packages.key_lines(key_listing),
                )
            )

    def _apt_reason(self, definition: str) -> list[str]:
        """What apt itself says of this source, or of all: its module reports an unknown reason if only a signature is wrong."""
        try:
            answer = self.command(os_packages.apt_update(definition))
        except AnsibleActionFail as error:  # no answer in time, which is a reason of its own
            return [str(error)]
        lines = f"{answer['stdout']}\n{answer['stderr']}".splitlines()
        return [line for line in lines if line.startswith(("Err:", "W: ", "E: ", "  "))]

    def _key_of(self, definition: str) -> str:
        """The key's file that a source of apt names, if the source is there."""
        return os_packages.signed_by(self.command(["cat", definition])["stdout"])

    def _drop_key(self, key_file: str, definition: str) -> None:
        """Remove a key of apt that signs no other source of this project than this one, which is gone or has another."""
        listed = self.command(os_packages.sources_signed_by(key_file))["stdout"].split()
        if not set(listed) - {definition}:
            self.absent(key_file)

    def _keys_of(self, key_file: str) -> list[str]:
        """The keys in a file of the host, as packages of rpm's data base; two during a change of keys."""
        return os_packages.key_packages(self.command(os_packages.show_key(key_file))["stdout"])

    def _change_trust(self, key_file: str, before: Sequence[str]) -> None:
        """Record which keys rpm trusted before a repository of this project added them; rpm stops trusting those that left the file."""
        keys, trusted = self._keys_of(key_file), self._trusted_before(key_file, before)
        other_files = self._other_files(key_file)
        for key in set(keys) - set(before):
            in_key_ring = self.command(["rpm", "--query", key])["rc"] == 0
            of_others = [file for file in other_files if key in self._keys_of(file)]
            if in_key_ring and (not of_others or any(key in self._trusted_before(file, [key]) for file in of_others)):
                trusted.add(key)
        self._erase(set(before) - set(keys) - trusted, other_files)
        trusted &= set(keys)
        if trusted:
            self.copy(os_packages.trusted_before(key_file), content="\n".join(sorted(trusted)) + "\n", mode="0644")
        else:
            self.absent(os_packages.trusted_before(key_file))  # of an older key under this name

    def _trusted_before(self, key_file: str, keys: Sequence[str]) -> set[str]:
        """Those of a file's keys that rpm trusted before this project came."""
        marker = os_packages.trusted_before(key_file)
        return (
            os_packages.trusted_keys(self.command(["cat", marker])["stdout"], keys) if self._exists(marker) else set()
        )

    def _other_files(self, key_file: str) -> list[str]:
        """The files with keys of this project's other repositories."""
        answer = self.ask_module(
            "ansible.legacy.find",
            paths=[str(Path(key_file).parent)],
            patterns=[os_packages.rpm_key("deeplearning-*").rpartition("/")[2]],
            excludes=[os_packages.trusted_before("*")],
        )
        return [entry["path"] for entry in answer.get("files", []) if entry["path"] != key_file]

    def _erase(self, keys: set[str], other_files: Sequence[str]) -> None:
        """Take keys out of rpm's key ring that no other repository of this project uses."""
        used_keys = {key for file in other_files for key in self._keys_of(file)} if keys else set()
        for key in sorted(keys - used_keys):
            if self.command(["rpm", "--query", key])["rc"] == 0:
                self.changed = True
                if not self.checking:
                    self.command(["rpm", "--erase", "--allmatches", key])

    def _exists(self, path: str) -> bool:
        return bool(self.ask_module("ansible.legacy.stat", path=path)["stat"]["exists"])

    def _remove(self, name: str, *, rpm: bool) -> None:
        """What else a key needs goes before its file, and the file before what protects a key: a removal that was killed continues."""
        rpm_file, apt_file = os_packages.definitions(name)
        self.absent(apt_file)
        self.absent(rpm_file)
        if not rpm:
            for key_file in self.command(os_packages.keys_of_apt())["stdout"].split():
                self._drop_key(key_file, apt_file)
            return
        key_file = os_packages.rpm_key(name)
        if self._exists(key_file):
            keys = self._keys_of(key_file)
            self._erase(set(keys) - self._trusted_before(key_file, keys), self._other_files(key_file))
            self.absent(key_file)
        self.absent(os_packages.trusted_before(key_file))
        for cache in os_packages.caches(name):
            answer = self.ask_module("ansible.legacy.find", **cache, use_regex=True, file_type="any", recurse=True)
            for entry in answer.get("files", []):
                self.absent(entry["path"])
