"""playbooks/build_tensorflow.yml and site.yml on one node: real bazel builds a stand-in of TensorFlow's sources, the wheel is published, pinned and installed.

First TensorFlow 1.15's interface with bazel 0.26.1, then 2.1's with 0.28.1. Both come from npm, the sources are demo/tensorflow.
"""

from collections.abc import Iterator

import pytest
from building_host import Site, said_once

from hadoop_dl_dev.demo.build_site import ONE, TWO, Release

NODE = "build-el7"
PYTHON = "/opt/deeplearning/current/bin/python"
# What a user of each release writes for a product of matrices.
PRODUCT = {
    ONE: "print(tf.Session().run(tf.matmul(a, b)).tolist())",
    TWO: "print(tf.matmul(a, b).numpy().tolist())",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose one host serves bazel and the sources to itself."""
    site = Site(NODE, tmp_path_factory.mktemp("site"))
    site.start()
    site.request(ONE)
    yield site
    site.remove()


def multiplies(site: Site, release: Release) -> None:
    program = (
        f"import tensorflow as tf; a = tf.constant([[2.0, 1.0]]); b = tf.constant([[3.0], [4.0]]); {PRODUCT[release]}"
    )
    assert site.shell(f"{PYTHON} -c '{program}'").strip() == "[[10.0]]"


def test_the_playbook_builds_and_pins_the_wheel(site):
    code, output = site.play("playbooks/build_tensorflow.yml")
    assert code == 0, output[-6000:]
    assert "tensorflow_build  none" in output
    assert site.record(ONE)["stack"] == ONE.stack
    assert site.record(ONE)["cpu_features"]
    wheel = site.record(ONE)["wheel"]
    assert site.shell(f"sha256sum /srv/deeplearning-mirror/wheels/{wheel['name']}").split()[0] == wheel["sha256"]


def test_a_lost_record_is_written_again_and_nothing_is_built(site):
    before = site.record(ONE)
    (site.directory / "stacks/built" / f"{ONE.stack}.json").unlink()
    code, output = site.play("playbooks/build_tensorflow.yml")
    assert code == 0, output[-6000:]
    assert site.record(ONE) == before


def test_site_yml_installs_the_wheel_where_it_fits(site):
    code, output = site.play("site.yml", "--skip-tags", "verify")
    assert code == 0, output[-6000:]
    multiplies(site, ONE)


def test_then_a_build_has_nothing_to_do(site):
    before = site.record(ONE)
    code, output = site.play("playbooks/build_tensorflow.yml")
    assert code == 0, output[-6000:]
    assert "nothing to do" in output
    assert site.record(ONE) == before


def test_the_suite_verifies_it_and_shows_what_it_is_made_of(site):
    code, output = site.play("playbooks/verify.yml")
    assert code == 0, output[-6000:]
    text, record = said_once(output), site.record(ONE)
    assert f"{record['wheel']['name']}, built {record['built']} on Red Hat" in text
    assert f"from v1.15.0 ({record['commit'][:12]}), CPU, " in text


def test_a_stack_of_tensorflow_2_is_planned_built_and_installed_beside_it(site):
    before = site.shell("readlink /opt/deeplearning/current")
    site.request(TWO)
    code, output = site.play("playbooks/build_tensorflow.yml")
    assert code == 0, output[-6000:]
    assert site.record(TWO)["bazel"]["version"] == "0.28.1"
    assert site.record(TWO)["check"]["hdfs"] is False
    code, output = site.play("site.yml")
    assert code == 0, output[-6000:]
    multiplies(site, TWO)
    site.shell(f"test -e /opt/deeplearning/{before.strip()}")
    assert f"{site.record(TWO)['wheel']['name']}, built" in said_once(output)
