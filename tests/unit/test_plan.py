"""The plan: what needs work, and all problems in one list."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plan_hosts import NODE, STACK, changed_node, el9_node, made, make_host, needs

from hadoop_dl.data import host_code, stacks
from hadoop_dl.plan import digests as plan_digests
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl_dev import invented_hosts
from hadoop_dl_dev.invented_hosts import after, altered

# Of a data node with GPUs.
EVERYTHING = ["gpu", "gpu_check", "environment", "deeplearning_command", "hadoop_client", "verify"]


def done(host: plan_model.Host | None = None) -> plan_model.Host:
    """The host after its plan was carried out."""
    host = host or make_host()
    return after(host, made(host))


def test_a_bare_data_node_needs_everything_a_data_node_has():
    assert needs(made(make_host())) == EVERYTHING


def mapr_host(group: str = "data_nodes", mount: str | None = "/mapr/one", **inputs: Any) -> plan_model.Host:
    hadoop = {**NODE["hadoop"], "distribution": "mapr", "version": "3.3.4.0-eep-912"}
    return make_host(groups=(group,), node=changed_node(hadoop=hadoop, mapr_mount=mount), **inputs)


def test_a_host_of_mapr_is_installed_if_its_file_system_is_mounted():
    plan_ = made(mapr_host())
    assert plan_.problems == []
    assert any("maprfs://" in warning for warning in plan_.warnings)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ({"mount": None}, "MapR's file system must be mounted at /mapr/CLUSTER"),
        ({"group": "edge_nodes"}, "jobs require the site's Spark"),
        ({"deeplearning_request": {"tensorflow": "1.15", "hdfs": True}}, "is maprfs://"),
        ({"deeplearning_request": {"tensorflow": "1.15", "yarn_gpu": True}}, "MapR's Warden"),
        ({"yarn_gpu": True}, "yarn_gpu requires Hadoop's own services, but MapR's Warden"),
        ({"upgrade_drain": True}, "upgrade_drain requires Hadoop's own services, but MapR's Warden"),
    ],
)
def test_what_is_not_for_mapr_is_refused_with_the_reason(host, problem):
    assert any(problem in sentence for sentence in made(mapr_host(**host)).problems)


def test_an_edge_node_also_gets_the_spark_client():
    plan_ = made(make_host("edge1", ("edge_nodes",)))
    assert "tensorflowonspark" in needs(plan_, "edge1")


def test_the_sites_own_spark_decides_for_hosts_that_lack_it_too():
    """Its edge node has it (spark_home). Constraints choose a stack for that Spark; a named one for another is refused."""
    home = {"paths": {"/opt/spark2": True}, "accounts": {}, "sparks": {"/opt/spark2": "2.4.0"}}
    java = [{"home": "/usr/lib/jvm/java-8", "version": "1.8.0_412", "major": "8"}]
    node = changed_node(java=java)

    def of_site(request: Any) -> plan_model.Plan:
        site = {"deeplearning_request": request, "spark_home": "/opt/spark2"}
        edge = make_host("edge1", ("edge_nodes",), {**node, "named": home}, **site)
        return made(make_host(node=node, **site), edge)

    for tensorflow in ("1.15", "1.4"):
        for gpu, forms in (({}, {"", "-cpu"}), ({"gpu": "none"}, {"-cpu"})):
            plan_ = of_site({"tensorflow": tensorflow, **gpu})
            assert plan_.problems == []
            names = {f"tf{tensorflow}-spark2{form}-py27-el7" for form in forms}
            assert {host["stack"]["name"] for host in plan_.hosts.values()} <= names
    (problem,) = of_site(STACK).problems
    assert problem.startswith(
        f"edge1: {STACK}: A stack for Spark 3 does not serve Spark 2; the site's Spark 2.4.0 (spark_home) is installed"
    )


def test_a_host_of_no_group_needs_nothing_and_is_named():
    hosts = [make_host("other1", ("others",)), make_host("master1", ("masters",)), make_host()]
    plan_ = made(*hosts)
    assert needs(plan_, "other1") == needs(plan_, "master1") == []
    (warning,) = [sentence for sentence in plan_.warnings if "none of the groups" in sentence]
    assert warning.startswith("other1: in none of the groups mirror_host, data_nodes")


def test_what_is_known_of_a_stack_is_a_warning_until_it_is_installed():
    """The report has it afterwards: nothing is left to decide, and each run would warn of it."""
    host = make_host(node=changed_node(glibc="2.31"), deeplearning_request="tf1.15-cpu-py27-el7")
    plan_ = made(host)
    assert any("tf.contrib.kafka" in sentence for sentence in plan_.warnings)
    next_plan = made(after(host, plan_))
    assert (next_plan.rows, next_plan.warnings, next_plan.notes) == ([], [], plan_.warnings)


def test_misspelt_groups_of_all_hosts_are_a_refusal_that_names_the_groups():
    plan_ = made(make_host(groups=("datanodes",)), make_host("edge1", ("edgenodes",)))
    (problem,) = plan_.problems
    assert "must be in one of the groups mirror_host, data_nodes" in problem
    assert "data1, edge1 are in none" in problem


def test_a_host_of_the_manager_that_has_the_name_of_one_of_the_sites_own_is_named():
    hosts = [make_host(), make_host("mirror1", ("mirror_host",), cloudera_manager_roles=["YARN:NODEMANAGER"])]
    (warning,) = [sentence for sentence in made(*hosts).warnings if "mirror1: " in sentence]
    assert "it is in mirror_host, and the cluster's manager lists a host of this name" in warning


def test_all_wrong_inputs_of_all_hosts_are_one_list():
    variables = {"gpu_count": "two", "deeplearning_unreachable": "Stop", "nvidia_driver_reboot_allowed": "maybe"}
    hosts = [make_host(**variables), make_host("data2", node=None, **variables), make_host("data3", mirror_port=0)]
    problems = made(*hosts).problems
    assert [problem.split(" must be")[0] for problem in problems] == [
        "data1, data2: deeplearning_unreachable",
        "data1, data2: gpu_count",
        "data1, data2: nvidia_driver_reboot_allowed",
        "data3: mirror_port",
    ]


def test_text_for_a_boolean_is_the_same_wish_as_the_boolean():
    boolean_plan, text = (
        made(make_host(cuda_purge_enabled=value, verify_become=value)).hosts for value in (False, "no")
    )
    assert boolean_plan == text


def test_after_the_work_nothing_is_needed():
    hosts = [make_host(), make_host("edge1", ("edge_nodes",)), make_host("mirror1", ("mirror_host",))]
    plan_ = made(*hosts)
    next_plan = made(*(after(host, plan_) for host in hosts))
    assert next_plan.rows == []
    assert "nothing to do" in next_plan.table()


def test_a_bundle_is_compared_by_each_run_that_names_it_and_leaves_no_difference():
    def hosts(**variables: Any) -> list[plan_model.Host]:
        return [make_host(), make_host("mirror1", ("mirror_host",), **variables)]

    bundle = {"mirror_bundle": "/srv/mysite.bundle", "mirror_bundle_key": str(Path(__file__))}
    first = made(*hosts(**bundle))
    assert needs(first, "mirror1") == ["mirror"]
    for variables, work in ((bundle, ["mirror"]), ({}, [])):
        later = [after(host, first) for host in hosts(**variables)]
        assert needs(made(*later), "mirror1") == work


def test_apply_all_names_every_component_again():
    plan_ = made(make_host())
    next_plan = made(after(make_host(apply="all"), plan_))
    assert needs(next_plan) == EVERYTHING


@pytest.mark.parametrize(
    ("part", "value", "component"),
    [
        ("current", None, "environment"),
        ("current", "tf1.15-py27-el7-000000000000", "environment"),
        ("environments", {}, "environment"),
        ("receipts", {}, "hadoop_client"),
    ],
)
def test_what_is_missing_on_the_host_is_needed_again(part, value, component):
    host = altered(done(), lambda found: found["deeplearning"].update({part: value}))
    assert component in needs(made(host))


def test_a_host_that_nobody_asked_after_its_last_change_is_asked():
    host = altered(done(), lambda found: found["deeplearning"]["receipts"].pop("verify"))
    plan_ = made(host)
    assert needs(plan_) == ["verify"]
    assert [(row.component, row.reason) for row in plan_.rows] == [("verify", "not verified yet")]


def test_a_host_is_asked_again_when_something_else_should_be_true():
    host = done(make_host(gpu_count=2, verify_gpu_count="{{ gpu_count | default(0) }}"))
    other_host = altered(host, lambda found: found["nvidia"].update(listed=["Tesla P100-PCIE-16GB"]))
    other_host = replace(other_host, variables={**host.variables, "gpu_count": 1})
    assert needs(made(other_host)) == ["verify"]


def test_a_damaged_file_is_the_reason_in_the_table():
    receipt = {"digest": "0" * 12, "problem": "/opt/deeplearning/etc/hadoop-env.sh was changed"}
    host = altered(done(), lambda found: found["deeplearning"]["receipts"].update(hadoop_client=receipt))
    assert "hadoop-env.sh was changed" in made(host).table()


def test_a_changed_input_of_a_role_is_needed_again_and_others_are_not():
    host = done(make_host(hadoop_client_java_home="{{ java_place }}", java_place="/a", colour="red"))
    blue_host = replace(host, variables={**host.variables, "colour": "blue"})
    assert needs(made(blue_host)) == []
    moved_host = replace(host, variables={**host.variables, "java_place": "/b"})
    assert needs(made(moved_host)) == ["hadoop_client", "verify"]


@pytest.mark.parametrize(
    ("change", "variables", "words"),
    [
        ({"os": {"short": "el9", "name": "RHEL 9.4"}}, {}, "made for el7, but the host runs RHEL 9.4"),
        ({"pythons": {"3.9": "/usr/bin/python3.9"}}, {}, "requires Python 2.7 on the host, but there is 3.9"),
        ({"java": [{"home": "/j", "version": "1.7.0_80", "major": "7"}]}, {}, "Java 8 or 11"),
        ({"hadoop": None}, {}, "set hadoop_client_hadoop_home"),
        ({"glibc": "2.5"}, {}, "glibc"),
        ({"cpu": {"features": ["sse4_1"]}}, {}, "avx"),
        ({"nvidia": {"gpus": [{"vendor": "10de", "device": "20b0"}]}}, {}, "CUDA 10.0 has no code for A100"),
        ({}, {"deeplearning_request": {"tensorflow": "1.15", "python": "3.12"}}, "Python 3.12"),
        ({}, {"deeplearning_request": {"tensorflwo": "1.15"}}, "Did you mean tensorflow?"),
        ({"disk_free_mb": {"/opt": 700}}, {}, "has 700 MB free"),
        ({"cell_problem": "It refuses mounts."}, {}, "imported in a cell, but this host has none. It refuses mounts"),
        ({}, {"gpu_count": 4}, "gpu_count is 4, but the host shows 2 GPUs"),
        ({}, {"mirror_url": ""}, "mirror_url must be the address"),
    ],
)
def test_what_does_not_fit_is_said_with_what_was_found(change, variables, words):
    plan_ = made(make_host(node=changed_node(**change), **variables))
    assert any(words in problem and "data1" in problem for problem in plan_.problems), plan_.problems


def test_an_unknown_stack_lists_the_known_ones():
    plan_ = made(make_host(deeplearning_request="tf1.15-py27-el8"))
    assert all(name in plan_.failure() for name in (STACK, "tf2.15-py3-el9"))


def test_all_problems_of_all_hosts_come_in_one_list_and_equal_ones_once():
    hosts = [make_host(f"data{n}", gpu_count=4) for n in range(1, 8)]
    edge = make_host("edge1", ("edge_nodes",), changed_node(hadoop=None))
    failure = made(*hosts, edge).failure()
    assert "no host was changed" in failure
    assert "data1, data2, data3, data4 and 3 more: gpu_count is 4" in failure
    assert "edge1: no Hadoop client found" in failure


def test_two_environments_in_one_tfos_group_are_said_before_they_are_installed():
    nine = el9_node("3.11", java=[{"home": "/j", "version": "17.0.9", "major": "17"}])
    hosts = [make_host(), make_host("data2", node=nine, deeplearning_request="tf2.15-py3-el9")]
    assert "one environment on its driver and all executors" in made(*hosts).failure()


@pytest.mark.parametrize(("choice", "stops"), [("continue", False), ("stop", True)])
def test_an_unreachable_host_is_named_and_the_operator_chooses(choice, stops):
    plan_ = made(make_host(), make_host("data2", node=None, deeplearning_unreachable=choice))
    assert plan_.unreachable == ["data2"]
    assert bool(plan_.problems) is stops
    assert "data2" in " ".join(plan_.problems + plan_.warnings)


def test_constraints_become_one_named_stack_for_all_hosts_that_ask_the_same():
    request = {"tensorflow": "1.15", "python": "2.7"}
    without_gpus = changed_node(nvidia={"gpus": [], "listed": None})
    edge = make_host("edge1", ("edge_nodes",), without_gpus, deeplearning_request=request)
    plan_ = made(make_host(deeplearning_request=request), edge)
    assert plan_.problems == []
    assert {host["stack"]["name"] for host in plan_.hosts.values()} == {STACK}


def gpu_check_digest() -> str:
    plan_digests.role_digests.cache_clear()
    node = changed_node(nvidia={**NODE["nvidia"], "driver": "580.95.05"})
    plan_ = made(make_host("gpu1", node=node))
    return str(plan_.hosts["gpu1"]["digests"]["gpu_check"])


def test_a_changed_utility_of_a_program_is_installed_on_hosts(monkeypatch, tmp_path):
    before = gpu_check_digest()
    shutil.copytree(host_code.DIRECTORY, tmp_path / "module_utils")
    monkeypatch.setattr(host_code, "DIRECTORY", tmp_path / "module_utils")
    assert gpu_check_digest() == before
    with (tmp_path / "module_utils" / "processes.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert gpu_check_digest() != before
    plan_digests.role_digests.cache_clear()


@pytest.mark.parametrize("count", [10, 40])
def test_hosts_of_one_kind_are_judged_once(count, monkeypatch):
    judged: list[object] = []
    real = target.judge
    monkeypatch.setattr(target, "judge", lambda *given: judged.append(given) or real(*given))
    hosts = [make_host(f"data{number}", deeplearning_request={"tensorflow": "1.15"}) for number in range(count)]
    for plans in (1, 2):
        assert made(*hosts).problems == []
        assert len(judged) == 2 * plans  # the constraints, and the stack that they mean; a new plan asks again


def test_a_lock_is_read_once_for_all_hosts(monkeypatch):
    target.locked.cache_clear()
    reads: list[object] = []
    real = stacks.read_lock
    monkeypatch.setattr(stacks, "read_lock", lambda *given: reads.append(given) or real(*given))
    made(*(make_host(f"data{number}") for number in range(10)))
    assert len(reads) == 1


def test_what_is_said_of_a_host_does_not_depend_on_an_alike_host_with_more_gpus():
    gpu = {"vendor": "10de", "device": "1db4", "address": "0000:3b:00.0"}
    warnings = []
    for count in (1, 3):
        profile = invented_hosts.facts(changed_node(nvidia={**NODE["nvidia"], "gpus": [gpu] * count})).profile
        warnings.append(target.judge(stacks.load_stack("tf1.4-cpu-py27-el7"), profile)["warnings"])
    assert warnings[0] == warnings[1]
    assert any("is for the CPU" in warning for warning in warnings[0])


def test_closure_follows_templates_and_stops_at_facts():
    variables = {"a": "{{ b }}/{{ node.x }}", "b": "{{ c | default('d') }}", "c": 1, "d": 2, "node": 3, "z": "{{ a }}"}
    assert set(plan_digests.closure(["a"], variables)) == {"a", "b", "c", "d"}


def test_the_first_python_that_the_host_has_is_taken():
    request = {"deeplearning_request": "tf2.15-py3-el9"}
    host_target = target.target_for(request, invented_hosts.facts(el9_node("3.9")), ("data_nodes",))
    assert host_target.interpreter == "/usr/bin/python3.9"


def of_environments(state: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """A change of every environment that a host has."""
    return lambda found: found["deeplearning"].update(
        environments=dict.fromkeys(found["deeplearning"]["environments"], state)
    )


def test_files_that_were_added_to_an_environment_are_reported_and_nothing_is_built():
    contents = {"problem": None, "added": ["lib/python2.7/site-packages/extra.py"]}
    plan_ = made(altered(done(), of_environments(contents)))
    assert needs(plan_) == []
    assert any("files were added to the environment" in text and "extra.py" in text for text in plan_.warnings)


def test_a_repair_needs_as_much_room_as_an_installation():
    host = altered(done(), lambda found: found.update(disk_free_mb={"/opt": 100}))
    assert made(host).problems == []
    damaged_host = altered(host, of_environments({"problem": "files changed since it was sealed: 1 gone (x)"}))
    assert "/opt requires" in made(damaged_host).problems[0]


def test_hosts_for_which_all_is_the_same_are_one_part_of_the_table():
    plan_ = plan_model.Plan(hosts={f"data{number}": {} for number in range(301)})
    for number in range(301):
        driver = "535.104.05" if number == 7 else "none"
        plan_.rows.append(plan_model.Row(f"data{number}", "nvidia_driver", driver, "550.90.07", "older"))
        plan_.rows.append(plan_model.Row(f"data{number}", "environment", "none", "tf1.15-py27-el7", "missing"))
        plan_.reboots.setdefault("nouveau holds the GPU; allowed", []).append(f"data{number}")
    assert plan_.table().splitlines() == [
        "PLAN: 301 of 301 hosts change. A reboot may be needed: data0, data1, data2, data3 and 297 more (nouveau holds the GPU; allowed). "
        "Running jobs keep the environment they started with.",
        "    component      now         requested        why",
        "  data0, data1, data2, data3 and 296 more",
        "    nvidia_driver  none        550.90.07        older",
        "    environment    none        tf1.15-py27-el7  missing",
        "  data7",
        "    nvidia_driver  535.104.05  550.90.07        older",
        "    environment    none        tf1.15-py27-el7  missing",
    ]
