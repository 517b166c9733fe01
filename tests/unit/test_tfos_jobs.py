"""tfos-submit jobs, logs and stop.

What `yarn` prints on standard output and error was seen of Hadoop 3.3.6, without the rest of Java's stacks.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import kerberos_login
from interpreters import HOST_PYTHONS
from kdc import REALM, Realm
from resource_manager import ADDRESS, NOT_ACTIVATED, RECORDED, Cluster, application, collected, gpus, write_settings
from tfos_host import executable, told
from tfos_submit import applications, cli, login, outcome


def run(host: SimpleNamespace, *arguments: str, python: str = sys.executable) -> SimpleNamespace:
    command = [python, str(host.program), *arguments, "--root", str(host.root)]
    completed = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
        cwd=host.tmp,
        env={**os.environ, "HADOOP_USER_NAME": "anna", "LC_ALL": "C"},
    )
    return SimpleNamespace(code=completed.returncode, output=completed.stdout, error=completed.stderr)


def yarn_prints(host: SimpleNamespace, output: str = "", error: str = "", status: int = 0) -> None:
    (host.tmp / "said").write_text(output)
    (host.tmp / "complained").write_text(error)
    line = f'echo "$*" >> {host.tmp}/yarn.log; cat {host.tmp}/said; cat {host.tmp}/complained >&2; exit {status}'
    executable(host.tmp / "hadoop/bin/yarn", f"#!/bin/sh\n{line}\n")


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_jobs_lists_those_of_the_user_and_what_lives_first(host: SimpleNamespace, python: str) -> None:
    finished_jobs = [
        application(number, "FINISHED", finalStatus="SUCCEEDED", finishedTime=1795503200000 + number)
        for number in range(1, 13)
    ]
    finished_jobs[3].update(finalStatus="FAILED")
    cluster = Cluster(
        *finished_jobs,
        application(20, "ACCEPTED", queue="vision"),
        application(21, "RUNNING", runningContainers=3, resourceInfo=gpus(2), name="a größer\nlong name " + "n" * 40),
        application(22, "RUNNING", user="bob"),
    )
    host.yarn.answer = cluster.answer
    completed = run(host, "jobs", python=python)
    assert completed.code == outcome.OK, completed.error
    title, *lines = [line.split() for line in completed.output.splitlines()]
    assert title == ["APPLICATION", "NAME", "STATE", "QUEUE", "AGE", "CONTAINERS", "GPUS", "TRACKING"]
    assert [line[0][-2:] for line in lines] == ["21", "20", "12", "11", "10", "09", "08", "07", "06", "05", "04", "03"]
    assert lines[0][-3:] == ["3", "2", RECORDED["trackingUrl"]]
    assert (lines[1][-6], lines[1][-5], lines[1][-3:]) == ("ACCEPTED", "vision", ["0", "0", "-"])
    assert [line[-6] for line in lines[2:4]] == ["SUCCEEDED", "SUCCEEDED"]
    assert [line[-6] for line in lines if line[0].endswith("04")] == ["FAILED"]
    assert all(len(line) < 200 for line in completed.output.splitlines())


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_all_jobs_are_those_of_everybody_that_hold_gpus(host: SimpleNamespace, python: str) -> None:
    cluster = Cluster(
        application(1, "RUNNING", resourceInfo=gpus(1), queue="vision"),
        application(2, "RUNNING", user="bob\n", resourceInfo=gpus(4)),
        application(3, "RUNNING", user="bob", resourceInfo=gpus(0)),
        application(4, "RUNNING", user="carol", resourceInfo=None),
        application(5, "FINISHED", user="carol", resourceInfo=gpus(2)),
    )
    host.yarn.answer = cluster.answer
    completed = run(host, "jobs", "--all", python=python)
    assert completed.code == outcome.OK, completed.error
    title, *lines = [line.split() for line in completed.output.splitlines()]
    assert title[:2] == ["USER", "APPLICATION"]
    assert [(line[0], line[1][-2:], line[-2]) for line in lines] == [("bob", "02", "4"), ("anna", "01", "1")]
    assert "YARN does not know what these GPUs do" in completed.error
    host.yarn.answer = Cluster(application(3, "RUNNING")).answer
    completed = run(host, "jobs", "--all", python=python)
    assert (completed.code, completed.output) == (outcome.OK, "")
    assert "no application that YARN shows to you holds a GPU" in completed.error


def test_a_user_without_applications_is_told_under_which_name_yarn_was_asked(host: SimpleNamespace) -> None:
    host.yarn.answer = Cluster(application(1, "RUNNING", user="bob")).answer
    completed = run(host, "jobs")
    assert (completed.code, completed.output) == (outcome.OK, "")
    assert completed.error == "tfos-submit: YARN has no application of anna.\n"


@pytest.mark.parametrize(
    ("seconds", "age"), [(0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3900, "1h05m"), (187200, "2d04h")]
)
def test_an_age_is_short(seconds: int, age: str) -> None:
    assert applications.age(seconds) == age


def test_if_yarn_hides_times_the_last_ones_come_by_their_numbers(host: SimpleNamespace) -> None:
    """With yarn.acl.enable and without a login."""
    old_applications = [application(number, "KILLED", startedTime=0, finishedTime=0) for number in range(1, 13)]
    host.yarn.answer = Cluster(*old_applications).answer
    lines = [line.split() for line in run(host, "jobs").output.splitlines()[1:]]
    assert [(line[0][-2:], line[-4]) for line in lines][:2] == [("12", "-"), ("11", "-")]


def test_an_answer_of_hadoop_2_has_no_resources(host: SimpleNamespace) -> None:
    """Hadoop 2.7's has neither resourceInfo nor, for applications that a user may not view, times."""
    host.yarn.answer = Cluster(application(1, "RUNNING", resourceInfo=None, startedTime=0)).answer
    assert run(host, "jobs").output.splitlines()[1].split()[-4:-1] == ["-", "1", "-"]


