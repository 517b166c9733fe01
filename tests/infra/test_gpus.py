"""The GPUs that the inventory promises (gpu_count). The second question only real hardware can answer."""

import re

import pytest

pytestmark = pytest.mark.part("gpu")


def test_nvidia_smi_lists_every_gpu(expected, answers):
    listed = re.findall(r"^GPU \d+: ", answers["nvidia_smi"]["output"], re.MULTILINE)
    assert len(listed) == int(expected["gpu_count"]), answers["nvidia_smi"]["error"]


@pytest.mark.gpu_hardware
def test_tensorflow_sees_every_gpu(expected, inside):
    answer = inside("gpus")
    assert len(answer["value"] or []) == int(expected["gpu_count"]), (
        f"TensorFlow should compute on {expected['gpu_count']} GPUs (gpu_count), and sees {len(answer['value'] or [])}: "
        f"jobs train on CPUs here. {answer['error'] or ''} Compare nvidia-smi, the driver, CUDA and LD_LIBRARY_PATH."
    )
