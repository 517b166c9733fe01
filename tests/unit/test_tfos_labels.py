"""tfos-submit --node-label: where executors can come, and what is refused before anything is submitted.

yarn_answers/labels.json is recorded from Hadoop 3.3.6 on the demo cluster: data2 has the label gpu, which is exclusive; no node has spare, which is not.
The queue vision may use gpu. The other three may not: batch has no access; late has access, but no share of it; gpus has no share of other nodes, no
maximum-applications, and gpu as the label of its jobs.
"""

import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from resource_manager import ANSWERS, gpu_node
from tfos_host import app, parsed, refusal, settings, submit, told
from tfos_submit import labels, outcome, spark

RECORDED = json.loads((ANSWERS / "labels.json").read_text(encoding="utf-8"))


@pytest.fixture
def labelled(host: SimpleNamespace) -> SimpleNamespace:
    """The host of a cluster with labels."""
    answers = copy.deepcopy(RECORDED)
    host.yarn.nodes = answers["nodes"]["nodes"]["node"]
    host.yarn.labels, host.yarn.scheduler = answers["get-node-labels"], answers["scheduler"]
    return host


def test_executors_ask_for_the_label_and_the_master_does_not() -> None:
    assert told("--node-label", "gpu")["spark.yarn.executor.nodeLabelExpression"] == "gpu"
    assert not [name for name in told("--node-label", "gpu") if name.startswith("spark.yarn.am.")]
    assert "spark.yarn.executor.nodeLabelExpression" not in told()


def test_a_job_with_a_label_that_its_queue_may_use_is_submitted(labelled: SimpleNamespace) -> None:
    completed = submit(labelled, "--node-label", "gpu", "--queue", "vision", "--gpus", "1")
    assert (completed.code, settings(labelled)[labels.SETTING]) == (0, "gpu"), completed.error
    assert (
        "2 executors with 3072 MB, 1 vcore and 1 GPU (yarn.io/gpu) each, node label gpu, environment" in completed.error
    )


@pytest.mark.parametrize(
    ("label", "queue", "words"),
    [
        ("tpu", "vision", "the node label tpu must be one of YARN's, but YARN has gpu, spare. Name one of them"),
        ("spare", "vision", "a running node must have the label spare, but no node has it."),
        ("gpu", "batch", "the queue batch must give nodes with the label gpu, but it has no access to them"),
        ("gpu", "late", "but it has 0 % of them (accessible-node-labels.gpu.capacity)"),
        ("gpu", "gpus", "the queue gpus must take applications, but its maximum-applications is 0"),
        ("", "gpus", "the queue gpus must take applications, but its maximum-applications is 0"),
    ],
)
def test_a_label_that_can_give_nothing_is_refused(
    labelled: SimpleNamespace, label: str, queue: str, words: str
) -> None:
    assert words in refusal(labelled, *(["--node-label", label] if label else []), "--queue", queue)


def test_a_job_that_names_no_queue_is_not_refused_because_of_the_default_one(labelled: SimpleNamespace) -> None:
    """YARN may have a queue for each user or group (yarn.scheduler.capacity.queue-mappings), which it does not tell."""
    for queue in labelled.yarn.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        queue["queueName"] = {"batch": "default"}.get(queue["queueName"], queue["queueName"])
    assert submit(labelled, "--node-label", "gpu").code == 0
    assert submit(labelled, "--node-label", "gpu", "--queue", "default").code == outcome.NOT_READY


@pytest.mark.parametrize("answer", [{}, None])  # of Hadoop 3.3.6, and of 2.10.2
def test_without_labels_in_yarn_one_is_refused(host: SimpleNamespace, answer: dict[str, Any] | None) -> None:
    host.yarn.nodes, host.yarn.labels = [gpu_node("data1", 2)], answer
    words = "must be one of YARN's, but YARN has none: node labels are not enabled, or none was added."
    assert words in refusal(host, "--node-label", "gpu")


def test_a_label_of_hadoop_2_7_which_tells_its_name_alone_is_known(host: SimpleNamespace) -> None:
    """hadoop27.json is recorded from 2.7.7: data2 has gpu."""
    answers = json.loads((ANSWERS / "hadoop27.json").read_text(encoding="utf-8"))
    host.yarn.nodes = answers["nodes"]["nodes"]["node"]
    host.yarn.labels, host.yarn.scheduler = answers["get-node-labels"], answers["scheduler"]
    arguments = ("--node-label", "gpu", "--queue", "vision")
    assert submit(host, *arguments).code == 0
    del node(host, "data2")["nodeLabels"]
    assert "a running node must have the label gpu, but no node has it." in submit(host, *arguments).error