def test_a_resource_manager_that_does_not_answer_is_named(host: SimpleNamespace) -> None:
    write_settings(host.tmp / "conf/yarn-site.xml", {ADDRESS: "127.0.0.1:9"})
    completed = run(host, "jobs")
    assert completed.code == outcome.NOT_READY
    assert "web address (http://127.0.0.1:9) must answer, but does not" in completed.error


def test_a_list_in_another_form_is_not_one_without_applications(host: SimpleNamespace) -> None:
    host.yarn.answer = lambda path: {"apps": {"app": ["application_1_0001"]}}
    completed = run(host, "jobs")
    assert (completed.code, completed.output) == (outcome.NOT_READY, "")
    assert "must answer, but does not" in completed.error


@pytest.mark.parametrize(("mode", "state"), [("client", "SUCCEEDED (client mode)"), ("cluster", "SUCCEEDED")])
def test_jobs_does_not_take_yarns_word_for_a_script_in_client_mode(
    host: SimpleNamespace, mode: str, state: str
) -> None:
    tags = told("--deploy-mode", mode)["spark.yarn.tags"]
    host.yarn.answer = Cluster(
        application(1, "FINISHED", finalStatus="SUCCEEDED", applicationTags=tags),
        application(2, "FINISHED", finalStatus="FAILED", applicationTags=tags),
    ).answer
    completed = run(host, "jobs")
    assert re.findall(r"  (FAILED|SUCCEEDED.*?)  ", completed.output) == ["FAILED", state]
    assert ("also if the script failed" in completed.error) is (mode == "client")


