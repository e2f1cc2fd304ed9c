"""Causal language models: options scored along a tree of their shared tokens.

Prompts that begin alike share a prefix, computed once and kept. Behind it the prompts and options
of a batch form one tree that goes through the model in one pass, each token attending to the prefix
and its own ancestors. Models that cannot be fed a tree score each text as a row of its own
("flat"). What goes together is up to `engine.schedule`; `reference` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import torch

from sonde.core.abilities import Identity
from sonde.core.answers import Generated, Sampled, Scored, Traced
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError
from sonde.core.prompts import Generate, Prompt, Score
from sonde.engine.batching import Budget
from sonde.engine.encode import Branches, CausalEncoder, Span, Start, lengthened, shortened
from sonde.engine.schedule import Pass, Passes, row_passes, score_passes
from sonde.engine.token_tree import merge_prompts, shared_prefill
from sonde.models.torch.causal.token_tree import (
    by_sequence,
    kept_prefixes,
    prefill,
    reach_of,
    tree_logps,
)
from sonde.models.torch.causal.traces import Tracer
from sonde.models.torch.decode.tree_decoder import Opening, TreeDecoder
from sonde.models.torch.loading.device import float_logits, padded
from sonde.models.torch.loading.limits import check_predicted, check_spans, explain_oom, naming
from sonde.models.torch.loading.trials import NOT_FINITE, largest, tried, unlike
from sonde.models.torch.loading.weights import Loaded, identify, out_of_memory

log = logging.getLogger("sonde")

BATCH_TOKENS = {"cpu": 1024, "cuda": 2048}
PREFIX_BYTES = {"cpu": 2**30, "cuda": 2**33}

OTHER_REACH = "some of its layers look back in a way that no tree of tokens is known to fit"
FLAT = "so texts go one by one: a prompt with 100 options is read 100 times and not once"


Rows = Callable[[], list[tuple[int, int, list[float]]]]
"""Waits for log-probabilities and gives them, a row for each (prompt, option)."""


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


class CausalModel:
    """A left-to-right language model: it scores options, reads texts and writes on from them."""

    def __init__(self, loaded: Loaded, *, start: Start | None = None) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.start = start or start_token(loaded)
        self.encoder = CausalEncoder(loaded.backend, self.start)
        device = loaded.device.split(":")[0]
        tokens = loaded.options.batch_tokens or BATCH_TOKENS[device]
        self.budget = Budget(tokens, out_of_memory)
        self.prefixes = kept_prefixes(self.model, PREFIX_BYTES[device])
        float_logits(self.model)
        self.slow = why_flat(self.model)
        self.tree = not self.slow
        if self.slow:
            log.warning("%s is slow: %s", loaded.name, self.slow)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(
            self.loaded,
            bos=describe_start(self.start, self.loaded),
            scoring="tree" if self.tree else "flat",
        )

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
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
    ) -> Iterator[tuple[int, Scored | Generated]]:
        """Yield (position, answer) for prompts of both kinds, their tokens computed once."""
        return explain_oom(self._together(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with continuations drawn from the model."""
        return explain_oom(self.decoder().sample(prompts))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer) with the log-probabilities of every span's tokens."""
        return explain_oom(self.tracer().trace(prompts))

    def tracer(self) -> Tracer:
        """What reads parts of texts with this model."""
        return Tracer(
            loaded=self.loaded,
            encoder=self.encoder,
            budget=self.budget,
            prefixes=self.prefixes,
            tree=self.tree,
        )

    def decoder(self) -> TreeDecoder:
        """What writes texts with this model."""
        return TreeDecoder(self.loaded, self.encoder, self.budget, self.prefixes, tree=self.tree)

    def score_passes(self, prompts: Sequence[Branches]) -> Passes:
        """How the options of some prompts go through the model: as trees, or each text as a row."""
        if self.tree:
            return score_passes(self.budget, prompts)
        rows = [
            (i, len(texts.head + s.ids)) for i, texts in enumerate(prompts) for s in texts.spans
        ]
        return row_passes(self.budget, [n for _, n in rows], owners=[i for i, _ in rows])

    def share(self, prompts: Sequence[Prompt]) -> Shared:
        """What is scored and what is written, and which of it goes through the model together."""
        decoder = self.decoder()
        writes = [i for i, prompt in enumerate(prompts) if isinstance(prompt.want, Generate)]
        openings = {i: decoder.open(prompts[i], Generate) for i in writes}
        texts = {i: self.branches(p) for i, p in enumerate(prompts) if i not in openings}
        room = {i: (opening.ids, opening.want.most) for i, opening in openings.items()}
        guests = shared_prefill(texts, room) if self.tree else {}
        for host, group in guests.items():
            spans = tuple(span for i in group for span in texts[i].spans)
            openings[host] = replace(openings[host], options=spans)
        return Shared(texts=texts, openings=openings, guests=guests)

    def _together(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored | Generated]]:
        """Options go with a text that is written after the same tokens, or else by themselves."""
        shared = self.share(prompts)
        texts, alone, writes = shared.texts, shared.alone, list(shared.openings)
        for k, answer in self._scored([prompts[i] for i in alone], [texts[i] for i in alone]):
            yield alone[k], answer
        for k, written, rows in self.decoder().generate_beside(list(shared.openings.values())):
            yield writes[k], written
            rest = iter(rows)
            for i in shared.guests.get(writes[k], ()):
                yield i, scored(prompts[i], texts[i].spans, list(islice(rest, len(texts[i].spans))))

    def branches(self, prompt: Prompt) -> Branches:
        """The texts of a prompt's options, refused if the model cannot take one of them."""
        want, prefix = prompt.want, prompt.prefix
        if not isinstance(want, Score):
            raise AbilityError("a causal model scores options; it does not fill a mask")
        with naming(prompt):
            after = want.after(prompt.suffix)
            texts = self.encoder.branch(prefix, want.texts(prefix), after)
            check_spans(texts.spans, self.loaded, texts.head)
            check_predicted(texts.spans, self.loaded)
        return texts

    def _scored(
        self, prompts: Sequence[Prompt], branches: Sequence[Branches]
    ) -> Iterator[tuple[int, Scored]]:
        """Run every pass; a prompt is answered when all its options are there."""
        texts = [(i, k) for i, own in enumerate(branches) for k in range(len(own.spans))]
        forward = (
            partial(self._tree, branches) if self.tree else partial(self._flat, branches, texts)
        )
        rows: list[dict[int, list[float]]] = [{} for _ in prompts]
        for _, read in self.budget.execute(self.score_passes(branches), forward):
            for i, option, logps in read():
                rows[i][option] = logps
                if len(rows[i]) == len(branches[i].spans):
                    whole = [row for _, row in sorted(rows[i].items())]
                    yield i, scored(prompts[i], branches[i].spans, whole)

    def _tree(self, prompts: Sequence[Branches], step: Pass) -> Rows:
        """Begin to score some prompts' options as one tree behind their prefix."""
        try:
            logps = tree_logps(self.model, step.work, self.prefixes.get(step.prefix))
        except Exception:
            self.prefixes.clear()  # if memory ran out, they are the first to go
            raise
        parts = [range(len(prompts[i].spans)) for i in step.members]
        if len(parts) == 1:
            parts = [range(step.first, step.first + len(step.work.sizes))]
        owners = [(i, k) for i, part in zip(step.members, parts, strict=True) for k in part]
        return lambda: [
            (*owner, row) for owner, row in zip(owners, by_sequence(step.work, logps), strict=True)
        ]

    def _flat(
        self, prompts: Sequence[Branches], texts: Sequence[tuple[int, int]], step: Pass
    ) -> Rows:
        """Score some of the texts, each (prompt, option), as rows."""
        owners = [texts[row] for row in step.work]
        spans = [lengthened(prompts[i].spans[k], prompts[i].head) for i, k in owners]
        logps = score_rows(self.model, spans)
        return lambda: [(*owner, row) for owner, row in zip(owners, logps, strict=True)]


