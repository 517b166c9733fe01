"""The inventory of Cloudera Manager drives site.yml to its end: a host that only the manager names gets its environment."""

import re
from collections.abc import Iterator

import ansible_programs
import pytest
import yaml
from bare_hosts import PATH, REPOSITORY, RUN_SECONDS, STACK, Hosts
from manager_server import PASSWORD, USER, Cloudera, cm_host, serving

# The image's Hadoop, where a CDH parcel has it.
PARCEL = """
mkdir -p /opt/cloudera/parcels/CDH/lib /etc/hadoop
ln -s /opt/hadoop /opt/cloudera/parcels/CDH/lib/hadoop
test -e /etc/hadoop/conf || ln -s /opt/hadoop/etc/hadoop /etc/hadoop/conf
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with Hosts("managed", ("data1",), tmp_path_factory.mktemp("m")).running() as hosts:
        hosts.shell("data1", PARCEL)
        yield hosts


def test_site_yml_installs_what_the_manager_calls_a_data_node(hosts, tmp_path):
    inventory = yaml.safe_load((hosts.directory / "inventory.json").read_text(encoding="utf-8"))
    group = inventory["all"]["children"]["data_nodes"]
    manager = Cloudera()
    manager.hosts = [cm_host(1, "data1.example.com", ipAddress=group["hosts"]["data1"]["ansible_host"])]
    manager.services = {"yarn": "YARN", "kafka": "KAFKA"}
    manager.roles = {"yarn": [("NODEMANAGER", 1)], "kafka": []}
    site = tmp_path / "site"
    (site / "group_vars").mkdir(parents=True)
    (site / "group_vars" / "all.yml").write_text(yaml.safe_dump(group["vars"]), encoding="utf-8")
    with serving(manager):
        content = {"plugin": "cloudera_manager", "url": manager.url, "compose": {"ansible_host": "cloudera_manager_ip"}}
        (site / "cloudera_manager.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
        login = {"CLOUDERA_MANAGER_USER": USER, "CLOUDERA_MANAGER_PASSWORD": PASSWORD, "no_proxy": "127.0.0.1"}
        arguments = ("-i", site, REPOSITORY / "site.yml", "--skip-tags", "verify")
        completed = ansible_programs.run("ansible-playbook", *arguments, timeout=RUN_SECONDS, **login)
    output = completed.stdout + completed.stderr
    assert completed.returncode == 0, output[-6000:]
    assert re.search(r"^data1\.example\.com .*failed=0 ", output, re.MULTILINE)
    assert hosts.shell("data1", "readlink -f /opt/deeplearning/current").strip().startswith(PATH)
    assert STACK in PATH
    settings = hosts.shell("data1", f"cat {PATH}.client/hadoop-env.sh")
    assert "/opt/cloudera/parcels/CDH/lib/hadoop" in settings  # from the inventory
    assert PASSWORD not in output
