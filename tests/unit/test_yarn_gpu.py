"""GPUs under YARN in the plan: which hosts get which settings, what speaks against it, and what is said about isolation."""

import json
from typing import Any

import pytest
import yaml
from ansible.module_utils.hadoop_dl_host import host_system, host_yarn
from host_modules import has
from plan_hosts import NODE, REPOSITORY, changed_node, make_host
from resource_manager import write_settings

from hadoop_dl import plan
from hadoop_dl.data import yarn_work
from hadoop_dl.hosts import removal
from hadoop_dl.plan import model, yarn

CONF = "/etc/hadoop/conf"
PLUGINS = "yarn.nodemanager.resource-plugins"
DEVICES = f"{PLUGINS}.gpu.allowed-gpu-devices"
CALCULATOR = "yarn.scheduler.capacity.resource-calculator"
CALCULATORS = "org.apache.hadoop.yarn.util.resource"
LINUX_EXECUTOR = "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"
CGROUPS = "yarn.nodemanager.linux-container-executor.cgroups"
EXECUTOR = "yarn.nodemanager.container-executor.class"
EXECUTOR_PATH = "yarn.nodemanager.linux-container-executor.path"
CFG = "/etc/hadoop/container-executor.cfg"
ISOLATION = {"config": CFG, "root": "/sys/fs/cgroup", "hierarchy": "hadoop-yarn", "mount": False}
WINDOW = {
    "yarn_gpu": True,
    "yarn_gpu_restart_allowed": True,
    "yarn_gpu_nodemanager_command": "systemctl restart nm",
    "yarn_gpu_resourcemanager_command": "systemctl restart rm",
}


def file(settings: dict[str, str], ours: dict[str, str] | None = None, problem: str | None = None) -> dict[str, Any]:
    """A file as the reader answers it."""
    return {"settings": settings, "ours": ours or {}, "problem": problem}


OWN_SCHEDULER = file({CALCULATOR: f"{CALCULATORS}.DefaultResourceCalculator"})


def found(
    *,
    manager: str | None = None,
    node: dict[str, Any] = NODE,
    yarn_site: dict[str, Any] | None = None,
    capacity_scheduler: dict[str, Any] | None = OWN_SCHEDULER,
) -> dict[str, Any]:
    """A host with these files; capacity-scheduler.xml is Hadoop's own."""
    files = {f"{CONF}/yarn-site.xml": yarn_site, f"{CONF}/capacity-scheduler.xml": capacity_scheduler}
    existing_files = {path: content for path, content in files.items() if content}
    return {**node, "yarn": {"manager": manager, "files": existing_files}}


def linux(site: dict[str, str] | None = None, cfg: dict[str, str] | None = None, **yarn: Any) -> dict[str, Any]:
    """A host with LinuxContainerExecutor that can isolate; site, cfg: what the site set in yarn-site.xml and in container-executor.cfg."""
    node = found(yarn_site=file({EXECUTOR: LINUX_EXECUTOR, **(site or {})}))
    node["yarn"]["files"][CFG] = file(cfg or {})
    node["yarn"] |= {"executor_config": CFG, "devices": "/sys/fs/cgroup/devices", **yarn}
    return node


def data(node: dict[str, Any] | None = None, **variables: Any) -> model.Host:
    return make_host(node=node or found(), **{**WINDOW, **variables})


def master(node: dict[str, Any] | None = None, **variables: Any) -> model.Host:
    return make_host("master1", ("masters",), node or found(), **{**WINDOW, **variables})


def made(*hosts: model.Host) -> model.Plan:
    return plan.make_plan(hosts, REPOSITORY)


def requested(answer: model.Plan, host: str) -> str:
    """What the plan's table shows that this host gets."""
    (row,) = [candidate for candidate in answer.rows if (candidate.host, candidate.component) == (host, "yarn_gpu")]
    return row.wanted


def with_receipt(digest: str) -> dict[str, Any]:
    receipts = {"yarn_gpu": {"digest": digest, "problem": None}}
    return found(node=changed_node(deeplearning={**NODE["deeplearning"], "receipts": receipts}))


def about(sentences: list[str], word: str) -> list[str]:
    return [sentence for sentence in sentences if word in sentence]


