"""Wheels that the mirror builds of source distributions: made of the source alone, and installed by hosts only if that is shown."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
from ansible.module_utils import environment_packages, mirror_files, mirror_wheels
from environments import Site, copy_of, wheel
from interpreters import AS_ON_A_HOST, HOST_PYTHONS
from source_distributions import PIP, sdist

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")

UTILITIES = Path(mirror_wheels.__file__).parent
OWN = "VALUE = 'of the source'\n"
# setup.py of the source: works only as a user without rights, compiler and network.
HONEST = (
    "assert os.getuid() != 0 and os.environ['CC'] == '/bin/false' and os.listdir('/sys/class/net')\n"
    "assert open('/proc/net/dev').read().count(':') == 1\n"
    "wheel(text=open('evil.py').read())\n"
)
FAILS = "sys.exit('setup.py ran')"


class MirrorHost:
    """A mirror's directory with one source distribution and the lock's pip."""

    def __init__(self, directory: Path, python: str) -> None:
        self.root, self.workspace, self.python = directory / "mirror", directory / "mirror_host" / "work", python
        (self.root / "wheels").mkdir(parents=True)
        (directory / "mirror_host").mkdir()
        self.pip = wheel(self.root / "wheels", "pip", "24.0", code=PIP)

    def offer(self, setup: str, **files: str) -> None:
        (self.root / "wheels" / "evil-1.0.tar.gz").write_bytes(sdist(setup, **files))

    def line(self, name: str, project: str, version: str) -> str:
        content = (self.root / "wheels" / name).read_bytes()
        return f"{project}=={version} --hash=sha256:{hashlib.sha256(content).hexdigest()}  # {name} {len(content)}"

    @property
    def lock(self) -> str:
        pip, own = self.line(self.pip.name, "pip", "24.0"), self.line("evil-1.0.tar.gz", "evil", "1.0")
        return f"# component: pip\n{pip}\n\n# component: keras\n{own}\n"

    @property
    def environments(self) -> list[dict[str, str]]:
        return [{"python": "3.x", "lock": self.lock, "interpreter": self.python}]

    def build(self) -> tuple[dict[str, str], dict[str, str]]:
        found: tuple[dict[str, str], dict[str, str]] = mirror_wheels.build(
            self.environments, str(self.root), str(self.workspace), 60
        )
        return found

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(mirror_files.manifest_of(str(self.root)))


@pytest.fixture
def mirror_host(open_directory: Path, open_python: str) -> MirrorHost:
    return MirrorHost(open_directory, open_python)


def test_a_source_distribution_is_built_once_and_recorded_with_its_source(mirror_host: MirrorHost) -> None:
    mirror_host.offer(HONEST, **{"evil.py": OWN})
    assert mirror_host.build() == ({"evil-1.0.tar.gz for Python 3.x": "evil-1.0-py3-none-any.whl"}, {})
    [(path, row)] = mirror_host.manifest.items()
    source = hashlib.sha256((mirror_host.root / "wheels/evil-1.0.tar.gz").read_bytes()).hexdigest()
    assert path == f"built/3.x/{source}/evil-1.0-py3-none-any.whl"
    assert row["source"] == source
    assert row["sha256"] == hashlib.sha256((mirror_host.root / path).read_bytes()).hexdigest()
    assert row["python"] == "3.x"
    assert not mirror_host.workspace.exists()
    assert mirror_host.build() == ({}, {})


def test_a_damaged_wheel_is_built_again(mirror_host: MirrorHost) -> None:
    mirror_host.offer(HONEST, **{"evil.py": OWN})
    mirror_host.build()
    [path] = mirror_host.manifest
    (mirror_host.root / path).write_bytes(b"damaged")
    assert mirror_host.build()[0]
    digest = hashlib.sha256((mirror_host.root / path).read_bytes()).hexdigest()
    assert [row["sha256"] for row in mirror_host.manifest.values()] == [digest]
    assert mirror_host.build() == ({}, {})


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ("wheel(text='VALUE = 1')", "its source does not have its evil.py"),
        ("wheel(text=open('evil.py').read(), name='evil-1.0-cp311-cp311-linux_x86_64.whl')", "it has compiled code"),
        (FAILS, "setup.py ran"),
    ],
)
def test_what_is_not_of_the_source_alone_is_not_published(mirror_host: MirrorHost, setup: str, reason: str) -> None:
    mirror_host.offer(setup, **{"evil.py": OWN})
    built, refused = mirror_host.build()
    assert built == {}
    assert reason in refused["evil-1.0.tar.gz for Python 3.x"]
    assert mirror_host.manifest == {}
    assert not mirror_host.workspace.exists()


def test_a_python_that_the_mirror_host_lacks_is_named(mirror_host: MirrorHost) -> None:
    mirror_host.offer(HONEST, **{"evil.py": OWN})
    found = host_modules.run(
        "mirror_wheels",
        root=str(mirror_host.root),
        workspace=str(mirror_host.workspace),
        environments=[{"python": "2.1", "lock": mirror_host.lock}],
    )
    assert found["not_built"] == {"evil-1.0.tar.gz for Python 2.1": "this host has no Python 2.1"}
    assert found["changed"] is False


def test_a_killed_run_leaves_nothing_that_stops_the_next_one(mirror_host: MirrorHost) -> None:
    mirror_host.offer(HONEST, **{"evil.py": OWN})
    (mirror_host.workspace / "wheels-0123456789ab.1/.deeplearning/build").mkdir(parents=True)
    arguments = {"root": str(mirror_host.root), "workspace": str(mirror_host.workspace)}
    found = host_modules.run("mirror_wheels", environments=mirror_host.environments, **arguments)
    assert (found["changed"], list(found["built"])) == (True, ["evil-1.0.tar.gz for Python 3.x"])
    again = host_modules.run("mirror_wheels", environments=mirror_host.environments, **arguments)
    assert again["changed"] is False


# --- hosts --------------------------------------------------------------------------------------------------------------


class Host(Site):
    """A host whose component keras is one source distribution, which the mirror has as a wheel, too."""

    def offer(self, setup: str, **files: str) -> None:
        content = sdist(setup, **files)
        self.mirror.files["evil-1.0.tar.gz"] = content
        self.source = hashlib.sha256(content).hexdigest()
        self.lines["keras"] = [f"evil==1.0 --hash=sha256:{self.source}  # evil-1.0.tar.gz {len(content)}"]

    def serve(self, content: bytes, name: str = "evil-1.0-py3-none-any.whl", **changes: Any) -> None:
        """The mirror's manifest names this wheel as that of the source."""
        python = Path(environment_packages.site_packages(str(self.tree))).parent.name[len("python") :]
        self.mirror.files[name] = content
        row = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "source": self.source, **changes}
        manifest = {"schema": 1, "artifacts": {f"built/{python}/{self.source}/{name}": row}}
        self.mirror.files["manifest.json"] = json.dumps(manifest).encode()

    @property
    def value(self) -> str:
        return (self.packages / "evil.py").read_text()


