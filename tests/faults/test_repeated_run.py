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
    assert "Install TensorFlow" in run.output or "tensorflow :" in run.output, "apply=all has to run the roles"
    assert cluster.stamps() == before
