import json
import shlex
from pathlib import Path

from gpu_check import product
from gpu_check.causes import causes
from gpu_check.compute import computed
from gpu_check.host import Host

PRODUCT = shlex.quote(Path(product.__file__).read_text(encoding="utf-8"))
testinfra_hosts = ["ansible://frameworks-el7"]
ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"
ADD = """
import tensorflow as tf
with tf.Session() as session:
    print("%s %d" % (tf.__version__, session.run(tf.reduce_sum(tf.constant([20, 22])))))
"""


def test_tensorflow_computes(host):
    assert host.check_output(f"{ENVIRONMENT}/bin/python -c '{ADD}' 2>/dev/null") == "1.15.0 42"


def test_gpu_checks_product_and_convolution_are_right_in_the_form_of_tensorflow_1(host):
    output = host.check_output(f"{ENVIRONMENT}/bin/python -E -s -c {PRODUCT} 2>/dev/null")
    answer = json.loads(output.rpartition(product.ANSWER)[2])
    assert list(answer["products"]) == list(answer["convolutions"]) == ["TF 1"]
    assert computed(answer, "cpu:0") is None
    assert answer["gpus"] == []
    assert answer["cuda_build"]


def test_a_missing_library_is_named(host, tmp_path):
    errors = host.run(f"TF_CPP_MIN_LOG_LEVEL=1 {ENVIRONMENT}/bin/python -E -s -c {PRODUCT}").stderr
    (tmp_path / "run/systemd/system").mkdir(parents=True)  # a host, even if the tests themselves run in a container
    machine = Host(str(tmp_path), lambda argv, seconds=None: (0, "GPU 0: Tesla T4 (UUID: x)"))
    message = causes(machine, {"cuda_build": True, "gpus": []}, errors)
    assert "It does not find libcuda.so.1: install what contains them" in message
    assert "cuda_versions" in message
