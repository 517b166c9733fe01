"""Reading, choosing and verifying locks; nothing here asks an index."""

import hashlib
import zipfile

import pytest
from ansible.module_utils.hadoop_dl_host import environment_packages, source_wheels
from packaging.requirements import Requirement

from hadoop_dl.cli import lock_maker, mirror
from hadoop_dl.data import artifacts
from hadoop_dl.data.locks import StackError, parse_lock
from hadoop_dl.data.stacks import Stack

A, B, C = (letter * 64 for letter in "abc")
TEXT = f"""# Lock of demo

# component: pip
pip==20.3.4 --hash=sha256:{A}  # pip-20.3.4-py2.py3-none-any.whl 100

# component: tensorflow
numpy==1.16.6 --hash=sha256:{B}  # numpy-1.16.6-cp27-cp27mu-manylinux1_x86_64.whl 200
"""


def test_a_section_is_a_requirements_file_of_its_own():
    section = parse_lock(TEXT, "demo", "2.7").component("tensorflow")
    assert section == "".join(TEXT.splitlines(True)[-2:])
    assert parse_lock(TEXT, "demo", "2.7").component("keras") == "", "the stack lacks it"


@pytest.mark.parametrize("before", ["", "{line}", "# component: tensorflow\n"], ids=["alone", "a line", "its heading"])
def test_a_host_finds_the_section_that_its_role_was_given(before):
    """Also after a line of no component, and where the site's template wrote the heading, too."""
    section = parse_lock(TEXT, "demo", "2.7").component("tensorflow")
    text = before.format(line=TEXT.splitlines()[3]) + "\n" + section
    assert environment_packages.sections(text) == {"tensorflow": section}


def test_the_digest_is_that_of_text_python_and_name():
    lock = parse_lock(TEXT, "demo", "2.7")
    assert lock.digest == hashlib.sha256(f"{TEXT}\n2.7\ndemo".encode()).hexdigest()[:12]
    assert parse_lock(TEXT, "demo", "3.9").digest != lock.digest
    assert parse_lock(TEXT, "other", "2.7").digest != lock.digest


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (f"sha256:{B}", "sha256:123", "line 7: 'numpy==1.16.6 --hash=sha256:123"),
        ("# component: tensorflow", "# component: spark", "line 6: component spark is not one of pip, tensorflow"),
        ("# component: pip\n", "", "line 3: 'pip==20.3.4"),
        ("numpy==1.16.6", "numpy>=1.16", "line 7: 'numpy>=1.16"),
        ("numpy==", "Pip==", "pip is in it twice"),
        (TEXT, "", "it has no artifact"),
    ],
)
def test_a_damaged_lock_is_refused(old, new, sentence):
    with pytest.raises(StackError) as error:
        parse_lock(TEXT.replace(old, new), "demo", "2.7")
    assert sentence in str(error.value)
    assert "scripts/stack lock demo" in str(error.value)


