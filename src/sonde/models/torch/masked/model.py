"""Masked language models: fill a hole, or score options at it.

A multi-token option is scored left to right inside itself: each token is predicted with itself and
the option's tokens right of it masked, those left of it shown. Identical inputs are computed once
and the head is applied at the hole alone. `reference.py` is the naive twin.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Scored
from sonde.core.columns import FilledColumns
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError, ModelError
from sonde.core.prompts import Block, Fill, Prompt, Prompts, Score, put
from sonde.engine.batching import Budget
from sonde.engine.encode import MaskedEncoder, Span, opening
from sonde.engine.masked_batch import MaskedText, MaskedTexts, columns
from sonde.engine.prefetch import prefetch
from sonde.engine.tokenise import Tokenisers
from sonde.models.torch.loading.device import fetched, float_logits, onto
from sonde.models.torch.loading.limits import check_spans, explain_oom, naming
from sonde.models.torch.loading.weights import Loaded, identify, out_of_memory
from sonde.models.torch.masked.answers import Kind, Tables, read_holes
from sonde.models.torch.masked.logits import hole_logits, ways_of

log = logging.getLogger("sonde")

BATCH_TOKENS = {"cpu": 4096, "cuda": 131072}
ENOUGH = {"cpu": 512, "cuda": 8192}
"""Tokens from which a batch is better run than filled up with shorter texts and padding."""

CHUNK = 2**17  # prompts that are brought into order at once; fewer at first, to begin soon
FIRST = 2**13


Reading = Callable[[], list[tuple[np.ndarray, FilledColumns]]]
"""Waits for answers and gives them, with the positions of their prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some prompts, ready to be fed.

    `first[i]` is where the distinct text i stands in `holes`, `lengths[i]` its tokens; the prompts
    that ask it are owners[bounds[i]:bounds[i+1]]. Prompt p is of the kind kinds[which[p]].
    """

    holes: MaskedTexts
    kinds: list[Kind]
    which: np.ndarray
    first: np.ndarray
    lengths: list[int]
    owners: np.ndarray
    bounds: np.ndarray

    def asking(self, batch: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """The prompts that ask some distinct texts: which of the texts, and which prompts."""
        counts = self.bounds[1:][batch] - self.bounds[:-1][batch]
        rows = np.repeat(np.arange(len(batch)), counts)
        starts = np.repeat(self.bounds[:-1][batch] - np.cumsum(counts) + counts, counts)
        return rows, self.owners[starts + np.arange(len(starts))]


class MaskedModel:
    """A model that fills one hole, seeing both sides of it."""

    def __init__(self, loaded: Loaded) -> None:
        if loaded.tokenizer.mask_token is None:
            raise ModelError(f"{loaded.name}: its tokenizer has no mask token")
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = MaskedEncoder(loaded.backend, loaded.tokenizer.mask_token)
        device = loaded.device.split(":")[0]
        tokens = loaded.options.batch_tokens or BATCH_TOKENS[device]
        self.budget = Budget(tokens, out_of_memory)
        float_logits(self.model)
        self.ways = ways_of(self.model)
        if self.ways.slow:
            log.warning("%s is slow: %s", loaded.name, self.ways.slow)
        # without padding only texts of one length go together
        self.enough = min(ENOUGH[device], tokens) if self.ways.pads else 0
        self.tables = Tables(loaded, self.encoder)
        self.tokenisers = Tokenisers(self.encoder, workers(loaded))

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(self.loaded, bos="as the tokenizer frames a text", scoring="mask")

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer) with the likeliest tokens and the watched names."""
        for positions, filled in self.fill_columns(put(prompts)):
            yield from zip(positions.tolist(), filled.each(), strict=True)

    def fill_columns(self, prompts: Prompts) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        """What `fill` yields, many at a time and as columns."""
        return explain_oom(self._fill(prompts))

    def _fill(self, prompts: Prompts) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        starts = chunk_starts(len(prompts))
        chunks = [prompts.part(i, j) for i, j in pairwise((*starts, len(prompts)))]
        started: deque[tuple[list[int], Reading]] = deque()
        for start, chunk in zip(starts, prefetch(self._prepared(chunks), len(chunks)), strict=True):
            launch = partial(self._launch, chunk, start)
            run = self.budget.run(chunk.lengths, launch, enough=self.enough, started=started)
            for _, read in run:
                yield from read()
        for _, read in started:
            yield from read()

    def _prepared(self, chunks: Sequence[Prompts]) -> Iterator[Chunk]:
        """Each chunk's distinct texts, who asks them, and of which kind each question is."""
        kinds = Kinds(self.tables)
        texts = ([text for block in chunk.blocks for text in block.texts()] for chunk in chunks)
        for chunk, holes in zip(chunks, self.tokenisers.columns(texts), strict=True):
            self._check(chunk, holes)
            first, inverse = holes.distinct()
            owners = np.argsort(inverse, kind="stable")
            yield Chunk(
                holes=holes,
                kinds=kinds.made,
                which=kinds.of(chunk),
                first=first,
                lengths=holes.lengths[first].tolist(),
                owners=owners,
                bounds=np.searchsorted(inverse[owners], np.arange(len(first) + 1)),
            )

    def _launch(self, chunk: Chunk, start: int, batch: list[int]) -> Reading:
        """Feed some distinct texts and begin to read what the prompts that own them want."""
        logits = hole_logits(self.model, chunk.holes, chunk.first[batch], self.ways)
        rows, positions = chunk.asking(batch)
        begun = begin(logits, rows, positions, chunk.which[positions], chunk.kinds)
        return lambda: [(own + start, block) for own, block in begun()]

    def _check(self, prompts: Prompts, holes: MaskedTexts) -> None:
        """Refuse a prompt that the model cannot take, naming it."""
        long = holes.lengths > self.loaded.context
        strange = np.add.reduceat(holes.ids >= self.loaded.vocabulary, holes.offsets[:-1]) > 0
        for i in np.flatnonzero(long | strange)[:1]:
            ids = tuple(holes.ids[holes.offsets[i] : holes.offsets[i + 1]].tolist())
            with naming(prompts[i]):
                check_spans([Span(ids=ids, start=0, stop=1, end=len(ids))], self.loaded)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
        return explain_oom(self._score(prompts))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import masked_costs  # it knows this class

        return masked_costs(self, shards)

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        steps = [[hole_steps(s, self.encoder.mask_id) for s in self._spans(p)] for p in prompts]
        wanted: dict[MaskedText, list[int]] = {}
        for hole, token in (step for p in steps for option in p for step in option):
            wanted.setdefault(hole, []).append(token)
        found = dict(self._step_logps(wanted))
        for i, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            logps = tuple(tuple(found[step] for step in option) for option in steps[i])
            yield i, Scored(options=prompt.want.options, logps=logps)

    def _spans(self, prompt: Prompt) -> list[Span]:
        if not isinstance(prompt.want, Score):
            raise AbilityError("score() takes prompts that want options scored")
        with naming(prompt):
            texts = prompt.want.texts(prompt.prefix)
            spans = self.encoder.options(prompt.prefix, texts, prompt.suffix)
            check_spans(spans, self.loaded)
        return spans

    def _step_logps(
        self, wanted: dict[MaskedText, list[int]]
    ) -> Iterator[tuple[tuple[MaskedText, int], float]]:
        """The log-probability of every wanted token at its hole."""
        texts = list(wanted)
        holes = columns(texts)

        def launch(batch: list[int]) -> Callable[[], np.ndarray]:
            logits = hole_logits(self.model, holes, batch, self.ways)
            rows = [row for row, i in enumerate(batch) for _ in wanted[texts[i]]]
            tokens = [token for i in batch for token in wanted[texts[i]]]
            at = onto(logits.device, rows)
            norms = torch.logsumexp(logits, -1)
            return fetched(logits[at, onto(logits.device, tokens)] - norms[at])

        lengths = holes.lengths.tolist()
        for batch, read in self.budget.run(lengths, launch, enough=self.enough):
            keys = ((texts[i], token) for i in batch for token in wanted[texts[i]])
            yield from zip(keys, read().tolist(), strict=True)


