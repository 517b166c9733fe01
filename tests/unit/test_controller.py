"""The controller's ansible-core is compared with the hosts' own Pythons in the plan, before one of its modules runs."""

import pytest
from plan_hosts import NODE, changed_node, make_host

from hadoop_dl.hosts import inventory_values
from hadoop_dl.plan import controller
from hadoop_dl.plan import model as plan_model


def host(system: str) -> plan_model.Host:
    identifier, _, release = system.partition("-")
    return make_host(node=changed_node(os={**NODE["os"], "id": identifier, "version": release}))


@pytest.mark.parametrize(
    ("system", "core", "refused"),
    [
        ("rhel-7.9", "2.16.19", ""),
        ("rhel-7.9", "2.17.14", "in Python 3.7+, but the system's own is 2.7"),
        ("rhel-8.8", "2.16.19", ""),
        ("rhel-8.8", "2.17.14", "in Python 3.7+, but the system's own is 3.6"),
        ("rocky-9.4", "2.21.5", ""),
        ("rhel-8.8", "2.99.0", "in Python 3.9+, but the system's own is 3.6"),
        ("debian-12", "2.99.0", ""),
        ("plan9-4", "2.99.0", ""),  # no system of the data, so nothing is known
    ],
)
def test_an_ansible_core_that_does_not_support_the_systems_python_is_refused(system, core, refused):
    problems = list(controller.problems([host(system)], core))
    assert bool(problems) is bool(refused)
    assert all(problem.startswith("data1: ansible-core ") and refused in problem for problem in problems)


def test_the_plan_has_that_problem(monkeypatch):
    inventory = object.__new__(inventory_values.Inventory)
    inventory.hosts, inventory.variables = [host("rhel-7.9")], {"groups": {}}
    monkeypatch.setattr(inventory_values.Inventory, "check_later", lambda *_: None)
    assert not any("ansible-core" in problem for problem in inventory.make_plan().problems)
    monkeypatch.setattr(inventory_values, "core", "2.18.1")
    assert any("ansible-core 2.18.1 runs" in problem for problem in inventory.make_plan().problems)
