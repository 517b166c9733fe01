"""Maintenance mode in upgrades and configuration in Cloudera Manager, against servers on loopback.

The action plugins run in this process. That playbooks use them is seen in a few runs of the real ansible-playbook.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_programs
import pytest
import python_files
import yaml
from ansible.module_utils.hadoop_dl_host import host_reader
from ansible_programs import LOCAL, REPOSITORY
from manager_server import DEVICES, PASSWORD, USER, Cloudera, Manager, manager_inputs

from hadoop_dl.hosts.managers import connection, server
from hadoop_dl.hosts.managers.server import ManagerError

PLUGINS = REPOSITORY / "plugins" / "action"
HOST = "data01.example.com"
CONNECTION = SimpleNamespace(_shell=SimpleNamespace(tmpdir=""))
TEMPLAR = SimpleNamespace(template=lambda value: value)
GPU = "cdsw.enable.gpu.config"
CONFIG = "/api/v19/clusters/cluster/services/cdsw/config"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is looked at again at once."""
    for module in ("cloudera_manager", "ambari"):
        monkeypatch.setattr(f"hadoop_dl.hosts.managers.{module}.POLL", 0.01)
    monkeypatch.setattr(server, "PAUSES", (0.01,) * len(server.PAUSES))


class Play:
    """A playbook for one host, which is this machine."""

    def __init__(self, directory: Path, manager: Manager, **variables: Any) -> None:
        self.directory = directory
        password = {"cluster_manager_password": "{{ lookup('env', 'MANAGER_PASSWORD') }}"}
        host = {**LOCAL, **manager_inputs(manager), **password, **variables}
        inventory = {"all": {"children": {"needs_nvidia_driver": {"hosts": {HOST: host}}}}}
        (directory / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")

    def run(self, plays: list[Any], *options: str) -> tuple[int, str]:
        (self.directory / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
        code, text = ansible_programs.play(
            *("-vvv", "--diff", "-i", self.directory / "hosts.yml", self.directory / "play.yml", *options),
            timeout=60,
            no_proxy="127.0.0.1",
            MANAGER_PASSWORD=PASSWORD,
            ANSIBLE_DISPLAY_ARGS_TO_STDOUT="1",
        )
        assert PASSWORD not in text  # not even with -vvv and shown arguments
        assert "Traceback" not in text
        return code, text


class Upgrade(Play):
    """The plays of playbooks/layers/upgrade.yml with their maintenance and the site's tasks; in place of the driver's, one that does `change`."""

    def __init__(self, directory: Path, manager: Manager, **variables: Any) -> None:
        super().__init__(directory, manager, upgrade_maintenance="yes", upgrade_way_back="x", **variables)
        self.marker = directory / "etc" / "maintenance-mode.json"

    def upgrade(self, change: str = "true", *options: str, killed_after: str = "") -> tuple[int, str]:
        plays = yaml.safe_load((REPOSITORY / "playbooks" / "layers" / "upgrade.yml").read_text(encoding="utf-8"))[:2]
        for play in plays:
            play.update(become=False, serial=1)
            play["vars"] = {"__upgrade_maintenance_marker": str(self.marker)}
        check, changing = plays
        check["tasks"] = [task for task in check["tasks"] if "manager_maintenance" in task]
        (block,) = changing["tasks"]
        block["block"] = [
            step for task in block["block"] for step in self.stand_ins(task, change, task["name"] == killed_after)
        ]
        return self.run(plays, *options)

    def stand_ins(self, task: dict[str, Any], change: str, killed: bool) -> list[dict[str, Any]]:
        tasks, name = [], {"name": task["name"]}
        if "manager_maintenance" in task:
            tasks = [task]
        elif task["name"] == "Change the host":
            tasks = [{**name, "ansible.builtin.command": change, "changed_when": False}]
        elif "receipt" in task:
            copy = {"content": "{}", "dest": f"{self.directory}/{task['receipt']['component']}.json", "mode": "0600"}
            tasks = [{**name, "ansible.builtin.copy": copy}]
        kill = "{{ lookup('pipe', 'kill -9 $(cut -d\" \" -f4 /proc/$PPID/stat) $PPID') }}"  # ansible-playbook and its worker
        return tasks + [{"name": "Kill the run", "ansible.builtin.debug": {"msg": kill}}] * killed

    def is_as_planned(self) -> bool:
        """Whether the next run finds both receipts, and addresses the host no longer."""
        return all((self.directory / f"{name}.json").exists() for name in ("nvidia_driver", "gpu_check"))


def in_maintenance(manager: Manager) -> bool:
    return manager.hosts[1]["maintenanceMode"] if isinstance(manager, Cloudera) else manager.maintenance[HOST] == "ON"


def set_maintenance(manager: Manager, on: bool) -> None:
    if isinstance(manager, Cloudera):
        manager.hosts[1]["maintenanceMode"] = on
    else:
        manager.maintenance[HOST] = "ON" if on else "OFF"


@pytest.fixture(params=["cloudera", "ambari"])
def manager(request: pytest.FixtureRequest) -> Manager:
    return request.getfixturevalue(request.param)


class Action:
    """An action plugin in this process; what it does on the host, it does in a directory."""

    def __init__(self, name: str, directory: Path, manager: Manager, **variables: Any) -> None:
        self.name, self.directory, self.kind = name, directory, python_files.load(PLUGINS / f"{name}.py").ActionModule
        self.variables = {"inventory_hostname": HOST, **manager_inputs(manager), **variables}

    def run(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        task = SimpleNamespace(async_val=0, check_mode=check, action=self.name, args=arguments)
        action = self.kind(task, CONNECTION, None, None, TEMPLAR, None)
        action.ask_module, action.copy = self.module, lambda path, **what: Path(path).write_text(what["content"])
        result = action.run(task_vars=self.variables)
        assert PASSWORD not in json.dumps(result)
        return result

    def module(self, name: str, *, path: str, state: str = "") -> dict[str, Any]:
        if name.endswith(".stat"):
            return {"stat": {"exists": Path(path).exists()}}
        if state == "directory":
            Path(path).mkdir(exist_ok=True)
        else:
            Path(path).unlink()
        return {"changed": True}


class Maintenance(Action):
    def __init__(self, directory: Path, manager: Manager, **variables: Any) -> None:
        super().__init__("manager_maintenance", directory, manager, **variables)
        self.marker = directory / "etc" / "maintenance-mode.json"

    def put(self, state: str) -> dict[str, Any]:
        return self.run(state=state, marker=str(self.marker))


def test_a_host_that_fails_stays_in_maintenance_until_the_same_command_succeeds(
    manager: Manager, tmp_path: Path
) -> None:
    host = Maintenance(tmp_path, manager)
    assert host.put("checked") == {"in_maintenance": False, "changed": False, "diff": []}
    assert "until the same command succeeds" in host.put("entered")["stays"]
    assert (in_maintenance(manager), host.marker.exists()) == (True, True)
    assert host.put("checked")["in_maintenance"]
    assert f"{HOST} is in maintenance mode in" in host.put("entered")["stays"]
    assert host.put("left")["changed"]
    assert (in_maintenance(manager), host.marker.exists(), len(manager.changes())) == (False, False, 2)


@pytest.mark.parametrize("check", [True, False])
def test_the_nodemanager_of_the_host_leaves_and_comes_back_beside_maintenance(
    check: bool, manager: Manager, tmp_path: Path
) -> None:
    host = Maintenance(tmp_path, manager)
    assert host.run(check, state="decommissioned", seconds="60")["changed"]
    assert len(manager.out) == (0 if check else 1)
    assert host.run(check, state="recommissioned", seconds=60)["changed"]
    assert (manager.out, in_maintenance(manager), host.marker.exists()) == (set(), False, False)


YARN_NODE = """
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    '''What yarn_node answers about a cluster of a manager.'''

    def run(self, tmp=None, task_vars=None):
        out = self._task.args["state"] in ("drained", "returnable")
        node = {"name": "data1", "gpus": 2, "state": "DECOMMISSIONED" if out else "RUNNING", "recorded": out}
        return {"changed": False, "node": node, "refresh": True, "managed": True}
"""


def test_the_role_has_the_manager_do_it_and_keeps_a_record_meanwhile(cloudera: Cloudera, tmp_path: Path) -> None:
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "yarn_node.py").write_text(YARN_NODE, encoding="utf-8")
    record, host = tmp_path / "opt" / "etc" / "node_maintenance.json", Play(tmp_path, cloudera)
    inputs = {"node_maintenance_resourcemanagers": [HOST], "node_maintenance_seconds": 60}
    play = {"hosts": "all", "gather_facts": False, "vars": inputs, "roles": ["node_maintenance"]}

    def runs(state: str) -> None:
        variables = f"__node_maintenance_record={record} node_maintenance_state={state}"
        status, output = host.run([play], "-e", variables)
        assert status == 0, output

    runs("drained")
    assert len(cloudera.out) == 1
    assert list(json.loads(record.read_text(encoding="utf-8"))["nodes"]) == ["data1"]
    runs("running")
    assert (cloudera.out, cloudera.stopped, record.exists()) == (set(), set(), False)


def test_the_reader_of_hosts_finds_the_mark(cloudera: Cloudera, tmp_path: Path) -> None:
    host, reader = Maintenance(tmp_path, cloudera), host_reader.Reader(str(tmp_path))
    host.marker = tmp_path / "opt/deeplearning/etc/maintenance-mode.json"
    host.marker.parent.mkdir(parents=True)
    host.put("entered")
    assert reader.deeplearning()["maintenance"] == "Cloudera Manager"
    host.marker.write_text("{", encoding="utf-8")
    assert reader.deeplearning()["maintenance"] == "the cluster manager"
    host.put("left")
    assert reader.deeplearning()["maintenance"] is None


def test_an_upgrade_that_fails_says_so_and_its_repetition_ends_maintenance(cloudera: Cloudera, tmp_path: Path) -> None:
    upgrade = Upgrade(tmp_path, cloudera)
    code, output = upgrade.upgrade("false")
    assert (code, in_maintenance(cloudera)) == (2, True), output
    assert f"{HOST} stays in maintenance mode in" in output
    assert "until the same command succeeds. The same command resumes it." in output
    code, output = upgrade.upgrade()
    assert (code, in_maintenance(cloudera), upgrade.marker.exists()) == (0, False, False), output
    assert len(cloudera.changes()) == 2


@pytest.mark.parametrize("last", ["Take the host out of maintenance mode", "Record what gpu-check expects now"])
def test_after_a_killed_upgrade_the_same_command_ends_maintenance(
    last: str, cloudera: Cloudera, tmp_path: Path
) -> None:
    upgrade = Upgrade(tmp_path, cloudera)
    code, output = upgrade.upgrade(killed_after=last)
    assert (code, "Kill the run" in output) == (-9, True), output
    if not upgrade.is_as_planned():
        code, output = upgrade.upgrade()
        assert code == 0, output
    assert (in_maintenance(cloudera), upgrade.marker.exists(), upgrade.is_as_planned()) == (False, False, True)


def test_a_manager_that_fails_at_the_end_is_asked_again_by_the_same_command(cloudera: Cloudera, tmp_path: Path) -> None:
    upgrade = Upgrade(tmp_path, cloudera)
    cloudera.faults[f"/api/v19/hosts/{cloudera.hosts[1]['hostId']}/commands/exitMaintenanceMode"] = ["403"]
    code, output = upgrade.upgrade()
    assert (code, in_maintenance(cloudera), upgrade.is_as_planned()) == (2, True, False), output
    assert f"{HOST} was not changed" not in output
    assert "until the same command succeeds" in output


def test_a_host_that_was_in_maintenance_before_stays_so(manager: Manager, tmp_path: Path) -> None:
    set_maintenance(manager, True)
    host = Maintenance(tmp_path, manager)
    assert f"{HOST} was before, and stays, in maintenance mode in" in host.put("entered")["stays"]
    host.put("left")
    assert (in_maintenance(manager), manager.changes()) == (True, [])


def test_check_mode_changes_nothing_there(cloudera: Cloudera, tmp_path: Path) -> None:
    code, output = Upgrade(tmp_path, cloudera).upgrade("true", "--check")
    assert (code, cloudera.changes()) == (0, []), output
    assert not (tmp_path / "etc").exists()


def test_check_mode_does_not_switch(manager: Manager, tmp_path: Path) -> None:
    host = Maintenance(tmp_path, manager)
    assert host.run(check=True, state="entered", marker=str(host.marker))["changed"]
    assert manager.changes() == []


def test_a_wrong_password_ends_the_run_before_the_first_host_changes(cloudera: Cloudera, tmp_path: Path) -> None:
    code, output = Upgrade(tmp_path, cloudera, cluster_manager_password="wrong-one").upgrade()  # noqa: S106
    assert code == 2
    assert f"wrong user or password (HTTP 401). Correct it in cluster_manager_*. {HOST} was not changed." in output
    assert "wrong-one" not in output
    assert "Change the hosts in batches" not in output
    assert cloudera.changes() == []


def test_a_host_that_the_manager_does_not_have(cloudera: Cloudera, tmp_path: Path) -> None:
    cloudera.hosts[1]["hostname"] = "other.example.com"
    refusal = Maintenance(tmp_path, cloudera).put("checked")
    assert refusal["failed"]
    assert f"has no host of the name {HOST}. {HOST} was not changed." in refusal["msg"]
    maintenance = Maintenance(tmp_path, cloudera, cloudera_manager_host_id=cloudera.hosts[1]["hostId"])
    assert not maintenance.put("checked").get("failed")


def test_a_lost_answer_is_looked_up(cloudera: Cloudera, tmp_path: Path) -> None:
    """The server takes the change and its answer does not arrive."""
    path = f"/api/v19/hosts/{cloudera.hosts[1]['hostId']}/commands/enterMaintenanceMode"
    cloudera.faults[path] = ["truncate"]
    cloudera.meanwhile = lambda asked: set_maintenance(cloudera, True) if asked == path else None
    host = Maintenance(tmp_path, cloudera)
    assert "stays in maintenance mode" in host.put("entered")["stays"]
    host.put("left")
    assert not in_maintenance(cloudera)


SETTINGS = {
    **dict.fromkeys(connection.VARIABLES),
    **{"cluster_manager": "ambari", "cluster_manager_url": "https://ambari01:8443"},
    **{"cluster_manager_user": USER, "cluster_manager_password": PASSWORD},
}


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"cluster_manager": "none"}, "cluster_manager must be cloudera_manager or ambari for this, but is none"),
        ({"cluster_manager_url": ""}, "but cluster_manager_url is not set"),
        (
            {"cluster_manager_user": "", "cluster_manager_password": None},
            "but cluster_manager_user, cluster_manager_password is not set",
        ),
    ],
)
def test_settings_that_are_missing(variables: dict[str, str | None], words: str) -> None:
    with pytest.raises(ManagerError) as problem:
        connection.connect({**SETTINGS, **variables})
    assert words in str(problem.value)


