"""What day 2 needs of the plan: a host that joins has rows, nobody else; another address of the mirror installs no environment again."""

import copy

import pytest
from recorded_plan import make_plan, recorded

ENTRIES = {entry["host"]: entry for entry in recorded()}
COMPLETE = sorted(name for name, entry in ENTRIES.items() if not entry["planned"]["rows"] and entry["planned"]["stack"])


SITES = {
    "tf1.15-py27-el7": ["p100-installed", "no_headers-installed", "pending_kernel-installed"],
    "tf2.15-py3-el9": ["h100-installed"],
}


@pytest.mark.parametrize("bare", ["p100-bare", "container", "t4-bare", "new-card"])
def test_a_host_that_joins_has_rows_and_nobody_else(bare):
    site = SITES[ENTRIES[bare]["planned"]["stack"]]
    assert set(site) <= set(COMPLETE)
    site_plan = make_plan([*(ENTRIES[name] for name in site), ENTRIES[bare]])
    assert {row.host for row in site_plan.rows} == {bare}
    assert site_plan.hosts[bare]["needs"] == ENTRIES[bare]["planned"]["needs"]
    assert all(site_plan.hosts[name]["needs"] == [] for name in site)


def test_a_host_that_was_replaced_is_one_that_joins():
    """The name of the old one, and nothing of what it had."""
    new = copy.deepcopy(ENTRIES["p100-bare"]) | {"host": "p100-installed"}
    site = [ENTRIES[name] for name in SITES["tf1.15-py27-el7"] if name != "p100-installed"]
    assert {row.host for row in make_plan([*site, new]).rows} == {"p100-installed"}


@pytest.mark.parametrize("name", COMPLETE)
def test_another_address_of_the_mirror_installs_no_environment_again(name):
    entry = copy.deepcopy(ENTRIES[name])
    entry["variables"]["mirror_url"] = "http://other-mirror.example.com:8900"
    needs = make_plan([entry]).hosts[name]["needs"]
    assert set(needs) <= {"mirror", "tensorflowonspark", "verify"}
