"""CURRENT.txt: what people on a host read about its environment. Real environments of small wheels."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import environment_activate
import pytest
from ansible.module_utils.hadoop_dl_host import environment_notice as notice
from ansible.module_utils.hadoop_dl_host import environment_tree
from environments import NAME, Site, second_environment

A = "a-aaaaaaaaaaaa"


def told(site: Site) -> dict[str, str]:
    """CURRENT.txt by its keys, as everybody on the host reads it."""
    text = (site.root / "CURRENT.txt").read_text()
    assert (site.root / "CURRENT.txt").stat().st_mode & 0o777 == 0o644
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines()[2:])}


def test_everybody_can_read_what_is_active_since_when_and_what_was_before(done):
    assert told(done)["active"] == NAME
    assert told(done)["has"] == f"Python {sys.version_info[0]}.{sys.version_info[1]}, tensorflow 1.0, keras 1.0"
    assert told(done)["before"] == "none that is still installed"
    assert time.strptime(told(done)["since"], notice.TIME)
    other_site = done.at(second_environment(done.root, A, 0))
    assert other_site.activate()["activated"] is True
    assert (told(done)["active"], told(done)["before"]) == (A, NAME)
    assert told(done)["To go on with it"] == f"tfos-submit --environment {NAME}, or {done.path}/bin/python"
    assert Path(told(done)["To go on with it"].rpartition(" ")[2]).exists()
    assert done.activate()["activated"] is True
    assert (told(done)["active"], told(done)["before"]) == (NAME, A)


def test_what_current_txt_says_is_the_environment_of_the_link_at_any_moment(done, monkeypatch):
    """Each environment's text is written before the switch: a run that is killed between the two leaves no wrong one."""
    other_site = done.at(second_environment(done.root, A, 0))
    monkeypatch.setattr(environment_activate, "replace_link", lambda *_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        other_site.activate()
    assert (done.current, told(done)["active"]) == (f"envs/{NAME}", NAME)
    monkeypatch.undo()
    other_site.activate()
    assert (done.current, told(done)["active"]) == (f"envs/{A}", A)


def test_current_txt_changes_nothing_where_nothing_changed(done):
    before = (done.root / "CURRENT.txt").read_text()
    assert done.activate()["changed"] is False
    os.utime(done.root / "current", (0, 0), follow_symlinks=False)
    assert done.activate()["changed"] is False
    assert (done.root / "CURRENT.txt").read_text() == before
    assert environment_tree.problem(str(done.tree)) is None, "the seal does not know of it"


@pytest.mark.parametrize("lose", ["CURRENT.txt", f"envs/{NAME}.client/CURRENT.txt"])
def test_a_host_of_an_earlier_version_gets_current_txt_with_the_time_of_its_switch(done, lose):
    (done.root / lose).unlink()
    switch_time = time.strftime(notice.TIME, time.gmtime(os.lstat(done.root / "current").st_mtime))
    assert done.activate(check=True)["changed"] is True
    assert done.activate()["changed"] is True
    assert told(done)["since"] == switch_time
    assert done.activate()["changed"] is False


def test_an_environment_that_was_removed_is_no_way_back(done):
    done.at(second_environment(done.root, A, 5)).activate()
    done.activate(keep=0)
    assert told(done)["before"] == "none that is still installed"
    assert "To go on with it" not in told(done)
