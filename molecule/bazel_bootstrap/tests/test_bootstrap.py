"""bazel 4.2.3 as a user without root has it after a real bootstrap, and what it builds without a network."""

import json

HOME = "/home/builder"
BAZEL = f"{HOME}/bin/bazel --batch --output_user_root={HOME}/output"
# From 0.29 on bazel fetches its own rules, if nobody names a directory with them.
RULES = " ".join(f"--override_repository={name}=/srv/rules/{name}" for name in ("rules_cc", "rules_java"))
# A process with a network of its own has the loopback device alone; bazel's client and server talk over it.
OFFLINE = (
    "systemd-run --quiet --wait --pipe --collect --property=PrivateNetwork=yes --property=User=builder "
    f"--setenv=HOME={HOME} --working-directory={HOME}/project"
)


def test_the_user_builds_offline(host):
    host.check_output(f"{OFFLINE} {BAZEL} build --spawn_strategy=standalone {RULES} //:libanswer.so //:show")
    load = f"import ctypes; print(ctypes.CDLL('{HOME}/project/bazel-bin/libanswer.so').answer())"
    assert host.check_output(f'python3 -c "{load}"') == "42"
    assert host.check_output(f"{HOME}/project/bazel-bin/show") == "made by a rule"


def test_it_is_the_version(host):
    assert "Build label: 4.2.3" in host.check_output(f"{OFFLINE} {BAZEL} version")


def test_the_log_is_kept_and_sources_and_temporary_files_are_gone(host):
    assert "Build successful!" in host.file(f"{HOME}/bazel/bootstrap-4.2.3.log").content_string
    assert sorted(host.check_output(f"ls -A {HOME}/bazel").split()) == [".lock", "4.2.3", "bootstrap-4.2.3.log"]


def test_the_mark_names_the_source(host):
    mark = json.loads(host.file(f"{HOME}/bazel/4.2.3/.deeplearning.json").content_string)
    assert mark["source"] == "bootstrap"
    assert mark["program"] == host.file(f"{HOME}/bin/bazel").sha256sum
