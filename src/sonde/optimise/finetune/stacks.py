"""Copies of one model's weights that are run side by side, each on texts of its own.

A weight of R copies is one tensor with R rows. Several copies go through the model together where
that gives what each gives alone, which is tried and not assumed. Knows arrays of token ids.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from sonde.models.torch.loading.device import onto, steady_attention
from sonde.models.torch.masked.logits import kept_logits
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.losses import pads, uncached
from sonde.optimise.texts import Rows, Trainable

log = logging.getLogger("sonde")

Weights = dict[str, Any]
"""Weights by name, [copies, …] each, in float32."""


class Stacked:
    """Runs copies of a model. `narrow`: the head may be applied where logits are read alone."""

    def __init__(self, model: Trainable, *, narrow: bool) -> None:
        self.model = model.model
        self.device = model.model.device
        self.narrow = narrow
        self.causal = not isinstance(model, MaskedModel)
        self.pads, self.uncached = pads(model), uncached(model)

    def copies(self, count: int) -> Weights:
        """So many copies of the model's own weights."""
        return {
            name: parameter.detach().float().expand(count, *parameter.shape).clone()
            for name, parameter in self.model.named_parameters()
        }

    def logits(self, weights: Mapping[str, Any], rows: Rows, chosen: np.ndarray) -> Any:
        """Logits of texts chosen[copy, i] at the places that are read, [copies, texts, places, …].

        Places that a text does not have hold numbers without meaning.
        """
        lengths = rows.lengths[chosen]
        width = int(lengths.max())
        ids = onto(self.device, rows.ids[chosen][..., :width])
        places = onto(self.device, np.maximum(rows.places[chosen], 0))
        kept = np.arange(width) < lengths[..., None]
        if len(chosen) > 1:
            return self._together(weights, ids, onto(self.device, kept), places)
        single = {name: weight[0] for name, weight in weights.items()}
        if self.pads or lengths.min() == width:
            return self._alone(single, ids[0], kept[0], places[0])[None]
        parts = [
            self._alone(single, ids[0, i : i + 1, :n], kept[0, i : i + 1, :n], places[0, i : i + 1])
            for i, n in enumerate(lengths[0].tolist())
        ]
        return torch.cat(parts)[None]

    def _alone(self, weights: Weights, ids: Any, kept: np.ndarray, places: Any) -> Any:
        inputs: dict[str, Any] = {"input_ids": ids}
        if not kept.all():
            inputs["attention_mask"] = onto(self.device, kept.astype(np.int64))
        with steady_attention(self.model):
            return self._run(weights, inputs, places)

    def _together(self, weights: Mapping[str, Any], ids: Any, kept: Any, places: Any) -> Any:
        mask = torch.zeros(kept.shape, device=self.device)
        mask = mask.masked_fill_(~kept, torch.finfo(torch.float32).min)[:, :, None, None]

        def run(weights: Weights, ids: Any, mask: Any, places: Any) -> Any:
            return self._run(weights, {"input_ids": ids, "attention_mask": mask}, places)

        with sdpa_kernel([SDPBackend.MATH]):  # the others would take the copies one by one
            return vmap(run)(dict(weights), ids, mask, places)

    def _run(self, weights: Weights, inputs: dict[str, Any], places: Any) -> Any:
        rows = torch.arange(len(inputs["input_ids"]), device=self.device)[:, None]

        def run(**inputs: Any) -> Any:
            return functional_call(self.model, weights, (), inputs)

        inputs = {**inputs, **self.uncached}
        keep = itemgetter((rows, places))
        return kept_logits(self.model, inputs, keep, narrow=self.narrow, run=run)

    @torch.no_grad()
    def stacks(self) -> bool:
        """Whether copies may go through the model together; tried, not assumed."""
        if self.causal or not self.pads:
            return False
        rows = trial(int(self.model.config.get_text_config().vocab_size))
        chosen = np.array([[0, 1], [1, 0]])
        weights = self.copies(2)
        try:
            together = self.logits(weights, rows, chosen)
        except Exception:  # architectures refuse in their own ways
            log.debug("copies do not go through the model together", exc_info=True)
            return False
        single = {name: weight[:1] for name, weight in weights.items()}
        alone = torch.cat([self.logits(single, rows, chosen[i : i + 1]) for i in (0, 1)])
        return bool((together - alone).abs().max() < 1e-3 * max(1.0, float(alone.abs().max())))


def trial(size: int) -> Rows:
    """Two short texts of unequal length."""
    return Rows(
        ids=np.array([[5, 6, 7, 8], [9, 5, 0, 0]]) % size,
        lengths=np.array([4, 2]),
        vectors=np.zeros((2, 0), dtype=np.int64),
        places=np.array([[2], [1]]),
        golds=np.zeros((2, 1, 1), dtype=np.int64),
        answer=np.ones(2, dtype=np.int64),
        relation=np.zeros(2, dtype=np.int64),
    )
