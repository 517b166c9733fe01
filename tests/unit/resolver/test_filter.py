"""The resolver as templates reach it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

SOURCE = Path(__file__).resolve().parents[3] / "plugins" / "filter" / "stacks.py"


@pytest.fixture
def resolve_stack() -> Any:
    spec = importlib.util.spec_from_file_location("stacks_filter", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()["resolve_stack"]


def test_a_request_is_resolved_as_on_the_command_line(resolve_stack: Any) -> None:
    answer = resolve_stack({"os": "rhel-7.9", "gpu": "P100", "tensorflow": "1.15"})
    assert (answer["status"], answer["stack"], answer["versions"]["cuda"]) == ("ok", "tf1.15-py36-el7", "10.0")
    assert resolve_stack({"gpu": "A100", "tensorflow": "1.15"})["status"] == "conflict"


def test_a_host_that_was_read_counts(resolve_stack: Any) -> None:
    node = {"os": {"short": "el9", "id": "rhel", "version": "9.4"}, "nvidia": {"gpus": []}, "pythons": {"3.9": "/p"}}
    answer = resolve_stack({}, node)
    assert (answer["versions"]["python"], answer["versions"]["tensorflow_package"]) == ("3.9", "tensorflow-cpu")
    assert resolve_stack("tf1.15-py27-el7", node)["status"] == "conflict"


@pytest.mark.parametrize(
    ("request_", "words"), [({"tensorfow": "1"}, "Did you mean tensorflow"), ("tf1.15-py27-el", "tf1.15-py27-el7")]
)
def test_misuse_is_an_error_of_the_template(request_: Any, words: str, resolve_stack: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        resolve_stack(request_)
