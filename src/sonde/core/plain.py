"""Values as JSON can hold them. Light: everything that prints JSON goes through it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from numbers import Integral, Real

from sonde.core.words import legible_json

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def json_text(value: Mapping[str, Json]) -> str:
    """Plain data as JSON for people and programs, with control characters escaped."""
    return legible_json(json.dumps(value, indent=2, ensure_ascii=False))


def plain(value: object) -> Json:
    """Any value as JSON can hold it: NaN is null, infinities and foreign objects are texts.

    >>> plain({"b": (1, float("nan")), "a": {2, 1}})
    {'a': [1, 2], 'b': [1, None]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return None
        return number if math.isfinite(number) else str(number)
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, AbstractSet):
        return [plain(member) for member in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    return str(value)
