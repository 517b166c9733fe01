"""An edge node with the command deeplearning, packed as hosts have it. tests/unit/conftest.py offers the fixture."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from python_files import write_script
from resource_manager import write_settings

from hadoop_dl.data import programs

PROGRAM = Path(__file__).parents[2] / "roles/deeplearning_command/files/deeplearning"
NEW, OLD = "tf2.15-cpu-py3-el9-0123456789ab", "tf1.15-py27-el7-ba9876543210"
SHOW = """
import json, os, sys
names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CLASSPATH", "HADOOP_CONF_DIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PATH")
print(json.dumps({"prefix": sys.prefix, "pid": os.getpid(), "arguments": sys.argv[1:], **{name: os.environ.get(name) for name in names}}))
"""
# tensorflow/python/platform/build_info.py of tensorflow 1.15.0 and of tensorflow-cpu 2.15.1, without their comments.
BUILD_1_15 = "is_rocm_build = False\nis_cuda_build = True\ncuda_version_number = '10'\ncudnn_version_number = '7'\n"
BUILD_CPU = (
    "import collections\n\nbuild_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False), "
    "('is_tensorrt_build', False)])\n"
)
# The arguments that count; what serves is Python's own server. It says what it was given.
TENSORBOARD = """
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({**given, "cuda": os.environ.get("CUDA_VISIBLE_DEVICES"), "jars": os.environ.get("CLASSPATH")}).encode())
HTTPServer((given["--host"], int(given["--port"])), Page).serve_forever()
"""


def package(site: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> None:
    directory = site / f"{name}-{version}.dist-info"
    directory.mkdir(parents=True)
    (site / f"{name}.py").write_text(f"version = {version!r}\n")
    requirement_lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirement_lines}")
    (directory / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    files = [f"{name}.py", *(f"{directory.name}/{file}" for file in ("METADATA", "WHEEL", "RECORD"))]
    (directory / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def wheel(directory: Path, name: str, version: str, requires: tuple[str, ...] = ()) -> None:
    parts = directory / f"{name}-{version}"
    package(parts, name, version, requires)
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path in sorted(parts.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(parts))


def sealed(tree: Path, build: str, tensorflow: str, version: str) -> Path:
    name = tree.name.rpartition(".")[0]
    (tree / ".deeplearning").mkdir(parents=True)
    (tree / ".deeplearning/sealed.json").write_text("{}")
    (tree / ".deeplearning/client").symlink_to(f"../../{name}.client")
    (tree.parent / name).symlink_to(tree.name)
    (site,) = tree.glob("lib/python*/site-packages")
    (site / f"{tensorflow}-{version}.dist-info").mkdir()
    path = site / "tensorflow/python/platform/build_info.py"
    path.parent.mkdir(parents=True)
    path.write_text(build)
    return site


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """An edge node with two environments, of which the newer is active and can run; wheels for pip; the command."""
    base = tmp_path_factory.mktemp("host")
    root, wheels, program = base / "deeplearning", base / "wheels", base / "deeplearning.bin"
    assert programs.main([str(PROGRAM), str(program)]) == 0
    tree = root / f"envs/{NEW}.1"
    subprocess.run([sys._base_executable, "-m", "venv", str(tree)], check=True, timeout=120)  # type: ignore[attr-defined]
    packages = sealed(tree, BUILD_CPU, "tensorflow_cpu", "2.15.1")
    package(packages, "numpy", "1.26.4")
    (tree / "bin/tensorboard").write_text(TENSORBOARD)
    old = root / f"envs/{OLD}.3"
    (old / "lib/python2.7/site-packages").mkdir(parents=True)
    write_script(old / "bin/python", "grep SigIgn /proc/self/status\nexit 3")
    sealed(old, BUILD_1_15, "tensorflow", "1.15.0")
    (root / "envs/tf9.9-0123456789ab.1/bin").mkdir(parents=True)  # a run was killed here
    (root / "current").symlink_to(f"envs/{NEW}")
    java = base / "java/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    lines = {
        "JAVA_HOME": f"{base}/java",
        "HADOOP_HDFS_HOME": "/opt/hadoop",
        "HADOOP_CONF_DIR": f"{base}/conf",
        "LD_LIBRARY_PATH": "/opt/hadoop/lib/native",
        "CLASSPATH": "/opt/hadoop/a.jar",
    }
    (root / f"envs/{NEW}.client").mkdir()
    hadoop = root / f"envs/{NEW}.client/hadoop-env.sh"
    hadoop.write_text("".join(f"export {name}='{value}'\n" for name, value in lines.items()))
    (base / "conf").mkdir()
    write_settings(base / "conf/core-site.xml", {"fs.defaultFS": "hdfs://master1:8020/"})
    wheels.mkdir()
    wheel(wheels, "numpy", "2.0.0")
    wheel(wheels, "fits", "1.0", ("numpy",))
    wheel(wheels, "breaks", "1.0", ("numpy>=2",))
    return SimpleNamespace(base=base, root=root, program=program, wheels=wheels, hadoop=hadoop, java=java)


def command(edge: Any, name: str, *arguments: str) -> list[str]:
    return [str(edge.program), name, "--root", str(edge.root), *arguments]


def run(edge: Any, name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "DEEPLEARNING_"))}
    return subprocess.run(
        command(edge, name, *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**environment, "HOME": str(edge.base), **variables},
        cwd=edge.base,
    )


def refused(edge: Any, status: int, words: str, *arguments: str, **variables: str) -> None:
    """Check that the command ends with this status, and with these words on standard error."""
    completed = run(edge, *arguments, **variables)
    assert (completed.returncode, words in completed.stderr) == (status, True), completed.stderr


def ask(address: str) -> Any:
    """What a server says that was started just now: its JSON, or the status of a refusal."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 (the test's own server)
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.1)
    raise AssertionError("no answer within 30 s")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
