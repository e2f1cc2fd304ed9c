"""Causal language models: options scored, and parts of texts read, along trees of shared tokens.

Prompts that begin alike share a prefix, computed once and kept. Behind it the prompts and options
of a batch form one tree that goes through the model in one pass, each token attending to the prefix
and its own ancestors. On a GPU the trees of prompts are rows instead, thousands of them in a pass
behind many prefixes, where a model takes that. Models that cannot be fed a tree read each text as a
row of its own ("flat"). What goes together is up to `engine.schedule` and `engine.row_schedule`;
`reference` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from sonde.core.abilities import Ability, Identity, Named
from sonde.core.answers import Generated, Sampled
from sonde.core.costs import ShardCost
from sonde.core.progress import advance
from sonde.core.prompts import Block, Generate, Prompt, Score
from sonde.core.rated import RatedColumns, ends_of, taken
from sonde.engine.causal_texts import (
    describe_start,
    option_texts,
    prepare_options,
    read_texts,
    start_token,
)
from sonde.engine.encode import Branches, Start, lengthened, span_arrays
from sonde.engine.limits import naming
from sonde.engine.row_schedule import tree_row_passes
from sonde.engine.schedule import (
    Pass,
    Passes,
    Pieces,
    row_passes,
    score_passes,
    text_passes,
    trace_passes,
)
from sonde.engine.spans import SpanTokens
from sonde.engine.token_texts import TokenTexts
from sonde.engine.token_tree import shared_prefill
from sonde.engine.tree_rows import TreeRows
from sonde.models.chat import chat_of, encoder_of, endings_of
from sonde.models.torch.causal.rows import farthest, tree_row_logps, why_not_rows
from sonde.models.torch.causal.step_graph import Recorder
from sonde.models.torch.causal.token_tree import (
    chain_logps,
    kept_prefixes,
    row_logps,
    tree_logps,
    why_flat,
)
from sonde.models.torch.decode.row_decoder import RowDecoder
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.decode.tree_decoder import TreeDecoder
from sonde.models.torch.decode.writer import Opening, Writer
from sonde.models.torch.loading.budgets import Budgets, check_predicted, explain_oom
from sonde.models.torch.loading.device import float_logits
from sonde.models.torch.loading.weights import Loaded, identify

log = logging.getLogger("sonde")

BATCH_TOKENS: Mapping[str, Mapping[Ability, int]] = {
    "cpu": {"score": 1024, "generate": 1024, "sample": 1024, "trace": 1024},
    "cuda": {"score": 2048, "generate": 2048, "sample": 2048, "trace": 2048},
}
PREFIX_BYTES = {"cpu": 2**30, "cuda": 2**33}

WORK = 3e13
"""Floating-point operations of a pass that keep a GPU busy while the next one is prepared."""

Logps = Callable[[], np.ndarray]
"""Waits for the log-probabilities of every read of a pass, in order."""


class OptionLogps:
    """Log-probabilities of the tokens of options and of what follows them, as they come in.

    A text is one option of a prompt; those of prompt i have the numbers first[i] to first[i+1].
    """

    def __init__(self, prompts: Sequence[Branches]) -> None:
        start, stop, end, _ = span_arrays(prompts)[0].T
        self.counts, self.after = stop - start, end - stop
        self.first = ends_of([len(texts.spans) for texts in prompts])
        self.ends = ends_of(self.counts + self.after)
        self.logps = np.empty(self.ends[-1], dtype=np.float32)
        self.missing = np.diff(self.first)

    def texts(self, step: Pass) -> np.ndarray:
        """The numbers of the texts of a pass along a tree, whose prompts may come in parts."""
        if len(step.texts):
            return np.asarray(step.texts)
        if len(step.members) > 1:
            return taken(self.first, np.array(step.members))[1]
        start = self.first[step.members[0]] + step.first
        return np.arange(start, start + len(step.work.sizes))

    def add(self, texts: np.ndarray, logps: np.ndarray) -> np.ndarray:
        """Keep what was read of some texts, laid end to end; the prompts that now have all."""
        self.logps[taken(self.ends, texts)[1]] = logps
        prompts = np.searchsorted(self.first, texts, side="right") - 1
        np.subtract.at(self.missing, prompts, 1)
        return np.unique(prompts[self.missing[prompts] == 0])

    def columns(self, asked: Sequence[Prompt], prompts: np.ndarray) -> RatedColumns:
        """The answers to some prompts among those that were asked."""
        texts = taken(self.first, prompts)[1]
        logps = self.logps[taken(self.ends, texts)[1]]
        options = [cast(Score, asked[i].want).options for i in prompts.tolist()]
        return RatedColumns.scored(options, logps, self.counts[texts], self.after[texts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Options to score and texts to write, by position; `guests` go with the text of a position."""

    texts: dict[int, Branches]
    openings: dict[int, Opening]
    guests: dict[int, tuple[int, ...]]

    @property
    def alone(self) -> list[int]:
        """The prompts whose options go by themselves."""
        hosted = {i for group in self.guests.values() for i in group}
        return [i for i in self.texts if i not in hosted]


