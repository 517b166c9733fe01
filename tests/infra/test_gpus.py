"""The GPUs that the inventory promises (gpu_count): what gpu-check asks, one question for each test. Some only hardware can answer."""

import re
from collections.abc import Callable

import pytest
from gpu_check.cli import QUESTIONS

CHECKS = [name for name, _ in QUESTIONS]
# Asked wherever GPUs are promised, also of a stand-in; the others need the driver's files.
COMPUTING = {
    "cuda_computes": "test_cuda_computes_on_every_gpu",
    "tensorflow_convolves_on_gpu": "test_tensorflow_convolves_on_the_first_gpu",
    "tensorflow_lists_gpus": "test_tensorflow_sees_every_gpu",
    "tensorflow_computes_on_gpu": "test_tensorflow_computes_on_the_first_gpu",
    "tensorflow_computes_on_cpu": "test_tensorflow_computes_on_the_cpu_where_gpus_are_hidden",
}
# A stack for the CPU may be installed on a host with GPUs; its TensorFlow is not asked for them.
OF_CUDA = ("tensorflow_convolves_on_gpu", "tensorflow_lists_gpus", "tensorflow_computes_on_gpu")


@pytest.mark.part("gpu")
def test_nvidia_smi_lists_every_gpu(expected, answers):
    gpu_lines = re.findall(r"^GPU \d+: ", answers["nvidia_smi"]["output"], re.MULTILINE)
    assert len(gpu_lines) == int(expected["gpu_count"]), answers["nvidia_smi"]["error"]


@pytest.mark.part("no gpu")
def test_a_host_without_gpus_is_asked_for_none(expected):
    pytest.skip(f"the inventory promises no GPU here (gpu_count: {expected['gpu_count']})")


def question(check: str) -> Callable[..., None]:
    """The test of one of gpu-check's questions."""

    def test(answers):
        if not answers["gpu"]["layer"] and check not in COMPUTING:
            pytest.skip(
                "the driver is not of these playbooks, and the PCI bus shows no GPU: a container, or a stand-in"
            )
        answer = answers["gpu"]["results"][check]
        if answer["outcome"] == "SKIP":
            pytest.skip(answer["message"])
        assert answer["outcome"] == "PASS", answer["message"]

    gpu_test = pytest.mark.part("gpu")(test)
    return pytest.mark.stack_has("cuda")(gpu_test) if check in OF_CUDA else gpu_test


for check in CHECKS:
    name = COMPUTING.get(check, f"test_gpu_{check}")
    globals()[name] = question(check)
    globals()[name].__name__ = name
