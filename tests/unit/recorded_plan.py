"""Recorded facts of 18 hosts with their recorded plan, for test_recorded_plan.py and others.

The hosts are those of trees.py, bare and installed, as host_reader answered: facts and variables that an entry lacks are those of
the first one. Digests leave out the roles' files, which change often. Where a stack's file or compat/ changes what these hosts get,
write the lines again and look at the difference:
.venv/bin/python tests/unit/recorded_plan.py
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hadoop_dl import plan
from hadoop_dl.plan import component
from hadoop_dl.plan import model as plan_model

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("recorded_plan.jsonl")
Json = dict[str, Any]


SHARED = ("facts", "variables")


def recorded() -> list[Json]:
    entries = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    return [{**entry, **{part: {**entries[0][part], **entry[part]} for part in SHARED}} for entry in entries]


def host(entry: Json) -> plan_model.Host:
    return plan_model.host_of(entry["host"], entry["groups"], entry["variables"], entry["facts"])


def planned(made: plan_model.Plan, name: str) -> Json:
    part = made.hosts[name]
    rows = [[row.component, row.now, row.wanted] for row in made.rows if row.host == name]
    fields = {key: part[key] for key in ("python", "interpreter", "environment", "needs", "digests", "gpu")}
    return {"stack": part["stack"].get("name"), **fields, "rows": rows}


def make_plan(entries: list[Json]) -> plan_model.Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(component, "role_digests", lambda _repository, roles: json.dumps(roles))
        return plan.make_plan([host(entry) for entry in entries], REPOSITORY, grouped=False)


def record() -> None:
    entries = recorded()
    plan_ = make_plan(entries)
    for entry in entries:
        entry["planned"] = planned(plan_, entry["host"])
    for entry in entries[1:]:
        for part in SHARED:
            entry[part] = {key: value for key, value in entry[part].items() if entries[0][part].get(key) != value}
    RECORD.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries), encoding="utf-8")


if __name__ == "__main__":
    record()
