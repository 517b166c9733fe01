"""Whether a GPU is so sick that its host must leave YARN, by nvidia-smi and the kernel's log alone: no call of CUDA.

YARN ends every container of a node that leaves. So a GPU is sick only if jobs cannot compute on it and a reset, a reboot or a hand is required:
nvidia-smi has lost it, the driver asks for a reset now, a row of its memory could not be remapped, or the log has such an Xid and the driver does not
deny it. Everything else is for gpu-check's other questions: it fails there, and the host stays.
"""

import re
import sys
import time

from ansible.module_utils.hadoop_dl_host import atomic_files
from ansible.module_utils.hadoop_dl_host.gpu_health import GOOD, MINUTES, PATH, SICK, UNASKED, last
from ansible.module_utils.hadoop_dl_host.text_columns import write

from gpu_check.cells import sick
from gpu_check.health import memory_rows, recovery_rows
from gpu_check.kernel_log import each_once, grave
from gpu_check.questions import Fail, NotReported, Skip
from gpu_check.sentences import smi_problem

LOST = re.compile(
    r"GPU is lost|GPU requires reset|Unable to determine the device handle for gpu[ 0-9a-f:.]*[0-9a-f]", re.I
)
CELL = re.compile(r"^(\d+),.*\[(GPU is lost|GPU requires reset)\]", re.I | re.M)
OFF_THE_BUS = 15  # nvidia-smi(1)
HUNG = -9  # of host.run()
SOFTWARE = (9, 18)  # not loaded; another version runs: what the log has of cards is older than that
SECONDS = 5  # between two looks at an nvidia-smi that may only be busy
ONCE = "SEEN ONCE"


def hanging(host):
    """Numbers of the nvidia-smi that wait in the driver. One that does not come back cannot be ended; a timer must not add another one each minute."""
    texts = [(path, host.text(path) or "") for path in host.glob("/proc/[0-9]*/stat")]
    return set(path for path, text in texts if " (nvidia-smi) D " in text)


def hangs(host):
    before = hanging(host)
    if before:
        time.sleep(SECONDS)
    return bool(before & hanging(host))


def missing(host):
    """GPUs of the PCI bus that nvidia-smi does not list."""
    status, output = host.run("nvidia-smi", "-L")
    if status != 0 or not host.listed():
        raise Fail(smi_problem(host, status, output))
    return ["nvidia-smi lists %d of %d GPUs" % (len(host.listed()), len(host.pci()))] * (
        len(host.listed()) < len(host.pci())
    )


def silent(host):
    """Of each driver: a lost GPU prints in place of a value what CELL and LOST find."""
    host.query("index", "ecc.errors.uncorrected.volatile.total")
    return []


def demanded(host):
    """What the driver asks for now. After "Drain" other work on the GPU goes on (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, recovery action)."""
    rows = [
        row for row in recovery_rows(host) if re.search("reset|reboot", re.sub(r"(?i)\S*drain.*", "", row[1]), re.I)
    ]
    return ["GPU %s: the driver asks for %s" % tuple(row) for row in rows]


def not_remapped(host):
    rows = sick(memory_rows(host, "remapped_rows.failure"), "No", "0")
    return ["GPU %s: a row of memory could not be remapped" % row[0] for row in rows]


def denied(host):
    """Whether the driver says of every GPU that it requires nothing: an Xid in the log is of before a reset."""
    try:
        return all(row[1] == "None" for row in recovery_rows(host))
    except (Fail, Skip):
        return False


def look(host):
    """(SICK, which GPUs), (UNASKED, why) or (GOOD, "")."""
    if host.contained():
        return UNASKED, "a container cannot answer for its host"
    findings, failures = [], []
    if hangs(host):
        failures = ["nvidia-smi hangs in the driver"]
    for question in [] if failures else (missing, silent, demanded, not_remapped):
        if HUNG in [status for status, _ in host.answers.values()]:
            break  # each further one may hang as well
        try:
            findings += question(host)
        except NotReported:
            continue
        except Fail as problem:
            failures.append(str(problem))
    answers = [answer for argv, answer in sorted(host.answers.items()) if argv[0] == "nvidia-smi"]
    for status, output in answers:
        findings += ["GPU %s: %s" % cell for cell in CELL.findall(output)] or LOST.findall(output)[:1]
        findings += ["a GPU has fallen off the bus"] * (status == OFF_THE_BUS)
    software = [status for status, _ in answers if status in SOFTWARE]
    if not software and (failures or not denied(host)):
        findings += grave(host.run("dmesg")[1])
    if findings:
        return SICK, "; ".join(each_once(findings))
    return (UNASKED, failures[0]) if failures else (GOOD, "")


def following(previous, kind, words):
    """What the two lines of the answer have after this look; None: the last one stays until it is old. Two looks in a row change what YARN gets, one does not.

    previous: the same of the last answer, if it counts.
    """
    line, before = previous or (GOOD, GOOD)
    is_out = line.startswith(SICK)
    if kind == UNASKED:
        return None if is_out else ("%s: %s" % (kind, words), kind)
    if kind == SICK and (is_out or before == SICK):
        line = "%s: sick GPU (gpu-check): %s. The node comes back by itself when that has ended." % (SICK, words)
    elif kind == SICK:
        line = "%s: %s" % (ONCE, words)
    elif not is_out or before == GOOD:
        line = GOOD
    return line, kind


def main(host):
    answer = last(host)
    previous = (answer["line"], answer["look"]) if answer and answer["minutes"] < MINUTES else None
    kind, words = look(host)
    lines = following(previous, kind, " ".join(words.split()))
    try:
        if lines:
            atomic_files.write_whole(host.at(PATH), ("%s\nlast look: %s\n" % lines).encode("utf-8"))
    except (IOError, OSError) as error:
        sys.stderr.write("root must write %s, but: %s. Run this as root.\n" % (PATH, error))
        return 1
    write("%s %s\n" % (kind, words))
    return 0
