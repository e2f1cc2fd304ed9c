"""Measure the templates of a relation on its training facts, choose among them, and weigh them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from sonde.core.columns import in_columns
from sonde.core.errors import NotFinite, PromptError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Key, Prompt, Score, called
from sonde.models.torch.by_relation import Answers, answer_logps, common_answers
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.making import Job, Made, Task

if TYPE_CHECKING:
    from sonde.optimise.lpaqa import Lpaqa


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Asks a model for facts under templates.

    `logps(number, facts)` are the log-probabilities over the answers under a template,
    [facts, answers] in float32; `columns` is where each name stands among the answers, which
    are a whole `vocabulary` or a few options. `train` and
    `dev` are the facts that can be used; `unfit`, `outside` and `long` what was left out.
    """

    logps: Callable[[int, Sequence[Fact]], Any]
    templates: tuple[Template, ...]
    columns: Mapping[str, int]
    answers: int
    train: tuple[Fact, ...]
    dev: tuple[Fact, ...]
    vocabulary: bool = False
    device: Any = "cpu"
    unfit: int = 0
    outside: int = 0
    long: int = 0

    def golds(self, facts: Sequence[Fact]) -> Any:
        """Which answers are right, [facts, answers]."""
        golds = torch.zeros(len(facts), self.answers, dtype=torch.bool)
        for row, fact in zip(golds, facts, strict=True):
            row[[self.columns[name] for name in names_of([fact]) if name in self.columns]] = True
        return golds.to(self.device)


