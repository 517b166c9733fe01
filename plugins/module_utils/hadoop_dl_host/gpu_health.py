"""gpu-check's last answer for YARN. Its timer writes it; the NodeManager's health script, gpu-check itself, the plan and the report read it.

Line 1 is what YARN gets: ERROR makes a node UNHEALTHY. Line 2 has the last look alone. Python 2.7 and 3, standard library only.
"""

import os
import time

PATH = "/run/deeplearning-gpu-health"  # empty after a boot
MINUTES = 10  # an older answer counts for nothing
SICK, GOOD, UNASKED = "ERROR", "OK", "NOT ASKED"


def last(system):
    """What its two lines have, and its age; None if it is missing."""
    try:
        status = os.stat(system.at(PATH))
    except OSError:
        return None
    lines = (system.text(PATH) or "").splitlines() + ["", ""]
    age = max(0, int(time.time() - status.st_mtime) // 60)
    return {"line": lines[0], "look": lines[1].rpartition(": ")[2], "minutes": age}
