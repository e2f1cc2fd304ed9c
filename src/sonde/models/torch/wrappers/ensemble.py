"""Answer under several templates at once: a weighted average of log-probabilities.

The average is taken over answers that every template's hole allows and made a distribution again,
so its log-probabilities are over these answers and their mass is one. Only single sentences can be
put in other words (`Prompt.cloze`); whatever else is asked is refused. Knows templates and weights;
nothing of how they were found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from sonde.core.abilities import Identity, Model, Scores
from sonde.core.answers import Filled, Scored
from sonde.core.errors import AbilityError, PromptError, nearest
from sonde.core.facts import Template
from sonde.core.fingerprints import fingerprint
from sonde.core.prompts import Cloze, Fill, Prompt, Score, capitalised
from sonde.core.scores import option_logps
from sonde.engine.encode import Span
from sonde.engine.masked_batch import columns
from sonde.engine.schedule import Pass
from sonde.models.torch.loading.limits import check_spans, explain_oom, naming
from sonde.models.torch.masked.answers import Allowed, Table, read_masked
from sonde.models.torch.masked.logits import mask_logits
from sonde.models.torch.masked.model import MaskedModel

CHUNK = 1024  # prompts whose answers are averaged at once

Members = tuple[tuple[Template, float], ...]
"""Templates of a relation, and what each weighs; weights sum to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What may be answered under each of some templates: names, and tokens[template][name]."""

    names: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]


def common_answers(
    model: MaskedModel,
    templates: Sequence[Template],
    subject: str,
    vocabulary: tuple[str, ...] | None,
    *,
    capitals: bool = False,
) -> Answers:
    """The answers that are one token under every template; a word may be another token in each."""
    want = Fill(vocabulary=vocabulary, capitals=capitals)
    allowed = [model.tables.table(want, t.fill(subject)[0]).allowed for t in templates]
    if vocabulary is None:
        ids = tuple(allowed[0].ids.tolist())
        return Answers(names=tuple(allowed[0].names), tokens=(ids,) * len(templates))
    known = [dict(zip(a.names, a.ids.tolist(), strict=True)) for a in allowed]
    names = tuple(name for name in allowed[0].names if all(name in own for own in known))
    if not names:
        raise PromptError("no word of the vocabulary is a single token under all the templates")
    return Answers(names=names, tokens=tuple(tuple(own[n] for n in names) for own in known))


def answer_logps(model: MaskedModel, spans: Sequence[Span], tokens: Sequence[int]) -> Any:
    """Log-probabilities over some tokens at the holes of texts, [texts, tokens], on the device."""
    masked = columns([(span.ids, span.start) for span in spans])
    ids = torch.tensor(tokens, device=model.model.device)
    averages = torch.empty(len(spans), len(tokens), device=model.model.device)

    def launch(step: Pass) -> Any:
        logits = mask_logits(model.model, masked, step.members, model.ways)
        return torch.log_softmax(logits[:, ids], -1)

    for step, logps in model.budget.execute(model.passes(masked.lengths.tolist()), launch):
        averages[step.members] = logps
    return averages


class Expands:
    """Puts single sentences into the words of every template of their relation."""

    def __init__(self, name: str, base: Model, members: Mapping[str, Members]) -> None:
        self.base: Any = base
        self.members = members
        parts = [
            f"{relation}\0{template.text}\0{weight!r}"
            for relation, own in members.items()
            for template, weight in own
        ]
        weights = fingerprint([base.identity.weights, *parts])
        self.identity = replace(base.identity, name=name, weights=weights)

    def of(self, relation: str) -> Members:
        """The templates of a relation."""
        if relation not in self.members:
            raise PromptError(
                f"{self.identity.name} has no templates for relation {relation!r}; "
                f"{nearest(relation, self.members)}. Ask about those it has, with --relations"
            )
        return self.members[relation]

    def cloze(self, prompt: Prompt) -> Cloze:
        """What a single sentence asks; refuses other prompts, and relations without templates."""
        with naming(prompt):
            if prompt.cloze is None:
                raise PromptError(
                    f"{self.identity.name} answers single sentences under its own templates; it "
                    "cannot stand behind examples, or answer questions in words of their own. "
                    f"Ask its base model, {self.base.identity.name}"
                )
            self.of(prompt.cloze.relation)
        return prompt.cloze

    def by_relation(self, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
        """Positions of the prompts of each relation."""
        groups: dict[str, list[int]] = {}
        for i, prompt in enumerate(prompts):
            groups.setdefault(self.cloze(prompt).relation, []).append(i)
        return groups

    def sides(self, prompt: Prompt, template: Template) -> tuple[str, str]:
        """What stands before and after the hole of the same question under another template."""
        before, after = template.fill(self.cloze(prompt).subject)
        return capitalised(before) if getattr(prompt.want, "capitals", False) else before, after

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer): an option's average log-probability, as if it were one token.

        What follows the answer is counted with it.
        """
        for relation, own in self.by_relation(prompts).items():
            totals = [np.zeros(len(wanted(prompts[i]))) for i in own]
            for template, weight in self.of(relation):
                sides = [self.sides(prompts[i], template) for i in own]
                asked = [
                    replace(prompts[i], prefix=before, suffix=after)
                    for i, (before, after) in zip(own, sides, strict=True)
                ]
                for k, answer in self.base.score(asked):
                    totals[k] += weight * option_logps(answer)
            for i, total in zip(own, totals, strict=True):
                logps = tuple((value,) for value in total.tolist())
                yield i, Scored(options=wanted(prompts[i]), logps=logps)


