"""What plan.yml -e plan_packages=true prints of the answers of hosts: lib/hadoop_dl/hosts/package_plan.py."""

from hadoop_dl.hosts import package_plan

SOLUTION = {
    "comes": ["new-3:2-1.x86_64"],
    "changes": ["kmod.x86_64 3:1-1 -> 3:2-1"],
    "goes": ["old-3:1-1.x86_64"],
    "other": [],
}
SOLVED = {"results": [{"item": {"title": "Driver 550.54.15"}, "solution": SOLUTION}]}
NO_WORK = {"results": [{"item": {"title": "Driver 550.54.15"}, "solution": dict.fromkeys(SOLUTION, [])}]}


def refused(host: str) -> dict[str, object]:
    return {
        "failed": True,
        "msg": "One or more items failed",
        "results": [{}, {"failed": True, "msg": f"{host} lacks\n\x1b[31mdkms."}],
    }


def test_hosts_with_the_same_answer_are_one_row():
    answers = {f"data{number}": package_plan.answer_of("", SOLVED, None) for number in range(1, 8)}
    answers |= {name: package_plan.answer_of(name, None, refused(name)) for name in ("gpu1", "gpu1.b")}
    answers["gpu3"] = package_plan.answer_of("gpu3", NO_WORK, None)
    answers["gpu4"] = package_plan.answer_of("gpu4", {"results": [], "skipped": True}, None)
    occupants = {
        "data1": {"occupants": ["application_1_1 (ann: x)"]},
        "data2": {"occupants": []},
        "gpu1": {"skipped": True},
    }
    occupants["gpu3"] = {"failed": True, "msg": "The ResourceManager must answer"}
    text = package_plan.text(answers, ["data1", "data2", "gpu1", "gpu3", "gpu4"], occupants)
    assert text.splitlines() == [
        "PACKAGES of the driver on 11 hosts, solved by their own dnf or yum; no host was changed.",
        "  data1, data2, data3, data4 and 3 more",
        "    Driver 550.54.15",
        "      comes   new-3:2-1.x86_64",
        "      changes kmod.x86_64 3:1-1 -> 3:2-1",
        "      goes    old-3:1-1.x86_64",
        "  gpu1, gpu1.b",
        "    no transaction: the host lacks \N{REPLACEMENT CHARACTER}[31mdkms.",
        "  gpu3",
        "    Driver 550.54.15",
        "      nothing to do",
        "  gpu4",
        "    no package changes",
        "RUNNING now on the first batch, 5 of these hosts (upgrade_batch):",
        "  data1: application_1_1 (ann: x)",
        "  data2: nothing of YARN",
        "  gpu1: not known, because no host is in the groups resource_managers and masters",
        "  gpu3: not known: The ResourceManager must answer",
        "  gpu4: not known: no answer",
    ]


def test_a_host_without_a_transaction_fails_the_plan():
    good, lost = package_plan.answer_of("a", SOLVED, None), package_plan.answer_of("b", None, None)
    assert package_plan.failure({"a": good}) == ""
    assert "on each of its 2 hosts, but not on b" in package_plan.failure({"a": good, "b": lost})
    assert "it did not answer" in lost.refusal
