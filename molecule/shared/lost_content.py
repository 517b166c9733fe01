"""Empty a file of a package while a test asks about it, as a power failure does."""

from contextlib import contextmanager


@contextmanager
def emptied(host, path):
    host.check_output(f"cp --preserve=all {path} /root/kept && truncate --size 0 {path}")
    try:
        yield
    finally:
        host.check_output(f"mv /root/kept {path}")
