"""NodeManagers that never report to a restarted ResourceManager: tasks/reports.yml of the role yarn_gpu. tests/long has such NodeManagers of Hadoop."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_programs
import host_modules
import pytest
import python_files
import yaml
from ansible.errors import AnsibleActionFail
from resource_manager import serving

ROLE = ansible_programs.REPOSITORY / "roles/yarn_gpu"
# As the ResourceManager of 3.1.1 answered: the node that was registered at its restart and whose NodeManager had no thread "Node Status Updater".
UNHEARD = {"state": "RUNNING", "healthReport": "Healthy", "lastHealthUpdate": 1795860863558}
HEARD = {"state": "RUNNING", "healthReport": "", "lastHealthUpdate": 1795861111772}


def answers(nodes: Callable[[], dict[str, dict[str, Any]]]) -> Callable[[str], Any]:
    def answer(path: str) -> Any:
        if "/nodes" in path:
            return {"nodes": {"node": [{"nodeHostName": name, **node} for name, node in nodes().items()]}}
        return {"clusterInfo": {"hadoopVersion": "3.1.1"}}

    return answer


@pytest.mark.parametrize(
    ("node", "reports"),
    [(HEARD, True), (UNHEARD, False), ({**HEARD, "state": "LOST"}, False), ({**UNHEARD, "state": "NEW"}, False)],
)
def test_a_node_reports_if_its_health_is_its_nodemanagers_own(tmp_path, node, reports):
    with serving(answers(lambda: {"data1": node, "a b": HEARD}), tmp_path):
        answer = host_modules.run("yarn_manager", state="reports", conf_dir=str(tmp_path), nodes=["data1"], patience=1)
    assert (answer["reporting"], answer["silent"]) == ((["data1"], []) if reports else ([], ["data1"]))


def test_a_resourcemanager_that_does_not_answer_is_a_warning(tmp_path):
    answer = host_modules.run("yarn_manager", state="reports", conf_dir=str(tmp_path))
    assert (answer["reporting"], answer["silent"]) == ([], [])
    assert "The ResourceManager did not report its nodes (yarn-site.xml names none)." in answer["warnings"]


@dataclass
class Rollout:
    """tasks/reports.yml for data1 to data4, of which data1 reports. data4 is no host of this run; data3 has no command; `heals`: a restart helps."""

    directory: Path
    heals: bool = True

    def run(self, *silent: str, batch: int = 1) -> tuple[int, str, list[str]]:
        """The status, what Ansible said, and who was restarted."""
        restarted = self.directory / "restarted"
        restarted.touch()
        hosts: dict[str, dict[str, str]] = {name: {} for name in ("rm", "data1", "data3")}
        for name in ("data2", "data4", "data5"):
            hosts[name] = {"yarn_gpu_nodemanager_command": f"echo {name} >> {restarted}"}
        inventory, playbook = self.directory / "hosts.yml", self.directory / "play.yml"
        groups = {name: "data_nodes" if name == "data4" else "needs_yarn_gpu" for name in hosts}
        ansible_programs.write_inventory(inventory, groups, hosts)
        variables = {
            **yaml.safe_load((ROLE / "vars/main.yml").read_text(encoding="utf-8")),
            "yarn_gpu_conf_dir": str(self.directory),
            "yarn_gpu_timeout": 10,
            "upgrade_batch": batch,
            "__yarn_gpu_patience": 3,
            "__yarn_gpu_reports": {"reporting": ["data1", *silent]},
        }
        tasks = [{"ansible.builtin.include_tasks": str(ROLE / "tasks/reports.yml")}]
        play = {"hosts": "rm", "gather_facts": False, "vars": variables, "tasks": tasks}
        playbook.write_text(json.dumps([play]), encoding="utf-8")

        def names() -> list[str]:
            return restarted.read_text(encoding="utf-8").split()

        def nodes() -> dict[str, dict[str, Any]]:
            return {"data1": HEARD, **{name: HEARD if self.heals and name in names() else UNHEARD for name in silent}}

        with serving(answers(nodes), self.directory):
            status, output = ansible_programs.play("-i", inventory, playbook)
        return status, " ".join(output.split()), names()


def test_what_does_not_report_is_restarted_by_the_sites_command(tmp_path):
    status, output, restarted = Rollout(tmp_path).run("data2", "data5")
    assert (status, sorted(restarted)) == (0, ["data2", "data5"]), output


@pytest.mark.parametrize("silent", ["data3", "data4"])
def test_a_host_without_the_command_or_not_of_this_run_is_named_and_not_restarted(tmp_path, silent):
    status, output, restarted = Rollout(tmp_path).run(silent)
    assert (status, restarted) == (2, []), output
    assert f"the restarted ResourceManager of rm, but {silent} did not within 3 s" in output


@pytest.mark.parametrize("batch", [1, 2])
def test_a_resourcemanager_that_has_every_node_as_silent_has_one_batch_restarted(tmp_path, batch):
    status, output, restarted = Rollout(tmp_path, heals=False).run("data2", "data5", batch=batch)
    assert (status, len(restarted)) == (2, batch), output
    assert "No other NodeManager was restarted." in output


def test_an_answer_with_other_names_is_a_sentence(monkeypatch):
    plugin = python_files.load(ansible_programs.REPOSITORY / "plugins/action/yarn_reports.py").ActionModule
    action = object.__new__(plugin)
    action.args, action.variables = {}, {"inventory_hostname": "rm"}
    monkeypatch.setattr(plugin, "module", lambda *_, **__: {"reporting": ["{{ 7 }}"], "silent": []})
    with pytest.raises(AnsibleActionFail, match="The ResourceManager must answer as Hadoop's REST API does, but has "):
        action.act()