def scored(prompt: Prompt, spans: Sequence[Span], rows: Sequence[Sequence[float]]) -> Scored:
    """Split each row of log-probabilities into the option's tokens and those after it."""
    assert isinstance(prompt.want, Score)
    cut = [span.stop - span.start for span in spans]
    after = tuple(tuple(row[c:]) for row, c in zip(rows, cut, strict=True))
    return Scored(
        options=prompt.want.options,
        logps=tuple(tuple(row[:c]) for row, c in zip(rows, cut, strict=True)),
        suffix_logps=after if any(after) else (),
    )


@torch.inference_mode()
def score_rows(model: Any, spans: Sequence[Span]) -> list[list[float]]:
    """Log-probabilities of every answer and suffix token, each text a padded row of its own."""
    output = model(**padded(model.device, [span.ids for span in spans]), use_cache=False)
    results = []
    for i, span in enumerate(spans):
        logits = output.logits[i, span.start - 1 : span.end - 1].float().log_softmax(-1)
        tokens = torch.tensor(span.ids[span.start : span.end], device=logits.device)
        results.append(logits.gather(1, tokens[:, None])[:, 0].tolist())
    return results


def why_flat(model: Any) -> str:
    """Why a model is not fed trees, and what that costs; empty if it is. Tried, not assumed."""
    if reach_of(model) is None:  # a short trial would not show where such a layer stops looking
        return f"{OTHER_REACH}, {FLAT}"
    try:
        with short_window(model):
            why = tried(model, partial(tree_trial, model))
    except Exception as error:  # who asks it something will be told
        log.debug("the trial failed", exc_info=True)
        why = f"it could not be tried ({type(error).__name__})"
    return why and f"{why}, {FLAT}"


