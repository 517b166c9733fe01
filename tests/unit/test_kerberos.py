"""The login to Hadoop and web addresses that ask for a ticket, with MIT's own KDC, kinit and klist, and with curl."""

import json
import os
import pwd
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import python_files
import yaml
from ansible.module_utils.hadoop_dl_host import (
    host_kerberos,
    host_system,
    kerberos_login,
    processes,
    yarn_admin,
    yarn_cluster,
)
from ansible_programs import LOCAL, play
from host_modules import run
from kdc import REALM, Realm
from loopback import Quiet, served
from plan_hosts import REPOSITORY, changed_node, make_host
from resource_manager import ADDRESS, write_settings

from hadoop_dl.data import host_facts
from hadoop_dl.data.compat import Compat
from hadoop_dl.data.stacks import Stack, load_stack
from hadoop_dl.plan import kerberos, make_plan
from hadoop_dl.plan.model import Host
from hadoop_dl.resolver.rules.keras_and_io import kafka_logins

PLUGIN = python_files.load(REPOSITORY / "plugins/modules/yarn_gpu_plugin.py")
ENDED = "Failed to execute GPU device information detection script for 10 times, skip following executions."
SECURE = {"hadoop.security.authentication": "kerberos"}


@pytest.fixture
def resource_manager() -> Iterator[tuple[str, list[str]]]:
    """What YARN with hadoop.http.authentication.type=kerberos answers (3.3.6): 401 with Negotiate, then JSON; a NodeManager's GPU plugin is ended. Its
    requests."""
    requests: list[str] = []

    class Handler(Quiet):
        def do_GET(self) -> None:
            token = self.headers.get("Authorization", "")
            requests.append(token)
            # Of SPNEGO (RFC 4178) around an AP-REQ: only the KDC's ticket for HTTP/localhost makes one this long.
            right = token.startswith("Negotiate YII") and len(token) > 500
            if not right:
                self.answer(401, b"", WWW_Authenticate="Negotiate")
            elif self.path == PLUGIN.PATH:
                self.answer(500, json.dumps({"RemoteException": {"message": ENDED}}).encode())
            else:
                self.answer(200, json.dumps({"apps": {"app": []}}).encode())

    with served(Handler) as address:
        yield address.replace("127.0.0.1", "localhost"), requests  # the KDC has a key for this name


def places(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("deeplearning-login-*"))


def logged_in(realm: Realm, tmp_path: Path, principal: str = f"anna@{REALM}", **more: str) -> Any:
    return kerberos_login.logged_in(principal, str(realm.keytab("anna")), directory=str(tmp_path), **more)


def test_a_login_has_a_cache_of_its_own_and_leaves_nothing(realm, tmp_path):
    before = os.environ["KRB5CCNAME"]
    with logged_in(realm, tmp_path) as cache:
        assert cache is not None
        assert os.environ["KRB5CCNAME"] == cache
        [place] = places(tmp_path)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(cache).stat().st_mode) == 0o600
        assert f"Default principal: anna@{REALM}" in realm.run("klist", KRB5CCNAME=cache)
        assert "F" not in realm.run("klist", "-f", KRB5CCNAME=cache).partition("Flags: ")[2].split()[0]
    assert os.environ["KRB5CCNAME"] == before
    assert places(tmp_path) == []


