"""What a user without root has after a bootstrap; the sources are a stand-in whose compile.sh answers like bazel's."""

import pytest

testinfra_hosts = ["ansible://bazel-el7"]
HOME = "/home/builder"


def test_the_users_shell_finds_it(host):
    output = host.check_output("su - builder -c 'PATH=$PATH:$HOME/bin; command -v bazel; bazel --batch version'")
    assert output.startswith(f"{HOME}/bin/bazel\n")
    assert "Build label: 0.26.1" in output


@pytest.mark.parametrize(
    "words",
    [
        f"TMPDIR={HOME}/bazel/.deeplearning/tmp/source-0.26.1-",
        "JAVA_HOME=/srv/jdk",
        "user=builder",
        "interfaces=1\n",
        "FIXTURE",
    ],
)
def test_the_log_is_kept_and_says_how_it_was_compiled(host, words):
    log = host.file(f"{HOME}/bazel/bootstrap-0.26.1.log").content_string
    assert log.count(words) == 1


def test_sources_and_temporary_files_are_gone(host):
    names = host.check_output(f"ls -A {HOME}/bazel").split()
    assert sorted(names) == [".lock", "0.26.1", "bootstrap-0.26.1.log"]
