"""The ticket of a job (tfos-submit), with MIT's own KDC, kinit and klist."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import kerberos_login
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from kdc import REALM, Realm
from tfos_submit import login, options

SECURE = {"hadoop.security.authentication": "kerberos"}


def asked(**changes: Any) -> Any:
    return SimpleNamespace(**{"principal": None, "keytab": None, "timeout": 3600, **changes})


def begin(
    tmp_path: Path, secure: bool = True, configuration: dict[str, str] | None = None, **changes: Any
) -> login.Login:
    job_login = login.Login(asked(**changes), {**(SECURE if secure else {}), **(configuration or {})}, str(tmp_path))
    job_login.begin()
    return job_login


def test_a_job_without_a_ticket_is_not_submitted(realm: Realm, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match=r"there is none \(klist: No credentials cache found.*Run kinit"):
        begin(tmp_path)


def test_a_job_with_an_expired_ticket_is_not_submitted(
    realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = str(tmp_path / "own")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    kerberos_login.log_in(f"anna@{REALM}", str(realm.keytab("anna")), cache, "1h")
    begin(tmp_path)
    assert os.environ["KRB5CCNAME"] == cache
    kerberos_login.log_in(f"anna@{REALM}", str(realm.keytab("anna")), cache, "1s")
    time.sleep(2)
    with pytest.raises(NotReady, match=rf"that of anna@{REALM} ended at \S+ \S+\. Run kinit"):
        begin(tmp_path)


@pytest.mark.parametrize("kind", ["DIR", "KCM"])
def test_a_ticket_that_java_cannot_read_is_refused(
    realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "bin").mkdir()
    if kind == "DIR":
        (tmp_path / "many").mkdir()
        monkeypatch.setenv("KRB5CCNAME", f"DIR:{tmp_path}/many")
        realm.run("kinit", "-k", "-t", str(realm.keytab("anna")), f"anna@{REALM}", KRB5CCNAME=os.environ["KRB5CCNAME"])
    else:  # as RHEL 8 and 9 with sssd-kcm print it
        (tmp_path / "bin/klist").write_text(
            "#!/bin/sh\necho 'Ticket cache: KCM:1000'\necho 'Default principal: anna@TEST.EXAMPLE'\n", encoding="utf-8"
        )
        (tmp_path / "bin/klist").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(NotReady, match=rf"is in {kind}:.*, which Java cannot read. Run: export KRB5CCNAME="):
        begin(tmp_path)


def test_a_keytab_gives_the_job_a_ticket_that_is_replaced(
    realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_login = begin(tmp_path, principal=f"anna@{REALM}", keytab=str(realm.keytab("anna")))
    assert os.environ["KRB5CCNAME"] == job_login.cache
    first = Path(job_login.cache).read_bytes()
    job_login.renew()
    assert Path(job_login.cache).read_bytes() == first
    monkeypatch.setattr(login, "AGAIN", 0)
    job_login.renew()
    assert Path(job_login.cache).read_bytes() != first


def test_a_keytab_may_be_named_from_the_directory_of_the_user(
    realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keytab = realm.keytab("anna")
    monkeypatch.chdir(keytab.parent)
    job = options.arguments_parser().parse_args(["--principal", f"anna@{REALM}", "--keytab", keytab.name, "job.py"])
    job_login = login.Login(job, SECURE, str(tmp_path))
    job_login.begin()
    assert Path(job_login.cache).exists()


@pytest.mark.parametrize(
    ("keytab", "timeout", "told"),
    [(True, 86400, False), (True, 86401, True), (False, 604800, False), (False, 604801, True)],
)
def test_a_job_that_may_outlive_its_tokens_is_told(
    realm: Realm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    keytab: bool,
    timeout: int,
    told: bool,
) -> None:
    """With the lifetimes of hdfs-default.xml."""
    anna, file = f"anna@{REALM}", str(realm.keytab("anna"))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "own"))
    kerberos_login.log_in(anna, file, str(tmp_path / "own"))
    begin(tmp_path, timeout=timeout, **({"principal": anna, "keytab": file} if keytab else {}))
    assert (f"tokens for HDFS end after {timeout - 1} s" in "".join(capsys.readouterr())) == told


def test_a_site_may_have_shorter_tokens(realm: Realm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shorter = {"dfs.namenode.delegation.token.renew-interval": "3599000"}
    begin(tmp_path, configuration=shorter, principal=f"anna@{REALM}", keytab=str(realm.keytab("anna")))
    assert "end after 3599 s (dfs.namenode.delegation.token.renew-interval)" in "".join(capsys.readouterr())


def test_a_keytab_on_a_cluster_without_kerberos_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="Leave them out"):
        begin(tmp_path, secure=False, principal="anna", keytab="/a.keytab")
    begin(tmp_path, secure=False)
