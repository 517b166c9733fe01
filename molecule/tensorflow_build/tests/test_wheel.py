"""The published wheel, as a user of the node sees it."""

import pytest
from built_wheels import PUBLISHED, install, provenance_of


@pytest.fixture
def provenance(host):
    return provenance_of(host, "1.15.0")


@pytest.fixture
def installed(host, provenance):
    return install(host, provenance)


def test_the_wheel_of_tensorflow_2_multiplies_and_has_no_hdfs(host):
    provenance = provenance_of(host, "2.1.0")
    assert provenance["bazel"]["version"] == "0.28.1"
    assert "--config=nohdfs" in provenance["flags"]
    assert (provenance["check"]["hdfs"], provenance["check"]["kafka"]) == (False, False)
    program = "import tensorflow as tf; a = tf.constant([[2.0]]); print(tf.matmul(a, a).numpy().tolist())"
    assert host.check_output(f"{install(host, provenance)} -c '{program}'") == "[[4.0]]"


def test_pip_installs_it_and_it_multiplies(host, installed):
    program = "import tensorflow as tf; a = tf.constant([[2.0]]); print(tf.Session().run(tf.matmul(a, a)).tolist())"
    assert host.check_output(f"{installed} -c '{program}'") == "[[4.0]]"


def test_it_is_compiled_for_the_features_that_were_asked_for_and_no_others(host, installed):
    output = host.check_output(f"{installed} -c 'import tensorflow.python as p; print(p.FEATURES)'")
    assert output == "[u'sse4_1', u'sse4_2', u'avx', u'hdfs', u'kafka']"


def test_the_build_ran_without_root_and_left_its_log(host, provenance):
    place = f"/var/lib/deeplearning-build/builds/{provenance['key']}"
    assert "Build completed successfully" in host.file(f"{place}/build.log").content_string
    assert host.file("/var/lib/deeplearning-build/bazel").user == "deeplearning-build"


def test_the_published_wheel_is_roots(host, provenance):
    for name in ("provenance.json", provenance["wheel"]["name"]):
        file = host.file(f"{PUBLISHED}/{provenance['key']}/{name}")
        assert (file.user, file.mode) == ("root", 0o644)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cpu_features", ["avx", "sse4_1", "sse4_2"]),
        ("bazel", {"version": "0.26.1", "sha256": "6c50e142a0a405d3d8598050d6c1b3920c8cdb82a7ffca6fc067cb474275148f"}),
        ("python", {"version": "2.7", "abi": "cp27mu"}),
        ("stack", "fixture"),
        ("tag", "v1.15.0"),
    ],
)
def test_the_provenance_says_what_it_is_made_of(provenance, key, value):
    assert provenance[key] == value


def test_the_provenance_has_the_newest_symbols(host, provenance):
    assert set(provenance["symbols"]) == {"GLIBC", "GLIBCXX", "CXXABI"}
    assert [int(part) for part in provenance["symbols"]["GLIBCXX"].split(".")] > [3, 4]
