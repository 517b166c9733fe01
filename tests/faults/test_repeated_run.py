"""A second run changes nothing, and running everything ends where the planned run ended."""


def test_a_second_run_changes_nothing(cluster):
    before = cluster.stamps()
    run = cluster.site()
    assert run.code == 0
    assert set(run.changed) >= set(cluster.platform_hosts)
    assert {host: changed for host, changed in run.changed.items() if changed} == {}
    assert cluster.stamps() == before


def test_every_role_on_every_host_ends_in_the_same_host(cluster):
    before = cluster.stamps()
    run = cluster.site("-e", "apply=all")
    assert run.code == 0
    assert {host: changed for host, changed in run.changed.items() if changed} == {}
    assert "Install the packages of the lock" in run.output, "apply=all must run the roles"
    assert cluster.stamps() == before


def test_a_host_that_was_not_asked_after_its_last_change_is_asked(cluster):
    """As after a run that was killed while it verified."""
    receipt = "/opt/deeplearning/state/verify.json"
    before = cluster.content("data1")
    cluster.run("data1", f"rm {receipt}")
    run = cluster.site()
    assert (run.code, run.changed["data1"]) == (0, 1)
    assert "1 hosts" in run.output, "the report is about the one host that was asked"
    assert cluster.content("data1") == before
