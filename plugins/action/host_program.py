"""Install a program that the operator and jobs run on hosts: one executable file, packed from a directory of the role."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "lib"))

from hadoop_dl.data import programs  # noqa: E402  (the path above comes first)
from hadoop_dl.hosts.actions import HostAction  # noqa: E402


class ActionModule(HostAction):
    """host_program: pack the directory `source` (launcher.sh, __main__.py, a package) and copy it to `path`, for everybody to run."""

    REQUIRED = ("source", "path")

    def act(self) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile() as packed:
            packed.write(programs.pack(Path(str(self.args["source"]))))
            packed.flush()
            self.copy(str(self.args["path"]), src=packed.name, mode="0755")
        return {}
