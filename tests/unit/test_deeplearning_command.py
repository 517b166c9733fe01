"""The command deeplearning, packed as hosts have it, on a made tree of environments: real processes, a real venv, a real pip."""

import json
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import own_packages, user_environment
from deeplearning_command import cli, listing
from deeplearning_edge import BUILD_1_15, BUILD_CPU, NEW, OLD, SHOW, ask, command, free_port, refused, run
from other_processes import as_in_a_terminal


@pytest.fixture
def script(edge: Any) -> Path:
    path: Path = edge.base / "show.py"
    path.write_text(SHOW)
    return path


@pytest.fixture(scope="module")
def own(edge: Any) -> Path:
    """A user's directory with a package that fits."""
    path: Path = edge.base / "own"
    venv_run = run(edge, "venv", str(path))
    assert venv_run.returncode == 0, venv_run.stderr
    assert f"{path}/bin/pip install" in venv_run.stderr
    pip_run = pip(edge, path, "fits")
    assert pip_run.returncode == 0, pip_run.stderr
    return path


def pip(edge: Any, directory: Path, name: str) -> subprocess.CompletedProcess[str]:
    words = [directory / "bin/pip", "install", "--no-index", "--find-links", edge.wheels, name]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


# --- help and list


@pytest.mark.parametrize("name", [name for name, _ in cli.COMMANDS])
def test_the_help_of_every_command_ends_with_an_example(edge, name):
    output = run(edge, name, "--help").stdout
    assert f"  deeplearning {name}" in output.partition("example:\n")[2]
    assert f"\n  {name} " in run(edge, "--help").stdout


def test_a_wrong_command_is_answered_with_the_right_ones(edge):
    refused(edge, 2, "list, run, python, pip, venv, notebook, kernel, tensorboard", "lab")


def test_the_list_has_what_can_be_used_and_marks_the_default(edge):
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert [line.split() for line in run(edge, "list").stdout.splitlines()] == [
        ["STACK", "TENSORFLOW", "PYTHON", "CUDA", "FOR", "NAME"],
        ["tf1.15-py27-el7", "1.15.0", "2.7", "10", "GPU", "and", "CPU", OLD],
        ["*", "tf2.15-cpu-py3-el9", "2.15.1", python, "-", "CPU", NEW],
    ]


def test_a_user_has_another_default(edge):
    lines = run(edge, "list", DEEPLEARNING_ENVIRONMENT="tf1.15").stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("*")] == [OLD]


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        (BUILD_CPU, {}, None),
        (BUILD_1_15, {}, "10"),
        ("build_info = collections.OrderedDict([('cuda_version', '11.0'), ('is_cuda_build', True)])", {}, "11.0"),
        ("is_cuda_build = True\n", {}, "yes"),  # 1.6 on Linux
        ("", {"nvidia-cuda-runtime-cu12": "12.2.140"}, "12.2"),
    ],
)
def test_cuda_is_the_one_that_tensorflow_was_compiled_for(tmp_path, text, found, expected):
    path = tmp_path / "tensorflow_core" / listing.BUILD
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert listing.cuda_of(str(tmp_path), found) == expected


def test_a_host_without_an_environment_says_who_installs_one(edge, tmp_path):
    refused(SimpleNamespace(**{**vars(edge), "root": tmp_path}), 3, "ansible-playbook site.yml", "list")


# --- run, python, pip


def test_a_script_has_its_arguments_and_hadoops_variables(edge, script):
    arguments = ("--epochs", "5", "--gpus", "none")
    completed = run(edge, "run", str(script), *arguments, LD_LIBRARY_PATH="/mine", PYTHONPATH="/other")
    report = json.loads(completed.stdout)
    assert report["arguments"] == ["--epochs", "5", "--gpus", "none"]
    assert report["prefix"] == str(edge.root / "envs" / NEW)
    assert report["PATH"].startswith(f"{edge.root}/envs/{NEW}/bin:")
    assert (report["CLASSPATH"], report["HADOOP_CONF_DIR"]) == ("/opt/hadoop/a.jar", f"{edge.base}/conf")
    assert report["LD_LIBRARY_PATH"] == "/opt/hadoop/lib/native:/mine"
    assert (report["PYTHONPATH"], report["CUDA_VISIBLE_DEVICES"]) == (None, None)


