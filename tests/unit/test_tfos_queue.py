"""tfos-submit: what a job says while it waits in its queue."""

import json
from typing import Any

import pytest
from resource_manager import ANSWERS, NOT_ACTIVATED, Cluster, application
from tfos_host import app, parsed
from tfos_submit import waiting, yarn


def scheduler(used: float) -> Any:
    """The recorded one, whose queue root.b.vision uses so many percent of its capacity."""
    info = json.loads((ANSWERS / "scheduler.json").read_text(encoding="utf-8"))["scheduler"]["schedulerInfo"]
    yarn.leaf_queue(info, "vision")["usedCapacity"] = used
    return info


def reports(cluster: Cluster, *steps: tuple[float, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    manager = yarn.ResourceManager([])
    manager.get = cluster.answer
    watch = waiting.Waiting(manager, parsed("--wait", "40", "--timeout", "3600"), 0)
    for now, answer in steps:
        watch.look(now, answer)
    return capsys.readouterr().err.splitlines()


def test_a_job_in_its_queue_names_place_reason_and_share(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers above 9999 have a fifth digit: identifiers do not sort as text."""
    job = application(10000, "ACCEPTED", queue="vision", diagnostics=NOT_ACTIVATED)
    cluster = Cluster(
        job,
        application(9998, "ACCEPTED", user="bob", queue="vision", startedTime=0),
        application(9999, "ACCEPTED", user="eve", queue="vision", startedTime=0),
        application(9990, "ACCEPTED", queue="b2"),
        application(9991, "RUNNING", queue="vision"),
        application(10001, "ACCEPTED", queue="vision"),
        scheduler=scheduler(100.0),
    )
    assert reports(cluster, (10, job), (41, job), capsys=capsys) == [
        "tfos-submit: the application waits in queue vision (ACCEPTED). 2 applications that were submitted earlier wait there, too. "
        "The queue uses 100 % of its capacity, which is 30 % of the cluster. YARN says: Application is added to the scheduler and is not yet "
        "activated. Queue's AM resource limit exceeded. Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:2560, "
        "vCores:1>; Queue Resource Limit for AM = <memory:11264, vCores:1>; User AM Resource Limit of the queue = <memory:11264, vCores:1>; "
        "Queue AM Resource Usage = <memory:10240, vCores:4>. It may wait until --timeout (3600 s) is over; Ctrl-C ends it."
    ]


def test_a_job_in_its_queue_speaks_again_when_something_changes_and_not_too_often(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = application(10000, "ACCEPTED", diagnostics=NOT_ACTIVATED)
    later = {
        **job,
        "diagnostics": NOT_ACTIVATED.replace("09:16:18", "09:17:18").replace("memory:10240", "memory:8192"),
    }
    other_reason = {**job, "diagnostics": NOT_ACTIVATED.replace("Queue's AM", "User's AM")}
    cluster = Cluster(job)
    steps = [(41.0, job), (102.0, later), (163.0, other_reason), (165.0, job), (400.0, job), (461.0, job)]
    lines = reports(cluster, *steps, (600.0, application(10000, "RUNNING")), capsys=capsys)
    assert ["Queue's" in line for line in lines] == [True, False, True]
    assert all("No application that was submitted earlier waits there." in line for line in lines)
    assert len([path for path in cluster.asked if "/apps" in path]) == 5


@pytest.mark.parametrize("info", [None, {"type": "fifoScheduler"}, {"type": "fairScheduler", "rootQueue": {}}])
def test_another_scheduler_has_no_share_to_name(info: Any, capsys: pytest.CaptureFixture[str]) -> None:
    job = application(10000, "ACCEPTED", diagnostics="")
    lines = reports(Cluster(job, scheduler=info), (41, job), capsys=capsys)
    assert "The queue uses" not in lines[0]
    assert "YARN says" not in lines[0]


def test_a_resource_manager_that_does_not_answer_gives_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    watch = waiting.Waiting(yarn.ResourceManager([]), parsed("--wait", "40", "--timeout", "3600"), 0)
    watch.look(41, application(1, "ACCEPTED", diagnostics=""))
    errors = capsys.readouterr().err
    assert "waits in queue default (ACCEPTED). It may wait" in errors


def test_a_container_of_the_master_ends_the_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """YARN calls it ACCEPTED until the master has registered."""
    job = app("ACCEPTED", 1)
    assert reports(Cluster(application(1, "ACCEPTED")), (41, job), capsys=capsys) == []


def test_one_earlier_application_is_no_plural() -> None:
    assert waiting.place(1).startswith("1 application that")


def test_a_queue_may_have_its_path() -> None:
    """As applications name it that were submitted to a path."""
    assert yarn.leaf_queue(scheduler(7.0), "root.b.vision")["usedCapacity"] == 7.0
    assert yarn.leaf_queue(scheduler(7.0), "b") == {}
