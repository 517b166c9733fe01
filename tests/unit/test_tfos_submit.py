"""tfos-submit without a host: what Spark is told, what YARN's answers mean, and whole runs against a cluster of stand-ins."""

import json
import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import yarn_cluster
from resource_manager import ADDRESS, gpu_node
from tfos_host import HADOOP, add_jars, app, executable, parsed, refusal, settings, submit, told
from tfos_submit import logs, options, outcome, spark, watch, yarn
from tfos_submit.shortage import shortage as shortage_text


@pytest.mark.parametrize(
    ("text", "expected"), [("3g", 3072), ("2048m", 2048), ("512", 512), ("1G", 1024), ("2gb", 2048)]
)
def test_memory_is_read(text: str, expected: int) -> None:
    assert options.megabytes(text) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        *("gpus=all", "deploy-mode=local", "memory=lots", "memory=0g", "executors=0", "executors=two", "conf=x"),
        *("node-label=gpu && big", "node-label=", "node-label=-gpu", "node-label=gpu,big"),  # YARN has no expressions
    ],
)
def test_wrong_usage_exits_with_2(arguments: str) -> None:
    with pytest.raises(SystemExit) as error:
        parsed("--" + arguments)
    assert error.value.code == 2


def test_the_scripts_own_options_are_left_to_it() -> None:
    job = options.arguments_parser().parse_args(["--executors", "3", "train.py", "--epochs", "5", "--conf", "mine"])
    assert (job.executors, job.arguments) == (3, ["--epochs", "5", "--conf", "mine"])


@pytest.mark.parametrize("prefix", ["spark.yarn.appMasterEnv.", "spark.executorEnv."])
def test_hadoops_variables_and_the_user_of_hdfs_reach_every_container(prefix: str) -> None:
    user = spark.hdfs_user({"HADOOP_USER_NAME": "anna"}, {})
    properties = dict(spark.properties(parsed(), "/e", HADOOP, "tag", user))
    expected = {**HADOOP, "HADOOP_USER_NAME": "anna"}
    assert {name: properties.get(prefix + name) for name in expected} == expected


def test_with_kerberos_no_name_is_given() -> None:
    assert spark.hdfs_user({"HADOOP_USER_NAME": "anna"}, {"hadoop.security.authentication": "kerberos"}) is None


def test_driver_and_executors_use_the_immutable_environment() -> None:
    names = ("spark.pyspark.python", "spark.pyspark.driver.python")
    names += ("spark.executorEnv.PYSPARK_PYTHON", "spark.yarn.appMasterEnv.PYSPARK_PYTHON")
    assert {told()[name] for name in names} == {"/opt/deeplearning/envs/e/bin/python"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.dynamicAllocation.enabled", "false"),
        ("spark.yarn.maxAppAttempts", "1"),
        ("spark.executor.instances", "4"),
        ("spark.executor.cores", "2"),
        ("spark.task.cpus", "2"),
        ("spark.speculation", "false"),
        ("spark.yarn.queue", "gpu"),
    ],
)
def test_what_people_get_wrong_is_set(name: str, value: str) -> None:
    assert told("--executors", "4", "--cores", "2", "--queue", "gpu")[name] == value


@pytest.mark.parametrize(
    ("asked", "heap", "rest"), [("3g", "1024m", "2048m"), ("1g", "512m", "512m"), ("8g", "1024m", "7168m")]
)
def test_most_memory_of_an_executor_is_tensorflows(asked: str, heap: str, rest: str) -> None:
    properties = told("--memory", asked)
    assert (properties["spark.executor.memory"], properties["spark.executor.memoryOverhead"]) == (heap, rest)


@pytest.mark.parametrize(
    ("jar", "old", "new"),
    [
        ("spark-core_2.11-2.1.1.2.6.1.0-129.jar", True, False),
        ("spark-core_2.11-2.2.0.cloudera2.jar", True, False),
        ("spark-core_2.11-2.3.0.jar", False, True),
        ("spark-core_2.12-3.0.3.jar", False, True),
        ("spark-core_2.13-3.10.1.jar", False, True),
        ("another.jar", True, True),  # Spark's version is not known
    ],
)
def test_the_memory_beside_the_heap_has_the_name_that_the_hosts_spark_reads(
    host: SimpleNamespace, jar: str, old: bool, new: bool
) -> None:
    """Spark reads spark.executor.memoryOverhead from 2.3 on, and warns of the older name from then on."""
    add_jars(host, jar)
    assert submit(host, "--memory", "27g").code == 0
    assert settings(host)["spark.executor.memory"] == "1024m"
    assert settings(host).get("spark.yarn.executor.memoryOverhead") == ("26624m" if old else None)
    assert settings(host).get("spark.executor.memoryOverhead") == ("26624m" if new else None)


