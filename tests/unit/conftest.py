"""Modules import their utilities as on a host: from ansible.module_utils."""

import os
import shutil
import tempfile
from pathlib import Path

import ansible.module_utils
import manager_server
import mirror_index
import pytest
from certificates import authority

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))

from ansible.module_utils import environment_notice  # noqa: E402
from environments import Mirror, Site, wheel  # noqa: E402  (they import modules of hosts)
from faulty_server import Index, serving  # noqa: E402
from source_distributions import PIP, interpreter  # noqa: E402  (it does, too)


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
def stages(fixtures, tmp_path_factory):
    """/opt/deeplearning after pip, after all components, and active: made once, because it takes its time."""
    roots = {name: tmp_path_factory.mktemp("stage") / "deeplearning" for name in ("pip", "installed", "active")}
    with serving(Mirror()) as mirror:
        site = Site(roots["pip"], mirror, fixtures)
        site.install("pip")
        site = copied(site, roots["installed"])
        site.install("tensorflow")
        site.install("keras")
        site = copied(site, roots["active"])
        site.seal()
        site.activate()
    return roots


def copied(site, root):
    shutil.copytree(site.root, root, symlinks=True)
    return Site(root, site.mirror, site.fixtures)


@pytest.fixture
def site(tmp_path, fixtures):
    """A bare host."""
    with serving(Mirror()) as mirror:
        yield Site(tmp_path / "deeplearning", mirror, fixtures)


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
    environment_notice.write(str(site.root), str(site.path), False)  # it has the path
    return site


@pytest.fixture(scope="session")
def open_python():
    """A Python that all users can read, for builds by a user without rights."""
    found = interpreter()
    if found is None:
        pytest.skip("no Python here can be read by all users")
    return found


@pytest.fixture
def open_directory():
    """A directory that all users can enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def without_keras(tmp_path_factory, open_python):
    """/opt/deeplearning with a pip that builds, and all components but keras; and the wheels that it is made of."""
    wheels = tmp_path_factory.mktemp("wheels")
    wheel(wheels, "pip", "24.0", code=PIP)
    for project in ("tensorflow", "six", "keras"):
        wheel(wheels, project)
    with serving(Mirror()) as mirror:
        site = Site(tmp_path_factory.mktemp("stage") / "deeplearning", mirror, wheels)
        site.install("pip", python=open_python)
        site.install("tensorflow")
    return site.root, wheels


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A directory with an authority, server.ca, and a certificate that it signed for servers on this machine."""
    directory = tmp_path_factory.mktemp("tls")
    authority(directory, "server")
    return directory


@pytest.fixture
def index():
    """A package index that answers as its faults say."""
    with serving(Index()) as served:
        yield served


@pytest.fixture
def direct_index(monkeypatch):
    """A package index that is asked at once: no proxy, no other index, short waits, nothing remembered."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mirror_index, "TIMEOUT", 1)
    mirror_index._pages.clear()
    with serving(Index()) as served:
        yield served


@pytest.fixture
def disk_events(monkeypatch):
    """What is made to last, and what gets a name, in this order."""
    events = []
    synced, renamed = os.fsync, os.rename

    def fsync(descriptor):
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        synced(descriptor)

    def rename(source, target):
        events.append(f"rename to {os.path.basename(target)}")
        renamed(source, target)

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