class ScoringEnsemble:
    """A model that scores options under several templates."""

    def __init__(self, expands: Expands) -> None:
        self.expands = expands

    @property
    def identity(self) -> Identity:
        """What makes this model's answers its own."""
        return self.expands.identity

    def admit(self, prompt: Prompt) -> None:
        """Refuse what is no single sentence of a relation that has templates."""
        self.expands.cloze(prompt)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        """Yield (position, answer) in any order."""
        return self.expands.score(prompts)


class FillingEnsemble(ScoringEnsemble):
    """A masked model that answers under several templates."""

    def __init__(self, expands: Expands) -> None:
        super().__init__(expands)
        self.base: MaskedModel = expands.base
        self._answers = lru_cache(maxsize=64)(self._make_answers)

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Yield (position, answer) with the likeliest answers and the watched names."""
        return explain_oom(self._fill(prompts))

    def _fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        for relation, own in self.expands.by_relation(prompts).items():
            kinds: dict[int, list[int]] = {}
            for i in own:
                kinds.setdefault(id(prompts[i].want), []).append(i)
            for kind in kinds.values():
                for start in range(0, len(kind), CHUNK):
                    part = kind[start : start + CHUNK]
                    found = self._filled(relation, [prompts[i] for i in part])
                    yield from ((part[k], answer) for k, answer in found)

    def _filled(self, relation: str, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Filled]]:
        """Answers to prompts of one relation that want the same."""
        want = prompts[0].want
        if not isinstance(want, Fill):
            raise AbilityError("fill() takes prompts that want a masked position filled")
        with naming(prompts[0]):
            answers, table = self._answers(relation, want)
        whole = self.averaged(relation, prompts, answers)
        rows = self.base.loaded.rows
        logits = torch.full((len(prompts), rows), -torch.inf, device=whole.device)
        logits[:, table.allowed.ids] = whole
        for at, block in read_masked([(want, table)], np.zeros(len(prompts), dtype=int), logits)():
            yield from zip(at.tolist(), block.each(), strict=True)

    def averaged(self, relation: str, prompts: Sequence[Prompt], answers: Answers) -> Any:
        """The average of the templates' log-probabilities, [prompts, answers], not normalised."""
        total: Any = 0.0
        members = self.expands.of(relation)
        for (template, weight), tokens in zip(members, answers.tokens, strict=True):
            sides = [self.expands.sides(prompt, template) for prompt in prompts]
            spans = self.base.encoder.masked(sides)
            for prompt, span in zip(prompts, spans, strict=True):
                with naming(prompt):
                    check_spans([span], self.base.loaded)
            total = total + weight * answer_logps(self.base, spans, tokens)
        return total

    def _make_answers(self, relation: str, want: Fill) -> tuple[Answers, Table]:
        """What may be answered, and the table to read it by: tokens are the first template's."""
        templates = [template for template, _ in self.expands.of(relation)]
        answers = common_answers(
            self.base, templates, "it", want.vocabulary, capitals=want.capitals
        )
        ids = answers.tokens[0]
        may = frozenset(ids)
        first = templates[0].fill("it")[0]
        tokens = self.base.encoder.single_tokens(want.watched, first, capitals=want.capitals)
        allowed = Allowed(
            names=answers.names,
            ids=torch.tensor(ids, device=self.base.model.device),
            may=may,
            all=False,
        )
        return answers, Table.of(allowed, tokens, want.watched)


def wanted(prompt: Prompt) -> tuple[str, ...]:
    """The options of a prompt."""
    if not isinstance(prompt.want, Score):
        raise AbilityError("score() takes prompts that want options scored")
    return prompt.want.options


def ensemble(
    name: str, base: Model, members: Mapping[str, Members]
) -> FillingEnsemble | ScoringEnsemble:
    """The model with the templates of each relation."""
    expands = Expands(name, base, members)
    if isinstance(base, MaskedModel):
        return FillingEnsemble(expands)
    if not isinstance(base, Scores):
        raise AbilityError(f"{base.identity.name} can neither fill a hole nor score options")
    return ScoringEnsemble(expands)
