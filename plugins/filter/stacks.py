"""Filters that hand roles plain values out of stacks/ and its locks. The work is in lib/hadoop_dl/data/stacks.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible import context

from hadoop_dl.data import artifacts, stacks

stacks.add_site_stacks(context.CLIARGS.get("inventory") or ())


def stack_lock(name: str, python: str, component: str = "") -> str:
    """The lock of a stack for one Python, or one component's section of it."""
    lock = stacks.load_stack(name).lock(python)
    return lock.component(component) if component else lock.text


def stack_base_lock(name: str, python: str, component: str) -> str:
    """One component's section of the lock without the wheel that the site builds."""
    return stacks.load_stack(name).base_lock(python).component(component)


def stack_superfluous(kept: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Artifacts that other stacks than those with these artifacts need: folder, name and sha256."""
    keys = ("folder", "name", "sha256")
    return [{key: artifact[key] for key in keys} for artifact in stacks.artifacts_of_others(kept)]


def stack_source_locks(environments: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Python and text of the locks that have source distributions, which the mirror host builds into wheels."""
    found = [(python, stacks.load_stack(name).lock(python)) for name, python in environments]
    return [{"python": python, "lock": lock.text} for python, lock in found if lock.has_sources]


def stack_file(name: str, project: str) -> dict[str, Any]:
    """The stack's file called <project>-<version>.<suffix>: name, source, sha256, size."""
    for file in stacks.load_stack(name).data.get("files", []):
        if file["name"].rpartition("-")[0] == project:
            return dict(file)
    return {}


class FilterModule:
    """Names for templates."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "stack_lock": stack_lock,
            "stack_base_lock": stack_base_lock,
            "stack_artifacts": artifacts.stack_artifacts,
            "stack_source_locks": stack_source_locks,
            "stack_superfluous": stack_superfluous,
            "stack_file": stack_file,
        }
