"""The inventory plugins cloudera_manager and ambari with the real ansible-inventory, against servers on loopback."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ansible_programs
import pytest
import yaml
from ansible_programs import REPOSITORY
from manager_server import PASSWORD, USER, AmbariServer, Cloudera, Manager, serving

from hadoop_dl.data import typed
from hadoop_dl.hosts.managers import groups
from hadoop_dl.hosts.managers.listed import Listed

EXAMPLES = REPOSITORY / "inventories" / "managers"


@pytest.fixture(autouse=True)
def _no_other_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("CLOUDERA", "AMBARI"))]:
        monkeypatch.delenv(name)


class Site:
    """An inventory directory with the plugin's file."""

    def __init__(self, directory: Path, manager: Manager, plugin: str = "cloudera_manager", **options: Any) -> None:
        self.directory, self.plugin, self.manager = directory / "site", plugin, manager
        self.directory.mkdir(exist_ok=True)
        self.environment: dict[str, str] = {f"{plugin.upper()}_USER": USER, f"{plugin.upper()}_PASSWORD": PASSWORD}
        self.write(**options)

    def write(self, name: str = "", **options: Any) -> None:
        content = {"plugin": self.plugin, "url": self.manager.url, **options}
        (self.directory / (name or f"{self.plugin}.yml")).write_text(yaml.safe_dump(content), encoding="utf-8")

    def run(self, *arguments: str, program: str = "ansible-inventory") -> subprocess.CompletedProcess[str]:
        environment = {"COLUMNS": "2000", "no_proxy": "127.0.0.1", **self.environment}
        completed = ansible_programs.run(program, "-i", self.directory, *arguments, **environment)
        assert PASSWORD not in completed.stdout + completed.stderr
        return completed

    def list(self, *arguments: str) -> dict[str, Any]:
        completed = self.run("--list", *arguments)
        assert completed.returncode == 0, completed.stderr
        self.said = " ".join(completed.stderr.split())
        return json.loads(completed.stdout)

    def refusal(self, *arguments: str) -> str:
        completed = self.run("--list", *arguments)
        text = " ".join((completed.stdout + completed.stderr).split())
        assert completed.returncode != 0, text  # an inventory without its hosts would be a run that does nothing
        assert "Traceback" not in text
        return text

    def flush(self) -> subprocess.CompletedProcess[str]:
        """A run that is told to ask the server; ansible-inventory has no such option."""
        playbook = str(REPOSITORY / "playbooks" / "preflight.yml")
        return self.run("--flush-cache", "--list-hosts", playbook, program="ansible-playbook")

    def cached(self) -> str:
        return "".join(path.read_text() for path in (self.directory.parent / "cache").glob("*"))

    def cache(self, **more: Any) -> None:
        connection = str(self.directory.parent / "cache")
        self.write(cache=True, cache_plugin="ansible.builtin.jsonfile", cache_connection=connection, **more)


def members(found: dict[str, Any], group: str) -> list[str]:
    return sorted(name.partition(".")[0] for name in found.get(group, {}).get("hosts", []))


def test_the_groups_of_a_cloudera_cluster_and_the_variables_that_the_roles_read(cloudera, tmp_path):
    cloudera.all_hosts["parcels_directory"] = "/data/parcels"
    site = Site(tmp_path, cloudera)
    inventory = site.list()
    assert {group: members(inventory, group) for group in inventory["all"]["children"]} == {
        "ungrouped": ["spare01"],
        "cdsw_hosts": ["cdsw01"],
        "data_nodes": ["data01", "data02"],
        "edge_nodes": ["edge01"],
        "masters": ["master01"],
    }
    assert site.said == ""
    host_variables = inventory["_meta"]["hostvars"]
    edge = host_variables["edge01.example.com"]
    assert edge["hadoop_client_hadoop_home"] == "/data/parcels/CDH/lib/hadoop"
    assert edge["hadoop_client_conf_dir"] == "/etc/hadoop/conf"
    assert (edge["hadoop_distribution"], edge["hadoop_version"]) == ("cdh", "5.16.2")
    assert edge["cloudera_manager_host_id"] == cloudera.hosts[3]["hostId"]
    assert "hadoop_client_hadoop_home" not in host_variables["spare01.example.com"]


