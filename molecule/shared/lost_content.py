"""A file of a package that lost its content, as after a power failure, while a question is asked."""

from contextlib import contextmanager


@contextmanager
def emptied(host, path):
    host.check_output(f"cp --preserve=all {path} /root/kept && truncate --size 0 {path}")
    try:
        yield
    finally:
        host.check_output(f"mv /root/kept {path}")
