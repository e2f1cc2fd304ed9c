"""How numbers are put into the sentences of a report. Knows estimates alone."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.core.reports import Estimate

NAMED = 8


def points(share: float) -> str:
    """A difference of shares in points, with its sign.

    >>> points(0.0312), points(-0.5), points(-0.0001)
    ('+3.1', '−50.0', '+0.0')
    """
    rounded = round(100 * share, 1) + 0.0  # no minus before a zero
    return f"{rounded:+.1f}".replace("-", "−")


def in_points(difference: Estimate) -> str:
    """A difference with its interval.

    >>> in_points(Estimate(value=0.1, low=0.05, high=0.15, n=9))
    '+10.0 points (+5.0 to +15.0)'
    """
    if difference.value is None or difference.low is None or difference.high is None:
        return "not measured"
    ends = f"{points(difference.low)} to {points(difference.high)}"
    return f"{points(difference.value)} points ({ends})"


def sided(difference: Estimate, above: str, below: str, neither: str) -> str:
    """The word for a difference: above or below 0 as a whole interval, or neither.

    >>> sided(Estimate(value=0.1, low=0.05, high=0.15, n=9), "above", "below", "not told from")
    'clearly above'
    """
    if difference.low is not None and difference.low > 0:
        return f"clearly {above}"
    if difference.high is not None and difference.high < 0:
        return f"clearly {below}"
    return neither


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Names in a sentence, the first few of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
