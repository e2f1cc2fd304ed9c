"""What prompts cost: the loss of each text, and whether its answer came out on top.

The model is frozen and in evaluation mode; vectors are put into its input embedding, and its head
is applied where an answer is read alone. Knows arrays of token ids, nothing of facts or schedules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sonde.engine.batching import Budget
from sonde.models.torch.loading.device import onto, steady_attention
from sonde.models.torch.loading.trials import tried, unlike
from sonde.models.torch.loading.weights import out_of_memory
from sonde.models.torch.masked.logits import kept_logits
from sonde.models.torch.masked.model import ENOUGH, MaskedModel
from sonde.models.torch.soft import SoftEmbedding
from sonde.optimise.texts import Draft, Rows, Trainable

log = logging.getLogger("sonde")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Compares logits with what is right.

    `bias` [sets, vocabulary] is 0 where a token may be answered and -inf elsewhere, None where all
    may; `sets` says which set each relation has. `whole`: the loss is over every token of the
    model, allowed or not.
    """

    bias: Any
    sets: np.ndarray
    whole: bool

    @classmethod
    def of(cls, model: Trainable, drafts: Sequence[Draft], *, whole: bool) -> Judge:
        """The answers that each of some relations allows."""
        allowed = list(dict.fromkeys(draft.allowed for draft in drafts))
        sets = np.array([allowed.index(draft.allowed) for draft in drafts])
        bias = None
        if any(ids is not None for ids in allowed):
            bias = torch.zeros(len(allowed), model.loaded.rows)
            for row, ids in zip(bias, allowed, strict=True):
                if ids is not None:
                    row.fill_(-torch.inf)
                    row[sorted(ids)] = 0.0
            bias = bias.to(model.model.device)
        return cls(bias=bias, sets=sets, whole=whole)

    def texts(
        self, logits: Any, rows: Rows, chosen: np.ndarray, read: tuple[np.ndarray, np.ndarray]
    ) -> tuple[Any, Any]:
        """Loss in nats and, 1 or 0, whether the answer is right, of each chosen row, [rows] each.

        `logits` [places, vocabulary] are those at the places `read`: which text, which of its own.
        """
        text, place = read
        golds = onto(logits.device, rows.golds[chosen][read])
        sets = onto(logits.device, self.sets[rows.relation[chosen][text]])
        loss, hit = self.places(logits, golds, sets)
        counted = onto(logits.device, place < rows.answer[chosen][text])
        text, zeros = onto(logits.device, text), torch.zeros(len(chosen), device=logits.device)
        missed = zeros.index_add(0, text, (~hit & counted).float())
        return zeros.index_add(0, text, loss), (missed == 0).float()

    def places(self, logits: Any, golds: Any, sets: Any) -> tuple[Any, Any]:
        """Loss and hit at each place that is read; several right tokens share their probability.

        `golds` [places, names], and the set of answers that each place has, [places].
        """
        there = golds >= 0
        index = torch.where(there, golds, golds[:, :1])
        gold = logits.gather(1, index).masked_fill(~there, -torch.inf)
        open = logits
        if self.bias is not None:
            open = logits + self.bias[sets]
        loss = torch.logsumexp(logits if self.whole else open, 1) - torch.logsumexp(gold, 1)
        with torch.no_grad():  # a tie is wrong
            rival = open.detach().scatter(1, index, -torch.inf).amax(1)
            hit = gold.detach().amax(1) > rival
        return loss, hit