@pytest.mark.parametrize(("given", "accepted"), [(None, False), ("false", False), ("yes", True), (True, True)])
def test_a_manager_over_http_is_asked_only_where_the_site_says_so(given: Any, accepted: bool) -> None:
    values = {**SETTINGS, "cluster_manager_url": "http://ambari01:8080", "cluster_manager_plain_http": given}
    if accepted:
        assert connection.connect(values).server.url == "http://ambari01:8080"
    else:
        with pytest.raises(ManagerError, match="must be asked over https"):
            connection.connect(values)


@pytest.fixture
def config(cloudera: Cloudera, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The action cloudera_manager_config with these arguments."""
    action = Action("cloudera_manager_config", tmp_path, cloudera)
    return lambda check=False, **arguments: action.run(check, **{"service_type": "CDSW", **arguments})


Config = Callable[..., dict[str, Any]]


def test_a_setting_is_changed_once_and_has_a_way_back(cloudera: Cloudera, tmp_path: Path, config: Config) -> None:
    arguments = {"service_type": "CDSW", "values": {GPU: True}}
    task = {"name": "Set it", "cloudera_manager_config": arguments, "register": "__set"}
    copy = {"content": "{{ __set | to_json }}", "dest": str(tmp_path / "result.json"), "mode": "0600"}
    write = {"name": "Keep it", "ansible.builtin.copy": copy}
    code, output = Play(tmp_path, cloudera).run([{"hosts": HOST, "gather_facts": False, "tasks": [task, write]}])
    assert (code, cloudera.config["cdsw"][GPU]) == (0, "true"), output
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert (result["changed"], result["before"], result["way_back"]) == (True, {GPU: None}, {GPU: None})
    assert (result["restart_required"], result["restarted"]) == (True, False)
    assert f"-{GPU}: (default)" in output
    assert f"+{GPU}: true" in output
    assert cloudera.config["cdsw"]["cdsw.domain.config"] == "cdsw.example.com"  # what is not named stays
    next_result = config(values={GPU: "true"})
    assert (next_result["changed"], next_result["way_back"]) == (False, {})
    assert len(cloudera.changes()) == 1
    back = config(values=result["way_back"])
    assert (back["changed"], GPU in cloudera.config["cdsw"]) == (True, False)


def test_check_mode_shows_the_change_and_makes_none(cloudera: Cloudera, config: Config) -> None:
    result = config(check=True, values={GPU: "true"}, restart="stale")
    assert (result["changed"], result["restart_required"], cloudera.changes()) == (True, True, [])
    (diff,) = result["diff"]
    assert f"{GPU}: true" in diff["after"]


def test_a_restart_only_where_processes_are_stale(cloudera: Cloudera, config: Config) -> None:
    result = config(values={GPU: "true"}, restart="stale", restart_seconds=20)
    assert (result["restarted"], result["restart_required"], cloudera.stale) == (True, False, False), result
    result = config(values={GPU: "true"}, restart="stale")
    assert (result["changed"], result["restarted"], len(cloudera.changes())) == (False, False, 2)


def test_a_restart_that_fails_names_the_way_back(cloudera: Cloudera, config: Config) -> None:
    cloudera.restart_fails = True
    result = config(values={GPU: "true"}, restart="stale", restart_seconds=20)
    assert (result["failed"], result["way_back"]) == (True, {GPU: None})
    assert "without success: At least one service failed to start. The way back: " in result["msg"]


def test_busy_in_the_middle_of_a_change_is_waited_for(cloudera: Cloudera, config: Config) -> None:
    cloudera.faults[CONFIG] = ["", "503 1", "503 0"]
    result = config(values={GPU: "true"})
    assert (result["changed"], cloudera.config["cdsw"][GPU]) == (True, "true"), result


@pytest.mark.parametrize("taken", [False, True], ids=["not taken", "taken"])
def test_a_change_whose_answer_is_lost_is_looked_up(taken: bool, cloudera: Cloudera, config: Config) -> None:
    cloudera.faults[CONFIG] = ["", "truncate"]

    def take(path: str) -> None:
        if taken and "message=" in path:
            cloudera.config["cdsw"][GPU] = "true"

    cloudera.meanwhile = take
    result = config(values={GPU: "true"})
    if taken:
        assert (result["changed"], result["way_back"]) == (True, {GPU: None}), result
    else:
        assert result["failed"]
        assert "cdsw has the values that it had before" in result["msg"]


def test_a_change_that_cannot_be_looked_up_says_so_and_has_the_way_back(cloudera: Cloudera, config: Config) -> None:
    cloudera.faults[CONFIG] = ["", *["truncate"] * 9]
    result = config(values={GPU: "true"})
    assert (result["failed"], result["way_back"]) == (True, {GPU: None})
    assert f"Whether {GPU} of cdsw changed is not known; run again, it compares first." in result["msg"]


def test_a_setting_of_a_role_config_group_is_not_the_services(cloudera: Cloudera, config: Config) -> None:
    group = "cdsw-CDSW_DOCKER-BASE"
    result = config(values={DEVICES: "/dev/sdb"}, role_group=group)
    assert cloudera.group_config[group] == {DEVICES: "/dev/sdb"}, result
    assert (result["before"], result["way_back"], DEVICES in cloudera.config["cdsw"]) == (
        {DEVICES: None},
        {DEVICES: None},
        False,
    )
    back = config(values=result["way_back"], role_group=group)
    assert (back["changed"], cloudera.group_config[group]) == (True, {})
    refusal = config(values={DEVICES: "/dev/sdb"}, role_group="cdsw-CDSW_DOCKER-9")
    assert refusal["failed"]
    assert "cdsw-CDSW_DOCKER-9" in refusal["msg"]
    assert "not found" in refusal["msg"], refusal["msg"]
    refusal = config(values={GPU: "true"}, role_group=group)  # one of the service
    assert refusal["failed"]
    assert f"has no setting {GPU}" in refusal["msg"]


WRONG: dict[str, dict[str, Any]] = {
    "has no setting cdsw.gone.config for cdsw. Nothing was changed.": {"values": {"cdsw.gone.config": "x"}},
    f"values must be text, but that of {GPU} is a list": {"values": {GPU: ["x"]}},
    "values must be a mapping": {"values": {}},
    "must have a service of type HUE in cluster once, but has none": {"values": {GPU: "true"}, "service_type": "HUE"},
    "needs restart: never or stale": {"values": {GPU: "true"}, "restart": "always"},
    "needs service or service_type, one of them": {"values": {GPU: "true"}, "service": "cdsw"},
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_argument_changes_nothing(words: str, cloudera: Cloudera, config: Config) -> None:
    refusal = config(**WRONG[words])
    assert refusal["failed"]
    assert words in refusal["msg"]
    assert cloudera.changes() == []
