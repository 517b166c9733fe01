"""A host with tfos-submit as hosts have it; its spark-submit, yarn and ResourceManager are stand-ins. tests/unit/conftest.py offers the fixtures."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from other_processes import as_in_a_terminal
from resource_manager import serving
from tfos_submit import options, outcome, spark

from hadoop_dl.data import programs

PROGRAM = Path(__file__).parents[2] / "roles/tensorflowonspark/files/tfos-submit"
HADOOP = {
    "JAVA_HOME": "/usr/lib/jvm/java",
    "HADOOP_HDFS_HOME": "/opt/hadoop",
    "HADOOP_CONF_DIR": "/etc/hadoop/conf",
    "LD_LIBRARY_PATH": "/opt/hadoop/lib/native:/usr/lib/jvm/java/lib/server",
    "CLASSPATH": "/opt/hadoop/a.jar:/opt/hadoop/b.jar",
}


def parsed(*arguments: str) -> Any:
    return options.arguments_parser().parse_args([*arguments, "train.py"])


def told(*arguments: str) -> dict[str, str]:
    return dict(spark.properties(parsed(*arguments), "/opt/deeplearning/envs/e", HADOOP, "tag"))


def app(state: str = "RUNNING", containers: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": "application_1_0001", "state": state, "runningContainers": containers, "queue": "default", **more}


class Yarn:
    """A ResourceManager that answers with what the test says."""

    def __init__(self) -> None:
        self.application: dict[str, Any] | None = None
        self.nodes: list[dict[str, Any]] = []
        self.labels: dict[str, Any] | None = {}  # what YARN answers without labels
        self.scheduler: dict[str, Any] = {}

    def answer(self, path: str) -> dict[str, Any] | None:
        if "/apps?" in path:
            return {"apps": {"app": [self.application]} if self.application else None}
        answers = {
            "/nodes": {"nodes": {"node": self.nodes}},
            "/get-node-labels": self.labels,
            "/scheduler": self.scheduler,
        }
        return next((answer for name, answer in answers.items() if path.endswith(name)), {})


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tfos-submit as hosts have it: one file."""
    path = tmp_path_factory.mktemp("program") / "tfos-submit"
    assert programs.main([str(PROGRAM), str(path)]) == 0
    return path


@pytest.fixture
def host(tmp_path: Path, program: Path) -> Iterator[SimpleNamespace]:
    yarn = Yarn()
    root = tmp_path / "deeplearning"
    environment = root / "envs/tf-0123456789ab"
    executable(environment / "bin/python", '#!/bin/sh\necho "python $*"\n')
    (environment / ".deeplearning").mkdir()
    (environment / ".deeplearning/sealed.json").write_text("{}")
    (root / "current").symlink_to("envs/tf-0123456789ab")
    conf = tmp_path / "conf"
    conf.mkdir()
    executable(tmp_path / "java/bin/java", "#!/bin/sh\n")
    executable(tmp_path / "hadoop/bin/yarn", f'#!/bin/sh\necho "$*" >> {tmp_path}/yarn.log\n')
    (root / "etc").mkdir()
    lines = {
        **HADOOP,
        "JAVA_HOME": f"{tmp_path}/java",
        "HADOOP_HOME": f"{tmp_path}/hadoop",
        "HADOOP_CONF_DIR": str(conf),
    }
    (root / "etc/hadoop-env.sh").write_text("".join(f"export {name}='{value}'\n" for name, value in lines.items()))
    jar = root / "jars/tensorflow-hadoop-1.15.0.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"jar")
    (root / "etc/tfos-submit.json").write_text(json.dumps({"spark_home": str(tmp_path / "spark"), "jars": [str(jar)]}))
    script = tmp_path / "train.py"
    script.write_text("")

    def spark_submit(text: str) -> None:
        executable(tmp_path / "spark/bin/spark-submit", "#!/bin/sh\n" + text)

    spark_submit(f'cat "$2" > {tmp_path}/settings; echo "$*" > {tmp_path}/command; env > {tmp_path}/variables\n')
    host = SimpleNamespace(
        tmp=tmp_path, root=root, yarn=yarn, script=script, spark_submit=spark_submit, program=program
    )
    with serving(lambda path: yarn.answer(path), conf):  # tests replace its answer
        yield host


def start(
    host: SimpleNamespace, *arguments: str, of_script: tuple[str, ...] = (), python: str = sys.executable
) -> subprocess.Popen[str]:
    command = [python, str(host.program), "--root", str(host.root), "--poll", "0.1", *arguments]
    return subprocess.Popen(
        [*command, str(host.script), *of_script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=host.tmp,
        preexec_fn=as_in_a_terminal,
        env={**os.environ, "HOME": str(host.tmp), "SPARK_CONF_DIR": "/nowhere"},
    )


def submit(host: SimpleNamespace, *arguments: str, **options: Any) -> SimpleNamespace:
    process = start(host, *arguments, **options)
    output, error = process.communicate(timeout=60)
    return SimpleNamespace(code=process.returncode, output=output, error=error)


def refusal(host: SimpleNamespace, *arguments: str) -> str:
    """What is said of a job that is not submitted."""
    completed = submit(host, *arguments)
    assert completed.code == outcome.NOT_READY, completed.error
    assert not (host.tmp / "settings").exists(), "nothing was submitted"
    return str(completed.error)


def settings(host: SimpleNamespace, name: str = "settings") -> dict[str, str]:
    """What Spark was told; the last line of a name counts."""
    return dict(re.split("[ =]", line, maxsplit=1) for line in (host.tmp / name).read_text().splitlines())


def add_jars(host: SimpleNamespace, *names: str) -> None:
    """Jars of the host's Spark."""
    (host.tmp / "spark/jars").mkdir()
    for name in names:
        (host.tmp / "spark/jars" / name).write_bytes(b"jar")
