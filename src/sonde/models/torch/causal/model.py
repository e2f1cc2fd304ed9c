"""Causal language models: options scored along a tree of their shared tokens.

Prompts that begin alike share a stem, computed once and kept. Behind it the prompts and options of
a batch form one tree that goes through the model in one pass, each token attending to the stem and
its own ancestors. Models that cannot be fed a tree score each text as a row of its own ("flat").
`reference.py` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from sonde.engine.prefixes import stems
from sonde.engine.shared_prefill import Room, shared_prefill
from sonde.engine.token_tree import Planted, forest, options_tree
from sonde.models.torch.causal.token_tree import PrefixCache, by_sequence, forest_logps, prefill
from sonde.models.torch.causal.traces import Tracer
from sonde.models.torch.causal.tree_masks import reach_of
from sonde.models.torch.decode.tree_decoder import TreeDecoder
from sonde.models.torch.loading.device import float_logits
from sonde.models.torch.loading.identity import identify
from sonde.models.torch.loading.limits import check_predicted, check_spans, explain_oom, naming
from sonde.models.torch.loading.trials import NOT_FINITE, largest, tried, unlike
from sonde.models.torch.loading.weights import Loaded, out_of_memory

log = logging.getLogger("sonde")

BATCH_TOKENS = {"cpu": 1024, "cuda": 2048}
STEM_BYTES = {"cpu": 2**30, "cuda": 2**33}

OTHER_REACH = "some of its layers look back in a way that no tree of tokens is known to fit"
FLAT = "so texts go one by one: a prompt with 100 options is read 100 times and not once"


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
        self.stems = PrefixCache(self.model, STEM_BYTES[device])
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
        return explain_oom(self._score(prompts))

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn."""
        from sonde.models.torch.costs import causal_bills  # it knows this class

        return causal_bills(self, shards)

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Generated]]:
        """Yield (position, answer) with the likeliest continuation of every prompt."""
        return explain_oom(self._grower().generate(prompts))

    def score_and_generate(
        self, prompts: Sequence[Prompt]
    ) -> Iterator[tuple[int, Scored | Generated]]:
        """Yield (position, answer) for prompts of both kinds, their tokens computed once."""
        return explain_oom(self._together(prompts))

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Sampled]]:
        """Yield (position, answer) with continuations drawn from the model."""
        return explain_oom(self._grower().sample(prompts))

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """Yield (position, answer) with the log-probabilities of every span's tokens."""
        return explain_oom(self.tracer().trace(prompts))

    def tracer(self) -> Tracer:
        """What reads parts of texts with this model."""
        return Tracer(self.loaded, self.encoder, self.budget, self.stems, tree=self.tree)

    def _grower(self) -> TreeDecoder:
        return TreeDecoder(self.loaded, self.encoder, self.budget, self.stems, tree=self.tree)

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        return self._scored(prompts, [self.branches(prompt) for prompt in prompts])

    def _scored(
        self, prompts: Sequence[Prompt], branches: list[Branches]
    ) -> Iterator[tuple[int, Scored]]:
        logps = self._tree(branches) if self.tree else self._flat(branches)
        for position, rows in logps:
            yield position, scored(prompts[position], branches[position].spans, rows)

    def _together(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored | Generated]]:
        """Options go with a text that is written after the same tokens, or else by themselves."""
        grower = self._grower()
        texts = {i: self.branches(p) for i, p in enumerate(prompts) if isinstance(p.want, Score)}
        writes = [i for i in range(len(prompts)) if i not in texts]
        openings = {i: grower.open(prompts[i], Generate) for i in writes}
        guests = self.guests(texts, {i: (o.ids, o.want.most) for i, o in openings.items()})
        hosted = {i for group in guests.values() for i in group}
        alone = [i for i in texts if i not in hosted]
        for k, answer in self._scored([prompts[i] for i in alone], [texts[i] for i in alone]):
            yield alone[k], answer
        spans = {i: [s for j in guests.get(i, ()) for s in texts[j].spans] for i in writes}
        hosts = [replace(openings[i], options=tuple(spans[i])) for i in writes]
        for k, written, rows in grower.generate_beside(hosts):
            yield writes[k], written
            rest = iter(rows)
            for i in guests.get(writes[k], ()):
                own = list(islice(rest, len(texts[i].spans)))
                yield i, scored(prompts[i], texts[i].spans, own)

    def guests(
        self, texts: Mapping[int, Branches], openings: Mapping[int, Room]
    ) -> dict[int, tuple[int, ...]]:
        """Which prompts' options are scored with which text that is written, all by position."""
        return shared_prefill(texts, openings) if self.tree else {}

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

    def _tree(self, prompts: list[Branches]) -> Iterator[tuple[int, list[list[float]]]]:
        """Prompts that begin alike go together, behind their stem."""
        for stem in stems([beginning(texts) for texts in prompts]):
            rest = [(prompts[i].head[len(stem.ids) :], prompts[i].spans) for i in stem.members]
            lengths = [len(chain) + len(options_tree(spans).ids) for chain, spans in rest]
            forward = partial(self._launch, stem.ids, rest)
            for batch, read in self.budget.run(lengths, forward, padded=False):
                for i, rows in zip(batch, read(), strict=True):
                    yield stem.members[i], rows

    def _launch(
        self, stem: tuple[int, ...], prompts: list[Planted], batch: list[int]
    ) -> Callable[[], list[list[list[float]]]]:
        """Score the options of some prompts as one tree behind the stem; read them when called."""
        if len(batch) == 1:
            alone = self._alone(stem, *prompts[batch[0]])
            return lambda: [alone]
        trees = forest([prompts[i] for i in batch])
        try:
            logps = forest_logps(self.model, trees, self.stems.get(stem))
        except Exception:
            self.stems.clear()  # if memory ran out, they are the first to go
            raise

        def read() -> list[list[list[float]]]:
            rows = iter(by_sequence(trees, logps))
            return [[next(rows) for _ in prompts[i][1]] for i in batch]

        return read

    def _alone(
        self, stem: tuple[int, ...], chain: tuple[int, ...], options: tuple[Span, ...]
    ) -> list[list[float]]:
        """One prompt, in halves of its options where its tree is over budget or memory."""
        tree = forest([(chain, options)])
        if len(options) == 1 or len(tree.ids) <= self.budget.tokens:
            try:
                return by_sequence(tree, forest_logps(self.model, tree, self.stems.get(stem)))
            except Exception as error:
                if len(options) == 1 or not out_of_memory(error):
                    raise
            self.stems.clear()
            self.budget.halve(len(tree.ids))
        half = len(options) // 2
        first, rest = options[:half], options[half:]
        return self._alone(stem, chain, first) + self._alone(stem, chain, rest)

    def _flat(self, prompts: list[Branches]) -> Iterator[tuple[int, list[list[float]]]]:
        spans = [cut(texts, 0) for texts in prompts]
        rows = [(i, j) for i, options in enumerate(spans) for j in range(len(options))]
        texts = [spans[i][j] for i, j in rows]
        found: list[dict[int, list[float]]] = [{} for _ in spans]

        def forward(batch: list[int]) -> list[list[float]]:
            return score_rows(self.model, [texts[k] for k in batch])

        for batch, results in self.budget.run([len(s.ids) for s in texts], forward):
            for k, result in zip(batch, results, strict=True):
                i, j = rows[k]
                found[i][j] = result
                if len(found[i]) == len(spans[i]):
                    yield i, [found[i][j] for j in range(len(spans[i]))]


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