def test_the_users_setting_comes_last_and_counts() -> None:
    properties = spark.properties(parsed("--conf", "spark.task.maxFailures=4"), "/e", HADOOP, "tag")
    text = spark.properties_text(["spark.task.maxFailures 9\n", ""], properties)
    assert [line for line in text.splitlines() if "maxFailures" in line][-1] == "spark.task.maxFailures 4"
    assert text.startswith("spark.task.maxFailures 9\n")


@pytest.mark.parametrize(
    ("version", "encryption"),
    [
        ((2, 1), "spark.authenticate.enableSaslEncryption"),
        ((2, 4), "spark.network.crypto.enabled"),
        ((3, 5), "spark.network.crypto.enabled"),
        (None, "spark.network.crypto.enabled"),
    ],
)
def test_nobody_without_the_jobs_secret_speaks_with_its_driver(version: Any, encryption: str) -> None:
    """Whoever reaches the port of a Spark without authentication runs code as the job's user."""
    settings = dict(spark.secured([("spark.app.name", "x")], ["spark.ui.port 1\n"], version))
    assert settings == {
        "spark.authenticate": "true",
        encryption: "true",
        "spark.shuffle.service.enabled": "false",
        "spark.app.name": "x",
    }


@pytest.mark.parametrize(
    ("defaults", "conf"), [("spark.authenticate true\n", []), ("", [("spark.authenticate", "false")])]
)
def test_a_site_or_a_job_decides_itself_about_authentication(defaults: str, conf: list[tuple[str, str]]) -> None:
    assert spark.secured(conf, [defaults], (3, 5)) == conf


def test_the_driver_gets_what_the_executors_get() -> None:
    user_variables = {"LD_LIBRARY_PATH": "/cuda", "PYTHONPATH": "/mine", "PATH": "/bin"}
    environment = spark.driver_environment(user_variables, "/spark", "/env", HADOOP)
    assert environment["LD_LIBRARY_PATH"] == HADOOP["LD_LIBRARY_PATH"] + ":/cuda"
    assert environment["CLASSPATH"] == HADOOP["CLASSPATH"]
    assert environment["PATH"] == "/env/bin:/bin"
    assert "PYTHONPATH" not in environment


@pytest.mark.parametrize(
    ("spark_home", "path"), [("/spark", "{{PWD}}/deeplearning-packages:/mine/site"), ("", "/mine/site")]
)
def test_executors_of_spark_2_3_get_the_users_packages_by_the_drivers_path(spark_home: str, path: str) -> None:
    """It writes the driver's PYTHONPATH over spark.executorEnv.PYTHONPATH (SPARK-22151); YARN puts the container's directory in."""
    user_venv = SimpleNamespace(site="/mine/site")
    assert spark.driver_environment({}, spark_home, "/env", HADOOP, user_venv)["PYTHONPATH"] == path


HOSTNAME, RM_IDS = "yarn.resourcemanager.hostname", "yarn.resourcemanager.ha.rm-ids"


@pytest.mark.parametrize(
    ("configuration", "addresses"),
    [
        ({HOSTNAME: "rm"}, ["http://rm:8088"]),
        ({ADDRESS: "rm:9000"}, ["http://rm:9000"]),
        ({HOSTNAME: "rm", ADDRESS: f"${{{HOSTNAME}}}:9000"}, ["http://rm:9000"]),
        ({RM_IDS: "a,b", f"{HOSTNAME}.a": "x", f"{HOSTNAME}.b": "y"}, ["http://x:8088", "http://y:8088"]),
        ({"yarn.http.policy": "HTTPS_ONLY", HOSTNAME: "rm"}, ["https://rm:8090"]),
        ({}, []),
    ],
)
def test_the_resource_manager_is_found(configuration: dict[str, str], addresses: list[str]) -> None:
    assert yarn_cluster.resource_manager_addresses(configuration) == addresses


