"""bazel 4.2.3 as a user without root has it after a real bootstrap, and what it builds without a network."""

import json

from offline_build import OFFLINE, OWN_RULES, build

HOME = "/home/builder"
BAZEL = f"{HOME}/bin/bazel --batch --output_user_root={HOME}/output"


def test_the_user_builds_offline(host):
    build(host, BAZEL, "python3", OWN_RULES)


def test_it_is_the_version(host):
    assert "Build label: 4.2.3" in host.check_output(f"{OFFLINE} {BAZEL} version")


def test_the_log_is_kept_and_sources_and_temporary_files_are_gone(host):
    assert "Build successful!" in host.file(f"{HOME}/bazel/bootstrap-4.2.3.log").content_string
    assert sorted(host.check_output(f"ls -A {HOME}/bazel").split()) == [".lock", "4.2.3", "bootstrap-4.2.3.log"]


def test_the_mark_names_the_source(host):
    mark = json.loads(host.file(f"{HOME}/bazel/4.2.3/.deeplearning.json").content_string)
    assert mark["source"] == "bootstrap"
    assert mark["program"] == host.file(f"{HOME}/bin/bazel").sha256sum
