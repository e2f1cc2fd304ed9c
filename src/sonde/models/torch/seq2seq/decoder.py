"""Write with an encoder-decoder model: each distinct text is a row of its own, with its cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from sonde.core.prompts import Prompt
from sonde.engine.batching import Budget
from sonde.engine.prefixes import SourceCache
from sonde.engine.schedule import Pass, Passes, source_passes
from sonde.engine.seq2seq_encode import Ids, Seq2SeqEncoder
from sonde.models.torch.decode.steps import Endings, Leaf, end_tokens
from sonde.models.torch.decode.tree_decoder import Step, Writer, Written
from sonde.models.torch.loading.device import padded
from sonde.models.torch.loading.limits import check_room, check_text
from sonde.models.torch.loading.weights import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What was read ([rows, tokens, width] and its mask) and the keys and values so far."""

    states: Any
    mask: Any
    cache: Any

    def pick(self, rows: Sequence[int]) -> Rows:
        """Some rows, each as often as named, with a cache of their own."""
        index = torch.tensor(list(rows), device=self.states.device)
        own, cross = DynamicCache(), DynamicCache()
        kept = (self.cache.self_attention_cache, self.cache.cross_attention_cache)
        for made, old in zip((own, cross), kept, strict=True):
            for number, layer in enumerate(old.layers):
                keys, values = (t.index_select(0, index) for t in (layer.keys, layer.values))
                made.update(keys, values, number)
        return Rows(
            states=self.states.index_select(0, index),
            mask=self.mask.index_select(0, index),
            cache=EncoderDecoderCache(own, cross),
        )

    def going_on(self, rows: Sequence[int]) -> Rows:
        """The same where these are not needed any more: nothing is copied while all go on."""
        return self if list(rows) == list(range(len(self.states))) else self.pick(rows)


class Reader:
    """Reads texts, each once until it is told to forget, while there is room for what was read."""

    def __init__(self, model: Any, room: int) -> None:
        self.model = model
        token = model.get_input_embeddings().weight.shape[-1] * model.dtype.itemsize
        self.cache: SourceCache[Any] = SourceCache(room, token)

    def open(self, sources: Sequence[Ids], opening: Sequence[int]) -> tuple[Any, Rows]:
        """Read some texts and feed what opens every answer; logits after it, [rows, vocabulary]."""
        try:
            read = self._states(sources)
            states = pad_sequence(read, batch_first=True)
            mask = pad_sequence([torch.ones(len(each)) for each in read], batch_first=True).long()
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            rows = Rows(states=states, mask=mask.to(states.device), cache=cache)
            return feed(self.model, rows, [list(opening)] * len(sources), last=True)[:, 0], rows
        except Exception:
            self.cache.clear()  # if memory ran out, what is kept is the first to go
            raise

    def _states(self, sources: Sequence[Ids]) -> list[Any]:
        missing = self.cache.missing(sources)
        new = dict(zip(missing, read(self.model, missing), strict=True))
        states = [self.cache.kept[ids] if ids in self.cache.kept else new[ids] for ids in sources]
        for ids, state in new.items():
            self.cache.keep(ids, state.clone)  # or the whole batch would stay in memory
        return states


@torch.inference_mode()
def read(model: Any, sources: Sequence[Ids]) -> list[Any]:
    """What the encoder makes of some texts, [tokens, width] each; padding is not looked at."""
    if not sources:
        return []
    states = model.get_encoder()(**padded(model.device, sources)).last_hidden_state
    return [states[i, : len(source)] for i, source in enumerate(sources)]


@torch.inference_mode()
def feed(model: Any, rows: Rows, tokens: Sequence[Sequence[int]], *, last: bool = False) -> Any:
    """Feed tokens to every row, as many to each; logits after each token, [rows, tokens, words].

    `last`: only after the last one. The cache of the rows grows with it.
    """
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=rows.states),
        attention_mask=rows.mask,
        decoder_input_ids=torch.tensor(list(tokens), device=model.device),
        past_key_values=rows.cache,
        use_cache=True,
    )
    return output.logits[:, -1:] if last else output.logits


class Seq2SeqDecoder(Writer):
    """Writes texts and draws samples with an encoder-decoder model."""

    def __init__(
        self, loaded: Loaded, encoder: Seq2SeqEncoder, reader: Reader, budget: Budget, start: int
    ) -> None:
        opening = (start, *encoder.opens)
        super().__init__(Endings(loaded.backend, end_tokens(loaded)), opened=len(opening))
        self.loaded = loaded
        self.encoder = encoder
        self.reader = reader
        self.budget = budget
        self.opening = opening

    def ids(self, prompt: Prompt, most: int) -> tuple[int, ...]:
        """What is read."""
        ids = self.encoder.source(prompt.prefix).ids
        check_text(len(ids), max(ids), self.loaded)
        check_room(self.opening, most, self.loaded)
        return ids

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """What is written follows what opens every answer."""
        return self.opening

    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """Some prompts at a time; a prompt needs as many rows as it may have texts."""
        rows = [sum(leaf.shares.values()) for leaf in leaves]
        sources = [leaf.root.ids for leaf in leaves]
        return source_passes(self.budget, sources, self.opened, rows=rows)

    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """All that is written after some prompts at a time."""
        grow = partial(self._grown, leaves, step)
        for each, written in self.budget.execute(self.passes(leaves), grow):
            yield [leaves[i] for i in each.members], written

    def _grown(self, roots: Sequence[Leaf], step: Step, batch: Pass) -> list[Written]:
        leaves = [roots[i] for i in batch.members]
        logits, rows = self.reader.open(batch.work, self.opening)
        ended: list[Written] = []
        while leaves:
            written, children = step(logits, leaves)
            ended += written
            leaves = [leaf for _, leaf in children]
            if leaves:
                rows = rows.going_on([row for row, _ in children])
                last = [[leaf.path[-1]] for leaf in leaves]
                logits = feed(self.loaded.model, rows, last)[:, -1]
        return ended
