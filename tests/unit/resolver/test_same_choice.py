"""`scripts/stack resolve` and the plan choose the same stack, on every host and for every request of a grid."""

from itertools import product

import agreement
import pytest

from hadoop_dl import plan
from hadoop_dl.data.host_facts import HostFacts
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl.resolver import resolve
from hadoop_dl_dev import invented_hosts

SYSTEMS = ("rhel-7.9", "rhel-7.6", "rhel-8.10", "rhel-9.4", "rhel-9.0", "debian-12")
A100 = "10de:20b2"
GPUS = ("none", "K80", "10de:15f8", "T4", A100, "L40S", "10de:2330", "10de:2901")


def facts(system: str, gpu: str) -> HostFacts:
    return invented_hosts.facts(agreement.parts(system, gpu, "", ""))


@pytest.mark.parametrize(("system", "gpu"), list(product(SYSTEMS, GPUS)))
def test_resolve_names_the_stack_that_the_plan_installs_and_its_lock_or_that_it_has_none(system: str, gpu: str) -> None:
    read = facts(system, gpu)
    for request in agreement.REQUESTS:
        answer = resolve(request, read.profile)
        host_target = target.target_for({"deeplearning_request": request}, read, ["data_nodes"])
        if answer.name and answer.fits:
            assert answer.lock.endswith(load_stack(answer.name).lock_path(answer.stack["python"]).name)
        elif answer.fits:
            assert (answer.lock, answer.as_json()["lock"]) == ("", None)
            is_built = answer.stack["tensorflow_source"] == "built"
            step = "write inventories/SITE/stacks/tf" if is_built else "scripts/stack new tf"
            assert answer.next[-1].startswith(step)
        if answer.status == "unsure" and answer.name:
            assert f"deeplearning_request: {answer.name}" in host_target.problems[0], request
            continue
        assert (host_target.stack.name if host_target.stack else "") == answer.name, request
        if answer.name:
            for key in ("driver_min", "driver_module"):
                assert answer.stack.get(key) == host_target.data.get(key), request
            if answer.fits:
                assert host_target.python == answer.stack["python"], request
        else:
            assert host_target.problems, request


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_request_for_hosts_with_and_without_gpus_is_one_stack(system: str) -> None:
    names, _ = target.stacks_for({"tensorflow": "2"}, [facts(system, "none").profile, facts(system, A100).profile])
    alone = resolve({"tensorflow": "2"}, facts(system, A100).profile)
    assert names[:1] == ([alone.name] if alone.name else [])


@pytest.mark.parametrize("python", ["3.9", "3.11"])
def test_the_plan_takes_the_python_that_was_requested(python: str) -> None:
    request = {"tensorflow": "2.15", "python": python}
    host = plan_model.Host("data1", ("data_nodes",), {"deeplearning_request": request}, facts("rhel-9.4", A100))
    assert plan.settled([host]) == {"data1": "tf2.15-py3-el9"}
    host_target = target.target_for(host.variables, host.known, host.groups, "tf2.15-py3-el9")
    assert (host_target.python, resolve(request, host.known.profile).stack["python"]) == (python, python)


def test_a_python_that_the_host_lacks_is_named_as_it_was_requested() -> None:
    request = {"tensorflow": "2.15", "python": "3.11"}
    host_target = target.target_for({"deeplearning_request": request}, facts("rhel-9.0", A100), ["data_nodes"])
    (problem,) = host_target.problems
    assert problem.startswith("tf2.15-py3-el9 requires Python 3.11 on the host, but there is 3.9.")


@pytest.mark.parametrize("case", agreement.drawn(150), ids=lambda case: "-".join(map(str, case[:4])))
def test_the_command_line_and_the_plan_of_such_a_host_say_the_same(case: agreement.Case) -> None:
    """Drawn with a fixed seed; tests/long draws 2,000."""
    assert agreement.disagreement(case) == "", case


def test_a_java_that_the_host_lacks_is_said_as_that_and_with_no_line_of_spark() -> None:
    plan_of_host = agreement.planned("rhel-9.4", "none", "", "", {"python": "3.12", "java": "17"})
    (problem,) = plan_of_host.problems
    assert problem == "data1: Java 17 was requested; the host has Java 8. Nearest that fits: python=3.12, java=8."
    (problem,) = agreement.planned("rhel-9.4", "none", "", "", {"pyspark": "4"}).problems
    assert problem.startswith(
        "data1: Spark 4.2 runs on Java 17, 21 or 25; PySpark 4 was requested; the host's Java 8 is"
    )


def test_a_cluster_without_gpus_gets_no_stack_for_gpus() -> None:
    """As `resolve --gpu none`. With one GPU in the cluster the stack for GPUs serves every host."""
    request = {"tensorflow": "2.6", "hdfs": "true"}  # tf2.6-cpu-py36 reads no HDFS
    bare, with_gpus = facts("rhel-7.9", "none").profile, facts("rhel-7.9", A100).profile
    names, (problem,) = target.stacks_for(request, [bare])
    assert (names, "tf2.6-cpu-py36-el7.yml as docs" in problem) == ([], True)
    assert target.stacks_for(request, [bare, with_gpus]) == (["tf2.6-py36"], [])


def test_hosts_that_no_one_stack_fits_are_told_which_of_them_prevents_it() -> None:
    """Each has a stack, but a job needs one environment on all; different drivers on different hosts prevent nothing."""

    def failure(*hosts: tuple[str, str, str, str]) -> str:
        site = {
            "deeplearning_request": {"tensorflow": ">=1"},
            "mirror_url": "http://m:1",
            "nvidia_license_accepted": True,
        }
        made = [
            invented_hosts.host(name, ("data_nodes",), site, agreement.parts(system, gpu, "cdh-6.3", driver))
            for name, system, gpu, driver in hosts
        ]
        return " ".join(plan.make_plan(made, agreement.REPOSITORY).problems)

    new = [("new0", "rhel-9.4", A100, "535.183.06"), ("new1", "rhel-9.4", A100, "580.65.06")]
    problems = failure(("old1", "rhel-7.9", "10de:15f8", ""), *new)
    assert (
        "no stack meets it on all of them: without old1 there is tf2.17-py311; without new0, new1 there is" in problems
    )
    assert "Give all of them the same" not in problems
    assert failure(*new) == ""
    kepler_and_hopper = [facts("rhel-8.10", gpu).profile for gpu in ("K80", "10de:2330")]  # no driver drives both
    assert target.stacks_for({"tensorflow": ">=1"}, kepler_and_hopper)[0][0] == "tf2.14-py311"
