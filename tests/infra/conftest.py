"""The suite verifies hosts. Each host is read once (roles/verify/files/probe.py); every test asks one question about the answer.

What should be true comes from the role verify (a JSON file named in VERIFY_EXPECTATIONS: host, then environment, stack,
gpu_count, parts), or, in molecule, from the inventory's variables of the same names with the prefix verify_.
"""

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hadoop_dl.data import stacks
from hadoop_dl.data.questions import distribution, stack_parts
from hadoop_dl.hosts import host_script, verify
from hadoop_dl.plan import components

ROOT = verify.ROOT
DEFAULTS: dict[str, Any] = {"environment": f"{ROOT}/current", "stack": {}, "python": None, "gpu_count": 0}
GPU_PARTS = {"gpu", "no gpu"}
ACTIVE = "active"  # what is only true after the switch to the environment that is asked about
YARN = "yarn"  # what the ResourceManager says of the host, if the site lets YARN schedule GPUs
OF_THE_RUN = {*GPU_PARTS, ACTIVE, YARN}  # no parts of a stack
# A host in one of them is asked about what its groups have, a host in none of them (as in molecule) about everything.
KNOWN_GROUPS = {*components.GROUPS, "masters"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "part(name): what the host must have for the question to make sense")
    config.addinivalue_line("markers", "stack_has(name): what its stack must have for the question to make sense")


@cache
def written_expectations() -> dict[str, dict[str, Any]]:
    path = os.environ.get("VERIFY_EXPECTATIONS")
    if not path:
        return {}
    return json.loads(Path(path).read_text(encoding="utf-8"))


@cache
def expectation(host: Any) -> dict[str, Any]:
    """What should be true on this host."""
    variables = host.ansible.get_variables() if hasattr(host.backend, "ansible_runner") else {}
    name = host_name(host)
    if name in written_expectations():
        host_values = written_expectations()[name]
    else:
        host_values = {key: variables[f"verify_{key}"] for key in DEFAULTS if f"verify_{key}" in variables}
        host_values.setdefault("gpu_count", variables.get("gpu_count", 0))
    expectations = {**DEFAULTS, **{key: value for key, value in host_values.items() if value not in ("", None, [])}}
    groups = KNOWN_GROUPS & set(variables.get("group_names", []))
    if groups and "parts" not in expectations:
        expectations["parts"] = components.parts(groups)
    return expectations


def host_name(host: Any) -> str:
    return getattr(host.backend, "host", "") or host.backend.get_pytest_id().rpartition("://")[2]


def asked(item: pytest.Item) -> bool:
    """Return whether host and stack have the parts that the question is about."""
    host = getattr(item, "callspec", None) and item.callspec.params.get("_testinfra_host")
    if host is None:
        return True
    expectations = expectation(host)
    parts = {marker.args[0] for marker in item.iter_markers("part")}
    has_gpus = int(expectations["gpu_count"]) > 0
    if ("gpu" in parts and not has_gpus) or ("no gpu" in parts and has_gpus):
        return False
    if (ACTIVE in parts and not expectations.get("active", True)) or (YARN in parts and not expectations.get("yarn")):
        return False
    if "parts" in expectations and not parts - OF_THE_RUN <= set(expectations["parts"]):
        return False
    return not expectations["stack"] or required_of_stack(item) <= stack_parts(expectations["stack"])


def required_of_stack(item: pytest.Item) -> set[str]:
    """The parts of a stack that the question is about."""
    return {marker.args[0] for name in ("part", "stack_has") for marker in item.iter_markers(name)} - OF_THE_RUN


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not asked(item)]
    expected_failures = os.environ.get("VERIFY_EXPECTED_FAILURES", "").split()
    for item in items:
        if item.name.partition("[")[0] in expected_failures:
            item.add_marker(pytest.mark.xfail(strict=True, reason="it passed: remove it from verify_expected_failures"))
        if getattr(item, "callspec", None) and "_testinfra_host" in item.callspec.params:
            host = item.callspec.params["_testinfra_host"]
            values = [str(value) for name, value in item.callspec.params.items() if name != "_testinfra_host"]
            words = item.name.partition("[")[0].removeprefix("test_").replace("_", " ").split()
            item.user_properties += [("host", host_name(host)), ("question", " ".join(words + values))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """An expected failure says what failed; a host that gives no answer is no expected failure."""
    report = yield
    if hasattr(report, "wasxfail") and call.excinfo:
        report.wasxfail = str(call.excinfo.value)
        if call.when != "call":
            report.outcome = "failed"
            del report.wasxfail
    return report


def read(host: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Everything about one host: what the role verify read, or (in molecule) what one command reads now."""
    directory = os.environ.get("VERIFY_ANSWERS")
    if directory:
        answers: dict[str, Any] = json.loads(
            verify.answer_file(Path(directory), host_name(host)).read_text(encoding="utf-8")
        )
    else:
        answer = host.run(host_script.one_command(verify.probe_script(wanted)))
        try:
            answers = host_script.parse(answer.rc, answer.stdout, answer.stderr)
        except host_script.NoAnswer as problem:
            answers = {"no_answer": str(problem)}
    assert "no_answer" not in answers, (
        f"The host should answer the suite's questions, but {host_name(host)} did not: {answers['no_answer']}. "
        "Check that Ansible reaches it: ansible HOST -m ansible.builtin.raw -a id -b"
    )
    return answers


_answers: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module")
def answers(host: Any) -> dict[str, Any]:
    name = host.backend.get_pytest_id()
    if name not in _answers:
        _answers[name] = read(host, expectation(host))
    return _answers[name]


@pytest.fixture(scope="module")
def expected(host: Any, answers: dict[str, Any]) -> dict[str, Any]:
    """What should be true; if nobody says which stack, the one that the environment was sealed as."""
    expectations = dict(expectation(host))
    sealed_stack = (answers["seal"] or {}).get("stack")
    if not expectations["stack"] and sealed_stack in stacks.stack_names():
        projects = (answers["inside"].get("versions") or {}).get("value") or {}
        forms = [form.data for form in stacks.load_stack(sealed_stack).forms]
        expectations["stack"] = next((name for name in forms if distribution(name, "tensorflow") in projects), forms[0])
    return expectations


@pytest.fixture(autouse=True)
def _only_what_the_stack_has(request: pytest.FixtureRequest) -> None:
    """Where only the seal names the stack, the host must be read before it is known which questions apply."""
    required_parts = required_of_stack(request.node)
    if (
        not required_parts
        or "_testinfra_host" not in request.fixturenames
        or expectation(request.getfixturevalue("host"))["stack"]
    ):
        return
    stack = request.getfixturevalue("expected")["stack"]
    missing_parts = sorted(required_parts - stack_parts(stack)) if stack else []
    if missing_parts:
        pytest.skip(f"the stack {stack['name']} has no {', '.join(missing_parts)}")


@pytest.fixture
def hdfs_asked(answers: dict[str, Any]) -> None:
    """Questions to HDFS and YARN are skipped if the site logs in itself."""
    if answers["hdfs_unasked"]:
        pytest.skip(answers["hdfs_unasked"])


@pytest.fixture
def inside(answers: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """An answer of the environment's own Python: {"value", "error"}."""

    def inside(name: str) -> dict[str, Any]:
        return answers["inside"].get(name, answers["unanswered"])

    return inside
