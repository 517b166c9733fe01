"""The stacks under stacks/ are answers that the resolver gives too."""

from dataclasses import replace
from typing import Any

import pytest
from checker import problems

from hadoop_dl.data.compat import load
from hadoop_dl.data.stacks import load_stack, stack_names
from hadoop_dl.resolver import HostProfile, resolve, unmet
from hadoop_dl.resolver.named_stacks import fitting, try_stack

PLACES = [(name, system) for name in stack_names() for system in load_stack(name).data["os"]]
NAMES = {"el7": "rhel-7.9", "el8": "rhel-8.10", "el9": "rhel-9.4", "el10": "rhel-10.0"}


@pytest.mark.parametrize(("name", "system"), PLACES)
def test_every_named_stack_fits_the_systems_it_is_made_for(name: str, system: str) -> None:
    candidate = try_stack(load(), load_stack(name), HostProfile(os=NAMES[system]))
    assert not candidate.conflicts
    doubts = [finding.text for finding in candidate.chosen.warnings if finding.doubt]
    assert all("NVIDIA packages CUDA 11.7 to 13.3 for RHEL 9.4" in text for text in doubts)
    assert not [finding for finding in candidate.chosen.warnings if "from elsewhere" in finding.text]


@pytest.mark.parametrize(("name", "system"), PLACES)
def test_every_named_stack_survives_a_second_opinion(name: str, system: str) -> None:
    stack = load_stack(name)
    for python in stack.pythons:
        assert problems({"os": NAMES[system]}, {**stack.data, "python": python}) == []


@pytest.mark.parametrize("more", [{}, {"gpu": "B200"}, {"tensorflow": "2.21", "gpu": "A100"}])
def test_a_stack_is_found_by_the_cuda_that_its_lock_has(more: dict[str, str]) -> None:
    """Not only by that which its TensorFlow was built with."""
    assert resolve({"os": "rhel-9.4", "cuda": "12.9", **more}).name == "tf2.21-cuda12.9-tfos-py311"
    assert not resolve({"os": "rhel-9.4", "cuda": "13.0", **more}).ok


def test_gpu_and_cpu_forms_are_there_where_both_exist() -> None:
    names = set(stack_names())
    for name in names:
        data = load_stack(name).data
        if "cuda" in data and data["tensorflow_source"] == "prebuilt":
            cpu = name.replace("-cuda12.9", "").replace("-py", "-cpu-py")
            assert cpu in names, f"{name} has no CPU form"
            assert "cuda" not in load_stack(cpu).data


@pytest.mark.parametrize(
    ("name", "host", "words"),
    [
        ("tf1.15-py27-el7", HostProfile(os="rhel-7.9", gpus=("10de:20b0",)), "CUDA 10.0 has no code for A100"),
        ("tf1.15-py27-el7", HostProfile(os="rhel-9.4"), "is made for el7, but the host has RHEL 9.4"),
        ("tf1.15-py27-el7", HostProfile(os="rhel-7.9", pythons=("3.6",)), "the host has Python 3.6"),
        ("tf2.21-py311", HostProfile(os="rhel-7.9"), "need glibc 2.27"),
        ("tf2.21-tfos-py311", HostProfile(os="rhel-8.10", javas=("8",), pythons=("3.7", "3.11")), ""),
        (
            "tf1.15-py27-el7",
            HostProfile(os="rhel-7.9", javas=("8",), spark="2.4.0"),
            "A stack for Spark 3 does not serve Spark 2",
        ),
        ("tf1.15-spark2-py27-el7", HostProfile(os="rhel-7.9", javas=("8",), spark="2.3.2"), ""),
        ("tf1.15-spark2-py27-el7", HostProfile(os="rhel-7.9", javas=("11",), spark="2.4.0"), "runs on Java 8"),
        ("tf2.11-py39", HostProfile(os="rhel-8.10", javas=("8",), spark="3.3.2"), ""),
        ("tf2.15-py3-el9", HostProfile(os="rhel-9.4", pythons=("3.9",)), ""),
    ],
)
def test_a_named_stack_is_checked_against_the_host(name: str, host: HostProfile, words: str) -> None:
    candidate = try_stack(load(), load_stack(name), host)
    assert words in " ".join(conflict.message for conflict in candidate.conflicts)
    assert (not candidate.conflicts and not candidate.doubtful) is (not words)


