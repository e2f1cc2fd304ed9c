"""Models that answer each relation in a way of its own: under several templates, or by weights.

An ensemble takes a weighted average of log-probabilities over answers that every template's masked
position allows, and makes it a distribution again, so its log-probabilities are over these answers
and their mass is one. Only single sentences can be put in other words (`Prompt.cloze`); whatever
else is asked is refused. A fine-tuned model adds to its weights the change that the relation's file
holds. Knows nothing of how templates, their weights or changes were found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from sonde.core.abilities import Batching, Model, Named, Scores
from sonde.core.columns import FilledColumns, in_columns
from sonde.core.costs import ShardCost
from sonde.core.errors import AbilityError, ModelError, PromptError, nearest
from sonde.core.facts import Template
from sonde.core.fingerprints import fingerprint
from sonde.core.progress import part
from sonde.core.prompts import Cloze, Fill, Prompt, Score
from sonde.core.rated import RatedColumns, ends_of, taken
from sonde.core.texts import capitalised
from sonde.engine.encode import Span
from sonde.engine.limits import check_spans, naming
from sonde.engine.masked_batch import columns
from sonde.engine.schedule import Pass
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.budgets import explain_oom
from sonde.models.torch.loading.weight_files import remembered_hash
from sonde.models.torch.loading.weights import refuse_fixed
from sonde.models.torch.masked.answers import Allowed, Table, read_masked
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
    """Log-probabilities over some tokens at masked positions, [texts, tokens], on the device."""
    masked = columns([(span.ids, span.start) for span in spans])
    ids = torch.tensor(tokens, device=model.model.device)
    averages = torch.empty(len(spans), len(tokens), device=model.model.device)

    def launch(step: Pass) -> Any:
        logits = model.mask_logits("fill", masked, np.array(step.members))
        return torch.log_softmax(logits[:, ids], -1)

    passes = model.passes("fill", masked.lengths.tolist())
    for step, logps in model.budgets["fill"].execute(passes, launch):
        averages[step.members] = logps
    return averages


def by_relation(relations: Iterable[str]) -> dict[str, list[int]]:
    """Where each relation stands.

    >>> by_relation(["P36", "P19", "P36"])
    {'P36': [0, 2], 'P19': [1]}
    """
    groups: dict[str, list[int]] = {}
    for position, relation in enumerate(relations):
        groups.setdefault(relation, []).append(position)
    return groups


class ScoringEnsemble(Named):
    """A model that scores options under all the templates of a relation."""

    def __init__(self, name: str, base: Model, members: Mapping[str, Members]) -> None:
        self.base: Any = base
        if isinstance(base, Batching):
            self.budgets = base.budgets
        self.members = members
        parts = [
            f"{relation}\0{template.text}\0{weight!r}"
            for relation, own in members.items()
            for template, weight in own
        ]
        weights = fingerprint([base.identity.weights, *parts])
        self.identity = replace(base.identity, name=name, weights=weights)

    def admit(self, prompt: Prompt) -> None:
        """Refuse what is no single sentence of a relation that has templates."""
        self.cloze(prompt)

    def cloze(self, prompt: Prompt) -> Cloze:
        """What a single sentence asks; refuses other prompts, and relations without templates."""
        with naming(prompt):
            if prompt.cloze is None:
                raise PromptError(
                    f"{self.identity.name} answers single sentences under its own templates; it "
                    "cannot stand behind examples, or answer questions in words of their own. "
                    f"Ask its base model, {self.base.identity.name}"
                )
            if (relation := prompt.cloze.relation) not in self.members:
                raise PromptError(
                    f"{self.identity.name} has no templates for relation {relation!r}; "
                    f"{nearest(relation, self.members)}. Ask about those it has, with --relations"
                )
        return prompt.cloze

    def sides(self, prompt: Prompt, template: Template) -> tuple[str, str]:
        """What stands before and after the answer to the same question under another template."""
        before, after = template.fill(self.cloze(prompt).subject)
        return capitalised(before) if getattr(prompt.want, "capitals", False) else before, after

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, RatedColumns]]:
        """Yield (positions, averages): an option's log-probability, as if it were one token.

        What follows the answer is counted with it.
        """
        for relation, own in by_relation(self.cloze(p).relation for p in prompts).items():
            options = [options_of(prompts[i]) for i in own]
            bounds = ends_of([len(names) for names in options])
            totals = np.zeros(bounds[-1])
            for template, weight in self.members[relation]:
                sides = [self.sides(prompts[i], template) for i in own]
                asked = [
                    replace(prompts[i], prefix=before, suffix=after)
                    for i, (before, after) in zip(own, sides, strict=True)
                ]
                with part(1 / len(self.members[relation])):
                    for positions, rated in in_columns(self.base.score(asked)):
                        totals[taken(bounds, positions)[1]] += weight * rated.sums()
            ones = np.ones(len(totals), dtype=np.int64)
            yield np.array(own), RatedColumns.scored(options, totals, ones)


class FillingEnsemble(ScoringEnsemble):
    """A masked model that answers under all the templates of a relation."""

    def __init__(self, name: str, base: MaskedModel, members: Mapping[str, Members]) -> None:
        super().__init__(name, base, members)
        self.fillable = base.fillable
        self._answers = lru_cache(maxsize=64)(self._make_answers)

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        """Yield (positions, the likeliest answers and the watched names)."""
        return explain_oom(self._fill(prompts))

    def _fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[np.ndarray, FilledColumns]]:
        for relation, own in by_relation(self.cloze(p).relation for p in prompts).items():
            kinds: dict[int, list[int]] = {}
            for i in own:
                kinds.setdefault(id(prompts[i].want), []).append(i)
            for kind in kinds.values():
                for start in range(0, len(kind), CHUNK):
                    part = kind[start : start + CHUNK]
                    yield np.array(part), self._filled(relation, [prompts[i] for i in part])

    def _filled(self, relation: str, prompts: Sequence[Prompt]) -> FilledColumns:
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
        [(_, filled)] = read_masked([(want, table)], np.zeros(len(prompts), dtype=int), logits)()
        return filled

    def averaged(self, relation: str, prompts: Sequence[Prompt], answers: Answers) -> Any:
        """The average of the templates' log-probabilities, [prompts, answers], not normalised."""
        total: Any = 0.0
        for (template, weight), tokens in zip(self.members[relation], answers.tokens, strict=True):
            sides = [self.sides(prompt, template) for prompt in prompts]
            spans = self.base.encoder.masked(sides)
            for prompt, span in zip(prompts, spans, strict=True):
                with naming(prompt):
                    check_spans([span], self.base.loaded)
            total = total + weight * answer_logps(self.base, spans, tokens)
        return total

    def _make_answers(self, relation: str, want: Fill) -> tuple[Answers, Table]:
        """What may be answered, and the table to read it by: tokens are the first template's."""
        templates = [template for template, _ in self.members[relation]]
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