QUEUED, MASTER, TWO_OF_3, ALL = app("ACCEPTED"), app("RUNNING", 1), app(containers=2), app(containers=3)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(5, app("ACCEPTED", 1)), (15, TWO_OF_3), (54, TWO_OF_3)], None),
        ([(5, app("ACCEPTED", 1)), (15, TWO_OF_3), (55, TWO_OF_3)], outcome.NO_EXECUTORS),
        # On a busy cluster the ApplicationMaster starts when others have ended; then the wait for executors begins.
        ([(5, QUEUED), (599, app("ACCEPTED", 0))], None),
        ([(5, QUEUED), (600, QUEUED)], outcome.TOO_LONG),
        ([(5, QUEUED), (500, MASTER), (539, MASTER)], None),
        ([(5, QUEUED), (500, MASTER), (540, MASTER)], outcome.NO_EXECUTORS),
        ([(5, ALL), (100, TWO_OF_3)], None),  # an executor that came and went is Spark's affair
        ([(100, None), (200, None)], None),  # a submission that takes long is no missing executor
        ([(5, app(containers=1)), (99, app("FAILED", -1))], None),  # an ended application is left to spark-submit
        ([(5, ALL), (600, ALL)], outcome.TOO_LONG),  # the timeout counts from the start
    ],
)
def test_a_job_is_ended_after_its_wait_for_executors_or_its_timeout(steps: list[Any], expected: int | None) -> None:
    """The wait is 40 s, the timeout 600 s."""
    progress = watch.Watch(2, 40, 600, 0)
    *before, last = [progress.judge(now, application) for now, application in steps]
    assert (set(before), last) == ({None}, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"apps": {"app": [{"id": 1}, {"id": 2}]}}, [{"id": 1}, {"id": 2}]),
        ({"apps": {"app": {"id": 1}}}, [{"id": 1}]),
        ({"apps": None}, []),
        ({"apps": {}}, []),
        (None, []),
    ],
)
def test_hadoops_lists_of_none_and_of_one_are_lists(answer: Any, expected: list[Any]) -> None:
    assert yarn.entries(answer, "apps", "app") == expected


def node(
    name: str, free: int = 4096, total: int = 4096, state: str = "RUNNING", vcores: int = 2, health: str = ""
) -> dict[str, Any]:
    memory = {"availMemoryMB": free, "usedMemoryMB": total - free, "availableVirtualCores": vcores}
    return yarn.node_summary({**gpu_node(name, 2, 1, state), **memory, "healthReport": health})


def shortage(*nodes: dict[str, Any], arguments: tuple[str, ...] = (), running: int = 0, **application: Any) -> str:
    return str(shortage_text(parsed(*arguments), app(containers=2, **application), list(nodes), running))


def test_what_was_asked_and_what_yarn_had_is_said() -> None:
    text = shortage(node("data1", 1024), node("data2", 0, state="LOST"))
    sentence = (
        "2 executors were asked for, each with 3072 MB and 1 vcore, in queue default; after 40 s YARN has given 1"
    )
    assert [words for words in (sentence, "data1", "1024/4096", "1/2", "LOST") if words not in text] == []


@pytest.mark.parametrize(
    ("nodes", "arguments", "advice"),
    [
        ([node("data1"), node("data2", state="LOST")], (), "data2 is LOST: it no longer reports. Ask the operator"),
        # mattshma/bigdata#10
        (
            [node("data1", state="UNHEALTHY", health="12/12 local-dirs are bad: /hadoop1/yarn/nm")],
            (),
            "data1 is UNHEALTHY (12/12 local-dirs are bad: /hadoop1/yarn/nm): ask the operator",
        ),
        (
            [node("data1", state="UNHEALTHY", health="ERROR: sick GPU (gpu-check): GPU 1: GPU is lost. The node\n")],
            ("--gpus", "1"),
            "data1 is UNHEALTHY (ERROR: sick GPU (gpu-check): GPU 1: GPU is lost. The node): ask the operator",
        ),
        ([node("data1", state="DECOMMISSIONING")], (), "data1 is being taken out of YARN by the operator."),
        ([node("data1", state="SHUTDOWN")], (), "data1 is SHUTDOWN"),
        ([node("data1", state="OF_HADOOP_4")], (), "data1 is OF_HADOOP_4."),
        ([node("data1", health="Healthy"), node("data2")], (), "data1 has not reported to the restarted"),
        ([node("data1", 2048, 2048)], (), "--memory 2048m"),
        ([node("data1", 0)], (), "--executors 1"),
        ([node("data1", vcores=1)], ("--cores", "4"), "--cores 1"),
        ([node("data1"), node("data2")], (), "queue's or the user's limit"),
        ([], (), "no NodeManager runs: tell the operator"),
    ],
)
def test_the_next_step_fits_the_cluster(nodes: list[dict[str, Any]], arguments: tuple[str, ...], advice: str) -> None:
    text = shortage(*nodes, arguments=arguments)
    assert advice in text
    assert "systemctl" not in text, "a data scientist starts no daemon"


