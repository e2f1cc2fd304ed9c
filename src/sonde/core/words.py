"""How numbers are put into the sentences of a report, and text that others wrote made safe to see.

Knows estimates, and of terminals nothing but that they obey control characters (C0, DEL and C1,
from which every escape sequence is made), and let some others turn the order of what is read: what
a terminal would obey is spelt out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sonde.core.reports import Estimate

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # all controls but tab and newline
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides and isolates of bidirectional text
    "\ud800-\udfff]"  # halves of characters, as names of files that are not UTF-8 have them
)


def legible(text: str) -> str:
    r"""The text with an escape, as Python writes it, for each character that would be obeyed.

    >>> print(legible("caf\u00e9 \x1b[31m\r\x9b1m \u202e"))
    café \x1b[31m\r\x9b1m \u202e
    """
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def legible_json(text: str) -> str:
    r"""A JSON text that means the same, with JSON's own escapes for such characters.

    >>> print(legible_json('["\x9b1m"]'))
    ["\u009b1m"]
    """
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


NAMED = 8

LEVEL = 0.05
"""A difference is told from chance where a test gives a smaller p."""

SMALL_P = 0.001
"""A p below it is called just that."""


def points(share: float) -> str:
    """A difference of shares in points, with its sign.

    >>> points(0.0312), points(-0.5), points(-0.0001)
    ('+3.1', '−50.0', '0.0')
    """
    shown = f"{100 * share:+.1f}".replace("-", "−")
    return "0.0" if shown in ("−0.0", "+0.0") else shown


def in_points(difference: Estimate) -> str:
    """A difference with its interval, if it has one.

    >>> in_points(Estimate(value=0.1, low=0.05, high=0.15, n=9))
    '+10.0 points (+5.0 to +15.0)'
    """
    if difference.value is None:
        return "not measured"
    if difference.low is None or difference.high is None:
        return f"{points(difference.value)} points"
    low, high = points(difference.low), points(difference.high)
    ends = f" ({low} to {high})" if low != high else ""
    return f"{points(difference.value)} points{ends}"


def written(estimate: Estimate, form: str = ".3f") -> str:
    """A number with its interval in a sentence.

    >>> written(Estimate(value=0.5, low=0.4, high=0.61, n=9))
    '0.500 (0.400 to 0.610)'
    >>> written(Estimate(value=0.5, low=None, high=None, n=9), ".1%")
    '50.0%'
    """
    if estimate.value is None:
        return "not measured"
    ends = ""
    if estimate.low is not None and estimate.high is not None:
        ends = f" ({estimate.low:{form}} to {estimate.high:{form}})"
    return f"{estimate.value:{form}}{ends}".replace("-", "−")


def sided(
    difference: Estimate, above: str, below: str, neither: str, p: float | None = None
) -> str:
    """The word for a difference: clearly above or below 0, or neither.

    >>> sided(Estimate(value=0.1, low=0.05, high=0.15, n=9), "above", "below", "like")
    'clearly above'
    """
    if not told_apart(difference, p):
        return neither
    return f"clearly {above if (difference.value or 0.0) > 0 else below}"


def told_apart(difference: Estimate, p: float | None = None) -> bool:
    """Whether a difference is significant: its test decides, or its interval if it has no test.

    The test is the difference's own unless another p is given, such as one corrected for many
    comparisons.
    """
    low, high, p = difference.low, difference.high, difference.p if p is None else p
    if low is None or high is None:
        return False
    return low > 0 or high < 0 if p is None else p < LEVEL


def by_test(difference: Estimate, p: float | None = None) -> Estimate:
    """A difference whose interval agrees with its test, so that both give one verdict.

    The interval is extended to 0 where p is 0.05 or larger, and cut at 0 where p is smaller.

    >>> by_test(Estimate(value=0.1, low=0.05, high=0.15, n=9), 0.066).ends
    (0.0, 0.15)
    >>> by_test(Estimate(value=0.1, low=-0.05, high=0.15, n=9), 0.03).ends
    (0.0, 0.15)
    """
    p = difference.p if p is None else p
    value, low, high = difference.value, difference.low, difference.high
    if p is None or value is None or low is None or high is None:
        return replace(difference, p=p)
    if p >= LEVEL:
        return replace(difference, p=p, low=min(low, 0.0), high=max(high, 0.0))
    low, high = max(low, 0.0) if value > 0 else low, min(high, 0.0) if value < 0 else high
    return replace(difference, p=p, low=low, high=high)


def clearly(
    difference: Estimate, above: str, below: str, neither: str, p: float | None = None
) -> str:
    """The word for a difference, with the difference and its interval in brackets.

    >>> clearly(Estimate(value=0.1, low=0.05, high=0.15, n=9), "above", "below", "like")
    'clearly above (+10.0 points, +5.0 to +15.0)'
    """
    if difference.value is None:
        return "not measured"
    difference = by_test(difference, p)
    word = sided(difference, above, below, neither)
    return f"{word} ({in_points(difference).replace(' (', ', ').rstrip(')')})"


def trust(overconf: Estimate) -> str:
    """Whether confidence can be trusted; nothing where it was not measured.

    >>> trust(Estimate(value=-0.1, low=-0.15, high=-0.05, n=9))
    'The model is underconfident: confidence minus accuracy is −10.0 points (−15.0 to −5.0).'
    """
    if overconf.value is None:
        return ""
    if not told_apart(overconf):
        return f"On average confidence is not distinguishable from accuracy: {in_points(overconf)}."
    word = "overconfident" if overconf.value > 0 else "underconfident"
    return f"The model is {word}: confidence minus accuracy is {in_points(overconf)}."


def named(claim: str, question: str, best: str, tied: Sequence[str], most: int = NAMED) -> str:
    """A claim about who is first, or that it cannot be told, where some are tied with it.

    >>> named("a is best.", "Which is best", "a (31.0%)", ["b"])
    'Which is best cannot be told: a (31.0%) is not distinguishable from b.'
    """
    if not tied:
        return claim
    return f"{question} cannot be told: {best} is not distinguishable from {listed(tied, most)}."


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Names in a sentence, the first few of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(count: int, one: str, many: str) -> str:
    """A number with what it counts.

    >>> counted(1, "fact is", "facts are"), counted(1200, "fact is", "facts are")
    ('1 fact is', '1,200 facts are')
    """
    return f"{count:,} {one if count == 1 else many}"
