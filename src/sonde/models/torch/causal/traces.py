"""The log-probabilities of some parts of given texts, read in one pass over each text.

Texts that begin alike share a stem, computed once and kept, up to the first token that is read.
Behind it the texts of a batch are one tree; a text over the budget goes through alone, piece by
piece. Logits are made only where they are read. Models that cannot be fed a tree read each text as
a row of its own ("flat"). `reference.py` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from sonde.core.answers import Traced
from sonde.core.errors import AbilityError, PromptError
from sonde.core.prompts import Prompt, Trace
from sonde.engine.batching import Budget
from sonde.engine.encode import CausalEncoder
from sonde.engine.prefixes import stems
from sonde.engine.spans import SpanTokens, mark
from sonde.engine.token_tree import Reading, merge_texts
from sonde.models.torch.causal.token_tree import (
    KeysAndValues,
    PrefixCache,
    by_sequence,
    forest_logps,
    token_logps,
)
from sonde.models.torch.causal.tree_masks import additive_mask
from sonde.models.torch.loading.device import fetched, onto, steady_attention
from sonde.models.torch.loading.limits import check_text, naming
from sonde.models.torch.loading.weights import Loaded, out_of_memory


class Tracer:
    """Reads parts of texts with a causal model."""

    def __init__(
        self,
        loaded: Loaded,
        encoder: CausalEncoder,
        budget: Budget,
        stems: PrefixCache,
        *,
        tree: bool,
    ) -> None:
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = encoder
        self.budget = budget
        self.stems = stems
        self.tree = tree

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Traced]]:
        """The log-probability of every token of each prompt's spans."""
        texts = self.texts(prompts)
        for position, logps in self._trees(texts) if self.tree else self._flat(texts):
            yield position, traced(texts[position], logps)

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

    def _trees(self, texts: Sequence[SpanTokens]) -> Iterator[tuple[int, list[float]]]:
        """Texts that begin alike go together, behind their stem."""
        for stem in stems([text.unread for text in texts]):
            rest = [behind(texts[i], len(stem.ids)) for i in stem.members]
            forward = partial(self._launch, stem.ids, rest)
            lengths = [reads[-1] for _, reads in rest]
            for batch, read in self.budget.run(lengths, forward, padded=False):
                for i, logps in zip(batch, read(), strict=True):
                    yield stem.members[i], logps

    def _launch(
        self, stem: tuple[int, ...], texts: list[Reading], batch: list[int]
    ) -> Callable[[], list[list[float]]]:
        """Read some texts as one tree behind the stem; fetch what was read when called."""
        if len(batch) == 1:
            alone = self._alone(stem, texts[batch[0]])
            return lambda: [alone().tolist()]
        trees = merge_texts([texts[i] for i in batch])
        try:
            logps = forest_logps(self.model, trees, self.stems.get(stem))
        except Exception:
            self.stems.clear()  # if memory ran out, they are the first to go
            raise
        return lambda: by_sequence(trees, logps)

    def _alone(self, stem: tuple[int, ...], text: Reading) -> Callable[[], np.ndarray]:
        """One text, in pieces within the budget; smaller ones where memory runs out."""
        try:
            return chain_logps(self.model, text, self.stems.get(stem), self.budget.tokens)
        except Exception as error:
            if self.budget.tokens == 1 or not out_of_memory(error):
                raise
        self.stems.clear()
        self.budget.halve(text[1][-1])
        # the stem too in pieces, in case that was what did not fit
        return self._alone((), (stem + text[0], tuple(i + len(stem) for i in text[1])))

    def _flat(self, texts: Sequence[SpanTokens]) -> Iterator[tuple[int, list[float]]]:
        """Every text as a padded row."""
        rest = [behind(text, 0) for text in texts]

        def forward(batch: list[int]) -> list[list[float]]:
            return row_logps(self.model, [rest[i] for i in batch])

        for batch, rows in self.budget.run([len(text.fed) for text in texts], forward):
            yield from zip(batch, rows, strict=True)


def behind(text: SpanTokens, length: int) -> Reading:
    """A text without its first tokens, none of which is read."""
    return text.ids[length:], tuple(i - length for i in text.reads)


def traced(text: SpanTokens, logps: Sequence[float]) -> Traced:
    """What was read, in a row for each span."""
    values = iter(logps)
    return Traced(logps=tuple(tuple(islice(values, b - a)) for a, b in text.ranges))


@torch.inference_mode()
def chain_logps(
    model: Any, text: Reading, stem: KeysAndValues, size: int
) -> Callable[[], np.ndarray]:
    """Begin to read one text behind a stem, at most `size` tokens in a pass; calling waits."""
    ids, reads = np.array(text[0]), np.array(text[1])
    length, total = stem[0][0].shape[-2] if stem else 0, int(reads[-1])
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(stem):
        cache.update(keys, values, layer)
    found = []
    for start in range(0, total, size):
        stop = min(start + size, total)
        here = reads[(reads > start) & (reads <= stop)]
        kept = bool(stem) or total > size
        logits = _piece(model, ids, start, stop, length, cache if kept else None, here - 1 - start)
        if len(here):
            found.append(token_logps(logits, np.arange(len(here)), ids[here]))
    return fetched(torch.cat(found))


def _piece(
    model: Any, ids: np.ndarray, start: int, stop: int, stem: int, cache: Any, places: np.ndarray
) -> Any:
    """Feed a text from start up to stop, behind what is in the cache; logits at some places."""
    own, before = np.arange(start, stop), np.arange(stop)
    with steady_attention(model):
        output = model(
            input_ids=onto(model.device, ids[None, start:stop]),
            position_ids=onto(model.device, own[None] + stem),
            attention_mask=additive_mask(model, own[:, None] >= before[None], own, stem, before),
            logits_to_keep=onto(model.device, places) if len(places) else 1,
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0]


@torch.inference_mode()
def row_logps(model: Any, texts: Sequence[Reading]) -> list[list[float]]:
    """What is read of some texts, each a padded row of its own."""
    longest = max(reads[-1] for _, reads in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, (tokens, reads) in enumerate(texts):
        ids[i, : reads[-1]] = torch.tensor(tokens[: reads[-1]])
        mask[i, : reads[-1]] = 1
    places = np.unique([i - 1 for _, reads in texts for i in reads])
    narrow = "logits_to_keep" in signature(model.forward).parameters
    named = {"logits_to_keep": onto(model.device, places)} if narrow else {}
    output = model(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        use_cache=False,
        **named,
    )
    at = {int(place): row for row, place in enumerate(places)} if narrow else range(longest)
    results = []
    for logits, (tokens, reads) in zip(output.logits, texts, strict=True):
        rows = np.array([at[i - 1] for i in reads])
        wanted = np.array([tokens[i] for i in reads])
        results.append(token_logps(logits, rows, wanted).tolist())
    return results
