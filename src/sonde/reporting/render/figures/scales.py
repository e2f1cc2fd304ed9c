"""Straight scales from values to pixels, and round numbers along them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sonde.reporting.render.cells import Scale, digits_for, fixed, plain_number

ROUND = (1, 2, 5)
EDGE = 1e-9  # of a step: what rounding may add at the ends of a reach


@dataclass(frozen=True, slots=True)
class Linear:
    """A scale from values between `low` and `high` to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def length(self) -> float:
        """How many pixels it spans."""
        return abs(self.end - self.start)


def ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most so many round numbers from low to high, evenly apart; whole ones if asked for.

    >>> ticks(0, 1.03, 6), ticks(0, 2.4, 9, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 1.0, 2.0])
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return [low]
    for step in steps((high - low) / most, whole):
        first, last = math.ceil(low / step - EDGE), math.floor(high / step + EDGE)
        if last - first < most:
            digits = max(0, 2 - math.floor(math.log10(step)))
            return [round(k * step, digits) + 0.0 for k in range(first, last + 1)]
    return [low]


def steps(least: float, whole: bool) -> Iterator[float]:
    """Round distances between numbers, from about the least one on."""
    power = math.floor(math.log10(max(least, 1e-300)))
    for exponent in range(power, power + 3):
        for digit in ROUND:
            step = digit * 10.0**exponent
            if step >= 1 or not whole:
                yield step
    if whole:
        yield 1.0


def tick_words(places: Sequence[float], scale: Scale) -> list[str]:
    """Round numbers as an axis writes them: with as many decimals as tell them apart."""
    step = min((b - a for a, b in pairwise(places)), default=0.0)
    if scale == "percent":
        digits = digits_for(step) if step else 0
        return [fixed(place * 100, digits) + "%" for place in places]
    if 0 < step < 0.0005:
        return [plain_number(place) for place in places]
    digits = max(0, math.ceil(-math.log10(step) - EDGE)) if step else 0 if whole(places) else 2
    return [fixed(place, digits) for place in places]


def whole(values: Iterable[float]) -> bool:
    """Whether all values are whole numbers: then those between them mean nothing."""
    return all(float(value).is_integer() for value in values)


def from_zero(ends: Iterable[float], scale: Scale) -> tuple[float, float]:
    """The reach of an axis that starts at zero where nothing is negative; shares end at 100 %."""
    values = [0.0, *(end for end in ends if math.isfinite(end))]
    low, high = min(values), max(values)
    high = high if high > low else low + 1.0
    pad = (high - low) * 0.03
    top = min(high + pad, max(high, 1.01)) if scale == "percent" else high + pad
    return (low - pad if low < 0 else 0.0), top
