"""Define a repository with the key that signs its packages, or remove both: copy, file, yum_repository and rpm_key in one task."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from hadoop_dl.hosts import os_packages
from hadoop_dl.hosts.actions import HostAction

STATES = ("present", "absent", "trial", "ended")
ROOT = {"owner": "root", "group": "root", "mode": "0644"}


class ActionModule(HostAction):
    """signed_repository: a repository that only this role uses; it is disabled for everything else.

    name: of the repository, which begins with `deeplearning-`. manager: dnf or yum. url: empty for the repositories that the host has.
    key: path on the controller of the key that signs it, or of both during a change of keys (docs/operate/operations.md). description: for people.
    metadata_signed: true has dnf and yum check the signature of the repository's metadata too (repo_gpgcheck).
    state: `present` or `absent`; `trial` defines it in os_packages.TRIAL alone, which `ended` deletes: nothing else changes, and nothing is trusted. A repository of the mirror is read with `mirror_ca`.
    Returns `repository`, which pinned_packages takes: name, url, key, key_file, `directory` (of a trial), `usable` (false if check mode has not defined it), and
    `unsigned`: the host's repositories that check no signatures, so that the host is asked once for all packages of a role.
    The definition stays disabled between runs, so an ordinary update of the host never meets it. A removal takes the key out of
    rpm's key ring when no other repository of this project is left that uses it, and rpm did not trust it before.
    """

    REQUIRED = ("name", "manager")
    OPTIONAL = ("description", "url", "key", "metadata_signed", "state")

    def act(self) -> dict[str, Any]:
        name, manager, url = self.args["name"], self.args["manager"], self.args.get("url") or ""
        state = self.args.get("state", "present")
        if manager not in os_packages.MANAGERS or not name.startswith("deeplearning-") or state not in STATES:
            self.misused(
                f"a name that begins with deeplearning-, a manager ({', '.join(os_packages.MANAGERS)}) and state: {' or '.join(STATES)}"
            )
        if state == "absent":
            self._remove(name)
            return {}
        if state == "ended":
            self._end_trial()
            return {}
        key = self.args.get("key") or "" if url else ""
        if url and not key:
            raise AnsibleActionFail(
                f"The repository {url} requires the key that signs its packages, but none is named. Set the role's repository_key to its file on "
                "the controller; unsigned packages are not installed."
            )
        directory = os_packages.TRIAL if state == "trial" else ""
        key_file = f"{directory}/key" if directory else os_packages.rpm_key(name)
        if directory:
            name += "-plan"
            self._begin_trial(name, url, key, key_file)
        elif url:
            self._define(name, url, key, key_file)
        usable = not (self.checking and self.changed)
        return {
            "repository": {
                "name": name if url else "",
                "url": url,
                "key": key,
                "key_file": key_file if url else "",
                "directory": directory,
                "usable": usable,
                "unsigned": self.unsigned_repositories(manager) if usable else [],
            }
        }

    def _begin_trial(self, name: str, url: str, key: str, key_file: str) -> None:
        self._end_trial()  # of a plan that was killed
        self.module(
            "ansible.legacy.file", path=os_packages.TRIAL, state="directory", mode="0700", owner="root", group="root"
        )
        if url:
            self.copy(key_file, src=key, mode="0644")
            self._write(name, url, key_file, reposdir=os_packages.TRIAL)
        self.changed, self.diff = False, []

    def _end_trial(self) -> None:
        self.absent(os_packages.TRIAL)
        self.changed, self.diff = False, []

    def _define(self, name: str, url: str, key: str, key_file: str) -> None:
        old_keys = self._keys_of(key_file)
        if self.copy(key_file, src=key, mode="0644").get("changed") and not self.checking:
            self._change_trust(key_file, old_keys)
        self._write(name, url, key_file)

    def _write(self, name: str, url: str, key_file: str, **place: str) -> None:
        self.module(
            "ansible.legacy.yum_repository",
            name=name,
            description=self.args.get("description") or name,
            baseurl=url,
            enabled=False,
            gpgcheck=True,
            repo_gpgcheck=boolean(self.args.get("metadata_signed") or False),
            gpgkey=f"file://{key_file}",
            sslcacert=self.mirror_ca(url),
            skip_if_unavailable=False,  # what cannot be read, or is not signed, is an error and no empty answer
            module_hotfixes=True,  # no module stream hides a version
            **ROOT,
            **place,
        )

    def _keys_of(self, key_file: str) -> list[str]:
        """The keys in a file of the host, as packages of rpm's data base; two during a change of keys."""
        return os_packages.key_packages(self.command(os_packages.show_key(key_file))["stdout"])

    def _change_trust(self, key_file: str, before: Sequence[str]) -> None:
        """Record which keys rpm trusted before a repository of this project added them; rpm stops trusting those that left the file."""
        keys, trusted = self._keys_of(key_file), self._trusted_before(key_file)
        other_files = self._other_files(key_file)
        for key in set(keys) - set(before):
            in_key_ring = self.command(["rpm", "--query", key])["rc"] == 0
            of_others = [file for file in other_files if key in self._keys_of(file)]
            if in_key_ring and (not of_others or any(key in self._trusted_before(file) for file in of_others)):
                trusted.add(key)
        self._erase(set(before) - set(keys) - trusted, other_files)
        trusted &= set(keys)
        if trusted:
            self.copy(os_packages.trusted_before(key_file), content="\n".join(sorted(trusted)) + "\n", mode="0644")
        else:
            self.absent(os_packages.trusted_before(key_file))  # of an older key under this name

    def _trusted_before(self, key_file: str) -> set[str]:
        """Those of a file's keys that rpm trusted before this project came."""
        marker = os_packages.trusted_before(key_file)
        return set(self.command(["cat", marker])["stdout"].split()) if self._exists(marker) else set()

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

    def _remove(self, name: str) -> None:
        """What else a key needs goes before its file, and the file before what protects a key: a removal that was killed continues."""
        self.absent(f"/etc/yum.repos.d/{name}.repo")
        key_file = os_packages.rpm_key(name)
        if self._exists(key_file):
            keys = self._keys_of(key_file)
            self._erase(set(keys) - self._trusted_before(key_file), self._other_files(key_file))
            self.absent(key_file)
        self.absent(os_packages.trusted_before(key_file))
        for cache in os_packages.caches(name):
            answer = self.ask_module("ansible.legacy.find", **cache, use_regex=True, file_type="any", recurse=True)
            for entry in answer.get("files", []):
                self.absent(entry["path"])
