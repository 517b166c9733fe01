"""Install a program that the operator and jobs run on hosts: one executable file, packed from a directory of the role."""

import tempfile
from pathlib import Path
from typing import Any

from hadoop_dl.data import programs
from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """host_program: pack the directory `source` (__main__.py and a package) and copy it to `path`, for everybody to run."""

    REQUIRED = ("source", "path")

    def act(self) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile() as packed:
            packed.write(programs.pack(Path(str(self.args["source"]))))
            packed.flush()
            self.copy(str(self.args["path"]), src=packed.name, mode="0755")
        return {}
