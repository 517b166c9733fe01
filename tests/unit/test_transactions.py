"""What dnf and yum answer to a transaction that is only solved. dnf's words are those of 4.14 (answers to small packages), yum's are from its cli.py."""

import pytest

from hadoop_dl.hosts import transactions
from hadoop_dl.hosts.os_packages import Package, Source

DNF, YUM = Source("dnf", "deeplearning-x", "http://mirror01/el9"), Source("yum")
AGAIN = "Dependencies resolved.\nNothing to do.\nComplete!\n"
TABLE = """================================================================================
 Package         Architecture         Version            Repository        Size
================================================================================
Installing:
 c               noarch               2-1                r                5.4 k
     replacing  x.noarch 1-1
Upgrading:
 kmod-nvidia-latest-dkms-long
                 noarch               3:2-1              r                5.3 k
Removing:
 b               noarch               1-1                @r                 0
{}
Transaction Summary
================================================================================
Install  1 Package

Total size: 11 k
"""
UNSOLVED = """
 Problem: problem with installed package b-1-1.noarch
  - package b-1-1.noarch requires a = 1, but none of the providers can be installed
  - package d-2-1.noarch requires k = 2, but none of the providers can be installed
  - nothing provides libnone needed by a-3-1.noarch
Nothing to do.
Complete!
"""
NO_MATCH = "No match for argument: zz\n"
ABORTED = "Error: Operation aborted.\n"
DEPENDENT = "Removing dependent packages:\n own            noarch            1-1               @r              0\n"
YUM_UNSOLVED = """Error: Package: c-2-1.noarch (r)
           Requires: a = 2
           Available: a-1-1.noarch (r)
"""


@pytest.mark.parametrize(
    ("source", "output", "error", "words"),
    [
        (DNF, TABLE.format(""), ABORTED, []),
        (DNF, "Package a-1-1.noarch is already installed.\n" + AGAIN, "", []),
        (
            DNF,
            UNSOLVED + AGAIN,
            "",
            ["dnf reports: Problem: problem with", "requires a = 1", "nothing provides libnone"],
        ),
        (DNF, NO_MATCH + TABLE.format(""), "Error: Unable to find a match: zz\n" + ABORTED, ["a match: zz"]),
        (DNF, TABLE.format(DEPENDENT), ABORTED, ["that require what leaves: own"]),
        (DNF, "", "Failed to obtain the lock\n", ["Failed to obtain the lock"]),
        (DNF, "", "", ["dnf reports: nothing"]),
        (DNF, "", "Error: Failed to download metadata for repo 'r': x\n", ["Failed to download metadata"]),
        (YUM, TABLE.format("") + "Exiting on user command\nTransaction didn't start\n", "", []),
        (YUM, "", YUM_UNSOLVED, ["yum reports: Error: Package: c-2-1.noarch (r) Requires: a = 2"]),
        (YUM, TABLE.format(DEPENDENT.replace("dependent packages", "for dependencies")), ABORTED, ["leaves: own"]),
    ],
)
def test_what_the_solver_answers(source, output, error, words):
    text = " ".join(transactions.reasons(source, output, error, ""))
    assert [word for word in words if word not in text] == []
    assert bool(text) is bool(words)


def test_both_ends_of_a_long_answer_are_reported():
    (reason,) = transactions.reasons(
        DNF, "\n Problem: first\n" + "  - package\n" * 90 + "  - nothing provides last\n", "", ""
    )
    assert len(reason) < 720
    assert reason.startswith("dnf reports: Problem: first")
    assert reason.endswith("nothing provides last")


@pytest.mark.parametrize(
    ("line", "excludes"),
    [
        ("c-0:1-1.*", True),
        ("0:c-1-1.*", True),  # yum's form
        ("c-0:2-1.*", False),
        ("0:c-2-1.*", False),
        ("kmod-nvidia-*-3:1-1.*", True),
        ("kmod-nvidia-*-3:2-*.noarch", False),
        ("!c-0:2-1.*", True),
        ("!c-0:1-1.*", False),
        ("b-0:1-1.*", False),  # it leaves
        ("other-0:1-1.*", False),
        ("#c-0:1-1.*", False),
    ],
)
def test_a_lock_of_the_site_that_excludes_a_package_is_named(line, excludes):
    own_locks = "# BEGIN deeplearning nvidia_driver\nc-0:1-1.*\n# END deeplearning nvidia_driver\n"
    reasons = list(transactions.reasons(DNF, TABLE.format(""), ABORTED, f"{own_locks}\n# site\n{line}\n"))
    assert reasons == [f"{transactions.LOCKS['dnf']} has locks that are not of this project: {line}"] * excludes


def test_nothing_is_done_to_solve_a_transaction():
    packages = [Package("a", "1.2"), Package("b")]
    argv = transactions.exchange(DNF, packages, ["x"], ["kernel"], solve=True)
    assert argv[4:7] == ["remove x\ninstall a-1.2 b\nrun", "dnf", "--assumeno"]
    assert {"--disableplugin=versionlock", "--exclude=kernel", "--enablerepo=deeplearning-x"} <= set(argv)
    assert "--assumeyes" not in argv
    assert transactions.exchange(YUM, packages, [], [], solve=True)[4] == "install a-1.2 b\ndowngrade a-1.2 b\nrun"


def test_a_solution_names_what_comes_changes_and_goes_and_every_section_that_it_does_not_know():
    skipped = "Skipping packages with conflicts:\n s               noarch               4-1                r                1 k\n"
    installed = "kmod-nvidia-latest-dkms-long.noarch 3:1-1\nb.noarch 1-1\n"
    assert transactions.solution(TABLE.format(skipped), installed) == {
        "comes": ["c-2-1.noarch"],
        "changes": ["kmod-nvidia-latest-dkms-long.noarch 3:1-1 -> 3:2-1"],
        "goes": ["b-1-1.noarch", "x-1-1.noarch"],
        "other": ["Skipping packages with conflicts: s-4-1.noarch"],
    }
    assert not any(transactions.solution(AGAIN).values())


YUM_TABLE = """Dependencies Resolved
{rule}
 Package           Arch         Version             Repository           Size
{rule}
Updating:
 a                 noarch       2-1                 r                   5.4 k
Removing for dependencies:
 b                 noarch       1-1                 @r                    0
Installing for dependencies:
 c                 noarch       1:2-1               r                   5.4 k
"""


def test_yums_sections_are_read_too():
    solution = transactions.solution(YUM_TABLE.format(rule="=" * 80), "a.noarch 1-1\n")
    assert solution == {
        "comes": ["c-1:2-1.noarch"],
        "changes": ["a.noarch 1-1 -> 2-1"],
        "goes": ["b-1-1.noarch"],
        "other": [],
    }
