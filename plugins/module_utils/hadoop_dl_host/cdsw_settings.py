"""What `cdsw status` prints; its format: compat/cdsw.yml. Python 2.7 and 3, standard library only."""

import re

READY = "Cloudera Data Science Workbench is ready!"


def nodes(output):
    """GPUs of each node in the table that `cdsw status` prints, None in a table without that column; None without a table.

    A table of pods follows it, which has NAME and STATUS as well. A node whose STATUS is not True does not answer.
    """
    header, gpus = [], None
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "NAME" in cells and "STATUS" in cells:
            header = [] if "READY" in cells else cells
            gpus = {} if header and gpus is None else gpus
        elif header and len(cells) == len(header):
            row = dict(zip(header, cells))
            if row["STATUS"] not in ("False", "Unknown", "NotReady"):
                gpus[row["NAME"]] = int(row["GPU"]) if row.get("GPU", "").isdigit() else None
    return gpus


def ready(status, output):
    return status == 0 and READY in output


def reason(status, output):
    """What keeps CDSW from being ready, from its own words."""
    lines = [
        line.strip() for line in output.splitlines() if line.strip() and not line.startswith("Sending detailed logs")
    ]
    problem_lines = [line for line in lines if re.search(r"not running|Failed|not ready|^(ERROR|FAILED|WARNING)", line)]
    cause = problem_lines[0] if problem_lines else (lines or ["nothing"])[-1]
    return "cdsw status ended with status %s and printed: %s" % ("none" if status is None else status, cause)
