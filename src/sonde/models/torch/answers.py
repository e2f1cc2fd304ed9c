"""Read the likeliest and the watched answers off the log-probabilities at a hole.

Knows which tokens may be answered and what they are called; nothing of how a model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from sonde.core.answers import Filled
from sonde.core.errors import PromptError
from sonde.core.prompts import Fill
from sonde.engine.encode import MaskedEncoder, opening
from sonde.models.torch.weights import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The tokens that may be answered, ids rising, and what each is called."""

    names: Sequence[str]
    ids: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What may be answered at a hole, and the token of each watched name that may."""

    allowed: Allowed
    watched: Sequence[int | None]


class Tables:
    """Makes the table of each kind of hole once."""

    def __init__(self, loaded: Loaded, encoder: MaskedEncoder) -> None:
        self.loaded = loaded
        self.encoder = encoder
        self._allowed = lru_cache(maxsize=16)(self._make_allowed)

    def table(self, want: Fill, prefix: str) -> Table:
        """The table of a hole that comes after `prefix`."""
        before = opening(prefix)
        allowed = self._allowed(want.vocabulary, "" if want.vocabulary is None else before)
        may = set(allowed.ids.tolist())
        tokens = self.encoder.single_tokens(want.watched, before)
        watched = (tokens.get(name) for name in want.watched)
        return Table(allowed=allowed, watched=[id if id in may else None for id in watched])

    def _make_allowed(self, vocabulary: tuple[str, ...] | None, before: str) -> Allowed:
        if vocabulary is None:
            # a model may have more rows than its tokenizer has tokens, to fill up a round number
            rows = range(self.loaded.vocabulary)
            known = (id for id in rows if self.loaded.backend.id_to_token(id) is not None)
            called = {id: token_name(self.loaded, id) for id in known}
        else:
            words = self.encoder.single_tokens(vocabulary, before)
            called = {id: word for word, id in reversed(words.items())}
        ids = sorted(id for id in called if id < self.loaded.vocabulary)
        if not ids:
            where = (
                f"after {before!r}; is a space missing?" if before.strip(" .") else "of this model"
            )
            raise PromptError(f"no word of the vocabulary is a single token {where}")
        device = self.loaded.model.device
        return Allowed(names=[called[id] for id in ids], ids=torch.tensor(ids, device=device))


def read_hole(want: Fill, table: Table, logps: Any) -> Filled:
    """The answer to a prompt from the log-probabilities of every token at its hole."""
    names, allowed = table.allowed.names, logps[table.allowed.ids]
    values, places = best(allowed, min(want.top, len(names)))
    ranks, found = rank_among(allowed, logps, [id for id in table.watched if id is not None])
    rank, value = iter(ranks), iter(found)
    return Filled(
        top=tuple(names[i] for i in places),
        top_logps=tuple(values),
        watched=want.watched,
        watched_logps=tuple(None if id is None else next(value) for id in table.watched),
        watched_ranks=tuple(None if id is None else next(rank) for id in table.watched),
        mass=float(torch.logsumexp(allowed, 0)),
    )


def best(values: Any, count: int) -> tuple[list[float], list[int]]:
    """The largest values and their places; equal ones in order of place."""
    if count == 0:
        return [], []
    threshold = torch.topk(values, count).values[-1]
    places = torch.nonzero(values >= threshold)[:, 0]
    order = torch.sort(values[places], descending=True, stable=True).indices[:count]
    chosen = places[order]
    return values[chosen].tolist(), chosen.tolist()


def rank_among(allowed: Any, logps: Any, ids: list[int]) -> tuple[list[int], list[float]]:
    """For each token, how many allowed ones are at least as likely (itself counted)."""
    if not ids:
        return [], []
    values = logps[torch.tensor(ids, device=logps.device)]
    thresholds, order = torch.sort(values)
    # allowed tokens that fall below each threshold, by counting them between thresholds
    between = torch.bucketize(allowed, thresholds, right=True)
    below = torch.cumsum(torch.bincount(between, minlength=len(ids) + 1), 0)[:-1]
    ranks = torch.empty_like(order)
    ranks[order] = len(allowed) - below
    return ranks.tolist(), values.tolist()


def token_name(loaded: Loaded, id: int) -> str:
    """How a token is shown: its text, with the mark of a word's inner piece kept."""
    piece = loaded.backend.id_to_token(id) or f"<{id}>"
    if piece.startswith("##"):
        return piece
    text: str = loaded.tokenizer.decode([id]).strip()
    return text or piece
