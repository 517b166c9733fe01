"""playbooks/accept_gpus.yml: measures of several hosts, and which of them are outliers."""

from typing import Any

import pytest
from ansible_programs import READ_ONLY, run

from hadoop_dl.data import typed
from hadoop_dl.hosts import gpu_acceptance

CARD = "Tesla V100-SXM2-16GB"
GPUS = ("0000:3b:00.0", "0000:3c:00.0")
STEPS = ("idle_gpus_measured", "host_copies", "memory_copies", "peer_copies", "nccl_all_reduce")


def measure(gpu: str, kind: str, speed: int, peer: str = "", link: str = "PCIe 3 x16", limit: int = 15_760) -> Any:
    return {"gpu": gpu, "peer": peer, "kind": kind, "link": link, "speed": speed, "limit": limit}


def answer(slow: dict[str, int] | None = None, nvlink: str = "NV2", outcome: str = "PASS") -> dict[str, Any]:
    """What a host with two V100 and two NVLinks answers; `slow`: other speeds of its first card."""
    speeds = {"host to GPU": 12_300, "GPU to host": 13_100, "memory": 720_000, "GPU to GPU": 48_000}
    measures = []
    for gpu, peer in (GPUS, GPUS[::-1]):
        gpu_speeds = {**speeds, **(slow or {})} if gpu == GPUS[0] else speeds
        measures += [measure(gpu, kind, gpu_speeds[kind]) for kind in ("host to GPU", "GPU to host")]
        measures.append(measure(gpu, "memory", gpu_speeds["memory"], link="", limit=898_048))
        measures.append(measure(gpu, "GPU to GPU", gpu_speeds["GPU to GPU"], peer, nvlink, 51_562))
    results = [{"name": name, "outcome": outcome, "message": "text", "question": "?"} for name in STEPS]
    return {"results": results, "cards": dict.fromkeys(GPUS, CARD), "measures": measures}


def hosts(**answers: Any) -> dict[str, gpu_acceptance.Acceptance]:
    return {name: typed.read(gpu_acceptance.Acceptance, host_answer) for name, host_answer in answers.items()}


def test_hosts_that_are_alike_are_accepted_with_a_line_for_each_kind_of_copy():
    answers = hosts(data1=answer(), data2=answer({"host to GPU": 11_900}))
    assert gpu_acceptance.refusal(answers) == ""
    assert gpu_acceptance.text(answers).splitlines() == [
        "ACCEPTANCE: 2 of 2 hosts were measured.",
        "",
        "Measured, in GB/s:",
        "  GPU                   copy         way     measured  lowest  median  highest",
        "  Tesla V100-SXM2-16GB  GPU to GPU   NVLink  4         48.0    48.0    48.0",
        "  Tesla V100-SXM2-16GB  GPU to host          4         13.1    13.1    13.1",
        "  Tesla V100-SXM2-16GB  host to GPU          4         11.9    12.3    12.3",
        "  Tesla V100-SXM2-16GB  memory               4         720.0   720.0   720.0",
    ]


def test_what_is_slower_than_on_the_others_is_in_one_table():
    """The slow ones pass on their own: 8.9 of 15.8 GB/s is more than half."""
    slow = {"host to GPU": 8_900, "GPU to GPU": 26_000}
    answers = hosts(data1=answer(), data2=answer(slow, nvlink="NV1"), data3=answer())
    lines = gpu_acceptance.text(answers).splitlines()
    at = lines.index("Outliers: below 80% of the median of their kind:")
    assert lines[at + 1 :] == [
        "  host   GPU           copy         to            link        GB/s  median  of  possible",
        "  data2  0000:3b:00.0  GPU to GPU   0000:3c:00.0  NV1         26.0  48.0    6   51.6",
        "  data2  0000:3b:00.0  host to GPU                PCIe 3 x16  8.9   12.3    6   15.8",
    ]
    assert gpu_acceptance.refusal(answers).startswith("GPUs of data2 must be ")


def test_other_cards_and_other_ways_are_not_compared():
    other_answer = answer({"host to GPU": 3_000, "memory": 240_000})
    other_answer["cards"] = dict.fromkeys(GPUS, "Tesla T4")
    sys_answer = answer({"GPU to GPU": 5_000}, nvlink="SYS")
    answers = hosts(data1=answer(), data2=answer(), data3=other_answer, data4=sys_answer)
    assert gpu_acceptance.outliers(answers) == []
    assert "  Tesla V100-SXM2-16GB  GPU to GPU   SYS     2         5.0" in gpu_acceptance.text(answers)


def test_two_measures_have_no_usual_value():
    assert gpu_acceptance.outliers(hosts(data1=answer({"memory": 400_000}))) == []


def test_failures_and_hosts_without_an_answer_are_lines_and_refuse():
    failed_answer = {**answer(), "measures": []}
    failed_answer["results"][0] |= {"outcome": "FAIL", "message": "busy: python"}
    answers = hosts(data1=answer(), data2=failed_answer, data3={"unanswered": "Connection refused"})
    lines = gpu_acceptance.text(answers).splitlines()
    assert lines[0] == "ACCEPTANCE: 1 of 3 hosts were measured."
    assert lines[lines.index("Failed:") + 1 :] == [
        "  data2: idle_gpus_measured: busy: python",
        "  data3: Connection refused",
    ]
    assert gpu_acceptance.refusal(answers).startswith("GPUs of data2, data3 must be ")


def test_where_nothing_was_measured_nothing_is_accepted():
    skipped_answer = {**answer(outcome="SKIP"), "measures": []}
    answers = hosts(edge1=skipped_answer)
    assert "Not measured:\n  edge1: text" in gpu_acceptance.text(answers)
    assert "none was" in gpu_acceptance.refusal(answers)
    assert gpu_acceptance.refusal(hosts(edge1=skipped_answer, data1=answer())) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"speed": -1},
        {"speed": 10**12},
        {"speed": "12300"},
        {"kind": "{{ lookup('env', 'HOME') }}"},
        {"gpu": "../../etc"},
        {"peer": None},
    ],
)
def test_an_answer_of_another_form_is_none(change):
    invalid_answer = answer()
    invalid_answer["measures"][0].update(change)
    with pytest.raises(typed.TypedError):
        typed.read(gpu_acceptance.Acceptance, invalid_answer)


def test_names_of_cards_are_cut_to_one_line():
    acceptance = typed.read(gpu_acceptance.Acceptance, {**answer(), "cards": {GPUS[0]: "Tesla\n\x1b[31m" + "x" * 500}})
    assert acceptance.cards is not None
    assert len(acceptance.cards[GPUS[0]]) == 60
    assert acceptance.cards[GPUS[0]].isprintable()


def test_the_playbook_measures_nothing_on_this_machine_and_says_so(tmp_path):
    (tmp_path / "hosts").write_text(f"[data_nodes]\ndata1 {READ_ONLY}\n", encoding="utf-8")
    completed = run("ansible-playbook", "-i", tmp_path / "hosts", "playbooks/accept_gpus.yml")
    assert completed.returncode == 2, completed.stdout + completed.stderr
    assert "ACCEPTANCE: 0 of 1 hosts were measured." in completed.stdout
    assert "Not measured:\n  data1: " in completed.stdout  # a machine without GPUs, or a container
    assert "GPUs of at least one host must be measured, but none was" in completed.stdout