@contextmanager
def short_window(model: Any) -> Iterator[None]:
    """Narrow a sliding window for the length of a trial, so that a short text shows it."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window is None:
        yield
        return
    config.sliding_window = 3
    try:
        yield
    finally:
        config.sliding_window = window


@torch.inference_mode()
def tree_trial(model: Any) -> str:
    """Why a small tree, whole or behind a prefix, is not scored as its texts are; empty if so."""
    head, spans = trial_texts(model.config.get_text_config().vocab_size)
    apart = [score_rows(model, [span])[0] for span in spans]
    logits = model(torch.tensor([spans[0].ids], device=model.device), use_cache=False).logits[0]
    ends = tuple(shortened(span, len(head)) for span in spans)
    try:
        whole, rest = merge_prompts([(head, ends)]), merge_prompts([(head[2:], ends)])
        together = by_sequence(whole, tree_logps(model, whole, []))
        behind = by_sequence(rest, tree_logps(model, rest, prefill(model, head[:2])))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # each architecture refuses in its own way
        log.debug("tree attention failed", exc_info=True)
        return f"it does not take a tree of tokens ({type(error).__name__})"
    plain, again, other = map(_numbers, (apart, score_rows(model, spans), together + behind))
    noise = largest(plain - again)
    differ = unlike(model, plain.repeat(2), other, noise=noise, logits=logits)
    if differ in ("", NOT_FINITE):
        return differ
    return f"it does not heed the mask or the positions of a tree of tokens ({differ})"


def trial_texts(size: int) -> tuple[tuple[int, ...], list[Span]]:
    """Two texts of a vocabulary of that size that begin alike, and what they begin with.

    The first is the longer, so that positions counted on through it are far off in the second.
    """
    ids = tuple(token % size for token in (11, 7, 23, 5, 17, 29, 13, 3, 19))
    other = (*ids[:3], ids[4], ids[5], ids[0])
    return ids[:3], [
        Span(ids=each, start=3, stop=len(each), end=len(each)) for each in (ids, other)
    ]


def _numbers(rows: Sequence[Sequence[float]]) -> Any:
    return torch.tensor([value for row in rows for value in row])


def start_token(loaded: Loaded) -> Start:
    """The token texts open with: as asked for, or else as the tokenizer itself does it."""
    tokenizer = loaded.tokenizer
    id = tokenizer.bos_token_id
    choice = loaded.options.bos
    if choice == "auto":
        ids = tokenizer("a").input_ids
        return Start(id=_fallback(tokenizer), always=id is not None and ids[:1] == [id])
    if choice == "always" and id is None:
        raise AbilityError(f"{loaded.name} has no beginning-of-text token; leave out --bos always")
    return Start(id=_fallback(tokenizer), always=choice == "always")


def _fallback(tokenizer: Any) -> int | None:
    """The token before a text whose answer comes first: beginning of text, else end of text."""
    id = tokenizer.bos_token_id
    return tokenizer.eos_token_id if id is None else id  # type: ignore[no-any-return]


def describe_start(start: Start, loaded: Loaded) -> str:
    """How texts open, for the manifest."""
    if start.id is None:
        return "none"
    token = loaded.backend.id_to_token(start.id)
    return f"{token} always" if start.always else f"{token} only before an answer that comes first"
