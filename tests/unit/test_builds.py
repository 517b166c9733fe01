"""Stacks whose TensorFlow the site builds: where the wheel is built, the lock that it completes, and the hosts that it does not fit."""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import plan_hosts
import pytest
import yaml
from built_wheel import COMMIT, PROVENANCE, SHA256, WHEEL
from engine_requests import given
from plan_hosts import made

from hadoop_dl import plan
from hadoop_dl.cli import mirror
from hadoop_dl.cli import stack as stack_cli
from hadoop_dl.data import cdsw, engine_image, stacks
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl_dev import invented_hosts
from hadoop_dl_dev.invented_hosts import after

REPOSITORY = Path(__file__).resolve().parents[2]
BASE, STACK = "tf1.15-cpu-py27-el7", "ours-cpu-py27-el7"
GPUS = {"cuda": {"version": "10.0", "cudnn": "7.6", "capabilities": ["6.0", "7.0"]}}
NODE = {
    "os": {"short": "el7", "name": "RHEL 7.9"},
    "libstdcxx": "3.4.19",
    "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2"]},
    "nvidia": {"gpus": []},
}
SITE = {
    **plan_hosts.SITE,
    "deeplearning_request": STACK,
    "tensorflow_build_source": {"file": "http://mirror1:8900/files/tensorflow.bundle", "sha256": SHA256},
    "bazel_files": {"0.26.1": {"file": "http://mirror1:8900/files/bazel", "sha256": SHA256}},
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """inventories/SITE/stacks with a stack whose TensorFlow is built: that of a project's stack, without its wheel."""
    monkeypatch.setattr(stacks, "_site", [])
    target.verdicts.clear()
    caches = (target.locked, stacks._load)
    for cache in caches:
        cache.cache_clear()
    directory = tmp_path / "stacks"
    (directory / "locks").mkdir(parents=True)
    base = load_stack(BASE)
    data = {**base.data, "name": STACK, "tensorflow_source": "built", "tensorflow_package": "tensorflow"}
    data |= {"bazel": "0.26.1", "tensorflow_commit": COMMIT}
    (directory / f"{STACK}.yml").write_text(yaml.safe_dump(data))
    lines = base.lock("2.7").text.splitlines(keepends=True)
    lock = "".join(line for line in lines if not line.startswith(("tensorflow==", "tensorflow-cpu==")))
    (directory / "locks" / f"{STACK}.txt").write_text(lock)
    stacks.add_site_stacks([tmp_path])
    yield directory
    for cache in caches:
        cache.cache_clear()


def record(site: Path, **changes: Any) -> None:
    (site / "built").mkdir(exist_ok=True)
    (site / "built" / f"{STACK}.json").write_text(json.dumps({**PROVENANCE, **changes}), encoding="utf-8")
    target.locked.cache_clear()


def host(name: str = "data1", *groups: str, **parts: Any) -> plan_model.Host:
    return invented_hosts.host(name, groups or ("data_nodes",), SITE, plan_hosts.changed_node(**{**NODE, **parts}))


BUILDER = ("build01", "build_hosts")


# --- CDSW -----------------------------------------------------------------------------------------------------------

UBUNTU = {"short": "ubuntu1804", "name": "Ubuntu 18.04", "glibc": "2.27"}


@pytest.mark.parametrize("version", ["", "10", "13"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (None, "requires the wheel of TensorFlow 1.15.0 that this site builds, but none is recorded"),
        ({}, "was built on RHEL 7.9, but engines of CDSW run Ubuntu"),
        ({"os": UBUNTU, "symbols": {"GLIBC": "2.28"}}, ""),
    ],
)
def test_a_wheel_that_was_built_on_a_node_is_refused_for_cdsw(site, tmp_path, capsys, changes, words, version):
    if changes is not None:
        record(site, **changes)
    expected = words or (version and f"requires GLIBC_2.28, but engine {version}")
    with pytest.raises(engine_image.EngineError, match=re.escape(expected)) if expected else nullcontext():
        assert engine_image.work(given(STACK, python="2.7", version=version))["stack"] == STACK
    project = tmp_path / "project"
    code = stack_cli.main(["cdsw-project", STACK, str(project), "--mirror", "http://m:1", "--stacks", str(site)])
    assert (code, project.exists()) == ((1, False) if words else (0, True))
    assert words in capsys.readouterr().err


def test_no_engine_fits_a_stack_that_the_site_builds(site):
    for engine in cdsw.engines():
        assert "tf1.6-py27-el7" not in engine_image.fits(engine)


# --- the lock -------------------------------------------------------------------------------------------------------


def test_the_wheel_of_the_site_completes_the_lock_and_another_wheel_is_another_environment(site):
    before = load_stack(STACK).lock("2.7")
    record(site)
    lock = load_stack(STACK).lock("2.7")
    [entry] = [package for package in lock.entries if package.project == "tensorflow"]
    assert (entry.component, entry.version, entry.sha256, entry.name, entry.size) == (
        "tensorflow", "1.15.0", SHA256, WHEEL, 6877
    )  # fmt: skip
    assert f"tensorflow==1.15.0 --hash=sha256:{SHA256}  # {WHEEL} 6877\n" in lock.component("tensorflow")
    assert lock.digest != before.digest
    assert "tensorflow" not in {package.project for package in load_stack(STACK).base_lock("2.7").entries}, (
        "the build gets this"
    )
    assert [package.project for package in lock.entries if package != entry] == [
        package.project for package in before.entries
    ]
    record(site, wheel={**PROVENANCE["wheel"], "sha256": "cd" * 32})
    assert load_stack(STACK).lock("2.7").digest != lock.digest


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.15.5"},
        {"commit": "6" * 40},
        {"python": {"version": "3.6", "abi": "cpython-36m-x86_64-linux-gnu"}},
    ],
    ids=["version", "commit", "python"],
)
def test_a_wheel_of_another_release_is_none(site, change):
    record(site, **change)
    assert load_stack(STACK).record("2.7") is None
    assert "playbooks/build_tensorflow.yml" in " ".join(made(host()).problems)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", json.dumps({**PROVENANCE, "wheel": {"name": "../x.whl", "sha256": SHA256, "size": 1}})],
    ids=["empty", "list", "mapping", "path"],
)
def test_a_record_that_cannot_be_used_is_a_sentence(site, content):
    (site / "built").mkdir()
    (site / "built" / f"{STACK}.json").write_text(content, encoding="utf-8")
    with pytest.raises(StackError, match="must be the record of a built wheel"):
        load_stack(STACK).lock("2.7")


