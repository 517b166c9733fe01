"""TensorFlow 2's API, as far as the check of a built wheel asks for it; a stand-in."""

from tensorflow import python as _python

__version__ = "@VERSION@"


class version(object):
    GIT_VERSION = "v@VERSION@-0-gfixture"


class _Tensor(object):
    def __init__(self, value):
        self.value = value

    def numpy(self):
        return self.value


class io(object):
    class gfile(object):
        exists = staticmethod(_python.exists)
        listdir = staticmethod(_python.list_directory)


class test(object):
    is_built_with_cuda = staticmethod(_python.is_built_with_cuda)


def constant(value):
    return _Tensor(value)


def matmul(a, b):
    return _Tensor(_python.product(a.value, b.value))
