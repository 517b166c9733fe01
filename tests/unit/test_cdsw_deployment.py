"""The role cdsw on a master and a worker: who waits for whom, a host that breaks, and runs that are killed."""

from pathlib import Path

import pytest
from ansible_programs import tasks_in
from cdsw_deployment import HOSTS, MASTER, REPOSITORY, SAMPLE, TEMPLATE, WORKER, Site, failures


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_broken_connection_of_the_master_is_no_template_and_one_message_on_each_worker(site):
    (site.directory / MASTER / "breaks").write_text("cdsw_service", encoding="utf-8")
    code, output = site.run()
    assert code != 0
    assert not site.evaluated()
    assert "has no attribute" not in output
    assert f"{WORKER} waits for CDSW's master {MASTER}, which failed, cannot be reached" in failures(output, WORKER)[-1]
    assert site.conf(WORKER).read_text(encoding="utf-8") == SAMPLE
    assert site.changes() == [], "the worker did not leave CDSW"


def test_the_master_comes_first_and_a_second_run_changes_nothing(site):
    code, output = site.run()
    assert code == 0, output
    assert output.count("COMPLETE True") == len(HOSTS)
    assert site.changes() == [f"{MASTER} restart", f"{WORKER} reset", f"{WORKER} join"]
    changes = site.changes()
    code, output = site.run()
    assert (code, site.changes()) == (0, changes), output
    assert output.count("changed=0 ") == len(HOSTS)


@pytest.mark.parametrize("point", [f"{MASTER} before restart", f"{WORKER} after reset"])
def test_a_killed_run_is_healed_by_the_same_command(site, point):
    site.kill(point)
    assert site.is_pending(MASTER)
    code, output = site.run()
    assert code == 0, output
    assert output.count("COMPLETE True") == len(HOSTS), output
    assert site.differences() == []


def test_a_worker_that_is_missing_in_the_masters_table_fails_with_a_sentence(site):
    """Also if cdsw.conf is right, so that nothing restarts. Only a master that prints no table cannot be contradicted."""
    for host in HOSTS:
        site.set_up(host)
    (site.directory / "nodes" / WORKER).unlink()
    code, output = site.run()
    assert code != 0
    (failure,) = failures(output, WORKER)
    assert f"CDSW must have {WORKER} ({WORKER}) but has cdsw1. Run cdsw join on {WORKER}" in failure
    assert output.count("COMPLETE True") == len(HOSTS) - 1
    assert site.changes() == []
    (site.directory / "no_table").touch()
    code, output = site.run()
    assert (code, output.count("COMPLETE True")) == (0, len(HOSTS)), output


def test_hosts_wait_together_for_a_driver(site):
    """cdsw.conf must be the same on all hosts: a worker without GPUs waits too."""
    code, output = site.run(
        cdsw_gpu_count="{{ 2 if inventory_hostname == 'cdsw2' else 0 }}", cdsw_driver_version="470.82.01"
    )
    assert (code, site.changes()) == (0, []), output
    assert "LEFT TO DO on cdsw2: driver 470.82.01 must run" in output
    assert f"NOT CHANGED on {MASTER}: cdsw.conf must be the same on all hosts of CDSW, and cdsw2 waits." in output
    assert "COMPLETE True" not in output


def test_workers_go_back_with_a_master_that_did_not_restart(site):
    """Its status is ready, as before."""
    template = TEMPLATE.replace("SITE", str(site.directory))
    (site.directory / MASTER / "fails_with").write_text(f"Failed: {template}", encoding="utf-8")
    (site.directory / MASTER / "refuses").write_text("470.82", encoding="utf-8")
    code, output = site.run()
    assert code != 0
    assert "CDSW on cdsw1 did not come back with its new settings." in failures(output, MASTER)[-1]
    assert "with it CDSW is ready again" in failures(output, MASTER)[-1]
    assert "cdsw.conf is as before, and with it this worker was not restarted" in failures(output, WORKER)[-1]
    assert {site.conf(host).read_text(encoding="utf-8") for host in HOSTS} == {SAMPLE}
    assert site.changes() == [f"{MASTER} restart"] * 2
    assert site.nodes() == dict.fromkeys(HOSTS, "0")
    assert "Failed: {{ lookup" in failures(output, MASTER)[-1]
    assert not site.evaluated(), "what the master prints is no template"


def test_a_run_without_the_master_changes_no_worker(site):
    code, output = site.run("--limit", WORKER)
    assert (code, site.changes()) == (2, []), output
    assert "run the same command for all hosts of CDSW, without --limit" in failures(output, WORKER)[0]
    assert site.conf(WORKER).read_text(encoding="utf-8") == SAMPLE


def test_every_task_that_asks_a_host_has_a_time_limit():
    """Not those of the controller alone."""
    local_actions = {f"ansible.builtin.{name}" for name in ("assert", "debug", "fail", "include_tasks", "set_fact")}
    problems = [
        f"{path.name}: {task['name']}"
        for path in sorted((REPOSITORY / "roles/cdsw/tasks").glob("*.yml"))
        for task in tasks_in(path)
        if not {"block", *local_actions} & set(task) and "timeout" not in task
    ]
    assert problems == []
