"""The site's tasks in playbooks/layers/upgrade.yml, with the example beside the inventory and a stand-in of Alertmanager."""

import base64
import datetime
import json
import shutil
from typing import Any

import yaml
from ansible_programs import LOCAL, REPOSITORY, play, plays_of
from loopback import Quiet, served

EXAMPLE = REPOSITORY / "examples" / "prometheus" / "upgrade_driver_before.yml"
LOGIN, PASSWORD = "ansible", "secret-one"


class Alertmanager(Quiet):
    """POST /api/v2/silences takes what postableSilence requires (api/v2/openapi.yaml of github.com/prometheus/alertmanager, 07d03b6)."""

    silences: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        authorization = "Basic " + base64.b64encode(f"{LOGIN}:{PASSWORD}".encode()).decode()
        complete = {"matchers", "startsAt", "endsAt", "createdBy", "comment"} <= set(body) and all(
            {"name", "value", "isRegex"} <= set(matcher) for matcher in body["matchers"]
        )
        status = 401 if self.headers["Authorization"] != authorization else 200 if complete else 400
        if self.path != "/api/v2/silences":
            status = 404
        if status == 200:
            self.silences.append(body)
        answer = json.dumps({"silenceID": "512860da-74f3-43c9-8833-cec026542b32"}).encode()
        self.answer(status, answer, Content_Type="application/json")


def test_the_example_silences_each_hosts_alerts_before_that_host_changes(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "upgrade_driver_after.yml").write_text(
        "- name: After\n  ansible.builtin.debug:\n    msg: 'AFTER {{ inventory_hostname }}'\n", encoding="utf-8"
    )
    handler = type("Handler", (Alertmanager,), {"silences": []})
    with served(handler) as address:
        site = {"alertmanager_url": address, "alertmanager_user": LOGIN, "alertmanager_password": PASSWORD}
        hosts = {"hosts": {"data1": {}, "data2": {}}}
        inventory = {"all": {"vars": {**LOCAL, **site}, "children": {"needs_nvidia_driver": hosts}}}
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        _, change, _ = plays_of("layers/upgrade")
        (rollout,) = change.pop("tasks")
        hook_tasks = [task for task in rollout["block"] if "ansible.builtin.include_tasks" in task]
        assert len(hook_tasks) == 2
        change.update(become=False, serial=1, tasks=hook_tasks)
        (tmp_path / "play.yml").write_text(yaml.safe_dump([change]), encoding="utf-8")
        status, output = play("-vvv", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml", no_proxy="127.0.0.1")
    assert status == 0, output
    assert PASSWORD not in output  # not even with -vvv
    silences = handler.silences
    assert [silence["matchers"] for silence in silences] == [
        [{"name": "host", "value": host, "isRegex": False}] for host in ("data1", "data2")
    ]
    end = datetime.datetime.fromisoformat(silences[0]["endsAt"].replace("Z", "+00:00"))
    remaining_time = end - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(hours=1, minutes=50) < remaining_time <= datetime.timedelta(hours=2)
    assert output.index("AFTER data1") < output.rindex("Silence the host")  # one host after the other
