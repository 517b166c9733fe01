"""The GPUs that the inventory promises (gpu_count): what gpu-check asks, one question for each test. Some only hardware can answer."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKS = re.findall(
    r"^@check\ndef (\w+)",
    (Path(__file__).resolve().parents[2] / "roles/gpu_check/files/gpu_check.py").read_text(encoding="utf-8"),
    re.MULTILINE,
)
TENSORFLOW = {
    "tensorflow_lists_gpus": "test_tensorflow_sees_every_gpu",
    "tensorflow_computes_on_gpu": "test_tensorflow_computes_on_the_first_gpu",
    "tensorflow_computes_on_cpu": "test_tensorflow_computes_on_the_cpu_where_gpus_are_hidden",
}


@pytest.mark.part("gpu")
def test_nvidia_smi_lists_every_gpu(expected, answers):
    listed = re.findall(r"^GPU \d+: ", answers["nvidia_smi"]["output"], re.MULTILINE)
    assert len(listed) == int(expected["gpu_count"]), answers["nvidia_smi"]["error"]


@pytest.mark.part("no gpu")
def test_a_host_without_gpus_is_asked_for_none(expected):
    pytest.skip(f"the inventory promises no GPU here (gpu_count: {expected['gpu_count']})")


def question(check: str) -> Callable[..., None]:
    """The test of one of gpu-check's questions."""

    def test(answers):
        if not answers["gpu"]["layer"] and check not in TENSORFLOW:
            pytest.skip(
                "the driver is not of these playbooks, and the PCI bus shows no GPU: a container, or a stand-in"
            )
        answer = answers["gpu"]["results"][check]
        if answer["outcome"] == "SKIP":
            pytest.skip(answer["message"])
        assert answer["outcome"] == "PASS", answer["message"]

    return pytest.mark.part("gpu")(test)


for check in CHECKS:
    name = TENSORFLOW.get(check, f"test_gpu_{check}")
    globals()[name] = question(check)
    globals()[name].__name__ = name
