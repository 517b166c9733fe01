"""gpu-check's question to DCGM: what dcgmi diag -r 1 -j prints becomes a verdict.

The forms are those of the programs. DCGM 4: HelperJsonBuildOutput of dcgmi/Diag.cpp in github.com/NVIDIA/DCGM at 72fa3fe (4.6.0), and
testing/python3/dcgm_diag_schema.json there; DCGM 3: the same file of v3.3.9, where level one's texts are under the key "warnings" twice. Numbers
and texts of errors: dcgmlib/dcgm_errors.h. That one test stands for all of level one, and that a missing persistence mode is severity 5:
a capture of DCGM 4.2.3 (github.com/baldwinSPC/glimmer-burnin, runners/dcgm-diag/testdata/gb10-level1.json).
"""

import json

import gpu_check.dcgm
import pytest
from gpu_check_hosts import ask, check, host

NAMES_OF_3 = (
    *("Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS Blocks", "Persistence Mode"),
    *("Environment Variables", "Page Retirement/Row Remap", "Graphics Processes", "Inforom"),
)
PERSISTENCE = "Persistence Mode: Persistence mode for GPU 0 is disabled."
ROW = "GPU 1 had memory errors and row remappings are pending"
CONFIG, RESET, MONITOR, TRIAGE = 5, 6, 1, 4


def four(*errors, status=None, everywhere=True):
    """What DCGM 4 prints for two GPUs. errors: (GPU or None, severity, text); those of no GPU are in the summary alone."""
    lines = [
        (gpu, {"error_category": 8, "error_id": 29, "error_severity": severity, "warning": text})
        for gpu, severity, text in errors
    ]
    results = []
    for gpu in (0, 1):
        warnings = [line for owner, line in lines if owner == gpu]
        row = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Fail" if warnings else "Pass"}
        results.append({**row, "status": status or row["status"], **({"warnings": warnings} if warnings else {})})
    summary = {"status": status or ("Fail" if lines else "Pass")}
    if lines and everywhere:  # from 4.4 on a summary repeats the errors of all entities
        summary["warnings"] = [line for _, line in lines]
    test = {"name": "software", "results": results, "test_summary": summary}
    return {
        "DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [test]}]},
        "entity_groups": [
            {"entity_group": "GPU", "entity_group_id": 1, "entities": [{"device_id": "1db4", "entity_id": 0}]}
        ],
        "metadata": {"Driver Version Detected": "535.104.05", "version": "4.6.0"},
    }


def three(name="", severity=0, text="", status="Fail"):
    """What DCGM 3.3 prints; one test failed, or has this status."""
    tests = []
    for test_name in NAMES_OF_3:
        result = {"status": status if test_name == name else "Pass"}
        if test_name == name and status == "Fail":
            error = {"error_category": 8, "error_id": 29, "error_severity": severity, "warnings": text}
            result.update(gpu_id=0, warnings=[error])
        tests.append({"name": test_name, "results": [result]})
    return {
        "DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]},
        "Driver Version Detected": "535.104.05",
        "version": "3.3.9",
    }


def diagnosed(tmp_path, printed, status=0, question="dcgm_diagnosis", named=(), **more):
    text = printed if isinstance(printed, str) else json.dumps(printed, indent=3) + "\n"
    answers = {"systemctl": (0, "active\n"), "/usr/bin/dcgmi diag": (status, text), **more}
    machine = host(tmp_path, answers=answers, files={"/usr/bin/dcgmi": ""})
    machine.named = named
    return ask(question, machine)


@pytest.mark.parametrize(
    ("printed", "outcome", "message"),
    [
        (four(), "PASS", "passed: software"),
        (three(), "PASS", "passed: Denylist, NVML Library, CUDA Main Library, Permissions and OS Blocks, Persistence Mode, "
         "Environment Variables, Page Retirement/Row Remap, Graphics Processes, Inforom"),
        (four((0, CONFIG, PERSISTENCE)), "PASS", f"warning: software: {PERSISTENCE[:-1]}"),
        (four((0, CONFIG, PERSISTENCE), everywhere=False), "PASS", f"warning: software: {PERSISTENCE[:-1]}"),
        (three("Persistence Mode", CONFIG, PERSISTENCE), "PASS", f"warning: Persistence Mode: {PERSISTENCE[:-1]}"),
        (four((1, MONITOR, ROW)), "PASS", f"warning: software: {ROW}"),
        (four((1, RESET, ROW)), "FAIL", f"software: {ROW}."),
        (four((0, CONFIG, PERSISTENCE), (1, RESET, ROW)), "FAIL", f"software: {ROW}."),
        (four((None, TRIAGE, "No GPU answers")), "FAIL", "software: No GPU answers."),
        (three("Inforom", TRIAGE, "A corrupt InfoROM has been detected in GPU 0."), "FAIL", "Inforom: A corrupt InfoROM"),
        (four(status="Fail"), "FAIL", "software: it gave no reason."),
        (three("Inforom", status="Skip"), "PASS", f"passed: {', '.join(NAMES_OF_3[:-1])}; skipped: Inforom"),
        (four(status="Skip"), "SKIP", "DCGM skipped all of its tests: software"),
    ],
)  # fmt: skip
def test_what_dcgm_found_is_the_verdict(tmp_path, printed, outcome, message):
    verdict = diagnosed(tmp_path, printed, status=0 if outcome == "PASS" else 226)
    assert verdict[0] == outcome, verdict
    assert verdict[1] == message if outcome == "PASS" else message in verdict[1]


