"""What NVIDIA's DCGM says about the GPUs, if a host has it: level 1 of its diagnosis, which computes nothing, and level 2, which does."""

import json
import re

from gpu_check.questions import Fail, Skip, host_check

DCGMI = "/usr/bin/dcgmi"
UNITS = ("nvidia-dcgm", "dcgm")  # the second up to DCGM 2
SLOW = {
    1: 180,
    2: 900,
}  # seconds, by level; normally some, and two minutes (docs.nvidia.com/datacenter/dcgm, dcgmi diag)
LARGEST = 1 << 20  # characters; 16 GPUs print some 10,000
LONGEST = 200  # characters of a text of DCGM
NAMED = 5  # errors
TITLES = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # the second up to DCGM 3
# dcgmErrorSeverity_enum (github.com/NVIDIA/DCGM, dcgmlib/dcgm_errors.h): MONITOR "can perform workload", CONFIG "can be configured".
MILD = (1, 5)
# dcgmi/Diag.cpp: the cards are none that DCGM diagnoses, or its operator paused it.
NOT_NOW = ("Tesla recommended driver is not being used", "while DCGM is paused")
TEXT = type(b"".decode("ascii"))  # what JSON has: unicode for Python 2.7


class NoDiagnosis(Exception):
    """The answer has another form."""


def of_kind(value, kind):
    """The value, which must have this type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise NoDiagnosis()
    return value


def line(value):
    """A text of DCGM: one line of printable characters."""
    text = " ".join(of_kind(value, TEXT).split())
    text = re.sub("[^ -~]", "?", text).rstrip(".")
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def diagnosis(output):
    """What is under the title of the JSON object. A library may print something before it."""
    begin, end = output.find("{"), output.rfind("}")
    if begin < 0:
        raise NoDiagnosis()
    try:
        content = of_kind(json.loads(output[begin : end + 1]), dict)
    except (ValueError, RuntimeError):  # no JSON, or nested deeper than Python goes
        raise NoDiagnosis()
    title = [name for name in TITLES if name in content]
    if not title:
        raise NoDiagnosis()
    return of_kind(content[title[0]], dict)


def tests_of(content):
    """(name, its rows: one for each entity, and the summary that DCGM 4 adds)."""
    listed = []
    for category in of_kind(content.get("test_categories"), list):
        for test in of_kind(of_kind(category, dict).get("tests"), list):
            rows = of_kind(of_kind(test, dict).get("results", []), list)
            summary = [test["test_summary"]] if "test_summary" in test else []
            listed.append((line(test.get("name")), [of_kind(row, dict) for row in rows + summary]))
    if not listed:
        raise NoDiagnosis()
    return listed


def errors_of(rows):
    """(severity, text) of the errors of a test, each once. DCGM 3 has the text of level one under the key of the list."""
    errors = []
    for row in rows:
        for error in of_kind(row.get("warnings", []), list):
            text = line(of_kind(error, dict).get("warning", error.get("warnings")))
            entry = (of_kind(error.get("error_severity", 0), int), text)
            if entry not in errors:
                errors.append(entry)
    return errors


def verdict(content):
    """Names of the tests by status, and the errors: those of the hardware and those with which a GPU computes."""
    passed, skipped, hard, mild = [], [], [], []
    for name, rows in tests_of(content):
        states = set(of_kind(row.get("status"), TEXT).lower() for row in rows)
        errors = errors_of(rows)
        if states & set(["fail", "warn"]):
            hard += ["%s: %s" % (name, text) for severity, text in errors if severity not in MILD]
            mild += ["%s: %s" % (name, text) for severity, text in errors if severity in MILD]
            hard += [] if errors else [name + ": it gave no reason"]
        elif "pass" in states:
            passed.append(name)
        else:
            skipped.append(name)
    return passed, skipped, hard, mild


def some(texts):
    return "; ".join(texts[:NAMED]) + ("; and %d more" % (len(texts) - NAMED) if len(texts) > NAMED else "")


def printed_diagnosis(host, level):
    """What dcgmi prints, and its status. It asks DCGM's service, so nobody may run it."""
    status, printed = host.execute_foreign((DCGMI, "diag", "-r", str(level), "-j"), SLOW[level])
    if status == -9:
        raise Fail(
            "dcgmi diag -r %d must end within %d seconds but did not. Look at dmesg for Xid and at journalctl -u nvidia-dcgm."
            % (level, SLOW[level])
        )
    if len(printed) > LARGEST:
        raise Fail("dcgmi diag -r %d -j must print a diagnosis but printed more than %d characters." % (level, LARGEST))
    return status, printed


@host_check
def dcgm_diagnosis(host):
    """DCGM, if the host has it: level 1 of its diagnosis finds nothing (dcgmi diag -r 1)"""
    return diagnosed(host, 1)


@host_check
def dcgm_medium_diagnosis(host):
    """DCGM, only if this question is named: level 2, which loads idle GPUs for minutes, finds nothing (dcgmi diag -r 2)"""
    if "dcgm_medium_diagnosis" not in host.named:
        raise Skip("it loads the GPUs for minutes; on a drained host: gpu-check dcgm_medium_diagnosis")
    return diagnosed(host, 2)


def diagnosed(host, level):
    host.requires_gpu()
    if not host.exists(DCGMI):
        raise Skip("DCGM is not installed here (no %s)" % DCGMI)
    if host.run("systemctl", "is-active", *UNITS)[0] != 0:
        raise Skip("DCGM is installed but its service does not run; systemctl start nvidia-dcgm")
    status, printed = printed_diagnosis(host, level)
    try:
        content = diagnosis(printed)
        problem = line(content["runtime_error"]) if "runtime_error" in content else None
        passed, skipped, hard, mild = ([], [], [], []) if problem else verdict(content)
    except NoDiagnosis:
        excerpt = " ".join(re.sub("[^ -~]", " ", printed[:LONGEST]).split()) or "nothing"
        raise Fail(
            "dcgmi diag -r %d -j must print a diagnosis as JSON but ended with status %s and printed: %s. Run it by hand, and read "
            "journalctl -u nvidia-dcgm." % (level, status, excerpt)
        )
    if problem and any(words in problem for words in NOT_NOW):
        raise Skip("DCGM did not diagnose: %s" % problem)
    if problem:
        raise Fail("DCGM must diagnose the GPUs but ended with: %s. Read journalctl -u nvidia-dcgm." % problem)
    if hard:
        raise Fail(
            "DCGM must find nothing but found %s. Drain the host and do what it says; dcgmi diag -r %d -v has more."
            % (some(hard), level)
        )
    if not passed and not mild:
        raise Skip("DCGM skipped all of its tests: %s" % ", ".join(skipped))
    summary = "warning: %s" % some(mild) if mild else "passed: %s" % ", ".join(passed)
    return summary + ("; skipped: %s" % ", ".join(skipped) if skipped else "")