def test_daemons_get_what_their_groups_say():
    answer = made(data(), master())
    assert answer.problems == []
    plain = {"conf_dir": CONF, "isolation": {}, "label": "", "labels": {}}
    assert answer.hosts["data1"]["yarn_gpu"] == {**plain, "services": ["nodemanager"], "gpu_count": 2}
    assert answer.hosts["master1"]["yarn_gpu"] == {**plain, "services": ["resourcemanager"], "gpu_count": 0}
    assert answer.hosts["master1"]["needs"] == ["yarn_gpu"]
    node = {"gpus": 2, "conf_dir": CONF, "names": ["data1"], "label": "", "plugin": True}
    assert answer.hosts["data1"]["yarn_node"] == node
    assert answer.hosts["master1"]["yarn_node"] == {}
    some = made(data(yarn_gpu_devices="1:1", node_maintenance_node="d1.example.com"), master())
    assert some.hosts["data1"]["yarn_node"] == {**node, "gpus": 1, "names": ["d1.example.com"], "plugin": False}
    assert made(data(yarn_gpu=False), master()).hosts["data1"]["yarn_node"] == {}


def test_the_settings_are_those_of_hadoops_documentation():
    request = yarn_work.Request(CONF, ("resourcemanager", "nodemanager"), "0:0")
    assert yarn_work.settings(request, gpus=True) == {
        f"{CONF}/resource-types.xml": {"yarn.resource-types": "yarn.io/gpu"},
        f"{CONF}/capacity-scheduler.xml": {CALCULATOR: f"{CALCULATORS}.DominantResourceCalculator"},
        f"{CONF}/yarn-site.xml": {
            PLUGINS: "yarn.io/gpu",
            DEVICES: "0:0",
            f"{PLUGINS}.gpu.path-to-discovery-executables": "/usr/bin",
        },
    }
    without = yarn_work.settings(yarn_work.Request(CONF, ("nodemanager",)), gpus=False)
    assert list(without) == [f"{CONF}/resource-types.xml"]


def test_the_plan_says_that_containers_are_not_isolated_and_that_a_daemon_restarts():
    warnings = about(made(data(), master()).warnings, "YARN")
    restart = "GPUs under YARN need another configuration and a restart of"
    for words in (
        "data1: under YARN containers are not isolated: YARN counts GPUs, but every container on a host sees all",
        f"data1: {restart} NodeManager: systemctl restart nm.",
        f"master1: {restart} ResourceManager",
    ):
        assert about(warnings, words)
    assert requested(made(data(), master()), "data1") == "yarn.io/gpu, not isolated"


def test_without_the_permission_nothing_is_planned_and_the_plan_says_so():
    answer = made(data(yarn_gpu_restart_allowed=False), master(yarn_gpu_restart_allowed=False))
    assert [part["needs"] for part in answer.hosts.values()] == [answer.hosts["data1"]["needs"], []]
    assert "yarn_gpu" not in answer.hosts["data1"]["needs"]
    assert about(answer.warnings, "but yarn_gpu_restart_allowed is false. Nothing is changed.")


def test_a_host_that_has_it_needs_nothing_and_is_not_warned_about_again():
    digest = made(data(), master()).hosts["data1"]["digests"]["yarn_gpu"]
    answer = made(data(with_receipt(digest)), master())
    assert "yarn_gpu" not in answer.hosts["data1"]["needs"]
    assert about(answer.warnings, "data1: GPUs under YARN") == []


@pytest.mark.parametrize("asked", [True, "true", "yes"])
def test_the_constraint_of_a_request_asks_for_it_too(asked):
    wish = {"deeplearning_request": {"tensorflow": "1.15", "yarn_gpu": asked}}
    variables = {name: value for name, value in WINDOW.items() if name != "yarn_gpu"}
    inputs = {**variables, **wish}
    answer = made(make_host(node=found(), **inputs), make_host("master1", ("masters",), found(), **inputs))
    assert answer.problems == []
    assert [("yarn_gpu" in part["needs"]) for part in answer.hosts.values()] == [True, True]


def test_a_host_may_be_left_out():
    host = make_host(deeplearning_request={"tensorflow": "1.15", "yarn_gpu": True}, yarn_gpu=False)
    assert not yarn.asked(host)


def test_a_differing_value_of_the_site_is_a_problem_of_the_plan():
    node = found(yarn_site=file({DEVICES: "0:0"}))
    (problem,) = made(data(node), master()).problems
    assert problem.startswith(
        f"data1: {CONF}/yarn-site.xml must have auto for {DEVICES}, but the site has 0:0 there. It was left as it is."
    )
    assert made(data(node, yarn_gpu_devices="0:0"), master()).problems == []


