"""gpu-check's questions about the cards: memory, errors, links."""

import pytest
from gpu_check_hosts import ask, host, rows


@pytest.mark.parametrize(
    ("name", "line", "outcome", "word"),
    [
        ("persistence", "0, Enabled", "PASS", "on"),
        ("persistence", "0, Disabled", "FAIL", "systemctl enable"),
        ("ecc_errors", "0, 0", "PASS", "GPU 0: 0"),
        ("ecc_errors", "0, 3", "FAIL", "replace the card"),
        ("ecc_errors", "0, [N/A]", "PASS", "N/A"),
        ("retired_pages", "0, Yes", "FAIL", "replace the card"),
        ("pcie_width", "0, 8, 16", "FAIL", "x8 of x16"),
        ("pcie_width", "0, 16, 16", "PASS", "full"),
    ],
)
def test_health(tmp_path, name, line, outcome, word):
    found = ask(name, host(tmp_path, answers=rows(line)))
    assert found[0] == outcome
    assert word in found[1]


def test_an_xid_in_the_log_fails_with_its_number(tmp_path):
    outcome, message = ask(
        "xid", host(tmp_path, answers={"dmesg": (0, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")})
    )
    assert outcome == "FAIL"
    assert "79 at PCI:0000:3b:00" in message


XID = "[1.0] NVRM: Xid (PCI:0000:3b:00): %d, pid=1234, name=python3, a text\n"
SXID = "[1.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): %d, %s, Link 28 RX Short Error Rate\n"


@pytest.mark.parametrize(
    ("log", "outcome", "words"),
    [
        ("nothing", "PASS", "none"),
        (
            XID % 13 + XID % 31,
            "PASS",
            "warning, a program's fault: Xid 13 at PCI:0000:3b:00 (graphics engine exception), Xid 31",
        ),
        (XID % 13 + XID % 79, "FAIL", "Xid 79 at PCI:0000:3b:00. Look"),
        (XID % 48, "FAIL", "Xid 48"),
        (XID % 119, "FAIL", "Xid 119"),
        (SXID % (12028, "Fatal"), "FAIL", "SXid 12028 at PCI:0000:c3:00.0"),
        (SXID % (20009, "Non-fatal"), "PASS", "SXid 20009 at PCI:0000:c3:00.0 (non-fatal)"),
    ],
)
def test_errors_of_programs_warn_and_errors_of_the_hardware_fail(tmp_path, log, outcome, words):
    found = ask("xid", host(tmp_path, answers={"dmesg": (0, log)}))
    assert found[0] == outcome
    assert words in found[1]
