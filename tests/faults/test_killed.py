"""The controller dies in the middle of an install; the same command ends as if nothing had happened."""

import itertools
import time

import pytest

MARKER = "/opt/deeplearning/envs/*/.deeplearning"


def begun(component: str, previous: str) -> str:
    """It may be complete already: a small component takes less time than asking."""
    return f"ls {MARKER}/{previous}.json && ls {MARKER}/failed || ls {MARKER}/{component}.json"


@pytest.mark.parametrize("moments", [("made", "pip", "tensorflow", "keras")])
def test_the_run_after_a_killed_one_completes_the_host(cluster, bare, moments):
    content = cluster.content("data2")
    bare("data2")
    for previous, component in itertools.pairwise(moments):
        process = cluster.start_site("--limit", "data2")
        try:
            cluster.wait("data2", begun(component, previous), 1500)  # on a busy machine a run is slow
            time.sleep(0.3)  # now it writes
        finally:
            cluster.kill(process)
        # The step that had begun ends by itself. The next run waits 30 s for it, then refuses; on a busy machine TensorFlow takes longer.
        cluster.wait("data2", "flock --nonblock /opt/deeplearning/.lock true", 300)
        host = cluster.host("data2")
        assert not host.file("/opt/deeplearning/current").exists, "nothing half-made is ever active"
        assert cluster.run("data2", "find /opt/deeplearning/envs -name sealed.json") == ""
    run = cluster.site("--limit", "data2")
    assert run.code == 0
    assert sorted(set(cluster.content("data2")) ^ set(content)) == []
    second_run = cluster.site("--limit", "data2")
    assert (second_run.code, second_run.changed["data2"]) == (0, 0)


def test_no_installer_of_a_killed_run_is_left(cluster):
    assert cluster.host("data2").run("pgrep -f '[l]ocked_packages|[c]ompileall'").rc == 1
