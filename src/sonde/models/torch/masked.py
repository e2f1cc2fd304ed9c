"""Masked language models: fill a hole, or score options at it.

A multi-token option is scored left to right inside itself: each token is predicted with itself and
the option's tokens right of it masked, those left of it shown. Identical inputs are computed once
and the head is applied at the hole alone. `reference.py` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Scored
from sonde.core.errors import AbilityError, ModelError, PromptError
from sonde.core.prompts import Fill, Prompt, Score
from sonde.engine.encode import MaskedEncoder, Span
from sonde.engine.pack import Budget
from sonde.models.torch.identity import identify
from sonde.models.torch.weights import Loaded, out_of_memory

log = logging.getLogger("sonde")

BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}

Hole = tuple[tuple[int, ...], int]  # token ids, and the position that is read


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
        self.narrow = head_can_be_narrow(self.model)
        self._answers = lru_cache(maxsize=8)(self._answer_table)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(self.loaded, bos="as the tokenizer frames a text", scoring="mask")

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer) with the likeliest tokens and the watched names."""
        spans = self.encoder.holes([(p.prefix, p.suffix) for p in prompts])
        owners: dict[Hole, list[int]] = {}
        for i, (prompt, span) in enumerate(zip(prompts, spans, strict=True)):
            check_length(prompt, span, self.loaded.context)
            owners.setdefault((span.ids, span.start), []).append(i)
        for hole, logps in self._logps(list(owners)):
            for i in owners[hole]:
                yield i, self._filled(prompts[i], logps)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
        steps = [[hole_steps(s, self.encoder.mask_id) for s in self._spans(p)] for p in prompts]
        wanted: dict[Hole, set[int]] = {}
        for hole, token in (step for p in steps for option in p for step in option):
            wanted.setdefault(hole, set()).add(token)
        found: dict[tuple[Hole, int], float] = {}
        for hole, logps in self._logps(list(wanted)):
            tokens = sorted(wanted[hole])
            values = logps[torch.tensor(tokens, device=logps.device)].tolist()
            found.update({(hole, t): v for t, v in zip(tokens, values, strict=True)})
        for i, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            logps = tuple(tuple(found[step] for step in option) for option in steps[i])
            yield i, Scored(options=prompt.want.options, logps=logps)

    def _spans(self, prompt: Prompt) -> list[Span]:
        if not isinstance(prompt.want, Score):
            raise AbilityError("score() takes prompts that want options scored")
        try:
            spans = self.encoder.options(prompt.prefix, prompt.want.options, prompt.suffix)
        except PromptError as error:
            raise PromptError(f"fact {prompt.key.fact!r}: {error}") from None
        for span in spans:
            check_length(prompt, span, self.loaded.context)
        return spans

    def _logps(self, holes: list[Hole]) -> Iterator[tuple[Hole, Any]]:
        """Log-probabilities over the vocabulary at each hole."""

        def forward(batch: list[int]) -> Any:
            return hole_logps(self.model, [holes[i] for i in batch], narrow=self.narrow)

        for batch, rows in self.budget.run([len(ids) for ids, _ in holes], forward):
            for i, row in zip(batch, rows, strict=True):
                yield holes[i], row

    def _answer_table(self, vocabulary: tuple[str, ...] | None) -> tuple[list[str], Any]:
        """What may be answered: names, and token ids in rising order."""
        if vocabulary is None:
            size = self.model.config.vocab_size
            return [token_name(self.loaded, i) for i in range(size)], torch.arange(size)
        words = self.encoder.single_tokens(vocabulary)
        called = {id: word for word, id in reversed(words.items())}
        ids = sorted(called)
        return [called[id] for id in ids], torch.tensor(ids)

    def _filled(self, prompt: Prompt, logps: Any) -> Filled:
        want = prompt.want
        if not isinstance(want, Fill):
            raise AbilityError("fill() takes prompts that want a hole filled")
        names, ids = self._answers(want.vocabulary)
        allowed = logps[ids.to(logps.device)]
        values, places = best(allowed, min(want.top, len(names)))
        watched = self._watched(want)
        ranks, watched_logps = rank_among(allowed, logps, [w for w in watched if w is not None])
        rank, value = iter(ranks), iter(watched_logps)
        return Filled(
            top=tuple(names[i] for i in places),
            top_logps=tuple(values),
            watched=want.watched,
            watched_logps=tuple(None if w is None else next(value) for w in watched),
            watched_ranks=tuple(None if w is None else next(rank) for w in watched),
            mass=float(torch.logsumexp(allowed, 0)),
        )

    def _watched(self, want: Fill) -> list[int | None]:
        return _watched_ids(self, want.watched, want.vocabulary)


