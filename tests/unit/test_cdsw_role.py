"""The role cdsw with a parcel, by the real ansible-playbook: Cloudera Manager has its settings, so the role prints them and checks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ansible_programs
import yaml
from python_files import write_script

GPU, PATH = "cdsw.enable.gpu.config", "cdsw.nvidia.lib.path.config"
STATUS = """
# As demo/cdsw/cdsw prints it.
echo "|  NAME | STATUS | CREATED-AT | VERSION | EXTERNAL-IP | OS-IMAGE | KERNEL-VERSION | GPU | STATEFUL |"
echo "|  $(uname -n) | True | 2018-01-28 14:40:09+00:00 | v1.6.11 | None | CentOS Linux 7 (Core) | 3.10.0 | $(cat DIRECTORY/gpus) | True |"
echo "Cloudera Data Science Workbench is ready!"
"""


class Site:
    """A master of CDSW, which is this machine, with 2 GPUs that CDSW detects once an administrator enabled them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.record = directory / "opt/etc/cdsw.json"
        write_script(directory / "bin/cdsw", STATUS.replace("DIRECTORY", str(directory)))
        self.enable(0)

    def enable(self, gpus: int) -> None:
        (self.directory / "gpus").write_text(str(gpus), encoding="utf-8")

    def run(self, *options: str, **variables: Any) -> tuple[int, str]:
        inputs = {
            **ansible_programs.LOCAL,
            "cdsw_kind": "parcel",
            "cdsw_release": "1.10.5",
            "cdsw_settings": {GPU: "true"},
            "cdsw_gpu_count": 2,
            "cdsw_restart_allowed": True,
            "cdsw_timeout": 9,
            "__cdsw_record": str(self.record),
            **variables,
        }
        host = {"all": {"hosts": {"cdsw1": {}}}}
        play = [{"hosts": "all", "gather_facts": False, "roles": [{"role": "cdsw"}]}]
        for name, content in (("hosts.yml", host), ("play.yml", play)):
            (self.directory / name).write_text(yaml.safe_dump(content), encoding="utf-8")
        (self.directory / "vars.json").write_text(json.dumps(inputs), encoding="utf-8")
        place = self.directory
        return ansible_programs.play(
            *("-i", place / "hosts.yml", "-e", f"@{place}/vars.json", *options, place / "play.yml"),
            ANSIBLE_ROLES_PATH=str(ansible_programs.REPOSITORY / "roles"),
            PATH=f"{self.directory}/bin:{os.environ['PATH']}",
        )


def test_a_setting_of_a_parcel_is_printed_until_cdsw_detects_the_gpus(tmp_path: Path) -> None:
    site = Site(tmp_path)
    code, output = site.run()
    assert code == 0, output
    assert "LEFT TO DO for cdsw1: in Cloudera Manager" in output
    assert "CDSW detects 0 of 2 GPUs here" in output
    assert not site.record.exists()
    site.enable(2)
    code, output = site.run()
    assert (code, "LEFT TO DO" in output) == (0, False), output
    assert json.loads(site.record.read_text(encoding="utf-8")) == {"cloudera_manager": {GPU: "true"}}


def test_a_path_of_the_driver_is_printed_also_if_cdsw_detects_the_gpus(tmp_path: Path) -> None:
    """GPUs that CDSW detects do not tell whether its path is the older driver's."""
    site = Site(tmp_path)
    site.enable(2)
    settings = {GPU: "true", PATH: "/var/lib/nvidia-docker/volumes/nvidia_driver/418.67"}
    code, output = site.run(cdsw_release="1.4.0", cdsw_settings=settings)
    assert code == 0, output
    assert "LEFT TO DO for cdsw1" in output
    assert "nvidia_driver/418.67" in output
