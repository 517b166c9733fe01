"""The tables of docs/train/job_errors.md: tfos-submit's hints."""

import json
import re
from collections.abc import Mapping
from typing import Any

from hadoop_dl.data.compat import REPOSITORY
from hadoop_dl_dev.compat_cells import Table

HINTS = REPOSITORY / "roles/tensorflowonspark/files/tfos-submit/tfos_submit/hints.json"


def source(name: str) -> str:
    thread = re.fullmatch(r"([\w.-]+/[\w.-]+)#(\d+)", name)
    return f"[{name}](https://github.com/{thread[1]}/issues/{thread[2]})" if thread else name


def cells(row: Mapping[str, Any]) -> list[str]:
    printed = [(row["seen"], row["source"]), *row.get("also", [])]
    return [
        " or ".join(f"`` {text} ``" for text, _ in printed) + (" \\*" if row.get("weak") else ""),
        *(re.sub(r"\{\d\}", "…", row[part]) for part in ("cause", "step")),
        "; ".join(dict.fromkeys(source(name) for _, name in printed)),
    ]


def tables() -> str:
    components = json.loads(HINTS.read_text(encoding="utf-8"))
    content = [
        Table(name, "", ("printed", "cause", "next step", "source"), [cells(row) for row in rows]).render()
        for name, rows in components.items()
    ]
    return "\n\n".join(content) + "\n"
