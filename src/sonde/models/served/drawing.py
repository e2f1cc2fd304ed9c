"""Hold the tokens that a server draws against how likely it says that they are.

A server may draw at a temperature of its own, or among the likeliest tokens only, while all the
log-probabilities that it tells are sound. So single tokens are drawn in one place, and the evidence
is weighed that they come from other odds. A server whose draws are sound is refused less than once
in a million times, whatever its model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from math import exp, log

import numpy as np

from sonde.engine.token_texts import BROKEN
from sonde.models.served.asking import Fails, ask_all
from sonde.models.served.asks import Draw, Ids, Kind, Written
from sonde.models.served.dialect import bare
from sonde.models.served.forcing import Tests
from sonde.models.served.reading import Text

DRAWN, ONE_BY_ONE = 256, 128
"""Tokens that are drawn; fewer of a server that draws one a request."""

KNOWN = 64
"""Different tokens, the first that are drawn, whose probabilities are asked for."""

CERTAIN = log(1e6)
"""Evidence, as the logarithm of a ratio of odds, that a sound server gives once in a million."""

POWERS, SHARES = (0.7, 1.0, 1.3, 1.7, 2.5), (0.1, 0.25, 0.5, 1.0, 2.0)
"""What odds may be instead: probabilities to a power, as at a temperature, and tokens that were not
drawn before more or less likely by a factor, as where a vocabulary is cut."""

LEAST = 1e-3
"""The least probability of all tokens that were not drawn before, against rounding."""

Token = int | str | None
"""A drawn token: its id, or its text where a server tells only that; None: it cannot be told."""


def check_draws(tests: Tests, can: Collection[Kind]) -> None:
    """Refuse a server that draws otherwise than by the log-probabilities that it tells."""
    tokens = drawn_tokens(tests)
    found = evidence(tokens, probabilities(tests, can, tokens))
    noise = len(tokens) * tests.spread**2  # what numbers that move so far may add to it
    if found > CERTAIN + noise:
        raise Fails(
            "it draws other tokens than its log-probabilities say, as at another temperature or "
            f"among the likeliest alone: {len(tokens)} that it drew in one place are "
            f"10^{found / log(10):.0f} times as likely so"
        )


def drawn_tokens(tests: Tests) -> list[Token]:
    """Tokens that are drawn in one place, each by itself."""
    most = tests.dialect.draws
    count = DRAWN if most > 1 else ONE_BY_ONE
    sizes = [min(most, count - start) for start in range(0, count, most)]
    # far apart, because a server may count on from the seed of a request
    asks = [Draw(place_of(tests), size, 1, "", 7919 * n + 11) for n, size in enumerate(sizes)]
    found = ask_all(tests.transport, tests.dialect, asks)
    return [_token(each) for drawn in found for each in drawn]


def place_of(tests: Tests) -> Ids:
    """Words that lead nowhere, behind which many tokens are likely."""
    return tests.opening + tests.forced


def _token(written: Written) -> Token:
    if written.ids:
        return written.ids[0]
    word = bare(written.text)
    return word if word and BROKEN not in word else None


def probabilities(
    tests: Tests, can: Collection[Kind], tokens: Sequence[Token]
) -> dict[Token, float]:
    """How likely the first different ones of drawn tokens are, by the server's own numbers.

    A text is as likely as all tokens with it, spaces aside, which not every server tells.
    """
    plain, place = tests.tokens.texts.plain, place_of(tests)
    alike: dict[Token, list[int]] = {}
    for token in [each for each in dict.fromkeys(tokens) if each is not None][:KNOWN]:
        alike[token] = [token] if isinstance(token, int) else []
    for id, text in enumerate(plain):
        if text is not None and (word := bare(text)) in alike:
            alike[word].append(id)
    wanted = [id for ids in alike.values() for id in ids]
    texts = [Text(ids=(*place, id), reads=(len(place),)) for id in wanted]
    values = tests.read(texts, can) if texts else []
    known = {id: exp(float(logps[0])) for id, logps in zip(wanted, values, strict=True)}
    return {token: sum(known[id] for id in ids) for token, ids in alike.items() if ids}


def evidence(tokens: Sequence[Token], odds: Mapping[Token, float]) -> float:
    """How much likelier drawn tokens are by other odds than by these: the logarithm of a mean.

    Each is looked at as one of those before it or as any other, of which the probability is known
    without that of all tokens. Where tokens are drawn by their odds, the ratio is 1 on average,
    so that it is above a million once in a million times at most.
    """
    ways = list(product(POWERS, SHARES))
    ratios = np.zeros(len(ways))
    before: dict[Token, int] = {}
    for token in tokens:
        known = np.array([odds[each] for each in before])
        rest = max(1.0 - float(known.sum()), LEAST)
        for number, (power, share) in enumerate(ways):
            other = share * rest / (share * rest + 1.0 - min(rest, 1.0))
            if token in before:
                bent = known**power
                own = bent[before[token]] / bent.sum() * (1.0 - other)
                ratios[number] += log(own / known[before[token]])
            else:
                ratios[number] += log(other / rest)
        if token in odds:
            before.setdefault(token, len(before))
    top = float(ratios.max())
    return top + log(float(np.exp(ratios - top).mean()))
