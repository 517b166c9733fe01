"""The mirror as a package index for real pip, and a site's own index with a login as the source of environments."""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import mirror_files, mirror_pages, mirror_removal, mirror_served, mirror_source
from ansible.module_utils.hadoop_dl_host import mirror_index as served_index
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from certificates import authority
from environments import Mirror, Site, wheel
from faulty_server import serving
from host_modules import run
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES
from loopback import Quiet, served
from mirror_process import running

PROJECTS = ("six", "Keras_Preprocessing", "ruamel.base")


def artifact(path: Path) -> dict[str, Any]:
    return {**artifact_of(path.name, path.read_bytes()), "folder": path.parent.name}


def artifact_of(name: str, content: bytes) -> dict[str, Any]:
    return {"folder": "wheels", "name": name, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


# --- the mirror's own index ---------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "mirror"
    for folder in ("wheels", "files", ".staging"):
        (root / folder).mkdir(parents=True)
    for project in PROJECTS:
        wheel(root / "wheels", project)
    (root / "files" / "jars-1.0.tar.gz").write_bytes(b"no package")
    mirror_files.write_manifest([artifact(path) for path in root.glob("*/*.*")], str(root))
    return root


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_pip_installs_from_the_mirror_by_hash(root, tmp_path, python):
    lock = "".join(
        f"{path.name.split('-')[0]}==1.0 --hash=sha256:{artifact(path)['sha256']}\n"
        for path in sorted((root / "wheels").iterdir())
    )
    (tmp_path / "lock.txt").write_text(lock)
    command = [python, "-m", "pip", "install", "--isolated", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "-r", str(tmp_path / "lock.txt")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "no_proxy": "127.0.0.1"}

    def install(target: str) -> subprocess.CompletedProcess[str]:
        words = [*command, "--target", str(tmp_path / target), "--index-url", f"http://127.0.0.1:{server.port}/simple"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)

    with running(sys.executable, root) as server:
        completed = install("whole")
        assert completed.returncode == 0, completed.stdout + completed.stderr
        assert {path.name for path in (tmp_path / "whole").glob("*.py")} == {f"{name}.py" for name in PROJECTS}
        wheel_path = root / "wheels" / "six-1.0-py2.py3-none-any.whl"
        wheel_path.write_bytes(wheel_path.read_bytes()[:-1] + b"x")
        completed = install("changed")
        assert completed.returncode != 0
        assert "hash" in (completed.stdout + completed.stderr).lower()


def test_the_pages_are_the_manifests(root):
    pages = {str(path.relative_to(root / "simple")) for path in (root / "simple").rglob("*.html")}
    assert pages == {"index.html"} | {f"{name}/index.html" for name in ("six", "keras-preprocessing", "ruamel-base")}
    (root / "simple/theirs").mkdir()
    (root / "simple/theirs/index.html").write_text("somebody's")
    (root / "wheels/six-1.0-py2.py3-none-any.whl").unlink()
    assert mirror_files.write_manifest([], str(root)) is True
    assert mirror_files.write_manifest([], str(root)) is False
    assert not (root / "simple/six").exists()
    assert "six/" not in (root / "simple/index.html").read_text()
    mirror_removal.remove(str(root), False)
    assert [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()] == ["simple/theirs/index.html"]


def test_a_mirror_of_an_earlier_release_gets_its_pages(root):
    shutil.rmtree(root / "simple")
    assert mirror_files.write_manifest([], str(root)) is True
    assert (root / "simple/six/index.html").exists()


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("Keras_Preprocessing-1.1.2-py2.py3-none-any.whl", "keras-preprocessing"),
        ("absl-py-0.15.0.tar.gz", "absl-py"),
        ("functools32-3.2.3-2.tar.gz", "functools32"),
        ("backports.weakref-1.0rc1-py2-none-any.whl", "backports-weakref"),
        ("jar-1.0.jar", None),
    ],
)
def test_the_project_of_a_file(name, project):
    assert mirror_pages.project_of(name) == project


# --- a site's index -----------------------------------------------------------------------------------------------------

LOGIN = {"user": "svc-deeplearning", "password": "can/ary:é"}


