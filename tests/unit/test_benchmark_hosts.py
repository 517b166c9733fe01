"""playbooks/benchmark.yml: what several hosts reached, and which of their GPUs is slower than the others. The playbook itself: test_benchmark_command.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from deeplearning_command import networks

from hadoop_dl.data import typed
from hadoop_dl.hosts import benchmark
from hadoop_dl.plan import inputs

CARD = "device: 0, name: Tesla P100-PCIE-16GB, pci bus id: 0000:3b:00.0, compute capability: 6.0"


def network(name: str, cpu: float, gpu: float | None) -> dict[str, Any]:
    return {"network": name, "cpu": cpu, "gpu": gpu, "factor": gpu and gpu / cpu, "problem": None}


def answer(*measured: Any, gpus: tuple[str, ...] = (CARD,)) -> dict[str, Any]:
    return {"environment": "tf1.15-py27-el7-0", "gpus": list(gpus), "seconds": 20.0, "networks": list(measured)}


def hosts(**answers: Any) -> dict[str, benchmark.Benchmark]:
    return {name: typed.read(benchmark.Benchmark, host_answer) for name, host_answer in answers.items()}


def test_a_line_for_each_network_has_the_medians_and_the_factor_as_a_bar() -> None:
    answers = hosts(
        data1=answer(network("lstm", 100, 2000), network("conv1d", 200.0, 9000.0)),
        data2=answer(network("lstm", 110, 2420), network("conv1d", 210, 9000)),
        edge1=answer(network("lstm", 90, None), gpus=()),
    )
    assert benchmark.refusal(answers) == ""
    assert benchmark.text(answers).splitlines() == [
        "BENCHMARK: 3 of 3 hosts were measured.",
        "",
        "Median samples per second, and how much faster the GPU is than the CPU of its host:",
        "  network  environment        GPU                   hosts  CPU    on GPU  factor  # is 2x",
        "  lstm     tf1.15-py27-el7-0  Tesla P100-PCIE-16GB  2      105.0  2210.0  21.0    ##########",
        "  conv1d   tf1.15-py27-el7-0  Tesla P100-PCIE-16GB  2      205.0  9000.0  43.9    ######################",
        "  lstm     tf1.15-py27-el7-0  none                  1      90.0   -       -",
    ]


def test_hosts_without_gpus_compare_nothing_and_this_is_said() -> None:
    text = benchmark.text(hosts(edge1=answer(network("lstm", 90, None), gpus=())))
    assert "Nothing was compared" in text


def test_a_gpu_that_is_slower_than_the_others_of_its_kind_is_shown_and_no_failure() -> None:
    """Another card, another environment and a slower CPU are no outliers."""
    other_answer = answer(network("lstm", 100, 500), gpus=(CARD.replace("Tesla P100-PCIE-16GB", "Tesla K80"),))
    newer_answer = {**answer(network("lstm", 100, 700)), "environment": "tf2.15-py3-el9-0"}
    similar_answers = {f"data{number}": answer(network("lstm", 100, 2000)) for number in (1, 2)}
    answers = hosts(**similar_answers, data3=answer(network("lstm", 20, 1500)), data4=other_answer, data5=newer_answer)
    lines = benchmark.text(answers).splitlines()
    at = lines.index("Outliers: GPUs below 80% of the median of their kind:")
    assert lines[at + 1 :] == ["  host   network  samples/s  median  of", "  data3  lstm     1500.0     2000.0  3"]
    assert benchmark.refusal(answers) == ""


def test_failures_and_hosts_without_an_answer_are_lines_and_refuse() -> None:
    failed_network = {**network("lstm", 100, None), "problem": "GPU: out of memory (exit status 1)"}
    complete_answer = answer(network("lstm", 100, 2000))
    answers = hosts(data1=complete_answer, data2=answer(failed_network), data3={"unanswered": "refused"}, data4={})
    lines = benchmark.text(answers).splitlines()
    assert lines[lines.index("Failed:") + 1 :] == [
        "  data2: lstm: GPU: out of memory (exit status 1)",
        "  data3: refused",
        "  data4: it measured nothing",
    ]
    assert benchmark.refusal(answers).startswith("Every network must train on data2, data3, data4, but did not")


@pytest.mark.parametrize("wrong", [-1, True, "100", float("nan"), float("inf"), 1e12, [1]])
def test_an_answer_of_another_form_is_none(wrong: Any) -> None:
    with pytest.raises(typed.TypedError, match="networks\\[0\\].cpu"):
        typed.read(benchmark.Benchmark, answer({**network("lstm", 100, None), "cpu": wrong}))


def test_the_input_names_the_networks_of_the_command() -> None:
    site = yaml.safe_load(Path(inputs.__file__).with_name("inputs.yml").read_text(encoding="utf-8"))["site"]
    assert tuple(site["benchmark_networks"]["choices"]) == networks.NAMES
