"""gpu-check against drivers from 418 to 580: what a branch does not report is no fault, and what a card reports is one."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from gpu_check.cli import results
from gpu_check.questions import QUESTIONS
from gpu_check_hosts import ask, check, fails, host
from nvidia_smi import BRANCHES, PROGRAM, written
from python_files import load

# In this process: a start of Python for each question would take most of the time. test_nvidia_smi_stand_in.py starts the program.
STAND_IN = load(PROGRAM.resolve())

ASKED_OF_NVIDIA_SMI = (
    *("gpus_by_driver_as_declared", "driver_runs", "persistence", "compute_mode", "ecc_errors", "retired_pages"),
    *("recovery_action", "pcie_width", "inforom", "throttling"),
)
GPU = {"name": "A100", "uuid": "GPU-0", "bus_id": "00000000:3B:00.0", "persistence_mode": "Enabled"}


def asked(directory, branch, names=ASKED_OF_NVIDIA_SMI, gpu=None, answers=None, **state):
    """Outcome and message by question, of a host whose nvidia-smi is the stand-in of this branch."""
    machine = host(directory, answers=answers)
    STAND_IN.STATE = str(directory / "state.json")
    original = machine.execute

    def execute(argv, seconds=None):
        if argv[0] != "nvidia-smi":
            return original(argv)
        written(directory, driver=BRANCHES[branch], gpus=[{**GPU, **(gpu or {})}], **state)
        with redirect_stdout(StringIO()) as output:
            return STAND_IN.main(argv[1:]), output.getvalue()

    machine.execute = execute
    return {check["name"]: (check["outcome"], check["message"]) for check in results(machine, names)}


@pytest.mark.parametrize("branch", BRANCHES)
def test_no_question_fails_on_a_healthy_gpu(tmp_path, branch):
    checks = asked(tmp_path, branch)
    assert {name: message for name, (outcome, message) in checks.items() if outcome == "FAIL"} == {}


UNKNOWN = "this driver does not report gpu_recovery_action"
RESET = "reset_status.reset_required"
DRAIN = "reset_status.drain_and_reset_recommended"
HOT = {"clocks_throttle_reasons.hw_thermal_slowdown": "Active"}


@pytest.mark.parametrize(
    ("branch", "gpu", "question", "outcome", "words"),
    [
        (418, {}, "recovery_action", "SKIP", [UNKNOWN]),
        (470, {}, "recovery_action", "SKIP", [UNKNOWN]),
        (535, {}, "recovery_action", "PASS", ["GPU 0: None"]),
        (535, {RESET: "Yes"}, "recovery_action", "FAIL", [f"GPU 0: {RESET}. Drain the host"]),
        (535, {DRAIN: "Yes"}, "recovery_action", "FAIL", [f"GPU 0: {DRAIN}. Drain"]),
        (535, {RESET: "[N/A]"}, "recovery_action", "PASS", ["GPU 0: [N/A]"]),
        (418, {}, "retired_pages", "PASS", ["does not report", "retired_pages.pending: GPU 0: No"]),
        (418, {}, "throttling", "PASS", ["none"]),
        (418, HOT, "throttling", "FAIL", ["GPU 0: heat"]),
        (470, {}, "throttling", "PASS", ["none"]),
        (470, HOT, "throttling", "FAIL", ["GPU 0: heat"]),
    ],
)
def test_an_older_driver_is_asked_for_what_its_branch_reports(tmp_path, branch, gpu, question, outcome, words):
    check(asked(tmp_path, branch, gpu=gpu)[question], outcome, *words)


@pytest.mark.parametrize("branch", [470, 535, 580])
@pytest.mark.parametrize(
    ("field", "words"),
    [("remapped_rows.pending", "wait to be remapped: drain the host"), ("remapped_rows.failure", "replace the card")],
)
def test_a_row_that_waits_or_could_not_be_remapped_fails(tmp_path, branch, field, words):
    check(asked(tmp_path, branch, gpu={field: "Yes"})["retired_pages"], "FAIL", words)


BRAKE = {"clocks_event_reasons.hw_power_brake_slowdown": "Active"}


@pytest.mark.parametrize(
    ("gpu", "question", "outcome", "words"),
    [
        ({"gpu_recovery_action": "Drain and Reset"}, "recovery_action", "FAIL", ["GPU 0: Drain and Reset"]),
        ({"compute_mode": "Prohibited"}, "compute_mode", "FAIL", ["nvidia-smi -i 0 -c DEFAULT"]),
        ({"retired_pages.pending": "Yes"}, "retired_pages", "FAIL", ["reboot the host"]),
        ({}, "ecc_errors", "PASS", ["GPU 0: 0"]),
        ({"ecc.errors.uncorrected.volatile.total": "[N/A]"}, "ecc_errors", "PASS", ["N/A"]),
        ({"ecc.errors.uncorrected.volatile.total": "3"}, "ecc_errors", "FAIL", ["GPU 0: 3", "replace the card"]),
        ({}, "persistence", "PASS", ["on"]),
        ({"persistence_mode": "Disabled"}, "persistence", "FAIL", ["nvidia-persistenced", "systemctl enable"]),
        ({}, "pcie_width", "PASS", ["full"]),
        ({"pcie.link.width.current": "8"}, "pcie_width", "FAIL", ["x8 of x16", "If the GPU was idle"]),
        ({"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "Yes"}, "retired_pages", "FAIL", ["SRAM"]),
        ({"clocks_event_reasons.hw_thermal_slowdown": "Active"}, "throttling", "FAIL", ["GPU 0: heat. Look at"]),
        (BRAKE, "throttling", "FAIL", ["GPU 0: power brake. Look at"]),
    ],
)
def test_what_a_card_reports_passes_or_fails_with_what_to_do(tmp_path, gpu, question, outcome, words):
    check(asked(tmp_path, 580, gpu=gpu)[question], outcome, *words)


# nvidia-smi(1): status 14, "infoROM is corrupted"; the field's values are valid, invalid and N/A. The warning's words:
# Linux/test/nvidia-smi.bats of https://github.com/Azure/azhpc-diagnostics.
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_corrupted_inforom_is_a_question_of_its_own(tmp_path, branch):
    checks = asked(tmp_path, branch, gpu={"inforom.checksum_validation": "invalid"})
    check(checks.pop("inforom"), "FAIL", "0000:3B:00.0")
    assert [name for name, (outcome, _) in checks.items() if outcome == "FAIL"] == []


@pytest.mark.parametrize("rows", ["0, 0\n", "0, 0\n0, 0\n", "0, 0\n1, 0\n2, 0\n"])
def test_an_answer_about_other_gpus_than_the_listed_ones_is_a_failure(tmp_path, rows):
    machine = host(tmp_path, gpus=2, answers={"nvidia-smi": (0, rows)})
    fails("ecc_errors", machine, "must answer for each of the 2 GPUs that it lists, but did for 0")


@pytest.mark.parametrize("words", ["Option is not recognized.", 'Field "other" is not a valid field to query.'])
def test_a_refusal_that_names_no_field_of_the_question_is_a_failure(tmp_path, words):
    machine = host(tmp_path, answers={"nvidia-smi": (2, words + "\n")})
    for question in ("driver_runs", "ecc_errors", "fabric_manager", "persistence"):
        fails(question, machine, f"ended with status 2: {words}")


def test_what_no_card_reports_is_no_pass(tmp_path):
    def execute(argv):
        fields = argv[1].partition("=")[2].split(",")[1:]
        return (2, f'Field "{fields[0]}" is not a valid field to query.') if fields else (0, "0\n")

    machine = host(tmp_path, answers={"nvidia-smi": (0, "0, [N/A], [N/A]\n")})
    check(ask("pcie_width", machine), "SKIP", "no GPU here reports the width of its link")
    machine.execute, machine.answers = execute, {}
    check(ask("retired_pages", machine), "SKIP", "this driver does not report retired_pages.pending")


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ({}, "FAIL"),
        ({"fabric.state": "In Progress", "fabric.status": "N/A"}, "FAIL"),
        ({"fabric.state": "Not Started", "fabric.status": "N/A"}, "FAIL"),
        ({"fabric.state": "Completed", "fabric.status": "Invalid Parameter"}, "FAIL"),
        ({"fabric.state": "Completed", "fabric.status": "Success"}, "PASS"),
        ({"fabric.state": "N/A", "fabric.status": "N/A"}, "PASS"),  # GPUs before Hopper
    ],
)
def test_a_gpu_that_has_not_joined_the_fabric_fails(tmp_path, state, outcome):
    switch = tmp_path / "sys/bus/pci/devices/switch"
    switch.mkdir(parents=True)
    (switch / "vendor").write_text("0x10de\n")
    (switch / "class").write_text("0x068000\n")
    daemon = {"systemctl": (0, "active")} if state else {"systemctl": (3, "inactive")}
    assert asked(tmp_path, 580, ["fabric_manager"], gpu=state, answers=daemon)["fabric_manager"][0] == outcome


def test_switches_behind_infiniband_bridges_require_the_fabric_manager(tmp_path):
    """From NVLink 5 on the switches are no PCI devices of the host: rhel10/nvidia-driver of github.com/NVIDIA/gpu-driver-container."""
    bridge = tmp_path / "sys/class/infiniband/mlx5_4/device"
    bridge.mkdir(parents=True)
    (bridge / "vpd").write_bytes(b"\x82\x10\x00NVIDIA ConnectX-7 SW_MNG")
    daemon = {"systemctl": (3, "inactive")}
    check(asked(tmp_path, 580, ["fabric_manager"], answers=daemon)["fabric_manager"], "FAIL", "it is inactive")


COMPUTING = [name for name, function in QUESTIONS if function.__module__ == "gpu_check.compute"]


@pytest.mark.parametrize("name", COMPUTING)
def test_questions_that_compute_leave_busy_gpus_alone(tmp_path, name):
    busy = {"processes": [{"pid": 4711, "name": "python3"}]}
    check(
        asked(tmp_path, 535, COMPUTING, **busy)[name],
        "SKIP",
        "1 processes compute on the GPUs (4711, python3)",
        f"gpu-check {name}",
    )


def test_a_question_that_computes_is_asked_where_it_was_named(tmp_path):
    machine = host(tmp_path, answers={"nvidia-smi": (0, "4711, python3\n"), "ldconfig": (0, "")})
    machine.named = ["tensorflow_lists_gpus"]
    (check,) = results(machine, ["tensorflow_lists_gpus"])
    assert "no environment is installed here" in check["message"]