@pytest.mark.parametrize(
    ("python", "glibc", "others", "chosen"),
    [
        ("2.7", "2.17", ["x-1.0-cp27-cp27m-manylinux1_x86_64.whl"], "x-1.0-cp27-cp27mu-manylinux1_x86_64.whl"),
        ("2.7", "2.17", ["x-1.0-py3-none-any.whl"], "x-1.0.tar.gz"),
        ("2.7", "2.12", ["x-1.0-cp27-cp27mu-manylinux2014_x86_64.whl"], None),
        (
            "3.11",
            "2.28",
            ["x-1.0-cp311-cp311-manylinux_2_34_x86_64.whl"],
            "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        ),
        ("3.11", "2.28", [], "x-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"),
        ("3.11", "2.28", ["x-1.0-cp311-cp311-manylinux_2_17_aarch64.whl", "x-1.1-py3-none-any.whl"], None),
    ],
)
def test_the_file_is_the_one_that_pip_takes(python, glibc, others, chosen):
    files = [{"name": name} for name in [*others, chosen] if name]
    offer = lock_maker.choose_file(files, "x", "1.0", lock_maker.platform_tags(python, glibc))
    assert (offer or {"name": None})["name"] == chosen


def test_an_sdist_with_a_dash_in_its_version_is_found():
    offer, tags = {"name": "functools32-3.2.3-2.tar.gz"}, lock_maker.platform_tags("2.7", "2.17")
    assert lock_maker.choose_file([offer], "functools32", "3.2.3.post2", tags) == offer


def test_the_closure_names_what_is_missing_and_what_does_not_fit():
    packages = {
        "a": [Requirement("b>=2"), Requirement("c; python_version<'3'"), Requirement("d; extra == 'more'")],
        "b": [],
    }
    problems = lock_maker.closure_problems({"a": "1", "b": "1"}, packages, lock_maker.marker_environment("2.7"))
    assert problems == [
        "a 1 needs b>=2, but the lock has 1.",
        'a 1 needs c; python_version < "3", but the lock has none.',
    ]
    assert lock_maker.closure_problems({"a": "1", "b": "2"}, packages, lock_maker.marker_environment("3.9")) == []


AND_CUDA = [Requirement("nvidia-cudnn-cu12==8.9.4; extra == 'and-cuda'"), Requirement("numpy")]


def test_an_extra_that_is_asked_for_belongs_to_the_closure():
    versions = {"the stack's file": "", "tensorflow": "2.15.1", "numpy": "1"}
    packages = {"tensorflow": AND_CUDA, "numpy": [], "the stack's file": [Requirement("tensorflow[and-cuda]==2.15.1")]}
    (problem,) = lock_maker.closure_problems(versions, packages, lock_maker.marker_environment("3.11"))
    assert problem.startswith("tensorflow 2.15.1 needs nvidia-cudnn-cu12==8.9.4")
    packages["the stack's file"] = [Requirement("tensorflow==2.15.1")]
    assert lock_maker.closure_problems(versions, packages, lock_maker.marker_environment("3.11")) == []


def test_what_an_extra_needs_has_the_component_of_the_package():
    versions = {"tensorflow": "2.15.1", "numpy": "1", "nvidia-cudnn-cu12": "8.9.4"}
    packages = {"tensorflow": AND_CUDA, "numpy": [], "nvidia-cudnn-cu12": []}
    requirements = {"tensorflow": ["tensorflow[and-cuda]==2.15.1"]}
    environment = lock_maker.marker_environment("3.11")
    assert set(lock_maker.assign(requirements, versions, packages, environment)) == set(versions)
    requirements = {"tensorflow": ["tensorflow==2.15.1"]}
    assert set(lock_maker.assign(requirements, versions, packages, environment)) == {"tensorflow", "numpy"}


def test_a_package_belongs_to_the_component_that_names_it_then_to_the_first_that_needs_it():
    packages = {name: [] for name in ("wheel", "six", "keras", "yaml")}
    packages["tensorflow"] = [Requirement(name) for name in ("six", "wheel", "keras")]
    packages["keras"] = [Requirement("yaml"), Requirement("six")]
    versions = dict.fromkeys(packages, "1")
    requirements = {"pip": ["wheel"], "tensorflow": ["tensorflow"], "keras": ["keras"]}
    expected = {"wheel": "pip", "tensorflow": "tensorflow", "six": "tensorflow", "keras": "keras", "yaml": "keras"}
    assert lock_maker.assign(requirements, versions, packages, lock_maker.marker_environment("2.7")) == expected


def test_requirements_are_read_from_a_wheel(tmp_path):
    path = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        lines = ["Name: x", "Version: 1.0", "Requires-Dist: six (>=1.10)", "Requires-Dist: pytz (>=2011k)", "", "Text"]
        archive.writestr("x-1.0.dist-info/METADATA", "\n".join(lines))
    # pandas 0.24.2, the last for Python 2.7: pypi.org/pypi/pandas/0.24.2/json
    assert [str(item) for item in lock_maker.requirements_inside(path, A)] == ["six>=1.10", "pytz"]


def test_requirements_of_a_source_distribution_are_those_of_its_recipe(tmp_path):
    sha256 = next(key for key, recipe in source_wheels.RECIPES.items() if recipe.wheel.startswith("absl_py"))
    requirements = lock_maker.requirements_inside(tmp_path / "absl-py-0.15.0.tar.gz", sha256)
    assert [str(item) for item in requirements] == ["six", 'enum34; python_version < "3.4"']


REFUSED = (
    "x-1.0.tar.gz is a source distribution, and no setup.py is run. Build a wheel of it (pip wheel --no-deps) and put"
)


def test_a_lock_with_a_source_distribution_that_has_no_recipe_is_refused():
    line = f"\nx==1.0 --hash=sha256:{C}  # x-1.0.tar.gz 5\n"
    with pytest.raises(StackError) as error:
        parse_lock(TEXT + line, "demo", "2.7")
    assert REFUSED in str(error.value)


def test_no_source_distribution_without_a_recipe_gets_into_a_lock(tmp_path, monkeypatch):
    """Nothing of it is fetched."""
    offer = {"name": "x-1.0.tar.gz", "url": "", "sha256": C, "size": 5}
    monkeypatch.setattr(mirror, "offers", lambda project: [offer])
    monkeypatch.setattr(mirror, "fetch_artifacts", pytest.fail)
    requirements = {"tensorflow": ["x==1.0"]}
    stack = Stack("demo", {"name": "demo", "requirements": requirements, "glibc_min": "2.17"}, tmp_path)
    with pytest.raises(StackError) as error:
        lock_maker.make_lock(stack, "2.7", tmp_path, print)
    assert str(error.value).startswith("demo for Python 2.7 cannot be locked: " + REFUSED)


def test_what_a_mirror_holds_of_it_is_called_a_source_distribution():
    assert artifacts.kind({"folder": "wheels", "name": "gast-0.2.2.tar.gz"}) == "sdist"