def test_a_step_that_fails_leaves_no_ticket(realm, tmp_path):
    with pytest.raises(ZeroDivisionError), logged_in(realm, tmp_path):
        raise ZeroDivisionError
    assert places(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_account_that_runs_the_question_reads_its_ticket_and_lists_nothing(realm, tmp_path):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    with logged_in(realm, tmp_path, user="nobody") as cache:
        assert cache is not None
        assert processes.run(["cat", cache], 10, user="nobody").status == 0
        assert processes.run(["ls", os.path.dirname(cache)], 10, user="nobody").status != 0
    assert places(tmp_path) == []


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
NOBODY = pwd.getpwnam("nobody").pw_uid


class Keytab:
    """One of nobody, in a place that nobody can enter, and a kinit that notes who runs it with what, and then does `text` with its cache ($5)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.directory = Path(tempfile.mkdtemp())  # pytest's own directories are root's alone
        self.directory.chmod(0o777)
        self.path, self.log = self.directory / "nobody.keytab", self.directory / "log"
        self.path.touch(mode=0o600)
        os.chown(self.path, NOBODY, -1)
        program = self.directory / "kinit"
        program.write_text(f'#!/bin/sh\necho "$(id -u) $*" >> {self.log}\n{text}\n', encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{self.directory}:{os.environ['PATH']}")

    def logged_in(self, principal: str = f"rm@{REALM}", **more: Any) -> Any:
        return kerberos_login.logged_in(principal, str(self.path), directory=str(self.directory), **more)


@pytest.fixture
def keytab(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Keytab]:
    keytab = Keytab(monkeypatch, getattr(request, "param", 'echo ticket > "$5"'))
    yield keytab
    shutil.rmtree(keytab.directory)


@AS_ROOT
@pytest.mark.parametrize("user", [None, "daemon"])
def test_kinit_runs_as_the_account_that_the_keytab_belongs_to(keytab, user):
    with keytab.logged_in(user=user) as cache:
        assert Path(cache).read_text(encoding="utf-8") == "ticket\n"
        assert Path(cache).owner() == (user or "root")
    assert keytab.log.read_text(encoding="utf-8").startswith(f"{NOBODY} -k -t {keytab.path} ")
    assert places(keytab.directory) == []


@AS_ROOT
@pytest.mark.parametrize("keytab", ['ln -s /etc/shadow "$5"', 'mkdir "$5"', "exit 0"], indirect=True)
def test_a_ticket_that_is_a_link_of_the_account_is_not_followed(keytab):
    with pytest.raises(kerberos_login.NoLogin, match="kinit must write a ticket as the owner of"), keytab.logged_in():
        pass
    assert places(keytab.directory) == []


@AS_ROOT
def test_a_principal_is_no_option_of_kinit(keytab):
    words = "the principal must be NAME@REALM"
    with pytest.raises(kerberos_login.NoLogin, match=words), keytab.logged_in("-XX509_user_identity=PKCS11:x.so"):
        pass
    assert not keytab.log.exists()


@AS_ROOT
@pytest.mark.parametrize(
    ("owner", "account", "accepted"),
    [(NOBODY, "nobody", True), (NOBODY, None, True), (0, "nobody", False), (0, None, False), (NOBODY, "daemon", False)],
)
def test_yarn_site_xml_gives_an_account_no_ticket_of_another_ones_keytab(keytab, owner, account, accepted):
    os.chown(keytab.path, owner, -1)
    names = {yarn_admin.PRINCIPAL: f"hdfs@{REALM}", yarn_admin.KEYTAB: str(keytab.path)}
    write_settings(keytab.directory / "yarn-site.xml", {**SECURE, **names})
    admin = yarn_admin.Admin(str(keytab.directory), account, "yarn")
    if accepted:
        with admin:
            pass
        return
    with pytest.raises(kerberos_login.NoLogin, match=r"of yarn-site\.xml must belong to"), admin:
        pass
    assert not keytab.log.exists()


@AS_ROOT
def test_an_account_that_exchanges_its_keytab_meanwhile_gets_no_ticket_of_root(keytab, monkeypatch):
    def look(path: str) -> int:
        owner = kerberos_login_check(path)
        os.chown(path, 0, -1)  # as if its name were a link to a keytab of root from now on
        return owner

    kerberos_login_check = kerberos_login.check_keytab
    monkeypatch.setattr(kerberos_login, "check_keytab", look)
    names = {yarn_admin.PRINCIPAL: f"hdfs@{REALM}", yarn_admin.KEYTAB: str(keytab.path)}
    write_settings(keytab.directory / "yarn-site.xml", {**SECURE, **names})
    with yarn_admin.Admin(str(keytab.directory), "nobody", "yarn"):
        pass
    assert keytab.log.read_text(encoding="utf-8").startswith(f"{NOBODY} ")


def test_the_ticket_of_a_killed_step_is_removed_by_the_next_one_and_that_of_a_running_one_stays(realm, tmp_path):
    def step(received: int) -> None:
        with logged_in(realm, tmp_path):
            os.close(received)
            time.sleep(60)

    children = []
    for _ in range(2):
        receiving, sending = os.pipe()
        children.append(os.fork())
        if children[-1] == 0:
            step(sending)
            os._exit(0)
        os.close(sending)
        os.read(receiving, 1)  # it is logged in
        os.close(receiving)
    before = places(tmp_path)
    assert len(before) == 2
    os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    with logged_in(realm, tmp_path):
        assert len(places(tmp_path)) == 2
        assert len(set(before) & set(places(tmp_path))) == 1
    os.kill(children[1], signal.SIGKILL)
    os.waitpid(children[1], 0)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_keytab_that_others_can_read_is_refused(realm, tmp_path, mode):
    path = tmp_path / "a.keytab"
    path.write_bytes(realm.keytab("anna").read_bytes())
    path.chmod(mode)
    with pytest.raises(kerberos_login.NoLogin, match=rf"by its owner alone, but has the mode {mode:04o}.*chmod 600"):
        kerberos_login.check_keytab(str(path))


@pytest.mark.parametrize(
    ("principal", "words"),
    [(f"nobody@{REALM}", "Keytab contains no suitable keys"), ("anna@OTHER.EXAMPLE", "Cannot find KDC|suitable keys")],
)
def test_a_login_that_does_not_work_says_why(realm, tmp_path, principal, words):
    with pytest.raises(kerberos_login.NoLogin, match=words), logged_in(realm, tmp_path, principal):
        pass
    assert places(tmp_path) == []


def test_yarn_is_asked_with_the_ticket(realm, tmp_path, resource_manager):
    address, requests = resource_manager
    realm.keytab("HTTP/localhost")
    assert yarn_cluster.applications([address])[0] is None
    assert "requires a Kerberos ticket" in str(yarn_cluster.applications([address])[1])
    requests.clear()
    with logged_in(realm, tmp_path):
        assert yarn_cluster.applications([address]) == ([], None)
    assert requests[0] == ""  # without a ticket first: most clusters want none


def test_what_is_behind_the_ticket_may_be_an_error(realm, tmp_path, resource_manager):
    url = resource_manager[0] + PLUGIN.PATH
    realm.keytab("HTTP/localhost")
    assert PLUGIN.look(url)[0] == "silent"
    with logged_in(realm, tmp_path):
        state, words = PLUGIN.look(url)
    assert (state, ENDED in words) == ("ended", True)


def test_a_removal_asks_yarn_with_the_ticket(realm, tmp_path, resource_manager):
    root, conf = tmp_path / "deeplearning", tmp_path / "conf"
    for directory in (root / "envs/demo-stack-0123456789ab", root / "etc", conf):
        directory.mkdir(parents=True)
    (root / "etc/hadoop-env.sh").write_text(f"export HADOOP_CONF_DIR={conf}\n", encoding="utf-8")
    address = resource_manager[0].removeprefix("http://")
    write_settings(conf / "yarn-site.xml", {ADDRESS: address})
    realm.keytab("HTTP/localhost")
    assert "requires a Kerberos ticket" in run("remove_environments", root=str(root))["msg"]
    login = {"principal": f"anna@{REALM}", "keytab": str(realm.keytab("anna"))}
    assert run("remove_environments", root=str(root), **login)["changed"] is True


def host_with(
    tmp_path: Path, krb5_conf: str | None = None, web: bool = False, programs: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What the reader answers of a made tree."""
    for path in ("etc/hadoop/conf", "etc/krb5.conf.d", "usr/bin"):
        (tmp_path / path).mkdir(parents=True)
    values = {**SECURE, **({"hadoop.http.authentication.type": "kerberos"} if web else {})}
    write_settings(tmp_path / "etc/hadoop/conf/core-site.xml", values)
    if krb5_conf is not None:
        (tmp_path / "etc/krb5.conf").write_text(krb5_conf, encoding="utf-8")
    for program in programs:
        (tmp_path / "usr/bin" / program).write_text("", encoding="utf-8")
    return host_kerberos.read(host_system.System(str(tmp_path)), ["/etc/hadoop/conf"])


# krb5-libs of RHEL 9 installs this (its comments shortened); krb5.conf(5).
RHEL = """\
includedir /etc/krb5.conf.d/
[logging]
    default = FILE:/var/log/krb5libs.log
[libdefaults]
    dns_lookup_realm = false
    default_ccache_name = KEYRING:persistent:%{uid}
#    default_realm = EXAMPLE.COM
"""


def test_the_realm_is_read_where_krb5_reads_it(tmp_path):
    facts = host_with(tmp_path, RHEL, web=True, programs=("kinit", "klist", "curl"))
    assert (facts["secure"], facts["web"], facts["realm"], facts["missing"]) == (True, True, None, [])
    system, site = host_system.System(str(tmp_path)), tmp_path / "etc/krb5.conf.d/site.conf"
    for text, realm in (
        ("[libdefaults]\n default_realm = SITE.EXAMPLE\n", "SITE.EXAMPLE"),
        ("include /etc/krb5.conf\n", None),
    ):
        site.write_text(text, encoding="utf-8")
        assert host_kerberos.setting(system, ["/etc/krb5.conf"], "default_realm") == realm


def planned(
    tmp_path: Path, group: str, variables: dict[str, Any], stack: Stack | None = None, **tree: Any
) -> tuple[list[str], list[str]]:
    facts = SimpleNamespace(kerberos=host_facts.read(host_facts.Kerberos, host_with(tmp_path, **tree)))
    host = Host("h1", (group,), variables, facts)  # type: ignore[arg-type]
    return list(kerberos.problems(host)), list(kerberos.warnings(host, stack or load_stack("tf2.21-py311")))


LOGIN = {"hadoop_principal": "deeplearning@SITE.EXAMPLE", "hadoop_keytab": "/etc/d.keytab"}
GOOD = {"krb5_conf": "[libdefaults]\ndefault_realm = A\n", "programs": ("kinit", "klist", "curl")}


def test_the_plan_names_what_a_host_of_a_secure_cluster_lacks(tmp_path):
    problems, _ = planned(tmp_path, "edge_nodes", {})
    assert "/etc/krb5.conf is missing or has no default_realm" in problems[0]
    assert "has no kinit, klist" in problems[1]
    assert "hadoop_principal and hadoop_keytab are not set" in problems[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tf2.15-cpu-py3-el9", "tensorflow-io 0.36.0 logs in with PLAIN, SCRAM or OAUTHBEARER, not with Kerberos"),
        ("tf1.15-cpu-py27-el7", "tensorflow 1.15.0 logs in with PLAIN, not with Kerberos"),
        ("tf2.21-tfos-cpu-py311", ""),  # it does not read Kafka
    ],
)
def test_the_plan_warns_of_a_reader_of_kafka_that_has_no_kerberos(tmp_path, name, words):
    _, warnings = planned(tmp_path, "edge_nodes", LOGIN, load_stack(name), **GOOD)
    assert bool(words) is bool(warnings)
    assert not words or (words in warnings[0] and "Spark's Kafka source" in warnings[0])


