"""Golden documents: how they are written, and in which named places two of them differ.

Knows plain data by section, nothing of reports or runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from .plain import Document, Plain

FOLDER = Path(__file__).parents[1] / "golden" / "values"
WIDE = 160

SECTIONS = ("values", "bytes", "intervals")
"""In the order in which changes are told: what matters most comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A place where a document differs from the golden one."""

    place: str
    kind: Literal["changed", "gone", "new"]
    old: Plain = None
    new: Plain = None

    def __str__(self) -> str:
        if self.kind == "changed":
            return f"{self.place}: {_short(self.old)} → {_short(self.new)}"
        return f"{self.place}: {self.kind} ({_short(self.new if self.kind == 'new' else self.old)})"


def path_of(name: str) -> Path:
    """Where the golden document of a case is kept."""
    return FOLDER / f"{name}.json"


def load(name: str) -> Document | None:
    """The golden document of a case, if there is one."""
    path = path_of(name)
    found: Document | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return found


def save(name: str, document: Document) -> None:
    """Write the golden document of a case."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path_of(name).write_text(_text(document, "") + "\n", encoding="utf-8")


def changes(golden: Document, found: Document, near: dict[str, float]) -> list[Change]:
    """Where they differ; numbers of a section may by what `near` says, others not at all."""
    made: list[Change] = []
    for section in SECTIONS:
        old = dict(_leaves(golden.get(section, {}), section))
        new = dict(_leaves(found.get(section, {}), section))
        for place in sorted(old.keys() | new.keys()):
            if place not in new:
                made.append(Change(place=place, kind="gone", old=old[place]))
            elif place not in old:
                made.append(Change(place=place, kind="new", new=new[place]))
            elif not close(old[place], new[place], near.get(section, 0.0)):
                made.append(Change(place=place, kind="changed", old=old[place], new=new[place]))
    return made


def settled(golden: Plain, found: Plain, near: float) -> Plain:
    """What was found, but the golden number wherever the two are close: no noise in a diff."""
    if isinstance(golden, dict) and isinstance(found, dict):
        return {k: settled(golden.get(k), value, near) for k, value in found.items()}
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        return [settled(a, b, near) for a, b in zip(golden, found, strict=True)]
    return golden if close(golden, found, near) else found


def close(old: Plain, new: Plain, near: float) -> bool:
    """Equal; of two numbers, so near to each other, measured by the larger of the old one and 1."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(close(a, b, near) for a, b in zip(old, new, strict=True))
    if isinstance(old, int | float) and isinstance(new, int | float):
        return bool(abs(old - new) <= near * max(1.0, abs(old)))
    return bool(old == new)


def _leaves(value: Plain, place: str) -> Iterator[tuple[str, Plain]]:
    """Every number and word by a name for its place, and how long each list is."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{place} / {key}")
    elif isinstance(value, list) and not _pair(value):
        yield f"{place} / length", len(value)
        for i, member in enumerate(value):
            yield from _leaves(member, f"{place} / {i}")
    else:
        yield place, value


def _pair(value: list[Plain]) -> bool:
    """Whether it is a value with its n, or the two ends of an interval."""
    return len(value) == 2 and all(isinstance(v, int | float | None) for v in value)


def _text(value: Plain, indent: str) -> str:
    """JSON with sorted keys, in which a row, an estimate or a curve's points stand on one line."""
    if not isinstance(value, dict | list) or not value or _on_one_line(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    deeper = indent + " "
    if isinstance(value, dict):
        names = {key: json.dumps(key, ensure_ascii=False) for key in sorted(value)}
        parts = [f"{name}: {_text(value[key], deeper)}" for key, name in names.items()]
    else:
        parts = [_text(member, deeper) for member in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}{closed}"


def _on_one_line(value: dict[str, Plain] | list[Plain]) -> bool:
    """Whether it is a row or a list of numbers; many rows, and many words, take a line each."""
    if isinstance(value, dict) or _depth(value) > 2:
        return False
    alike = any(all(isinstance(m, kind) for m in value) for kind in (list, str))
    return not alike or len(json.dumps(value)) <= WIDE


def _depth(value: Plain) -> float:
    """Lists in lists; a dict makes it infinite."""
    if isinstance(value, dict):
        return inf
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _short(value: Plain) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDE else text[:WIDE] + "…"
