import hashlib
import json
import re
from urllib.parse import unquote, urljoin

testinfra_hosts = ["ansible://mirror-el7", "ansible://mirror-el9"]
ROOT = "/srv/deeplearning-mirror"
URL = "http://127.0.0.1:8900"
PAGE = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
READ = (
    "import sys, hashlib, urllib.request; print(hashlib.sha256(urllib.request.urlopen(sys.argv[1]).read()).hexdigest())"
)


def manifest(host) -> dict[str, dict[str, object]]:
    return json.loads(host.file(f"{ROOT}/manifest.json").content_string)["artifacts"]


def test_everything_that_the_manifest_names_is_served_with_its_sha256(host):
    entries = manifest(host)
    assert len(entries) >= 6
    for path, entry in entries.items():
        assert host.check_output(f"python3 -c '{READ}' {URL}/{path}") == entry["sha256"]


def links(host, page: str) -> dict[str, str]:
    """What a page of the package index links to: address without its fragment -> fragment."""
    parts = [
        urljoin(f"{URL}/{page}", href).partition("#")
        for href in re.findall(r'<a href="([^"]+)">', host.check_output(f"python3 -c '{PAGE}' {URL}/{page}"))
    ]
    return {unquote(address): fragment for address, _, fragment in parts}


def test_the_index_lists_every_wheel_with_its_sha256(host):
    """PEP 503, by which pip and a site's own index find them."""
    entries = {path: entry for path, entry in manifest(host).items() if path.startswith("wheels/")}
    listed = {}
    for project in links(host, "simple/"):
        assert re.fullmatch(rf"{URL}/simple/[a-z0-9]+(-[a-z0-9]+)*/", project)
        listed.update(links(host, project.removeprefix(f"{URL}/")))
    assert listed == {f"{URL}/{path}": f"sha256={entry['sha256']}" for path, entry in entries.items()}


def test_the_damaged_file_was_replaced(host):
    [path] = [path for path in manifest(host) if path.startswith("wheels/six-")]
    content = host.file(f"{ROOT}/{path}").content
    assert content != b"damaged"
    assert hashlib.sha256(content).hexdigest() == manifest(host)[path]["sha256"]


def test_it_is_served_now_and_at_boot(host):
    service = host.service("deeplearning-mirror")
    assert service.is_running
    assert service.is_enabled


def test_the_server_has_no_rights(host):
    pid = host.check_output("systemctl show --property MainPID --value deeplearning-mirror")
    status = dict(
        line.split(":", 1) for line in host.file(f"/proc/{pid}/status").content_string.splitlines() if ":" in line
    )
    assert int(status["Uid"].split()[0]) == host.user("deeplearning-mirror").uid != 0
    assert int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"


def test_the_server_cannot_write_to_what_it_serves(host):
    completed = host.run(f"find {ROOT} -user deeplearning-mirror -o -type f -perm /022")
    assert completed.rc == 0
    assert completed.stdout == ""


def test_parts_of_downloads_are_closed_to_others(host):
    staging = host.file(f"{ROOT}/.staging")
    assert staging.mode == 0o700
    assert staging.user == "root"
