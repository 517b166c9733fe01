"""Old environments stay while YARN has an application that names them, also one that waits in a queue."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from ansible.module_utils.hadoop_dl_host import yarn_cluster
from loopback import Quiet, served
from resource_manager import ADDRESS, write_settings

OLD, OLDER = "old-stack-000000000001", "older-stack-000000000002"


class Manager:
    """A ResourceManager's answer about applications, in the form of Hadoop's REST interface."""

    status = 200
    body: Any = None
    address = ""
    environment_file = ""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    stand_in = Manager()

    class Handler(Quiet):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            states = set(parse_qs(address.query)["states"][0].split(","))
            right = address.path == "/ws/v1/cluster/apps" and {"ACCEPTED", "RUNNING", "SUBMITTED"} <= states
            body = stand_in.body if isinstance(stand_in.body, bytes) else json.dumps(stand_in.body).encode()
            self.answer(stand_in.status if right else 404, body)

    with served(Handler) as stand_in.address:
        stand_in.environment_file = environment_file(tmp_path, stand_in.address.removeprefix("http://"))
        yield stand_in


def environment_file(directory: Path, address: str) -> str:
    """hadoop-env.sh as the role writes it, with the site's yarn-site.xml."""
    conf = directory / "hadoop conf"
    conf.mkdir()
    write_settings(conf / "yarn-site.xml", {ADDRESS: address})
    path = directory / "hadoop-env.sh"
    path.write_text(f"export HADOOP_HOME=/opt/hadoop\nexport HADOOP_CONF_DIR='{conf}'\n", encoding="utf-8")
    return str(path)


def applications(*tags: str) -> Any:
    return {
        "apps": {
            "app": [{"id": f"application_1_{n}", "user": "anna", "applicationTags": tag} for n, tag in enumerate(tags)]
        }
    }


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ({"apps": None}, set()),
        (applications("", "oozie-1"), set()),
        (applications(f"tfos-submit-0a1b2c,{yarn_cluster.mark(OLD)}"), {OLD}),
        (applications("tfos-submit-0a1b2c"), set()),
        ({"apps": {"app": applications(yarn_cluster.mark(OLDER))["apps"]["app"][0]}}, {OLDER}),
    ],
    ids=["none", "of others", "marked", "with a tag of tfos-submit alone", "one without a list"],
)
def test_an_environment_that_an_application_names_is_needed(manager, body, needed):
    manager.body = body
    assert set(yarn_cluster.reasons([OLD, OLDER], manager.environment_file)) == needed


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((403, b""), (200, b"<html>This is standby RM"), (200, {"no": "apps"}), (500, {})),
        # A list in another form is not one without applications.
        *(
            (200, {"apps": apps})
            for apps in ("many", ["x"], {"app": ["x"]}, {"list": [{}]}, {"app": {"applicationTags": [1]}})
        ),
    ],
)
def test_where_yarn_does_not_tell_all_stay(manager, status, body):
    manager.status, manager.body = status, body
    reasons = yarn_cluster.reasons([OLD, OLDER], manager.environment_file)
    assert reasons == dict.fromkeys([OLD, OLDER], "YARN did not report which environments its applications need")


def test_a_resource_manager_that_asks_for_a_ticket_keeps_all_and_is_named(manager):
    manager.status, manager.body = 401, b""
    reasons = yarn_cluster.reasons([OLD, OLDER], manager.environment_file)
    assert set(reasons) == {OLD, OLDER}
    assert f"{manager.address}/ws/v1/cluster/apps requires a Kerberos ticket" in reasons[OLD]


def test_a_resource_manager_that_is_down_keeps_all_and_a_host_without_yarn_none(tmp_path):
    assert set(yarn_cluster.reasons([OLD], environment_file(tmp_path, "127.0.0.1:9"))) == {OLD}
    assert yarn_cluster.reasons([OLD], str(tmp_path / "missing")) == {}


def test_a_host_keeps_the_environment_of_an_application_that_waits(done, manager):
    tree = done.root / "envs" / f"{OLD}.1"
    (tree / ".deeplearning").mkdir(parents=True)
    tree.with_name(OLD).symlink_to(tree.name)
    (done.root / "etc").mkdir()
    Path(manager.environment_file).rename(done.root / "etc" / "hadoop-env.sh")
    manager.body = applications(yarn_cluster.mark(OLD))
    assert done.activate()["spared"] == {OLD: "YARN has the application application_1_0 of anna"}
    assert tree.is_dir()
    manager.body = {"apps": None}
    assert done.activate()["removed"] == [OLD]


def test_the_mark_is_the_environments_digest_and_fits_into_a_tag():
    assert yarn_cluster.mark(f"/opt/deeplearning/envs/{OLD}") == "environment-000000000001"
    assert yarn_cluster.mark(OLD) == yarn_cluster.mark(f"/opt/deeplearning/envs/{OLD}")


LAUGHS = "".join(
    f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(12)
)  # 10^12 characters; expat of RHEL 7 has no limit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'<!DOCTYPE a [<!ENTITY a0 "x">{LAUGHS}]><configuration>&a12;</configuration>', "have no document type"),
        ("<configuration><property>", "be XML, but is not"),
        ('<?xml version="1.0" encoding="utf-7"?><configuration/>', "be XML, but is not"),
        ("<configuration>" * 100_000, "be XML, but is not"),
    ],
    ids=["entities", "torn", "utf-7", "deep"],
)
def test_settings_that_nobody_can_read_keep_every_environment(tmp_path, text, words):
    file = environment_file(tmp_path, "rm:8088")
    (tmp_path / "hadoop conf/yarn-site.xml").write_text(text, encoding="utf-8")
    reasons = yarn_cluster.reasons([OLD], file)
    assert reasons[OLD].startswith(f"{tmp_path}/hadoop conf/yarn-site.xml must {words}")


def test_settings_beside_an_included_file_are_read(tmp_path):
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>'
    (tmp_path / "core-site.xml").write_text(
        f"<configuration>{include}<property><name>a</name><value> b </value></property></configuration>",
        encoding="utf-8",
    )
    assert yarn_cluster.hadoop_configuration(str(tmp_path), problems := []) == {"a": "b"}
    assert problems == []
