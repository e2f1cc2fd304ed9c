"""Texts whose tokens are to be read, as asks: whole, or along the nodes of the tree they form.

Both ways give the same numbers, up to a server's rounding; which is cheaper depends on how a server
shares what texts have in common. Knows token ids, nothing of prompts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.models.served.asks import Ask, Floats, Ids, Kind, Next, Rate
from sonde.models.served.dialect import Dialect

REQUEST = 32
"""Tokens that a server could compute while it takes a request, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Token ids, and the places of those that are read, rising; the first place is not 0."""

    ids: Ids
    reads: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Each text asked at once, from the first token that is read to the last."""

    texts: Sequence[Text]

    @property
    def owners(self) -> dict[Ask, list[int]]:
        """The asks, and which texts each is for."""
        found: dict[Ask, list[int]] = {}
        for number, text in enumerate(self.texts):
            found.setdefault(self._ask(text), []).append(number)
        return found

    def values(self, results: Mapping[Ask, Floats]) -> list[Floats]:
        """The log-probabilities of what is read of each text."""
        return [
            results[self._ask(text)][np.array(text.reads) - text.reads[0]] for text in self.texts
        ]

    def _ask(self, text: Text) -> Rate:
        return Rate(text.ids[: text.reads[-1] + 1], text.reads[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Each beginning after which tokens are read asked once, for all these; `widest` at a time."""

    texts: Sequence[Text]
    widest: int

    @property
    def owners(self) -> dict[Ask, list[int]]:
        """The asks, and which texts each is for."""
        found: dict[Ask, list[int]] = {}
        for ids, readers in self._nodes().items():
            wanted = list(readers)
            for start in range(0, len(wanted), self.widest):
                part = wanted[start : start + self.widest]
                found[Next(ids, tuple(part))] = [n for token in part for n in readers[token]]
        return found

    def values(self, results: Mapping[Ask, Floats]) -> list[Floats]:
        """The log-probabilities of what is read of each text."""
        known: dict[Ids, dict[int, float]] = {}
        for ask, logps in results.items():
            assert isinstance(ask, Next)
            known.setdefault(ask.ids, {}).update(zip(ask.wanted, logps.tolist(), strict=True))
        return [
            np.array([known[text.ids[:place]][text.ids[place]] for place in text.reads])
            for text in self.texts
        ]

    def _nodes(self) -> dict[Ids, dict[int, list[int]]]:
        """The tokens that are read after each beginning, and in which texts."""
        nodes: dict[Ids, dict[int, list[int]]] = {}
        for number, text in enumerate(self.texts):
            for place in text.reads:
                readers = nodes.setdefault(text.ids[:place], {})
                readers.setdefault(text.ids[place], []).append(number)
        return nodes


Reading = Whole | Nodes


def cheapest(dialect: Dialect, can: Collection[Kind], texts: Sequence[Text]) -> Reading:
    """The way that takes a server least, of those that it can."""
    ways: list[Reading] = [Whole(texts=texts)] if "rate" in can else []
    if "next" in can:
        ways.append(Nodes(texts=texts, widest=dialect.widest))
    return ways[0] if len(ways) == 1 else min(ways, key=lambda way: weight(dialect, way))


def weight(dialect: Dialect, reading: Reading) -> int:
    """About what a way takes a server, in tokens."""
    asks = list(reading.owners)
    return dialect.computes(asks) + REQUEST * len(dialect.requests(asks))
