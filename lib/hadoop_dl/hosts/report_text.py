"""The report for the terminal: hosts that are alike are one line, then everything that is not as planned."""

from collections.abc import Sequence

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import gpu_use
from hadoop_dl.hosts.report import COMPARED, STATES, health_text, shown
from hadoop_dl.plan.model import Json, shorten
from hadoop_dl.plan.problems import group_alike

COLUMNS = (
    *(("state", "state"), ("os", "operating system"), ("kernel", "kernel"), ("driver", "driver")),
    *(("cuda", "CUDA"), ("cudnn", "cuDNN"), ("nccl", "NCCL"), ("environment", "environment"), ("gpu", "GPUs")),
    ("health", "gpu-check"),
)
DATES = ("verified", "changed")


def text(report: Json) -> str:
    """The whole report."""
    blocks = [heading(report), table(report["hosts"])]
    blocks.append(listed("Not as planned", sentences(report, "reasons") + report["problems"]))
    blocks.append(listed("GPUs that YARN gave to applications, most idle ones first", gpu_use.sentences(report)))
    blocks.append(listed("Not the same on all hosts of a group", differences(report)))
    blocks.append(listed("Good to know", sentences(report, "notes") + report["warnings"]))
    return "\n\n".join(block for block in blocks if block)


def heading(report: Json) -> str:
    counts = ", ".join(f"{report['states'][state]} {state}" for state in reversed(STATES) if report["states"][state])
    total = len(report["hosts"])
    moment = report["made"].replace("T", " ").replace("Z", " UTC")
    return f"REPORT of {moment}: {total} host{'' if total == 1 else 's'}: {counts or 'none'}."


def table(entries: Sequence[Json]) -> str:
    """A line for each kind of host, the worst state first."""
    alike: dict[tuple[str, ...], list[Json]] = {}
    for entry in sorted(entries, key=lambda entry: STATES.index(entry["state"])):
        cells = tuple(health_text(entry) if name == "health" else shown(entry, name) for name, _ in COLUMNS)
        alike.setdefault(cells, []).append(entry)
    lines = [("hosts", *(title for _, title in COLUMNS), *DATES)]
    for cells, kind in alike.items():
        hosts = shorten([entry["host"] for entry in kind])
        lines.append((hosts, *cells, *(days(kind, name) for name in DATES)))
    return "\n".join(f"  {line}" for line in columns(lines))


def days(entries: Sequence[Json], name: str) -> str:
    """The day, or the first and the last one if hosts that are alike have several."""
    values = sorted({shown(entry, name) for entry in entries})
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def sentences(report: Json, key: str) -> list[str]:
    return group_alike(
        f"{entry['host']}: {one_line(text, PARAGRAPH)}" for entry in report["hosts"] for text in entry[key]
    )


def differences(report: Json) -> list[str]:
    return [
        f"{group['group']}: {COMPARED[name]} "
        + "; ".join(f"{value} on {shorten(hosts)}" for value, hosts in values.items())
        for group in report["groups"]
        for name, values in group["differ"].items()
    ]


def listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *[f"  {line}" for line in lines]]) if lines else ""
