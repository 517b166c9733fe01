"""What TensorFlow sees and computes, as one JSON line. Runs alone, in the environment's Python: 2.7 or 3, TensorFlow 1 or 2.

The white paper's matrix product, 2x3 by 3x2 (cuBLAS), and a convolution (cuDNN), in the form of TensorFlow 1 (a graph
that is fed) and, where that is another one, of TensorFlow 2 (at once). Jobs keep their memory: TensorFlow takes what it needs.
"""

import json
import os
import sys

ANSWER = "GPU-CHECK-ANSWER "
LEFT, RIGHT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
# 2x2 over 3x3: TensorFlow gives a 1x1 filter, and one as large as the image, to cuBLAS (core/kernels/conv_ops.cc).
IMAGE = [[[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]], [[7.0], [8.0], [9.0]]]]
FILTER = [[[[1.0]], [[1.0]]], [[[1.0]], [[1.0]]]]


def look():
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # from 1.14 on; for the form that has no session
    import tensorflow as tf

    v1 = tf.compat.v1 if hasattr(getattr(tf, "compat", None), "v1") else tf
    config = v1.ConfigProto(allow_soft_placement=False)
    config.gpu_options.allow_growth = True
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        gpus = [device.name for device in session.list_devices() if device.device_type == "GPU"]
    place = "/device:GPU:0" if gpus else "/device:CPU:0"

    def product(left, right):
        return tf.matmul(left, right)

    def convolution(image, weights):
        return tf.nn.conv2d(image, weights, strides=[1, 1, 1, 1], padding="VALID")

    def graph(compute, kind, first, second):
        with tf.Graph().as_default():
            with tf.device(place):
                a, b = v1.placeholder(tf.float32), v1.placeholder(tf.float32)
                a.set_shape(shape(first))
                b.set_shape(shape(second))
                tensor = compute(a, b)
            options, metadata = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
            with v1.Session(config=config) as session:
                value = session.run(tensor, {a: first, b: second}, options, metadata)
            return value, [node.device for part in metadata.partition_graphs for node in part.node if kind in node.op]

    def at_once(compute, kind, first, second):
        with tf.device(place):
            tensor = compute(tf.constant(first), tf.constant(second))
        return tensor.numpy(), [tensor.device]

    forms = [("TF 1", graph)] + ([] if tf.__version__.startswith("1.") else [("TF 2", at_once)])
    return {
        "gpus": gpus,
        "cuda_build": bool(tf.test.is_built_with_cuda()),
        "products": answers(forms, product, "MatMul", LEFT, RIGHT),
        "convolutions": answers(forms, convolution, "Conv2D", IMAGE, FILTER),
    }


def shape(nested):
    return [len(nested)] + shape(nested[0]) if isinstance(nested, list) else []


def answers(forms, compute, kind, first, second):
    """By form: the value, where it was computed, and the first line of an error."""
    results = {}
    for name, form in forms:
        try:
            value, places = form(compute, kind, first, second)
            results[name] = {"value": value.tolist(), "places": places, "error": None}
        except Exception as error:
            message = (str(error).strip().splitlines() or [repr(error)])[0][:300]
            results[name] = {"value": None, "places": [], "error": message}
    return results


if __name__ == "__main__":
    sys.stdout.write("\n" + ANSWER + json.dumps(look()) + "\n")
