"""A report as plain data for other programs, less tables and most figures. Knows no files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from numbers import Integral, Real

from sonde.core.reports import Estimate, HeatStrip, Report
from sonde.core.words import legible_json

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def as_json(report: Report, provenance: Mapping[str, object]) -> dict[str, Json]:
    """The numbers, findings and provenance of a report; keys sorted, floats unrounded.

    Of the figures only heat strips are there, since their numbers stand nowhere else.
    """
    strips = [figure for figure in report.figures if isinstance(figure, HeatStrip)]
    return {
        "counts": plain(report.counts),
        "estimates": plain(report.estimates),
        "findings": plain(report.findings),
        **({"metrics": plain(described(report))} if report.metrics else {}),
        "notes": plain(report.notes),
        "provenance": plain(provenance),
        **({"strips": plain(strips)} if strips else {}),
        "title": report.title,
        **({} if report.verdict is None else {"verdict": plain(report.verdict)}),
    }


def described(report: Report) -> dict[str, Json]:
    """What the estimates are, by what their names begin with."""
    words = ("better", "label", "sentence", "unit")
    return {m.id: {word: getattr(m, word) for word in words} for m in report.metrics}


def json_text(value: Mapping[str, Json]) -> str:
    """Plain data as JSON for people and programs; what a terminal would obey is escaped."""
    return legible_json(json.dumps(value, indent=2, ensure_ascii=False))


def plain(value: object) -> Json:
    """Any value as JSON can hold it: NaN is null, infinities and foreign objects are words.

    >>> plain({"b": (1, float("nan")), "a": {2, 1}})
    {'a': [1, 2], 'b': [1, None]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return plain_float(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, AbstractSet):
        return [plain(member) for member in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        if isinstance(value, Estimate) and value.p is None:
            del parts["p"]  # few are tested
        return plain(parts)
    return str(value)


def plain_float(value: float) -> Json:
    """A float as it is, where JSON has a word for it."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
