import json

ENVIRONMENT = "/opt/deeplearning/envs/scenario-0123456789ab"
ADD = """
import tensorflow as tf
with tf.Session() as session:
    print("%s %d" % (tf.__version__, session.run(tf.reduce_sum(tf.constant([20, 22])))))
"""


def test_tensorflow_computes(host):
    assert host.check_output(f"{ENVIRONMENT}/bin/python -c '{ADD}' 2>/dev/null") == "1.15.0 42"


def test_the_component_is_marked_as_whole(host):
    marker = json.loads(host.file(f"{ENVIRONMENT}/.deeplearning/tensorflow.json").content_string)
    assert marker["component"] == "tensorflow"
