"""A host that does not answer: named, and the others continue or stop, as the operator chose."""

import pytest


def test_the_others_are_served(cluster, needs_hadoop_client, data2_unreachable):
    done_on_data1 = needs_hadoop_client("data1")
    run = cluster.site()
    assert run.code != 0, "the exit status must show that a host was left out"
    assert run.unreachable == {"data2"}
    assert run.failed == set()
    assert "data2" in run.output
    assert done_on_data1()


# SSH waits half a minute for a frozen host: once is enough.
@pytest.mark.parametrize("data2_unreachable", ["sshd is stopped"], indirect=True)
def test_all_stop_when_the_operator_says_so(cluster, needs_hadoop_client, data2_unreachable):
    done_on_data1 = needs_hadoop_client("data1")
    run = cluster.site("-e", "deeplearning_unreachable=stop")
    assert run.code != 0
    assert "data2 cannot be reached" in run.output
    assert not done_on_data1()


def test_it_is_served_when_it_is_back(cluster):
    run = cluster.site()
    assert run.code == 0
    assert run.unreachable == set()
