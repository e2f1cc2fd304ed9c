"""Train or search for many relations side by side; they share a model and nothing else.

Each relation has its own order of facts, its own learning rate and its own dev checks, so that it
ends as it would alone. What is trained is a `Learner`: vectors, triggers or weights; the first two
stand in the model as soft prompts. Knows token ids; nothing of how a learner takes a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Template
from sonde.core.texts import marker
from sonde.models.torch.loading.open import rebuilt
from sonde.models.torch.soft import SoftEmbedding, softened
from sonde.optimise.losses import frozen
from sonde.optimise.making import Job, Made, Task
from sonde.optimise.state import Keeper, Standing
from sonde.optimise.texts import Draft, Rows, Trainable, draft

BETAS, EPSILON = (0.9, 0.999), 1e-8
TOGETHER = 4  # relations on a CPU, where larger batches gain nothing

Score = tuple[float | None, float]
"""The share of dev facts answered correctly, None where there are none, and their mean loss."""


class Course:
    """One relation's way through its training facts: which rows come when."""

    def __init__(self, name: str, rows: np.ndarray, batch: int, seed: int) -> None:
        self.name, self.rows, self.size, self.seed = name, rows, batch, seed
        self.each = ceil(len(rows) / batch)
        self._order: tuple[int, np.ndarray] = (-1, rows)

    def batch(self, step: int) -> np.ndarray:
        """The rows of a step; each epoch has an order of its own."""
        epoch, place = divmod(step, self.each)
        if self._order[0] != epoch:
            order = self.rows.tolist()
            Random(f"{self.seed}:{self.name}:{epoch}").shuffle(order)
            self._order = (epoch, np.array(order))
        return self._order[1][place * self.size : (place + 1) * self.size]


def courses(drafts: Sequence[Draft], train: Rows, batch: int, seed: int) -> list[Course]:
    """The way of each relation through its rows."""
    names = [draft.task.relation.id for draft in drafts]
    rows = (np.flatnonzero(train.relation == i) for i in range(len(names)))
    return [Course(name, own, batch, seed) for name, own in zip(names, rows, strict=True)]


class Schedule(NamedTuple):
    """How long and how fast a relation is trained, and how often in an epoch it is looked at."""

    epochs: int
    rate: float
    warmup: float
    checks: int

    def rate_at(self, course: Course, step: int) -> float:
        """The learning rate: up from nothing over the warm-up, then down to nothing."""
        total = course.each * self.epochs
        warm = int(total * self.warmup)
        if step < warm:
            return self.rate * step / max(warm, 1)
        return self.rate * (total - step) / max(total - warm, 1)

    def is_due(self, course: Course, done: int) -> bool:
        """Whether dev facts are looked at after so many steps."""
        marks = (ceil(course.each * k / self.checks) for k in range(1, self.checks + 1))
        return done % course.each in {mark % course.each for mark in marks}