def test_what_is_left_of_a_nodes_earlier_port_is_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop 3.1.1, after its NodeManagers were restarted: YARN lists data1 twice, RUNNING and SHUTDOWN."""
    answer = [
        {**gpu_node("data1", 2), "lastHealthUpdate": 2},
        {**gpu_node("data1", 0, state="SHUTDOWN"), "lastHealthUpdate": 1},
    ]
    monkeypatch.setattr(yarn.ResourceManager, "get", lambda self, path: {"nodes": {"node": answer}})
    assert [node["state"] for node in yarn.ResourceManager([]).nodes()] == ["RUNNING"]


def test_other_applications_are_a_reason_to_wait() -> None:
    assert "\n  1 other application is running" in shortage(node("data1", 0), running=1), "each step has its line"


def test_of_long_logs_the_ends_are_kept() -> None:
    text = "Container: container_1 on data1:45454\nLogType:stderr\nLogContents:\n"
    text += "".join(f"line {n}\n" for n in range(100))
    text += "End of LogType:stderr\nLogType:prelaunch.out\nLogContents:\nnoise\nContainer: container_2 on data2\nLogType:stdout\nshort\n"
    short = logs.shorten_logs(text, lines=3)
    assert "container_1 on data1:45454, stderr, the last 3 lines of 100" in short
    assert "line 99" in short
    assert "line 96\n" not in short
    assert "noise" not in short
    assert short.endswith("short")


def test_of_logs_of_hadoop_2_7_the_lines_of_programs_are_kept() -> None:
    """As `yarn logs` of 2.7.7 prints them."""
    head = "\n\nContainer: container_1 on data1_33223\n" + "=" * 70
    parts = [
        f"\nLogType:{name}\nLog Upload Time:Fri Nov 27 15:35:05 +0000 2026\nLogLength:{len(content)}\nLog Contents:\n{content}End of LogType:{name}\n"
        for name, content in (("stderr", "a line\n"), ("stdout", ""))
    ]
    assert logs.shorten_logs(head + "".join(parts)) == "---- container_1 on data1_33223, stderr\na line\n"


# Whole runs.


def test_a_job_that_succeeds_exits_with_0_and_leaves_no_settings_file(host: SimpleNamespace) -> None:
    assert submit(host).code == 0
    assert settings(host)["spark.executor.instances"] == "2"
    assert settings(host)["spark.pyspark.python"] == f"{host.root}/envs/tf-0123456789ab/bin/python"


def test_the_end_of_a_job_is_noticed_before_the_next_look_at_yarn(host: SimpleNamespace) -> None:
    host.spark_submit("sleep 2")
    begin = time.monotonic()
    assert submit(host, "--poll", "30").code == 0
    assert time.monotonic() - begin < 20


def test_a_job_that_fails_exits_with_1_and_explains(host: SimpleNamespace) -> None:
    host.yarn.application = app("FAILED", -1)
    host.spark_submit(
        "echo 'Container killed by YARN for exceeding memory limits. 8.2 GB of 8 GB physical memory used.' >&2; sleep 1; exit 7"
    )
    completed = submit(host)
    assert completed.code == outcome.FAILED
    assert "hint: An executor used more memory than it asked for" in completed.error
    assert "logs -applicationId application_1_0001" in (host.tmp / "yarn.log").read_text()


def test_what_the_script_prints_in_client_mode_is_read(host: SimpleNamespace) -> None:
    """Spark gives the script one stream for both: spark-submit's standard output."""
    sentence = "train.py: error: argument --epochs: invalid int value: 'many'"
    host.spark_submit(f'echo "{sentence}"; printf "no end of line"; exit 2')
    completed = submit(host)
    assert completed.output == sentence + "\nno end of line"
    assert "hint: The script refused its arguments: argument --epochs: invalid int value: 'many'" in completed.error
    assert f"the first error: the driver: {sentence}" in completed.error


