"""Whether values, such as JSON gives, have the types that were declared. Knows no names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type; lists are as good as tuples, and true is no number.

    A dataclass is filled by an object with some of its fields and no others.

    >>> fits([1, 2], tuple[int, ...]), fits({"a": None}, dict[str, int | None]), fits(True, int)
    (True, True, False)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in inner)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(each, inner[1]) for key, each in value.items()
        )
    if is_dataclass(kind):
        return isinstance(value, Mapping) and _fills(value, kind)
    return isinstance(value, kind) and isinstance(value, bool) <= (kind is bool)


def _fills(value: Mapping[str, object], kind: Any) -> bool:
    hints = get_type_hints(kind)
    return all(name in hints and fits(each, hints[name]) for name, each in value.items())