@pytest.mark.parametrize("text", ["none", "0"])
def test_a_script_without_gpus_sees_none(edge, script, text):
    report = json.loads(run(edge, "run", "--gpus", text, str(script)).stdout)
    assert (report["CUDA_VISIBLE_DEVICES"], report["CUDA_DEVICE_ORDER"]) == ("", "PCI_BUS_ID")


def test_the_script_takes_the_place_of_the_command(edge, script):
    with subprocess.Popen(command(edge, "run", str(script)), stdout=subprocess.PIPE, text=True) as process:
        assert json.loads(process.communicate(timeout=60)[0])["pid"] == process.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_and_status_are_the_scripts(edge, number):
    path = edge.base / "ends.py"
    path.write_text(
        "import signal, sys, time\nfor number in (1, 2, 15):\n    signal.signal(number, lambda got, _: sys.exit(40 + got))\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(command(edge, "run", str(path)), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=30) == 40 + number


def test_a_program_ignores_no_signal_that_python_ignores(edge):
    signal_mask = int(run(edge, "python", "--stack", OLD).stdout.split()[1], 16)
    assert not signal_mask & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


@pytest.mark.parametrize(("name", "expected"), [("tf1.15", OLD), ("tf1.15-py27-el7", OLD), (OLD, OLD), ("tf2", None)])
def test_the_beginning_of_a_stacks_name_is_enough(edge, name, expected):
    if expected:
        assert run(edge, "python", "--stack", name).stdout.startswith("SigIgn")
    else:
        refused(edge, 3, f"installed: {OLD}, {NEW}", "python", "--stack", name)


def test_of_several_the_active_one_is_meant_and_without_it_all_are_named(tmp_path):
    for digest in ("0" * 12, "1" * 12):
        (tmp_path / f"envs/tf2.15-x-{digest}/bin").mkdir(parents=True)
        (tmp_path / f"envs/tf2.15-x-{digest}/.deeplearning").mkdir()
        (tmp_path / f"envs/tf2.15-x-{digest}/.deeplearning/sealed.json").write_text("{}")
    with pytest.raises(user_environment.NotReady, match="fits tf2.15-x-000000000000 and tf2.15-x-111111111111"):
        user_environment.named(str(tmp_path), "tf2.15")
    (tmp_path / "current").symlink_to(f"envs/tf2.15-x-{'1' * 12}")
    assert user_environment.named(str(tmp_path), "tf2.15") == f"tf2.15-x-{'1' * 12}"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["run"], 2, "a script is required"),
        (["run", "--epochs", "5", "train.py"], 2, "options after it are its own; found: --epochs"),
        (["run", "--gpus", "2", "train.py"], 2, "none is required (or 0)"),
        (["run", "missing.py"], 3, "the script missing.py is required"),
        (["run", "--stack", "tf9.9-0123456789ab", "show.py"], 3, "but there is none"),
        (["pip"], 2, "such as list"),
        (["pip", "install", "pandas"], 2, "deeplearning venv ~/my, then ~/my/bin/pip install pandas"),
        (["pip", "uninstall", "numpy"], 2, "never changes"),
        (["tensorboard", "--host", "0.0.0.0", "."], 2, "must listen on 127.0.0.1, but 0.0.0.0 is requested"),  # noqa: S104
        (["tensorboard", "--bind_all", "."], 2, "--bind_all is requested"),
        (["tensorboard", "--port", "65536", "."], 2, "a port from 1 to 65535 is required, but this is '65536'"),
        (["tensorboard", "missing"], 3, "missing does not exist"),
        (["tensorboard", "maprfs:///runs"], 3, "/mapr/runs does not exist"),  # no cluster of MapR is known here
        (["tensorboard", "--stack", "tf1.15", "."], 3, "has none"),
        (["tensorboard", "viewfs:///runs"], 3, "viewfs://NAMENODE/runs"),  # the configuration has no NameNode of it
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(edge, script, arguments, status, words):
    refused(edge, status, words, *arguments)


def test_pip_lists_the_environments_packages(edge):
    assert "numpy==1.26.4" in run(edge, "pip", "list", "--format=freeze").stdout.splitlines()


