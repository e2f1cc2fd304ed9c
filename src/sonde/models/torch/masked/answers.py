"""Read the likeliest and the watched answers off the logits at many masked positions.

Knows which tokens may be answered and what they are called; nothing of how a model is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from sonde.core.columns import FilledColumns
from sonde.core.errors import PromptError
from sonde.core.prompts import Fill
from sonde.engine.encode import opening
from sonde.engine.masked_batch import MaskedEncoder
from sonde.models.torch.loading.device import fetched, onto
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.masked import kernels

SPARE = {"cpu": 0, "cuda": 8}
"""Answers that are fetched beside those that are wanted, so that ties need no second look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The tokens that may be answered, ids rising, and what each is called.

    `all`: they are every token of the model.
    """

    names: Sequence[str]
    ids: Any
    may: frozenset[int]
    all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What may be answered at a mask, and the tokens of the watched names that may, as an array.

    `columns[j]` is where the token of the watched name j stands in `ids`; -1 if it may not.
    """

    allowed: Allowed
    ids: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, allowed: Allowed, tokens: Mapping[str, int], watched: Sequence[str]) -> Table:
        """The table of some watched names, given the token of each that is one."""
        found = {name: id for name, id in tokens.items() if id in allowed.may}
        column = {name: j for j, name in enumerate(found)}
        return cls(
            allowed=allowed,
            ids=np.array(list(found.values()), dtype=np.int64),
            columns=np.array([column.get(name, -1) for name in watched], dtype=np.int64),
        )


Kind = tuple[Fill, Table]
"""What is wanted of a masked position, and what may be answered there."""


class Tables:
    """Makes the table of each kind of masked position once."""

    def __init__(self, loaded: Loaded, encoder: MaskedEncoder) -> None:
        self.loaded = loaded
        self.encoder = encoder
        self._allowed = lru_cache(maxsize=16)(self._make_allowed)
        self._table = lru_cache(maxsize=64)(self._make_table)

    def table(self, want: Fill, prefix: str) -> Table:
        """The table of a masked position after `prefix`."""
        return self._table(want, opening(prefix))

    def _make_table(self, want: Fill, before: str) -> Table:
        capitals = want.capitals
        free = want.vocabulary is None
        allowed = self._allowed(want.vocabulary, "" if free else before, not free and capitals)
        tokens = self.encoder.single_tokens(want.watched, before, capitals=capitals)
        return Table.of(allowed, tokens, want.watched)

    def _make_allowed(
        self, vocabulary: tuple[str, ...] | None, before: str, capitals: bool
    ) -> Allowed:
        if vocabulary is None:
            called = {id: token_name(self.loaded, id) for id in self.loaded.answerable}
        else:
            words = self.encoder.single_tokens(vocabulary, before, capitals=capitals)
            called = {id: word for word, id in reversed(words.items())}
        ids = sorted(set(self.loaded.answerable).intersection(called))
        if not ids:
            where = (
                f"after {before!r}; is a space missing?" if before.strip(" .") else "of this model"
            )
            raise PromptError(f"no word of the vocabulary is a single token {where}")
        device = self.loaded.model.device
        return Allowed(
            names=[called[id] for id in ids],
            ids=torch.tensor(ids, device=device),
            may=frozenset(ids),
            all=len(ids) == self.loaded.rows,
        )


def read_masked(
    kinds: Sequence[Kind], which: np.ndarray, logits: Any
) -> Callable[[], list[tuple[np.ndarray, FilledColumns]]]:
    """Begin to read the answers off the logits at some masks, [masks, vocabulary] in float32.

    Mask i is of the kind `which[i]`; all kinds here allow the same tokens and keep as many. What
    is returned waits for the device and gives, for each kind, its masks and their answers.
    """
    (want, table), device = kinds[0], logits.device
    allowed = logits if table.allowed.all else logits[:, table.allowed.ids]
    count = min(want.top, allowed.shape[1])
    sums, found, indices = summits(allowed, min(count + 1 + SPARE[device.type], allowed.shape[1]))
    norms = sums if table.allowed.all else torch.logsumexp(logits, -1)
    mass = sums - norms
    which_there = onto(device, which)
    values = logits.gather(1, laid_out([table.ids for _, table in kinds], device, 0)[which_there])
    # a last column, for names that may not be answered
    logps = torch.nn.functional.pad(values - norms[:, None], (0, 1), value=torch.nan)
    ranked = torch.nn.functional.pad(rank_rows(allowed, values), (0, 1))
    names = laid_out([table.columns for _, table in kinds], device, -1)
    names = torch.where(names < 0, values.shape[1], names)[which_there]
    small = torch.int16 if allowed.shape[1] <= np.iinfo(np.uint16).max else torch.int32
    # masks of one kind next to each other, so that the answers to them need not be copied
    order = np.argsort(which, kind="stable")
    there = slice(None) if len(kinds) == 1 else onto(device, order)
    watched = fetched(logps.gather(1, names)[there])
    ranks = fetched(ranked.gather(1, names).to(small)[there])
    top, places, norm, rest = map(fetched, (found, indices, norms, mass))

    def read() -> list[tuple[np.ndarray, FilledColumns]]:
        best, at = in_order(top(), places(), count, allowed)
        unsigned = ranks().view(np.uint16 if small == torch.int16 else np.uint32)
        whole = FilledColumns(
            names=table.allowed.names,
            top=at[order],
            top_logps=(best - norm()[:, None])[order],
            mass=rest()[order],
            watched=(),
            watched_logps=watched(),
            watched_ranks=unsigned,
        )
        return [(order[rows], of_kind(whole, kind, rows)) for kind, rows in runs(kinds, which)]

    return read


