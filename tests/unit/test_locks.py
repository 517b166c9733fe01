"""Reading, choosing and verifying locks; nothing here asks an index."""

import hashlib
import io
import tarfile
import zipfile

import pytest
from packaging.requirements import Requirement

from hadoop_dl.cli import lock_maker
from hadoop_dl.data.locks import LockError, parse_lock

A, B, C = (letter * 64 for letter in "abc")
TEXT = f"""# Lock of demo

# component: pip
pip==20.3.4 --hash=sha256:{A}  # pip-20.3.4-py2.py3-none-any.whl 100

# component: tensorflow
numpy==1.16.6 --hash=sha256:{B}  # numpy-1.16.6-cp27-cp27mu-manylinux1_x86_64.whl 200
"""


def test_a_section_is_a_requirements_file_of_its_own():
    section = parse_lock(TEXT, "demo", "2.7").component("tensorflow")
    assert section == (
        f"# component: tensorflow\nnumpy==1.16.6 --hash=sha256:{B}  # numpy-1.16.6-cp27-cp27mu-manylinux1_x86_64.whl 200\n"
    )


def test_a_component_that_the_stack_lacks_is_empty():
    assert parse_lock(TEXT, "demo", "2.7").component("keras") == ""


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
    ],
)
def test_a_damaged_lock_is_refused(old, new, sentence):
    with pytest.raises(LockError) as error:
        parse_lock(TEXT.replace(old, new), "demo", "2.7")
    assert sentence in str(error.value)
    assert "scripts/stack lock demo" in str(error.value)


def test_an_empty_lock_is_refused():
    with pytest.raises(LockError, match="it has no artifact"):
        parse_lock("", "demo", "2.7")


@pytest.mark.parametrize(
    ("python", "glibc", "names", "chosen"),
    [
        (
            "2.7",
            "2.17",
            ["x-1.0-cp27-cp27m-manylinux1_x86_64.whl", "x-1.0-cp27-cp27mu-manylinux1_x86_64.whl"],
            "x-1.0-cp27-cp27mu-manylinux1_x86_64.whl",
        ),
        ("2.7", "2.17", ["x-1.0-py3-none-any.whl", "x-1.0.tar.gz"], "x-1.0.tar.gz"),
        ("2.7", "2.12", ["x-1.0-cp27-cp27mu-manylinux2014_x86_64.whl"], None),
        (
            "3.11",
            "2.28",
            ["x-1.0-cp311-cp311-manylinux_2_34_x86_64.whl", "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"],
            "x-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        ),
        ("3.11", "2.28", ["x-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"], "x-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"),
        ("3.11", "2.28", ["x-1.0-cp311-cp311-manylinux_2_17_aarch64.whl", "x-1.1-py3-none-any.whl"], None),
    ],
)
def test_the_file_is_the_one_that_pip_takes(python, glibc, names, chosen):
    offer = lock_maker.choose_file(
        [{"name": name} for name in names], "x", "1.0", lock_maker.platform_tags(python, glibc)
    )
    assert (offer or {"name": None})["name"] == chosen


def test_an_sdist_with_a_dash_in_its_version_is_found():
    offers = [{"name": "functools32-3.2.3-2.tar.gz"}]
    assert (
        lock_maker.choose_file(offers, "functools32", "3.2.3.post2", lock_maker.platform_tags("2.7", "2.17"))
        == offers[0]
    )


def test_the_closure_names_what_is_missing_and_what_does_not_fit():
    requires = {
        "a": [Requirement("b>=2"), Requirement("c; python_version<'3'"), Requirement("d; extra == 'more'")],
        "b": [],
    }
    problems = lock_maker.closure_problems({"a": "1", "b": "1"}, requires, lock_maker.marker_environment("2.7"))
    assert problems == [
        "a 1 needs b>=2, and the lock has 1.",
        'a 1 needs c; python_version < "3", and the lock has none.',
    ]
    assert lock_maker.closure_problems({"a": "1", "b": "2"}, requires, lock_maker.marker_environment("3.9")) == []


AND_CUDA = [Requirement("nvidia-cudnn-cu12==8.9.4; extra == 'and-cuda'"), Requirement("numpy")]


def test_an_extra_that_is_asked_for_belongs_to_the_closure():
    versions = {"the stack's file": "", "tensorflow": "2.15.1", "numpy": "1"}
    requires = {"tensorflow": AND_CUDA, "numpy": [], "the stack's file": [Requirement("tensorflow[and-cuda]==2.15.1")]}
    (problem,) = lock_maker.closure_problems(versions, requires, lock_maker.marker_environment("3.11"))
    assert problem.startswith("tensorflow 2.15.1 needs nvidia-cudnn-cu12==8.9.4")
    requires["the stack's file"] = [Requirement("tensorflow==2.15.1")]
    assert lock_maker.closure_problems(versions, requires, lock_maker.marker_environment("3.11")) == []


def test_what_an_extra_needs_has_the_component_of_the_package():
    versions = {"tensorflow": "2.15.1", "numpy": "1", "nvidia-cudnn-cu12": "8.9.4"}
    requires = {"tensorflow": AND_CUDA, "numpy": [], "nvidia-cudnn-cu12": []}
    requirements = {"tensorflow": ["tensorflow[and-cuda]==2.15.1"]}
    environment = lock_maker.marker_environment("3.11")
    assert set(lock_maker.assign(requirements, versions, requires, environment)) == set(versions)
    requirements = {"tensorflow": ["tensorflow==2.15.1"]}
    assert set(lock_maker.assign(requirements, versions, requires, environment)) == {"tensorflow", "numpy"}


def test_a_package_belongs_to_the_component_that_names_it_then_to_the_first_that_needs_it():
    requires = {name: [] for name in ("wheel", "six", "keras", "yaml")}
    requires["tensorflow"] = [Requirement(name) for name in ("six", "wheel", "keras")]
    requires["keras"] = [Requirement("yaml"), Requirement("six")]
    versions = dict.fromkeys(requires, "1")
    requirements = {"pip": ["wheel"], "tensorflow": ["tensorflow"], "keras": ["keras"]}
    assert lock_maker.assign(requirements, versions, requires, lock_maker.marker_environment("2.7")) == {
        "wheel": "pip",
        "tensorflow": "tensorflow",
        "six": "tensorflow",
        "keras": "keras",
        "yaml": "keras",
    }


def test_requirements_are_read_from_a_wheel(tmp_path):
    path = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x-1.0.dist-info/METADATA", "Name: x\nVersion: 1.0\nRequires-Dist: six (>=1.10)\n\nText\n")
    assert [str(item) for item in lock_maker.requirements_inside(path)] == ["six>=1.10"]


def test_requirements_are_read_from_an_sdist(tmp_path):
    text = b"six>=1.9\n\n[test]\npytest\n\n[:python_version < '3']\nenum34\n"
    path = tmp_path / "x-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("x-1.0/x.egg-info/requires.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    assert [str(item) for item in lock_maker.requirements_inside(path)] == ["six>=1.9", 'enum34; python_version < "3"']
