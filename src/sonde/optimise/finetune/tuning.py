"""Train a copy of a model for each of some relations, side by side; they share nothing.

Each copy has its own facts, order, learning rate and dev checks, so that it ends as it would alone.
The model itself is left as it is, and in evaluation mode: nothing is dropped out. Knows rows of
token ids; nothing of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sonde.models.torch.loading.device import onto
from sonde.optimise.finetune.stacks import Stacked, Weights
from sonde.optimise.shared.losses import Losses
from sonde.optimise.shared.texts import Rows
from sonde.optimise.shared.training import BETAS, BROKEN, EPSILON, Course, Plan

LOOK = 64  # dev facts of a relation that are looked at in one pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """How each weight of the relation at place `index` changed at best, and how it went."""

    index: int
    change: Weights
    before: float | None
    after: float | None
    epochs: float
    problem: str


class Tuning:
    """Trains copies of a model for some relations."""

    def __init__(
        self,
        stacked: Stacked,
        losses: Losses,
        train: Rows,
        dev: Rows,
        names: Sequence[str],
        plan: Plan,
        decay: float,
        tick: Callable[[int, str], None],
    ) -> None:
        self.stacked, self.losses = stacked, losses
        self.train, self.dev = train, dev
        self.plan, self.decay, self.tick = plan, decay, tick
        self.courses = [
            Course(name, np.flatnonzero(train.relation == i), plan) for i, name in enumerate(names)
        ]
        self.active = list(range(len(names)))
        self.weights = stacked.copies(len(names))
        self.means = {n: torch.zeros_like(w) for n, w in self.weights.items()}
        self.squares = {n: torch.zeros_like(w) for n, w in self.weights.items()}
        self.best = {n: w.clone() for n, w in self.weights.items()}
        self.broken = torch.zeros(len(names), dtype=torch.bool, device=stacked.device)
        self.problems = [""] * len(names)
        self.first: list[float | None] = [None] * len(names)
        self.score: list[tuple[float, float] | None] = [None] * len(names)
        self.idle = [0] * len(names)

    def run(self) -> Iterator[Tuned]:
        """Train, and give each relation as soon as it has ended."""
        self._look(self.active)
        step = 0
        while self.active:
            ended = [i for i in self.active if self._ended(i, step)]
            for i in ended:
                yield self._tuned(i, step)
            self._drop(ended)
            if self.active:
                self._step(step)
                step += 1
                self._look([i for i in self.active if self.courses[i].due(step)])
                self.tick(len(self.active), self._told())

    def _ended(self, i: int, step: int) -> bool:
        idle = 0 < self.plan.patience <= self.idle[i]
        return bool(self.problems[i]) or idle or step >= self.courses[i].total

    def _drop(self, ended: Sequence[int]) -> None:
        """Go on without some relations."""
        if not ended:
            return
        rows = [k for k, i in enumerate(self.active) if i not in ended]
        for weights in (self.weights, self.means, self.squares, self.best):
            for name in weights:
                weights[name] = weights[name][rows]
        self.broken = self.broken[rows]
        self.active = [self.active[k] for k in rows]

    def _step(self, step: int) -> None:
        """One step of AdamW for each relation, on a batch of its own facts."""
        batches = [self.courses[i].batch(step) for i in self.active]
        chosen, shares = filled_up(batches)
        for weight in self.weights.values():
            weight.requires_grad_(True)
        loss, _ = self._judged(self.weights, self.train, chosen, self.active)
        each = (loss * onto(loss.device, shares).to(loss.dtype)).sum(1)
        grads = torch.autograd.grad(
            each.sum(), list(self.weights.values()), allow_unused=True, materialize_grads=True
        )
        for weight in self.weights.values():
            weight.requires_grad_(False)
        self.broken |= ~torch.isfinite(each)
        rates = torch.tensor([self.courses[i].rate(step) for i in self.active])
        self._update(grads, rates.to(loss.device), step + 1)

    @torch.no_grad()
    def _update(self, grads: Sequence[Any], rates: Any, count: int) -> None:
        for (name, weight), grad in zip(self.weights.items(), grads, strict=True):
            rate = rates.reshape(-1, *[1] * (weight.dim() - 1))
            mean, square = self.means[name], self.squares[name]
            mean.lerp_(grad, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
            scale = (square / (1 - BETAS[1] ** count)).sqrt_().add_(EPSILON)
            if self.decay:
                weight.mul_(1 - rate * self.decay)
            weight.sub_((mean / scale).mul_(rate / (1 - BETAS[0] ** count)))

    def _judged(
        self, weights: Weights, rows: Rows, chosen: np.ndarray, relations: Sequence[int]
    ) -> tuple[Any, Any]:
        """Loss and hit of each text, [copies, texts] both."""
        logits = self.stacked.logits(weights, rows, chosen)
        places = rows.places[chosen]
        read = np.nonzero(places.reshape(-1) >= 0)[0]
        texts = read // places.shape[-1]
        at = onto(logits.device, read)
        golds = onto(logits.device, rows.golds[chosen].reshape(places.size, -1)[read])
        owner = np.repeat(np.array(relations), chosen.shape[1])[texts]
        loss, hit = self.losses._judged(logits.flatten(0, 2)[at], golds, owner)
        counted = (read % places.shape[-1]) < rows.answer[chosen].reshape(-1)[texts]
        text = onto(logits.device, texts)
        zeros = torch.zeros(chosen.size, device=logits.device)
        missed = (~hit & onto(logits.device, counted)).float()
        right = zeros.index_add(0, text, missed) == 0
        return (
            zeros.index_add(0, text, loss).reshape(chosen.shape),
            right.float().reshape(chosen.shape),
        )

    @torch.no_grad()
    def _look(self, relations: Sequence[int]) -> None:
        """Look at the dev facts of some relations, and keep what is best."""
        if not relations:
            return
        rows = [self.active.index(i) for i in relations]
        broken = self.broken.cpu().numpy()
        found = self._measured(relations, rows)
        for k, i in zip(rows, relations, strict=True):
            share, loss = found[i]
            if broken[k] or (loss is not None and not np.isfinite(loss)):
                self.problems[i] = BROKEN
            elif self._better(i, share, loss):
                for name, weight in self.weights.items():
                    self.best[name][k] = weight[k]

    def _better(self, i: int, share: float | None, loss: float | None) -> bool:
        """Whether weights answer more dev facts, or as many with a smaller loss."""
        if share is None or loss is None:  # nothing to choose by: the last weights stand
            return True
        known, self.score[i] = self.score[i], max(self.score[i] or (-1.0, 0.0), (share, -loss))
        if known is None:
            self.first[i] = share
            return True
        self.idle[i] = 0 if self.score[i] != known else self.idle[i] + 1
        return self.score[i] != known

    def _measured(
        self, relations: Sequence[int], rows: list[int]
    ) -> dict[int, tuple[float | None, float | None]]:
        """The share of dev facts that each relation answers, and their mean loss."""
        own = {i: np.flatnonzero(self.dev.relation == i) for i in relations}
        weights = self.weights
        if len(rows) < len(self.active):
            weights = {name: weight[rows] for name, weight in self.weights.items()}
        sums = np.zeros((len(relations), 2))
        for start in range(0, max(map(len, own.values())), LOOK):
            parts = [own[i][start : start + LOOK] for i in relations]
            there = [k for k, part in enumerate(parts) if len(part)]
            chosen, shares = filled_up([parts[k] for k in there])
            some = weights
            if len(there) < len(relations):
                some = {name: weight[there] for name, weight in weights.items()}
            loss, hit = self._judged(some, self.dev, chosen, [relations[k] for k in there])
            counted = shares > 0
            sums[there, 0] += (hit.cpu().numpy() * counted).sum(1)
            sums[there, 1] += np.where(counted, loss.cpu().numpy(), 0).sum(1)
        return {
            i: (sums[k, 0] / len(own[i]), sums[k, 1] / len(own[i])) if len(own[i]) else (None, None)
            for k, i in enumerate(relations)
        }

    def _told(self) -> str:
        best = [score[0] for score in self.score if score is not None]
        return f"dev {100 * sum(best) / len(best):.1f} %" if best else ""

    def _tuned(self, i: int, step: int) -> Tuned:
        k = self.active.index(i)
        score = self.score[i]
        own = dict(self.stacked.model.named_parameters())
        return Tuned(
            index=i,
            change={n: weight[k] - own[n].detach().float() for n, weight in self.best.items()},
            before=self.first[i],
            after=score[0] if score is not None else None,
            epochs=min(step, self.courses[i].total) / self.courses[i].each,
            problem=self.problems[i],
        )


def filled_up(batches: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Batches as rows of equal length, and what each text weighs: those that fill up nothing.

    >>> filled_up([np.array([4, 5]), np.array([7])])[1].tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    width = max(map(len, batches))
    chosen = np.array([[*batch, *[batch[0]] * (width - len(batch))] for batch in batches])
    shares = np.array([[1 / len(b)] * len(b) + [0.0] * (width - len(b)) for b in batches])
    return chosen, shares