class Kinds:
    """Tells of which kind a prompt's masked position is, making what is new."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.made: list[Kind] = []
        self._known: dict[tuple[Fill, str], int] = {}

    def of(self, prompts: Prompts) -> np.ndarray:
        """Which of those made so far each prompt's is."""
        return np.concatenate([self._of_block(block) for block in prompts.blocks])

    def _of_block(self, block: Block) -> np.ndarray:
        """One want, so that the end of the prefix decides: which tokens words are after it."""
        import polars

        if not isinstance(block.want, Fill):
            raise AbilityError("fill() takes prompts that want a masked position filled")
        prefix = polars.col("prefix")
        end = polars.when(prefix.str.strip_chars() != "").then(prefix.str.tail(1)).otherwise(None)
        ends = block.frame.select(end.alias("end"), row=polars.int_range(polars.len()))
        first = ends.unique("end", keep="first", maintain_order=True)
        kinds = [self._kind(block, block.want, row) for row in first["row"].to_list()]
        found = ends.join(first.with_columns(kind=polars.Series(kinds)), on="end", nulls_equal=True)
        return found.sort("row")["kind"].to_numpy()

    def _kind(self, block: Block, want: Fill, row: int) -> int:
        prompt = block.prompt(row)
        key = (want, opening(prompt.prefix))
        if key not in self._known:
            with naming(prompt):
                self.made.append((want, self.tables.table(want, prompt.prefix)))
            self._known[key] = len(self.made) - 1
        return self._known[key]


