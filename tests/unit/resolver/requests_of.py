"""Requests to the resolver, and what it must answer."""

from typing import Any

from hadoop_dl.resolver import Resolution, compose, resolve


def refuse(**request: Any) -> Resolution:
    resolution = resolve(request)
    assert resolution.status == "conflict", resolution.stack
    return resolution


def accept(**request: Any) -> dict[str, Any]:
    resolution = compose(request)
    assert resolution.fits, resolution.problems
    return resolution.stack