class Artifactory(Quiet):
    """A PyPI repository as JFrog's Artifactory serves it, for users with a password."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    elsewhere: str
    seen: list[str]
    prefix = "/artifactory/api/pypi/deeplearning/"

    def do_GET(self) -> None:
        credentials = self.headers.get("Authorization") or ""
        self.seen.append(credentials)
        expected = base64.b64encode(f"{LOGIN['user']}:{LOGIN['password']}".encode()).decode()
        parts = self.path[len(self.prefix) :].strip("/").split("/")
        if credentials != f"Basic {expected}":
            self.answer(401, b'{"errors": [{"status": 401}]}', WWW_Authenticate='Basic realm="Artifactory Realm"')
        elif not self.path.startswith(self.prefix):
            self.answer(404, b"")
        elif parts[0] == "simple" and not self.path.endswith("/"):
            self.answer(302, b"", Location=self.path + "/")
        elif parts[0] == "simple":
            names = [name for name in self.files if name.split("-")[0].replace("_", "-").lower() == parts[1]]
            links = "".join(
                f'<a href="{self.elsewhere}../../packages/packages/ab/{name}#sha256={hashlib.sha256(self.files[name]).hexdigest()}"'
                f' data-requires-python="&gt;=2.7" rel="internal">{name}</a><br/>\n'
                for name in names
            )
            page = (
                f"<!DOCTYPE html>\n<html><head><title>Links for {parts[1]}</title></head><body>\n{links}</body></html>"
            )
            self.answer(200 if names else 404, page.encode(), Content_Type="text/html")
        else:
            content = self.files.get(parts[-1])
            self.answer(404 if content is None else 200, content or b"")


class SiteIndex:
    def __init__(self, url: str, ca: str, handler: type[Artifactory]) -> None:
        self.url, self.ca, self.handler = url, ca, handler


@pytest.fixture
def index(certificates: Path) -> Iterator[SiteIndex]:
    handler = type("Bound", (Artifactory,), {"files": {}, "seen": [], "elsewhere": ""})
    with served(handler, certificates / "server.crt", certificates / "server.key") as address:
        yield SiteIndex(f"{address}{handler.prefix}simple", str(certificates / "server.ca"), handler)


@pytest.fixture
def site(tmp_path: Path, open_directory: Path, index: SiteIndex) -> Iterator[Site]:
    """A host, and an index that has what its lock names; the project's own mirror is not asked."""
    for project in ("pip", "tensorflow", "six", "keras"):
        wheel(tmp_path, project)
    with serving(Mirror()) as mirror:
        host = Site(open_directory / "deeplearning", mirror, tmp_path)
        index.handler.files.update(mirror.files)
        yield host
        assert mirror.requests == []


def given(index: SiteIndex, **changes: Any) -> dict[str, Any]:
    return {"mirror_url": index.url, "mirror_ca": index.ca, "mirror_login": LOGIN, **changes}


def test_an_environment_is_installed_from_a_sites_index_with_a_login(site, index):
    for component in site.lines:
        assert site.install(component, **given(index))["changed"] is True
    site.seal()
    assert (site.packages / "tensorflow.py").exists()
    assert len(set(index.handler.seen)) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(
            ({"mirror_login": login}, "status 401 .* Check user and password in mirror_login")
            for login in ({"user": "svc", "password": "can/ary"}, None)
        ),
        ({"mirror_ca": None}, "(?i)certificate"),
    ],
)
def test_what_is_wrong_with_an_index_is_a_sentence_without_the_password(site, index, changes, words):
    with pytest.raises(Refused, match=words) as error:
        site.install("pip", **given(index, **changes))
    assert "can/ary" not in str(error.value)
    assert not site.path.exists()


def test_a_password_is_not_sent_without_https(site, index):
    with pytest.raises(Refused, match="must begin with https://"):
        site.install("pip", **given(index, mirror_url=index.url.replace("https://", "http://")))


def test_all_files_that_an_index_lacks_are_named(site, index):
    site.install("pip", **given(index))
    for name in [name for name in index.handler.files if name.startswith(("six", "tensorflow"))]:
        del index.handler.files[name]
    with pytest.raises(Refused, match=r"does not list six-1\.0-\S+, tensorflow-1\.0-\S+\. Take them into it"):
        site.install("tensorflow", **given(index))


def test_links_to_another_server_are_refused_before_the_login_goes_there(site, index):
    index.handler.elsewhere = "https://files.example.com/a/b/"
    with pytest.raises(Refused, match=r"must have the files itself, but .*of another server \(files\.example\.com\)"):
        site.install("pip", **given(index))


