"""A wheel of TensorFlow that a site builds: its provenance, and what the role is given and knows of the host."""

from typing import Any

from ansible_programs import REPOSITORY

COMMIT, SHA256 = "5" * 40, "ab" * 32


WHEEL = "tensorflow-1.15.0-03f3f3f3f3f3f-cp27-cp27mu-linux_x86_64.whl"
PROVENANCE: dict[str, Any] = {
    "version": "1.15.0",
    "tag": "v1.15.0",
    "commit": COMMIT,
    "os": {"short": "el7", "name": "RHEL 7.9", "glibc": "2.17"},
    "architecture": "x86_64",
    "python": {"version": "2.7", "abi": "cp27mu"},
    "cpu_features": ["avx", "sse4_2"],
    "cuda": {},
    "symbols": {"GLIBC": "2.14", "GLIBCXX": "3.4.19", "CXXABI": "1.3"},
    "built": "2026-11-22T16:35:25Z",
    "wheel": {"name": WHEEL, "sha256": SHA256, "size": 6877},
}
CHECKER = REPOSITORY / "roles/tensorflow_build/files/check_wheel.py"
GIVEN: dict[str, Any] = {
    "version": "1.15.0",
    "commit": COMMIT,
    "stack": "tf1.15-built-cpu-py27-el7",
    "source": {"file": "http://mirror01/tensorflow.bundle", "sha256": SHA256},
    "python": "/opt/python/bin/python",
    "bazel": "/opt/bazel/0.26.1/bin/bazel",
    "hdfs": True,
    "kafka": True,
    "cpu_features": ["avx", "sse4_2"],
    "cuda": {},
    "capabilities": [],
    "answers": {},
    "flags": [],
    "archives": {},
    "jobs": 0,
    "timeout": "86400",
    "memory_min_mb": 8000,
    "disk_min_mb": 20000,
    "root": "/var/lib/deeplearning-build",
}
INFO: dict[str, Any] = {
    "os": {"short": "el7", "name": "RHEL 7.9"},
    "architecture": "x86_64",
    "glibc": "2.17",
    "memory_mb": 32000,
    "cores": 16,
    "disk_free_mb": 90000,
    "foreign_entries": [],
    "has_user": True,
    "tools": {"git": "/usr/bin/git", "objdump": "/usr/bin/objdump"},
    "compiler": {"path": "/opt/rh/devtoolset-7/root/usr/bin/gcc", "version": "7.3.1"},
    "clang": {"path": "", "version": ""},
    "python": {
        "version": "2.7",
        "abi": "cp27mu",
        "include": True,
        "headers": "/usr/include/python2.7",
        "site": ["/opt/python/lib/python2.7/site-packages"],
        "packages": {"numpy": "1.16.6", "wheel": "0.37.1", "setuptools": "44.1.1"},
    },
    "bazel": {"path": "/opt/bazel/0.26.1/bin/bazel", "version": "0.26.1", "sha256": SHA256},
    "nvcc": "/usr/local/cuda-10.0/bin/nvcc",
    "cuda_headers": {"path": "cuda.h", "sha256": SHA256, "found": ["10000"]},
    "cudnn_headers": {"path": "cudnn.h", "sha256": SHA256, "found": ["7", "6", "5"]},
}
TENSORFLOW = """
__version__ = "1.15.0"
class test(object):
    is_built_with_cuda = staticmethod(lambda: False)
class gfile(object):
    @staticmethod
    def Exists(path):
        raise {error}
class Session(object):
    __enter__ = lambda self: self
    __exit__ = lambda *_: None
    run = lambda self, value: value
constant = lambda value: value
matmul = lambda a, b: [[{first}, 10.0], [15.0, 22.0]]
"""


KNOWN = "ValueError('libhdfs.so: cannot open shared object file')"
