"""Stacks and locks as data: each is complete, and what is wrong with one is reported in sentences."""

import shutil
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from hadoop_dl.data import stacks
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import UnknownStack, load_stack, stack_names, stack_problems

MIRROR = Path(__file__).resolve().parents[2] / "roles/mirror/meta/argument_specs.yml"
OPTIONS = yaml.safe_load(MIRROR.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]
OF_MIRROR = ArgumentSpecValidator({"mirror_artifacts": OPTIONS["mirror_artifacts"]})
PAIRS = [(name, python) for name in stack_names() for python in load_stack(name).pythons]


@pytest.mark.parametrize(("name", "python"), PAIRS)
def test_every_artifact_has_a_place_a_hash_and_a_size_and_the_role_mirror_accepts_it(name, python):
    artifacts = load_stack(name).artifacts(python)
    assert all(len(a["sha256"]) == 64 and a["size"] > 0 and a["folder"] in ("wheels", "files") for a in artifacts)
    assert len({(a["folder"], a["name"]) for a in artifacts}) == len(artifacts)
    assert OF_MIRROR.validate({"mirror_artifacts": artifacts}).error_messages == []


@pytest.mark.parametrize("name", [name for name in stack_names() if "tensorflowonspark" in load_stack(name).data])
def test_a_stack_with_tensorflowonspark_has_the_jar_that_reads_tfrecords(name):
    jars = [artifact for artifact in load_stack(name).artifacts() if artifact["name"].endswith(".jar")]
    assert [artifact["url"].rpartition("/")[2] for artifact in jars] == ["tensorflow-hadoop-1.15.0.jar"]
    assert all(a["url"].startswith("https://") and a["folder"] == "files" and "project" not in a for a in jars)


def test_an_unknown_name_lists_the_known_ones_and_the_nearest():
    with pytest.raises(UnknownStack, match=r"'tf1.15-py27'.*Did you mean tf1.15-py27-el7\?.*tf2.15-py3-el9"):
        load_stack("tf1.15-py27")


def test_a_python_that_the_stack_is_not_made_for_is_refused():
    with pytest.raises(StackError, match=r"made for Python 3.11 or 3.9, but a lock for 3.12"):
        load_stack("tf2.15-py3-el9").lock("3.12")


def test_a_missing_lock_says_how_to_write_it(tmp_path):
    shutil.copy(stacks.DIRECTORY / "tf1.15-py27-el7.yml", tmp_path)
    with pytest.raises(StackError, match="scripts/stack lock tf1.15-py27-el7"):
        load_stack("tf1.15-py27-el7", tmp_path).lock()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cuda": 10.0}, "cuda must be a quoted version but is 10.0."),
        ({"cudaa": "10.0"}, "The key cudaa is not known; cuda is."),
        ({"tensorflow_source": "compiled"}, "tensorflow_source must be prebuilt or built but is 'compiled'."),
        ({"java": "8"}, "java must be a list of quoted values but is '8'."),
        ({"python": [3.9]}, "python must be a quoted version or a list of them but is [3.9]."),
        ({"name": "other"}, "Its name is 'other', but the file is called tf1.15-py27-el7.yml; make them equal."),
        ({"files": [{"name": "a"}]}, "Every entry of files must have name, source, sha256 and size"),
        (
            {"files": [{"name": "a.jar", "source": "http://x/a.jar", "sha256": "0" * 64, "size": 1}]},
            "a source, pypi:PROJECT or an https address.",
        ),
        ({"requirements": {"spark": []}}, "requirements may have the components pip, tensorflow"),
    ],
)
def test_a_wrong_stack_file_is_told_in_a_sentence(change, sentence):
    data = load_stack("tf1.15-py27-el7").data | change
    assert sentence in " ".join(stack_problems(data, "tf1.15-py27-el7"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: broken", r"The key os is missing.*The key tensorflow is missing"),
        ("name: [", r"broken.yml must be YAML, but is not"),
    ],
)
def test_a_stack_file_with_problems_is_not_loaded(tmp_path, text, sentence):
    (tmp_path / "broken.yml").write_text(text)
    with pytest.raises(StackError, match=sentence):
        load_stack("broken", tmp_path)
