"""A directory takes the place of an older one: killed before any step, the same command ends with one of them and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import replaced_directory
from archives import archive
from bazel_stand_in import executable
from host_modules import run
from killed_steps import NEVER, killed, module_main


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def filled(path: Path, content: str) -> Path:
    path.mkdir(parents=True)
    for name in ("a", "b"):
        (path / name).write_text(content)
    return path


def test_a_kill_before_each_step_leaves_one_complete_directory_or_the_way_back(tmp_path):
    number, dead = 1, True
    while dead:
        folder = tmp_path / str(number)
        place, old = filled(folder / "place", "old"), str(folder / ".place.old")
        new = filled(Path(replaced_directory.draft(old)), "new")
        dead = killed(lambda: replaced_directory.put(str(new), str(place), old), number)  # noqa: B023 (called at once)
        replaced_directory.recover(str(place), old)
        assert names(folder) == ["place"]
        assert {(place / name).read_text() for name in ("a", "b")} in ({"old"}, {"new"})
        assert not replaced_directory.is_left(old)
        number += 1
    assert (place / "a").read_text() == "new"
    assert number > 5


def test_half_of_an_older_directory_never_comes_back(tmp_path):
    """Killed while the older one was removed; then a person removed the place."""
    place, old = tmp_path / "place", str(tmp_path / ".place.old")
    number, dead = 1, True
    while dead:
        filled(Path(old), "old")
        dead = killed(lambda: replaced_directory.remove(old), number)
        replaced_directory.recover(str(place), old)
        if place.exists():
            assert names(place) == ["a", "b"]
            for path in (place / "a", place / "b"):
                path.unlink()
            place.rmdir()
        assert names(tmp_path) == []
        number += 1
    assert number > 3


def packed(folder: Path, name: str, *files: str) -> tuple[str, str]:
    path = archive(folder.parent, name, *files)
    return path, replaced_directory.atomic_files.sha256_of(path)


def libraries(folder: Path, name: str) -> dict[str, Any]:
    path, sha256 = packed(folder, name, "lib/libcudnn.so.8")
    return {"archive": path, "path": str(folder / "in/it"), "sha256": sha256, "root": str(folder)}


def spark(folder: Path, name: str) -> dict[str, Any]:
    path, sha256 = packed(folder, name, "deps/bin/spark-submit", "deps/jars/a.jar", "lib/pyspark.zip")
    places = {"path": str(folder / "in/it"), "downloads": str(folder / "downloads"), "root": str(folder)}
    parts = {"deps/bin": "bin", "deps/jars": "jars", "lib": "python/lib"}
    return {"url": f"file://{path}", "sha256": sha256, "parts": parts, **places}


def bazel(folder: Path, name: str) -> dict[str, Any]:
    program = folder.parent / name
    if not program.exists():
        with executable(program, "0.26.1").open("ab") as handle:
            handle.write(b"\0" * len(name))
    return {"root": str(folder / "in"), "version": "0.26.1", "program": str(program), "source": "binary"}


def content(folder: Path) -> dict[str, bytes]:
    """What is in and beside the place; drafts of downloads are not the exchange's."""
    place = folder / "in"
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def at_its_place(folder: Path) -> dict[str, bytes]:
    """The files of the place, without marks."""
    files = [(*path.partition("/"), text) for path, text in content(folder).items()]
    return {name: text for top, _, name, text in files if top in ("it", "0.26.1") and name[:1] not in ("", ".")}


@pytest.mark.parametrize(
    ("module", "arguments"), [("placed_tree", libraries), ("placed_tree", spark), ("bazel_program", bazel)]
)
def test_the_same_command_after_a_kill_before_each_step_ends_clean(tmp_path, module, arguments):
    number, dead, expected_content, complete = 1, True, {}, {}
    while dead:
        folder = tmp_path / str(number)
        folder.mkdir()
        older_arguments, newer_arguments = arguments(folder, "older"), arguments(folder, "newer-one")
        if number == 1:
            assert run(module, **newer_arguments)["changed"]
            expected_content, complete = content(folder), at_its_place(folder)
        assert not killed(module_main(module, older_arguments), NEVER)
        before = at_its_place(folder)
        dead = killed(module_main(module, newer_arguments), number)
        assert at_its_place(folder) in ({}, before, complete)
        if arguments == libraries:  # what asks first
            assert not killed(module_main(module, {**newer_arguments, "only_check": True}), NEVER)
            assert names(folder / "in") == ["it"]
        assert not killed(module_main(module, newer_arguments), NEVER)
        assert content(folder) == expected_content
        number += 1
    assert number > 8


def test_a_version_of_bazel_that_was_begun_is_ours_after_a_kill_before_each_step(tmp_path):
    """Without its mark it would be somebody else's, and refused for ever."""
    number, dead = 1, True
    while dead:
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = bazel(folder, "program")
        dead = killed(module_main("bazel_program", {**arguments, "state": "begun"}), number)
        assert run("bazel_program", **arguments).get("changed") is True
        number += 1
    assert number > 3
