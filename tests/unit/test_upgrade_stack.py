"""Another stack, hosts that are directories: what is shown and asked, and canaries. The real ansible-playbook runs the layers of upgrade_stack.yml."""

import getpass
import json
import os
import shutil
import sys
from pathlib import Path

import ansible_programs
import pytest
from environments import point
from upgrade_hosts import GROUPS, NEW, OLD, active, canary

from hadoop_dl.hosts import canaries, stack_change


def run(cluster: Path, *options: str, **variables: object) -> tuple[int, str]:
    arguments = ("-i", cluster / "hosts.yml", cluster / "upgrade.yml", *options, "-e", json.dumps(variables))
    return ansible_programs.play(*arguments, timeout=300)


def test_without_a_terminal_and_without_assume_yes_nothing_is_changed(cluster):
    code, output = run(cluster)
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    assert "No host was changed. Type yes, or add -e assume_yes=true if there is no terminal." in output


def test_what_changes_is_shown_and_a_confirmed_upgrade_switches_all_hosts_and_again_changes_none(cluster):
    code, output = run(cluster, assume_yes=True)
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, NEW)), output
    assert f"data1, data2, edge1: {OLD} -> {NEW}" in output
    assert " TensorFlow 1.0 1.4.1 " in output
    assert " TensorFlowOnSpark none 1.4.4 " in output
    assert " Java unknown 8 " in output, "the old stack is none of those that this project knows"
    assert " numpy none 1.16.6 " in output
    assert all((cluster / name / "envs" / OLD).is_dir() for name in GROUPS), "the way back"
    code, output = run(cluster, needed=False)
    assert code == 0, output
    assert f"{NEW} is installed and active on every host already. No host was changed." in output
    assert "changed=0" in output
    assert "changed=1" not in output


def without_old(root: Path) -> None:
    (root / "current").unlink()
    shutil.rmtree(root / "envs" / f"{OLD}.1")
    (root / "envs" / OLD).unlink()


def test_a_job_that_fails_sends_each_canary_back_to_what_it_had_and_stops(cluster):
    """One canary had nothing, one was switched by a killed run and has no way back, one had OLD."""
    without_old(cluster / "data1")
    without_old(cluster / "data2")
    point(cluster / "data2", f"envs/{NEW}")
    code, output = run(cluster, **canary("echo the executors say no; exit 3", "data1,data2"))
    assert code == 2, output
    assert not (cluster / "data1" / "current").is_symlink()
    assert os.readlink(cluster / "data2" / "current") == f"envs/{NEW}"
    assert os.readlink(cluster / "edge1" / "current") == f"envs/{OLD}"
    assert "ended with status 3: the executors say no" in output
    assert "Without an active environment, as before: data1." in output
    assert f"Not back, so {NEW} may be active there: data2. No other host was switched." in output
    assert "Back at" not in output


def test_after_a_canarys_job_that_failed_the_same_command_tries_again_and_the_others_follow(cluster):
    """With no environments to keep, the old one stays until all have switched: executors of its job, and of other jobs, may run anywhere.

    Both jobs lose their connection: once when they have started, and once when they are asked for.
    """
    over_ssh(cluster, "for a moment")
    code, output = run(cluster, **canary("sleep 2; exit 3"))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    assert "ended with status 3" in output, "recorded, although the connection was lost"
    assert "Back at what was active before: data1. No other host was switched." in output
    assert all((cluster / name / "envs" / NEW).is_dir() for name in GROUPS)
    assert not list(cluster.glob("*/.run.json"))
    look = f"readlink {cluster}/*/current | sort | uniq -c; echo $DEEPLEARNING_ENVIRONMENT $DIRECTORY; ls -d {cluster}/*/envs/{OLD} | wc -l"
    example = ansible_programs.REPOSITORY / "examples/digits"
    look += f"; diff -r --exclude=__pycache__ . {example} && stat -c %a . && stat -c %U . data run.sh data/*.gz"
    (cluster / "begun").unlink()
    code, output = run(cluster, **canary(f"sleep 2; ({look}) > {cluster}/seen", "data1,edge1"), environment_keep=0)
    assert code == 0, output
    assert (cluster / "begun").exists(), "the connection was lost again"
    words = (cluster / "seen").read_text().split()
    own = f"hdfs:///user/{getpass.getuser()}/deeplearning-canary"  # not the user's digits
    assert words[:7] == ["2", f"envs/{NEW}", "1", f"envs/{OLD}", NEW, own, "3"]
    assert words[7:] == ["700", *[getpass.getuser()] * 4], "the example, nothing else, and its owner"
    assert active(cluster) == dict.fromkeys(GROUPS, NEW)
    assert not any((cluster / name / "envs" / OLD).exists() for name in GROUPS)
    assert not (cluster / "evaluated").exists(), "what a broken connection printed is data"


