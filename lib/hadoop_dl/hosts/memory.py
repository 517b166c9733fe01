"""How much memory an answer may take: what a host prints is read by Ansible's connection, which knows no limit."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MORE = 2 << 30  # bytes that reading one host may add; ssh and its proxy command get the same limit as Ansible's worker


@contextmanager
def bounded(more: int) -> Iterator[None]:
    """Let this process take so many bytes of address space more than it has; what takes more is a MemoryError. 0: without a limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        pages = 0
    limit = pages * resource.getpagesize() + more
    if not (pages and more) or any(value != resource.RLIM_INFINITY and value <= limit for value in (soft, hard)):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
