"""Recorded facts of hosts in, the recorded plan out: no change of the code may make hosts run again what they have."""

import json

import pytest
from recorded_plan import make_plan, planned, recorded

from hadoop_dl.plan import model as plan_model


@pytest.fixture(scope="module")
def made() -> plan_model.Plan:
    return make_plan(recorded())


@pytest.mark.parametrize("entry", recorded(), ids=lambda entry: str(entry["host"]))
def test_a_host_of_recorded_facts_gets_the_recorded_plan(entry, made):
    assert json.loads(json.dumps(planned(made, entry["host"]))) == entry["planned"]
