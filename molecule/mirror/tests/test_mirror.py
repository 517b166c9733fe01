import hashlib
import json

ROOT = "/srv/deeplearning-mirror"
URL = "http://127.0.0.1:8900"
READ = (
    "import sys, hashlib, urllib.request; print(hashlib.sha256(urllib.request.urlopen(sys.argv[1]).read()).hexdigest())"
)


def manifest(host) -> dict[str, dict[str, object]]:
    return json.loads(host.file(f"{ROOT}/manifest.json").content_string)["artifacts"]


def test_everything_that_the_manifest_names_is_served_with_its_sha256(host):
    held = manifest(host)
    assert len(held) >= 6
    for path, entry in held.items():
        assert host.check_output(f"python3 -c '{READ}' {URL}/{path}") == entry["sha256"]


def test_the_damaged_file_was_replaced(host):
    [path] = [path for path in manifest(host) if path.startswith("wheels/six-")]
    content = host.file(f"{ROOT}/{path}").content
    assert content != b"damaged"
    assert hashlib.sha256(content).hexdigest() == manifest(host)[path]["sha256"]


def test_every_source_distribution_has_a_wheel_of_its_source_alone(host):
    """pip, setuptools and wheel of the real lock built them; the role publishes no other wheel."""
    held = manifest(host)
    sources = {entry["sha256"] for path, entry in held.items() if path.endswith((".tar.gz", ".zip"))}
    built = {path: entry for path, entry in held.items() if path.startswith("built/")}
    assert {entry["source"] for entry in built.values()} == sources
    assert [path for path in built if not path.endswith("-none-any.whl")] == []
    assert not host.file("/opt/deeplearning/mirror-build").exists


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
    found = host.run(f"find {ROOT} -user deeplearning-mirror -o -type f -perm /022")
    assert found.rc == 0
    assert found.stdout == ""


def test_parts_of_downloads_are_closed_to_others(host):
    # Where the controller pushes, there are none.
    staging = host.file(f"{ROOT}/.staging")
    assert staging.mode == 0o700
    assert staging.user == "root"
