import importlib.util
import json
import shlex
from pathlib import Path

GPU_CHECK = Path(__file__).resolve().parents[3] / "roles" / "gpu_check" / "files" / "gpu_check.py"
spec = importlib.util.spec_from_file_location("gpu_check", GPU_CHECK)
gpu_check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_check)
ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"
ADD = """
import tensorflow as tf
with tf.Session() as session:
    print("%s %d" % (tf.__version__, session.run(tf.reduce_sum(tf.constant([20, 22])))))
"""


def test_tensorflow_computes(host):
    assert host.check_output(f"{ENVIRONMENT}/bin/python -c '{ADD}' 2>/dev/null") == "1.15.0 42"


def test_gpu_checks_product_is_right_in_the_form_of_tensorflow_1(host):
    program = shlex.quote(gpu_check.TENSORFLOW + "\nimport json; print(json.dumps(look()))")
    found = json.loads(host.check_output(f"{ENVIRONMENT}/bin/python -c {program} 2>/dev/null"))
    assert list(found["products"]) == ["TF 1"]
    assert gpu_check.computed(found, "cpu:0") is None
    assert found["gpus"] == []
    assert found["cuda_build"]


def test_a_missing_library_is_named(host, tmp_path):
    said = host.run(
        f"TF_CPP_MIN_LOG_LEVEL=1 {ENVIRONMENT}/bin/python -c {shlex.quote(gpu_check.TENSORFLOW + 'look()')}"
    ).stderr
    (tmp_path / "run/systemd/system").mkdir(parents=True)  # a host, even where the tests themselves run in a container
    machine = gpu_check.Host(str(tmp_path), lambda argv: (0, "GPU 0: Tesla T4 (UUID: x)"))
    message = gpu_check.causes(machine, {"cuda_build": True, "gpus": []}, said)
    assert "It does not find libcuda.so.1: install what holds them" in message
    assert "cuda_versions" in message


def test_the_component_is_marked_as_whole(host):
    marker = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/tensorflow.json").content_string)
    assert marker["component"] == "tensorflow"