@pytest.mark.parametrize("site", [file({DEVICES: "0:0"}, ours={DEVICES: "0:0"}), file({PLUGINS: "yarn.io/fpga"})])
def test_an_own_value_and_other_words_of_a_list_are_no_problem(site):
    assert made(data(found(yarn_site=site)), master()).problems == []


def test_linux_container_executor_isolates_by_the_devices_cgroup_and_the_plan_says_so():
    answer = made(data(linux()), master())
    assert answer.problems == []
    assert answer.hosts["data1"]["yarn_gpu"]["isolation"] == ISOLATION
    assert answer.hosts["master1"]["yarn_gpu"]["isolation"] == {}
    sentence = "a container sees its own GPUs alone: LinuxContainerExecutor denies it the others in /sys/fs/cgroup/devices/hadoop-yarn."
    assert about(answer.warnings, f"data1: under YARN {sentence}")
    assert requested(answer, "data1") == "yarn.io/gpu, isolated by the devices cgroup"


@pytest.mark.parametrize("mounted", [None, "/run/deeplearning-cgroup/devices"])
def test_a_host_with_cgroup_v2_gets_the_controller_mounted_and_stays_as_it_is(mounted):
    answer = made(data(linux(devices=mounted, devices_unused=mounted is None)), master())
    assert answer.problems == []
    mounted = {**ISOLATION, "root": "/run/deeplearning-cgroup", "mount": True}
    assert answer.hosts["data1"]["yarn_gpu"]["isolation"] == mounted
    assert about(answer.warnings, "/run/deeplearning-cgroup/devices/hadoop-yarn, which it mounts beside cgroup v2.")


def test_on_a_manager_s_host_with_cgroup_v2_nothing_is_mounted():
    node = linux(devices=None, devices_unused=True, manager="ambari")
    (sentence,) = about(made(data(node), master()).warnings, "of cgroup v1")
    assert sentence.startswith("data1: LinuxContainerExecutor requires the controller devices")


@pytest.mark.parametrize(
    ("version", "executor", "manager", "refused", "told"),
    [
        ("3.3.0", True, None, True, False),
        ("3.3.0", True, "ambari", True, False),  # Kerberos requires LinuxContainerExecutor
        ("3.3.0", None, "ambari", False, True),
        ("3.3.0", False, None, False, False),
        ("3.3.0", False, "ambari", False, False),
        ("3.3.0.7", True, None, False, True),
        ("3.3.0.7", True, "cloudera_manager", False, True),
        ("3.3.1", True, None, False, False),
        ("3.3.10", None, "ambari", False, False),
    ],
)
def test_a_container_executor_that_starts_no_container_is_refused_or_told_of(version, executor, manager, refused, told):
    """A vendor's build may have the fix, and a manager keeps the executor from the files here."""
    node = linux(manager=manager)
    node["hadoop"] = {**node["hadoop"], "version": version}
    name = LINUX_EXECUTOR if executor else LINUX_EXECUTOR.replace("Linux", "Default")
    node["yarn"]["files"][f"{CONF}/yarn-site.xml"] = file({EXECUTOR: name} if executor is not None else {})
    answer = made(data(node), master())
    assert bool(about(answer.problems, "no container starts (YARN-10391)")) is bool(answer.problems) is refused
    assert bool(about(answer.warnings, f"fixed in 3.3.1). Whether {version} does here is not known")) is told


def test_the_settings_of_the_isolation_are_the_same_in_both_files():
    request = yarn_work.Request(CONF, ("nodemanager",), isolation=yarn_work.Isolation(**ISOLATION))
    files = yarn_work.settings(request, gpus=True)
    site = files[f"{CONF}/yarn-site.xml"]
    assert {name: value for name, value in site.items() if name.startswith(CGROUPS)} == {
        f"{CGROUPS}.hierarchy": "/hadoop-yarn",
        f"{CGROUPS}.mount": "false",
        f"{CGROUPS}.mount-path": "/sys/fs/cgroup",
    }
    assert files[CFG] == {
        "[gpu] module.enabled": "true",
        "[cgroups] root": "/sys/fs/cgroup",
        "[cgroups] yarn-hierarchy": "hadoop-yarn",
    }


