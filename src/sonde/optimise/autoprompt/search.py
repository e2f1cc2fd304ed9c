"""Search the triggers of many relations side by side; they share a frozen model and nothing else.

Knows rows of token ids, a function that gives their losses, and a table of embeddings; nothing of
facts or texts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

import numpy as np
import torch

from sonde.engine.batching import Budget
from sonde.models.torch.loading.device import onto
from sonde.models.torch.masked.model import ENOUGH
from sonde.optimise.shared.losses import Losses
from sonde.optimise.shared.texts import Rows
from sonde.optimise.shared.training import BROKEN, Course, Plan, Standing

Fits = Callable[[Sequence[int]], bool]
"""Whether triggers can be kept as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quest:
    """How long to search, on how many facts, and how many tokens to try each time."""

    iterations: int
    batch: int
    candidates: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best triggers of the relation at place `index`, and how it went."""

    index: int
    ids: tuple[int, ...]
    before: float | None
    after: float | None
    replaced: int
    epochs: float
    problem: str


def ranked(table: Any, grad: Any, allowed: Any, current: Any, count: int) -> Any:
    """The tokens that promise the smallest loss in a trigger's place, best first, [rows, count].

    `table` [vocabulary, width] are the embeddings, `grad` [rows, width] the gradient of the loss
    by the trigger's own, `allowed` [rows, vocabulary]; the token that is there is none of them,
    and stands where there are too few.
    """
    scores = (grad @ table.T).neg_().masked_fill_(~allowed, -torch.inf)
    scores.scatter_(1, current[:, None], -torch.inf)
    best = scores.topk(min(count, scores.shape[1]))
    return torch.where(best.values > -torch.inf, best.indices, current[:, None])


class Search:
    """Searches the triggers of some relations, [relations, triggers], together."""

    def __init__(
        self,
        losses: Losses,
        table: Any,
        start: np.ndarray,
        train: Rows,
        dev: Rows,
        names: Sequence[str],
        quest: Quest,
        budget: Budget,
        allowed: Any,
        fits: Fits,
        tick: Callable[[int, str], None],
    ) -> None:
        self.losses, self.table, self.allowed, self.fits = losses, table, allowed, fits
        self.ids = start.copy()
        self.train, self.dev = train, dev
        self.names, self.quest, self.budget, self.tick = names, quest, budget, tick
        plan = Plan(
            epochs=1, batch=quest.batch, rate=0, warmup=0, checks=1, patience=0, seed=quest.seed
        )
        self.courses = [
            Course(name, np.flatnonzero(train.relation == i), plan) for i, name in enumerate(names)
        ]
        self.standings = [Standing(torch.from_numpy(row.copy())) for row in start]
        self.replaced = [0] * len(names)

    def run(self) -> Iterator[Found]:
        """Search, and give each relation when it has ended."""
        active = list(range(len(self.names)))
        self._look(active)
        for step in range(self.quest.iterations):
            for i in [i for i in active if self.standings[i].problem]:
                active.remove(i)
                yield self._found(i, step)
            if not active:
                return
            self._look(self._step(active, step))
            self.tick(len(active), self._told())
        for i in active:
            yield self._found(i, self.quest.iterations)

    def _step(self, active: list[int], step: int) -> list[int]:
        """Try to replace one trigger of each relation; those where one was replaced."""
        grad = self._gradient(active, [self.courses[i].batch(2 * step) for i in active])
        places = [self._place(i, step) for i in active]
        at = onto(grad.device, places)
        rows = onto(grad.device, active)
        current = onto(grad.device, self.ids[active, places])
        own = grad[rows, at]
        best = ranked(self.table, own, self.allowed[rows], current, self.quest.candidates)
        sound = torch.isfinite(own).all(1).cpu().numpy()
        tried = np.repeat(self.ids[active][:, None], 1 + best.shape[1], 1)
        tried[np.arange(len(active)), 1:, places] = best.cpu().numpy()
        tested = self._tested(active, tried, [self.courses[i].batch(2 * step + 1) for i in active])
        changed = []
        for k, i in enumerate(active):
            if not sound[k] or not np.isfinite(tested[k, 0]):
                self.standings[i].problem = BROKEN
            elif self._take(i, tried[k], tested[k]):
                changed.append(i)
        return changed

    def _place(self, i: int, step: int) -> int:
        return Random(f"{self.quest.seed}:{self.names[i]}:{step}").randrange(self.ids.shape[1])

    def _take(self, i: int, tried: np.ndarray, tested: np.ndarray) -> bool:
        """Take the best of what was tried, if it is better than what is there, the first."""
        for k in np.argsort(tested, kind="stable"):
            if not tested[k] < tested[0]:
                return False
            if self.fits(tried[k].tolist()):
                self.ids[i] = tried[k]
                self.replaced[i] += 1
                return True
        return False

    def _gradient(self, active: list[int], batches: list[np.ndarray]) -> Any:
        """The gradient of each relation's mean loss by its triggers' embeddings."""
        chosen = np.concatenate(batches)
        shares = np.concatenate([np.full(len(b), 1 / len(b)) for b in batches])
        vectors = self._embedded(self.ids).requires_grad_(True)
        grad = torch.zeros_like(vectors)

        def forward(part: list[int]) -> Any:
            loss, _ = self.losses(self.train, chosen[part], vectors)
            weight = onto(loss.device, shares[part] * self.losses.scale).to(loss.dtype)
            return torch.autograd.grad((loss * weight).sum(), vectors)[0]

        for _, found in self._packed(self.train.lengths[chosen], forward):
            grad += found
        return grad / self.losses.scale

    def _tested(
        self, active: list[int], tried: np.ndarray, batches: list[np.ndarray]
    ) -> np.ndarray:
        """The mean loss of each relation's batch under each of its tried triggers."""
        count = tried.shape[1]
        chosen = np.concatenate([np.tile(batch, count) for batch in batches])
        owner = np.concatenate(
            [np.repeat(k * count + np.arange(count), len(b)) for k, b in enumerate(batches)]
        )
        found = self._measured(
            taken(self.train, chosen, owner),
            self._embedded(tried.reshape(-1, tried.shape[2])),
            np.repeat(self.losses.which[active], count),
        )
        sums = np.bincount(owner, found[:, 0], len(active) * count).reshape(len(active), count)
        return np.asarray(sums / np.array([[len(batch)] for batch in batches]))

    def _look(self, relations: list[int]) -> None:
        """Look at the dev facts of some relations."""
        chosen = np.flatnonzero(np.isin(self.dev.relation, relations))
        rows = taken(self.dev, chosen, self.dev.relation[chosen])
        found = self._measured(rows, self._embedded(self.ids), self.losses.which)
        for i in relations:
            own = found[rows.relation == i]
            share = float(own[:, 1].mean()) if len(own) else None
            loss = float(own[:, 0].mean()) if len(own) else 0.0
            self.standings[i].look(share, loss, torch.from_numpy(self.ids[i]))

    @torch.no_grad()
    def _measured(self, rows: Rows, vectors: Any, which: np.ndarray) -> np.ndarray:
        """Loss and hit of each row, [rows, 2]."""
        losses = copy.copy(self.losses)
        losses.which = which
        found = np.zeros((len(rows.ids), 2))

        def forward(part: list[int]) -> Any:
            return torch.stack(losses(rows, np.array(part), vectors), 1)

        if len(rows.ids):
            for part, result in self._packed(rows.lengths, forward):
                found[part] = result.cpu().numpy()
        return found

    def _embedded(self, ids: np.ndarray) -> Any:
        return self.table[onto(self.table.device, ids)]

    def _packed(
        self, lengths: np.ndarray, forward: Callable[[list[int]], Any]
    ) -> Iterator[tuple[list[int], Any]]:
        enough = ENOUGH[self.table.device.type] if self.losses.pads else 0
        return self.budget.run(lengths.tolist(), forward, enough=enough)

    def _told(self) -> str:
        best = [s.best[0] for s in self.standings if s.best is not None]
        return f"dev {100 * sum(best) / len(best):.1f} %" if best else ""

    def _found(self, i: int, steps: int) -> Found:
        standing = self.standings[i]
        return Found(
            index=i,
            ids=tuple(standing.vectors.tolist()),
            before=standing.first,
            after=standing.best[0] if standing.best else None,
            replaced=self.replaced[i],
            epochs=2 * steps / self.courses[i].each,
            problem=standing.problem,
        )


def taken(rows: Rows, chosen: np.ndarray, relation: np.ndarray) -> Rows:
    """Some rows, each said to be of a relation of its own."""
    parts = {f.name: getattr(rows, f.name)[chosen] for f in fields(rows)}
    return replace(rows, **{**parts, "relation": relation})
