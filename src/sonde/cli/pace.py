"""How fast something goes, and how long the rest of it will take. Knows nothing of what it is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

SETTLED = 3.0
"""Seconds after which a pace is believed."""

WINDOW = 60.0
"""Seconds that a pace is taken over."""


class Pace:
    """What was done at which second, from the first that was done at all.

    What came before that is no measure: prompts were counted, or found answered already.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self.began = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self.began

    def tick(self, done: float) -> None:
        """So much is done now."""
        if done <= (self._seen[-1][1] if self._seen else 0):
            return
        now = self._clock()
        self._seen.append((now, done))
        while now - self._seen[1 if len(self._seen) > 1 else 0][0] > WINDOW:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """How much a second, once that can be told."""
        if len(self._seen) < 2:
            return None
        (first, before), (last, done) = self._seen[0], self._seen[-1]
        return (done - before) / (last - first) if last - first >= SETTLED else None

    def left(self, total: float) -> float | None:
        """Seconds until `total` is done, once that can be told."""
        if (rate := self.rate) is None:
            return None
        last, done = self._seen[-1]
        return max((total - done) / rate - (self._clock() - last), 0.0)


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> [duration(s) for s in (0.034, 0.31, 7.2, 95, 7260, 300000)]
    ['under 0.1 s', '0.3 s', '7 s', '1 min 35 s', '2 h 1 min', '3 d 11 h']
    """
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 3:
        return f"{seconds:.1f} s"
    for large, small, unit in ((86400, 3600, "d h"), (3600, 60, "h min"), (60, 1, "min s")):
        if seconds >= large:
            whole, rest = divmod(round(seconds / small), large // small)
            big, little = unit.split()
            return f"{whole} {big} {rest} {little}" if rest else f"{whole} {big}"
    return f"{seconds:.0f} s"


def roughly(seconds: float) -> str:
    """Seconds as far as a person wants to know them ahead.

    >>> [roughly(s) for s in (0.2, 7.2, 44, 95, 601, 7260, 300000)]
    ['1 s', '8 s', '44 s', '2 min', '10 min', '2 h', '3 d']
    """
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit or (unit == 60 and seconds >= unit):
            return f"{round(seconds / unit)} {name}"
    return f"{max(int(seconds + 0.99), 1)} s"


def frequency(rate: float) -> str:
    """How often a second, or a minute, or an hour.

    >>> [frequency(rate) for rate in (1234.5, 35.2, 2.34, 0.2, 0.001)]
    ['1,234/s', '35/s', '2.3/s', '12/min', '3.6/h']
    """
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * factor >= 1 or unit == "h":
            break
    each = rate * factor
    return f"{each:,.0f}/{unit}" if each >= 10 else f"{each:.1f}/{unit}"