@pytest.mark.parametrize(
    ("node", "hierarchy"),
    [
        (linux({f"{CGROUPS}.hierarchy": "/yarn"}), "yarn"),
        (linux(cfg={"[cgroups] yarn-hierarchy": "site/yarn"}), "site/yarn"),
    ],
)
def test_the_hierarchy_of_the_site_stays(node, hierarchy):
    answer = made(data(node), master())
    assert answer.problems == []
    assert answer.hosts["data1"]["yarn_gpu"]["isolation"] == {**ISOLATION, "hierarchy": hierarchy}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (
            linux(devices=None),
            "LinuxContainerExecutor requires the controller devices of cgroup v1, mounted and writable, but it is not (Hadoop's GPU plugin cannot",
        ),
        (
            found(yarn_site=file({}, problem="be XML, but is not: mismatched tag")),
            f"{CONF}/yarn-site.xml must be XML, but is not: mismatched tag. Correct it.",
        ),
        (linux(executor_config=None), "container-executor.cfg must be where the program container-executor reads it"),
        (linux(executor_config="/opt/x/container-executor.cfg"), "but /opt/x/container-executor.cfg was found"),
        (linux({f"{CGROUPS}.mount": "true"}), f"must have false for {CGROUPS}.mount, but the site has true"),
        (linux({f"{CGROUPS}.mount-path": "/cgroup"}), f"must have /sys/fs/cgroup for {CGROUPS}.mount-path"),
        (linux({f"{CGROUPS}.hierarchy": "/a b"}), f"{CGROUPS}.hierarchy must be a path of letters"),
        (linux({f"{CGROUPS}.hierarchy": "/../yarn"}), f"{CGROUPS}.hierarchy must be a path of letters"),
        (linux(cfg={"[gpu] module.enabled": "false"}), f"{CFG} must have true for [gpu] module.enabled, but the site"),
        (
            linux({f"{CGROUPS}.hierarchy": "/yarn"}, {"[cgroups] yarn-hierarchy": "other"}),
            f"{CFG} must have yarn for [cgroups] yarn-hierarchy, but the site has other there",
        ),
    ],
)
def test_a_host_that_cannot_isolate_or_has_other_files_is_a_problem_of_the_plan(node, words):
    (problem,) = made(data(node), master()).problems
    assert words in problem


def test_a_manager_gets_the_settings_of_the_isolation_too():
    secure = {"kerberos": {"secure": True, "web": True, "realm": "EXAMPLE", "missing": []}}
    node = found(manager="cloudera_manager")
    node["yarn"]["devices"] = "/sys/fs/cgroup/devices"
    (sentence,) = about(made(data(node | secure), master()).warnings, "data1: Cloudera Manager owns")
    assert f"{CGROUPS}.hierarchy=/hadoop-yarn" in sentence
    assert "container-executor.cfg: [gpu] module.enabled=true, [cgroups] root=/sys/fs/cgroup" in sentence
    node["yarn"]["devices"] = None
    assert about(
        made(data(node | secure), master()).warnings, "data1: LinuxContainerExecutor requires the controller devices"
    )


MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs ro,nosuid,nodev,noexec,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup {path} {kind} {access},nosuid,nodev,noexec,relatime,devices 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind", "access", "expected"),
    [
        ("/sys/fs/cgroup/devices", "cgroup", "rw", "/sys/fs/cgroup/devices"),
        ("/sys/fs/cgroup/devices", "cgroup", "ro", None),
        ("/sys/fs/cgroup/unified", "cgroup2", "rw", None),
        ("/sys/fs/cgroup/a\\040b/devices", "cgroup", "rw", None),
        ("/cgroup/all", "cgroup", "rw", None),
    ],
)
def test_the_reader_finds_the_devices_controller_as_hadoop_does(path, kind, access, expected):
    assert host_yarn.devices_mount(MOUNTS.format(path=path, kind=kind, access=access)) == expected
    assert host_yarn.devices_mount(None) is None


@pytest.mark.parametrize(("row", "unused"), [("0\t187\t1", True), ("5\t187\t1", False), ("0\t1\t0", False)])
def test_the_reader_finds_that_the_devices_controller_can_be_mounted(row, unused):
    text = f"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t187\t1\ndevices\t{row}\n"
    assert host_yarn.devices_unused(text) is unused
    assert host_yarn.devices_unused(None) is False


