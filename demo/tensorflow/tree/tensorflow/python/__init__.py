"""The library behind the API: a stand-in of TensorFlow's."""

import ctypes
import os

import numpy

_LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_pywrap_tensorflow_internal.so"))
_LIBRARY.tf_features.restype = ctypes.c_char_p
FEATURES = _LIBRARY.tf_features().decode().split()
if "hdfs" in FEATURES:
    _LIBRARY.tf_hdfs_list.restype = ctypes.c_char_p


class UnimplementedError(Exception):
    pass


class NotFoundError(Exception):
    pass


def product(a, b):
    rows, inner, columns = len(a), len(b), len(b[0])
    cells = (ctypes.c_double * (rows * columns))()
    _LIBRARY.tf_matmul(_array(a), _array(b), cells, rows, inner, columns)
    return numpy.array(cells).reshape(rows, columns)


def _array(matrix):
    values = sum(matrix, [])
    return (ctypes.c_double * len(values))(*values)


def list_directory(path):
    """The names in a directory, of a file system that the library was built with."""
    scheme, separator, location = path.partition("://")
    if not separator:
        return os.listdir(path)
    if scheme not in FEATURES:
        raise UnimplementedError("File system scheme '%s' not implemented (file: '%s')" % (scheme, path))
    name_node, _, directory = location.partition("/")
    answer = _LIBRARY.tf_hdfs_list((scheme + "://" + name_node).encode(), ("/" + directory).encode()).decode()
    if answer[0] != "=":
        raise NotFoundError(answer[1:])
    return answer[1:].splitlines()


def exists(path):
    if "://" not in path:
        return os.path.exists(path)
    parts = path.split("/")
    names = [name for name in parts[3:] if name]
    entries = list_directory("/".join(parts[:3] + names[:-1]) + "/")
    return not names or names[-1] in entries


def is_built_with_cuda():
    return "cuda" in FEATURES
