"""Filters that hand roles plain values out of stacks/ and its locks. The work is in lib/hadoop_dl/data/stacks.py."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible import context

from hadoop_dl.data import artifacts, stacks
from hadoop_dl.data.locks import parse_lock
from hadoop_dl.data.stacks import Stack

stacks.add_site_stacks(context.CLIARGS.get("inventory") or ())


def of_stack(answer: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of a stack's name, from a function of the stack."""
    return lambda name, *given: answer(stacks.load_stack(name), *given)


def stack_lock(stack: Stack, python: str, component: str = "") -> str:
    """The lock of a stack for one Python, or one component's section of it."""
    lock = stack.lock(python)
    return lock.component(component) if component else lock.text


def stack_base_lock(stack: Stack, python: str) -> str:
    """The sections of the lock that a build of TensorFlow needs, without the wheel that the site builds."""
    lock = stack.base_lock(python)
    return lock.component("pip") + lock.component("tensorflow")


def lock_sections(text: str) -> list[dict[str, str]]:
    """The sections of a lock, in the order of their installation."""
    lock = parse_lock(text, "NAME", "")
    return [{"component": name, "lock": lock.component(name)} for name in lock.components]


def stack_superfluous(needed_artifacts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Artifacts that other stacks than those with these artifacts need: folder, name and sha256."""
    keys = ("folder", "name", "sha256")
    return [{key: artifact[key] for key in keys} for artifact in stacks.artifacts_of_others(needed_artifacts)]


class FilterModule:
    """Names for templates."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "stack_lock": of_stack(stack_lock),
            "stack_base_lock": of_stack(stack_base_lock),
            "lock_sections": lock_sections,
            "stack_artifacts": artifacts.stack_artifacts,
            "stack_superfluous": stack_superfluous,
            "stack_file": of_stack(Stack.file),
        }