@pytest.mark.parametrize("part", [{"tensorflow_io": "0.36.0"}, {"tensorflow_io": "0.17.0"}, {"tensorflow": "9.9.0"}])
def test_only_a_reader_that_is_known_to_have_gssapi_has_kerberos(part):
    spans = [{"part": "tensorflow_io", "first": "0.36.0", "last": "0.36.0", "logins": ["PLAIN", "GSSAPI"]}]
    compat = Compat({"tensorflow_io": {"kafka_logins": spans}})
    assert bool(kafka_logins(compat, part)) is (part != {"tensorflow_io": "0.36.0"})


@pytest.mark.parametrize("variables", [LOGIN, {"hadoop_login": "none"}])
def test_an_edge_node_with_a_login_or_without_one_on_purpose_is_planned(tmp_path, variables):
    assert planned(tmp_path, "edge_nodes", variables, **GOOD)[0] == []


def test_a_data_node_needs_only_krb5_conf_and_what_is_skipped_is_named(tmp_path):
    problems, warnings = planned(tmp_path, "data_nodes", {}, krb5_conf=GOOD["krb5_conf"], web=True)
    assert problems == []
    assert "skips its questions to HDFS, and old environments stay" in warnings[0]


def test_a_data_node_that_logs_in_needs_the_programs_for_it(tmp_path):
    problems, warnings = planned(tmp_path, "data_nodes", LOGIN, krb5_conf=GOOD["krb5_conf"], web=True)
    assert "the host has no kinit, curl. Install curl and krb5-workstation" in problems[0]
    assert warnings == []


