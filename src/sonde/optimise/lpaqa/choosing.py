"""Measure the templates of a relation on its training facts, choose among them, and weigh them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from sonde.core.abilities import Model
from sonde.core.errors import NotFinite, PromptError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Key, Prompt, Score, called
from sonde.core.scores import option_logps
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.wrappers.ensemble import Answers, answer_logps, common_answers
from sonde.optimise.facts import Task
from sonde.optimise.making import Job, Made

if TYPE_CHECKING:
    from sonde.optimise.lpaqa.method import Lpaqa


class Asks(Protocol):
    """Asks a model for facts under templates."""

    templates: tuple[Template, ...]
    unfit: int
    outside: int
    long: int
    splits: tuple[tuple[Fact, ...], tuple[Fact, ...]]

    def golds(self, facts: Sequence[Fact]) -> Any:
        """Which answers are right, [facts, answers]."""

    def logps(self, number: int, facts: Sequence[Fact]) -> Any:
        """Log-probabilities over the answers under a template, [facts, answers] in float32."""


class Filling:
    """Asks a masked model: answers are the words allowed, one token each under every template."""

    def __init__(self, model: MaskedModel, task: Task, vocabulary: tuple[str, ...] | None) -> None:
        self.model = model
        subject = task.train[0].subject.name
        self.templates = tuple(
            t for t in task.relation.templates if self._fits(t, subject, vocabulary)
        )
        self.unfit = len(task.relation.templates) - len(self.templates)
        self.answers = Answers(names=(), tokens=())
        if self.templates:
            self.answers = common_answers(model, self.templates, subject, vocabulary)
        self.outside = self.long = 0
        self.columns = self._columns(task)
        self.splits = self._usable(task.train), self._usable(task.dev)

    def _fits(self, template: Template, subject: str, vocabulary: tuple[str, ...] | None) -> bool:
        """Whether some word is one token in the template's hole."""
        try:
            common_answers(self.model, [template], subject, vocabulary)
        except PromptError:
            return False
        return True

    def _columns(self, task: Task) -> dict[str, int]:
        """The column of each object's name that may be answered."""
        if not self.templates:
            return {}
        facts = (*task.train, *task.dev)
        names = {n for fact in facts for entity in fact.objects for n in entity.names}
        first = self.templates[0].fill(facts[0].subject.name)[0]
        place = {token: column for column, token in enumerate(self.answers.tokens[0])}
        tokens = self.model.encoder.single_tokens(sorted(names), first)
        return {name: place[id] for name, id in tokens.items() if id in place}

    def _usable(self, facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """The facts with an object that may be answered, short enough under every template."""
        inside = [fact for fact in facts if self._right(fact)]
        context = self.model.loaded.context
        short = [
            fact
            for fact in inside
            if all(
                len(span.ids) <= context
                for span in self.model.encoder.masked(
                    [t.fill(fact.subject.name) for t in self.templates]
                )
            )
        ]
        self.outside += len(facts) - len(inside)
        self.long += len(inside) - len(short)
        return tuple(short)

    def _right(self, fact: Fact) -> list[int]:
        names = (name for entity in fact.objects for name in entity.names)
        return [self.columns[name] for name in names if name in self.columns]

    def golds(self, facts: Sequence[Fact]) -> Any:
        """Which answers are right, [facts, answers]."""
        found = torch.zeros(len(facts), len(self.answers.names), dtype=torch.bool)
        for row, fact in zip(found, facts, strict=True):
            row[self._right(fact)] = True
        return found.to(self.model.model.device)

    def logps(self, number: int, facts: Sequence[Fact]) -> Any:
        """Log-probabilities over the answers under a template, [facts, answers] in float32."""
        sides = [self.templates[number].fill(fact.subject.name) for fact in facts]
        return answer_logps(
            self.model, self.model.encoder.masked(sides), self.answers.tokens[number]
        )


class Scoring:
    """Asks any other model: answers are the objects of the training facts, scored as options."""

    def __init__(self, model: Model, task: Task) -> None:
        self.model: Any = model
        self.templates = task.relation.templates
        self.unfit = self.outside = self.long = 0
        facts = (*task.train, *task.dev)
        names = (name for fact in facts for entity in fact.objects for name in entity.names)
        self.options = tuple(dict.fromkeys(names))
        self.splits = task.train, task.dev

    def golds(self, facts: Sequence[Fact]) -> Any:
        """Which answers are right, [facts, answers]."""
        place = {name: column for column, name in enumerate(self.options)}
        found = torch.zeros(len(facts), len(self.options), dtype=torch.bool)
        for row, fact in zip(found, facts, strict=True):
            row[[place[name] for entity in fact.objects for name in entity.names]] = True
        return found

    def logps(self, number: int, facts: Sequence[Fact]) -> Any:
        """Log-probabilities over the answers under a template, [facts, answers] in float32."""
        template, want = self.templates[number], Score(options=self.options)
        prompts = []
        for fact in facts:
            prefix, suffix = template.fill(fact.subject.name)
            key = key_of(fact, template)
            prompts.append(Prompt(key=key, prefix=prefix, suffix=suffix, want=want))
        found = np.zeros((len(facts), len(self.options)), dtype=np.float32)
        for i, answer in self.model.score(prompts):
            found[i] = option_logps(answer)
        return torch.log_softmax(torch.from_numpy(found), -1)


def key_of(fact: Fact, template: Template) -> Key:
    """What a fact under a template is known by."""
    return Key(
        fact=fact.id, relation=fact.relation, template=template.id, subject=fact.subject.name
    )


def sound_logps(asks: Asks, number: int, facts: Sequence[Fact]) -> Any:
    """What `asks` gives under a template; refused, with the fact named, if it is not finite."""
    logps = asks.logps(number, facts)
    sound = torch.isfinite(logps).all(1).tolist()
    if not all(sound):
        fact, template = facts[sound.index(False)], asks.templates[number]
        where = called(key_of(fact, template), *template.fill(fact.subject.name))
        raise NotFinite(f"the model gives NaN or infinity to {where}")
    return logps


def judged(logps: Any, golds: Any) -> tuple[Any, Any]:
    """Loss in nats and, 1 or 0, whether the answer is right, of each fact; a tie is wrong."""
    right = logps.masked_fill(~golds, -torch.inf)
    rival = logps.masked_fill(golds, -torch.inf).amax(1)
    return -torch.logsumexp(right, 1), (right.amax(1) > rival).float()


def means(logps: Any, golds: Any) -> tuple[float, float]:
    """The share of facts answered correctly, and the mean loss, negative: larger is better."""
    loss, hit = judged(logps, golds)
    return float(hit.mean()), -float(loss.mean())


def weighed(logps: Any, logits: Any) -> Any:
    """The average of [facts, templates, answers] with the weights softmax(logits), normalised."""
    weights = torch.softmax(logits, 0)
    return torch.log_softmax(torch.einsum("ftn,t->fn", logps.float(), weights), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Templates by number, best first, with their weights."""

    numbers: tuple[int, ...]
    weights: tuple[float, ...]
    epochs: float = 0.0


def chosen(method: Lpaqa, job: Job) -> Iterator[Made]:
    """Choose for one relation after the other."""
    for done, task in enumerate(job.tasks, 1):
        try:
            made = chosen_for(method, job, task)
        except NotFinite as error:
            made = Made(relation=task.relation.id, counts=task.counts, problem=str(error))
        told = "" if made.after is None else f"dev {100 * made.after:.1f} %"
        job.tick(done, len(job.tasks), told)
        yield made


def chosen_for(method: Lpaqa, job: Job, task: Task) -> Made:
    """Measure the templates of a relation and choose among them."""
    relation, model = task.relation.id, job.model
    if not task.relation.templates:
        return Made(relation=relation, counts=task.counts, problem="it has no templates")
    filling = isinstance(model, MaskedModel)
    asks: Asks = (
        Filling(model, task, job.vocabulary)
        if isinstance(model, MaskedModel)
        else Scoring(model, task)
    )
    train, dev = asks.splits
    counts = {
        **task.counts,
        "train": len(train),
        "dev": len(dev),
        "outside_vocabulary": asks.outside,
        "too_long": asks.long,
        "templates": len(asks.templates),
        "templates_unfit": asks.unfit,
    }
    if not asks.templates or not train:
        what = "training facts" if asks.templates else "templates"
        why = "have an answer that may be given" if filling else "can be used"
        return Made(relation=relation, counts=counts, problem=f"none of its {what} {why}")
    golds = asks.golds(train)
    scores = [means(sound_logps(asks, i, train), golds) for i in range(len(asks.templates))]
    # equal scores in the order they were given
    order = sorted(range(len(scores)), key=lambda i: (*(-s for s in scores[i]), i))
    choice = choose(method, asks, order, relation, job.seed)
    return Made(
        relation=relation,
        templates=tuple(
            replace(asks.templates[i], weight=weight)
            for i, weight in zip(choice.numbers, choice.weights, strict=True)
        ),
        before=share(asks, Choice(numbers=(0,), weights=(1.0,)), dev),
        after=share(asks, choice, dev),
        epochs=choice.epochs,
        counts=counts,
    )


def choose(method: Lpaqa, asks: Asks, order: Sequence[int], relation: str, seed: int) -> Choice:
    """The best template, or the best few with equal or tuned weights."""
    if method.choose == "best":
        return Choice(numbers=(order[0],), weights=(1.0,))
    best = tuple(order[: method.k or len(order)])
    if method.choose == "average" or len(best) == 1:
        return Choice(numbers=best, weights=(1 / len(best),) * len(best))
    weights = tuned(method, asks, best, Random(f"{seed}:{relation}"))
    ranked = sorted(range(len(best)), key=lambda k: (-weights[k], k))
    return Choice(
        numbers=tuple(best[k] for k in ranked),
        weights=tuple(weights[k] for k in ranked),
        epochs=method.epochs,
    )


def tuned(method: Lpaqa, asks: Asks, numbers: Sequence[int], draw: Random) -> list[float]:
    """Weights that make the training facts likeliest, those that are best on dev facts.

    They begin equal, and equal weights are among those looked at.
    """
    train, dev = asks.splits
    logps, golds = gathered(asks, numbers, train), asks.golds(train)
    held = (gathered(asks, numbers, dev), asks.golds(dev)) if dev else None
    logits = torch.zeros(len(numbers), device=golds.device, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=method.rate)
    best, kept = (-1.0, 0.0), logits.detach().clone()
    for epoch in range(method.epochs + 1):
        if epoch:
            order = list(range(len(train)))
            draw.shuffle(order)
            for start in range(0, len(order), method.batch):
                part = order[start : start + method.batch]
                loss, _ = judged(weighed(logps[part], logits), golds[part])
                adam.zero_grad()
                loss.mean().backward()
                adam.step()
        with torch.no_grad():
            found = means(weighed(held[0], logits), held[1]) if held else (float(epoch), 0.0)
        if found > best:
            best, kept = found, logits.detach().clone()
    return [float(weight) for weight in torch.softmax(kept, 0)]


def gathered(asks: Asks, numbers: Sequence[int], facts: Sequence[Fact]) -> Any:
    """Log-probabilities under some templates, [facts, templates, answers]."""
    # half precision on a GPU: hundreds of facts times thousands of words times many templates
    half = torch.float16 if isinstance(asks, Filling) else torch.float32
    return torch.stack([sound_logps(asks, i, facts).to(half) for i in numbers], 1)


def share(asks: Asks, choice: Choice, facts: Sequence[Fact]) -> float | None:
    """The share of facts that a choice answers correctly; None without facts."""
    if not facts:
        return None
    total: Any = 0.0
    for number, weight in zip(choice.numbers, choice.weights, strict=True):
        total = total + weight * sound_logps(asks, number, facts)
    return means(torch.log_softmax(total, -1), asks.golds(facts))[0]