def test_the_graph_of_an_ambari_cluster(ambari, tmp_path):
    inventory = Site(tmp_path, ambari, "ambari").list()
    assert members(inventory, "data_nodes") == ["data01", "data02"]
    assert members(inventory, "edge_nodes") == ["edge01"]  # the others have clients as well
    assert members(inventory, "masters") == ["master01"]
    host_variables = inventory["_meta"]["hostvars"]["data01.example.com"]
    assert host_variables["hadoop_client_hadoop_home"] == "/usr/hdp/current/hadoop-client"


def test_compose_keyed_groups_and_groups_of_ansible(cloudera, tmp_path):
    site = Site(
        tmp_path,
        cloudera,
        compose={"ansible_host": "cloudera_manager_ip"},
        keyed_groups=[{"key": "cloudera_manager_cluster", "prefix": "cluster"}],
        groups={"pilot": "inventory_hostname.startswith('data01')"},
        role_groups={"edge_nodes": ["HDFS:GATEWAY"], "name_nodes": ["NAMENODE"]},
    )
    inventory = site.list()
    assert inventory["_meta"]["hostvars"]["data01.example.com"]["ansible_host"] == "172.31.16.2"
    assert members(inventory, "cluster_Demo_Cluster") == ["cdsw01", "data01", "data02", "edge01", "master01"]
    assert members(inventory, "pilot") == ["data01"]
    assert members(inventory, "name_nodes") == ["master01"]


def test_what_the_server_sends_is_no_template(cloudera, tmp_path):
    """Whoever may edit a rack in Cloudera Manager must not run commands on the controller."""
    cloudera.hosts[1]["rackId"] = "{{ lookup('pipe', 'touch OWNED') }}".replace("OWNED", str(tmp_path / "owned"))
    site = Site(tmp_path, cloudera)
    debug = ["-m", "ansible.builtin.debug", "-a", "msg={{ cloudera_manager_rack }}"]
    completed = site.run("data01.example.com", "-c", "local", *debug, program="ansible")
    assert "lookup" in completed.stdout, completed.stdout + completed.stderr
    assert not (tmp_path / "owned").exists()


def test_a_host_whose_name_or_address_is_none_is_left_out_and_the_others_are_served(cloudera, tmp_path):
    """The inventory may use the address as ansible_host, an argument of ssh."""
    cloudera.hosts[1]["hostname"] = "-oProxyCommand=x"
    cloudera.hosts[2]["ipAddress"] = "-oProxyCommand=touch /tmp/x"
    site = Site(tmp_path, cloudera, compose={"ansible_host": "cloudera_manager_ip"})
    inventory = site.list()
    assert (members(inventory, "data_nodes"), members(inventory, "edge_nodes")) == ([], ["edge01"])
    warning = "Cloudera Manager lists a host '-oProxyCommand=x' that is left out."
    assert f"{warning} It has '-oProxyCommand=x' for name, which must be a host name" in site.said
    assert "for ip, which must be an IP address of another machine" in site.said


NOWHERE = "0.0.0.0"  # noqa: S104 (an answer)
LISTED = {
    "name": "data01",
    "ip": "192.0.2.1",
    "rack": "/default",
    "cluster": "c",
    "version": "5.16.2",
    "distribution": "cdh",
    "roles": ["YARN:NODEMANAGER"],
    "maintenance": False,
    "health": "GOOD",
}


@pytest.mark.parametrize(
    "change",
    [
        *({"name": name} for name in ("a b", "{{ x }}", "a,b", "", "-x", None, 7, "x" * 300, "data\n01", "²")),
        *({"name": name} for name in ("localhost", "LOCALHOST", "localhost.localdomain", "localhost4", "x.localhost")),
        *({name: ip} for name in ("name", "ip") for ip in ("127.0.0.1", NOWHERE)),
        *({"ip": ip} for ip in ("127.1.2.3", "::1", "::ffff:127.0.0.1", "224.0.0.1", "fe80::1%eth0", "-x")),
        *({"ip": ip} for ip in ("10.0.0.1 -x", 167772161, None)),
        *({"roles": roles} for roles in ("YARN:NODEMANAGER", ["a b"], [7], None)),
        *({key: "a\nb"} for key in ("rack", "cluster", "version", "distribution", "health", "id", "parcels_directory")),
    ],
)
def test_what_a_manager_lists_has_a_form(change):
    typed.read(Listed, LISTED)
    with pytest.raises(typed.TypedError):
        typed.read(Listed, {**LISTED, **change})