def contents(**changes: str | None) -> bytes:
    """The wheel of the source below, with other members."""
    information = "evil-1.0.dist-info/"
    members: dict[str, str | None] = {
        "evil.py": OWN,
        "evils/__init__.py": "",
        "evils/checks.py": "CHECKS = True\n",
        information + "METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        information + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        information + "entry_points.txt": "[console_scripts]\nevil = evil:VALUE\n",
        **changes,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            if text is not None:
                archive.writestr(name, text)
    return buffer.getvalue()


SOURCE = {
    "evil.py": OWN,
    "evils/__init__.py": "",
    "evils/checks.py": "CHECKS = True\n",
    "evil.egg-info/entry_points.txt": "[console_scripts]\nevil=evil:VALUE\n\n",
    "tests/loader.py": "import os\n",
}


@pytest.fixture
def host(without_keras: tuple[Path, Path], open_directory: Path) -> Iterator[Host]:
    with copy_of(without_keras, open_directory / "deeplearning", Host) as found:
        yield found


def test_a_host_installs_the_mirrors_wheel_and_runs_no_setup(host: Host) -> None:
    host.offer(FAILS, **SOURCE)
    host.serve(contents())
    assert host.install("keras")["built"] == {"evil-1.0.tar.gz": "built on the mirror"}
    assert host.value == OWN
    host.seal(imports=["tensorflow", "evil"])
    assert host.install("keras")["changed"] is False


INFORMATION = "evil-1.0.dist-info/"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (contents(**{"evil.py": OWN + "import os\n"}), "its source does not have its evil.py"),
        (contents(**{"more.py": "x = 1\n"}), "its source does not have its more.py"),
        (contents(**{"loader.py": "import os\n"}), "its source does not have its loader.py"),
        (contents(**{"evil/__init__.py": ""}), "its source does not have its evil/__init__.py"),
        (contents(**{"evils/checks.py": None}), "it lacks evils/checks.py of its source"),
        (contents(**{INFORMATION + "entry_points.txt": "[console_scripts]\nevil = os:abort\n"}), "its scripts are not"),
        (contents(**{INFORMATION + "entry_points.txt": None}), "its scripts are not"),
        (contents(**{INFORMATION + "run.py": "x = 1\n"}), "its source has no run.py"),
        (contents(**{"evil-1.0.data/scripts/ls": "#!python\n"}), "files outside of site-packages"),
        (contents(**{"evil.pth": "import os\n"}), "a file that Python runs whenever it starts"),
        (contents(**{"six.py": "x = 1\n"}), "a file of another wheel"),
        (contents(**{INFORMATION + "METADATA": "Name: other\nVersion: 1.0\n"}), "must become evil 1.0"),
        (b"no wheel", "cannot be read"),
    ],
)
def test_a_wheel_that_is_not_of_the_source_alone_is_not_installed(host: Host, content: bytes, reason: str) -> None:
    """The host builds it instead, and says why."""
    host.offer("wheel(text='VALUE = 1')", **SOURCE)
    host.serve(content)
    [origin] = host.install("keras")["built"].values()
    assert origin.startswith("built here: ")
    assert reason in origin
    assert host.value == "VALUE = 1"
    assert sorted(path.name for path in host.packages.glob("[elms]*.p*")) == ["evil.py", "six.py"]


