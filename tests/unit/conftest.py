"""Modules import their utilities as on a host: from ansible.module_utils."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ansible_programs
import manager_server
import pytest
from ansible.module_utils.hadoop_dl_host import downloads, mirror_index, source_wheels
from certificates import authority
from deeplearning_edge import edge as edge  # a fixture, like the next three
from environments import Mirror, Site, wheel
from faulty_server import Index, serving
from kdc import Realm
from source_distributions import NAME, RECIPE, digest, interpreter, source
from tfos_host import host as host
from tfos_host import program as program
from upgrade_hosts import cluster as cluster

from hadoop_dl_dev.check_steps import CALLBACKS

# Modules on hosts that are this machine: their Python keeps bytecode, and reads its program in blocks instead of bytes.
BYTECODE = ansible_programs.REPOSITORY / ".cache" / "test" / "bytecode"
BYTECODE.mkdir(parents=True, exist_ok=True)
with contextlib.suppress(FileExistsError):  # here it gets bytecode of its own, which must not go into images
    (BYTECODE / "sitecustomize.py").symlink_to(ansible_programs.REPOSITORY / "demo" / "build" / "sitecustomize.py")
os.environ.update(PYTHONPATH=str(BYTECODE), ANSIBLE_BYTECODE=str(BYTECODE))
os.environ["ANSIBLE_CALLBACK_PLUGINS"] = CALLBACKS
os.environ.pop("PYTHONUNBUFFERED", None)

# These start first, the longest one before the others: what starts last decides when the unit tests end.
LONGEST = (
    "test_hostile_hosts",
    "test_upgrade_stack",
    "test_rollback",
    "test_activation",
    "test_cdsw_deployment",
    "test_removal",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def fixtures(tmp_path_factory):
    """The wheels of a small stack."""
    directory = tmp_path_factory.mktemp("wheels")
    wheel(directory, "pip", "24.0")
    wheel(directory, "tensorflow")
    wheel(directory, "six")
    wheel(directory, "keras", code="import tensorflow\n")
    return directory


@pytest.fixture(scope="session")
def stages(fixtures):
    """/opt/deeplearning after pip, after all components, and active: made once, because it takes its time."""
    directory = Path(tempfile.mkdtemp())  # pytest's own is closed to the user that imports an environment
    directory.chmod(0o755)
    roots = {name: directory / name / "deeplearning" for name in ("pip", "installed", "active")}
    with serving(Mirror()) as mirror:
        site = Site(roots["pip"], mirror, fixtures)
        site.install("pip")
        site = copied(site, roots["installed"])
        site.install("tensorflow")
        site.install("keras")
        site = copied(site, roots["active"])
        site.seal()
        site.activate()
    yield roots
    shutil.rmtree(directory)


def copied(site, root):
    shutil.copytree(site.root, root, symlinks=True)
    return Site(root, site.mirror, site.fixtures)


@pytest.fixture
def site(open_directory, fixtures):
    """A bare host."""
    with serving(Mirror()) as mirror:
        yield Site(open_directory / "deeplearning", mirror, fixtures)


@pytest.fixture
def with_pip(site, stages):
    shutil.copytree(stages["pip"], site.root, symlinks=True)
    return site


@pytest.fixture
def unproved(site, stages):
    """Everything is installed, nothing is sealed."""
    shutil.copytree(stages["installed"], site.root, symlinks=True)
    return site


@pytest.fixture
def done(site, stages):
    """The environment is sealed and active."""
    shutil.copytree(stages["active"], site.root, symlinks=True)
    return site


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """Of the source above, with the sha256 of its wheel."""
    path = source(tmp_path)
    monkeypatch.setitem(source_wheels.RECIPES, digest(path), RECIPE)
    with pytest.raises(source_wheels.NoWheel) as error:
        source_wheels.make(NAME, digest(path), str(path), str(tmp_path))
    recipe = RECIPE._replace(sha256=str(error.value).partition(" but has ")[2][:64])
    monkeypatch.setitem(source_wheels.RECIPES, digest(path), recipe)
    return recipe


@pytest.fixture(scope="session")
def open_python():
    """A Python that all users can read, for programs of a user without rights."""
    python = interpreter()
    if python is None:
        pytest.skip("no Python here can be read by all users")
    return python


@pytest.fixture
def open_directory():
    """A directory that all users can enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A directory with an authority, server.ca, and a certificate that it signed for servers on this machine."""
    directory = tmp_path_factory.mktemp("tls")
    authority(directory, "server")
    return directory


@pytest.fixture
def index(monkeypatch):
    """A package index that answers as its faults say, and is asked at once: no proxy, no other index, short waits, nothing remembered."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(downloads, "SILENCE", 1)
    mirror_index._pages.clear()
    with serving(Index()) as index:
        yield index


@pytest.fixture
def disk_events(monkeypatch):
    """What is made to last, and what gets a name, in this order."""
    events = []
    sync_file, rename_file = os.fsync, os.rename

    def fsync(descriptor):
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync_file(descriptor)

    def rename(source, target):
        events.append(f"rename to {os.path.basename(target)}")
        rename_file(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    return events


@pytest.fixture
def cloudera():
    """Cloudera Manager on loopback."""
    with manager_server.serving(manager_server.Cloudera()) as manager:
        yield manager


@pytest.fixture
def ambari():
    """Ambari on loopback."""
    with manager_server.serving(manager_server.AmbariServer()) as manager:
        yield manager


@pytest.fixture
def small(open_directory):
    """A function that mounts a small file system with these options."""
    path = open_directory / "small"
    path.mkdir()

    def mount(options):
        argv = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
        completed = subprocess.run(argv, capture_output=True, text=True, check=False)
        if completed.returncode:
            pytest.skip(f"a small file system needs the right to mount: {completed.stderr.strip()}")
        return path

    yield mount
    if path.is_mount():
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    realm = Realm(tmp_path_factory.mktemp("realm"))
    try:
        yield realm.start()
    finally:
        realm.stop()


@pytest.fixture
def realm(running: Realm, monkeypatch: pytest.MonkeyPatch) -> Realm:
    for name, value in running.variables.items():
        monkeypatch.setenv(name, value)
    return running
