"""The report as one HTML page: no other file, nothing from the network, and hosts' answers are escaped text."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import gpu_use
from hadoop_dl.hosts.report import DRIFT, FAULT, PLANNED, STATES, UNREACHABLE, health_text, shown
from hadoop_dl.hosts.report_text import differences, sentences
from hadoop_dl.plan.model import Json

PARTS = Path(__file__).with_name("page")
TEMPLATES = Environment(
    loader=FileSystemLoader(PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
COLUMNS = {
    "state": "State",
    "host": "Host",
    "group": "Group",
    "os": "System",
    "kernel": "Kernel",
    "driver": "Driver",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "environment": "Environment",
    "gpu": "GPUs",
    "health": "gpu-check",
    "verified": "Verified",
    "changed": "Changed",
}
# What the end of a cell may be, by column.
SUFFIX = {
    "os": "[A-Z][a-z]+|[a-z]+",  # the release's code name
    "kernel": "x86_64",
    "driver": "open|proprietary|not loaded",
    **dict.fromkeys(("cuda", "cudnn", "nccl"), "wheel"),
}
LONGEST_LINE = 32  # characters
ONE_LINE = ("os", "kernel", "gpu", "verified", "changed")  # short enough
# A state's class, its mark (colour is never the only sign), and its meaning.
LOOKS = {
    PLANNED: ("planned", "✓", "the plan has nothing to do here"),
    DRIFT: ("drift", "≠", "something differs from the plan"),
    FAULT: ("fault", "✗", "a GPU or the environment is damaged"),
    UNREACHABLE: ("unreachable", "?", "no answer"),
}


def page(report: Json) -> str:
    """The whole page."""
    # Of this project's own files: markup on purpose.
    style, script = (Markup((PARTS / name).read_text(encoding="utf-8")) for name in ("report.css", "report.js"))  # noqa: S704 (own files)
    order = sorted(report["hosts"], key=lambda entry: STATES.index(entry["state"]))
    return TEMPLATES.get_template("report.html.j2").render(
        style=style,
        style_hash=source_hash(style),
        script=script,
        script_hash=source_hash(script),
        moment=report["made"].replace("T", " ").replace("Z", " UTC"),
        inventory=report["inventory"],
        trouble=len(report["hosts"]) - report["states"][PLANNED],
        states=[look(state) | {"count": report["states"][state]} for state in reversed(STATES)],
        columns=[{"key": key, "title": title} for key, title in COLUMNS.items()],
        groups=report["groups"],
        problems=report["problems"],
        hosts=[host(entry) for entry in order],
        applications=gpu_use.sentences(report),
        differences=differences(report),
        notes=sentences(report, "notes") + report["warnings"],
    )


def split(text: str, suffix: str) -> tuple[str, str]:
    """A text and its end, which is shown smaller: (open), x86_64."""
    match = re.fullmatch(rf"([^,]*?)(?: \(|\.)({suffix})\)?", text)
    return (match[1], match[2]) if match else (text, "")


def source_hash(text: str) -> str:
    """The hash by which the Content-Security-Policy allows the page's own script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def look(state: str) -> Json:
    css, mark, meaning = LOOKS[state]
    return {"name": state, "css": css, "mark": mark, "meaning": meaning}


def host(entry: Json) -> Json:
    """The template's values for one host."""
    css, mark, _ = LOOKS[entry["state"]]
    return {
        "name": entry["host"],
        "groups": entry["groups"],
        "state": entry["state"],
        "css": css,
        "mark": mark,
        "order": STATES.index(entry["state"]),
        "cells": [cell(entry, key) for key in COLUMNS if key not in ("state", "host")],
        "reasons": [one_line(reason, PARAGRAPH) for reason in entry["reasons"]],
    }


def cell(entry: Json, key: str) -> dict[str, Any]:
    """A cell: its text, a second line, and its class."""
    small = ""
    if key == "group":
        text = ", ".join(entry["groups"]) or "-"
    elif key == "health":
        text = health_text(entry)
    elif key in SUFFIX:
        text, small = split(shown(entry, key).replace("Red Hat Enterprise Linux", "RHEL"), SUFFIX[key])
    elif key == "environment" and entry["environment"]:
        text, small = one_line(entry["stack"] or entry["environment"]), one_line(entry["digest"] or "")
    elif key in ("verified", "changed") and entry[key]:
        text, small = entry[key][:10], f"{entry[key][11:16]} UTC"
    else:
        text = shown(entry, key)
    health = entry["gpu_check"]
    bad = key == "health" and health is not None and bool(health["problem"] or health["failed"])
    long = max(len(text), len(small)) > LONGEST_LINE
    css = "bad" if bad else "none" if text == "-" else "long" if long else "one" if key in ONE_LINE else ""
    return {"text": text, "small": small, "css": css}
