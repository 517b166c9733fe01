"""Copy a file that the site provides (a vendor's installer) to the host, if it has the sha256 that the site recorded."""

from typing import Any

from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """verified_file: fetch `source` (URL, or a path on the controller) to `path`, which only root can write to, and compare its `sha256`.

    title: what it is, the subject of the sentences ("The .run file"). remedy: the way out when the sha256 is another. mode: of the file.
    A file with another sha256 does not stay. In check mode nothing is fetched, and that is a change.
    """

    REQUIRED = ("source", "path", "sha256", "title", "remedy")
    OPTIONAL = ("mode",)

    def act(self) -> dict[str, Any]:
        if self.checking:
            self.changed = True
            return {}
        texts = {name: str(self.args[name]) for name in self.REQUIRED}
        self.fetch(**texts, mode=str(self.args.get("mode") or "0600"))
        return {}
