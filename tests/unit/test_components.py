"""The table of components is what the playbooks, the roles and the suite go by."""

from pathlib import Path

import pytest
import yaml
from ansible_programs import tasks_in
from plan_hosts import made, make_host

from hadoop_dl.plan import target
from hadoop_dl.plan.component import Case, Component
from hadoop_dl.plan.components import COMPONENTS, GROUPS, parts
from hadoop_dl.plan.model import Plan

REPOSITORY = Path(__file__).resolve().parents[2]
INCLUDE = "ansible.builtin.include_role"
PATHS = {path.stem: path for path in (REPOSITORY / "playbooks/layers").glob("**/*.yml")}
LAYERS = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}


def included(layer: str) -> list[str]:
    """The roles that a layer's plays include, in their order."""
    return [task[INCLUDE]["name"] for task in tasks_in(PATHS[layer]) if INCLUDE in task]


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=COMPONENTS)
def test_every_role_of_a_component_is_there_and_a_play_includes_it(component):
    for role in component.roles:
        assert (REPOSITORY / "roles" / role / "tasks").is_dir()
        assert any(role in included(layer) for layer in LAYERS), role


def test_the_plays_keep_the_order_of_the_table():
    names = [name for name, component in COMPONENTS.items() if component.roles == (name,) and name in included("gpu")]
    assert [role for role in included("gpu") if role in COMPONENTS] == names


@pytest.mark.parametrize("name", [name for name in COMPONENTS if name not in ("environment", "verify")])
def test_a_component_that_a_receipt_records_has_a_play_that_writes_it(name):
    layers = [text for text in LAYERS.values() if "receipt:" in text]
    assert any(f"component: {name}\n" in text or f"'{name}'" in text for text in layers)


def test_what_serves_several_components_is_not_left_out_with_one_of_them():
    """--skip-tags leaves out what has one of its tags: a lock, a record, a check of the login. No switch without all of an environment is right."""
    names = COMPONENTS.keys()
    layers = [(layer, names & set(item.get("tags") or ())) for layer, path in PATHS.items() for item in tasks_in(path)]
    assert {layer for layer, tags in layers if len(tags) > 1} == {"activate", "verify_environment"}


def test_verify_asks_the_hosts_that_have_something_to_verify():
    playbook = (REPOSITORY / "playbooks/verify.yml").read_text(encoding="utf-8")
    assert f"{list(COMPONENTS['verify'].groups)} | select('in', groups)" in playbook


def test_the_suite_asks_a_host_about_what_its_groups_have():
    choices = yaml.safe_load((REPOSITORY / "roles/verify/meta/argument_specs.yml").read_text(encoding="utf-8"))
    all_parts = choices["argument_specs"]["main"]["options"]["verify_parts"]["choices"]
    assert parts(GROUPS) == sorted(all_parts)
    assert parts(["edge_nodes"]) == ["environment", "hadoop_client", "hdfs", "tensorflowonspark"]
    assert parts(["data_nodes"]) == parts(["cdsw_hosts", "mirror_host"]) == ["environment", "hadoop_client", "hdfs"]
    assert parts(["build_hosts", "masters"]) == []
    assert set(target.ENVIRONMENT_GROUPS) < set(GROUPS)


class Probe(Component):
    """A component that only this test has."""

    def examine(self, plan: Plan, case: Case) -> None:
        plan.tell(case.host.name, notes=["probed"])

    def publish(self, plan: Plan, case: Case) -> None:
        case.part[self.name] = {"stack": case.wanted.data["name"]}


def test_the_plan_of_a_new_component_is_its_row(monkeypatch):
    monkeypatch.setitem(COMPONENTS, "probe", Probe("probe", ("data_nodes",), ("hadoop_client",)))
    site_plan = made(make_host("data1"), make_host("edge1", ("edge_nodes",)))
    (change,) = [entry for entry in site_plan.changes() if "needs_probe" in entry["groups"]]
    assert (change["host"], change["plan"]["probe"]) == ("data1", {"stack": change["plan"]["stack"]["name"]})
    assert change["plan"]["digests"]["probe"]
    assert [row.reason for row in site_plan.rows if row.component == "probe"] == ["missing"]
    assert "data1: probed" in site_plan.notes
