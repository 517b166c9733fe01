"""Fetch a file of a host whose size is known: the host fills neither disk nor memory of the controller, whatever it sends."""

import resource
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError

from hadoop_dl.data.terminal import one_line
from hadoop_dl.hosts import memory
from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """sized_fetch: `src` on the host, `dest` here, of which at most `size` bytes are written. Who calls it compares the bytes."""

    REQUIRED = ("src", "dest", "size")

    def act(self) -> dict[str, Any]:
        source, path, size = self.args["src"], Path(self.args["dest"]), int(self.args["size"])
        if self.checking:
            return {}
        path.parent.mkdir(parents=True, exist_ok=True)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))  # of ssh's programs, too
        try:
            with memory.bounded(memory.MORE if self._connection.transport == "ssh" else 0):
                self._connection.fetch_file(source, str(path))
        except (AnsibleError, OSError, MemoryError) as error:
            larger = path.exists() and path.stat().st_size == size
            reason = "it is larger" if larger else one_line(error) or "it takes too much memory"
            raise AnsibleActionFail(
                f"{source} of {self.host} must arrive with {size} bytes, but: {reason}. Run again."
            ) from None
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.changed = True
        return {}