@lru_cache(maxsize=64)
def _watched_ids(
    model: MaskedModel, watched: tuple[str, ...], vocabulary: tuple[str, ...] | None
) -> list[int | None]:
    ids = model.encoder.single_tokens(watched)
    allowed = set(model._answers(vocabulary)[1].tolist())
    return [ids[w] if ids.get(w) in allowed else None for w in watched]


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
    counts = torch.bincount(between, minlength=len(ids) + 1)
    below = torch.cumsum(counts, 0)[:-1]
    at_least = len(allowed) - below
    # equal thresholds share the first one's count
    first = torch.searchsorted(thresholds, thresholds)
    ranks = torch.empty_like(order)
    ranks[order] = at_least[first]
    return ranks.tolist(), values.tolist()


def hole_steps(span: Span, mask: int) -> list[tuple[Hole, int]]:
    """The inputs that score an option left to right, each with the token it must predict."""
    steps = []
    for i in range(span.start, span.stop):
        hidden = (mask,) * (span.stop - i)
        ids = span.ids[:i] + hidden + span.ids[span.stop :]
        steps.append(((ids, i), span.ids[i]))
    return steps


@torch.inference_mode()
def hole_logps(model: Any, holes: Sequence[Hole], *, narrow: bool) -> Any:
    """Log-probabilities at each hole, float32, [holes, vocabulary]."""
    longest = max(len(ids) for ids, _ in holes)
    ids = torch.zeros(len(holes), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, (tokens, _) in enumerate(holes):
        ids[i, : len(tokens)] = torch.tensor(tokens)
        mask[i, : len(tokens)] = 1
    rows = torch.arange(len(holes), device=model.device)
    places = torch.tensor([place for _, place in holes], device=model.device)
    ids, mask = ids.to(model.device), mask.to(model.device)
    if not narrow:
        logits = model(input_ids=ids, attention_mask=mask).logits[rows, places]
        return torch.log_softmax(logits.float(), -1)

    def keep_holes(_module: Any, _inputs: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state[rows, places][:, None]
        return output

    hook = model.base_model.register_forward_hook(keep_holes)
    try:
        logits = model(input_ids=ids, attention_mask=mask).logits[:, 0]
    finally:
        hook.remove()
    return torch.log_softmax(logits.float(), -1)


def head_can_be_narrow(model: Any) -> bool:
    """Whether applying the head at the hole alone gives the same; tried, not assumed."""
    holes: list[Hole] = [((5, 6, 7, 8), 2), ((9, 5), 1)]
    full = hole_logps(model, holes, narrow=False)
    try:
        narrow = hole_logps(model, holes, narrow=True)
    except Exception:  # heads differ between architectures; the full path is always right
        log.debug("narrow head failed", exc_info=True)
        return False
    return narrow.shape == full.shape and bool(torch.allclose(narrow, full, atol=1e-3))


def token_name(loaded: Loaded, id: int) -> str:
    """How a token is shown: its text, with the mark of a word's inner piece kept."""
    piece = loaded.backend.id_to_token(id)
    if piece is None:
        return f"<{id}>"
    if piece.startswith("##"):
        return piece
    text: str = loaded.tokenizer.decode([id]).strip()
    return text or piece


def check_length(prompt: Prompt, span: Span, context: int) -> None:
    """Refuse a text that the model cannot take whole."""
    if len(span.ids) > context:
        raise PromptError(
            f"fact {prompt.key.fact!r}, template {prompt.key.template!r}: the prompt has "
            f"{len(span.ids)} tokens and the model takes {context}; shorten the subject or leave "
            "the fact out"
        )
