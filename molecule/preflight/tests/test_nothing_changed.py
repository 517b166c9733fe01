def test_planning_leaves_nothing_on_the_host(host):
    assert not host.file("/opt/deeplearning").exists