@pytest.mark.parametrize(
    ("program", "compiled", "expected"),
    [
        ("opt/hadoop/bin", "../etc/hadoop/container-executor.cfg", "/opt/hadoop/etc/hadoop/container-executor.cfg"),
        ("opt/hadoop-yarn/bin", "/etc/hadoop/conf/container-executor.cfg", "/etc/hadoop/conf/container-executor.cfg"),
        ("opt/site", "/etc/hadoop//container-executor.cfg", "/etc/hadoop/container-executor.cfg"),
        ("opt/elsewhere", "/etc/container-executor.cfg", None),
    ],
)
def test_the_reader_finds_container_executor_cfg_where_the_program_does(tmp_path, program, compiled, expected):
    """Each string of a C program ends with a zero; messages name the file without a directory (container-executor.c)."""
    place, conf = tmp_path / program, tmp_path / "etc/cluster"
    place.mkdir(parents=True)
    conf.mkdir(parents=True)
    strings = ["\x7fELF", "%s is not defined in container-executor.cfg\n", compiled, "GLIBC_2.2.5"]
    (place / "container-executor").write_bytes("\0".join(strings).encode())
    if program == "opt/site":
        write_settings(conf / "yarn-site.xml", {EXECUTOR_PATH: "/opt/site/container-executor"})
    if expected:
        (tmp_path / expected[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / expected[1:]).write_text("[gpu]\nmodule.enabled=false\nsecret=x\n", encoding="utf-8")
    answer = host_yarn.read(host_system.System(str(tmp_path)), ["/etc/cluster"], "/opt/hadoop")
    assert answer["executor_config"] == expected
    if expected:
        assert answer["files"][expected]["settings"] == {"[gpu] module.enabled": "false"}


def test_a_program_that_the_nodemanager_does_not_look_for_is_refused():
    (problem,) = made(data(found(), yarn_gpu_discovery="/opt/site/list-gpus"), master()).problems
    assert "must end with /nvidia-smi, which the NodeManager looks for, but is /opt/site/list-gpus" in problem


MANAGED = pytest.mark.parametrize("manager", [None, "cloudera_manager", "ambari"])
MANAGERS = {name: key for key, name in yarn.MANAGERS.items()}
FAIR = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"


@MANAGED
def test_a_resourcemanager_with_another_scheduler_is_refused(manager):
    fair = found(yarn_site=file({"yarn.resourcemanager.scheduler.class": FAIR}), manager=manager)
    answer = made(data(), master(fair))
    assert about(
        answer.problems,
        f"master1: yarn.resourcemanager.scheduler.class must be the CapacityScheduler, which alone this project configures, but is {FAIR}",
    )
    assert about(answer.warnings, "master1: ") == []


def test_a_resourcemanager_without_the_schedulers_file_is_refused():
    assert about(made(data(), master(found(capacity_scheduler=None))).problems, "capacity-scheduler.xml must be there")


def of_hadoop(version: str | None, manager: str | None = None, distribution: str = "apache") -> dict[str, Any]:
    hadoop = {**NODE["hadoop"], "version": version, "distribution": distribution}
    return found(node=changed_node(hadoop=hadoop), manager=manager)


NOT_ALLOWED = {"yarn_gpu_restart_allowed": False}


@pytest.mark.parametrize(
    ("version", "variables", "words"),
    [
        ("3.3.6", {}, "restarts one that gave up: systemctl restart nm."),
        ("3.3.6", NOT_ALLOWED, "stops if it gave up, because yarn_gpu_restart_allowed is not true"),
        ("3.3.6", {"upgrade_drain": True}, ""),
        ("3.3.6", {"yarn_gpu_devices": "0:0,1:1"}, ""),
        ("3.3.6", {"yarn_gpu": False}, ""),
        ("3.1.1", {}, ""),
        ("2.10.2", {}, ""),
    ],
)
def test_an_upgrade_without_a_drain_says_what_the_nodemanager_does(version, variables, words):
    node, upgrade = of_hadoop(version), {"nvidia_driver_version": "470.82.01", "nvidia_driver_license_accepted": True}
    hosts = [data(node, **upgrade, **variables), master()]
    answer = plan.make_plan(hosts, REPOSITORY, driver_upgrade=True)
    sentences = about(answer.warnings, "data1: its NodeManager runs nvidia-smi every 3 s")
    assert [words in sentence for sentence in sentences] == [True] * bool(words)
    assert about(made(*hosts).warnings, "its NodeManager runs nvidia-smi") == []


@MANAGED
@pytest.mark.parametrize(
    ("version", "ok"),
    [
        ("2.6.0-cdh5.16.2", False),
        ("2.7.3.2.6.5.0-292", False),
        ("2.7.7", False),
        ("2.10.2", True),
        ("3.0.0-cdh6.3.2", False),
        ("3.1.1.7.1.7.0-551", True),
        ("3.3.6", True),
        (None, False),
        ("", False),  # no Hadoop at all
    ],
)
def test_hadoop_that_schedules_no_gpus_or_of_no_known_version_is_refused_whoever_owns_its_files(version, ok, manager):
    node = of_hadoop(version, manager)
    answer = made(data({**node, "hadoop": None} if version == "" else node), master())
    place = (
        "in the CDH, HDP, MapR and Apache locations). Link /opt/hadoop"
        if version == ""
        else "below /opt/hadoop). Complete it"
    )
    has = f"the host has {version}" if version else f"no hadoop-common-VERSION.jar says which one the host has ({place}"
    words = f"data1: yarn_gpu requires Hadoop 3.1 or later, or 2.10, but {has}"
    assert bool(about(answer.problems, words)) is not ok
    assert ok or about(answer.warnings, "owns Hadoop's files") == [], "no instruction to the contrary"
    assert ok or about(answer.warnings, "data1: GPUs under YARN need another configuration") == []
    assert bool(answer.hosts["data1"]["yarn_node"]) is ok, "verify demands no GPU of it"


@MANAGED
def test_cards_that_mig_divides_are_named_before_the_change_whoever_owns_the_files(manager):
    node = found(node=changed_node(nvidia={**NODE["nvidia"], "divided": 1}), manager=manager)
    assert about(made(data(node), master()).warnings, "data1: MIG divides 1 of its 2 GPUs, and YARN knows no parts")
    assert about(made(data(found(manager=manager)), master()).warnings, "MIG") == []


def test_the_table_of_distributions_is_what_the_plan_does():
    """docs/operate/yarn.md: each of its versions of Hadoop, and each distribution of compat/hadoop.yml is in it."""
    page = (REPOSITORY / "docs/operate/yarn.md").read_text(encoding="utf-8").partition("## Your distribution")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")
    ][2:]
    versions = set()
    for names, hadoops, does, _ in rows:
        product = does.partition("printed: ")[2]
        for version in hadoops.split(", "):
            versions |= {(name.split()[0].lower(), version) for name in names.split(", ")}
            for manager in yarn.MANAGERS if does == "refused" else [MANAGERS.get(product)]:
                node = of_hadoop(version, manager, "mapr" if names == "MapR" else "apache")
                answer = made(data(node), master())
                assert bool(about(answer.problems, "data1: yarn_gpu requires Hadoop")) is (does == "refused"), version
                assert bool(about(answer.warnings, "owns Hadoop's files")) is bool(product), version
                assert ("yarn_gpu" in answer.hosts["data1"]["needs"]) is (does == "configured"), version
    rows_of_data = yaml.safe_load((REPOSITORY / "compat/hadoop.yml").read_text(encoding="utf-8"))["distributions"]
    assert {(row["distribution"], row["hadoop"]) for row in rows_of_data if row["hadoop"]} <= versions


