"""`scripts/stack resolve` and the plan choose the same stack."""

import agreement
import pytest

from hadoop_dl import plan
from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostFacts
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl.resolver.named_stacks import fitting
from hadoop_dl_dev import invented_hosts

SYSTEMS = ("rhel-7.9", "rhel-7.6", "rhel-8.10", "rhel-9.4", "rhel-9.0", "debian-12")
A100 = "10de:20b2"


def facts(system: str, gpu: str) -> HostFacts:
    return invented_hosts.facts(agreement.parts(system, gpu, "", ""))


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_request_for_hosts_with_and_without_gpus_is_one_stack(system: str) -> None:
    names, _ = target.stacks_for({"tensorflow": "2"}, [facts(system, "none").profile, facts(system, A100).profile])
    alone = fitting(load(), {"tensorflow": "2"}, facts(system, A100).profile)
    assert names[:1] == [candidate.name for candidate in alone[:1]]


@pytest.mark.parametrize("python", ["3.9", "3.11"])
def test_the_plan_takes_the_python_that_was_requested(python: str) -> None:
    request = {"tensorflow": "2.15", "python": python}
    host = plan_model.Host("data1", ("data_nodes",), {"deeplearning_request": request}, facts("rhel-9.4", A100))
    assert plan.settled([host]) == {"data1": "tf2.15-py3-el9"}
    host_target = target.target_for(host.variables, host.known, host.groups, "tf2.15-py3-el9")
    assert (host_target.python, fitting(load(), request, host.known.profile)[0].python) == (python, python)


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