def runtime_error(text):
    """HelperDisplayFailureMessage of dcgmi/Diag.cpp."""
    return {"DCGM Diagnostic": {"runtime_error": text, "version": "4.6.0"}}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Error: Diagnostic could not be run because the Tesla recommended driver is not being used.", "SKIP"),
        ("Error: Diagnostic could not be run while DCGM is paused.", "SKIP"),
        ("Error: Unable to complete diagnostic. Return: (-6) : The requested operation has timed out\n", "FAIL"),
    ],
)
def test_a_diagnosis_that_did_not_run_says_why(tmp_path, text, outcome):
    words = text.strip().removeprefix("Error: ").rstrip(".")
    check(diagnosed(tmp_path, runtime_error(text), status=226), outcome, words)


def test_text_before_the_json_is_passed_over(tmp_path):
    """As NVIDIA's own tests do (testing/python3/DcgmiDiag.py, trimJsonText)."""
    assert diagnosed(tmp_path, "Some message of a library\n" + json.dumps(four()) + "\nmore\n")[0] == "PASS"


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "Error: Unable to connect to host engine. Host engine is not running.\n",
        "{",
        "[1, 2]",
        "{}",
        json.dumps({"DCGM Diagnostic": []}),
        json.dumps({"DCGM Diagnostic": {"test_categories": "many"}}),
        json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": 5, "results": 7}]}]}}),
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "x", "results": [{"status": true}]}]}]}}',
        json.dumps({"DCGM Diagnostic": {"test_categories": []}}),
        "[" * 100_000,
    ],
)
def test_what_is_no_diagnosis_fails_with_what_was_printed(tmp_path, printed):
    outcome, message = diagnosed(tmp_path, printed, status=1)
    assert outcome == "FAIL"
    assert message.startswith("dcgmi diag -r 1 -j must print a diagnosis as JSON but ended with status 1 and printed: ")
    assert len(message) < 500


def test_more_than_any_diagnosis_has_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_check.dcgm, "LARGEST", 100)
    check(diagnosed(tmp_path, four()), "FAIL", "printed more than 100 characters")


def test_texts_are_one_line_of_printable_characters_and_cut(tmp_path):
    outcome, message = diagnosed(tmp_path, four((0, RESET, "bad\n\x1b[31m" + "x" * 5000)))
    assert outcome == "FAIL"
    assert "software: bad ?[31mxxx" in message
    assert len(message) < 1000


def test_many_errors_are_counted(tmp_path):
    errors = [(0, RESET, f"error {number}") for number in range(9)]
    assert "error 4; and 4 more" in diagnosed(tmp_path, four(*errors))[1]


def test_without_dcgm_or_its_service_it_is_a_skip(tmp_path):
    assert ask("dcgm_diagnosis", host(tmp_path / "a")) == ("SKIP", "DCGM is not installed here (no /usr/bin/dcgmi)")
    answer = diagnosed(tmp_path / "b", four(), systemctl=(3, "inactive\ninactive\n"))
    check(answer, "SKIP", "systemctl start nvidia-dcgm")


def test_a_diagnosis_that_hangs_ends_after_the_limit(tmp_path):
    check(diagnosed(tmp_path, "", status=-9), "FAIL", "must end within 180 seconds")


def test_level_two_loads_the_gpus_so_it_runs_only_if_it_is_named(tmp_path, monkeypatch):
    levels = []
    monkeypatch.setattr(
        gpu_check.dcgm, "printed_diagnosis", lambda _, level: (levels.append(level), (0, json.dumps(four())))[1]
    )
    question = {"question": "dcgm_medium_diagnosis"}
    outcome, message = diagnosed(tmp_path / "a", four(), **question)
    assert (outcome, levels) == ("SKIP", [])
    assert "gpu-check dcgm_medium_diagnosis" in message
    inputs = {**question, "named": ["dcgm_medium_diagnosis"]}
    assert diagnosed(tmp_path / "b", four(), **inputs) == ("PASS", "passed: software")
    assert diagnosed(tmp_path / "c", four())[0] == "PASS"
    assert levels == [2, 1]


def test_level_two_has_a_limit_of_its_own_and_its_failure_is_one(tmp_path):
    inputs = {"question": "dcgm_medium_diagnosis", "named": ["dcgm_medium_diagnosis"]}
    assert "dcgmi diag -r 2 must end within 900 seconds" in diagnosed(tmp_path / "a", "", status=-9, **inputs)[1]
    check(diagnosed(tmp_path / "b", four((1, RESET, ROW)), status=226, **inputs), "FAIL", "dcgmi diag -r 2 -v has more")