def test_a_command_that_the_site_does_not_name_is_a_problem():
    problems = made(data(yarn_gpu_nodemanager_command=""), master()).problems
    assert problems == [
        "data1: yarn_gpu_nodemanager_command must be the command that restarts the NodeManager, but is not set. Set it."
    ]


def test_a_nodemanager_without_gpus_offers_none_needs_no_cgroup_or_label_and_is_named():
    node = linux(devices=None) | {"nvidia": {"gpus": [], "listed": []}}
    answer = made(data(node, **LABEL), master(scheduler(), **LABEL))
    assert answer.problems == []
    request = answer.hosts["data1"]["yarn_gpu"]
    assert (request["gpu_count"], request["isolation"], request["label"]) == (0, {}, "")
    assert answer.hosts["data1"]["yarn_node"]["label"] == ""
    assert about(answer.warnings, "data1: it has no GPU, so its NodeManager offers none.")


@pytest.mark.parametrize(("manager", "name"), [("cloudera_manager", "Cloudera Manager"), ("ambari", "Ambari")])
def test_files_of_a_manager_are_left_alone_and_the_exact_properties_are_printed(manager, name):
    answer = made(data(found(manager=manager)), master(found(manager=manager)))
    assert "yarn_gpu" not in answer.hosts["data1"]["needs"]
    (sentence,) = about(answer.warnings, f"data1: {name} owns Hadoop's files")
    switch = f"For GPUs under YARN use its own switch: {yarn.SWITCHES[manager]}. Then check that these files have: "
    assert f"{switch}resource-types.xml: yarn.resource-types=yarn.io/gpu; yarn-site.xml: " in sentence
    settings = f"{PLUGINS}=yarn.io/gpu, {DEVICES}=auto, {PLUGINS}.gpu.path-to-discovery-executables=/usr/bin"
    assert f"yarn-site.xml: {settings}" in sentence
    (sentence,) = about(answer.warnings, f"master1: {name} owns Hadoop's files")
    assert f"{CALCULATOR}={CALCULATORS}.DominantResourceCalculator" in sentence


