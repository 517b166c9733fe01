"""The slow server: it sends the beginning of an answer, then a byte now and then, for ever. Everything that opens an address meets it, and ends in time."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import yarn_cluster
from loopback import trickling
from resource_manager import ADDRESS, write_settings
from tfos_submit import cli

REPOSITORY = Path(__file__).resolve().parents[3]
OPENERS = re.compile(r"build_opener|urlopen|HTTPS?Connection\(|socket\.create_connection|open_url\(")
SECONDS = 60  # for one program; the limits are 1 to 10 s here, and machines are slow
NODE_MANAGER, EXCLUDED = "yarn.nodemanager.webapp.address", "yarn.resourcemanager.nodes.exclude-path"
Call = Callable[[SimpleNamespace, str], Any]


def of_users(*words: str) -> Call:
    """tfos-submit: the name of a verb comes first, and the script last."""

    def call(host: SimpleNamespace, address: str) -> Any:
        end = [str(host.script) if word == "SCRIPT" else word for word in words[1:]]
        return cli.main([words[0], "--root", str(host.root), *end])

    return call


def of_yarn(name: str, **arguments: Any) -> Call:
    return lambda host, address: host_modules.run(name, conf_dir=str(host.tmp / "conf"), **arguments)


def of_the_mirror(state: str, folder: str) -> Call:
    artifact = {"name": "x", "folder": folder, "project": "x", "sha256": "0" * 64, "size": 10}

    def call(host: SimpleNamespace, address: str) -> Any:
        options = {"state": state, "url": address, "root": str(host.tmp / "mirror"), "timeout": 1}
        environment = {"PIP_INDEX_URL": address + "/simple", "no_proxy": "*"}
        return host_modules.run(
            "mirror_artifacts", artifacts=[{**artifact, "url": address}], environment=environment, **options
        )

    return call


def of_a_role(host: SimpleNamespace, address: str) -> Any:
    return host_modules.run("fetch_file", url=address, path=str(host.tmp / "x"), sha256="0" * 64, timeout=1)


def of_removal(host: SimpleNamespace, address: str) -> Any:
    return yarn_cluster.reasons(["tf-0123456789ab"], str(host.root / "etc/hadoop-env.sh"))


# What a user or a role starts, and words of its answer. `tfos-submit stop` asks nobody itself; a job
# whose resources nobody names begins.
PROGRAMS: dict[str, tuple[Call, str]] = {
    "tfos-submit jobs": (of_users("jobs"), "must answer, but does not"),
    "tfos-submit logs": (of_users("logs", "application_1_0001"), "logs could not be read"),
    "tfos-submit --per-node": (of_users("--per-node=1", "SCRIPT"), "names no running one"),
    "tfos-submit --gpus": (of_users("--gpus=1", "SCRIPT"), "2 executors with"),
    "tfos-submit --node-label": (of_users("--node-label=gpu", "SCRIPT"), "node label gpu"),
    "yarn_manager: nodes": (of_yarn("yarn_manager", state="nodes", names=["data1"]), "no complete answer"),
    "yarn_manager: reports": (of_yarn("yarn_manager", state="reports", nodes=["data1"]), "no complete answer"),
    "yarn_gpu_plugin": (of_yarn("yarn_gpu_plugin", patience=1), "no complete answer"),
    "removal": (of_removal, "YARN did not report which environments"),
    "fetch_file": (of_a_role, "not complete in the time"),
    "mirror: index": (of_the_mirror("fetched", "wheels"), "not complete when the time was over"),
    "mirror: file": (of_the_mirror("fetched", "files"), "not complete when the time was over"),
    "mirror: served": (of_the_mirror("served", "files"), "x must have 10 bytes"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_in_time_if_a_server_trickles(host, name, monkeypatch, capsys):
    call, words = PROGRAMS[name]
    monkeypatch.setattr(yarn_cluster, "TIMEOUT", 1)
    (host.tmp / "excluded").touch()
    begin = time.monotonic()
    with trickling() as address:
        place = address.removeprefix("http://")
        settings = {ADDRESS: place, NODE_MANAGER: place, EXCLUDED: str(host.tmp / "excluded")}
        write_settings(host.tmp / "conf/yarn-site.xml", settings)
        answer = call(host, address)
    assert time.monotonic() - begin < SECONDS
    assert re.search(words, f"{answer} {capsys.readouterr()}")


# Files that open addresses, and the test of each in which that is slow.
MEETS = {
    "plugins/module_utils/hadoop_dl_host/connections.py": "test_downloads.py",
    "plugins/module_utils/hadoop_dl_host/downloads.py": "test_downloads.py",
    "plugins/module_utils/hadoop_dl_host/yarn_cluster.py": "hostile/test_slow_server.py",  # curl has --max-time, and ends as a program
    "plugins/module_utils/hadoop_dl_host/mirror_files.py": "hostile/test_slow_server.py",
    "plugins/module_utils/hadoop_dl_host/mirror_index.py": "hostile/test_slow_server.py",
    "plugins/module_utils/hadoop_dl_host/mirror_served.py": "hostile/test_slow_server.py",
    "plugins/modules/yarn_gpu_plugin.py": "hostile/test_slow_server.py",
    "lib/hadoop_dl/hosts/managers/server.py": "test_managers.py",
}


def test_everything_that_opens_an_address_meets_a_server_that_trickles():
    paths = [path for top in ("plugins", "lib/hadoop_dl", "roles") for path in (REPOSITORY / top).rglob("*.py")]
    opening = {str(path.relative_to(REPOSITORY)) for path in paths if OPENERS.search(path.read_text(encoding="utf-8"))}
    assert opening == set(MEETS)
    for test in MEETS.values():
        assert re.search("trickl|that_hangs", (REPOSITORY / "tests/unit" / test).read_text(encoding="utf-8")), test
