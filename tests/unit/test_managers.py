"""The clients of Cloudera Manager and Ambari against servers on loopback, over real HTTP and HTTPS: answers, faults, limits, secrets."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from certificates import authority
from manager_server import PASSWORD, USER, Cloudera, Manager, serving

from hadoop_dl.hosts.managers import facts
from hadoop_dl.hosts.managers.ambari import Ambari
from hadoop_dl.hosts.managers.cloudera_manager import ClouderaManager
from hadoop_dl.hosts.managers.server import AccessRefused, Limits, Login, ManagerError, Server, Unavailable

QUICK = Limits(silence=1.0, total=6.0)
LOGIN = Login(USER, PASSWORD)


@pytest.fixture(autouse=True)
def _directly_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,127.1")


def client(manager: Manager, login: Login = LOGIN, limits: Limits = QUICK, **more: Any) -> ClouderaManager:
    return ClouderaManager(Server("Cloudera Manager", manager.url, login, limits=limits, **more))


def at(url: str) -> Cloudera:
    """A manager with this address, where none listens."""
    manager = Cloudera()
    manager.url = url
    return manager


def ambari_client(manager: Manager, page: int = 100) -> Ambari:
    return Ambari(Server("Ambari", manager.url, LOGIN, limits=QUICK), page)


def sentence(ask: Callable[[], object], kind: type[ManagerError] = ManagerError) -> str:
    with pytest.raises(kind) as problem:
        ask()
    text = str(problem.value)
    for secret in (PASSWORD, LOGIN.header().partition(" ")[2], "t0ken"):
        assert secret not in text
    assert "\n" not in text
    return text


def test_the_facts_of_a_cluster(cloudera):
    hosts = {host["name"]: host for host in facts.cloudera_facts(client(cloudera))["hosts"]}
    assert hosts["data01.example.com"]["roles"] == ["HDFS:DATANODE", "SPARK_ON_YARN:GATEWAY", "YARN:NODEMANAGER"]
    assert hosts["cdsw01.example.com"]["roles"][:2] == ["CDSW:CDSW_APPLICATION", "CDSW:CDSW_DOCKER"]
    edge = hosts["edge01.example.com"]
    assert (edge["distribution"], edge["version"], edge["health"]) == ("cdh", "5.16.2", "GOOD")
    assert edge["cluster"] == "Demo Cluster"
    assert edge["parcels"] == {"CDH": "5.16.2-1.cdh5.16.2.p0.8"}  # only those that are active
    assert hosts["spare01.example.com"]["roles"] == []
    assert {method for method, _ in cloudera.requests} == {"GET"}


def test_one_cluster_by_its_shown_name_and_an_unknown_one(cloudera):
    names = [host["name"] for host in facts.cloudera_facts(client(cloudera), "Demo Cluster")["hosts"]]
    assert "spare01.example.com" not in names
    assert "has no cluster other" in sentence(lambda: facts.cloudera_facts(client(cloudera), "other"))


@pytest.mark.parametrize(("has", "asked"), [("v19", "/api/v19/"), ("v57", "/api/v57/"), ("v99", "/api/v57/")])
def test_the_version_of_the_api_is_the_servers_or_the_newest_known(has, asked, cloudera):
    cloudera.api_version = has
    client(cloudera).clusters()
    assert cloudera.requests[-1][1].startswith(asked)


def test_a_version_that_is_too_old_or_none(cloudera):
    cloudera.api_version = "v9"
    assert "must know version v10 of its API or later, but has v9" in sentence(lambda: client(cloudera).api)
    cloudera.faults["/api/version"] = ["page"]
    assert "a web page, such as a login page" in sentence(lambda: client(cloudera).api)


def test_a_name_with_any_character_stays_one_part_of_the_path(cloudera):
    text = sentence(lambda: client(cloudera).services("a/b ?#%"))
    assert "/clusters/a%2Fb%20%3F%23%25/services has nothing there (HTTP 404: Cluster 'a/b ?#%' not found)" in text


def test_one_session_for_all_requests_and_a_token_in_place_of_a_password(cloudera):
    client(cloudera, Login(token="t0ken")).clusters()  # noqa: S106
    assert set(cloudera.authorizations) == {"Bearer t0ken"}


def test_a_login_is_not_in_its_text():
    assert PASSWORD not in repr(Login(USER, PASSWORD, "t0ken"))
    assert "t0ken" not in repr(Login(USER, PASSWORD, "t0ken"))


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("403", AccessRefused, f"does not let the user {USER} do this (HTTP 403: refused for Basic …)"),
        ("404", ManagerError, "has nothing there (HTTP 404"),
        ("500", ManagerError, "answers with HTTP 500: refused for Basic …. Look at the log of Cloudera Manager"),
        ("page", ManagerError, "must answer with JSON, but answers with a web page, such as a login page"),
        ("words", ManagerError, "must answer with JSON, but does not"),
        ("half", ManagerError, "the answer is incomplete"),
        ("nested", ManagerError, "the answer is incomplete"),
        ("503", Unavailable, "is busy (HTTP 503: refused for Basic …). Run again when it answers."),
        ("redirect /api/v18/hosts", ManagerError, "/api/v18/hosts (HTTP 302), where user and password were not sent"),
        ("truncate", Unavailable, "closed the connection in the middle of its answer"),
        ("slow 3", Unavailable, "s and never be silent for 1 s, but did not"),
        ("trickle", Unavailable, "s and never be silent for 1 s, but did not"),
    ],
)
def test_a_fault_is_a_sentence_within_its_time(fault, kind, words, cloudera):
    manager_client = client(cloudera, limits=Limits(silence=1.0, total=2.5))
    assert manager_client.api == "/api/v19"
    cloudera.faults["/api/v19/hosts"] = [fault]
    start = time.monotonic()
    text = sentence(manager_client.hosts, kind)
    assert words in text
    assert f"Cloudera Manager at {cloudera.url}/api/v19/hosts " in text  # without the query
    assert time.monotonic() - start < 4


def test_a_wrong_password(cloudera):
    text = sentence(lambda: client(cloudera, Login(USER, "wrong-one")).clusters(), AccessRefused)
    assert f"refuses the user {USER}: wrong user or password (HTTP 401). Correct it in the inventory." in text
    assert "wrong-one" not in text
    assert len(cloudera.requests) == 1  # a second try could lock the account


def test_nobody_listens():
    with serving(Cloudera()) as manager:
        pass
    text = sentence(client(manager).clusters, Unavailable)
    assert "cannot be reached: Connection refused. Check that it runs" in text


def test_a_host_name_that_does_not_resolve():
    text = sentence(client(at("https://nowhere.invalid:7180")).clusters)
    assert "Cloudera Manager at https://nowhere.invalid:7180/api/version cannot be reached" in text


def test_everything_together_has_a_limit(cloudera):
    manager_client = client(cloudera, limits=Limits(total=0.3))
    manager_client.clusters()
    time.sleep(0.4)
    assert "must answer everything within 0.3 s" in sentence(manager_client.hosts, Unavailable)


def test_another_server_gets_no_password(cloudera):
    with serving(Cloudera()) as other_server:
        cloudera.elsewhere = other_server.url
        cloudera.faults["/api/v19/hosts"] = ["redirect"]
        text = sentence(client(cloudera).hosts)
        assert f"redirects to {other_server.url}/api/v19/hosts (HTTP 302), where user and password were not" in text
        assert other_server.requests == []


def test_an_own_ca_is_the_only_one_that_counts(certificates, tmp_path):
    ca = str(certificates / "server.ca")
    with serving(Cloudera(), certificates / "server.crt", certificates / "server.key") as manager:
        assert len(client(manager, ca=ca).clusters()) == 1
        request_count = len(manager.requests)
        for options in ({"ca": str(authority(tmp_path, "other"))}, {}):
            text = sentence(client(manager, **options).clusters, Unavailable)
            assert "has a certificate that is not trusted" in text
            assert "User and password were not sent" in text
        other_name = at(manager.url.replace("127.0.0.1", "127.1"))  # the certificate does not name it
        assert "not trusted" in sentence(client(other_name, ca=ca).clusters, Unavailable)
        assert len(manager.requests) == request_count
        assert "Check" in sentence(client(at(manager.url.replace("https", "http"))).clusters)


def test_tls_to_a_port_without_it(cloudera):
    text = sentence(client(at(cloudera.url.replace("http", "https"))).clusters, Unavailable)
    assert "must speak TLS, but does not" in text


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), ("not a certificate", "no certificate in PEM format")]
)
def test_a_ca_file_that_is_none(content, reason, tmp_path):
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    assert reason in sentence(lambda: Server("Ambari", "https://ambari01:8443", LOGIN, ca=str(path)))


@pytest.mark.parametrize("url", ["cm01:7180", "ftp://cm01", "http://", "http://cm01:port", "http://cm 01", ""])
def test_an_address_that_is_none(url):
    assert "must be http://HOST:PORT or https://HOST:PORT" in sentence(lambda: Server("Ambari", url, LOGIN))


def test_a_password_in_the_address_is_refused_and_not_shown():
    text = sentence(lambda: Server("Ambari", f"http://admin:{USER}x@ambari01:8080", LOGIN))
    assert "must have no user, password or query" in text
    assert f"{USER}x" not in text


def test_a_list_that_is_none(cloudera):
    assert "must answer with a list of items" in sentence(lambda: client(cloudera).items("clusters", "cluster"))


def test_a_login_over_http_goes_to_no_proxy(cloudera, monkeypatch):
    monkeypatch.setenv("http_proxy", cloudera.url)
    distant_client = client(at("http://nowhere.invalid:7180"), plain_http=True)
    assert "cannot be reached" in sentence(lambda: distant_client.clusters())
    assert cloudera.requests == []


@pytest.mark.parametrize("login", [LOGIN, Login(token="t0ken")])  # noqa: S106
def test_a_login_is_not_sent_over_http_unless_the_site_says_so(login):
    text = sentence(lambda: Server("Cloudera Manager", "http://cm01.example.com:7180", login, settings="this file"))
    assert "Cloudera Manager at http://cm01.example.com:7180 must be asked over https" in text
    assert "set plain_http in this file to true" in text
    for url in ("http://127.0.0.1:7180", "http://localhost:7180", "https://cm01.example.com:7183"):
        assert Server("Cloudera Manager", url, login).url == url  # nothing leaves this machine, or nobody can read it


def test_what_a_server_says_cannot_move_the_operators_cursor():
    assert str(ManagerError("a\x1b[2J\nb" + "x" * 3000)).startswith("a\ufffd[2J b")
    assert len(str(ManagerError("x" * 3000))) == 2000


@pytest.mark.parametrize("page", [1, 2, 3, 4, 100])
def test_ambari_is_read_page_by_page(page, ambari):
    hosts = facts.ambari_facts(ambari_client(ambari, page))["hosts"]
    assert [host["name"] for host in hosts] == sorted(ambari.components)
    assert len([path for _, path in ambari.requests if "/hosts?" in path]) == 4 // page + 1
    assert (hosts[0]["distribution"], hosts[0]["version"]) == ("hdp", "3.1")
    assert hosts[0]["roles"] == ["DATANODE", "NODEMANAGER", "SPARK2_CLIENT"]


def test_ambari_that_ignores_pages_does_not_hold_the_run(ambari, monkeypatch):
    answer = ambari.answer
    monkeypatch.setattr(ambari, "answer", lambda path, query: answer(path, {}))
    assert "sends the same page again and again" in sentence(lambda: facts.ambari_facts(ambari_client(ambari, 2)))
    assert len(facts.ambari_facts(ambari_client(ambari, 4 + 1))["hosts"]) == 4


def test_ambari_with_several_clusters_or_another_one(ambari):
    assert "must have the cluster other but has demo" in sentence(lambda: ambari_client(ambari).cluster("other"))
    ambari.clusters["second"] = "HDP-2.6"
    assert "has demo, second" in sentence(lambda: ambari_client(ambari).cluster(""))