def test_a_site_without_masters_is_refused():
    (problem,) = yarn.site_problems([data()], [], ["data1"])
    assert problem.startswith("data1: yarn_gpu requires the ResourceManager in the group masters")
    assert yarn.site_problems([data()], ["master1"], ["data1"]) == []
    assert yarn.site_problems([data(yarn_gpu=False)], [], ["data1"]) == []


@pytest.mark.parametrize("wanted", [True, False])
def test_a_resourcemanager_that_does_not_learn_of_gpus_is_refused(wanted):
    problems = yarn.site_problems([data(), master(yarn_gpu=wanted)], ["master1"], ["data1"])
    assert [problem.startswith("yarn_gpu must be set for the group masters as well") for problem in problems] == (
        [] if wanted else [True]
    )
    assert yarn.site_problems([data(yarn_gpu=False), master(yarn_gpu=False)], ["master1"], ["data1"]) == []


QUEUE = "yarn.scheduler.capacity.root"
QUEUES = {f"{QUEUE}.queues": "default, vision", f"{QUEUE}.default.capacity": "100", f"{QUEUE}.vision.capacity": "0"}
LABEL = {"yarn_gpu_node_label": "gpu", "yarn_gpu_node_label_queues": {"root.vision": 100}}


def scheduler(**settings: str) -> dict[str, Any]:
    """A ResourceManager's host; settings: of capacity-scheduler.xml beside QUEUES, below the root queue."""
    queue_settings = {f"{QUEUE}.{name}": value for name, value in settings.items()}
    return found(capacity_scheduler=file({**QUEUES, **queue_settings}))


def test_hosts_with_gpus_get_a_label_and_queues_their_share_of_them():
    answer = made(data(**LABEL), master(scheduler(), **LABEL))
    assert answer.problems == []
    assert answer.hosts["data1"]["yarn_gpu"]["label"] == answer.hosts["data1"]["yarn_node"]["label"] == "gpu"
    labels = answer.hosts["master1"]["yarn_gpu"]["labels"]
    assert labels == {
        "label": "gpu",
        "store": "hdfs:///yarn/node-labels",
        "shares": {"root.vision": 100},
        "unlimited": ("root.vision",),
    }
    request = yarn_work.Request(CONF, ("resourcemanager",), labels=yarn_work.Labels(**labels))
    files = yarn_work.settings(request, gpus=False)
    assert files[f"{CONF}/yarn-site.xml"] == {
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": "hdfs:///yarn/node-labels",
    }
    assert files[f"{CONF}/capacity-scheduler.xml"] == {
        CALCULATOR: f"{CALCULATORS}.DominantResourceCalculator",
        f"{QUEUE}.accessible-node-labels.gpu.capacity": "100",
        f"{QUEUE}.vision.accessible-node-labels.gpu.capacity": "100",
        f"{QUEUE}.vision.maximum-applications": "1000",
    }
    assert about(answer.warnings, "data1: YARN gives it the exclusive node label gpu: jobs that do not name the label")
    assert requested(answer, "data1") == "yarn.io/gpu, not isolated, node label gpu"
    assert requested(answer, "master1") == "yarn.io/gpu, node label gpu for root.vision"
    digest = made(data(), master(scheduler())).hosts["data1"]["digests"]["yarn_gpu"]
    assert answer.hosts["data1"]["digests"]["yarn_gpu"] != digest  # a host that gets a label, or loses it, has work


def test_a_limit_of_the_site_and_a_share_of_other_hosts_stay():
    for settings in ({"vision.maximum-applications": "50"}, {"vision.capacity": "20", "default.capacity": "80"}):
        labels = made(master(scheduler(**settings), **LABEL)).hosts["master1"]["yarn_gpu"]["labels"]
        assert labels["unlimited"] == ()


