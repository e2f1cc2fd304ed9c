"""Texts whose tokens are to be read, as asks: whole, along the nodes of their tree, or by both.

All ways give the same numbers, up to a server's rounding; which is cheapest depends on how a server
shares what texts have in common. Knows token ids, nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.models.served.asks import Ask, Floats, Ids, Kind, Next, Rate
from sonde.models.served.dialect import Dialect, Divides

REQUEST = 32
"""Tokens that a server could compute while it takes a request, about."""


NODES = 16
"""How many times the tokens of all texts may stand in their nodes, for these to be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Token ids, and the places of those that are read, rising; the first place is not 0."""

    ids: Ids
    reads: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Texts, and for each the asks that together read all of its places."""

    texts: Sequence[Text]
    asks: Sequence[Sequence[Rate | Next]]

    @property
    def owners(self) -> dict[Ask, list[int]]:
        """The asks, and which texts each is for."""
        found: dict[Ask, list[int]] = {}
        for number, asks in enumerate(self.asks):
            for ask in asks:
                found.setdefault(ask, []).append(number)
        return found

    def values(self, results: Mapping[Ask, Floats]) -> list[Floats]:
        """The log-probabilities of what is read of each text."""
        wanted = {
            ask: dict(zip(ask.wanted, values.tolist(), strict=True))
            for ask, values in results.items()
            if isinstance(ask, Next)
        }
        found = []
        for text, asks in zip(self.texts, self.asks, strict=True):
            known: dict[int, float] = {}
            for ask in asks:
                if isinstance(ask, Rate):
                    known |= enumerate(results[ask].tolist(), ask.first)
                else:
                    place = len(ask.ids)
                    known[place] = wanted[ask][text.ids[place]]
            found.append(np.array([known[place] for place in text.reads]))
        return found


def whole(texts: Sequence[Text], dialect: Dialect) -> Reading:
    """Each text asked at once, from the first token that is read to the last, where that can be."""
    return Reading(texts=texts, asks=[asks_of(text, dialect) for text in texts])


def asks_of(text: Text, dialect: Dialect) -> list[Rate | Next]:
    """A text by itself: one ask, or those in which such a server reads it."""
    if isinstance(dialect, Divides):
        return dialect.divide(text.ids, text.reads)
    return [Rate(text.ids[: text.reads[-1] + 1], text.reads[0])]


def by_nodes(texts: Sequence[Text], widest: int) -> Reading:
    """Each beginning after which tokens are read asked once, for all these; `widest` at a time."""
    nodes = _nodes(texts)
    parts = {ids: _parts(ids, wanted, widest) for ids, wanted in nodes.items()}
    asks = [[parts[text.ids[:p]][text.ids[p]] for p in text.reads] for text in texts]
    return Reading(texts=texts, asks=asks)


def by_both(texts: Sequence[Text], dialect: Divides) -> Reading:
    """Beginnings before many tokens asked once for all these, what is left text by text."""
    nodes = _nodes(texts)
    wide = {
        ids: Next(ids, tuple(wanted))
        for ids, wanted in nodes.items()
        if dialect.wide <= len(wanted) <= dialect.widest
    }
    asks: list[list[Rate | Next]] = []
    for text in texts:
        shared = [wide[ids] for p in text.reads if (ids := text.ids[:p]) in wide]
        places = {len(ask.ids) for ask in shared}
        rest = tuple(p for p in text.reads if p not in places)
        asks.append([*shared, *(dialect.divide(text.ids, rest) if rest else ())])
    return Reading(texts=texts, asks=asks)


def cheapest(dialect: Dialect, can: Collection[Kind], texts: Sequence[Text]) -> Reading:
    """The way that takes a server least, of those that it can."""
    ways: list[Reading] = [whole(texts, dialect)] if "rate" in can else []
    # a node holds all that stands before it: long texts that are read throughout have too many
    far = sum(sum(text.reads) for text in texts) > NODES * sum(len(text.ids) for text in texts)
    if "next" in can and not (ways and far):
        ways.append(by_nodes(texts, dialect.widest))
        if "rate" in can and isinstance(dialect, Divides):
            ways.append(by_both(texts, dialect))
    return ways[0] if len(ways) == 1 else min(ways, key=lambda way: weight(dialect, way))


def weight(dialect: Dialect, reading: Reading) -> int:
    """About what a way takes a server, in tokens."""
    asks = list(reading.owners)
    return dialect.computes(asks) + REQUEST * len(dialect.requests(asks))


def _nodes(texts: Sequence[Text]) -> dict[Ids, dict[int, None]]:
    """The tokens that are read after each beginning."""
    nodes: dict[Ids, dict[int, None]] = {}
    for text in texts:
        for place in text.reads:
            nodes.setdefault(text.ids[:place], {})[text.ids[place]] = None
    return nodes


def _parts(ids: Ids, wanted: Iterable[int], widest: int) -> dict[int, Next]:
    """The ask that each token of a node is in."""
    tokens = list(wanted)
    parts = [tuple(tokens[i : i + widest]) for i in range(0, len(tokens), widest)]
    return {token: Next(ids, part) for part in parts for token in part}
