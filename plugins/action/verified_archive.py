"""Unpack an archive that the site provides on the host, completely or not at all."""

from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """verified_archive: the content of `source` (URL, or a path on the controller; its `sha256` is compared) as the directory `path`.

    download: where the archive lies meanwhile, in a directory that only root can write to. title: the subject of the sentences.
    remedy: the way out when the sha256 is another. must_contain: what must be in it, as a pattern below the path. The module placed_tree does the host's part; a path that is marked
    with this sha256, and whose files have their sizes, is left alone, and then nothing is fetched.
    """

    REQUIRED = ("source", "sha256", "path", "download", "title", "remedy")

    OPTIONAL = ("must_contain",)

    def act(self) -> dict[str, Any]:
        path, sha256, download = str(self.args["path"]), str(self.args["sha256"]), str(self.args["download"])
        looked = self.ask_module("placed_tree", archive=download, path=path, sha256=sha256, only_check=True)
        self.changed = self.changed or bool(looked.get("changed"))  # what a killed run left is removed
        if looked.get("complete"):
            return {}
        if self.checking:
            self.changed = True
            return {}
        title = str(self.args["title"])
        try:
            self.fetch(
                str(self.args["source"]),
                download,
                sha256,
                mode="0600",
                title=title,
                remedy=str(self.args["remedy"]),
            )
            must_contain = [str(self.args["must_contain"])] if self.args.get("must_contain") else []
            answer = self.ask_module(
                "placed_tree", archive=download, path=path, sha256=sha256, must_contain=must_contain
            )
            if answer.get("failed"):
                raise AnsibleActionFail(f"{title} on {self.host}: {answer.get('msg')}")
            self.count(answer)
        finally:
            self.ask_module("ansible.legacy.file", path=download, state="absent")
        return {}