@pytest.mark.parametrize("known", [True, False])
def test_a_scheduler_that_ignores_labels_is_refused_by_its_name(labelled: SimpleNamespace, known: bool) -> None:
    """That of Cloudera 5 and 6: executors would come anywhere."""
    labelled.yarn.scheduler = {"scheduler": {"schedulerInfo": {"type": "fairScheduler", "rootQueue": {}}}}
    labelled.yarn.labels = RECORDED["get-node-labels"] if known else {}
    words = "the node label gpu requires YARN's capacityScheduler, but YARN has the fairScheduler"
    assert words in refusal(labelled, "--node-label", "gpu")
    assert submit(labelled, "--gpus", "1", "--executors", "4").code == 0, "it gives nodes with a label to anybody"


def test_a_label_whose_nodes_do_not_run_is_refused_with_their_state(labelled: SimpleNamespace) -> None:
    node(labelled, "data2").update(state="LOST")
    assert "have the label gpu, but data2 is LOST." in refusal(labelled, "--node-label", "gpu", "--queue", "vision")


def node(host: SimpleNamespace, name: str) -> dict[str, Any]:
    return next(entry for entry in host.yarn.nodes if entry["nodeHostName"] == name)


def test_a_resource_manager_that_does_not_answer_refuses_nothing(labelled: SimpleNamespace) -> None:
    (labelled.tmp / "conf/yarn-site.xml").write_text("<configuration/>")
    assert submit(labelled, "--node-label", "tpu").code == 0


@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [
        ([], "data1 (RUNNING) has 2. Nodes with a label (gpu) are for jobs with --node-label."),
        (["--node-label", "gpu"], "data2 (RUNNING) has 2. Ask"),
        (["--conf", "spark.yarn.executor.nodeLabelExpression=gpu"], "data2 (RUNNING) has 2. Ask"),
    ],
)
def test_gpus_count_on_nodes_that_executors_can_come_to(
    labelled: SimpleNamespace, arguments: list[str], nodes: str
) -> None:
    text = refusal(labelled, "--gpus", "1", "--executors", "3", "--queue", "vision", *arguments)
    assert f"require more than YARN has: 2 of them fit. Nodes: {nodes}" in text


def test_a_cluster_whose_gpus_all_have_a_label_refuses_a_job_without_it(labelled: SimpleNamespace) -> None:
    labelled.yarn.nodes = [node(labelled, "data2")]
    words = "0 of them fit. Nodes: none. Nodes with a label (gpu) are for jobs with --node-label."
    assert words in refusal(labelled, "--gpus", "1", "--queue", "vision")


def shared(host: SimpleNamespace) -> None:
    """As YARN answers for a label that is not exclusive."""
    host.yarn.labels = {"nodeLabelInfo": {"name": "gpu", "exclusivity": "false"}}  # one is no list: recorded as well


def by_the_queue(host: SimpleNamespace) -> None:
    for queue in host.yarn.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        queue.update({"defaultNodeLabelExpression": "gpu"} if queue["queueName"] == "vision" else {})


@pytest.mark.parametrize(
    ("change", "arguments", "memory"),
    [
        (lambda host: None, [], 4097),
        (lambda host: None, ["--node-label", "gpu"], 8193),
        (by_the_queue, [], 8193),
        (shared, [], 8193),
    ],
)
def test_per_node_looks_at_nodes_that_executors_can_come_to(
    labelled: SimpleNamespace, change: Callable[[SimpleNamespace], None], arguments: list[str], memory: int
) -> None:
    node(labelled, "data1").update(availMemoryMB=8192, usedMemoryMB=0)
    node(labelled, "data2").update(availMemoryMB=16384, usedMemoryMB=0)
    change(labelled)
    completed = submit(labelled, "--per-node", "1", "--queue", "vision", *arguments)
    assert (completed.code, f"with {memory} MB" in completed.error) == (0, True), completed.error


def test_missing_executors_are_explained_with_the_nodes_of_the_label(labelled: SimpleNamespace) -> None:
    labelled.yarn.application = app(containers=1, queue="vision")
    labelled.spark_submit("exec sleep 60")
    completed = submit(labelled, "--node-label", "gpu", "--queue", "vision", "--wait", "1")
    assert completed.code == outcome.NO_EXECUTORS
    assert "1 vcore, node label gpu, in queue vision; after 1 s YARN has given 0 of them" in completed.error
    table = completed.error.partition("YARN has:")[2].partition("What to do:")[0]
    assert ("data2" in table, "data1" in table) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "defaults", "queue", "label"),
    [
        ([], "", None, None),
        ([], "spark.yarn.queue nights\nspark.yarn.executor.nodeLabelExpression = big\n", "nights", "big"),
        (["--queue", "vision", "--node-label", "gpu"], "spark.yarn.queue nights\n", "vision", "gpu"),
        (["--node-label", "gpu", "--conf", "spark.yarn.executor.nodeLabelExpression=big"], "", None, "big"),
    ],
)
def test_queue_and_label_are_those_that_count_for_spark(
    arguments: list[str], defaults: str, queue: str | None, label: str | None
) -> None:
    options = parsed(*arguments)
    spark.complete(options, [defaults])
    assert (options.queue, options.node_label) == (queue, label)
