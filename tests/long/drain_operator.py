"""Who drains hosts of a cluster of yarn_processes with the role node_maintenance."""

import subprocess

import ansible_programs
import yaml
from yarn_processes import Cluster

REPOSITORY = ansible_programs.REPOSITORY
NOTHING = "changed=0 "
SETTINGS = {"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_ROLES_PATH": str(REPOSITORY / "roles")}


class Operator:
    """Who runs the role, with a record of the test's own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.record = cluster, cluster.directory / "opt" / "etc" / "node_maintenance.json"
        self.before = cluster.excluded.read_bytes()
        play = {
            "hosts": "data_nodes",
            "gather_facts": False,
            "serial": 1,
            "any_errors_fatal": True,
            "roles": ["node_maintenance"],
        }
        (cluster.directory / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")

    def starts(self, state: str, host: str, seconds: int = 120, *options: str) -> subprocess.Popen[str]:
        inventory = self.cluster.inventory(node_maintenance_state=state, node_maintenance_seconds=seconds)
        record_option = ("-e", f"__node_maintenance_record={self.record}")
        play = self.cluster.directory / "play.yml"
        return ansible_programs.start("-i", inventory, play, "--limit", host, *options, *record_option, **SETTINGS)

    def runs(self, state: str, host: str, seconds: int = 120, *options: str) -> str:
        return self.ends(self.starts(state, host, seconds, *options))

    def ends(self, process: subprocess.Popen[str]) -> str:
        output = process.communicate(timeout=600)[0]
        assert process.returncode == 0, output
        return output

    def is_as_before(self) -> bool:
        all_running = set(self.cluster.states().values()) == {"RUNNING"}
        return all_running and self.cluster.excluded.read_bytes() == self.before and not self.record.exists()