P100 = HostProfile(os="rhel-7.9", gpus=("10de:15f8",), pythons=("2.7",), javas=("8",))


@pytest.mark.parametrize(
    ("request_", "host", "name"),
    [
        ({"tensorflow": "1.15"}, P100, "tf1.15-py27-el7"),
        ({"tensorflow": "1.15"}, HostProfile(os="rhel-7.9", gpus=(), pythons=("2.7", "3.6")), "tf1.15-cpu-py36-el7"),
        ({"tensorflow": "1.15"}, HostProfile(os="rhel-7.9", gpus=(), pythons=("2.7",)), "tf1.15-cpu-py27-el7"),
        ({"tensorflow": "1.15"}, HostProfile(os="rhel-8.10"), "tf1.15-cpu-py36-el8"),
        ({"tensorflow": "1.15"}, replace(P100, spark="2.4.0"), "tf1.15-spark2-py27-el7"),
        ({"tensorflow": "1.15"}, HostProfile(os="rhel-8.10", spark="2.4.7"), "tf1.15-spark2-cpu-py36-el8"),
        *(
            (
                {"tensorflow": "1.4"},
                replace(P100, hadoop="cdh-5.14", spark=spark, gpus=gpus),
                f"tf1.4-spark2{form}-py27-el7",
            )
            for spark in ("2.1.0", "2.2.0", "2.3.4", "2.4.8", "")
            for gpus, form in ((P100.gpus, ""), ((), "-cpu"))
        ),
        ({"tensorflow": "1.15"}, replace(P100, hadoop="hdp-2.6.5"), "tf1.15-spark2-py27-el7"),
        ({"tensorflow": "1.15"}, replace(P100, hadoop="cdh-6.3"), "tf1.15-py27-el7"),
        ({"hdfs": True}, HostProfile(os="rhel-9.4", gpus=("10de:20b0",)), "tf2.17-py311"),
        ({"tensorflowonspark": "none"}, HostProfile(os="rhel-9.4", gpus=("10de:20b0",)), "tf2.21-py311"),
    ],
)
def test_a_request_becomes_the_named_stack_that_can_be_installed(
    request_: dict[str, Any], host: HostProfile, name: str
) -> None:
    best = fitting(load(), request_, host)[0]
    assert best.name == name
    assert best.python in load_stack(name).pythons
    assert host.pythons is None or best.python in host.pythons


@pytest.mark.parametrize(
    ("gpu", "module"), [("10de:2901", "open"), ("10de:20b0", "proprietary"), ("10de:1db4", "proprietary")]
)
def test_the_kernel_module_of_a_named_stack_is_the_one_that_the_hosts_gpus_need(gpu: str, module: str) -> None:
    host = HostProfile(os="rhel-9.4", gpus=(gpu,), pythons=("3.11",))
    best = fitting(load(), {"tensorflow": "2.21"}, host)[0]
    # The libraries of CUDA 12.5 have no code for a B200.
    name = "tf2.21-cuda12.9-tfos-py311" if module == "open" else "tf2.21-tfos-py311"
    assert (best.name, best.chosen.stack["driver_module"]) == (name, module)


@pytest.mark.parametrize("hadoop", ["cdh-5.14", "cdh-5.5", "hdp-2.6.5", "apache-2.10.2", "cdh-6.3", "cdp-7.1"])
def test_spark_3_on_hadoop_2_is_not_put_there_without_a_word(hadoop: str) -> None:
    """The stack by its name, by constraints, and versions without a stack; a Spark 3 of the site runs there already."""
    host, hadoop_2 = replace(P100, hadoop=hadoop), hadoop not in ("cdh-6.3", "cdp-7.1")
    named = try_stack(load(), load_stack("tf1.15-py27-el7"), host).chosen.warnings
    asked = resolve({"tensorflow": "1.15", "pyspark": "3.0", "hadoop": hadoop, "os": "rhel-7.9"}).warnings
    loose = resolve({"tensorflow": "2.5", "pyspark": "3.1", "hadoop": hadoop}).warnings
    for line, warnings in (("3.0", named), ("3.0", asked), ("3.1", loose)):
        words = [finding.text for finding in warnings if finding.text.startswith(f"Spark {line} was not run on ")]
        assert len(words) == hadoop_2, warnings
    own = try_stack(load(), load_stack("tf1.15-py27-el7"), replace(host, spark="3.0.2")).chosen.warnings
    assert not any("was not run" in finding.text for finding in own)


