"""How numbers are put into the sentences of a report, and text that others wrote made safe to see.

Knows estimates, and of terminals nothing but that they obey control characters (C0, DEL and C1,
from which every escape sequence is made), and let some others turn the order of what is read: what
a terminal would obey is spelt out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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

    An interval of few facts may leave out 0 where a test does not tell the difference from none.

    >>> in_points(Estimate(value=0.1, low=0.05, high=0.15, n=9, p=0.066))
    '+10.0 points (+5.0 to +15.0, but p = 0.066)'
    """
    if difference.value is None:
        return "not measured"
    if difference.low is None or difference.high is None:
        return f"{points(difference.value)} points"
    low, high, p = points(difference.low), points(difference.high), difference.p
    beside = difference.low > 0 or difference.high < 0
    test = f", but p = {p:.3f}" if beside and p is not None and p >= LEVEL else ""
    ends = f" ({low} to {high}{test})" if low != high else ""
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


def shown_p(p: float | None) -> str:
    """A p value as it is read.

    >>> shown_p(0.0312), shown_p(0.0002), shown_p(None)
    ('0.031', '<0.001', '–')
    """
    if p is None:
        return "–"
    return f"<{SMALL_P}" if p < SMALL_P else f"{p:.3f}"


def sided(
    difference: Estimate, above: str, below: str, neither: str, p: float | None = None
) -> str:
    """The word for a difference: above or below 0 as a whole interval, or neither.

    >>> sided(Estimate(value=0.1, low=0.05, high=0.15, n=9), "above", "below", "like")
    'clearly above'
    """
    if not told_apart(difference, p):
        return neither
    return f"clearly {above if (difference.value or 0.0) > 0 else below}"


def told_apart(difference: Estimate, p: float | None = None) -> bool:
    """Whether a difference is told from none: by its interval, and by a test where there is one.

    That is the difference's own unless another p is given, such as one corrected for many looks.
    """
    low, high, p = difference.low, difference.high, difference.p if p is None else p
    apart = low is not None and high is not None and (low > 0 or high < 0)
    return apart and (p is None or p < LEVEL)


def above_zero(difference: Estimate, p: float | None = None) -> bool:
    """Whether a difference is told to be above 0."""
    return told_apart(difference, p) and (difference.value or 0.0) > 0


def clearly(
    difference: Estimate, above: str, below: str, neither: str, p: float | None = None
) -> str:
    """The word for a difference, with the difference and its interval in brackets.

    >>> clearly(Estimate(value=0.1, low=0.05, high=0.15, n=9), "above", "below", "like")
    'clearly above (+10.0 points, +5.0 to +15.0)'
    """
    if difference.value is None:
        return "not measured"
    word = sided(difference, above, below, neither, p)
    return f"{word} ({in_points(difference).replace(' (', ', ').rstrip(')')})"


def against_control(what: str, above: Estimate) -> str:
    """How a number stands to that of the control; nothing where it was not measured.

    >>> against_control("P@1", Estimate(value=0.1, low=0.05, high=0.15, n=9))
    'P@1 is clearly above the majority control: +10.0 points (+5.0 to +15.0).'
    """
    if above.value is None:
        return ""
    word = sided(above, "above", "below", "not distinguishable from")
    return f"{what} is {word} the majority control: {in_points(above)}."


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