class CausalModel(Named):
    """A left-to-right language model: it scores options, reads texts and writes on from them."""

    def __init__(self, loaded: Loaded, *, start: Start | None = None) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.chat = chat_of(loaded.tokenizer, loaded.options, loaded.name)
        start = start or start_token(loaded.tokenizer, loaded.options.bos, loaded.name)
        self.encoder = encoder_of(loaded.backend, start, self.chat)
        self.start = self.encoder.start
        self.endings = endings_of(loaded.backend, end_tokens(loaded), self.chat)
        device = loaded.device.split(":")[0]
        self.prefixes = kept_prefixes(self.model, PREFIX_BYTES[device])
        float_logits(self.model)
        self.slow = why_flat(self.model)
        self.tree = not self.slow
        self.pieces = TokenTexts(loaded.backend, loaded.vocabulary)
        self.recorder = Recorder(self.model)
        # one tree is quicker on a CPU, where nothing waits for Python
        self.rows = device != "cpu" and self.tree and not why_not_rows(self.model)
        self.enough = int(WORK / (2 * sum(p.numel() for p in self.model.parameters())))
        self.budgets = Budgets(loaded, BATCH_TOKENS, trees=self._trees())
        if self.slow:
            log.warning("%s is slow: %s", loaded.name, self.slow)

    def _trees(self) -> Collection[Ability]:
        """The kinds of work for which tokens go as one tree."""
        if not self.tree:
            return ()
        return ("trace",) if self.rows else tuple(BATCH_TOKENS["cpu"])

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(
            self.loaded,
            bos=self.chat.opening if self.chat else describe_start(self.start, self.loaded.backend),
            scoring="rows" if self.rows else "tree" if self.tree else "flat",
            chat=self.chat.identity if self.chat else {},
        )

    def in_turns(self, block: Block) -> Iterator[Block]:
        """The prompts of a block as the model is to be given them."""
        return self.chat.in_turns(block) if self.chat else iter((block,))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every option's tokens)."""
        prepare_options(self.encoder, prompts)
        return explain_oom(self._scored(prompts, [self.branches(prompt) for prompt in prompts]))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import causal_costs  # it knows this class

        return causal_costs(self, shards)

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest continuation of every prompt."""
        return explain_oom(self.decoder().generate(prompts))

    def score_and_generate(
        self, prompts: Sequence[Prompt]
    ) -> Iterator[tuple[int, Generated] | tuple[np.ndarray, RatedColumns]]:
        """Yield what `score` and `generate` do, tokens of prompts of both kinds computed once."""
        return explain_oom(self._together(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with continuations drawn from the model."""
        return explain_oom(self.decoder("sample").sample(prompts))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, log-probabilities of every span's tokens)."""
        return explain_oom(self._traced(self.span_tokens(prompts)))

    def reset_cache(self) -> None:
        """Drop kept prefixes that were computed together: what came before shows in their rounding.

        One that is computed by itself is the same whenever that is, and stays.
        """
        if self.rows:
            self.prefixes.clear()

    def decoder(self, kind: Literal["generate", "sample"] = "generate") -> Writer:
        """What writes texts with this model."""
        budget, trees = self.budgets[kind], self.budgets["trace" if self.rows else kind]
        writes = self.loaded, self.encoder, self.endings
        tree = TreeDecoder(*writes, trees, self.prefixes, tree=self.tree)
        if not self.rows:
            return tree
        reach, enough = farthest(self.model), self.enough
        shared = self.pieces, self.recorder
        return RowDecoder(tree, budget, *shared, farthest=reach, enough=enough)

    def score_passes(self, prompts: Sequence[Branches]) -> Passes:
        """How the options of some prompts go through the model: as trees, or each text as a row."""
        budget = self.budgets["score"]
        trees = self.budgets["trace"]  # which also goes as one tree where the rest goes as rows
        if self.tree and any(texts.whole for texts in prompts):
            return text_passes(trees, prompts)
        if self.rows:
            reach, enough = farthest(self.model), self.enough
            return tree_row_passes(budget, prompts, trees=trees, enough=enough, farthest=reach)
        if self.tree:
            return score_passes(budget, prompts)
        fed = [
            (i, len(texts.head) + span.end - 1)  # a last token is never fed
            for i, texts in enumerate(prompts)
            for span in texts.spans
        ]
        return row_passes(budget, [n for _, n in fed], owners=[i for i, _ in fed])

    def trace_passes(self, texts: Sequence[SpanTokens]) -> Passes:
        """How texts that are read in parts go through the model."""
        budget = self.budgets["trace"]
        if self.tree:
            return trace_passes(budget, texts)
        return row_passes(budget, [len(text.fed) for text in texts])

    def share(self, prompts: Sequence[Prompt]) -> Shared:
        """What is scored and what is written, and which of it goes through the model together."""
        decoder = self.decoder()
        writes = [i for i, prompt in enumerate(prompts) if isinstance(prompt.want, Generate)]
        found = decoder.openings([prompts[i] for i in writes], Generate)
        openings = dict(zip(writes, found, strict=True))
        texts = {i: self.branches(p) for i, p in enumerate(prompts) if i not in openings}
        room = {i: (opening.ids, opening.want.most) for i, opening in openings.items()}
        guests = shared_prefill(texts, room) if self.tree else {}
        for host, group in guests.items():
            spans = tuple(span for i in group for span in texts[i].spans)
            openings[host] = replace(openings[host], options=spans)
        return Shared(texts=texts, openings=openings, guests=guests)

    def _together(
        self, prompts: Sequence[Prompt]
    ) -> Iterator[tuple[int, Generated] | tuple[np.ndarray, RatedColumns]]:
        """Options go with a text that is written after the same tokens, or else by themselves."""
        shared = self.share(prompts)
        texts, alone, writes = shared.texts, shared.alone, list(shared.openings)
        for own, rated in self._scored([prompts[i] for i in alone], [texts[i] for i in alone]):
            yield np.array(alone)[own], rated
        for k, written, logps in self.decoder().generate_beside(list(shared.openings.values())):
            yield writes[k], written
            if guests := shared.guests.get(writes[k], ()):
                beside = OptionLogps([texts[i] for i in guests])
                done = beside.add(np.arange(len(beside.counts)), logps)
                yield np.array(guests), beside.columns([prompts[i] for i in guests], done)

    def branches(self, prompt: Prompt) -> Branches:
        """The texts of a prompt's options, refused if the model cannot take one of them."""
        texts = option_texts(self.encoder, prompt, self.loaded)
        with naming(prompt):
            check_predicted((id for s in texts.spans for id in s.ids[s.start : s.end]), self.loaded)
        return texts

    def span_tokens(self, prompts: Sequence[Prompt]) -> list[SpanTokens]:
        """Prompts that are read in parts as token ids, refused if the model cannot take one."""
        return read_texts(self.encoder, prompts, self.loaded)

    def _scored(
        self, prompts: Sequence[Prompt], branches: Sequence[Branches]
    ) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Run every pass; a prompt is answered when all its options are there."""
        options = OptionLogps(branches)
        apart = () if self.tree else branches
        texts = [(texts.head, span) for texts in apart for span in texts.spans]

        def flat(step: Pass) -> Logps:
            rows = [lengthened(span, head) for head, span in (texts[row] for row in step.work)]
            return row_logps(self.model, [(r.ids, tuple(range(r.start, r.end))) for r in rows])

        def forward(step: Pass) -> tuple[np.ndarray, Logps]:
            numbers = options.texts(step) if self.tree else np.array(step.work)
            read = self._tree(step) if self.tree else flat(step)
            advance(len(numbers))
            return numbers, read

        run = self.budgets["score"].execute(self.score_passes(branches), forward)
        for _, (numbers, read) in run:
            if len(done := options.add(numbers, read())):
                yield done, options.columns(prompts, done)

    def _traced(self, texts: Sequence[SpanTokens]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        def flat(step: Pass) -> Logps:
            return row_logps(self.model, [texts[i].after(0) for i in step.members])

        forward = self._tree if self.tree else flat
        for step, read in self.budgets["trace"].execute(self.trace_passes(texts), forward):
            ranges = [texts[i].ranges for i in step.members]
            counts = [stop - start for own in ranges for start, stop in own]
            columns = RatedColumns.traced([len(own) for own in ranges], read(), counts)
            yield np.array(step.members), columns

    def _tree(self, step: Pass) -> Logps:
        """Begin to read texts as rows, as one tree or one text in pieces, behind their prefixes."""
        try:
            if isinstance(step.work, TreeRows):
                behind = self.prefixes.get_all(step.work.prefixes, step.size)
                return tree_row_logps(self.model, step.work, behind)
            prefix = self.prefixes.get(step.prefix)
            feed = chain_logps if isinstance(step.work, Pieces) else tree_logps
            return feed(self.model, step.work, prefix)
        except Exception:
            self.prefixes.clear()  # if memory ran out, they are the first to go
            raise
