"""What a daemon of YARN reads, and what a site's administrator finds unchanged."""

import shlex
import xml.etree.ElementTree as ElementTree

import pytest

CONF = "/etc/cluster"
PLUGINS = "yarn.nodemanager.resource-plugins"
HEALTH = ("interval-ms", "script.opts", "script.path")
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


@pytest.fixture(scope="module")
def master(host):
    return host.check_output("hostname").endswith("el7")


def values(host, name):
    root = ElementTree.fromstring(host.file(f"{CONF}/{name}").content_string)  # noqa: S314 (the test's own file)
    return {entry.findtext("name"): entry.findtext("value") for entry in root.iter("property")}


def test_every_daemon_knows_the_resource(host):
    assert values(host, "resource-types.xml") == {"yarn.resource-types": "yarn.io/gpu"}


def test_the_nodemanager_offers_gpus_beside_what_the_site_has(host, master):
    settings = values(host, "yarn-site.xml")
    assert settings[PLUGINS] == ("yarn.io/fpga" if master else "yarn.io/fpga,yarn.io/gpu")
    assert settings.get(f"{PLUGINS}.gpu.allowed-gpu-devices") == (None if master else "auto")
    assert settings.get(f"{PLUGINS}.gpu.path-to-discovery-executables") == (None if master else "/usr/bin")
    assert settings["yarn.nodemanager.log-dirs"] == "/data1/yarn/logs,/data2/yarn/logs"


def test_the_gpu_module_is_enabled_beside_what_the_site_has(host, master):
    file = host.file(f"{CONF}/container-executor.cfg")
    added = "[gpu]\nmodule.enabled=true\n"
    assert (added in file.content_string) is not master
    assert "min.user.id=1000#Prevent other super-users\n" in file.content_string
    assert "[docker]\n  module.enabled=false\n" in file.content_string
    assert (file.user, file.group, file.mode) == ("root", "hadoop", 0o400)


def test_the_directory_of_containers_is_there_at_each_boot(host, master):
    directory = host.file("/run/deeplearning-cgroup/devices/hadoop-yarn")
    assert directory.exists is not master
    assert host.service("deeplearning-yarn-cgroup").is_enabled is not master
    if master:
        return
    assert (directory.user, directory.mode) == ("yarn", 0o755)
    assert host.file(f"{directory.path}/devices.deny").exists, "the kernel's controller, which the unit mounted"
    output = host.check_output("systemctl show -p After basic.target")
    assert "deeplearning-yarn-cgroup.service" in output, "before every ordinary service"


def test_the_nodemanager_starts_after_the_driver(host, master):
    unit = host.check_output("systemctl show -p After -p ExecStartPre yarn")
    assert ("nvidia-persistenced.service" in unit) is not master
    assert ("/usr/bin/timeout 60 /usr/bin/nvidia-smi -L" in unit) is not master


def test_the_resourcemanager_counts_gpus(host, master):
    calculator = values(host, "capacity-scheduler.xml")["yarn.scheduler.capacity.resource-calculator"]
    assert calculator == (DOMINANT if master else DOMINANT.replace("Dominant", "Default"))


def test_the_resourcemanager_keeps_labels_and_gives_their_hosts_to_a_queue(host, master):
    site, queues = values(host, "yarn-site.xml"), values(host, "capacity-scheduler.xml")
    assert site.get("yarn.node-labels.enabled") == ("true" if master else None)
    assert site.get("yarn.node-labels.fs-store.root-dir") == ("hdfs:///yarn/node-labels" if master else None)
    share = queues.get("yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity")
    assert share == ("100" if master else None)


def test_the_nodemanager_prints_gpu_checks_answer(host, master):
    settings = {name: value for name, value in values(host, "yarn-site.xml").items() if "health-checker" in name}
    assert sorted(settings) == ([] if master else [f"yarn.nodemanager.health-checker.{name}" for name in HEALTH])
    if master:
        return
    options, path = (settings[f"yarn.nodemanager.health-checker.{name}"] for name in HEALTH[1:])
    answer = "/run/deeplearning-gpu-health"
    command = " ".join(shlex.quote(word) for word in (path, *options.split(",")))
    assert host.check_output(f"rm -f {answer}; {command}") == ""
    assert (
        host.check_output(f"printf 'ERROR: x\\nlast look: ERROR\\n' > {answer}; {command}; rm {answer}") == "ERROR: x"
    )


@pytest.mark.parametrize("text", ["<!-- The site's: two disks for logs. -->", "<!-- not on the system's disk -->"])
def test_comments_and_access_stay(host, text):
    file = host.file(f"{CONF}/yarn-site.xml")
    assert text in file.content_string
    assert file.mode == 0o640


def test_the_daemon_restarted_once_and_not_again_by_the_second_run(host):
    assert host.file("/srv/starts").content_string.split() == ["started"] * 2  # the first is the installation's
    assert host.service("yarn").is_running


def test_the_record_is_for_root_alone(host):
    assert host.file("/opt/deeplearning/state/yarn_gpu.json").mode == 0o600
