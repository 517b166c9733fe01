"""What a cell of nvidia-smi's tables may have. It ends with status 0 and prints "[GPU is lost]" or "ERR!" in the cells of a sick card."""

import re

# The field means nothing on this card, with this driver, or for this user.
ABSENT = (
    "N/A",
    "[N/A]",
    "Not Supported",
    "[Not Supported]",
    "[Requested functionality has been deprecated]",
    "[Insufficient Permissions]",
)
NUMBER = r"\d+"
WORDS = r"[A-Z0-9][^\[\]!]*"
ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
ANSWER = r"Yes|No|0|1"  # remapped rows are numbers in their own table
ON = r"Enabled|Disabled"
# By field, or by what its name begins with. A field without a form cannot be asked.
FORMS = (
    ("index", NUMBER),
    ("gpu_bus_id", ADDRESS),
    ("pci.bus_id", ADDRESS),
    ("uuid", r"GPU-[\w-]+"),
    ("utilization.gpu", r"\d+ %"),
    ("name", WORDS),
    ("driver_version", r"\d+(\.\d+)+"),
    ("persistence_mode", ON),
    ("mig.mode.current", ON),
    ("compute_mode", r"Default|Exclusive_(Process|Thread)|Prohibited"),
    ("ecc.errors.uncorrected.volatile.total", NUMBER),
    ("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", ANSWER),
    ("remapped_rows.", ANSWER),
    ("retired_pages.pending", ANSWER),
    ("reset_status.", ANSWER),
    ("inforom.checksum_validation", r"valid|invalid"),
    ("clocks_event_reasons.", r"Active|Not Active"),
    ("clocks_throttle_reasons.", r"Active|Not Active"),
    ("gpu_recovery_action", WORDS),
    ("pcie.link.", NUMBER),
    ("fabric.", WORDS),
)


def form(field):
    return [pattern for start, pattern in FORMS if field == start or (start[-1] == "." and field.startswith(start))][0]


def is_value(field, cell):
    """Whether the cell has a value of its field, or says that there is none."""
    return cell in ABSENT or re.match("(?:%s)$" % form(field), cell) is not None


def sick(rows, *good):
    """The rows that have anything else than these values, or none."""
    return [row for row in rows if not set(row[1:]) <= set(ABSENT + good)]


def problem(fields, row):
    """What is wrong with a row whose first cell names the GPU; None if nothing is."""
    if row[0] in ABSENT or not is_value(fields[0], row[0]) or len(row) != len(fields):
        return (
            "nvidia-smi must answer with %s for each GPU but printed: %s. Run nvidia-smi --query-gpu=%s --format=csv and read its answer."
            % (", ".join(fields), ", ".join(row), ",".join(fields))
        )
    wrong = [(field, cell) for field, cell in zip(fields, row) if not is_value(field, cell)]
    if not wrong:
        return None
    words = sorted(set(cell for _, cell in wrong))
    return "GPU %s must answer, but nvidia-smi reports %s for %s. %s" % (
        row[0],
        " and ".join(words),
        ", ".join(field for field, _ in wrong),
        remedy(words),
    )


def remedy(words):
    if any("requires reset" in word for word in words):
        return "Drain the host and reset the GPU (nvidia-smi -r), or reboot."
    return "Drain the host, read dmesg | grep -i -e nvrm -e xid, and reboot; if it stays, reseat or replace the card."