@pytest.mark.parametrize("ip", ["10.1.2.3", "2001:db8::1", ""])
def test_an_address_of_another_machine_is_taken(ip):
    assert typed.read(Listed, {**LISTED, "ip": ip}).ip == ip


def test_a_host_that_is_there_twice_is_refused(cloudera, tmp_path):
    cloudera.hosts[1]["hostname"] = "data02.example.com"
    text = Site(tmp_path, cloudera).refusal()
    assert "every host must appear once, but data02.example.com appears more often" in text


def test_hosts_that_are_decommissioned_or_in_maintenance(cloudera, tmp_path):
    cloudera.hosts[1]["commissionState"] = "DECOMMISSIONED"
    cloudera.hosts[2]["maintenanceMode"] = True
    site = Site(tmp_path, cloudera)
    inventory = site.list()
    assert (members(inventory, "data_nodes"), members(inventory, "maintenance")) == (["data02"], ["data02"])
    assert "data01.example.com" not in inventory["_meta"]["hostvars"]
    assert "data01.example.com is left out: it is DECOMMISSIONED" in site.run("--list", "-v").stdout
    site.write(decommissioned_hosts="include", maintenance_hosts="leave_out")
    inventory = site.list()
    assert (members(inventory, "data_nodes"), members(inventory, "decommissioned")) == ([], ["data01"])


@pytest.fixture
def cached(cloudera: Cloudera, tmp_path: Path) -> Site:
    """A site whose cache has the server's answer."""
    site = Site(tmp_path, cloudera)
    site.cache(cache_timeout=3600)
    site.list()
    return site


def test_a_fresh_cache_is_used_without_a_request_and_holds_no_secret(cloudera, cached):
    request_count = len(cloudera.requests)
    assert members(cached.list(), "data_nodes") == ["data01", "data02"]
    assert len(cloudera.requests) == request_count
    assert "data01.example.com" in cached.cached()
    assert PASSWORD not in cached.cached()
    assert "data01.example.com" in cached.flush().stdout
    assert len(cloudera.requests) == 2 * request_count


def test_an_edited_file_does_not_get_the_former_hosts(cached):
    cached.cache(cluster="other")
    assert "has no cluster other" in cached.refusal()


def test_an_old_cache_never_stands_in_for_an_answer(cached, tmp_path):
    for path in (tmp_path / "cache").iterdir():
        os.utime(path, (0, 0))
    cached.environment["CLOUDERA_MANAGER_PASSWORD"] = "wrong"  # noqa: S105
    assert "wrong user or password (HTTP 401)" in cached.refusal()


def test_a_refused_login_empties_the_cache(cached):
    cached.environment["CLOUDERA_MANAGER_PASSWORD"] = "wrong"  # noqa: S105
    assert "HTTP 401" in cached.flush().stderr
    assert "data01" not in cached.cached()
    assert "HTTP 401" in cached.refusal()


def test_without_a_login_not_even_the_cache(cached):
    cached.environment.pop("CLOUDERA_MANAGER_PASSWORD")
    assert "Set CLOUDERA_MANAGER_USER and CLOUDERA_MANAGER_PASSWORD in the environment" in cached.refusal()


def test_a_readable_password_in_the_file_is_refused(cloudera, tmp_path):
    site = Site(tmp_path, cloudera, password=PASSWORD)
    assert "password must not be readable in this file, but is" in site.refusal()
    assert cloudera.requests == []


@pytest.mark.parametrize("whole", [False, True], ids=["value", "file"])
def test_a_password_from_a_vault(whole, cloudera, tmp_path):
    site = Site(tmp_path, cloudera, user=USER, **({"password": PASSWORD} if whole else {}))
    site.environment.clear()
    key, path = tmp_path / "key", site.directory / "cloudera_manager.yml"
    key.write_text("vault key")
    options = ["--vault-password-file", str(key)]
    if whole:
        completed = ansible_programs.run("ansible-vault", "encrypt", *options, path)
    else:
        completed = ansible_programs.run("ansible-vault", "encrypt_string", *options, "--name", "password", PASSWORD)
        path.write_text(path.read_text() + completed.stdout)
    assert completed.returncode == 0, completed.stderr
    assert members(site.list(*options), "data_nodes") == ["data01", "data02"]


