"""Masked language models: fill a hole, or score options at it.

A multi-token option is scored left to right inside itself: each token is predicted with itself and
the option's tokens right of it masked, those left of it shown. Identical inputs are computed once
and the head is applied at the hole alone. `reference.py` is the naive twin.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from sonde.core.abilities import Identity
from sonde.core.answers import Filled, Scored
from sonde.core.errors import AbilityError, ModelError
from sonde.core.prompts import Fill, Prompt, Score
from sonde.engine.encode import MaskedEncoder, Span, opening
from sonde.engine.pack import Budget
from sonde.models.torch.answers import Table, Tables, read_hole
from sonde.models.torch.identity import identify
from sonde.models.torch.limits import check_spans, naming, telling
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
        self.pads = padding_is_harmless(self.model)
        self.tables = Tables(loaded, self.encoder)

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return identify(self.loaded, bos="as the tokenizer frames a text", scoring="mask")

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer) with the likeliest tokens and the watched names."""
        return telling(self._fill(prompts))

    def _fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        spans = self.encoder.holes([(p.prefix, p.suffix) for p in prompts])
        owners: dict[Hole, list[tuple[int, Fill, Table]]] = {}
        tables: dict[tuple[int, str], Table] = {}
        for i, (prompt, span) in enumerate(zip(prompts, spans, strict=True)):
            want = prompt.want
            if not isinstance(want, Fill):
                raise AbilityError("fill() takes prompts that want a hole filled")
            with naming(prompt):
                check_spans([span], self.loaded)
                # by identity, because hashing a vocabulary for every prompt would cost more
                kind = (id(want), opening(prompt.prefix))
                if kind not in tables:
                    tables[kind] = self.tables.table(want, prompt.prefix)
            owners.setdefault((span.ids, span.start), []).append((i, want, tables[kind]))
        for hole, logps in self._logps(list(owners)):
            for i, want, table in owners[hole]:
                yield i, read_hole(want, table, logps)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) with the log-probabilities of every option's tokens."""
        return telling(self._score(prompts))

    def _score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
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
        with naming(prompt):
            spans = self.encoder.options(prompt.prefix, prompt.want.options, prompt.suffix)
            check_spans(spans, self.loaded)
        return spans

    def _logps(self, holes: list[Hole]) -> Iterator[tuple[Hole, Any]]:
        """Log-probabilities over the vocabulary at each hole."""
        groups = [holes] if self.pads else by_length(holes)
        for group in groups:
            forward = partial(self._forward, group)
            for batch, rows in self.budget.run([len(ids) for ids, _ in group], forward):
                for i, row in zip(batch, rows, strict=True):
                    yield group[i], row

    def _forward(self, holes: list[Hole], batch: list[int]) -> Any:
        return hole_logps(self.model, [holes[i] for i in batch], narrow=self.narrow)


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
    holes = trial_holes(model)
    full = hole_logps(model, holes, narrow=False)
    try:
        narrow = hole_logps(model, holes, narrow=True)
    except Exception:  # heads differ between architectures; the full path is always right
        log.debug("narrow head failed", exc_info=True)
        return False
    return narrow.shape == full.shape and bool(torch.allclose(narrow, full, atol=1e-3))


def padding_is_harmless(model: Any) -> bool:
    """Whether a text answers the same beside a longer one; convolutions look into the padding."""
    holes = trial_holes(model)
    beside = hole_logps(model, holes, narrow=False)[1]
    alone = hole_logps(model, holes[1:], narrow=False)[0]
    tolerance = 1e-3 if model.dtype == torch.float32 else 0.2
    return bool(torch.allclose(beside, alone, atol=tolerance))


def trial_holes(model: Any) -> list[Hole]:
    """Two short inputs, the second the shorter one."""
    size = model.config.get_text_config().vocab_size
    ids = [token % size for token in (5, 6, 7, 8, 9)]
    return [(tuple(ids[:4]), 2), ((ids[4], ids[0]), 1)]


def by_length(holes: Sequence[Hole]) -> list[list[Hole]]:
    """Inputs in groups of equal length, which need no padding."""
    groups: dict[int, list[Hole]] = {}
    for hole in holes:
        groups.setdefault(len(hole[0]), []).append(hole)
    return list(groups.values())