def summits(values: Any, count: int) -> tuple[Any, Any, Any]:
    """Of each row the log-sum-exp, its `count` largest values and where these stand."""
    if values.device.type == "cuda" and kernels.usable(values.device):
        return by_groups(values, count)
    return torch.logsumexp(values, -1), *torch.topk(values, count)


def by_groups(values: Any, count: int) -> tuple[Any, Any, Any]:
    """What `summits` gives, for a device that looks at all values once and then at some groups."""
    norms, peaks = kernels.peaks(values.contiguous())
    # the largest lie in the groups with the highest peaks, of which there are no more than of them
    groups = torch.topk(peaks, min(count, peaks.shape[1])).indices
    inside = torch.arange(kernels.GROUP, device=values.device)
    places = (groups[:, :, None] * kernels.GROUP + inside).flatten(1)
    width = values.shape[1]
    near = values.gather(1, places.clamp(max=width - 1)).masked_fill_(places >= width, -torch.inf)
    found = torch.topk(near, count)
    return norms, found.values, places.gather(1, found.indices)


def runs(kinds: Sequence[Kind], which: np.ndarray) -> Iterator[tuple[Kind, slice]]:
    """Each kind that is there, and where its masks stand when all are in the order of kinds."""
    ends = np.cumsum(np.bincount(which, minlength=len(kinds))).tolist()
    for kind, start, end in zip(kinds, [0, *ends], ends, strict=False):
        if start < end:
            yield kind, slice(start, end)


def of_kind(answers: FilledColumns, kind: Kind, rows: slice) -> FilledColumns:
    """The answers at some masks, with as many watched names as are wanted there."""
    names = kind[0].watched
    own = answers.rows(rows)
    return replace(
        own,
        watched=names,
        watched_logps=own.watched_logps[:, : len(names)],
        watched_ranks=own.watched_ranks[:, : len(names)],
    )


def laid_out(rows: Sequence[np.ndarray], device: Any, rest: int) -> Any:
    """Arrays as rows of one on the device, shorter ones filled up with `rest`."""
    table = np.full((len(rows), max(map(len, rows))), rest, dtype=np.int64)
    for row, own in zip(table, rows, strict=True):
        row[: len(own)] = own
    return onto(device, table)


def in_order(
    values: np.ndarray, places: np.ndarray, count: int, allowed: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` largest of each row, equal ones in order of place.

    Given are the largest and at least one more, equal ones in any order. Where the last of them
    equals the last that counts, places that were not given may come before it: such rows are looked
    at again.
    """
    tied = np.flatnonzero(~(values[:, 1:] < values[:, :-1]).all(axis=1))
    if len(tied) == 0:
        return values[:, :count], places[:, :count]
    values, places = values.copy(), places.copy()
    order = np.lexsort((places[tied], -values[tied]), axis=-1)
    values[tied] = np.take_along_axis(values[tied], order, -1)
    places[tied] = np.take_along_axis(places[tied], order, -1)
    if 0 < count < values.shape[1] < allowed.shape[1]:
        for row in tied[values[tied, count - 1] == values[tied, -1]].tolist():
            places[row, :count] = best(allowed[row], count)
    return values[:, :count], places[:, :count]


def best(values: Any, count: int) -> list[int]:
    """Where the largest values stand; equal ones in order of place."""
    threshold = torch.topk(values, count).values[-1]
    places = torch.nonzero(values >= threshold)[:, 0]
    order = torch.sort(values[places], descending=True, stable=True).indices[:count]
    return [int(place) for place in places[order]]


def rank_rows(allowed: Any, values: Any) -> Any:
    """For each value of a row, how many allowed ones of that row are at least as large."""
    if values.shape[1] == 0:
        return torch.zeros(values.shape, dtype=torch.int32, device=values.device)
    if values.device.type == "cpu":  # where numpy sorts quicker than anything here counts
        ordered = torch.from_numpy(np.sort(allowed.numpy(), axis=1))
        return (allowed.shape[1] - torch.searchsorted(ordered, values)).to(torch.int32)
    return count_ranks(allowed, values)


def count_ranks(allowed: Any, values: Any) -> Any:
    """What `rank_rows` gives, for a device that counts quicker than it sorts."""
    rows, count = values.shape
    thresholds, order = torch.sort(values)
    # allowed tokens that fall below each threshold, by counting them between thresholds
    between = torch.searchsorted(thresholds, allowed.contiguous(), right=True)
    counts = torch.zeros(rows, count + 1, dtype=torch.int32, device=values.device)
    counts.scatter_add_(1, between, torch.ones_like(between, dtype=torch.int32))
    below = torch.cumsum(counts, 1, dtype=torch.int32)[:, :-1]
    return torch.empty_like(below).scatter_(1, order, allowed.shape[1] - below)


def token_name(loaded: Loaded, id: int) -> str:
    """How a token is shown: its text, with the mark of a word's inner piece kept."""
    piece = loaded.backend.id_to_token(id) or f"<{id}>"
    if piece.startswith("##"):
        return piece
    text: str = loaded.tokenizer.decode([id]).strip()
    return text or piece