def options_of(prompt: Prompt) -> tuple[str, ...]:
    """The options of a prompt."""
    if not isinstance(prompt.want, Score):
        raise AbilityError("score() takes prompts that want options scored")
    return prompt.want.options


def ensemble(
    name: str, base: Model, members: Mapping[str, Members]
) -> FillingEnsemble | ScoringEnsemble:
    """The model with the templates of each relation."""
    if isinstance(base, MaskedModel):
        return FillingEnsemble(name, base, members)
    if not isinstance(base, Scores):
        raise AbilityError(f"{base.identity.name} can neither fill a mask nor score options")
    return ScoringEnsemble(name, base, members)


class Finetuned(Named):
    """A model with other weights for each relation; it scores options."""

    def __init__(
        self, name: str, base: CausalModel | MaskedModel, files: Mapping[str, Path]
    ) -> None:
        refuse_fixed(base.loaded, name, "changed by relation")
        self.base = base
        self.budgets = base.budgets
        self.files = files
        self.original = {n: p.detach().clone() for n, p in base.model.named_parameters()}
        self.opened = ""
        hashes = (part for r, file in files.items() for part in (r, remembered_hash(file)))
        weights = fingerprint([base.identity.weights, *hashes])
        details = {**base.identity.details, "base": base.identity.name}
        self.identity = replace(base.identity, name=name, weights=weights, details=details)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        """Yield what the model does, under the weights of each prompt's relation."""
        return self._answers("score", prompts)

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        """What each shard would cost, in turn; opening weights is not counted."""
        return self.base.estimate_costs(shards)

    def _answers(self, ability: str, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        for relation, own in by_relation(prompt.key.relation for prompt in prompts).items():
            self.open(relation)
            for k, answer in getattr(self.base, ability)([prompts[i] for i in own]):
                yield np.array(own)[k], answer

    @torch.no_grad()
    def open(self, relation: str) -> None:
        """Give the model the weights of a relation."""
        if relation == self.opened:
            return
        if relation not in self.files:
            raise PromptError(
                f"{self.identity.name} has no weights for relation {relation!r}; "
                f"{nearest(relation, self.files)}. Ask about those it was trained for, with "
                "--relations"
            )
        change = read_change(self.files[relation], self.original)
        self.opened = ""
        for name, parameter in self.base.model.named_parameters():
            moved = self.original[name].float() + change[name].to(parameter.device).float()
            parameter.copy_(moved)
        if isinstance(self.base, CausalModel):
            self.base.prefixes.clear()
        self.opened = relation


class FinetunedMasked(Finetuned):
    """A masked model with other weights for each relation."""

    @property
    def fillable(self) -> Callable[[Fill, str], frozenset[str]]:
        """What the model itself can fill in."""
        assert isinstance(self.base, MaskedModel)
        return self.base.fillable

    def fill(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        """Yield what the model does, under the weights of each prompt's relation."""
        return self._answers("fill", prompts)


class FinetunedCausal(Finetuned):
    """A causal model with other weights for each relation."""

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        """Yield what the model does, under the weights of each prompt's relation."""
        return self._answers("generate", prompts)

    def sample(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        """Yield what the model does, under the weights of each prompt's relation."""
        return self._answers("sample", prompts)

    def trace(self, prompts: Sequence[Prompt]) -> Iterator[tuple[Any, Any]]:
        """Yield what the model does, under the weights of each prompt's relation."""
        return self._answers("trace", prompts)


def read_change(path: Path, original: Mapping[str, Any]) -> dict[str, Any]:
    """The change of every weight, refused if it is of another model."""
    try:
        change = load_file(path)
    except Exception as error:  # safetensors raises its own
        raise ModelError(f"{path} does not read back: {error}") from error
    if {n: t.shape for n, t in change.items()} != {n: t.shape for n, t in original.items()}:
        raise ModelError(f"{path} holds the weights of another model")
    return change


def finetuned(name: str, base: Any, files: Mapping[str, Path]) -> FinetunedMasked | FinetunedCausal:
    """The model with the weights of each relation."""
    if isinstance(base, CausalModel):
        return FinetunedCausal(name, base, files)
    return FinetunedMasked(name, base, files)