class Adam:
    """Adam, or AdamW with a decay, over tensors with a row for each relation."""

    def __init__(self, weights: Sequence[Any], decay: float = 0.0) -> None:
        self.decay = decay
        self.means = [torch.zeros_like(weight) for weight in weights]
        self.squares = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self, weights: Sequence[Any], grads: Sequence[Any], rates: Any, count: int) -> None:
        """The step number `count`, at a rate for each relation; weights change in place."""
        parts = zip(weights, grads, self.means, self.squares, strict=True)
        for weight, grad, mean, square in parts:
            rate = rates.reshape(-1, *[1] * (weight.dim() - 1))
            mean.lerp_(grad, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
            scale = (square / (1 - BETAS[1] ** count)).sqrt_().add_(EPSILON)
            if self.decay:
                weight.mul_(1 - rate * self.decay)
            weight.sub_((mean / (1 - BETAS[0] ** count)).mul_(rate).div_(scale))

    @torch.no_grad()
    def fused(self, weights: Sequence[Any], grads: Sequence[Any], rates: Any, count: Any) -> None:
        """The same step by torch's own kernel, which reads and writes every number once.

        It knows one rate, so relations go one after the other. `count` is a tensor of float32.
        """
        laid_out = [grad.contiguous() for grad in grads]  # the kernel takes them as they lie
        parts = (weights, laid_out, self.means, self.squares)
        steps = [count] * len(weights)
        for i, rate in enumerate(rates):
            own = [[tensor[i] for tensor in part] for part in parts]
            torch._fused_adamw_(
                own[0],
                own[1],
                own[2],
                own[3],
                [],
                steps,
                lr=rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=self.decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def keep(self, rows: list[int]) -> None:
        """Go on with some relations alone."""
        self.means = [mean[rows] for mean in self.means]
        self.squares = [square[rows] for square in self.squares]


class Learner(Protocol):
    """What is trained or searched for some relations at once."""

    courses: list[Course]

    def step(self, active: list[int], step: int) -> list[int]:
        """Go on by a step for the relations that have not ended; those to be looked at."""

    def scores(self, relations: list[int]) -> Sequence[Score]:
        """What the dev facts of some relations say; a loss of NaN if their numbers broke."""

    def keep(self, relation: int) -> None:
        """Remember what there is for a relation as the best so far."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the relation at place `index` went."""

    index: int
    standing: Standing
    epochs: float

    def made(self, draft: Draft, **parts: Any) -> Made:
        """What was made for its relation; `parts` are those that the method adds or changes."""
        best = self.standing.best
        given = {"templates": (draft.template,), "counts": draft.counts, **parts}
        return Made(
            relation=draft.task.relation.id,
            before=self.standing.before,
            after=best[0] if best is not None else None,
            epochs=self.epochs,
            problem=self.standing.problem,
            **given,
        )


@dataclass(kw_only=True)
class Progress:
    """Counts steps over all groups; relations that end early count as if they had gone on."""

    total: int
    tell: Callable[[int, int, str], None]
    done: int = field(default=0, init=False)

    def tick(self, steps: int, standings: Sequence[Standing]) -> None:
        """So many relations went on by a step."""
        self.done = min(self.done + steps, self.total)
        best = [standing.best[0] for standing in standings if standing.best is not None]
        told = f"dev {100 * sum(best) / len(best):.1f} %" if best else ""
        self.tell(self.done, self.total, told)


def side_by_side(
    learner: Learner,
    totals: Sequence[int],
    progress: Progress,
    *,
    patience: int = 0,
    batches: int = 1,
    keeper: Keeper | None = None,
) -> Iterator[Ended]:
    """Take each relation through its steps, and give it as soon as it has ended.

    `totals`: its steps; `batches`: how many a step takes; `patience`: dev checks without a gain
    that end it, 0 for none; `keeper`: by whom a killed one goes on where it was.
    """
    names = [course.name for course in learner.courses]
    active = list(range(len(totals)))
    state = keeper.restore(names) if keeper else None
    step, standings = (state.step, state.standings) if state else (0, [Standing() for _ in totals])

    def look(relations: list[int]) -> None:
        scores = learner.scores(relations) if relations else ()
        for i, score in zip(relations, scores, strict=True):
            if standings[i].look(*score):
                learner.keep(i)

    def ended(i: int, step: int) -> bool:
        idle = 0 < patience <= standings[i].idle
        return bool(standings[i].problem) or idle or step >= totals[i]

    if state:
        progress.tick(step * len(active), standings)
    else:
        look(active)
    while active:
        done = [i for i in active if ended(i, step)]
        for i in done:
            yield Ended(i, standings[i], batches * step / learner.courses[i].each)
        active = [i for i in active if i not in done]
        if active:
            look(learner.step(active, step))
            step += 1
            if keeper:
                keeper.keep(names, step, standings)
            progress.tick(len(active), standings)


class SoftPrompt(NamedTuple):
    """A text with markers, and the vector each begins with, [markers, width] in float32.

    `words` are the tokens that the vectors were taken from, in the relation's first template.
    """

    task: Task
    text: str
    vectors: np.ndarray
    words: Sequence[int] = ()

    @property
    def markers(self) -> list[str]:
        """The markers in its text."""
        return [marker(self.task.relation.id, k + 1) for k in range(len(self.vectors))]


def between(relation: str, count: int) -> str:
    """A text with so many markers between subject and answer."""
    # no space before the first: byte-level vocabularies would make a token of it
    written = "".join(marker(relation, k + 1) for k in range(count))
    return f"{SUBJECT_SLOT}{written} {ANSWER_SLOT} ."


def embedded(model: Any, ids: list[int]) -> np.ndarray:
    """The vectors that a model reads some tokens as, [tokens, width] in float32."""
    module = model.get_input_embeddings()
    with torch.inference_mode():
        rows = module(torch.tensor([ids], dtype=torch.long, device=module.weight.device))[0]
    return np.asarray(rows.float().cpu().numpy())


Train = Callable[[Trainable, SoftEmbedding, Sequence[Draft]], Iterator[Made]]


def with_soft_prompts(
    job: Job, name: str, prompts: Sequence[SoftPrompt], train: Train
) -> Iterator[Made]:
    """What `train` makes of some relations' prompts, on the model with their vectors in it."""
    if not prompts:
        return
    base: Any = job.model
    markers = [marker for prompt in prompts for marker in prompt.markers]
    table = torch.from_numpy(np.concatenate([prompt.vectors for prompt in prompts]))
    loaded, embedding = softened(base.loaded, markers, table, name="soft", weights="")
    try:
        model = rebuilt(base, loaded)
        ready, start = [], model.loaded.vectors.start
        for prompt in prompts:
            id = f"{prompt.task.relation.id}-{name}"
            template = Template(id=id, text=prompt.text, source="optimised", group=id)
            ids = range(start, start + len(prompt.vectors))
            start = ids.stop
            written = draft(
                model, prompt.task, template, job.vocabulary, ids=ids, words=prompt.words
            )
            if written.train:
                ready.append(written)
            else:
                yield written.nothing_left()
        if ready:
            with frozen(model.model):
                yield from train(model, embedding, ready)
    finally:
        embedding.remove()
