"""The files of a report: each has its name only when it is complete, because cron and node_exporter read them at any time."""

import json
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import atomic_files

from hadoop_dl.hosts import report_metrics, report_page, report_text
from hadoop_dl.plan import forms
from hadoop_dl.plan.model import Json


def write(report: Json, directory: Path) -> None:
    """Write the report in every form that it has."""
    directory.mkdir(parents=True, exist_ok=True)
    contents = {
        "report.txt": report_text.text(report) + "\n",
        "report.json": json.dumps(report, indent=1) + "\n",
        "deeplearning.prom": report_metrics.text(report),
        "report.html": report_page.page(report),
    }
    for name, content in contents.items():
        # Everybody may read it: it has host names and versions, and no secret. Two runs do not share a draft.
        draft = directory / f".{name}.{os.getpid()}"
        atomic_files.write_whole(str(directory / name), content.encode(), draft=str(draft))


def refusal(directory: Any, error: OSError) -> str:
    return (
        f"report_directory must be a directory that the controller can write, but {forms.shown(directory)} is not: "
        f"{error.strerror}. Set another one; no report was written."
    )
