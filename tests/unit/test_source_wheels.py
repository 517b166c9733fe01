"""Wheels of source distributions by recipe: the named files and nothing else, the same bytes everywhere, and no setup.py."""

import subprocess
import zipfile
from pathlib import Path

import engine_image
import pytest
from ansible.module_utils.hadoop_dl_host import source_wheels
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from environments import Site
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from source_distributions import FILES, NAME, digest, source

from hadoop_dl.data import stacks


def test_every_source_distribution_of_a_lock_has_a_recipe_and_no_other():
    all_stacks = [stacks.load_stack(name) for name in stacks.stack_names()]
    entries = [entry for stack in all_stacks for python in stack.pythons for entry in stack.lock(python).entries]
    sources = [entry for entry in entries if not source_wheels.is_wheel(entry.name)]
    locked_versions = {entry.sha256: (entry.project, entry.version) for entry in sources}
    recipe_versions = {}
    for sha256, recipe in source_wheels.RECIPES.items():
        project, _, version = recipe.wheel.partition("-")
        recipe_versions[sha256] = (project.replace("_", "-").lower(), version)
    assert recipe_versions == locked_versions


def test_the_wheel_has_the_named_files_and_what_pkg_info_says(tmp_path, recipe):
    path = source_wheels.make(NAME, digest(tmp_path / NAME), str(tmp_path / NAME), str(tmp_path))
    assert Path(path).name == "evil-1.0.post2-py2.py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info).decode() for info in archive.infolist()}
    information = "evil-1.0.post2.dist-info/"
    assert sorted(members) == [
        information + name for name in ("LICENSE", "METADATA", "RECORD", "WHEEL", "top_level.txt")
    ] + ["evil/__init__.py"]
    assert members["evil/__init__.py"] == FILES["src/evil/__init__.py"]
    assert members[information + "METADATA"] == (
        "Metadata-Version: 2.1\nVersion: 1.0.post2\nRequires-Dist: six\nName: evil\nSummary: Small\nDescription: Long\n        text\n"
    )


def test_the_pythons_of_hosts_make_the_same_wheel_at_any_time(tmp_path, recipe):
    program = (
        f"{WITHOUT_ANSIBLE}from {source_wheels.__package__} import source_wheels as s\n"
        "s.RECIPES = {sys.argv[3]: s.Recipe(*eval(sys.argv[4]))}\n"
        "print(s.make('x', sys.argv[3], sys.argv[2], sys.argv[5]))"
    )
    for number, python in enumerate(parameter.values[0] for parameter in HOST_PYTHONS if parameter.values[0]):
        target = tmp_path / str(number)
        target.mkdir()
        command = [str(python), "-B", "-c", program, UTILITIES, str(tmp_path / NAME)]
        command += [digest(tmp_path / NAME), repr(tuple(recipe)), str(target)]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert completed.stderr == ""
        assert digest(Path(completed.stdout.strip())) == recipe.sha256


def test_a_wheel_with_other_bytes_than_the_recipe_states_is_refused(tmp_path, recipe, monkeypatch):
    path = tmp_path / NAME
    monkeypatch.setitem(source_wheels.RECIPES, digest(path), recipe._replace(sha256="0" * 64))
    words = rf"must have the sha256 0{{64}} but has {recipe.sha256}: the recipe in source_wheels"
    with pytest.raises(source_wheels.NoWheel, match=words):
        source_wheels.make(NAME, digest(path), str(path), str(tmp_path))


def offered(site: Site, path: Path) -> None:
    """The component keras is this source distribution."""
    site.mirror.files[NAME] = path.read_bytes()
    site.lines["keras"] = [f"evil==1.0.post2 --hash=sha256:{digest(path)}  # {NAME} {path.stat().st_size}"]


def test_a_host_installs_and_seals_a_source_distribution_without_its_setup(with_pip, tmp_path, recipe):
    offered(with_pip, tmp_path / NAME)
    with_pip.install("tensorflow")
    assert with_pip.install("keras")["changed"] is True
    assert (with_pip.packages / "evil/__init__.py").read_text() == FILES["src/evil/__init__.py"]
    assert not list(with_pip.packages.rglob("evil.pth"))
    assert (with_pip.packages / "evil-1.0.post2.dist-info/LICENSE").read_text() == "Free\n"
    with_pip.seal(imports=["tensorflow", "evil"])
    assert with_pip.install("keras")["changed"] is False


def test_a_host_installs_no_source_distribution_without_a_recipe(with_pip, tmp_path):
    offered(with_pip, source(tmp_path))
    with_pip.install("tensorflow")
    words = r"evil-1\.0-2\.tar\.gz is a source distribution, and no setup\.py is run\. Build a wheel"
    with pytest.raises(Refused, match=words):
        with_pip.install("keras")
    assert not list(with_pip.packages.glob("evil*"))


def test_an_engine_image_gets_the_wheel_of_a_source_distribution(tmp_path, index, recipe):
    """Its build has neither the source nor its setup.py."""
    path, build = tmp_path / NAME, tmp_path / "build"
    index.files[NAME] = path.read_bytes()
    entry = {"project": "evil", "file": NAME, "sha256": digest(path), "size": path.stat().st_size}
    inputs = {"record": str(tmp_path / "etc/engine.json"), "mirror_url": index.url, "mirror_ca": "", "timeout": 60}
    engine_image.Images({**inputs, "wheels": [entry]}, None, False).fetch(str(build))
    assert [(wheel.name, digest(wheel)) for wheel in build.iterdir()] == [
        (source_wheels.file_name(recipe), recipe.sha256)
    ]
