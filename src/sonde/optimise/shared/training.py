"""Train the vectors of many relations side by side; they share a frozen model and nothing else.

One tensor holds all vectors; a step takes a batch of each relation, each with its own order, its
own learning rate and its own dev checks, so that a relation ends as it would alone. Knows rows of
token ids and a function that gives their losses; nothing of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import ceil, isfinite
from random import Random
from typing import Any

import numpy as np
import torch

from sonde.engine.batching import Budget
from sonde.models.torch.masked.model import ENOUGH
from sonde.optimise.shared.losses import Losses
from sonde.optimise.shared.texts import Rows

BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how fast to train; `patience`: dev checks without a gain that end it, 0 none."""

    epochs: int
    batch: int
    rate: float
    warmup: float
    checks: int
    patience: int
    seed: int

    @classmethod
    def of(cls, method: Any, seed: int) -> Plan:
        """As the settings of a method that trains say."""
        own = {f.name: getattr(method, f.name) for f in fields(cls) if f.name != "seed"}
        return cls(**own, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The best vectors [vectors, width] of the relation at place `index`, and how it went."""

    index: int
    vectors: np.ndarray
    before: float | None
    after: float | None
    epochs: float
    problem: str


class Course:
    """One relation's way through its training facts: which rows come when, at which rate."""

    def __init__(self, name: str, rows: np.ndarray, plan: Plan) -> None:
        self.name = name
        self.rows = rows
        self.plan = plan
        self.each = ceil(len(rows) / plan.batch)
        self.total = self.each * plan.epochs
        marks = {ceil(self.each * k / plan.checks) for k in range(1, plan.checks + 1)}
        self.marks = {m % self.each for m in marks}
        self._order: tuple[int, np.ndarray] = (-1, rows)

    def batch(self, step: int) -> np.ndarray:
        """The rows of a step; each epoch has an order of its own."""
        epoch, place = divmod(step, self.each)
        if self._order[0] != epoch:
            order = self.rows.tolist()
            Random(f"{self.plan.seed}:{self.name}:{epoch}").shuffle(order)
            self._order = (epoch, np.array(order))
        return self._order[1][place * self.plan.batch : (place + 1) * self.plan.batch]

    def rate(self, step: int) -> float:
        """The learning rate: up from nothing over the warm-up, then down to nothing."""
        warm = int(self.total * self.plan.warmup)
        if step < warm:
            return self.plan.rate * step / max(warm, 1)
        return self.plan.rate * (self.total - step) / max(self.total - warm, 1)

    def due(self, done: int) -> bool:
        """Whether dev facts are looked at after so many steps."""
        return done % self.each in self.marks


class Standing:
    """How one relation stands: the best vectors so far and what dev facts say of them."""

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors
        self.first: float | None = None
        self.best: tuple[float, float] | None = None
        self.idle = 0
        self.problem = ""

    def look(self, share: float | None, loss: float, vectors: Any) -> None:
        """Keep vectors that answer more dev facts, or as many with a smaller loss.

        A loss that is no finite number ends it: how many facts are right says nothing then.
        """
        if not isfinite(loss):
            self.problem = BROKEN
            return
        if share is None:  # nothing to choose by: the last vectors stand
            self.vectors = vectors.clone()
            return
        if self.first is None:
            self.first, self.best = share, (share, -loss)
            return
        assert self.best is not None
        self.idle += 1
        if (share, -loss) > self.best:
            self.best, self.vectors, self.idle = (share, -loss), vectors.clone(), 0


class SideBySide:
    """Trains the vectors of some relations, [relations, vectors, width], together."""

    def __init__(
        self,
        losses: Losses,
        start: Any,
        train: Rows,
        dev: Rows,
        names: Sequence[str],
        plan: Plan,
        budget: Budget,
        tick: Callable[[int, str], None],
    ) -> None:
        self.losses = losses
        self.train, self.dev = train, dev
        self.plan = plan
        self.budget = budget
        self.tick = tick
        self.vectors = start.clone().requires_grad_(True)
        self.moments = torch.zeros_like(start), torch.zeros_like(start)
        self.broken = torch.zeros(len(names), dtype=torch.bool, device=start.device)
        self.courses = [
            Course(name, np.flatnonzero(train.relation == i), plan) for i, name in enumerate(names)
        ]
        self.standings = [Standing(start[i].clone()) for i in range(len(names))]

    def run(self) -> Iterator[Trained]:
        """Train, and give each relation as soon as it has ended."""
        active = list(range(len(self.courses)))
        self._look(active)
        step = 0
        while active:
            ended = [i for i in active if self._ended(i, step)]
            for i in ended:
                yield self._trained(i, step)
            active = [i for i in active if i not in ended]
            if active:
                self._step(active, step)
                step += 1
                self._look([i for i in active if self.courses[i].due(step)])
                self.tick(len(active), self._told())

    def _ended(self, i: int, step: int) -> bool:
        standing, course = self.standings[i], self.courses[i]
        idle = 0 < self.plan.patience <= standing.idle
        return bool(standing.problem) or idle or step >= course.total

    def _step(self, active: list[int], step: int) -> None:
        """One step of Adam for each relation, on a batch of its own facts."""
        batches = [self.courses[i].batch(step) for i in active]
        chosen = np.concatenate(batches)
        shares = np.concatenate([np.full(len(b), 1 / len(b)) for b in batches])
        grad = torch.zeros_like(self.vectors)

        def forward(part: list[int]) -> Any:
            loss, _ = self.losses(self.train, chosen[part], self.vectors)
            weight = torch.as_tensor(shares[part] * self.losses.scale, dtype=loss.dtype)
            (found,) = torch.autograd.grad((loss * weight.to(loss.device)).sum(), self.vectors)
            return found

        for _, found in self._packed(self.train.lengths[chosen], forward):
            grad += found
        rates = torch.zeros(len(self.courses))
        rates[active] = torch.tensor([self.courses[i].rate(step) for i in active])
        self._update(grad / self.losses.scale, rates.to(grad.device), step + 1)

    @torch.no_grad()
    def _update(self, grad: Any, rates: Any, count: int) -> None:
        """Adam; a relation whose numbers are no longer finite stays where it is."""
        mean, square = self.moments
        mean.lerp_(grad, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
        scale = (square / (1 - BETAS[1] ** count)).sqrt_().add_(EPSILON)
        change = rates[:, None, None] * (mean / (1 - BETAS[0] ** count)) / scale
        moved = self.vectors - change
        self.broken |= ~torch.isfinite(moved).flatten(1).all(1)
        self.broken |= ~torch.isfinite(grad).flatten(1).all(1)
        self.vectors.copy_(torch.where(self.broken[:, None, None], self.vectors, moved))

    @torch.no_grad()
    def _look(self, relations: list[int]) -> None:
        """Look at the dev facts of some relations, and at whether training broke."""
        if not relations:
            return
        for i in np.flatnonzero(self.broken.cpu().numpy()).tolist():
            self.standings[i].problem = BROKEN
        chosen = np.flatnonzero(np.isin(self.dev.relation, relations))
        found = np.zeros((len(chosen), 2))

        def forward(part: list[int]) -> Any:
            return torch.stack(self.losses(self.dev, chosen[part], self.vectors), 1)

        if len(chosen):
            for part, result in self._packed(self.dev.lengths[chosen], forward):
                found[part] = result.cpu().numpy()
        for i in relations:
            own = found[self.dev.relation[chosen] == i]
            if self.standings[i].problem:
                continue
            share = float(own[:, 1].mean()) if len(own) else None
            loss = float(own[:, 0].mean()) if len(own) else 0.0
            self.standings[i].look(share, loss, self.vectors[i].detach())

    def _packed(
        self, lengths: np.ndarray, forward: Callable[[list[int]], Any]
    ) -> Iterator[tuple[list[int], Any]]:
        enough = ENOUGH[self.vectors.device.type] if self.losses.pads else 0
        return self.budget.run(lengths.tolist(), forward, enough=enough)

    def _told(self) -> str:
        best = [s.best[0] for s in self.standings if s.best is not None]
        return f"dev {100 * sum(best) / len(best):.1f} %" if best else ""

    def _trained(self, i: int, step: int) -> Trained:
        standing, course = self.standings[i], self.courses[i]
        return Trained(
            index=i,
            vectors=standing.vectors.detach().float().cpu().numpy(),
            before=standing.first,
            after=standing.best[0] if standing.best else None,
            epochs=min(step, course.total) / course.each,
            problem=standing.problem,
        )


BROKEN = "training broke off: its loss was no longer a finite number; the best until then is kept"
