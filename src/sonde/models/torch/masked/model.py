"""Masked language models: fill a masked position, or score options at it.

A multi-token option is scored left to right inside itself: each token is predicted with itself and
the option's tokens right of it masked, those left of it shown; of whole sentences, every token so,
within its word. Identical inputs are computed once and the head is applied at the mask alone.
`reference` is the naive twin.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import torch

from sonde.core import progress
from sonde.core.abilities import Ability, Identity, Named
from sonde.core.columns import FilledColumns
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError, ModelError
from sonde.core.prompts import Block, Fill, Prompt, Prompts, Score, put
from sonde.core.rated import RatedColumns
from sonde.core.threads import cores, prefetch
from sonde.engine.encode import opening
from sonde.engine.limits import check_texts, naming
from sonde.engine.masked_batch import (
    Distinct,
    FillableWords,
    Hiding,
    MaskedEncoder,
    MaskedTexts,
    hidden_texts,
)
from sonde.engine.schedule import Pass, Passes, Shape, row_passes
from sonde.engine.tokenise import Tokenisers
from sonde.models.torch.loading.budgets import Budgets, check_predicted, explain_oom
from sonde.models.torch.loading.device import fetched, float_logits, onto, token_logps
from sonde.models.torch.loading.weights import Loaded, identify
from sonde.models.torch.masked.answers import Kind, Tables, read_masked
from sonde.models.torch.masked.logits import ROW, mask_logits, ways_of
from sonde.models.torch.masked.unpadded import LONGEST, RECORDED, Recorder

log = logging.getLogger("sonde")

BATCH_TOKENS: Mapping[str, Mapping[Ability, int]] = {
    "cpu": {"fill": 4096, "score": 4096},
    "cuda": {"fill": 131072, "score": 131072},
}
ENOUGH = {"cpu": 512, "cuda": 32768}
"""Tokens from which a batch is better run than filled up with shorter texts and padding."""

CHUNK = 2**17
"""Prompts that are brought into order at once; fewer at first, to begin soon, unless others work
ahead."""
FIRST = 2**13

Work = Literal["fill", "score"]
"""What is done to texts, each with a budget of its own."""

Reading = Callable[[], list[tuple[np.ndarray, FilledColumns]]]
"""Waits for answers and gives them, with the positions of their prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some prompts, ready to be fed.

    `distinct`: each of their `texts` once. Prompt p, counted from `start`, is of the kind
    kinds[which[p]].
    """

    start: int
    texts: MaskedTexts
    distinct: Distinct
    kinds: list[Kind]
    which: np.ndarray


class MaskedModel(Named):
    """A model that fills one masked position, seeing both sides of it."""

    def __init__(self, loaded: Loaded) -> None:
        if loaded.tokenizer.mask_token is None:
            raise ModelError(f"{loaded.name}: its tokenizer has no mask token")
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = MaskedEncoder(loaded.backend, loaded.tokenizer.mask_token)
        device = loaded.device.split(":")[0]
        self.budgets = Budgets(loaded, BATCH_TOKENS, read=1 / 8, largest=4)
        float_logits(self.model)
        self.ways = ways_of(self.model)
        if self.ways.slow:
            log.warning("%s is slow: %s", loaded.name, self.ways.slow)
        # without padding only texts of one length go together
        self.enough = ENOUGH[device] if self.ways.pads else 0
        self.tables = Tables(loaded, self.encoder)
        words = FillableWords(encoder=self.encoder, answerable=frozenset(loaded.answerable))
        self.fillable = words.of
        self.tokenisers = Tokenisers(self.encoder, workers(loaded))
        self.recorder = Recorder(self.model, last=self.ways.last, first=self.ways.first)
        self._coming: deque[tuple[Prompts, Iterator[Chunk]]] = deque(maxlen=2)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(self.loaded, bos="as the tokenizer frames a text", scoring="mask")

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        """Yield (positions, the likeliest tokens and the watched names)."""
        return explain_oom(self._fill(put(prompts)))

    def passes(self, kind: Work, lengths: Sequence[int]) -> Passes:
        """How texts of some lengths go through the model."""
        budget = self.budgets[kind]
        enough = min(self.enough, budget.tokens)
        packed = ROW if self.ways.packs else 0
        rows = partial(row_passes, budget, enough=enough, packed=packed)
        if not self.ways.joins:
            yield from rows(lengths)
            return
        yield from rows({i: n for i, n in enumerate(lengths) if n > LONGEST})
        short = {i: n for i, n in enumerate(lengths) if n <= LONGEST}
        build = partial(_unpadded, short)
        yield from budget.schedule(short, build, padded=False, most=RECORDED)

    @torch.inference_mode()
    def mask_logits(self, kind: Work, texts: MaskedTexts, chosen: np.ndarray) -> Any:
        """Logits at the masks of the texts of a pass, [texts, vocabulary] on the device."""
        if self.ways.joins and texts.lengths[chosen].max() <= LONGEST:
            full = min(self.budgets[kind].tokens, RECORDED)
            return self.recorder.logits(texts, chosen, full=full)
        return mask_logits(self.model, texts, chosen, self.ways)

    def _fill(self, prompts: Prompts) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        started: deque[tuple[Pass, Reading]] = deque()
        for chunk in self.chunks(prompts):
            launch = partial(self._launch, chunk)
            passes = self.passes("fill", chunk.distinct.lengths)
            run = self.budgets["fill"].execute(passes, launch, started=started)
            for _, read in run:
                yield from read()
        for _, read in started:
            yield from read()

    def chunks(self, prompts: Prompts) -> Iterator[Chunk]:
        """The prompts in parts that are each ready to be fed, the next under way as one is used."""
        for number, (coming, chunks) in enumerate(self._coming):
            if _same(coming, prompts):
                del self._coming[number]
                return chunks
        prepared = self._prepared(prompts)
        return prefetch(prepared) if len(prompts) > FIRST else prepared

    def prefetch(self, prompts: Prompts) -> None:
        """Begin to prepare what is asked soon, where other processes tokenise it."""
        fills = all(isinstance(block.want, Fill) for block in prompts.blocks)
        begun = any(_same(coming, prompts) for coming, _ in self._coming)
        if self.tokenisers.workers and fills and not begun:
            self._coming.append((prompts, prefetch(self._prepared(prompts))))

    def _prepared(self, prompts: Prompts) -> Iterator[Chunk]:
        """Each part's distinct texts, who asks them, and of which kind each question is."""
        ahead = self.tokenisers.workers > 0 and len(prompts) <= CHUNK
        starts = [0] if ahead else chunk_starts(len(prompts))
        bounds = list(pairwise((*starts, len(prompts))))
        kinds = Kinds(self.tables)
        parts = [prompts.part(start, stop) for start, stop in bounds]
        tokenised = self.tokenisers.columns(parts)
        for (start, _), part, masked in zip(bounds, parts, tokenised, strict=True):
            self._check(part, masked)
            yield Chunk(
                start=start,
                texts=masked,
                distinct=masked.once(),
                kinds=kinds.made,
                which=kinds.of(part),
            )

    def _launch(self, chunk: Chunk, step: Pass) -> Reading:
        """Feed some distinct texts and begin to read what the prompts that own them want."""
        distinct = chunk.distinct
        logits = self.mask_logits("fill", chunk.texts, distinct.first[step.members])
        rows, positions = distinct.asking(step.members)
        begun = begin(logits, rows, positions, chunk.which[positions], chunk.kinds)
        return lambda: [(own + chunk.start, block) for own, block in begun()]

    def _check(self, prompts: Prompts, texts: MaskedTexts) -> None:
        """Refuse a prompt that the model cannot take, naming it."""
        long = texts.lengths > self.loaded.context
        strange = np.add.reduceat(texts.ids >= self.loaded.vocabulary, texts.offsets[:-1]) > 0
        for i in np.flatnonzero(long | strange)[:1]:
            ids = tuple(texts.ids[texts.offsets[i] : texts.offsets[i + 1]].tolist())
            with naming(prompts[i]):
                check_texts([ids], self.loaded)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every option's tokens)."""
        return explain_oom(self._score(prompts))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import masked_costs  # it knows this class

        return masked_costs(self, shards)

    def hidings(self, prompt: Prompt) -> list[Hiding]:
        """What is predicted of each option of a prompt, and from what."""
        want, prefix = prompt.want, prompt.prefix
        if not isinstance(want, Score):
            raise AbilityError("score() takes prompts that want options scored")
        with naming(prompt):
            found = self.encoder.hidings(
                prefix, want.texts(prefix), prompt.suffix, whole=want.whole, hidden=want.hidden
            )
            check_texts([hiding.ids for hiding in found], self.loaded)
            if want.whole:
                check_predicted((h.ids[place] for h in found for place in h.places), self.loaded)
        return found

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        options = [option for prompt in prompts for option in self.hidings(prompt)]
        texts, tokens = hidden_texts(options, self.encoder.mask_id)
        with progress.part(len(options) / max(len(texts), 1)):
            logps = self._logps(texts, tokens)
        named = [cast(Score, prompt.want).options for prompt in prompts]
        counts = [option.inside for option in options]
        after = [len(option.places) - option.inside for option in options]
        yield np.arange(len(prompts)), RatedColumns.scored(named, logps, counts, after)

    def _logps(self, texts: MaskedTexts, tokens: np.ndarray) -> np.ndarray:
        """The log-probability of a token in each text, every distinct text computed once."""
        distinct = texts.once()
        logps = np.empty(len(tokens), dtype=np.float32)

        def launch(step: Pass) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
            logits = self.mask_logits("score", texts, distinct.first[step.members])
            rows, numbers = distinct.asking(step.members)
            progress.advance(len(numbers))
            return numbers, fetched(token_logps(logits, rows, tokens[numbers]))

        passes = self.passes("score", distinct.lengths)
        for _, (numbers, read) in self.budgets["score"].execute(passes, launch):
            logps[numbers] = read()
        return logps