def test_an_answer_of_another_form_is_a_sentence(cloudera, tmp_path):
    del cloudera.hosts[1]["hostname"]
    text = Site(tmp_path, cloudera).refusal()
    assert "must answer as its API is documented, but reading the answer failed: KeyError 'hostname'" in text


def test_a_file_of_another_name_is_not_read(cloudera, tmp_path):
    site = Site(tmp_path, cloudera)
    (site.directory / "cloudera_manager.yml").unlink()
    site.write(name="other.yml")
    site.refusal()
    assert cloudera.requests == []


@pytest.mark.parametrize("plugin", ["cloudera_manager", "ambari"])
def test_the_example_is_what_the_plugin_documents(plugin):
    content = yaml.safe_load((EXAMPLES / f"{plugin}.yml").read_text(encoding="utf-8"))
    completed = ansible_programs.run("ansible-doc", "-t", "inventory", "--json", plugin)
    options = json.loads(completed.stdout)[plugin]["doc"]["options"]
    assert set(content) <= set(options)
    for name in ("url", "user", "password", "token", "ca", "cluster", "timeout"):
        option = options[name]
        assert option["type"]
        assert option["env"] == [{"name": f"{plugin.upper()}_{name.upper()}"}]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (["YARN:NODEMANAGER", "YARN:GATEWAY"], ["data_nodes"]),
        (["YARN:NODEMANAGER", "HDFS:NAMENODE"], ["data_nodes", "masters"]),  # a cluster of one host
        (["SPARK_ON_YARN:GATEWAY"], ["edge_nodes"]),
        (["HDFS:DATANODE"], []),  # without a NodeManager no executor runs there
        (["KAFKA:KAFKA_BROKER"], []),
    ],
)
def test_groups_of_roles(roles, expected):
    assert groups.groups_of(roles, groups.CLOUDERA_GROUPS) == expected


class Playing(Site):
    """The same, beside a hosts.yml and variables as in docs/start/inventory.md; every host is this machine, which the plan only reads."""

    def __init__(self, directory: Path, manager: Manager, plugin: str, **options: Any) -> None:
        super().__init__(directory, manager, plugin, **options)
        (self.directory / "group_vars").mkdir()
        mirror = "mirror01.example.com"
        variables = {"deeplearning_request": "tf1.15-cpu-py27-el7", "mirror_url": f"http://{mirror}:8900"}
        (self.directory / "group_vars" / "all.yml").write_text(yaml.safe_dump(variables), encoding="utf-8")
        ansible_programs.write_inventory(self.directory / "hosts.yml", {mirror: "mirror_host"}, {mirror: {}})

    def site(self, *arguments: str) -> tuple[int, str]:
        completed = self.run(str(REPOSITORY / "site.yml"), *arguments, program="ansible-playbook")
        return completed.returncode, completed.stdout + completed.stderr


@pytest.mark.parametrize(("plugin", "kind"), [("cloudera_manager", Cloudera), ("ambari", AmbariServer)])
def test_the_plan_of_site_yml_is_about_the_hosts_of_the_server(plugin, kind, tmp_path):
    """This machine is none that the stack is for: each host that would get it is named, once; masters are read and left alone."""
    with serving(kind()) as manager:
        code, output = Playing(tmp_path, manager, plugin).site("--tags", "plan")
    assert code == 2, output
    assert "no host was changed" in output
    stack_lines = [line for line in output.splitlines() if "tf1.15-cpu-py27-el7" in line]
    names = ("data01", "data02", "edge01", "master01", "mirror01")
    assert [any(f"{name}.example.com" in line for line in stack_lines) for name in names] == [True] * 3 + [False] * 2
    assert "hadoop_client_hadoop_home must be" not in output, "the inventory's paths have the form"
    assert all(f"ok: [{name}.example.com]" in output for name in ("data01", "edge01", "master01", "mirror01"))
