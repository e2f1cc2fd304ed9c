"""Read a sound line of a facts file quickly; facts are read several times in a run.

Knows no complaints: whatever it does not take is for `format` to read and to say what is wrong.
"""

from __future__ import annotations

import json
from typing import Any

from sonde.core.facts import Entity, Fact
from sonde.data.lines import halves

_decode = json.JSONDecoder().raw_decode
_strip = str.strip  # of anything but a text it raises TypeError


def quick_fact(line: str, relation: str) -> Fact | None:
    """The fact on a line; None where the line must be looked at closely."""
    if halves(line):
        return None
    try:
        values, end = _decode(line)
        if end != len(line):
            return None
        return Fact(
            id=_text(values["id"]),
            relation=relation,
            subject=_entity(values["subject"]),
            objects=_entities(values["objects"]),
            split=_text(values.get("split", "test")),
            tags=_texts(values["tags"]) if "tags" in values else (),
            wrong=_entities(values["wrong"]) if "wrong" in values else (),
            details=_details(values["details"]) if "details" in values else {},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _entities(values: Any) -> tuple[Entity, ...]:
    return tuple([_entity(entry) for entry in _filled(values)])


def _details(values: Any) -> dict[str, str]:
    if type(values) is not dict or not all(type(value) is str for value in values.values()):
        raise ValueError
    return values


def _entity(values: Any) -> Entity:
    return Entity(id=_text(values["id"]), names=_texts(values["names"]))


def _texts(value: Any) -> tuple[str, ...]:
    if not all(map(_strip, _filled(value))):
        raise ValueError
    return tuple(value)


def _filled(value: Any) -> list[Any]:
    if type(value) is not list or not value:
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not _strip(value):
        raise ValueError
    return value  # type: ignore[no-any-return]