def _unpadded(lengths: Mapping[int, int], batch: list[int]) -> Pass:
    """Short texts in one row; it is as if each token were a row, since no mask is made."""
    new = [lengths[i] for i in batch]
    shape = Shape(rows=sum(new), width=1, behind=0, reads=len(batch))
    return Pass(members=batch, new=new, shapes=(shape,), divisible=len(batch) > 1)


def _same(one: Prompts, other: Prompts) -> bool:
    return [*map(id, one.blocks)] == [*map(id, other.blocks)]


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
        begun.append((positions[own], read_masked([kinds[k] for k in group], local, part)))
    return lambda: [(own[at], block) for own, read in begun for at, block in read()]


def chunk_starts(count: int) -> list[int]:
    """Where chunks of prompts begin: small ones first, each twice the one before, up to a size."""
    starts, size = [0], FIRST
    while starts[-1] + size < count:
        starts.append(starts[-1] + size)
        size = min(2 * size, CHUNK)
    return starts


def workers(loaded: Loaded) -> int:
    """How many processes tokenise: as asked for, or else up to ten cores beside a GPU."""
    if loaded.options.workers is not None:
        return loaded.options.workers
    if "cuda" not in loaded.device or os.name == "nt":
        return 0
    return max(min(cores() - 2, 10), 0)
