"""The benchmark of all hosts (playbooks/benchmark.yml): what each reached, typed, and how much faster its GPU trains than its CPU."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ansible.module_utils.hadoop_dl_host import benchmark_scale
from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data.host_facts import Said, Word
from hadoop_dl.data.typed import Measured, Sentence
from hadoop_dl.hosts.gpu_acceptance import LEAST, SHARE
from hadoop_dl.hosts.report_text import listed

Name = Annotated[str, Sentence(80)]
Rate = Annotated[float, Measured(0.0, 1e9)]  # samples per second, or a factor of two of them


@dataclass(frozen=True)
class Network:
    network: Word
    cpu: Rate | None = None
    gpu: Rate | None = None
    factor: Rate | None = None
    problem: Said | None = None


@dataclass(frozen=True)
class Benchmark:
    """The answer of deeplearning benchmark; `unanswered` is the reason if nothing was measured."""

    environment: Word = ""
    gpus: tuple[Name, ...] = ()
    seconds: Rate = 0.0
    networks: tuple[Network, ...] = ()
    unanswered: Said = ""


Hosts = Mapping[str, Benchmark]
# Measurements of one kind should be alike: network, environment, and the GPU as TensorFlow names it without its place.
Kind = tuple[str, str, str]
Kinds = dict[Kind, list[tuple[str, Network]]]


def card(benchmark: Benchmark) -> str:
    """TensorFlow says: device: 0, name: Tesla P100-PCIE-16GB, pci bus id: 0000:3b:00.0, compute capability: 6.0."""
    words = (
        dict(part.split(": ", 1) for part in benchmark.gpus[0].split(", ") if ": " in part) if benchmark.gpus else {}
    )
    return words.get("name", benchmark.gpus[0] if benchmark.gpus else "none")


def kinds(hosts: Hosts) -> Kinds:
    alike: Kinds = {}
    for host, answer in sorted(hosts.items()):
        for measure in answer.networks:
            if not measure.problem:
                alike.setdefault((measure.network, answer.environment, card(answer)), []).append((host, measure))
    return alike


def rates(hosts: Hosts) -> list[str]:
    """The table of medians: a line for each kind, with a bar as long as the factor."""
    lines: list[Sequence[str]] = [
        ("network", "environment", "GPU", "hosts", "CPU", "on GPU", "factor", f"# is {benchmark_scale.BAR:.0f}x")
    ]
    for (network, environment, gpu), alike in kinds(hosts).items():
        cpu, on_gpu, factor = (
            [rate for _, measure in alike if (rate := getattr(measure, name)) is not None]
            for name in ("cpu", "gpu", "factor")
        )
        numbers = [f"{statistics.median(some):.1f}" if some else "-" for some in (cpu, on_gpu, factor)]
        bar = benchmark_scale.bar(statistics.median(factor)) if factor else ""
        lines.append((network, environment, gpu, str(len(alike)), *numbers, bar))
    return columns(lines) if len(lines) > 1 else []


def slow(hosts: Hosts) -> Iterator[tuple[str, str, float, float, int]]:
    """(host, network, samples per second on its GPU, median of its kind, number of GPUs of that kind). Slow CPUs are no fault."""
    for (network, _, _), alike in kinds(hosts).items():
        measured = [(host, measure.gpu) for host, measure in alike if measure.gpu is not None]
        if len(measured) >= LEAST:
            median = statistics.median(rate for _, rate in measured)
            yield from (
                (host, network, rate, median, len(measured)) for host, rate in measured if rate < SHARE * median
            )


def outliers(hosts: Hosts) -> list[str]:
    lines = [("host", "network", "samples/s", "median", "of")]
    lines += [(host, name, f"{rate:.1f}", f"{median:.1f}", str(of)) for host, name, rate, median, of in slow(hosts)]
    return columns(lines) if len(lines) > 1 else []


def faults(hosts: Hosts) -> list[str]:
    """A sentence for each network that failed, and for each host without an answer."""
    sentences = []
    for host, answer in sorted(hosts.items()):
        sentences += [f"{host}: {measure.network}: {measure.problem}" for measure in answer.networks if measure.problem]
        if not answer.networks:
            sentences.append(f"{host}: {answer.unanswered or 'it measured nothing'}")
    return sentences


def text(hosts: Hosts) -> str:
    """The whole answer of the playbook."""
    measured = [answer for answer in hosts.values() if answer.networks]
    blocks = [f"BENCHMARK: {len(measured)} of {len(hosts)} hosts were measured."]
    blocks.append(
        listed("Median samples per second, and how much faster the GPU is than the CPU of its host", rates(hosts))
    )
    if measured and not any(answer.gpus for answer in measured):
        blocks.append("Nothing was compared: TensorFlow sees no GPU on any of them (gpu-check says why).")
    blocks.append(listed(f"Outliers: GPUs below {SHARE:.0%} of the median of their kind", outliers(hosts)))
    blocks.append(listed("Failed", faults(hosts)))
    return "\n\n".join(block for block in blocks if block)


def refusal(hosts: Hosts) -> str:
    """Why the benchmark is not complete, or nothing. A slow host is only shown: other work may run there."""
    bad = sorted(host for host, answer in hosts.items() if faults({host: answer}))
    return (
        f"Every network must train on {', '.join(bad)}, but did not; the lines above have the reasons." if bad else ""
    )
