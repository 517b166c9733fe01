"""Modules import their utilities as on a host: from ansible.module_utils."""

import os
import shutil
from pathlib import Path

import ansible.module_utils
import manager_server
import pytest

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parents[2] / "plugins" / "module_utils"))

from ansible.module_utils import environment_notice  # noqa: E402
from environments import Mirror, Site, wheel  # noqa: E402  (they import modules of hosts)
from faulty_server import Index, serving  # noqa: E402


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


@pytest.fixture
def index():
    """A package index that answers as its faults say."""
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
