"""The library behind the API: a stand-in of TensorFlow's."""

import ctypes
import os

import numpy

_LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_pywrap_tensorflow_internal.so"))
_LIBRARY.tf_features.restype = ctypes.c_char_p
FEATURES = _LIBRARY.tf_features().decode().split()


class UnimplementedError(Exception):
    pass


class NotFoundError(Exception):
    pass


def product(a, b):
    rows, inner, columns = len(a), len(b), len(b[0])
    result = (ctypes.c_double * (rows * columns))()
    _LIBRARY.tf_matmul(_array(a), _array(b), result, rows, inner, columns)
    return numpy.array(result).reshape(rows, columns)


def _array(matrix):
    values = sum(matrix, [])
    return (ctypes.c_double * len(values))(*values)


def exists(path):
    scheme = path.partition("://")[0] if "://" in path else ""
    if scheme and scheme not in FEATURES:
        raise UnimplementedError("File system scheme '%s' not implemented (file: '%s')" % (scheme, path))
    if scheme:
        raise NotFoundError("libhdfs.so: cannot open shared object file: No such file or directory")
    return os.path.exists(path)


def is_built_with_cuda():
    return "cuda" in FEATURES