def test_a_canary_that_is_not_ready_keeps_all_canaries_and_all_hosts(cluster):
    shutil.rmtree(next((cluster / "data2" / "envs" / f"{NEW}.1").glob("lib/python*")))
    code, output = run(cluster, **canary("true", "data1,data2"))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output


def test_check_mode_shows_what_would_change_and_asks_nothing(cluster):
    code, output = run(cluster, "--check", **canary("false") | {"assume_yes": False})
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, OLD)), output
    assert "TensorFlowOnSpark" in output


@pytest.mark.parametrize(
    ("given", "reason"),
    [({}, "upgrade_canary_user is not set"), ({"upgrade_canary_user": "me"}, "there are no edge_nodes")],
)
def test_canaries_without_an_account_or_a_host_for_their_job_are_refused(cluster, given, reason):
    if given:  # The group exists and is empty.
        inventory = (cluster / "hosts.yml").read_text(encoding="utf-8")
        (cluster / "hosts.yml").write_text(inventory.replace("edge_nodes:", "edge_nodes: {}\n    cdsw_hosts:"), "utf-8")
    code, output = run(cluster, assume_yes=True, upgrade_canary=1, **given)
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    assert f"but {reason}. No host was changed." in output


HOSTS = ["data1", "data2", "data3", "edge1"]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("", []),
        (None, []),
        (0, []),
        (1, ["data1"]),
        ("2", ["data1", "data2"]),
        ("10%", ["data1"]),
        ("50%", ["data1", "data2"]),
        ("edge1, data2", ["edge1", "data2"]),
        (["data3"], ["data3"]),
    ],
)
def test_canaries_are_a_number_a_share_or_names(request_, expected):
    assert canaries.chosen(HOSTS, request_) == expected


@pytest.mark.parametrize("request_", [4, "100%", "data1,data2,data3,edge1", "9999999", "1.5", "data9", True])
def test_a_request_for_canaries_that_cannot_be_met_is_refused(request_):
    with pytest.raises(ValueError, match=r"No host was changed\."):
        canaries.chosen(HOSTS, request_)


def test_what_a_host_has_is_one_line_for_each_package():
    answer = {"environment": "a\n\x1b[2J", "python": ["x"], "packages": {"keras\nx": {"a": 1}, "numpy": "1" * 900}}
    current = stack_change.active({**answer, "stack": 7})
    target = stack_change.Contents("b", "3.11", {}, None)
    lines = stack_change.table(["data1"], current, target).splitlines()
    assert all(line.isprintable() and len(line) < 300 for line in lines)
    assert len(lines) == 6
    assert stack_change.active({"packages": 7}).packages == {}


# --- a connection that is lost ---------------------------------------------------------------------------------------

# In place of ssh: runs what it is asked to on this machine, and loses the connection as the file `fault` says. What it prints is hostile.
SSH = """\
#!{python}
import pathlib, subprocess, sys
if len(sys.argv) < 4:
    sys.exit(0)
here = pathlib.Path({directory!r})
fault, lost, begun = (here / "fault").read_text(), here / "lost", here / "begun"
given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
job = b"modules.detached_command" in given

def lose():
    sys.stderr.write("{{{{ lookup('pipe', 'touch {directory}/evaluated') }}}}")
    sys.exit(255)

if fault == "for good" and (lost.exists() or b"modules.tempfile" in given):
    lost.touch()
    lose()
if job and lost.exists() and b'"state": "asked"' in given:
    lost.unlink()
    lose()
done = subprocess.run(["/bin/sh", "-c", sys.argv[-1]], input=given, capture_output=True)
if job and not begun.exists():
    begun.touch()
    lost.touch()
    lose()
sys.stdout.buffer.write(done.stdout)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
"""


def over_ssh(cluster: Path, fault: str) -> None:
    """edge1, which submits the job, is reached by the program above."""
    program = cluster / "ssh"
    program.write_text(SSH.format(python=sys.executable, directory=str(cluster)), encoding="utf-8")
    program.chmod(0o755)
    (cluster / "fault").write_text(fault, encoding="utf-8")
    ssh = {"ansible_ssh_executable": str(program), "ansible_ssh_transfer_method": "piped", "ansible_ssh_retries": 0}
    ansible_programs.change_host(cluster / "hosts.yml", "edge1", {"ansible_connection": "ssh", **ssh})


def test_a_client_that_is_lost_for_good_sends_the_canaries_back_with_the_sentence(cluster):
    over_ssh(cluster, "for good")
    code, output = run(cluster, **canary("true"))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    words = "but that host does not answer any more. Back at what was active before: data1. No other host was switched."
    assert words in output
    assert not (cluster / "evaluated").exists()
    assert [path.parent.name for path in cluster.glob("*/.run.json")] == ["edge1"], "the others are released"


def test_a_canary_that_fails_at_its_own_switch_keeps_all_hosts(cluster):
    (cluster / "data2" / ".new-current").mkdir()  # no rename can replace it
    code, output = run(cluster, **canary("true", "data1,data2"))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    assert "but data2 did not switch. data1 is back at " + OLD in output
