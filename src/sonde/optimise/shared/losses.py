"""What soft prompts cost: the loss of each text, and whether its answer came out on top.

The model is frozen and in evaluation mode; vectors are put into its input embedding, and its head
is applied where an answer is read alone. Knows arrays of token ids, nothing of facts or schedules.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.device import onto, steady_attention
from sonde.models.torch.loading.trials import tried, unlike
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.wrappers.soft import SoftEmbedding
from sonde.optimise.shared.texts import Rows

log = logging.getLogger("sonde")


class Losses:
    """Runs a softened model on rows of texts.

    `allowed` [sets, vocabulary] is 0 where a token may be answered and -inf elsewhere, None where
    all may; `which` says which set each relation has. `whole`: the loss is over every token of the
    model, allowed or not.
    """

    def __init__(
        self,
        model: CausalModel | MaskedModel,
        embedding: SoftEmbedding,
        allowed: Any,
        which: np.ndarray,
        *,
        whole: bool,
    ) -> None:
        self.model = model.model
        self.embedding = embedding
        self.allowed = allowed
        self.which = which
        self.whole = whole
        self.causal = isinstance(model, CausalModel)
        self.pads = self.causal or (isinstance(model, MaskedModel) and model.ways.pads)
        # half precision gives tiny gradients, which vanish unless the loss is made larger
        self.scale = 1024.0 if self.model.dtype == torch.float16 else 1.0
        self.narrow = tried(self.model, self._narrows)

    def __call__(self, rows: Rows, chosen: np.ndarray, vectors: Any) -> tuple[Any, Any]:
        """Loss in nats and, 1 or 0, whether the answer is right, of each chosen row, [rows] each.

        `vectors` [relations, vectors, width] hold gradients or not.
        """
        device = self.model.device
        lengths = rows.lengths[chosen]
        width = int(lengths.max())
        inputs = {"input_ids": onto(device, rows.ids[chosen][:, :width])}
        if lengths.min() < width:
            kept = np.arange(width)[None] < lengths[:, None]
            inputs["attention_mask"] = onto(device, kept.astype(np.int64))
        at = rows.vectors[chosen]
        places = onto(device, np.where(at < 0, width, at))
        relation = rows.relation[chosen]
        own = vectors[onto(device, relation)]
        read, slot = np.nonzero(rows.places[chosen] >= 0)
        where = onto(device, read), onto(device, rows.places[chosen][read, slot])
        with self.embedding.placing(places, own), steady_attention(self.model):
            logits = self._logits(inputs, *where)
        golds = onto(device, rows.golds[chosen][read, slot])
        counted = onto(device, slot < rows.answer[chosen][read])
        loss, hit = self._judged(logits, golds, relation[read])
        return (
            torch.zeros(len(chosen), device=device).index_add(0, where[0], loss),
            _all(hit | ~counted, where[0], len(chosen)),
        )

    def _judged(self, logits: Any, golds: Any, relation: np.ndarray) -> tuple[Any, Any]:
        """Loss and hit at each place that is read; several right tokens share their probability."""
        there = golds >= 0
        index = torch.where(there, golds, golds[:, :1])
        gold = logits.gather(1, index).masked_fill(~there, -torch.inf)
        open = logits
        if self.allowed is not None:
            open = logits + self.allowed[onto(logits.device, self.which[relation])]
        loss = torch.logsumexp(logits if self.whole else open, 1) - torch.logsumexp(gold, 1)
        with torch.no_grad():  # a tie is wrong
            rival = open.detach().scatter(1, index, -torch.inf).amax(1)
            hit = gold.detach().amax(1) > rival
        return loss, hit

    def _logits(self, inputs: dict[str, Any], rows: Any, places: Any) -> Any:
        """Logits at some places, float32, [places, vocabulary]."""
        extra = {"use_cache": False} if self.causal else {}

        def keep(_module: Any, _inputs: Any, output: Any) -> Any:
            output.last_hidden_state = output.last_hidden_state[rows, places][:, None]
            return output

        if not self.narrow:
            return self.model(**inputs, **extra).logits[rows, places].float()
        hook = self.model.base_model.register_forward_hook(keep)
        try:
            return self.model(**inputs, **extra).logits[:, 0].float()
        finally:
            hook.remove()

    def _narrows(self) -> bool:
        """Whether the head may be applied at some places alone; tried, not assumed."""
        device = self.model.device
        size = self.model.config.get_text_config().vocab_size
        ids = torch.tensor([[5, 6, 7, 8], [9, 5, 8, 6]], device=device) % size
        where = torch.tensor([0, 1, 1], device=device), torch.tensor([2, 0, 3], device=device)
        with torch.no_grad():
            self.narrow = False
            expected = self._logits({"input_ids": ids}, *where)
            try:
                self.narrow = True
                found = self._logits({"input_ids": ids}, *where)
            except Exception:  # architectures refuse in their own ways
                log.debug("the head takes whole texts only", exc_info=True)
                return False
        if found.shape != expected.shape:
            return False
        plain, other = torch.log_softmax(expected, -1), torch.log_softmax(found, -1)
        return not unlike(self.model, plain, other, noise=0.0, logits=expected)


def _all(hits: Any, rows: Any, count: int) -> Any:
    """For each row, whether all of its hits are."""
    missed = torch.zeros(count, device=hits.device).index_add(0, rows, (~hits).float())
    return (missed == 0).float()


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """No weight gets a gradient, and the head is one that gradients go through."""
    kept = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    head = model.get_output_embeddings()
    quick = vars(head).pop("forward", None) if head is not None else None
    for parameter, _ in kept:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, wanted in kept:
            parameter.requires_grad_(wanted)
        if quick is not None:
            head.forward = quick
