"""What must never reach a host: another stack than the known ones, other bytes than the locked ones."""

import pytest

from hadoop_dl.data.stacks import stack_names

MIRROR = "/srv/deeplearning-mirror"
TAMPERED = "/srv/tampered-mirror"
PORT = 8099


def test_an_unknown_stack_is_refused_with_the_known_ones(cluster):
    before = cluster.stamps()
    run = cluster.site("-e", "deeplearning_request=tf1.51-py27-el7")
    assert run.code != 0
    assert "tf1.51-py27-el7" in run.output
    assert [name for name in stack_names() if name not in run.output] == []
    assert sum(run.changed.values()) == 0
    assert cluster.stamps() == before


TAMPER = r"""
import glob, os, shutil, sys
for name in glob.glob("absl[-_]py-*"):  # a dependency of every TensorFlow
    content = bytearray(open(name, "rb").read())
    content[200] ^= 255
    os.remove(name)  # it is a link into the real mirror
    open(name, "wb").write(content)
    print(name)
"""


@pytest.fixture
def tampered_mirror(cluster):
    """The mirror once more, on another port, with one byte of absl-py turned over."""
    [mirror] = cluster.inventory["mirror_host"]["hosts"]
    cluster.run(mirror, f"rm -rf {TAMPERED} && cp -rs {MIRROR} {TAMPERED}")
    assert cluster.run(mirror, f"cd {TAMPERED}/wheels && python3 - <<'END'\n{TAMPER}\nEND") != "", (
        "nothing to tamper with"
    )
    cluster.run(
        mirror,
        f"systemd-run --unit tampered-mirror --property WorkingDirectory={TAMPERED} /usr/bin/python3 -m http.server {PORT} && "
        f"for i in $(seq 50); do ss -ltn | grep -q ':{PORT} ' && exit 0; sleep 0.2; done; exit 1",
    )
    yield f"http://{mirror}:{PORT}"
    cluster.run(mirror, f"systemctl stop tampered-mirror; rm -rf {TAMPERED}")


def test_a_wheel_whose_bytes_changed_is_refused_by_hash(cluster, bare, tampered_mirror):
    bare("data2")
    run = cluster.site("--limit", "data2", "-e", f"mirror_url={tampered_mirror}")
    assert run.code != 0
    assert run.failed == {"data2"}
    assert "absl" in run.output, "the message names the package"
    assert "sha256" in run.output.lower() or "hash" in run.output.lower()
    assert tampered_mirror in run.output, "the message says from where it came"
    assert not cluster.host("data2").file("/opt/deeplearning/current").exists
    assert cluster.run("data2", "find /opt/deeplearning -name sealed.json") == ""
    # TensorFlow's own wheel, which was unpacked before, has C++ headers of that name.
    assert cluster.run("data2", "find /opt/deeplearning -path '*/site-packages/absl*' -o -name 'absl*.whl'") == ""