@pytest.mark.parametrize("arguments", [["./jobs"], ["--executors", "1", "jobs"]])
def test_a_script_that_has_a_commands_name_is_a_script(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(cli, "run", lambda options: options.script)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    assert cli.main(arguments) == arguments[-1]


@pytest.mark.parametrize("arguments", [["logs"], ["stop", "42"], ["stop", "-rf"], ["jobs", "of bob"]])
def test_a_wrong_command_line_exits_with_2(host: SimpleNamespace, arguments: list[str]) -> None:
    assert run(host, *arguments).code == outcome.USAGE


FAILED_LOG = (
    "24/11/24 00:15:28 ERROR Executor: Exception in task 0.0 in stage 0.0 (TID 0)\n"
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "job.py", line 2, in <lambda>\nZeroDivisionError: größer\n'
)
NAME = "application_1795503116011_0001"
MASTER, EXECUTOR = (f"container_1795503116011_0001_01_00000{number}" for number in (1, 2))
FAILED_EXECUTOR = (EXECUTOR, "data1", "stderr", FAILED_LOG)


def logs_of(
    host: SimpleNamespace, state: str, *files: tuple[str, str, str, str], error: str = "", status: int = 0, **about: Any
) -> SimpleNamespace:
    """tfos-submit logs of an application, for which `yarn logs` prints these files."""
    host.yarn.answer = Cluster(application(1, state, **about)).answer
    yarn_prints(host, collected(*files), error, status)
    return run(host, "logs", NAME)


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_logs_prints_the_log_and_then_the_first_error(host: SimpleNamespace, python: str) -> None:
    host.yarn.answer = Cluster(application(1, "FINISHED", finalStatus="FAILED")).answer
    text = collected(FAILED_EXECUTOR)
    yarn_prints(host, text)
    completed = run(host, "logs", NAME, python=python)
    assert (completed.code, completed.output.strip()) == (outcome.OK, text.strip())
    assert f"the first error: {EXECUTOR} on data1 at 00:15:28: ZeroDivisionError: größer" in completed.error
    assert (host.tmp / "yarn.log").read_text() == f"logs -applicationId {NAME}\n"


def test_logs_wait_until_yarn_has_those_of_every_host(host: SimpleNamespace) -> None:
    """A host that is later than the others had no log in the answer, and no error."""
    manager = Cluster(application(1, "FINISHED", finalStatus="FAILED", logAggregationStatus="RUNNING"))
    early = (MASTER, "data1", "stderr", "began")
    yarn_prints(host, collected(early))

    def answer(path: str) -> Any:
        found = manager.answer(path)
        if "/apps/" in path and manager.asked.count(path) == 2:
            manager.known[0]["logAggregationStatus"] = "SUCCEEDED"
            yarn_prints(host, collected(early, (EXECUTOR, "data2", "stderr", FAILED_LOG)))
        return found

    host.yarn.answer = answer
    completed = run(host, "logs", NAME)
    assert f"the first error: {EXECUTOR} on data2" in completed.error
    assert "still collects" not in completed.error


def test_logs_that_stay_incomplete_are_printed_and_said_to_be_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ResourceManager may stop answering meanwhile: the application stays as it was known."""
    job = application(1, "FINISHED", logAggregationStatus="RUNNING")
    monkeypatch.setattr(applications.time, "sleep", lambda seconds: None)
    for answer in (job, {}):
        assert applications.when_collected(SimpleNamespace(named=lambda name, found=answer: found), job) == job
        assert f"YARN still collects the logs of {NAME}: those of some hosts may be missing." in capsys.readouterr().err


def test_logs_of_a_success_name_no_error(host: SimpleNamespace) -> None:
    completed = logs_of(host, "FINISHED", FAILED_EXECUTOR, finalStatus="SUCCEEDED")
    assert (completed.code, completed.error) == (outcome.OK, "")


def test_logs_of_a_script_in_client_mode_name_the_error_although_yarn_reports_a_success(host: SimpleNamespace) -> None:
    """Its master ends well when the driver is gone. The line is of launch_container.sh (Spark 3.5.8 on Hadoop 3.3.6)."""
    line = "exec /bin/bash -c \"$JAVA_HOME/bin/java -server org.apache.spark.deploy.yarn.ExecutorLauncher --arg 'edge1:41503'\"\n"
    master = (MASTER, "data2", "launch_container.sh", line)
    completed = logs_of(host, "FINISHED", master, FAILED_EXECUTOR, finalStatus="SUCCEEDED")
    assert completed.code == outcome.OK
    assert "YARN reports SUCCEEDED: in client mode, also if the script failed." in completed.error
    assert "ZeroDivisionError: größer" in completed.error


def test_logs_of_a_script_in_client_mode_name_no_consequence_as_the_reason(host: SimpleNamespace) -> None:
    """The driver's heap was full (Spark 3.5.8): its executor says only that the driver has gone."""
    gone = (
        "26/11/29 04:35:10 INFO YarnClientSchedulerBackend: Driver now available: edge1:46211\n"
        "26/11/29 04:35:37 ERROR ChunkFetchRequestHandler: Error sending result ChunkFetchSuccess\n"
        "java.io.IOException: Broken pipe\n"
    )
    completed = logs_of(host, "FINISHED", (EXECUTOR, "data1", "stderr", gone), finalStatus="SUCCEEDED")
    assert completed.error == (
        "tfos-submit: no executor failed. In client mode, what the script printed is where it ran, and YARN has none of it.\n"
    )


def test_logs_of_one_that_yarn_has_forgotten_are_in_hdfs(host: SimpleNamespace) -> None:
    host.yarn.answer = Cluster().answer
    yarn_prints(host, collected(("container_1_1_01_000002", "data1", "stdout", "done\n")))
    assert run(host, "logs", NAME).code == outcome.OK


def test_logs_of_a_running_application_come_from_its_hosts_if_the_command_has_none(
    host: SimpleNamespace,
) -> None:
    cluster = Cluster(application(1, "RUNNING"))
    host_address = (host.tmp / "conf/yarn-site.xml").read_text().partition("<value>")[2].partition("<")[0]

    def answer(path: str) -> Any:
        if path.endswith("/appattempts"):
            return {"appAttempts": {"appAttempt": [{"id": 1, "appAttemptId": "appattempt_1_0001_000001"}]}}
        if path.endswith("/containers"):
            return {"container": [{"containerId": "container_1_0001_01_000001", "nodeHttpAddress": host_address}]}
        return "epoch 3\n" if "/containerlogs/" in path else cluster.answer(path)

    host.yarn.answer = answer
    yarn_prints(host, error="Application has not completed. Logs are only available after an application completes\n")
    completed = run(host, "logs", NAME)
    assert completed.code == outcome.OK
    assert "Container: container_1_0001_01_000001 on " in completed.output
    assert "epoch 3" in completed.output


@pytest.mark.parametrize("state", ["RUNNING", "ACCEPTED"])  # the master's container starts while it is ACCEPTED
def test_a_running_application_whose_hosts_give_no_logs_has_not_ended(host: SimpleNamespace, state: str) -> None:
    error = "Can not find any containers for the application\n"
    completed = logs_of(host, state, error=error, status=255, runningContainers=1)
    assert (completed.code, f"{NAME} runs, but YARN's hosts give none" in completed.error) == (outcome.FAILED, True)


def test_an_application_that_waits_has_no_logs(host: SimpleNamespace) -> None:
    host.yarn.answer = Cluster(application(1, "ACCEPTED", diagnostics=NOT_ACTIVATED)).answer
    completed = run(host, "logs", NAME)
    assert completed.code == outcome.FAILED
    assert f"{NAME} waits in queue default (ACCEPTED) and has no logs yet." in completed.error
    assert not (host.tmp / "yarn.log").exists()


def test_missing_logs_are_explained_and_yarns_reason_is_not_a_line_of_a_log(host: SimpleNamespace) -> None:
    connection_line = "2024-11-24 10:00:00,123 INFO client.DefaultNoHARMFailoverProxyProvider: Connecting to ResourceManager at master1/10.0.0.1:8032\n"
    missing_line = "File /tmp/logs/anna/bucket-logs-tfile/0001/application_1795503116011_0001 does not exist\n\n"
    reason = f"Can not find the logs for the application: {NAME} with the appOwner: anna\n"
    error = connection_line + missing_line + reason
    completed = logs_of(host, "FAILED", error=error, status=255, logAggregationStatus="DISABLED")
    assert completed.code == outcome.FAILED
    assert f"yarn logs -applicationId {NAME} failed: {reason.strip()}\n" in completed.error
    assert "without log aggregation (yarn.log-aggregation-enable)" in completed.error
    assert (host.tmp / "yarn.log").read_text().count("\n") == 1


def test_of_an_application_that_never_had_a_log_yarns_reason_is_the_first_error(host: SimpleNamespace) -> None:
    """Hadoop 3.3.6, as its ResourceManager answers after the disk of a NodeManager was full."""
    diagnostics = (
        f"Application {NAME} failed 1 times due to AM Container for appattempt_1795503116011_0001_000001 exited with  exitCode: -1000\n"
        "Failing this attempt.Diagnostics: [2026-11-29 08:56:49.890]No space available in any of the local directories.\n"
    )
    about = {"finalStatus": "FAILED", "diagnostics": diagnostics}
    completed = logs_of(host, "FAILED", error="Can not find the logs\n", status=255, **about)
    assert completed.code == outcome.FAILED
    assert "the first error: the driver: No space available in any of the local directories." in completed.error
    assert "hint: The disks of a host are full or bad" in completed.error


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_stop_ends_an_application(host: SimpleNamespace, python: str) -> None:
    yarn_prints(
        host,
        f"Killing application {NAME}\n",
        f"2024-11-24 10:00:00,123 INFO impl.YarnClientImpl: Killed application {NAME}\n",
    )
    completed = run(host, "stop", NAME, python=python)
    assert (completed.code, completed.error) == (outcome.OK, f"tfos-submit: {NAME} was ended.\n")
    assert (host.tmp / "yarn.log").read_text() == f"application -kill {NAME}\n"


def test_stop_of_one_that_has_ended_says_so(host: SimpleNamespace) -> None:
    yarn_prints(host, f"Application {NAME} has already finished \n")
    completed = run(host, "stop", NAME)
    assert (completed.code, completed.error) == (outcome.OK, f"tfos-submit: {NAME} had already ended.\n")


LOG4J = "log4j:WARN No appenders could be found for logger (org.apache.hadoop.util.Shell).\n"
REFUSED = (
    f'{LOG4J}Exception in thread "main" org.apache.hadoop.yarn.exceptions.YarnException: java.security.AccessControlException: '
    f"User anna cannot perform operation MODIFY_APP on {NAME}\n"
    "\tat org.apache.hadoop.yarn.ipc.RPCUtil.getRemoteException(RPCUtil.java:38)\n"
    "Caused by: org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.yarn.exceptions.YarnException): "
    f"java.security.AccessControlException: User anna cannot perform operation MODIFY_APP on {NAME}\n"
    "\tat org.apache.hadoop.yarn.ipc.RPCUtil.getRemoteException(RPCUtil.java:38)\n"
    f"Caused by: java.security.AccessControlException: User anna cannot perform operation MODIFY_APP on {NAME}\n"
    "\tat org.apache.hadoop.yarn.server.resourcemanager.ClientRMService.forceKillApplication(ClientRMService.java:812)\n\t... 12 more\n\n"
    "\tat org.apache.hadoop.ipc.Client.getRpcResponse(Client.java:1567)\n\t... 19 more\n\n"
)


@pytest.mark.parametrize(
    ("output", "error", "reason"),
    [
        (f"Killing application {NAME}\n", REFUSED, f"User anna cannot perform operation MODIFY_APP on {NAME}\n"),
        (
            f"Application with id '{NAME}' doesn't exist in RM.\n",
            LOG4J + "2024-11-24 10:00:00,123 INFO client.DefaultNoHARMFailoverProxyProvider: Connecting\n",
            f"failed: Application with id '{NAME}' doesn't exist in RM.\n",
        ),
    ],
    ids=["of another user", "unknown"],
)
def test_what_yarn_refuses_to_stop_is_said_in_its_words(
    host: SimpleNamespace, output: str, error: str, reason: str
) -> None:
    yarn_prints(host, output, error, status=255)
    completed = run(host, "stop", NAME)
    assert completed.code == outcome.FAILED
    assert completed.error.startswith(f"tfos-submit: yarn application -kill {NAME} failed: ")
    assert completed.error.endswith(reason)


def test_with_kerberos_the_user_is_the_ticket(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = str(tmp_path / "own")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    kerberos_login.log_in(f"anna@{REALM}", str(realm.keytab("anna")), cache, "1h")
    assert login.yarn_user({"hadoop.security.authentication": "kerberos"}) == "anna"
    assert os.environ["KRB5CCNAME"] == cache
    assert login.yarn_user({}) == "nobody"
