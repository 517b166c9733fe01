"""deeplearning_additional_stacks: environments beside the active one."""

from dataclasses import replace
from typing import Any

import pytest
from gpu_layer_hosts import ACCEPTED, el8, layer
from gpu_layer_hosts import part as gpu_part
from plan_hosts import REPOSITORY, SITE, changed_node, made, make_host

from hadoop_dl.hosts import mirror_contents
from hadoop_dl.plan import model as plan_model
from hadoop_dl_dev import invented_hosts
from hadoop_dl_dev.invented_hosts import after, altered

ACTIVE, BESIDE = "tf2.11-cpu-py39", "tf2.4-cpu-py38-el8"
NONE: list[str] = []


def host(name: str = "edge1", groups: tuple[str, ...] = ("edge_nodes",), **variables: Any) -> plan_model.Host:
    node = el8() | {"nvidia": {"gpus": [], "listed": None}}
    defaults = {"deeplearning_request": ACTIVE, "deeplearning_additional_stacks": [BESIDE]}
    return make_host(name, groups, node, **{**defaults, **variables})


def own_rows(answer: plan_model.Plan) -> list[tuple[str, str]]:
    assert answer.problems == []
    return [(row.wanted, row.reason) for row in answer.rows if row.component == "additional_environments"]


def test_it_is_planned_beside_the_active_one_and_then_is_there():
    hosts = [host(), host("data1", ("data_nodes",)), host("mirror1", ("mirror_host",))]
    first = made(*hosts)
    (additional,) = first.hosts["edge1"]["additional"]
    assert (first.hosts["edge1"]["stack"]["name"], additional["stack"]["name"]) == (ACTIVE, BESIDE)
    assert (additional["python"], additional["hadoop"]) == ("3.8", True)
    # Ansible runs an included file at once on hosts whose variables are equal.
    assert first.hosts["data1"]["additional"] == [additional]
    assert own_rows(first) == [(additional["environment"], "missing")] * 2
    assert first.hosts["mirror1"]["mirror_environments"] == [[ACTIVE, "3.9"], [BESIDE, "3.8"]]
    assert made(*(after(entry, first) for entry in hosts)).rows == []


def test_one_that_a_host_of_the_cluster_lacks_is_a_warning_because_no_job_runs_there():
    def warned(*hosts: plan_model.Host) -> list[str]:
        return [text for text in made(*hosts).warnings if "--stack" in text]

    edge, session = host(), host("cdsw1", ("cdsw_hosts",), deeplearning_additional_stacks=NONE)
    data_hosts = [host(f"data{number}", ("data_nodes",), deeplearning_additional_stacks=NONE) for number in (1, 2)]
    (text,) = warned(edge, *data_hosts, session)
    assert f"A job with --stack {BESIDE} requires" in text
    assert "but data1, data2 would not have it" in text
    assert "but edge2 would not" in warned(host("edge2", deeplearning_additional_stacks=NONE), edge)[0]
    assert warned(edge, host("data1", ("data_nodes",)), session) == []
    assert warned(edge, host("data1", ("data_nodes",), deeplearning_request=BESIDE)) == []


def test_one_that_is_damaged_is_named_with_the_reason():
    first = made(host())
    name = first.hosts["edge1"]["additional"][0]["environment"]

    def damage(facts: dict[str, Any]) -> None:
        facts["deeplearning"]["environments"][name]["problem"] = "a file is missing"

    new_plan = made(altered(after(host(), first), damage))
    assert own_rows(new_plan) == [(name, f"{name}: a file is missing")]
    assert new_plan.hosts["edge1"]["needs"] == ["additional_environments"], "and the active one stays as it is"


def test_one_that_is_not_requested_any_more_is_forgotten():
    entry = after(host(), made(host()))
    variables = {**entry.variables, "deeplearning_additional_stacks": NONE}
    answer = made(replace(entry, variables=variables))
    assert own_rows(answer) == [("none", "no longer requested")]
    assert answer.hosts["edge1"]["additional"] == []


def test_a_mirror_without_internet_is_filled_with_it():
    contents = mirror_contents.contents([host()], [], REPOSITORY)
    assert (contents.problems, list(contents.environments)) == ([], [(ACTIVE, "3.9"), (BESIDE, "3.8")])


def test_the_active_stack_is_not_installed_twice():
    assert made(host(deeplearning_additional_stacks=[ACTIVE])).hosts["edge1"]["additional"] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tf9", "tf9"),
        ("tf2.15-cpu-py3-el9", "tf2.15-cpu-py3-el9 is made for el9, but the host runs RHEL 8.10"),
        ("no name", "each entry the name of a stack"),
    ],
)
def test_one_that_does_not_fit_is_a_problem_of_the_plan(name, words):
    (problem,) = made(host(deeplearning_additional_stacks=[name])).problems
    assert "deeplearning_additional_stacks" in problem
    assert words in problem


def test_each_new_environment_needs_its_space():
    small = altered(host(), lambda facts: facts.update(disk_free_mb={"/opt": 9000}))
    assert "/opt requires 10000 MB for 2 new environments, but has 9000 MB free" in made(small).problems[0]


def test_cdsw_gets_the_driver_that_an_additional_stack_decides():
    """The active one is for the CPU and decides none."""
    workbench = {"kind": "rpm", "release": "1.4.0", "settings": {}, "master": True, "drivers": []}
    nvidia = {"gpus": [{"vendor": "10de", "device": "15f8"}], "listed": None}
    node = changed_node(nvidia=nvidia, workbench=workbench, cdsw=True)
    stacks = {"deeplearning_request": "tf1.15-cpu-py27-el7", "deeplearning_additional_stacks": ["tf1.15-py27-el7"]}
    site = {name: value for name, value in SITE.items() if value != "none"}
    answer = made(invented_hosts.host("cdsw1", ("cdsw_hosts",), {**site, **stacks, **ACCEPTED}, node))
    (driver,) = [row.wanted for row in answer.rows if row.component == "nvidia_driver"]
    assert answer.hosts["cdsw1"]["cdsw"]["driver"] == driver


def test_the_gpu_layer_serves_all_stacks_of_a_host():
    stack_inputs = {"deeplearning_request": "tf2.4-py38-el8", "deeplearning_additional_stacks": ["tf2.11-py39"]}
    site = {name: value for name, value in SITE.items() if value != "none"}
    answer = made(invented_hosts.host("data1", ("data_nodes",), {**site, **stack_inputs, **ACCEPTED}, el8()))
    assert gpu_part(answer) == {**layer("580.178.04", "11.2", "8.1.1.33"), "cuda_versions": ["11.2", "11.0"]}