def test_the_mirror_never_fetches_the_wheel_and_says_who_publishes_it(site, tmp_path):
    record(site)
    [artifact] = [entry for entry in load_stack(STACK).artifacts("2.7") if entry["name"] == WHEEL]
    with pytest.raises(mirror.MirrorError, match=r"this site builds.*playbooks/build_tensorflow.yml"):
        mirror.fetch_artifacts([artifact], tmp_path / "mirror")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bazel": None}, "The key bazel is missing"),
        ({"tensorflow_commit": "v1.15.0"}, "tensorflow_commit must be the 40 hex digits"),
        ({"os": ["el7", "el8"]}, "os must have one entry"),
    ],
)
def test_what_a_built_stack_must_name(change, sentence):
    built = {"tensorflow_source": "built", "bazel": "0.26.1", "tensorflow_commit": COMMIT}
    data = {key: value for key, value in {**load_stack(BASE).data, **built, **change}.items() if value is not None}
    assert sentence in " ".join(stacks.stack_problems(data, data["name"]))


# --- the plan of a build --------------------------------------------------------------------------------------------


def test_a_stack_whose_wheel_is_missing_is_refused_with_the_command(site):
    problems = made(host(), host("data2")).problems
    words = "requires the wheel of TensorFlow 1.15.0 that this site builds"
    assert [problem.partition(words)[0] for problem in problems] == [f"data1, data2: {STACK} "]
    assert "playbooks/build_tensorflow.yml" in problems[0]


def test_the_build_is_planned_for_what_its_hosts_have_in_common(site):
    bare = host("data2", "data_nodes", cpu={"features": ["avx", "sse4_2", "fma"]})
    site_plan = made(host(), bare, host(*BUILDER), building=True)
    assert site_plan.problems == []
    assert site_plan.hosts["build01"]["needs"] == ["tensorflow_build"]
    part = site_plan.hosts["build01"]["build"]
    assert part["cpu_features"] == ["avx", "sse4_2"]
    assert part["hosts"] == ["data1", "data2"]
    assert (part["version"], part["commit"], part["bazel"]) == ("1.15.0", COMMIT, "0.26.1")
    assert (part["hdfs"], part["kafka"], part["cuda"], part["capabilities"]) == (True, True, {}, [])
    assert site_plan.hosts["data1"]["needs"] == []


def test_a_build_without_its_sources_or_bazel_is_refused_by_the_plan(site, monkeypatch):
    """Only if something is built: what was built once needs its files no more."""
    monkeypatch.delitem(SITE, "tensorflow_build_source")
    monkeypatch.delitem(SITE, "bazel_files")
    hosts = [host(), host(*BUILDER)]
    site_plan = made(*hosts, building=True)
    sources, bazel = site_plan.problems
    assert "git bundle with its sha256, but tensorflow_build_source has none" in sources
    assert "bazel 0.26.1 requires bazel-0.26.1-linux-x86_64 with its sha256, but bazel_files has none" in bazel
    record(site)
    new_plan = made(*[after(entry, site_plan) for entry in hosts], building=True)
    assert (new_plan.problems, new_plan.rows) == ([], [])


