"""Work that is killed before one of its steps."""

import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

NEVER = 0
STEPS = ("rename", "unlink", "rmdir", "mkdir", "symlink", "remove")


def killed(work: Callable[[], object], number: int, steps: Sequence[str] = STEPS) -> bool:
    """Run work() in a process that is killed before its step of this number; whether it came so far."""
    child = os.fork()
    if child == 0:
        count = [0]

        def counting(step: Callable[..., object]) -> Callable[..., object]:
            def counted(*arguments: Any, **more: Any) -> object:
                count[0] += 1
                if count[0] == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return step(*arguments, **more)

            return counted

        for name in steps:
            setattr(os, name, counting(getattr(os, name)))
        try:
            work()
        except SystemExit as end:
            os._exit(int(end.code or 0))
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def module_main(name: str, arguments: dict[str, Any]) -> Callable[[], object]:
    """The module's main() for a forked process, which reads its arguments as Ansible gives them."""

    def work() -> None:
        sys.argv = [name]
        text = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        sys.stdin = io.TextIOWrapper(io.BytesIO(text))
        sys.stdout = io.StringIO()
        importlib.import_module(name).main()

    return work
