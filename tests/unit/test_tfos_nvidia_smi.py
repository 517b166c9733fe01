"""What TensorFlowOnSpark gets for nvidia-smi in the executors of tfos-submit: the GPUs of the executor, on hosts with and without a driver."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from interpreters import HOST_PYTHONS
from python_files import write_script
from tfos_host import settings, submit
from tfos_submit import gpus, nvidia_smi

SITE = "lib/python3.9/site-packages/tensorflowonspark-%s.dist-info"
TWO = "GPU 0: Tesla P100-PCIE-16GB (UUID: GPU-a)\\nGPU 1: Tesla P100-PCIE-16GB (UUID: GPU-b)"
ASK = "import subprocess, sys; sys.exit(subprocess.call(['nvidia-smi'] + sys.argv[1:]))"


@pytest.fixture(params=HOST_PYTHONS)
def container(request: pytest.FixtureRequest, tmp_path: Path) -> SimpleNamespace:
    """An executor's directory as YARN makes it of --files, and questions of its Python."""
    environment, directory, host = (tmp_path / name for name in ("environment", "container", "host"))
    write_script(environment / "bin/python", f'exec {request.param} "$@"')
    host.mkdir()

    def prepare(version: str, number: int | None) -> None:
        (environment / (SITE % version)).mkdir(parents=True)
        (tmp_path / "sent").mkdir()
        for name in gpus.write_programs(str(tmp_path / "sent"), number, str(environment), str(environment)):
            path, _, link = name.partition("#")
            (directory / (link or Path(path).name)).parent.mkdir(parents=True, exist_ok=True)
            (directory / (link or Path(path).name)).symlink_to(path)
        container.variables = {"PATH": f"{host}:/bin"} | ({} if number is None else {"TFOS_GPUS": str(number)})

    def asked(*arguments: str) -> SimpleNamespace:
        command = [gpus.PYTHON, "-c", ASK, *arguments]
        completed = subprocess.run(command, cwd=directory, env=container.variables, capture_output=True, text=True)
        return SimpleNamespace(status=completed.returncode, lines=completed.stdout.splitlines(), log=completed.stderr)

    def listed(number: int) -> list[str]:
        """What get_gpus of 1.4.4 and 2.2.5 takes for the indexes of free GPUs."""
        answer, busy = asked(*nvidia_smi.LIST), asked(*nvidia_smi.BUSY)
        assert (answer.status, busy.status) == (0, 0)
        pairs = [(line.split(" ")[5].split(")")[0], line.split(" ")[1].split(":")[0]) for line in answer.lines]
        return [index for uuid, index in pairs if uuid not in busy.lines][:number]

    def of_host(text: str, status: int = 0) -> None:
        words = f'case "$*" in --list-gpus) printf "{text}\\n" ;; --format*) ;; *) echo "host $*" ;; esac'
        write_script(host / "nvidia-smi", f"{words}\nexit {status}")

    container = SimpleNamespace(prepare=prepare, asked=asked, listed=listed, of_host=of_host, directory=directory)
    return container


CPU = ["-1", "-1"]  # hides all GPUs from CUDA


@pytest.mark.parametrize(
    ("of_host", "number", "own", "expected"),
    [
        (None, None, None, CPU),  # TensorFlowOnSpark 1.4 asks for 1 if the script says nothing
        (None, 0, None, CPU),
        ((TWO, 0), 0, None, CPU),
        ((TWO, 0), 1, "1", ["1"]),
        ((TWO, 0), None, None, ["0", "1"]),
        (("No devices were found", 6), None, None, CPU),
    ],
    ids=[
        *("no driver", "no driver and none asked for", "GPUs that the job did not ask for", "those of the executor"),
        *("without the option the host decides", "a container without GPUs on a host with some"),
    ],
)
def test_version_1_takes_the_gpus_of_the_executor_and_computes_on_the_cpu_without(
    container: SimpleNamespace,
    of_host: tuple[str, int] | None,
    number: int | None,
    own: str | None,
    expected: list[str],
) -> None:
    if of_host:
        container.of_host(*of_host)
    container.prepare("1.4.4", number)
    if own:
        (container.directory / gpus.PROGRAMS / "gpus").write_text(own)
    assert container.listed(2) == expected
    says_why = "has no GPU of its own (--gpus), so TensorFlow computes on the CPU" in container.asked("--list-gpus").log
    assert says_why is (expected == CPU)


def test_a_driver_that_fails_is_not_taken_for_a_host_without_gpus(container: SimpleNamespace) -> None:
    container.of_host("NVIDIA-SMI has failed because it could not communicate with the driver", 9)
    container.prepare("1.4.4", None)
    assert container.asked("--list-gpus").status == 9


def test_version_2_computes_on_the_cpu_by_itself_and_refuses_num_gpus(container: SimpleNamespace) -> None:
    """Its is_gpu_available takes any failure for a host without GPUs."""
    container.of_host(TWO)
    container.prepare("2.2.5", 0)
    answer = container.asked("--list-gpus")
    assert (answer.status, answer.lines) == (6, ["No devices were found"])


def test_all_other_questions_are_for_the_hosts_own(container: SimpleNamespace) -> None:
    container.of_host(TWO)
    container.prepare("1.4.4", 0)
    assert container.asked("-x", "-q").lines == ["host -x -q"]


def test_a_host_without_one_answers_as_the_shell_does(container: SimpleNamespace) -> None:
    container.prepare("1.4.4", 0)
    if any(Path(place, "nvidia-smi").exists() for place in nvidia_smi.PLACES.split(":")):
        pytest.skip("this machine has a driver")
    answer = container.asked("-L")
    assert (answer.status, answer.lines, answer.log) == (127, [], "")


SENT = ["python#deeplearning-programs/python", "nvidia-smi#deeplearning-programs/nvidia-smi"]


@pytest.mark.parametrize(
    ("version", "arguments", "sent"), [("1.4.4", [], SENT), ("2.2.5", [], []), ("2.2.5", ["--gpus", "0"], SENT)]
)
def test_a_job_brings_what_its_executors_ask(
    host: SimpleNamespace, version: str, arguments: list[str], sent: list[str]
) -> None:
    environment = host.root / "envs/tf-0123456789ab"
    (environment / (SITE % version)).mkdir(parents=True)
    assert submit(host, *arguments).code == 0
    words = (host.tmp / "command").read_text().split()
    files = words[words.index("--files") + 1].split(",") if "--files" in words else []
    assert [path.rpartition("/tfos-submit-")[2].partition("/")[2] for path in files] == sent
    python = settings(host)["spark.pyspark.python"]
    assert python == (gpus.PYTHON if sent else str(environment.resolve() / "bin/python"))
    assert settings(host)["spark.executorEnv.PYSPARK_PYTHON"] == python
    assert settings(host)["spark.pyspark.driver.python"].endswith("/envs/tf-0123456789ab/bin/python")
