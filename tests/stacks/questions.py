# -*- coding: utf-8 -*-
# ruff: noqa: UP009, UP010, UP031
"""Questions about an environment, answered by its own Python (2.7 and 3): one JSON line for each, {"name", "value", "error"}.

python questions.py '{"modules": ["tensorflow"], "cuda": false}'
"""

from __future__ import absolute_import, division, print_function

import ctypes
import importlib
import json
import os
import re
import sys
import traceback


def versions():
    """project, as a lock writes it -> version."""
    try:
        from importlib.metadata import distributions

        projects = [(item.metadata["Name"], item.version) for item in distributions()]
    except ImportError:  # Python 3.7 and older
        import pkg_resources

        # Not the eggs of the interpreter's own library: argparse, wsgiref, Python itself.
        prefix = os.path.realpath(sys.prefix) + os.sep
        items = [item for item in pkg_resources.working_set if os.path.realpath(item.location).startswith(prefix)]
        projects = [(item.project_name, item.version) for item in items]
    return dict((re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in projects)


def product():
    """The sum of a product of two matrices, in eager or in graph mode: 19 + 22 + 43 + 50."""
    import tensorflow as tf

    tensor = tf.reduce_sum(tf.matmul([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]))
    if hasattr(tensor, "numpy"):
        return float(tensor.numpy())
    with tf.Session() as session:
        return float(session.run(tensor))


def cuda():
    """Libraries below nvidia/ of this environment that TensorFlow's own loader finds; the functions that load them when it sees a GPU.

    They are called by their C++ names and return an object through a hidden pointer. What counts is what is mapped afterwards.
    """
    import tensorflow as tf

    home = os.path.dirname(os.path.realpath(tf.__file__))  # as the kernel names it: an environment's name is a link
    for library in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        library_handle = ctypes.CDLL(os.path.join(home, library))
        for name in ("CudaRuntime", "Cublas", "CublasLt", "Cudnn", "Cufft", "Cusolver", "Cusparse"):
            function = "Get%sDsoHandle" % name
            try:
                load = getattr(library_handle, "_ZN3tsl8internal9DsoLoader%d%sEv" % (len(function), function))
            except AttributeError:
                continue
            load.restype, load.argtypes = None, [ctypes.c_void_p]
            load(ctypes.create_string_buffer(64))
    with open("/proc/self/maps") as handle:
        paths = re.findall(r"(/\S+)/nvidia/\w+/lib/(lib\w+)\.so", handle.read())
    return sorted(set(name for prefix, name in paths if prefix == os.path.dirname(home)))


def ask(name, question):
    try:
        answer = {"name": name, "value": question(), "error": None}
    except BaseException:
        answer = {"name": name, "value": None, "error": traceback.format_exc().strip().splitlines()[-1]}
    print(json.dumps(answer))
    sys.stdout.flush()


def main():
    request = json.loads(sys.argv[1])
    ask("versions", versions)  # first: pkg_resources puts the packages that setuptools carries onto sys.path
    for module in request["modules"]:
        ask("import " + module, lambda name=module: importlib.import_module(str(name)) and None)
    ask("product", product)
    if request["cuda"]:
        ask("cuda", cuda)


if __name__ == "__main__":
    main()
