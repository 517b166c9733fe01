"""The data under compat/: its form, what its rows say about each other, and the page that is made from it."""

import copy
import json
from typing import Any

import jsonschema
import pytest
import yaml

from hadoop_dl.data import compat
from hadoop_dl.resolver.versions import version
from hadoop_dl_dev import compat_docs

FILES = sorted(compat.DIRECTORY.glob("*.yml"))
SCHEMA = json.loads((compat.DIRECTORY / "schema.json").read_text(encoding="utf-8"))
CHECK = jsonschema.Draft202012Validator(SCHEMA)
DATA = compat.load()


def content(name: str) -> dict[str, Any]:
    return yaml.load((compat.DIRECTORY / f"{name}.yml").read_bytes(), Loader=compat.LOADER)  # noqa: S506 (both are safe loaders)


def problems(data: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in CHECK.iter_errors(data)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_the_form_that_the_schema_gives_it(path):
    document = content(path.stem)
    assert document["subject"] == path.stem
    assert problems(document) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"min_driver": 410.48}, "410.48 is not of type 'string'"),  # a version without quotes
        ({"min_driver": "410,48"}, "does not match"),
        ({"source": []}, "[]"),
        ({"source": ["http://example.org/"]}, "does not match"),
        ({"verified": "yes"}, "is not of type 'boolean'"),
        ({"nvcc_max_cc": None}, "is not of type 'string'"),
        ({"mindriver": "410.48"}, "'mindriver' was unexpected"),
    ],
)
def test_the_schema_refuses_what_is_not_a_fact(change, words):
    document = copy.deepcopy(content("cuda"))
    document["toolkits"][0] |= change
    assert words in " ".join(problems(document))


@pytest.mark.parametrize("gone", ["source", "verified", "min_driver"])
def test_the_schema_misses_what_a_row_lacks(gone):
    document = copy.deepcopy(content("cuda"))
    del document["toolkits"][0][gone]
    assert f"'{gone}' is a required property" in " ".join(problems(document))


@pytest.mark.parametrize(
    ("subject", "rows", "key"),
    [
        ("tensorflow", "lines", "line"),
        ("tensorflow", "releases", "version"),
        ("cuda", "toolkits", "version"),
        ("cuda", "cudnn", "version"),
        ("cuda", "os_support", "os"),
        ("drivers", "branches", "branch"),
        ("gpus", "architectures", "cc"),
        ("gpus", "devices", "pci_id"),
        ("keras", "releases", "version"),
        ("platforms", "systems", "os"),
        ("platforms", "releases", "os"),
        ("python", "pythons", "python"),
        ("spark", "lines", "line"),
        ("tensorflow_build", "profiles", "profile"),
        ("tensorflow_io", "releases", "version"),
        ("tensorflowonspark", "releases", "version"),
    ],
)
def test_a_thing_has_one_row(subject, rows, key):
    keys = [row[key] for row in DATA.rows(subject, rows)]
    assert len(keys) == len(set(keys))


def test_rows_speak_of_things_that_have_rows():
    toolkits = {row["version"] for row in DATA.rows("cuda", "toolkits")}
    lines = {row["line"] for row in DATA.rows("tensorflow", "lines")}
    releases = {row["version"] for row in DATA.rows("tensorflow", "releases")}
    ios = {row["version"] for row in DATA.rows("tensorflow_io", "releases")}
    generations = {(row["architecture"], row["cc"]) for row in DATA.rows("gpus", "architectures")}
    profiles = {row["profile"] for row in DATA.rows("tensorflow_build", "profiles")}
    systems = {row["os"] for row in DATA.rows("platforms", "systems")}
    for row in DATA.rows("tensorflow", "lines"):
        assert row["cuda"] in toolkits, row["line"]
        assert row["tested_version"] in releases, row["line"]
        assert row["configure_profile"] in profiles, row["line"]
        assert set(row["tensorflow_io"]) <= ios, row["line"]
    assert {row["line"] for row in DATA.rows("tensorflow", "releases")} == lines
    assert {(row["architecture"], row["cc"]) for row in DATA.rows("gpus", "devices")} <= generations
    assert {row["os"] for row in DATA.rows("platforms", "releases")} == systems
    assert {row["os"] for row in DATA.rows("cuda", "os_support")} <= systems
    assert {name for row in DATA.rows("drivers", "branches") for name in row["releases"]} <= systems


def test_a_branch_lists_its_own_releases_newest_first():
    for row in DATA.rows("drivers", "branches"):
        for system, releases in row["releases"].items():
            assert releases == sorted(releases, key=version, reverse=True), (system, row["branch"])
            assert {release.split(".")[0] for release in releases} <= {row["branch"]}, system


def test_rhel_7_with_dkms_has_the_drivers_of_the_toolkits():
    """latest-dkms took what was the newest of all branches, as the driver of a new toolkit was."""
    bundled_drivers = {row["bundled_driver"] for row in DATA.rows("cuda", "toolkits")}
    for row in DATA.rows("drivers", "branches"):
        if row["releases"].get("rhel7"):
            assert bundled_drivers & set(row["releases"]["rhel7"]), row["branch"]


def test_spans_begin_before_they_end():
    for row in DATA.rows("cuda", "toolkits"):
        assert version(row["nvcc_min_cc"]) < version(row["nvcc_max_cc"]), row["version"]
        assert version(row["gcc_min"] or "0") <= version(row["gcc_max"]), row["version"]
    for row in DATA.rows("tensorflow", "lines"):
        assert version(row["bazel"]["min"]) <= version(row["bazel"]["tested"]), row["line"]
        assert version(row["bazel"]["tested"]) <= version(row["bazel"]["max"] or "99"), row["line"]
    spans = [
        *[(row["os"], row["first"], row["last"]) for row in DATA.rows("cuda", "os_support")],
        *[(row["distribution"], row["first"], row["last"]) for row in DATA.rows("hadoop", "distributions")],
        *[(row["cc"], row["first_cuda"], row["last_cuda"]) for row in DATA.rows("gpus", "architectures")],
        *[(row["cc"], row["first_driver_branch"], row["last_driver_branch"]) for row in DATA.rows("gpus", "architectures")],
    ]  # fmt: skip
    assert [span for span in spans if span[1] and span[2] and version(span[1]) > version(span[2])] == []


def test_another_fact_is_another_page():
    toolkits = [dict(row) for row in DATA.rows("cuda", "toolkits")]
    toolkits[0]["min_driver"] = "375.99"
    cuda = {**DATA.subjects["cuda"], "toolkits": toolkits}
    other_facts = compat.Compat({**DATA.subjects, "cuda": cuda})
    assert "375.99" not in compat_docs.tables()
    assert "| 8.0 | 375.99 | 375.99 |" in compat_docs.tables(other_facts)


def test_every_row_of_the_page_has_all_its_cells():
    for part in compat_docs.tables().split("\n## ")[1:]:
        rows = [line for line in part.splitlines() if line.startswith("|")]
        assert len(rows) > 2
        assert len({line.count("|") - line.count("\\|") for line in rows}) == 1, part.splitlines()[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_until_when_each_of_its_sources_was_read(path):
    document = content(path.stem)
    prefixes = tuple(entry["source"] for entry in document["read"])
    lists = [rows for rows in document.values() if isinstance(rows, list)]
    sources = {
        source for rows in lists for row in rows if isinstance(row.get("source"), list) for source in row["source"]
    }
    assert {source for source in sources if not source.startswith(prefixes)} == set()
    days = [entry["until"] for entry in document["read"] if entry["until"].count("-") == 2]
    assert path.stem == "gpu_devices" or max(days) <= document["checked"]