def clocks(clockskew: int | None = None, **ahead: int) -> list[str]:
    """What the plan says of hosts whose clocks are that many seconds ahead of the controller's, which is an hour late itself."""
    now = 1_795_000_000
    answer = {"web": False, "realm": "A", "missing": [], "received": now, "clockskew": clockskew}
    hosts = []
    for name, seconds in ahead.items():
        facts = {**answer, "secure": name != "insecure", "clock": now + 3600 + seconds}
        hosts.append(make_host(name, node=changed_node(kerberos=facts), **LOGIN))
    return [problem for problem in make_plan(hosts, REPOSITORY).problems if "clock" in problem]


def test_a_clock_that_kerberos_would_refuse_is_named_before_a_host_changes():
    assert clocks(data1=0, data2=299, data3=-299, insecure=900) == []
    (problem,) = clocks(data1=0, data2=2, data3=412, data4=1)
    words = "data3: Kerberos requires clocks that differ by 300 s at most, but this host's is 411 s ahead"
    assert problem.startswith(words)
    (problem,) = clocks(data1=0, data2=2, data3=-7200)
    assert "7200 s behind" in problem
    assert clocks(clockskew=600, data1=0, data2=2, data3=412, data4=1) == []
    assert clocks(data1=9000) == [], "one host alone has nothing to be compared with"


def test_the_reader_answers_its_clock_and_not_the_controllers(tmp_path):
    facts = host_facts.read(host_facts.Kerberos, host_with(tmp_path, "[libdefaults]\nclockskew = 120\n"))
    assert facts.clockskew == 120
    assert facts.clock is not None
    assert abs(facts.clock - time.time()) < 5
    assert facts.received is None


@pytest.mark.parametrize(
    ("options", "asked"),
    [((), True), (("--skip-tags", "verify"), True), (("--tags", "verify"), True), (("--tags", "cuda"), False)],
)
def test_the_login_is_checked_for_each_run_that_may_use_it(options, asked, tmp_path):
    """What --skip-tags leaves out must not take the check with it: other parts would fail in the middle."""
    login = {"hadoop_principal": "a@A", "hadoop_keytab": str(tmp_path / "none")}
    hosts = {"all": {"vars": {**LOCAL, **login}, "children": {"needs_hadoop_login": {"hosts": {"edge1": None}}}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    code, output = play("-i", tmp_path / "hosts.yml", REPOSITORY / "playbooks/layers/hadoop_login.yml", *options)
    assert ("none is required, but" in output) is asked, output
    assert code == (2 if asked else 0)