def test_what_all_lines_of_spark_have_against_them_is_said_once() -> None:
    request = {"tensorflow": "2.12", "tensorflowonspark": "2.2.5"}  # no stack has it
    problem = unmet(request, HostProfile(os="rhel-9.4", spark="2.4.0")).problems[0]
    assert [problem.count(f"A stack for Spark {major} does not serve Spark 2") for major in (3, 4)] == [1, 1]


def test_a_stack_that_fits_but_for_the_sites_spark_is_named() -> None:
    """Spark 2 ends at Python 3.7: newer releases of TensorFlow run with the Spark of their stacks."""
    host = HostProfile(os="rhel-9.4", gpus=(), spark="2.4.8")
    problem = unmet({"tensorflow": "2.15"}, host).problems[0]
    assert problem == (
        "tf2.15-cpu-py3-el9 would meet the request, but is for Spark 3.5.8, and spark_home is Spark 2.4.8. Remove spark_home from the "
        "inventory, and jobs use the stack's own Spark; or request less."
    )


def test_an_impossible_request_says_its_conflicts_and_not_that_a_lock_is_missing() -> None:
    assert "CUDA 10.0 has no code for A100" in unmet({"tensorflow": "1.15", "gpu": "A100"}).problems[0]


@pytest.mark.parametrize(("system", "python"), [("rhel-9.0", "3.9"), ("rhel-9.1", "3.9"), ("rhel-9.2", "3.11"), ("rhel-9.4", "3.11")])  # fmt: skip
def test_the_python_is_one_that_the_minor_release_has(system: str, python: str) -> None:
    """RHEL has Python 3.11 from 9.2 on; the plan reads the host and installs the lock for what is there."""
    answer = resolve({"os": system, "gpu": "A10", "tensorflow": "2.15"})
    assert (answer.name, answer.stack["python"]) == ("tf2.15-py3-el9", python)


def test_on_a_hadoop_cluster_a_stack_that_reads_hdfs_comes_first_and_the_newer_one_is_named() -> None:
    alone = resolve({"os": "rhel-9.4", "gpu": "H100"})
    answer = resolve({"os": "rhel-9.4", "gpu": "H100", "hadoop": "cdp-7.1.9"})
    assert (alone.name, alone.newer) == ("tf2.21-tfos-py311", "")
    assert (answer.name, answer.newer) == ("tf2.17-py311", "tf2.21-tfos-py311")
    host = HostProfile(os="rhel-9.4", gpus=("10de:2330",), pythons=("3.9", "3.11"), hadoop="cdp-7.1.9")
    assert fitting(load(), {"tensorflow": ">=2"}, host)[0].name == "tf2.17-py311"


def test_what_the_plan_asks_for_beside_the_request_is_printed() -> None:
    built = resolve({"os": "rhel-7.4", "gpu": "P100", "tensorflow": "1.6", "kafka": "true"})
    assert any("build_tensorflow.yml" in line for line in built.next), built.next


def test_the_open_modules_are_a_request_where_gpus_and_branch_have_them() -> None:
    """A stack's proprietary modules are a default: NVIDIA suggests the open ones since branch 560."""
    pick = resolve({"gpu": "A100", "os": "rhel-9.4", "driver_module": "open"})
    assert (pick.name, pick.stack["driver_module"]) == ("tf2.21-tfos-py311", "open")
    assert resolve({"gpu": "A100", "os": "rhel-9.4"}).stack["driver_module"] == "proprietary"
    assert resolve({"gpu": "P100", "os": "rhel-9.4", "driver_module": "open"}).status == "conflict"
    refused = resolve({"gpu": "T4", "os": "rhel-7.9", "driver_module": "open"})
    assert any("of the proprietary modules alone" in conflict.message for conflict in refused.conflicts)