def names_of(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Every name of every object, each once."""
    names = (name for fact in facts for entity in fact.objects for name in entity.names)
    return tuple(dict.fromkeys(names))


def filling(model: MaskedModel, task: Task, vocabulary: tuple[str, ...] | None) -> Asks:
    """Asks a masked model: answers are the words allowed, one token each under every template."""
    subject = task.train[0].subject.name
    templates = tuple(
        t for t in task.relation.templates if takes_a_word(model, t, subject, vocabulary)
    )
    answers, columns = Answers(names=(), tokens=()), {}
    if templates:
        answers = common_answers(model, templates, subject, vocabulary)
        column = {token: k for k, token in enumerate(answers.tokens[0])}
        names = sorted(names_of((*task.train, *task.dev)))
        tokens = model.encoder.single_tokens(names, templates[0].fill(subject)[0])
        columns = {name: column[id] for name, id in tokens.items() if id in column}
    train, dev = (
        [fact for fact in facts if not columns.keys().isdisjoint(names_of([fact]))]
        for facts in (task.train, task.dev)
    )
    short = [tuple(f for f in facts if fits(model, templates, f)) for facts in (train, dev)]

    def logps(number: int, facts: Sequence[Fact]) -> Any:
        sides = [templates[number].fill(fact.subject.name, fact) for fact in facts]
        return answer_logps(model, model.encoder.masked(sides), answers.tokens[number])

    return Asks(
        logps=logps,
        templates=templates,
        columns=columns,
        answers=len(answers.names),
        train=short[0],
        dev=short[1],
        vocabulary=True,
        device=model.model.device,
        unfit=len(task.relation.templates) - len(templates),
        outside=len(task.train) + len(task.dev) - len(train) - len(dev),
        long=len(train) + len(dev) - sum(map(len, short)),
    )


def takes_a_word(
    model: MaskedModel, template: Template, subject: str, vocabulary: tuple[str, ...] | None
) -> bool:
    """Whether some word is one token in the template's masked position."""
    try:
        common_answers(model, [template], subject, vocabulary)
    except PromptError:
        return False
    return True


def fits(model: MaskedModel, templates: Sequence[Template], fact: Fact) -> bool:
    """Whether a fact is short enough for the model under every template."""
    spans = model.encoder.masked([template.fill(fact.subject.name, fact) for template in templates])
    return all(len(span.ids) <= model.loaded.context for span in spans)


def scoring(model: Any, task: Task) -> Asks:
    """Asks any other model: answers are the objects of the training facts, scored as options."""
    options = names_of((*task.train, *task.dev))
    templates = task.relation.templates

    def logps(number: int, facts: Sequence[Fact]) -> Any:
        prompts = []
        for fact in facts:
            prefix, suffix = templates[number].fill(fact.subject.name, fact)
            key, want = key_of(fact, templates[number]), Score(options=options)
            prompts.append(Prompt(key=key, prefix=prefix, suffix=suffix, want=want))
        values = np.zeros((len(facts), len(options)), dtype=np.float32)
        for positions, rated in in_columns(model.score(prompts)):
            values[positions] = rated.sums().reshape(len(positions), -1)
        return torch.log_softmax(torch.from_numpy(values), -1)

    return Asks(
        logps=logps,
        templates=templates,
        columns={name: k for k, name in enumerate(options)},
        answers=len(options),
        train=task.train,
        dev=task.dev,
    )


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
        where = called(key_of(fact, template), *template.fill(fact.subject.name, fact))
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
    relation, model = task.relation.id, cast(Any, job.model)
    if not task.relation.templates:
        return Made(relation=relation, counts=task.counts, problem="it has no templates")
    masked = isinstance(model, MaskedModel)
    asks = filling(model, task, job.vocabulary) if masked else scoring(model, task)
    counts = {
        **task.counts,
        "train": len(asks.train),
        "dev": len(asks.dev),
        "outside_vocabulary": asks.outside,
        "too_long": asks.long,
        "templates": len(asks.templates),
        "templates_unfit": asks.unfit,
    }
    if not asks.templates or not asks.train:
        what = "training facts" if asks.templates else "templates"
        why = "have an answer that may be given" if masked else "can be used"
        return Made(relation=relation, counts=counts, problem=f"none of its {what} {why}")
    weights, epochs = choose(method, asks, Random(f"{job.seed}:{relation}"))
    return Made(
        relation=relation,
        templates=tuple(replace(asks.templates[i], weight=w) for i, w in weights.items()),
        before=share(asks, {0: 1.0}),
        after=share(asks, weights),
        epochs=epochs,
        counts=counts,
    )


Weights = dict[int, float]
"""Templates by number, best first, with their weights."""


def choose(method: Lpaqa, asks: Asks, draw: Random) -> tuple[Weights, float]:
    """The best template, or the best few with equal or tuned weights; and for how many epochs."""
    golds, numbers = asks.golds(asks.train), range(len(asks.templates))
    scores = [means(sound_logps(asks, i, asks.train), golds) for i in numbers]
    # equal scores in the order they were given
    order = sorted(numbers, key=lambda i: (*(-s for s in scores[i]), i))
    best = order[:1] if method.choose == "best" else order[: method.k or len(order)]
    if method.choose == "weighted" and len(best) > 1:
        weights = tuned(method, asks, best, draw)
        ranked = sorted(range(len(best)), key=lambda k: (-weights[k], k))
        return {best[k]: weights[k] for k in ranked}, method.epochs
    return dict.fromkeys(best, 1 / len(best)), 0.0


def tuned(method: Lpaqa, asks: Asks, numbers: Sequence[int], draw: Random) -> list[float]:
    """Weights that make the training facts likeliest, those that are best on dev facts.

    They begin equal, and equal weights are among those looked at.
    """
    logps, golds = gathered(asks, numbers, asks.train)
    held_out = gathered(asks, numbers, asks.dev) if asks.dev else None
    logits = torch.zeros(len(numbers), device=golds.device, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=method.rate)
    best, kept = (-1.0, 0.0), logits.detach().clone()
    for epoch in range(method.epochs + 1):
        if epoch:
            order = list(range(len(asks.train)))
            draw.shuffle(order)
            for start in range(0, len(order), method.batch):
                part = order[start : start + method.batch]
                loss, _ = judged(weighed(logps[part], logits), golds[part])
                adam.zero_grad()
                loss.mean().backward()
                adam.step()
        score = (float(epoch), 0.0)
        if held_out is not None:
            with torch.no_grad():
                score = means(weighed(held_out[0], logits), held_out[1])
        if score > best:
            best, kept = score, logits.detach().clone()
    return [float(weight) for weight in torch.softmax(kept, 0)]


def gathered(asks: Asks, numbers: Sequence[int], facts: Sequence[Fact]) -> tuple[Any, Any]:
    """Log-probabilities under some templates, [facts, templates, answers], and what is right."""
    # half precision for a vocabulary: hundreds of facts, thousands of words, many templates
    dtype = torch.float16 if asks.vocabulary else torch.float32
    logps = torch.stack([sound_logps(asks, i, facts).to(dtype) for i in numbers], 1)
    return logps, asks.golds(facts)


def share(asks: Asks, weights: Weights) -> float | None:
    """The share of dev facts answered correctly with weighted templates; None without facts."""
    if not asks.dev:
        return None
    total: Any = 0.0
    for number, weight in weights.items():
        total = total + weight * sound_logps(asks, number, asks.dev)
    return means(torch.log_softmax(total, -1), asks.golds(asks.dev))[0]
