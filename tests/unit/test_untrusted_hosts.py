"""The strategy with which answers of hosts are data, and the refusal of another one."""

from types import SimpleNamespace
from typing import Any

import pytest
import python_files
from ansible_programs import REPOSITORY, play_tasks

STRATEGY = REPOSITORY / "plugins" / "strategy" / "untrusted_hosts.py"


@pytest.fixture(scope="module")
def plugin() -> Any:
    return python_files.load(STRATEGY)


@pytest.mark.parametrize("results", [5, True, None, "text", {"a": 1}, [5]])
@pytest.mark.parametrize("loop", [None, ["one"]])
def test_results_that_are_no_list_of_results_are_absent(plugin, results, loop):
    task = SimpleNamespace(action="command", loop=loop)
    task_result = SimpleNamespace(_result={"results": results, "rc": 0}, _task=task)
    plugin.Results().append(task_result)
    assert task_result._result == {"rc": 0}


@pytest.mark.parametrize(
    ("task", "strategy"),
    [
        ({"host_facts": {}}, "linear"),
        ({"host_facts": {}}, "ansible.builtin.free"),
        ({"checked_inputs": {"names": []}}, "linear"),  # free itself refuses what runs once
    ],
)
def test_another_strategy_is_refused_before_a_host_is_asked(tmp_path, task, strategy):
    code, output = play_tasks(tmp_path, [task], {"hosts": {"data1": {}}}, ANSIBLE_STRATEGY=strategy)
    assert code == 2, output
    words = "The strategy must be untrusted_hosts, with which the answers of hosts are data, but it is"
    assert f"{words} {strategy}." in output
    assert f"strategy_plugins = {STRATEGY.parent}" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("strategy", ["untrusted_hosts", "ansible.legacy.untrusted_hosts"])
def test_both_names_of_the_strategy_are_accepted(tmp_path, strategy):
    tasks = [{"host_facts": {}}, {"checked_inputs": {"names": []}}]
    assert (
        "The strategy must be"
        not in play_tasks(tmp_path, tasks, {"hosts": {"data1": {}}}, ANSIBLE_STRATEGY=strategy)[1]
    )


def test_filters_are_loaded_once_and_not_by_every_task_of_every_host(tmp_path):
    log_file = tmp_path / "loaded"
    (tmp_path / "filters").mkdir()
    (tmp_path / "filters" / "counted.py").write_text(
        f"open({str(log_file)!r}, 'a').write('once\\n')\nclass FilterModule:\n    def filters(self):\n        return {{'counted': str.upper}}\n"
    )
    tasks = [{"ansible.builtin.assert": {"that": "('a' | counted) == 'A'"}}] * 2
    inventory = {"hosts": dict.fromkeys(("data1", "data2", "data3"), {})}
    code, output = play_tasks(tmp_path, tasks, inventory, ANSIBLE_FILTER_PLUGINS=str(tmp_path / "filters"))
    assert code == 0, output
    assert log_file.read_text().split() == ["once"]
