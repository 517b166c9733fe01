"""The report for Prometheus: a file for the textfile collector of the controller's node_exporter, with the label `host`; idle applications have their own."""

from collections.abc import Iterable, Iterator, Mapping

from hadoop_dl.data.moments import seconds_of
from hadoop_dl.data.terminal import one_line
from hadoop_dl.hosts.report import UNREACHABLE
from hadoop_dl.plan.model import Json

Sample = tuple[Mapping[str, str], int]
# The help text of each metric; examples/prometheus/alerts.yml uses them.
METRICS = {
    "deeplearning_report_time_seconds": "When the report was made.",
    "deeplearning_hosts": "Hosts in each state.",
    "deeplearning_site_problems": "Problems of several hosts together that prevent a plan.",
    "deeplearning_gpu_idle_seconds": "How long no report has seen an application compute that holds GPUs; only of those that the last one found idle.",
    "deeplearning_host_up": "Whether the host answered.",
    "deeplearning_host_info": "What the host has.",
    "deeplearning_host_drift": "Differences from the plan, and problems that prevent it.",
    "deeplearning_environment_intact": "Whether the active environment is as it was sealed.",
    "deeplearning_gpus": "GPUs that the host shows.",
    "deeplearning_gpus_required": "GPUs that the inventory requires (gpu_count).",
    "deeplearning_gpu_check": "Whether a question of gpu-check passed; one that was skipped has no value.",
    "deeplearning_gpu_check_answered": "Whether gpu-check answered.",
    "deeplearning_verified_time_seconds": "When the host was last verified.",
    "deeplearning_changed_time_seconds": "When something was last installed or switched on the host.",
}


def text(report: Json) -> str:
    """The whole file, in the text exposition format."""
    samples: dict[str, list[Sample]] = {name: [] for name in METRICS}
    samples["deeplearning_report_time_seconds"].append(({}, seconds_of(report["made"])))
    samples["deeplearning_site_problems"].append(({}, len(report["problems"])))
    samples["deeplearning_hosts"] += [({"state": state}, count) for state, count in report["states"].items()]
    for row in report["applications"]:
        if row["idle_since"]:
            seconds = seconds_of(report["made"]) - seconds_of(row["idle_since"])
            whose = {"application": row["id"], "user": row["user"], "queue": row["queue"]}
            samples["deeplearning_gpu_idle_seconds"].append((whose, seconds))
    for entry in report["hosts"]:
        for name, labels, value in of_host(entry):
            samples[name].append(({"host": entry["host"], **labels}, value))
    return "".join(f"{line}\n" for name, values in samples.items() if values for line in lines(name, values))


def of_host(entry: Json) -> Iterator[tuple[str, Mapping[str, str], int]]:
    """A host's samples without its own label."""
    up = entry["state"] != UNREACHABLE
    yield "deeplearning_host_up", {}, up
    if not up:
        return
    labels = ("os", "kernel", "driver", "module", "stack", "environment")
    yield "deeplearning_host_info", {name: one_line(entry[name] or "") for name in labels}, 1
    yield "deeplearning_host_drift", {}, len(entry["drift"]) + len(entry["problems"])
    if entry["environment"]:
        yield "deeplearning_environment_intact", {}, not entry["environment_problem"]
    yield "deeplearning_gpus", {}, entry["gpus"]
    if entry["gpus_required"] is not None:
        yield "deeplearning_gpus_required", {}, entry["gpus_required"]
    if entry["gpu_check"]:
        yield "deeplearning_gpu_check_answered", {}, not entry["gpu_check"]["problem"]
        for outcome, value in (("passed", 1), ("failed", 0)):
            for name in sorted(entry["gpu_check"][outcome]):
                yield "deeplearning_gpu_check", {"check": name}, value
    for key in ("verified", "changed"):
        if entry[key]:
            yield f"deeplearning_{key}_time_seconds", {}, seconds_of(entry[key])


def lines(name: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {METRICS[name]}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        pairs = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{pairs}}} {int(value)}" if pairs else f"{name} {int(value)}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