def test_without_java_a_script_runs_and_is_told_that_hdfs_does_not(edge, script):
    edge.java.unlink()
    try:
        completed = run(edge, "run", str(script))
        refused(edge, 3, "Java is required", "tensorboard", "hdfs:///runs")
    finally:
        edge.java.write_text("")
    assert (completed.returncode, json.loads(completed.stdout)["CLASSPATH"]) == (0, None)
    assert "hdfs:// does not work here: Java is required" in completed.stderr


# --- venv


def test_own_packages_come_on_top_and_the_environments_stay_below(edge, own):
    code = "import fits, numpy; print(fits.__file__, numpy.__file__)"
    fits, numpy = run(edge, "python", "--venv", str(own), "-c", code).stdout.split()
    assert fits.startswith(f"{own}/lib/")
    assert numpy.startswith(f"{edge.root}/envs/{NEW}/lib/")
    assert run(edge, "python", "-c", code).returncode == 1


def test_what_needs_another_version_is_refused_with_pips_reason(edge, own):
    completed = pip(edge, own, "breaks")
    assert completed.returncode == 1
    assert "breaks 1.0 depends on numpy>=2" in completed.stdout + completed.stderr
    assert "(constraint) numpy==1.26.4" in completed.stdout + completed.stderr


def test_a_script_with_own_packages_has_hadoops_variables(edge, own, script):
    report = json.loads(run(edge, "run", "--venv", str(own), str(script)).stdout)
    assert (report["prefix"], report["CLASSPATH"]) == (str(own), "/opt/hadoop/a.jar")
    assert report["PATH"].startswith(f"{own}/bin:")


def test_executors_get_the_own_packages_alone(edge, own, tmp_path):
    directory = own_packages.opened(str(edge.root), str(own))
    archive = own_packages.pack(directory, str(tmp_path / "packages.zip"))
    with zipfile.ZipFile(archive) as zip_file:
        names = zip_file.namelist()
    assert "fits.py" in names
    assert not [name for name in names if name.startswith("numpy") or name.endswith((".pth", ".pyc"))]
    assert Path(directory.environment) == edge.root / "envs" / NEW


def test_a_directory_without_packages_sends_nothing(edge, own, tmp_path):
    """YARN fails at an empty zip archive: it makes no directory of it, and then cannot change its mode (seen with 3.3.6)."""
    empty = tmp_path / "empty"
    assert run(edge, "venv", str(empty)).returncode == 0
    directory = own_packages.opened(str(edge.root), str(empty))
    assert own_packages.pack(directory, str(tmp_path / "packages.zip")) is None


def test_the_directory_must_be_new(edge, own):
    refused(edge, 3, "is in use", "venv", str(own))
    refused(edge, 2, "without blanks", "venv", str(edge.base / "a b"))


def test_one_that_could_not_be_made_leaves_nothing(edge):
    completed = run(edge, "venv", "--stack", "tf1.15", str(edge.base / "half"))  # its Python prints and makes nothing
    assert completed.returncode == 3
    assert "pip" in completed.stderr or "must be made" in completed.stderr
    assert not (edge.base / "half").exists()


def test_own_packages_of_an_environment_that_went_are_told(edge, own):
    record = own / own_packages.RECORD
    text = record.read_text()
    record.write_text(json.dumps({"environment": "tf1.0-000000000000"}))
    try:
        refused(edge, 3, "is not on this host any more", "python", "--venv", str(own))
    finally:
        record.write_text(text)


# --- tensorboard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_tensorboard_is_for_this_host_and_ends_with_the_command(edge, number):
    port = free_port()
    address = "hdfs://master1:8020/user/anna/runs"  # TensorFlow takes an address without a NameNode for a local one
    arguments = command(edge, "tensorboard", "--port", str(port), "hdfs:///user/anna/runs")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal) as process:
        try:
            report = ask(f"http://127.0.0.1:{port}")
            process.send_signal(number)
            output = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert report == {
        "--logdir": address,
        "--host": "127.0.0.1",
        "--port": str(port),
        "--reload_interval": "30",
        "cuda": "",
        "jars": "/opt/hadoop/a.jar",
    }
    assert f"ssh -N -L {port}:127.0.0.1:{port} " in output
    assert process.returncode in (-number, 1)
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def test_a_port_that_is_used_is_told(edge):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        refused(edge, 3, f"{port} is used", "tensorboard", "--port", str(port), ".")