@pytest.mark.parametrize(
    ("end", "status", "hint"),
    [("exit 139", 139, "Native code ended"), ("kill -9 $$", 137, "killed with signal 9"), ("exit 3", None, "")],
)
def test_a_signal_that_ended_the_script_is_the_first_error(
    host: SimpleNamespace, end: str, status: int | None, hint: str
) -> None:
    host.spark_submit(f"echo '[0, 1]'; {end}")
    error = submit(host).error
    assert (f"the first error: the driver: User application exited with status {status}" in error) is bool(status)
    assert hint in error


def test_missing_executors_end_the_application(host: SimpleNamespace) -> None:
    host.yarn.application = app(containers=2)
    host.yarn.nodes = [{**gpu_node("data1", 0), "availMemoryMB": 512}]
    host.spark_submit("exec sleep 60")
    completed = submit(host, "--wait", "1")
    assert completed.code == outcome.NO_EXECUTORS
    assert "2 executors were asked for" in completed.error
    assert "512/512" in completed.error
    assert "application -kill application_1_0001" in (host.tmp / "yarn.log").read_text()


def test_the_timeout_ends_the_application(host: SimpleNamespace) -> None:
    host.yarn.application = app(containers=3)
    host.spark_submit("exec sleep 60")
    completed = submit(host, "--timeout", "1")
    assert completed.code == outcome.TOO_LONG
    assert "application -kill application_1_0001" in (host.tmp / "yarn.log").read_text()


