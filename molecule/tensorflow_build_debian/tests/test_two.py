"""The wheels of TensorFlow 2's interface, as a user of the node sees them."""

import pytest
from built_wheels import install, provenance_of

BAZEL = {"2.8.0": "4.2.3", "2.2.0": "2.0.0"}


@pytest.fixture(params=sorted(BAZEL))
def provenance(host, request):
    return provenance_of(host, request.param)


def test_pip_installs_it_and_it_multiplies(host, provenance):
    program = (
        "import tensorflow as tf; a = tf.constant([[2.0]]); print(tf.matmul(a, a).numpy().tolist(), tf.python.FEATURES)"
    )
    # HDFS is off in 2.8 unless a flag asks for it, and on in 2.2 unless a flag refuses it.
    features = ["sse4_1", "sse4_2", "avx"] + (["hdfs"] if provenance["version"] == "2.8.0" else [])
    assert host.check_output(f"{install(host, provenance)} -c '{program}'") == f"[[4.0]] {features}"


def test_the_provenance_names_bazel_and_the_system(provenance):
    assert provenance["bazel"]["version"] == BAZEL[provenance["version"]]
    assert provenance["os"]["short"] == "debian12"
    assert provenance["python"]["version"] == "3.11"


def test_the_build_ran_without_a_network_and_read_its_archives_from_distdir(host, provenance):
    log = host.file(f"/var/lib/deeplearning-build/builds/{provenance['key']}/build.log").content_string
    assert "--distdir=/var/lib/deeplearning-build/archives" in log
    assert "Build completed successfully" in log
    assert set(provenance["archives"]) == {f"{name}-fixture.tar.gz" for name in ("eigen", "rules_cc", "rules_java")}