def test_the_build_host_may_run_the_wheel_itself(site):
    site_plan = made(host("data1", "data_nodes", "build_hosts"), building=True)
    assert site_plan.hosts["data1"]["needs"] == ["tensorflow_build"]


def test_the_mirror_gets_what_the_build_takes_before_there_is_a_wheel(site):
    site_plan = made(host(), host(*BUILDER), host("mirror1", "mirror_host"), building=True)
    assert site_plan.hosts["mirror1"]["needs"] == ["mirror"]
    assert site_plan.hosts["mirror1"]["mirror_environments"] == [[STACK, "2.7"]]


def after_the_build(*more: plan_model.Host) -> plan_model.Plan:
    hosts = [host(), host(*BUILDER)]
    site_plan = made(*hosts, building=True)
    return made(*[after(entry, site_plan) for entry in hosts], *more, building=True)


def test_where_another_controller_built_it_the_record_is_written(site):
    [row] = after_the_build().rows
    assert (row.host, row.component, row.reason) == ("build01", "tensorflow_build", "built, not recorded here")


def test_after_the_build_a_host_with_less_is_a_reason_to_build_again_and_nothing_else(site):
    record(site)
    new_plan = after_the_build()
    assert (new_plan.problems, new_plan.rows) == ([], [])
    [row] = after_the_build(host("data9", "data_nodes", cpu={"features": ["sse4_2"]})).rows
    assert (row.host, row.reason) == ("build01", "inputs changed")


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        ({"os": {"short": "el9", "name": "RHEL 9.4"}}, "no host of the group build_hosts has both"),
        ({"pythons": {"3.6": "/usr/bin/python3.6"}}, "must be built on el7 with Python 2.7"),
    ],
)
def test_a_build_needs_a_host_of_that_system_and_python(site, builder, words):
    problems = made(host(), host("build01", "build_hosts", **builder), building=True).problems
    assert words in " ".join(problems)


def test_a_site_that_builds_nothing_is_told_so():
    plain = invented_hosts.host("data1", ("data_nodes",), {**SITE, "deeplearning_request": BASE}, plan_hosts.NODE)
    words = "No host of this run asks for a stack whose TensorFlow is built"
    assert words in " ".join(made(plain, building=True).problems)


# --- where the wheel fits -------------------------------------------------------------------------------------------


def gpu(device: str) -> dict[str, Any]:
    return {"gpus": [{"vendor": "10de", "device": device, "address": "0"}]}


def test_a_host_as_the_wheel_was_built_for_gets_it(site):
    record(site)
    site_plan = made(host())
    assert site_plan.problems == []
    assert "environment" in site_plan.hosts["data1"]["needs"]
    assert site_plan.hosts["data1"]["environment"] == f"{STACK}-{load_stack(STACK).lock('2.7').digest}"


@pytest.mark.parametrize(
    ("built", "there", "words"),
    [
        (
            {"os": {"short": "ubuntu1604", "name": "Ubuntu 16.04"}},
            {},
            "was built on Ubuntu 16.04, but the host runs RHEL 7.9",
        ),
        ({"symbols": {"GLIBC": "2.27"}}, {}, "requires GLIBC_2.27, but the host has GLIBC_2.17"),
        ({"symbols": {"GLIBCXX": "3.4.21"}}, {}, "requires GLIBCXX_3.4.21, but the host has GLIBCXX_3.4.19"),
        ({}, {"cpu": {"features": ["sse4_1", "avx"]}}, "CPUs with sse4_2, but the host's CPU lacks that"),
        (GPUS, {"nvidia": gpu("102d")}, "compute capabilities 6.0, 7.0, but the host has GPUs of 3.7"),
        ({"architecture": "ppc64le"}, {}, "is for ppc64le, but the host is x86_64"),
    ],
)
def test_a_host_that_it_does_not_fit_is_refused_before_anything_changes(site, built, there, words):
    record(site, **built)
    site_plan = made(host(), host("data2", "data_nodes", **there))
    assert words in " ".join(site_plan.problems)
    assert site_plan.table().startswith("PLAN: nothing can be planned")


def test_newer_gpus_compile_the_wheels_ptx():
    assert plan.builds.gpu_problems(GPUS, host("x", nvidia=gpu("20b0")).known) == []