def test_the_module_shows_no_password(site, index):
    login = {"user": LOGIN["user"], "password": "wrong-canary"}
    arguments = given(index, mirror_login=login)
    result = run("locked_packages", environment=str(site.path), component="pip", lock=site.section("pip"), **arguments)
    assert result["failed"] is True
    assert "status 401" in result["msg"]
    assert "canary" not in json.dumps(result)


PAGE = """
import io
page = io.BytesIO()
login = downloads.login_header(sys.argv[4], sys.argv[5])
downloads.receive(sys.argv[2], page, 10**6, processes.clock() + 20, sys.argv[3], login)
print(b"six-1.0" in page.getvalue())
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_the_pythons_of_hosts_send_the_login(index, python):
    index.handler.files["six-1.0.tar.gz"] = b"six"
    url = f"{index.url}/six/".replace("127.0.0.1", "localhost")
    command = [python, "-B", "-c", AS_ON_A_HOST + PAGE, UTILITIES, url, index.ca, *LOGIN.values()]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert completed.stdout.splitlines()[-1:] == ["True"], completed.stderr


@pytest.fixture
def other_variables(monkeypatch: pytest.MonkeyPatch, certificates: Path) -> None:
    """Of the downloads: another CA, and a proxy that answers nobody. Hosts have neither."""
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    authority(certificates, "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "other.ca"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")


@pytest.mark.usefixtures("other_variables")
def test_the_role_asks_a_sites_index_for_every_wheel(site, index):
    """As state `served` of mirror_artifacts, with files/ on another server."""
    artifacts = [artifact_of(name, content) for name, content in index.handler.files.items()]
    address = served_index.with_login(index.url, LOGIN)
    assert mirror_served.problems(artifacts, "http://127.0.0.1:9", address, index.ca) == []
    index.handler.files["keras-1.0-py2.py3-none-any.whl"] += b"x"
    served_index._pages.clear()
    (problem,) = mirror_served.problems(artifacts, "http://127.0.0.1:9", address, index.ca)
    assert "keras-1.0" in problem
    assert "the index offers other bytes" in problem
    served_index._pages.clear()
    login_address = served_index.with_login(index.url, {"user": "svc", "password": "can/ary"})
    problems = mirror_served.problems(artifacts, "http://127.0.0.1:9", login_address, index.ca)
    assert "answers 401" in problems[0]
    assert "can/ary" not in "".join(problems)
    assert "can%2Fary" not in "".join(problems)


def asked(site: Site, index: SiteIndex, **changes: Any) -> dict[str, Any]:
    """The module as the role asks with it: the mirror's files are the index's own, so that one certificate is enough."""
    artifacts = [artifact_of(name, content) for name, content in index.handler.files.items()]
    address = {"url": index.url, "index_url": index.url, "login": LOGIN, "ca": index.ca}
    return run("mirror_artifacts", state="served", artifacts=artifacts, **{**address, **changes})


@pytest.mark.usefixtures("other_variables")
def test_the_module_trusts_the_ca_of_the_hosts(site, index):
    assert asked(site, index).get("msg") is None


@pytest.mark.parametrize("ca", [None, "other.ca"])
def test_an_index_whose_certificate_hosts_would_not_trust_is_named_with_the_input(site, index, certificates, ca):
    """Also if the downloads' own CA, SSL_CERT_FILE, would trust it."""
    if ca:
        authority(certificates, "other")
    variables = {"SSL_CERT_FILE": index.ca}
    result = asked(site, index, ca=str(certificates / ca) if ca else None, environment=variables)
    assert result["failed"] is True
    assert "is not trusted" in result["msg"]
    assert "mirror_ca" in result["msg"]


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_that_cannot_be_read_is_a_sentence(site, index, tmp_path, content):
    path = tmp_path / "site-ca.pem"
    if content:
        path.write_text(content)
    result = asked(site, index, ca=str(path))
    assert f"{path} must be a file with certificates in PEM format on this host" in result["msg"]


def test_a_page_is_read_however_it_is_written():
    page = "<A rel=x HREF = '../f/a-1.whl?x=1&amp;y=2#sha256=0'>a</A> <a href=\"b%2B1.whl\">b</a>"
    assert mirror_source.linked(page, "https://host/simple/a/") == {
        "a-1.whl": "https://host/simple/f/a-1.whl?x=1&y=2",
        "b+1.whl": "https://host/simple/a/b%2B1.whl",
    }
