"""A step of rows that stay the same, recorded once and then repeated by a GPU without Python.

A pass of a small model lasts as long as Python takes to start its kernels. A CUDA graph starts them
all at once, but always on the same buffers: so what changes from step to step, tokens and lengths,
is copied into buffers that stay. The first that is recorded for a model is held against the step as
it is. Knows tensors, nothing of prompts or text.
"""

from __future__ import annotations

import logging
import weakref
from typing import Any

import numpy as np
import torch

from sonde.models.torch.causal.rows import RowCache, row_logits
from sonde.models.torch.causal.shared_prefix import SHARED_PREFIX, Attending, SharedPrefixes
from sonde.models.torch.loading.device import onto
from sonde.models.torch.loading.spread import recordable
from sonde.models.torch.loading.trials import HALVES
from sonde.models.torch.loading.weights import out_of_memory
from sonde.models.torch.recorded import Graph, agree

log = logging.getLogger("sonde")


class FixedCache(RowCache):
    """The same buffers as another cache; how long rows are is known to the device alone."""

    def __init__(self, cache: RowCache, lengths: Any) -> None:
        super().__init__(len(cache.lengths), cache.room)
        self.kept = cache.kept
        self.at = lengths
        self.each = torch.arange(len(lengths), device=lengths.device)

    def update(
        self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Put a token behind those of each row; all there is room for, seen or not."""
        for buffer, new in zip(self.kept[layer_idx], (key_states, value_states), strict=True):
            each, at = self.each.to(new.device), self.at.to(new.device)
            buffer[each, :, at] = new[:, :, 0]
        return self.kept[layer_idx]


class StepGraph:
    """A step of the rows of a cache behind their prefixes.

    `cache` is the one whose rows it is for; `logits` are [rows, vocabulary], after the last step.
    """

    def __init__(self, model: Any, cache: RowCache, prefixes: SharedPrefixes) -> None:
        device = model.get_input_embeddings().weight.device
        rows = len(cache.lengths)
        self.model = model
        self.cache = cache
        self.prefixes = prefixes
        self.ids = torch.zeros(rows, 1, dtype=torch.long, device=device)
        self.lengths = onto(device, cache.lengths.copy())
        self.behind = onto(device, prefixes.lengths)
        self.places = torch.arange(cache.room, device=device)
        self.fixed = FixedCache(cache, self.lengths)
        self.graph: Graph | None = None
        self.logits: Any = None

    @torch.inference_mode()
    def record(self) -> None:
        """Record the step; nothing is computed."""
        self.graph = Graph(self.run, self.ids.device)

    def run(self) -> None:
        """The step itself."""
        seen = (self.places[None] <= self.lengths[:, None])[:, None, None]
        with SHARED_PREFIX.used(self.model, Attending(prefixes=self.prefixes, seen=seen)):
            output = self.model(
                input_ids=self.ids,
                position_ids=(self.lengths + self.behind)[:, None],
                past_key_values=self.fixed,
                use_cache=True,
            )
        self.logits = output.logits[:, 0]

    @torch.inference_mode()
    def step(self, tokens: np.ndarray) -> Any:
        """Logits after one more token of every row, which goes behind what its cache has."""
        self.ids.copy_(onto(self.ids.device, tokens[:, None]))
        self.lengths.copy_(onto(self.ids.device, self.cache.lengths))
        if self.graph is None:
            self.run()
        else:
            self.graph.replay()
        return self.logits


class Recorder:
    """Records steps of a model, as long as they come to what they come to unrecorded."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.usable = model.device.type == "cuda" and recordable(model)
        self.tried = False
        self.too_large: weakref.ref[RowCache] | None = None  # no memory to record its rows

    def record(
        self, cache: RowCache, prefixes: SharedPrefixes, tokens: np.ndarray
    ) -> StepGraph | None:
        """A recorded step for some rows, whose next tokens these are; None if there can be none."""
        if not self.usable or (self.too_large is not None and self.too_large() is cache):
            return None
        try:
            graph = StepGraph(self.model, cache, prefixes)
            graph.record()
            if not self.tried:
                self.usable, self.tried = self._agrees(graph, tokens), True
        except Exception as error:  # each architecture has its own that cannot be recorded
            log.debug("a step is not recorded", exc_info=True)
            self.usable, self.too_large = out_of_memory(error), weakref.ref(cache)
            return None
        return graph if self.usable else None

    def _agrees(self, graph: StepGraph, tokens: np.ndarray) -> bool:
        """Whether a recorded step gives the logits of the step as it is; either may come again."""
        found = graph.step(tokens).clone()
        plain = next_logits(self.model, tokens, graph.cache, graph.prefixes)
        return agree(found, plain, half=self.model.dtype in HALVES)


def next_logits(model: Any, tokens: np.ndarray, cache: RowCache, prefixes: SharedPrefixes) -> Any:
    """Logits [rows, vocabulary] after one more token of every row."""
    reads = np.arange(len(tokens))
    return row_logits(
        model, tokens[:, None], cache.lengths[:, None], prefixes, reads=reads, cache=cache
    )
