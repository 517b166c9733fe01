"""What must never reach a host: another stack than the known ones, other bytes than the locked ones."""

import pytest

from hadoop_dl.stacks import stack_names

MIRROR = "/srv/deeplearning-mirror"
TAMPERED = "/srv/tampered-mirror"
PORT = 8099


def test_an_unknown_stack_is_refused_with_the_known_ones(cluster):
    before = {host: cluster.state(host) for host in cluster.platform_hosts}
    run = cluster.site("-e", "deeplearning_request=tf1.51-py27-el7")
    assert run.code != 0
    assert "tf1.51-py27-el7" in run.output
    assert [name for name in stack_names() if name not in run.output] == []
    assert sum(run.changed.values()) == 0
    assert {host: cluster.state(host) for host in cluster.platform_hosts} == before


@pytest.fixture
def tampered_mirror(cluster):
    """The mirror once more, on another port, with one byte of one wheel turned over. Returns its address and the wheel."""
    [mirror] = cluster.inventory["mirror_host"]["hosts"]
    wheel = cluster.run(
        mirror, f"cd {MIRROR}/wheels && ls absl[-_]py-*.whl absl[-_]py-*.tar.gz 2>/dev/null | head -n 1"
    ).strip()
    assert wheel, f"the test tampers with absl_py, and {MIRROR}/wheels on {mirror} has none"
    cluster.run(
        mirror,
        f"rm -rf {TAMPERED} && cp -rs {MIRROR} {TAMPERED} && cd {TAMPERED}/wheels && rm -f {wheel} && cp {MIRROR}/wheels/{wheel} . && "
        f"python3 -c \"f = open('{wheel}', 'r+b'); f.seek(200); b = f.read(1); f.seek(200); f.write(bytes([b[0] ^ 255]))\"",
    )
    cluster.run(
        mirror,
        f"systemd-run --unit tampered-mirror --property WorkingDirectory={TAMPERED} python3 -m http.server {PORT} && "
        f"for i in $(seq 50); do ss -ltn | grep -q ':{PORT} ' && exit 0; sleep 0.2; done; exit 1",
    )
    yield f"http://{mirror}:{PORT}", wheel
    cluster.run(mirror, f"systemctl stop tampered-mirror; rm -rf {TAMPERED}")


def test_a_wheel_whose_bytes_changed_is_refused_by_hash(cluster, bare, tampered_mirror):
    address, wheel = tampered_mirror
    bare("data2")
    run = cluster.site("--limit", "data2", "-e", f"mirror_url={address}")
    assert run.code != 0
    assert run.failed == {"data2"}
    assert wheel.split("-")[0].replace("_", "-") in run.output.replace("_", "-"), "the message names the package"
    assert "sha256" in run.output.lower() or "hash" in run.output.lower()
    assert "http" in run.output, "the message says from where it came"
    host = cluster.host("data2")
    assert not host.file("/opt/deeplearning/current").exists
    assert cluster.run("data2", "find /opt/deeplearning -name sealed.json") == ""
    assert cluster.run("data2", "find /opt/deeplearning -ipath '*absl*' -not -path '*/downloads/*'") == ""
