"""A step of rows that stay the same, recorded once and then repeated by a GPU without Python.

A pass of a small model lasts as long as Python takes to start its kernels. A CUDA graph starts them
all at once, but always on the same buffers: so what changes from step to step, tokens and lengths,
is copied into buffers that stay. Knows tensors, nothing of prompts or text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sonde.models.torch.causal.rows import RowCache
from sonde.models.torch.causal.shared_prefix import Attending, SharedPrefixes, attending
from sonde.models.torch.loading.device import onto


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
        self.graph: Any = None
        self.logits: Any = None

    @torch.inference_mode()
    def record(self) -> None:
        """Record the step; nothing is computed."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run()
        self.graph = graph

    def run(self) -> None:
        """The step itself."""
        seen = (self.places[None] <= self.lengths[:, None])[:, None, None]
        with attending(self.model, Attending(prefixes=self.prefixes, seen=seen)):
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
