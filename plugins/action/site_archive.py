"""Unpack an archive that the site provides on the host, completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """site_archive: the content of `source` (URL, or a path on the controller; its `sha256` is compared) as the directory `place`.

    download: where the archive lies meanwhile, in a directory that only root can write to. purpose: the subject of the sentences.
    otherwise: the way out when the sha256 is another. holds: what must be in it, as a pattern below the place. The module unpacked_archive does the host's part; a place that is marked
    with this sha256, and whose files have their sizes, is left alone, and then nothing is fetched.
    """

    REQUIRED = ("source", "sha256", "place", "download", "purpose", "otherwise")

    OPTIONAL = ("holds",)

    def act(self) -> dict[str, Any]:
        place, sha256, download = str(self.args["place"]), str(self.args["sha256"]), str(self.args["download"])
        looked = self.ask_module("unpacked_archive", archive=download, place=place, sha256=sha256, only_check=True)
        self.changed = self.changed or bool(looked.get("changed"))  # what a killed run left is removed
        if looked.get("complete"):
            return {}
        if self.checking:
            self.changed = True
            return {}
        purpose = str(self.args["purpose"])
        try:
            self.fetch(
                str(self.args["source"]),
                download,
                sha256,
                mode="0600",
                purpose=purpose,
                otherwise=str(self.args["otherwise"]),
            )
            holds = str(self.args.get("holds") or "")
            answer = self.ask_module("unpacked_archive", archive=download, place=place, sha256=sha256, holds=holds)
            if answer.get("failed"):
                raise AnsibleActionFail(
                    f"{purpose} must be unpacked as {place} on {self.host}, but that failed: {answer.get('msg')}. The host has what it "
                    f"had. Look at the free space (df {Path(place).parent}) and at the archive, and run this again."
                )
            self.count(answer)
        finally:
            self.ask_module("ansible.legacy.file", path=download, state="absent")
        return {}
