"""remove_packages: what goes with a package, and what stays because it was unneeded before."""

import pytest
import remove_packages
from ansible.module_utils.hadoop_dl_host import processes


class Programs:
    """Answers programs: first word and last word decide; says what ran."""

    def __init__(self, **answers):
        self.answers = {name: list(value) for name, value in answers.items()}
        self.ran = []

    def __call__(self, argv, seconds, environment):
        self.ran.append(argv)
        words = {"rpm": "rpm", "dpkg-query": "dpkg-query", "autoremove": "autoremove", "--auto-remove": "simulated"}
        kind = next((kind for word, kind in words.items() if word in argv), "remove")
        answers = self.answers.get(kind, [(0, "", "")])
        status, output, error = answers.pop(0) if len(answers) > 1 else answers[0]
        return processes.Answer(status, output, error, status is None, "it did not end" if status is None else None)


def removed(module):
    return [argv[argv.index("purge") + 1 :] for argv in module.ran if "purge" in argv and "--simulate" not in argv]


# Of apt 2.6.1, for a package whose dependency nobody else needs.
BEFORE = "Remv old-kernel [5.1]\n"
WITH_IT = "Purg nvidia-smi [535]\nPurg libnvidia-ptxjitcompiler1 [535]\nPurg nvidia-support:amd64 [1] [x]\nPurg old-kernel [5.1]\n"


def test_apt_takes_what_becomes_unneeded_and_nothing_that_was_so_before():
    """In one transaction: it goes on without its caller. After two, the rest of one that was killed between them would look unneeded before."""
    module = Programs(autoremove=[(0, BEFORE, "")], simulated=[(0, WITH_IT, "")])
    orphans = remove_packages.Packages("apt", module).remove(["nvidia-smi"])
    assert orphans == ["libnvidia-ptxjitcompiler1", "nvidia-support"]
    assert removed(module) == [["nvidia-smi", *orphans]]


def test_apt_has_nothing_more_to_do_where_nothing_becomes_unneeded():
    module = Programs(autoremove=[(0, "", "")], simulated=[(0, "Purg cuda-toolkit-12-2 [12.2]\n", "")])
    assert remove_packages.Packages("apt", module).remove(["cuda-toolkit-12-2"]) == []
    assert removed(module) == [["cuda-toolkit-12-2"]]


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_rpm_managers_clean_up_themselves(manager):
    module = Programs()
    remove_packages.Packages(manager, module).remove(["libnccl"])
    (argv,) = module.ran
    assert argv[0] == manager
    assert argv[-1] == "libnccl"
    assert any("clean_requirements_on_remove" in word for word in argv)


@pytest.mark.parametrize(
    ("manager", "answers", "found"),
    [
        ("apt", {"dpkg-query": [(0, "installed", ""), (0, "config-files", ""), (1, "", "no packages found")]}, 2),
        ("dnf", {"rpm": [(0, "", ""), (1, "", ""), (1, "", "")]}, 1),
    ],
)
def test_what_is_not_installed_is_not_removed(manager, answers, found):
    assert len(remove_packages.Packages(manager, Programs(**answers)).installed(["a", "b", "c"])) == found


NEEDED = "error: Failed dependencies:\n\tlibcudnn.so.8()(64bit) is needed by (installed) libnvinfer8-8.6.1-1.x86_64\n"
SIMULATED = "Purg libcudnn8 [8.9.7.29-1+cuda12.2]\nPurg libnvinfer8:amd64 [8.6.1]\nRemv old-kernel [5.1]\n"


@pytest.mark.parametrize(
    ("manager", "answers", "needing"),
    [
        ("dnf", {"rpm": [(1, "", NEEDED)]}, ["libnvinfer8-8.6.1-1.x86_64"]),
        ("yum", {"rpm": [(0, "", "")]}, []),
        ("apt", {"remove": [(0, SIMULATED, "")], "autoremove": [(0, "Remv old-kernel [5.1]\n", "")]}, ["libnvinfer8"]),
        ("apt", {"remove": [(0, "Purg libcudnn8 [8.9]\n", "")], "autoremove": [(0, "", "")]}, []),
    ],
)
def test_what_others_need_is_told(manager, answers, needing):
    module = Programs(**answers)
    assert remove_packages.Packages(manager, module).needing(["libcudnn8"]) == needing
    assert all("--test" in argv or "--simulate" in argv for argv in module.ran)


def test_a_failure_says_the_command_and_its_words():
    module = Programs(remove=[(100, "", "E: Held packages were changed")], autoremove=[(0, "", "")])
    with pytest.raises(remove_packages.Refused, match="status 100: E: Held packages"):
        remove_packages.Packages("apt", module).remove(["libcuda1"])


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_a_lock_of_another_package_manager_is_waited_for_and_not_forever(manager, monkeypatch):
    """dnf(8): exit status 200 is a lock that another process holds; without exit_on_lock it waits without end."""
    monkeypatch.setattr(remove_packages, "LOCK_PAUSE", 0.01)
    lock_answer = (200, "", "Failed to obtain the transaction lock")
    programs = Programs(remove=[lock_answer, lock_answer, (0, "", "")])
    remove_packages.Packages(manager, programs).remove(["libnccl"])
    assert len(programs.ran) == 3
    assert any("exit_on_lock" in word for word in programs.ran[0])
    monkeypatch.setattr(remove_packages, "LOCK_WAIT", 0.05)
    with pytest.raises(
        remove_packages.Refused, match="has held the lock for 0 s: Failed to obtain the transaction lock"
    ):
        remove_packages.Packages(manager, Programs(remove=[lock_answer])).remove(["libnccl"])


def test_a_question_that_does_not_end_is_no_answer():
    with pytest.raises(remove_packages.Refused, match="must answer, but it did not end"):
        remove_packages.Packages("dnf", Programs(rpm=[(None, "", "")])).installed(["libnccl"])