@pytest.mark.parametrize(
    ("shares", "settings", "problem"),
    [
        ({"root.visoin": 100}, {}, "root.visoin must be a queue of capacity-scheduler.xml, but root has default, vision there"),
        ({"root.vision": 60}, {}, "the queues of root must have 100 percent together, but have 60. Correct it."),
        ({"root.a.b": 100}, {"queues": "a", "a.queues": "b"}, "root.a must have a share, because its queues have one."),
        ({"root.vision": 100}, {"vision.capacity": "[memory=10240]"}, "root.vision must have its capacity in percent"),
        ({"root.vision": 100}, {"vision.accessible-node-labels": "fast"}, "root.vision must have access to the label gpu, but accessible-node-labels has fast."),
        ({"root.vision": 100}, {"vision.accessible-node-labels.gpu.capacity": "30"}, "but the site has 30 there. It was left as it is."),
    ],
)  # fmt: skip
def test_shares_with_which_the_resourcemanager_would_not_start_are_refused(shares, settings, problem):
    answer = made(master(scheduler(**settings), **{**LABEL, "yarn_gpu_node_label_queues": shares}))
    assert about(answer.problems, problem), answer.problems


def test_a_label_that_the_masters_do_not_know_or_that_every_host_gets_is_refused():
    hosts = [master(scheduler(), **LABEL), data(yarn_gpu_node_label="v100"), data(yarn_gpu_node_label="")]
    (problem,) = yarn.site_problems(hosts, ["master1"], ["data1", "data2"])
    assert "yarn_gpu_node_label must be that of the group masters or empty" in problem
    (problem,) = yarn.site_problems([master(scheduler(), **LABEL), data(**LABEL)], ["master1"], ["data1"])
    assert problem.startswith("yarn_gpu_node_label would leave no data node to jobs that do not name the label")
    assert yarn.site_problems([master(scheduler(), **LABEL), data(**LABEL)], ["master1"], ["data1", "data2"]) == []


def test_a_wish_that_ends_leads_to_the_removal():
    host = data(with_receipt("0" * 12), yarn_gpu=False)
    assert about(made(host).warnings, "playbooks/remove.yml --tags yarn_gpu")


def test_the_reader_answers_with_settings_that_matter_alone(tmp_path):
    conf, ledger = tmp_path / "etc/cluster", tmp_path / "opt/deeplearning/state/yarn_gpu.json"
    conf.mkdir(parents=True)
    ledger.parent.mkdir(parents=True)
    write_settings(conf / "yarn-site.xml", {DEVICES: "auto", "secret": "a-secret"})
    (conf / "resource-types.xml").write_text("<configuration>", encoding="utf-8")
    row = {"kind": "key", "path": "/etc/cluster/yarn-site.xml", "key": DEVICES, "now": "auto"}
    ledger.write_text(json.dumps({"rows": [row]}), encoding="utf-8")
    (tmp_path / "etc/ambari-agent/conf").mkdir(parents=True)
    (tmp_path / "etc/ambari-agent/conf/ambari-agent.ini").touch()
    answer = host_yarn.read(host_system.System(str(tmp_path)), ["/etc/cluster"], None)
    assert answer["manager"] == "ambari"
    assert answer["files"]["/etc/cluster/yarn-site.xml"] == {
        "settings": {DEVICES: "auto"},
        "ours": {DEVICES: "auto"},
        "problem": None,
    }
    assert answer["files"]["/etc/cluster/resource-types.xml"]["problem"].startswith("be XML, but is not")
    assert sorted(answer["files"]) == ["/etc/cluster/resource-types.xml", "/etc/cluster/yarn-site.xml"]


def test_a_removal_needs_the_permission_and_shows_what_comes_back():
    answer = has(yarn_gpu={"files": [f"{CONF}/yarn-site.xml"], "services": ["nodemanager"]})
    request = removal.Request(confirmed=True)
    removal_plan = removal.make({"data1": answer}, [], [], request)
    assert (
        f"yarn_gpu      settings for GPUs of {CONF}/yarn-site.xml, as before; NodeManager restart" in removal_plan.text
    )
    assert [problem for problem in removal_plan.problems if "yarn_gpu_restart_allowed is not true" in problem]
    allowed_plan = removal.make({"data1": answer}, [], [], removal.Request(confirmed=True, yarn_restart_allowed=True))
    assert allowed_plan.problems == []
    assert allowed_plan.hosts == {"data1": ["yarn_gpu"]}