def begin(
    logits: Any, rows: np.ndarray, positions: np.ndarray, which: np.ndarray, kinds: list[Kind]
) -> Reading:
    """Begin to read what the prompts at some positions want of the logits in their rows."""
    groups: dict[tuple[int, int], list[int]] = {}
    for kind in np.unique(which).tolist():
        want, table = kinds[kind]
        groups.setdefault((id(table.allowed), want.top), []).append(kind)
    begun = []
    for group in groups.values():
        own = np.flatnonzero(np.isin(which, group))
        whole = len(own) == len(logits) and np.array_equal(rows, np.arange(len(rows)))
        part = logits if whole else logits[onto(logits.device, rows[own])]
        local = np.searchsorted(group, which[own])
        begun.append((positions[own], read_holes([kinds[k] for k in group], local, part)))
    return lambda: [(own[at], block) for own, read in begun for at, block in read()]


def chunk_starts(count: int) -> list[int]:
    """Where chunks of prompts begin: small ones first, each twice the one before, up to a size."""
    starts, size = [0], FIRST
    while starts[-1] + size < count:
        starts.append(starts[-1] + size)
        size = min(2 * size, CHUNK)
    return starts


def hole_steps(span: Span, mask: int) -> list[tuple[MaskedText, int]]:
    """The inputs that score an option left to right, each with the token it must predict."""
    steps = []
    for i in range(span.start, span.stop):
        hidden = (mask,) * (span.stop - i)
        ids = span.ids[:i] + hidden + span.ids[span.stop :]
        steps.append(((ids, i), span.ids[i]))
    return steps


def workers(loaded: Loaded) -> int:
    """How many processes tokenise: as asked for, or else up to eight cores beside a GPU."""
    if loaded.options.workers is not None:
        return loaded.options.workers
    return max(min((os.cpu_count() or 1) - 2, 8), 0) if "cuda" in loaded.device else 0
