"""Which of several does best, and who cannot be told from it. Knows values and tests alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sonde.core.words import LEVEL
from sonde.stats.paired import holm

Test = Callable[[str, str], float]
"""The p of the difference between two, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """The one of several with the best value, and the others that are not told from it."""

    best: str
    value: float
    tied: tuple[str, ...]


def lead(values: Mapping[str, float], test: Test, *, lowest: bool = False) -> Lead | None:
    """Who has the highest value, or the lowest; None where there is nobody to lead.

    Each of the others is tested against it; the p values are corrected for how many these are
    (Holm), since with many to choose from one is first by chance.
    """
    if len(values) < 2:
        return None
    best = (min if lowest else max)(values, key=lambda name: values[name])
    others = [name for name in values if name != best]
    found = [1.0 if values[name] == values[best] else test(best, name) for name in others]
    tied = (name for name, p in zip(others, holm(found), strict=True) if p >= LEVEL)
    return Lead(best=best, value=values[best], tied=tuple(tied))
