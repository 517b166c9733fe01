"""Values of an inventory as JSON. YAML also has dates, and keys that JSON cannot store or sort."""

import json
from collections.abc import Mapping
from typing import Any

ENCODER = json.JSONEncoder(default=str)
SORTING = json.JSONEncoder(default=str, sort_keys=True)


def encoded(value: Any, *, sort_keys: bool = False) -> str:
    """The value as JSON; what JSON does not have becomes text."""
    encoder = SORTING if sort_keys else ENCODER
    try:
        return encoder.encode(value)
    except TypeError:
        return encoder.encode(with_text_keys(value))


def with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, (list, tuple)) else value
