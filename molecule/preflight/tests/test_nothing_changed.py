"""What the plan leaves on a host: nothing."""


def test_planning_leaves_nothing_on_the_host(host):
    assert not host.file("/opt/deeplearning").exists
