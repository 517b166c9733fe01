"""Python of nodes and tests compiles the sources of each of Ansible's modules once.

Ansible sends a module with its utilities as a new zip file each time. Python keeps no bytecode of those, and compiling them is half of a module's
time. Here bytecode is kept by the digest of its source, and an import reads a source once, not for its place and for its code.
"""

import functools
import hashlib
import marshal
import os
import sys
import zipimport

FOLDER = os.environ.get("ANSIBLE_BYTECODE", "/var/cache/ansible-bytecode")
compile_source = getattr(zipimport, "_compile_source", None)  # since Python 3.8


def compiled(pathname, source):
    name = pathname.partition(".zip/")[2]
    path = os.path.join(FOLDER, hashlib.sha256((sys.version + name).encode() + source).hexdigest())
    try:
        with open(path, "rb") as handle:
            return marshal.load(handle)  # noqa: S302 - root's directory, or that of who runs the tests
    except (OSError, ValueError, EOFError):
        code = compile_source(pathname, source)
    mine = path + "." + str(os.getpid())
    try:
        with open(mine, "wb") as handle:
            marshal.dump(code, handle)
        os.rename(mine, path)
    except OSError:
        pass  # another account's, or full
    return code


if compile_source and os.path.isdir(FOLDER):
    zipimport._compile_source = compiled
    zipimport._get_module_code = functools.lru_cache(maxsize=None)(zipimport._get_module_code)
