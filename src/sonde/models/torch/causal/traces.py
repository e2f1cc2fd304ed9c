"""The log-probabilities of some parts of given texts, read in one pass over each text.

Texts that begin alike share a prefix, computed once and kept, up to the first token that is read.
Behind it the texts of a batch are one tree; a text over the budget goes through alone, piece by
piece. Logits are made only where they are read. Models that cannot be fed a tree read each text as
a row of its own ("flat"). `reference` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np
import torch

from sonde.core.answers import Traced
from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Prompt, Trace
from sonde.engine.batching import Budget
from sonde.engine.encode import CausalEncoder
from sonde.engine.prefixes import PrefixCache
from sonde.engine.schedule import Pass, Passes, Pieces, row_passes, trace_passes
from sonde.engine.spans import SpanTokens, mark
from sonde.engine.token_tree import Reading
from sonde.models.torch.causal.token_tree import (
    KeysAndValues,
    additive_mask,
    by_sequence,
    cache_behind,
    token_logps,
    tree_logps,
)
from sonde.models.torch.loading.device import fetched, onto, padded, steady_attention
from sonde.models.torch.loading.limits import check_text, naming
from sonde.models.torch.loading.weights import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """Reads parts of texts with a causal model; `tree`: whether it can be fed one."""

    loaded: Loaded
    encoder: CausalEncoder
    budget: Budget
    prefixes: PrefixCache[KeysAndValues]
    tree: bool

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """The log-probability of every token of each prompt's spans."""
        texts = self.texts(prompts)
        forward = self._tree if self.tree else partial(self._flat, texts)
        for step, read in self.budget.execute(self.passes(texts), forward):
            for position, logps in zip(step.members, read(), strict=True):
                yield position, traced(texts[position], logps)

    def passes(self, texts: Sequence[SpanTokens]) -> Passes:
        """How some texts go through the model."""
        if self.tree:
            return trace_passes(self.budget, texts)
        return row_passes(self.budget, [len(text.fed) for text in texts])

    def texts(self, prompts: Sequence[Prompt]) -> list[SpanTokens]:
        """Every prompt as token ids, refused if the model cannot take one of them."""
        whole = self.encoder.whole([prompt.prefix for prompt in prompts])
        found = []
        for prompt, tokens in zip(prompts, whole, strict=True):
            if not isinstance(prompt.want, Trace):
                raise AbilityError("trace() takes prompts that want Trace(…)")
            with naming(prompt):
                if prompt.suffix:
                    raise PromptError(
                        f"text stands after the part that is read ({prompt.suffix!r}); put all of "
                        "it into the prefix"
                    )
                text = mark(tokens, prompt.prefix, prompt.want.spans, self.encoder.start)
                check_text(len(text.ids), max(text.ids), self.loaded)
            found.append(text)
        return found

    def _tree(self, step: Pass) -> Callable[[], list[list[float]]]:
        """Begin to read some texts as one tree, or one text in pieces, behind their prefix."""
        try:
            prefix = self.prefixes.get(step.prefix)
            if isinstance(step.work, Pieces):
                pieces = chain_logps(self.loaded.model, step.work, prefix)
                return lambda: [pieces().tolist()]
            logps = tree_logps(self.loaded.model, step.work, prefix)
            return lambda: by_sequence(step.work, logps)
        except Exception:
            self.prefixes.clear()  # if memory ran out, they are the first to go
            raise

    def _flat(self, texts: Sequence[SpanTokens], step: Pass) -> Callable[[], list[list[float]]]:
        """Read some texts as padded rows."""
        rows = row_logps(self.loaded.model, [texts[i].after(0) for i in step.members])
        return lambda: rows


def traced(text: SpanTokens, logps: Sequence[float]) -> Traced:
    """What was read, in a row for each span."""
    values = iter(logps)
    return Traced(logps=tuple(tuple(islice(values, b - a)) for a, b in text.ranges))


@torch.inference_mode()
def chain_logps(model: Any, pieces: Pieces, prefix: KeysAndValues) -> Callable[[], np.ndarray]:
    """Begin to read one text behind a prefix, a piece in each pass; calling waits."""
    ids, reads = map(np.array, pieces.text)
    cache, length = cache_behind(prefix)
    kept = bool(prefix) or len(pieces.bounds) > 1
    logps = []
    for start, stop in pieces.bounds:
        here = reads[(reads > start) & (reads <= stop)]
        logits = _piece(model, ids, start, stop, length, cache if kept else None, here - 1 - start)
        if len(here):
            logps.append(token_logps(logits, np.arange(len(here)), ids[here]))
    return fetched(torch.cat(logps))


def _piece(
    model: Any, ids: np.ndarray, start: int, stop: int, prefix: int, cache: Any, places: np.ndarray
) -> Any:
    """Feed a text from start up to stop, behind what is in the cache; logits at some places."""
    own, before = np.arange(start, stop), np.arange(stop)
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, ids[None, start:stop]),
            position_ids=onto(model.device, own[None] + prefix),
            attention_mask=additive_mask(model, own[:, None] >= before[None], own, prefix, before),
            logits_to_keep=onto(model.device, places) if len(places) else 1,
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0]


@torch.inference_mode()
def row_logps(model: Any, texts: Sequence[Reading]) -> list[list[float]]:
    """What is read of some texts, each a padded row of its own."""
    longest = max(reads[-1] for _, reads in texts)
    places = np.unique([i - 1 for _, reads in texts for i in reads])
    narrow = "logits_to_keep" in signature(model.forward).parameters
    named = {"logits_to_keep": onto(model.device, places)} if narrow else {}
    fed = padded(model.device, [tokens[: reads[-1]] for tokens, reads in texts])
    output = model(**fed, **named, use_cache=False)
    at = {int(place): row for row, place in enumerate(places)} if narrow else range(longest)
    results = []
    for logits, (tokens, reads) in zip(output.logits, texts, strict=True):
        rows = np.array([at[i - 1] for i in reads])
        wanted = np.array([tokens[i] for i in reads])
        results.append(token_logps(logits, rows, wanted).tolist())
    return results
