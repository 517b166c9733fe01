"""The parts that the suite (tests/infra) can check on a host, by its stack: not every stack has Keras, HDFS, Kafka or TensorFlowOnSpark."""

from collections.abc import Mapping
from typing import Any

Stack = Mapping[str, Any]  # a stack's data, as its file has it
DISTRIBUTIONS = {"tensorflow_io": "tensorflow-io"}  # where the package index has another name than the stack's key


def stack_parts(stack: Stack) -> frozenset[str]:
    """The parts that a host with this stack has, if it is in their groups."""
    versions = {name for name in ("keras", "tensorflow_io", "tensorflowonspark") if stack.get(name)}
    readers = {name for name in ("hdfs", "kafka") if stack.get(name)}
    # Stacks that read HDFS or submit to YARN use a Hadoop client.
    client = {"hadoop_client"} if "hdfs" in readers or "tensorflowonspark" in versions else set()
    gpus = {"cuda"} if stack.get("cuda") else set()  # A stack for the CPU never computes on a GPU.
    return frozenset({"environment", "tensorflow", *versions, *readers, *client, *gpus})


def distribution(stack: Stack, part: str) -> str:
    """The name under which the part is installed: TensorFlow's CPU and GPU builds may have their own."""
    if part == "tensorflow":
        return str(stack.get("tensorflow_package", "tensorflow"))
    return DISTRIBUTIONS.get(part, part)
