"""remove_packages: what goes with a package, and whose lock is waited for."""

import pytest
import remove_packages
from ansible.module_utils.hadoop_dl_host import processes


class Programs:
    """Answers programs: the first word decides; says what ran."""

    def __init__(self, **answers):
        self.answers = {name: list(value) for name, value in answers.items()}
        self.ran = []

    def __call__(self, argv, seconds, environment):
        self.ran.append(argv)
        answers = self.answers.get("rpm" if argv[0] == "rpm" else "remove", [(0, "", "")])
        status, output, error = answers.pop(0) if len(answers) > 1 else answers[0]
        return processes.Answer(status, output, error, status is None, "it did not end" if status is None else None)


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_rpm_managers_clean_up_themselves(manager):
    module = Programs()
    remove_packages.Packages(manager, module).remove(["libnccl"])
    (argv,) = module.ran
    assert argv[0] == manager
    assert argv[-1] == "libnccl"
    assert any("clean_requirements_on_remove" in word for word in argv)


def test_what_is_not_installed_is_not_removed():
    programs = Programs(rpm=[(0, "", ""), (1, "", ""), (1, "", "")])
    assert remove_packages.Packages("dnf", programs).installed(["a", "b", "c"]) == ["a"]


NEEDED = "error: Failed dependencies:\n\tlibcudnn.so.8()(64bit) is needed by (installed) libnvinfer8-8.6.1-1.x86_64\n"


@pytest.mark.parametrize(
    ("manager", "answer", "needing"),
    [("dnf", (1, "", NEEDED), ["libnvinfer8-8.6.1-1.x86_64"]), ("yum", (0, "", ""), [])],
)
def test_what_others_need_is_told(manager, answer, needing):
    module = Programs(rpm=[answer])
    assert remove_packages.Packages(manager, module).needing(["libcudnn8"]) == needing
    assert all("--test" in argv for argv in module.ran)


def test_a_failure_says_the_command_and_its_words():
    module = Programs(remove=[(1, "", "Error: No packages marked for removal.")])
    with pytest.raises(remove_packages.Refused, match="status 1: Error: No packages marked"):
        remove_packages.Packages("dnf", module).remove(["libcuda1"])


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