@pytest.mark.parametrize(
    ("faults", "changes", "manifest", "reason"),
    [
        ({}, {"sha256": "0" * 64}, None, "differs from its manifest"),
        ({}, {"size": 3}, None, "differs from its manifest"),
        ({}, {"size": 1 << 40}, None, "has no wheel of it for Python"),
        ({}, {"size": "9"}, None, "has no wheel of it for Python"),
        ({"evil-1.0-py3-none-any.whl": ["flip"]}, {}, None, "differs from its manifest"),
        ({"evil-1.0-py3-none-any.whl": ["404"]}, {}, None, "has no wheel of it (status 404"),
        ({"manifest.json": ["404"]}, {}, None, "has no wheel of it (status 404"),
        ({}, {}, b"[]", "manifest cannot be read"),
        ({}, {}, b"\xff{", "manifest cannot be read"),
        ({}, {}, b'{"artifacts": {}}', "has no wheel of it for Python"),
    ],
)
def test_without_a_proper_wheel_on_the_mirror_the_host_builds_it(
    host: Host, faults: dict[str, list[str]], changes: dict[str, Any], manifest: bytes | None, reason: str
) -> None:
    host.offer("wheel(text='VALUE = 1')", **SOURCE)
    host.serve(contents(), **changes)
    host.mirror.faults.update(faults)
    if manifest is not None:
        host.mirror.files["manifest.json"] = manifest
    [origin] = host.install("keras")["built"].values()
    assert reason in origin
    assert host.value == "VALUE = 1"


def test_what_the_mirror_builds_is_what_hosts_accept(mirror_host: MirrorHost, host: Host) -> None:
    mirror_host.offer(HONEST, **{"evil.py": OWN})
    mirror_host.build()
    [path] = mirror_host.manifest
    host.offer(HONEST, **{"evil.py": OWN})
    host.serve((mirror_host.root / path).read_bytes())
    assert host.install("keras")["built"] == {"evil-1.0.tar.gz": "built on the mirror"}


SHOW = """
from ansible.module_utils import source_proof
try:
    source_proof.show(sys.argv[2], sys.argv[3], "lib/python2.7/site-packages")
    print("shown")
except source_proof.NotShown as problem:
    print(problem)
"""


@pytest.mark.parametrize("interpreter_of_hosts", HOST_PYTHONS)
@pytest.mark.parametrize("name", ["evil-1.0.tar.gz", "evil-1.0.zip"])
def test_the_pythons_of_hosts_compare_a_wheel_with_its_source(
    tmp_path: Path, interpreter_of_hosts: str, name: str
) -> None:
    source, built = tmp_path / name, tmp_path / "evil-1.0-py3-none-any.whl"
    if name.endswith(".zip"):
        with zipfile.ZipFile(source, "w") as archive:
            for path, text in SOURCE.items():
                archive.writestr(f"evil-1.0/{path}", text)
    else:
        source.write_bytes(sdist("", **SOURCE))

    def shown(content: bytes) -> str:
        built.write_bytes(content)
        command = [interpreter_of_hosts, "-B", "-c", AS_ON_A_HOST + SHOW, str(UTILITIES), str(built), str(source)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()[-1]

    assert shown(contents()) == "shown"
    assert shown(contents(**{"evil.py": "x"})) == "its source does not have its evil.py"
    assert shown(contents(**{"evils/checks.py": None})) == "it lacks evils/checks.py of its source"
    assert shown(b"no wheel").startswith("it is no proper wheel")
