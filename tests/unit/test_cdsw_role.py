"""The role cdsw with a parcel: its settings in Cloudera Manager, by the real ansible-playbook against a server on loopback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ansible_programs
import yaml
from manager_server import Cloudera, manager_inputs
from python_files import write_script

GPU, PATH = "cdsw.enable.gpu.config", "cdsw.nvidia.lib.path.config"
STATUS = """
# As demo/cdsw/cdsw prints it; DIRECTORY/broken: CDSW does not come back.
if [ -e DIRECTORY/broken ]; then
    echo "Processes are not running: [kubelet]. Check the CDSW role logs for more details."
    exit 1
fi
echo "|  NAME | STATUS | CREATED-AT | VERSION | EXTERNAL-IP | OS-IMAGE | KERNEL-VERSION | GPU | STATEFUL |"
echo "|  $(uname -n) | True | 2018-01-28 14:40:09+00:00 | v1.6.11 | None | CentOS Linux 7 (Core) | 3.10.0 | $(cat DIRECTORY/gpus) | True |"
echo "Cloudera Data Science Workbench is ready!"
"""


class Site:
    """A master of CDSW, which is this machine, with 2 GPUs that CDSW detects once Cloudera Manager enables them."""

    def __init__(self, directory: Path, cloudera: Cloudera) -> None:
        self.directory, self.cloudera = directory, cloudera
        self.record = directory / "opt/etc/cdsw.json"
        write_script(directory / "bin/cdsw", STATUS.replace("DIRECTORY", str(directory)))
        (directory / "gpus").write_text("0", encoding="utf-8")
        cloudera.meanwhile = self.follow

    def follow(self, path: str) -> None:
        enabled = self.cloudera.config["cdsw"].get(GPU) == "true" and not self.cloudera.stale
        (self.directory / "gpus").write_text("2" if enabled else "0", encoding="utf-8")

    def run(self, *options: str, **variables: Any) -> tuple[int, str]:
        inputs = {
            **ansible_programs.LOCAL,
            **manager_inputs(self.cloudera),
            "cdsw_kind": "parcel",
            "cdsw_release": "1.10.5",
            "cdsw_settings": {GPU: "true"},
            "cdsw_gpu_count": 2,
            "cdsw_cloudera_manager": True,
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
            no_proxy="127.0.0.1",
        )


def test_a_parcel_gets_its_setting_in_cloudera_manager_and_is_restarted_once(
    cloudera: Cloudera, tmp_path: Path
) -> None:
    site = Site(tmp_path, cloudera)
    code, output = site.run()
    assert (code, cloudera.config["cdsw"].get(GPU), cloudera.stale) == (0, "true", False), output
    assert "LEFT TO DO" not in output
    assert json.loads(site.record.read_text(encoding="utf-8")) == {"cloudera_manager": {GPU: "true"}}
    changes = len(cloudera.changes())
    code, output = site.run()
    assert (code, len(cloudera.changes())) == (0, changes), output
    assert "changed=0" in output


def test_a_cdsw_that_does_not_come_back_gets_its_earlier_setting(cloudera: Cloudera, tmp_path: Path) -> None:
    site = Site(tmp_path, cloudera)
    (tmp_path / "broken").touch()
    code, output = site.run()
    assert code == 2
    assert GPU not in cloudera.config["cdsw"]
    assert "did not get its new settings" in output
    assert "Processes are not running: [kubelet]" in output
    assert not site.record.exists()


def test_nothing_is_set_without_the_permission_to_restart(cloudera: Cloudera, tmp_path: Path) -> None:
    code, output = Site(tmp_path, cloudera).run(cdsw_restart_allowed=False)
    assert (code, cloudera.changes()) == (0, []), output
    assert "LEFT TO DO for cdsw1: in Cloudera Manager" in output
    assert "CDSW detects 0 of 2 GPUs here" in output


def test_a_wrong_password_changes_nothing_and_is_told(cloudera: Cloudera, tmp_path: Path) -> None:
    code, output = Site(tmp_path, cloudera).run(cluster_manager_password="wrong")  # noqa: S106 (of the server on loopback)
    assert (code, cloudera.changes()) == (2, []), output
    assert "did not get its new settings" in output


def test_a_path_of_the_driver_is_told_where_nobody_asks_cloudera_manager(cloudera: Cloudera, tmp_path: Path) -> None:
    """GPUs that CDSW detects do not tell whether its path is the older driver's."""
    site = Site(tmp_path, cloudera)
    cloudera.config["cdsw"][GPU] = "true"
    site.follow("")
    settings = {GPU: "true", PATH: "/var/lib/nvidia-docker/volumes/nvidia_driver/418.67"}
    code, output = site.run(cdsw_cloudera_manager=False, cdsw_release="1.4.0", cdsw_settings=settings)
    assert (code, cloudera.changes()) == (0, []), output
    assert "LEFT TO DO for cdsw1" in output
    assert "nvidia_driver/418.67" in output
