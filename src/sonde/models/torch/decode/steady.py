"""Turn uniform numbers into tokens so that a little rounding changes few of them.

Laying all tokens end to end and looking where a number falls, as `engine.sampling.split` does, is
exact but not steady: a shift of the running sum by a millionth moves every number that falls among
tokens rarer than that. Here a number goes down a tree over the vocabulary, the tokens of a node
parted in four and a fresh number drawn from the first for each parting: it changes its way only
where shares of a parting change. A distribution that is off by some share moves two to three times
that share of the draws, where laying end to end moves fifty times as many (decisions/041).
"""

from __future__ import annotations

from typing import Any

import torch

PARTS = 4
GOLDEN = 0x9E3779B97F4A7C15 - 2**64
FIRST = 0xBF58476D1CE4E5B9 - 2**64
SECOND = 0x94D049BB133111EB - 2**64


def steady_tokens(running: Any, draws: Any) -> Any:
    """The token of every draw, [rows, n]; one without weight is never taken.

    `running` are sums of weights [rows, tokens], `draws` [rows, n] lie in [0, 1); both are double.
    """
    size = running.shape[-1]
    levels = next(n for n in range(64) if PARTS**n >= size)
    at = torch.zeros_like(draws, dtype=torch.long)
    edges = torch.arange(PARTS + 1, device=draws.device)
    for level, fresh in enumerate(numbers(draws, levels), 1):
        width = PARTS ** (levels - level)
        places = (at[..., None] + width * edges).clamp(max=size)
        sums = running.gather(-1, (places - 1).clamp(min=0).flatten(1)).view_as(places)
        sums = torch.where(places > 0, sums, 0.0)
        inside = sums[..., 1:] - sums[..., :1]
        sought = fresh * inside[..., -1]
        # a part without weight is passed over, at the end too, lest rounding lead into it
        passed = (inside[..., :-1] <= sought[..., None]) & (inside[..., :-1] < inside[..., -1:])
        at = at + width * passed.sum(-1)
    return at


def numbers(draws: Any, count: int) -> list[Any]:
    """So many uniform numbers for each draw, which depend on it alone (splitmix64)."""
    state = _mixed((draws * 2**53).long())
    found = []
    for _ in range(count):
        state = state + GOLDEN
        found.append(_shifted(_mixed(state), 11).double() * 2.0**-53)
    return found


def _mixed(words: Any) -> Any:
    """The words, bits stirred; products wrap around."""
    words = (words ^ _shifted(words, 30)) * FIRST
    words = (words ^ _shifted(words, 27)) * SECOND
    return words ^ _shifted(words, 31)


def _shifted(words: Any, bits: int) -> Any:
    """Words without sign, moved to the right."""
    return (words >> bits) & (2 ** (64 - bits) - 1)
