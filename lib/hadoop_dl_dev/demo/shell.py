"""Run commands, report their failures as sentences, and time the phases of the demo."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class DemoError(Exception):
    """Something the person at the terminal can act on; printed without a traceback."""


def run(
    *argv: str,
    check: bool = True,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed; a failure becomes a DemoError with the command's own last words."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, env=env, timeout=timeout, check=False)
    except FileNotFoundError as error:
        raise DemoError(f"the command {argv[0]} is required, but is missing. Install it and run again.") from error
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"{' '.join(argv[:4])} … did not end within {timeout:.0f} seconds.") from error
    if check and done.returncode != 0:
        raise failure(argv, done.returncode, f"{done.stdout.strip()}\n{done.stderr.strip()}")
    return done


def failure(argv: Sequence[str], status: int, output: str) -> DemoError:
    last = "\n    ".join(output.strip().splitlines()[-16:])
    return DemoError(f"{' '.join(argv)[:200]} ended with status {status}:\n    {last}")


def pipe(first: Sequence[str], second: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Run `first | second` and return what the second printed; the failure of either is a DemoError with its last words."""
    with tempfile.TemporaryFile("w+") as words:
        try:
            source = subprocess.Popen(first, stdout=subprocess.PIPE, stderr=words, env=env)
        except FileNotFoundError as error:
            raise DemoError(f"the command {first[0]} is required, but is missing. Install it and run again.") from error
        with source:
            done = subprocess.run(second, stdin=source.stdout, capture_output=True, text=True, check=False)
            if source.stdout:
                source.stdout.close()  # a first command that still writes ends, and does not wait for ever
        words.seek(0)
        for argv, status, text in ((second, done.returncode, done.stderr), (first, source.returncode, words.read())):
            if status != 0:
                raise failure(argv, status, text)
    return done.stdout


def output(*argv: str) -> str:
    return run(*argv).stdout.strip()


def follow(argv: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """Run a command on this terminal, its output as it comes; returns its exit status."""
    sys.stdout.flush()
    return subprocess.run(argv, env=env, check=False).returncode


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def phase(name: str, times: list[tuple[str, float]] | None = None) -> Iterator[None]:
    """Print what begins and how long it took."""
    say(f"==> {name}")
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    if times is not None:
        times.append((name, took))
    say(f"    done in {took:.0f} s")


def print_path(program: str, make: Callable[[], Path], missing: str = "") -> int:
    """Print where a program's result is; returns its exit status. missing: what an argument must name."""
    try:
        print(make())
    except (DemoError, IndexError) as error:
        print(f"{program}: {missing if isinstance(error, IndexError) else error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Of two commands that make the same thing at once, the second waits and finds it complete."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