class Losses:
    """Runs a softened model on rows of texts, as many at once as its memory holds.

    Each row has the vectors of its relation, or of its `owner` where that is given.
    """

    def __init__(
        self, model: Trainable, embedding: SoftEmbedding, judge: Judge, tokens: dict[str, int]
    ) -> None:
        self.model = model.model
        self.embedding = embedding
        self.judge = judge
        self.pads, self.uncached = pads(model), uncached(model)
        # half precision gives tiny gradients, which vanish unless the loss is made larger
        self.scale = 1024.0 if self.model.dtype == torch.float16 else 1.0
        self.narrow = narrows(model)
        self.budget = Budget(
            model.loaded.options.batch_tokens or tokens[self.model.device.type], out_of_memory
        )

    def __call__(
        self, rows: Rows, chosen: np.ndarray, vectors: Any, owner: np.ndarray
    ) -> tuple[Any, Any]:
        """Loss in nats and, 1 or 0, whether the answer is right, of each chosen row, [rows] each.

        `vectors` [owners, vectors, width] hold gradients or not.
        """
        device = self.model.device
        lengths = rows.lengths[chosen]
        width = int(lengths.max())
        inputs = {"input_ids": onto(device, rows.ids[chosen][:, :width]), **self.uncached}
        if lengths.min() < width:
            kept = np.arange(width)[None] < lengths[:, None]
            inputs["attention_mask"] = onto(device, kept.astype(np.int64))
        at = rows.vectors[chosen]
        placed = onto(device, np.where(at < 0, width, at)), vectors[onto(device, owner)]
        places = rows.places[chosen]
        text, place = np.nonzero(places >= 0)
        where = onto(device, text)[:, None], onto(device, places[text, place])[:, None]
        with self.embedding.placing(*placed), steady_attention(self.model):
            logits = kept_logits(self.model, inputs, taking(*where), narrow=self.narrow)
        return self.judge.texts(logits[:, 0], rows, chosen, (text, place))

    def gradient(self, rows: Rows, batches: Sequence[np.ndarray], vectors: Any) -> Any:
        """The gradient of the mean loss of each batch by the vectors of its relation."""
        chosen = np.concatenate(batches)
        shares = np.concatenate([np.full(len(b), 1 / len(b)) for b in batches])
        grad = torch.zeros_like(vectors)

        def forward(part: list[int]) -> Any:
            loss, _ = self(rows, chosen[part], vectors, rows.relation[chosen[part]])
            weight = onto(loss.device, shares[part] * self.scale).to(loss.dtype)
            return torch.autograd.grad((loss * weight).sum(), vectors)[0]

        for _, result in self._packed(rows.lengths[chosen], forward):
            grad += result
        return grad / self.scale

    @torch.no_grad()
    def measured(
        self, rows: Rows, chosen: np.ndarray, vectors: Any, owner: np.ndarray
    ) -> np.ndarray:
        """Loss and hit of each chosen row, [rows, 2]."""
        values = np.zeros((len(chosen), 2))

        def forward(part: list[int]) -> Any:
            return torch.stack(self(rows, chosen[part], vectors, owner[part]), 1)

        if len(chosen):
            for part, result in self._packed(rows.lengths[chosen], forward):
                values[part] = result.cpu().numpy()
        return values

    def scores(
        self, rows: Rows, relations: Sequence[int], vectors: Any, broken: np.ndarray
    ) -> list[tuple[float | None, float]]:
        """Of each relation, the share of its rows answered correctly and their mean loss.

        The share is None without rows, and the loss NaN of a relation that is `broken`.
        """
        chosen = np.flatnonzero(np.isin(rows.relation, relations))
        owner = rows.relation[chosen]
        values = self.measured(rows, chosen, vectors, owner)
        return [mean_score(values[owner == i], broken[i]) for i in relations]

    def _packed(
        self, lengths: np.ndarray, forward: Callable[[list[int]], Any]
    ) -> Iterator[tuple[list[int], Any]]:
        enough = ENOUGH[self.model.device.type] if self.pads else 0
        return self.budget.run(lengths.tolist(), forward, enough=enough)


def mean_score(values: np.ndarray, broken: bool) -> tuple[float | None, float]:
    """Share right and mean loss of [rows, (loss, hit)]; NaN for what broke, None of nothing."""
    if broken:
        return None, float("nan")
    loss, hit = values.mean(0) if len(values) else (0.0, None)
    return (None if hit is None else float(hit)), float(loss)


def taking(texts: Any, places: Any) -> Callable[[Any], Any]:
    """What takes some places of some texts, wherever the last layer is."""
    return lambda states: states[texts.to(states.device), places.to(states.device)]


def pads(model: Trainable) -> bool:
    """Whether texts of unequal length may go through a model together."""
    return not isinstance(model, MaskedModel) or model.ways.pads


def uncached(model: Trainable) -> dict[str, Any]:
    """Arguments that keep a causal model from building a cache that nobody reads."""
    return {} if isinstance(model, MaskedModel) else {"use_cache": False}


def narrows(model: Trainable) -> bool:
    """Whether a model's head may be applied at some places alone; tried, not assumed."""
    return tried(model.model, lambda: _narrows(model.model, uncached(model)))


@torch.no_grad()
def _narrows(model: Any, extra: dict[str, Any]) -> bool:
    ids = torch.tensor([[5, 6, 7, 8], [9, 5, 8, 6]], device=model.device)
    inputs = {"input_ids": ids % model.config.get_text_config().vocab_size, **extra}
    texts, places = torch.tensor([[[0], [1], [1]], [[2], [0], [3]]], device=model.device)
    keep = taking(texts, places)
    expected = kept_logits(model, inputs, keep, narrow=False)
    try:
        narrowed = kept_logits(model, inputs, keep, narrow=True)
    except Exception:  # architectures refuse in their own ways
        log.debug("the head takes whole texts only", exc_info=True)
        return False
    if narrowed.shape != expected.shape:
        return False
    plain, other = (torch.log_softmax(logits[:, 0], -1) for logits in (expected, narrowed))
    return not unlike(model, plain, other, noise=0.0, logits=expected[:, 0])


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """No weight gets a gradient, and the head is one that gradients go through."""
    kept = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    head = model.get_output_embeddings()
    # where weights are spread, `forward` is what brings inputs to them
    spread = head is None or hasattr(head, "_old_forward")
    quick = None if spread else vars(head).pop("forward", None)
    for parameter, _ in kept:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter, wanted in kept:
            parameter.requires_grad_(wanted)
        if quick is not None:
            head.forward = quick