def test_a_job_that_waits_in_its_queue_says_so_and_at_its_end_what_yarn_has(host: SimpleNamespace) -> None:
    host.yarn.application = app("ACCEPTED", diagnostics="Queue's AM resource limit exceeded.")
    host.spark_submit("exec sleep 60")
    completed = submit(host, "--wait", "1", "--timeout", "4")
    assert completed.code == outcome.TOO_LONG
    assert completed.error.count("waits in queue default (ACCEPTED). No application that was submitted earlier") == 1
    assert "YARN says: Queue's AM resource limit exceeded. It may wait until --timeout (4 s) is over" in completed.error
    assert "it may take 4 s (--timeout)" in completed.error
    assert "YARN has not started the application's own master yet (ACCEPTED)" in completed.error


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("current", "ansible-playbook site.yml"),
        ("envs/tf-0123456789ab/.deeplearning/sealed.json", "was never finished"),
        ("etc/hadoop-env.sh", "hadoop-env.sh is required"),
        ("etc/tfos-submit.json", "has the path of Spark"),
        ("../spark/bin/spark-submit", "no bin/spark-submit"),
        ("../java/bin/java", "Java is required"),
        ("jars/tensorflow-hadoop-1.15.0.jar", "tensorflow-hadoop-1.15.0.jar is required"),
        ("../train.py", "Name an existing file"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_submitted(host: SimpleNamespace, gone: str, words: str) -> None:
    (host.root / gone).unlink()
    assert words in refusal(host)


@pytest.mark.parametrize(
    ("default", "arguments", "jars"),
    [
        ("", [], "{ours}"),
        ("spark.jars /site/a.jar,/site/b.jar\n", [], "{ours},/site/a.jar,/site/b.jar"),
        ("spark.jars=/site/a.jar\nspark.jars.packages x:y:1\n", ["--conf", "spark.jars=/my.jar"], "{ours},/my.jar"),
    ],
    ids=["alone", "with the site's", "with the job's"],
)
def test_every_job_gets_the_jar_that_reads_tfrecords(
    host: SimpleNamespace, default: str, arguments: list[str], jars: str
) -> None:
    settings_file = host.root / "etc/tfos-submit.json"
    (host.root / "etc/spark-defaults.conf").write_text(default)
    defaults = {"spark_defaults": str(host.root / "etc/spark-defaults.conf")}
    settings_file.write_text(json.dumps({**json.loads(settings_file.read_text()), **defaults}))
    assert submit(host, *arguments).code == 0
    assert settings(host)["spark.jars"] == jars.format(ours=host.root / "jars/tensorflow-hadoop-1.15.0.jar")


def test_a_local_script_runs_in_the_environment(host: SimpleNamespace) -> None:
    completed = submit(host, "--local")
    assert (completed.code, completed.output) == (0, f"python {host.script}\n")


def test_without_a_python_nothing_is_submitted(program: Path, tmp_path: Path) -> None:
    launcher, end, archive = program.read_bytes().partition(b"exit 3\n")
    bare = tmp_path / "tfos-submit"
    bare.write_bytes(launcher.replace(b"/usr/", b"/nowhere/") + end + archive)
    completed = subprocess.run(["sh", str(bare), "job.py"], capture_output=True, text=True, check=False)
    assert completed.returncode == outcome.NOT_READY
    assert "tfos-submit requires Python 3 or 2.7, but none was found in" in completed.stderr


def test_a_link_to_it_starts_it(program: Path, tmp_path: Path) -> None:
    (tmp_path / "tfos-submit").symlink_to(program)
    command = ["sh", "-c", "tfos-submit --help"]
    completed = subprocess.run(command, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert "exit status:" in completed.stdout


def test_nothing_of_the_caller_is_imported(host: SimpleNamespace) -> None:
    """The variables and the directory of a user belong to the script, not to the program that submits it."""
    for name in ("json.py", "uuid.py", "processes.py", "tfos_submit.py"):
        (host.tmp / name).write_text("raise SystemExit('the wrong file was imported')\n")
    command = [str(host.program), "--root", str(host.root), "--dry-run", str(host.script)]
    environment = {**os.environ, "PYTHONPATH": str(host.tmp), "SPARK_CONF_DIR": "/nowhere"}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=host.tmp, env=environment)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "spark.executor.instances 2\n" in completed.stdout


def test_a_yarn_that_fails_is_named_with_its_last_words(host: SimpleNamespace) -> None:
    host.yarn.application = app("FAILED", -1)
    executable(host.tmp / "hadoop/bin/yarn", "#!/bin/sh\necho first >&2; echo 'no ticket' >&2; exit 255\n")
    host.spark_submit("sleep 1; exit 7")
    completed = submit(host)
    assert completed.code == outcome.FAILED
    assert completed.error.count("tfos-submit: yarn logs -applicationId application_1_0001 failed: no ticket\n") == 1


def second_environment(host: SimpleNamespace) -> str:
    """A repaired environment (its second tree) with a Java and a Spark of its own."""
    name = "old-ba9876543210"
    tree = host.root / "envs" / f"{name}.2"
    executable(tree / "bin/python", '#!/bin/sh\necho "python $*"\n')
    (tree / ".deeplearning").mkdir()
    (tree / ".deeplearning/sealed.json").write_text("{}")
    (host.root / "envs" / name).symlink_to(tree.name)
    client = host.root / "envs" / f"{name}.client"
    client.mkdir()
    (tree / ".deeplearning/client").symlink_to(f"../../{client.name}")
    executable(host.tmp / "java8/bin/java", "#!/bin/sh\n")
    executable(host.tmp / "spark2/bin/spark-submit", f'#!/bin/sh\ncat "$2" > {host.tmp}/settings2\n')
    text = (host.root / "etc/hadoop-env.sh").read_text().replace(f"{host.tmp}/java'", f"{host.tmp}/java8'")
    (client / "hadoop-env.sh").write_text(text)
    paths = {"spark_home": str(host.tmp / "spark2"), "spark_defaults": str(client / "spark-defaults.conf")}
    (client / "tfos-submit.json").write_text(json.dumps(paths))
    (client / "spark-defaults.conf").write_text("spark.yarn.queue old\n")
    return name


@pytest.mark.parametrize("tree", ["", ".2"])
def test_a_named_environment_is_used_with_its_own_spark_and_java(host: SimpleNamespace, tree: str) -> None:
    name = second_environment(host)
    assert submit(host, "--environment", name + tree).code == 0
    properties = settings(host, "settings2")
    assert properties["spark.executorEnv.JAVA_HOME"] == f"{host.tmp}/java8"
    assert properties["spark.yarn.queue"] == "old"
    if not tree:  # a job names the environment as all hosts do, and not this host's tree
        assert properties["spark.pyspark.python"] == f"{host.root}/envs/{name}/bin/python"


def test_switching_back_is_one_link(host: SimpleNamespace) -> None:
    name = second_environment(host)
    (host.root / "current").unlink()
    (host.root / "current").symlink_to(f"envs/{name}")
    assert submit(host).code == 0
    assert settings(host, "settings2")["spark.executorEnv.JAVA_HOME"] == f"{host.tmp}/java8"


def test_trees_and_settings_are_not_listed_as_environments(host: SimpleNamespace) -> None:
    name = second_environment(host)
    assert f"installed: {name}, tf-0123456789ab)" in refusal(host, "--environment", "nothing")