def beginning(texts: Branches) -> tuple[int, ...]:
    """What every text of a prompt opens with, short of the token that predicts its answer."""
    return texts.head[:-1]


def cut(texts: Branches, length: int) -> list[Span]:
    """Every text of a prompt without its first tokens."""
    kept, gone = texts.head[length:], length - len(texts.head)
    if gone > 0:
        return [shortened(span, gone) for span in texts.spans]
    return [lengthened(span, kept) for span in texts.spans]


@torch.inference_mode()
def score_rows(model: Any, spans: Sequence[Span]) -> list[list[float]]:
    """Log-probabilities of every answer and suffix token, each text a padded row of its own."""
    longest = max(len(span.ids) for span in spans)
    ids = torch.zeros(len(spans), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, span in enumerate(spans):
        ids[i, : len(span.ids)] = torch.tensor(span.ids)
        mask[i, : len(span.ids)] = 1
    output = model(
        input_ids=ids.to(model.device), attention_mask=mask.to(model.device), use_cache=False
    )
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
    """Why a small tree, whole or behind a stem, is not scored as its texts are; empty if it is."""
    head, spans = trial_texts(model.config.get_text_config().vocab_size)
    apart = [score_rows(model, [span])[0] for span in spans]
    logits = model(torch.tensor([spans[0].ids], device=model.device), use_cache=False).logits[0]
    ends = tuple(shortened(span, len(head)) for span in spans)
    try:
        whole, rest = forest([(head, ends)]), forest([(head[2:], ends)])
        together = by_sequence(whole, forest_logps(model, whole, []))
        behind = by_sequence(rest, forest_logps(model, rest, prefill(model, head[:2])))
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
