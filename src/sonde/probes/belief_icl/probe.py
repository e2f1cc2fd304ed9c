"""BELIEF-ICL: causal models answer in their own words, after an instruction and some examples.

Knows no model. Each pair of subject and relation is asked in every template, under every name that
is chosen; the answer is written greedily to the end of the line, and for up to 10,000 pairs also
drawn many times. methods: Acc@1, fluctuation, Consist by matching, one-word rate, Overconf from
drawn answers and from probabilities by length, template accuracies, coverage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, Literal, Self

import numpy as np

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given, rows_of
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.prompts import Generate, Key, Prompt, Sample, Want
from sonde.core.reports import Report
from sonde.core.settings import setting
from sonde.metrics.judged import Judged
from sonde.probes.belief_icl.pairs import World, sampled_pairs, sampled_prompt, world
from sonde.probes.belief_icl.report import Reading, build_report
from sonde.probes.belief_icl.tally import Outcomes, Tally
from sonde.prompting.few_shot import Context, Contexts, Shape, ShotsPer, Style, Target
from sonde.prompting.matching import alike, check_language
from sonde.prompting.pairs import Pair, asked_pairs
from sonde.reporting.build.multi_prompt.sections import DRAWS, Draw

BLOCK = 1024
"""Pairs that are asked template by template, so that prompts which begin alike come together."""

WRITTEN, DRAWN = "greedy", "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefIcl:
    """Accuracy, consistency and confidence of answers written after examples."""

    name: ClassVar[str] = "belief-icl"

    style: Style = setting("mask", "predict [MASK] in a sentence, or answer a question (qa)")
    context: Context = setting(
        "template",
        "examples before the question: none (zero-shot), of any relation (random), of the same "
        "relation, or of the same template",
    )
    shots: int = setting(4, "how many examples stand before a question", least=1)
    shots_per: ShotsPer = setting(
        "template", "draw examples once for each template, or anew for each fact"
    )
    templates: Literal["manual", "all"] = setting(
        "manual", "which templates to ask with: those written by hand, or all"
    )
    questions: bool = setting(
        False, "ask with question templates only, in mask style too, to compare it with qa"
    )
    names: Literal["original", "all"] = setting(
        "original", "which names of a subject to ask with: its usual one, or all"
    )
    samples: int = setting(100, "answers drawn for each confidence; 0 for no confidence", least=0)
    sampled_pairs: int = setting(10_000, "the most pairs whose answers are drawn", least=1)
    most: int = setting(16, "the most tokens of an answer", least=1)
    draw: Draw = setting(
        "relation",
        "fluctuation shown first: a template per relation, or a prompt per pair, is drawn",
        reads=True,
    )
    draws: int = setting(DRAWS, "how many draws the fluctuation takes", least=2, reads=True)
    floor: int = setting(
        100, "one-token answers a template needs for an Overconf of its own", least=1, reads=True
    )
    language: str = setting(
        "en", "whose lemmas answers are compared by, or none: as they are written", reads=True
    )

    def __post_init__(self) -> None:
        check_language(self.language)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must write, and draw unless no confidence is wanted."""
        need(self.name, can, "generate")
        if self.samples:
            need(f"{self.name}, unless samples=0,", can, "sample")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, some pairs at a time, template by template."""
        self._check_templates(dataset)
        seed = dataset.selection.seed
        contexts = Contexts(dataset, self._shape(seed), self._eligible)
        drawn = sampled_pairs(dataset, self._eligible, self.sampled_pairs if self.samples else 0)
        for relation in dataset.asked_relations():
            templates = self._eligible(relation)
            pairs = asked_pairs(dataset, relation.id) if templates else iter(())
            while block := list(islice(pairs, BLOCK)):
                chosen = {
                    pair.fact: sampled_prompt(pair, templates, self._names(pair), seed)
                    for pair in block
                    if (relation.id, pair.fact) in drawn
                }
                for template in templates:
                    for pair in block:
                        yield from self._prompts(relation.id, template, pair, contexts, chosen)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer by its lemmas and compute every number."""
        known, outcomes = self._tallied(dataset, answered)
        reading = Reading(
            style=self.style,
            context=self.context,
            shots=self.shots,
            samples=self.samples,
            most=self.most,
            draw=self.draw,
            draws=self.draws,
            floor=self.floor,
        )
        report = build_report(dataset, known, outcomes, reading)
        return replace(report, judged=_judged(known, outcomes))

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, for comparisons with other runs."""
        return _judged(*self._tallied(dataset, answered))

    def _tallied(self, dataset: Dataset, answered: Given) -> tuple[World, Outcomes]:
        known = world(dataset, self._eligible, self.language)
        tally = Tally(known, self.language, dataset.selection.seed)
        for row in rows_of(answered):
            tally.add(row)
        return known, tally.outcomes()

    def _prompts(
        self,
        relation: str,
        template: Template,
        pair: Pair,
        contexts: Contexts,
        chosen: dict[str, tuple[str, str]],
    ) -> Iterator[Prompt]:
        target = Target(fact=pair.fact, relation=relation, names=pair.names)
        for name in self._names(pair):
            prefix = contexts.prompt(target, template, name)
            wants: dict[str, Want] = {WRITTEN: Generate(most=self.most)}
            if chosen.get(pair.fact) == (template.id, name):
                seed = contexts.seed
                wants[DRAWN] = Sample(count=self.samples, most=self.most, seed=seed)
            for context, want in wants.items():
                key = Key(
                    fact=pair.fact,
                    relation=relation,
                    template=template.id,
                    subject=name,
                    context=context,
                )
                yield Prompt(key=key, prefix=prefix, want=want)

    def _names(self, pair: Pair) -> tuple[str, ...]:
        return pair.names if self.names == "all" else pair.names[:1]

    def _shape(self, seed: int) -> Shape:
        return Shape(
            style=self.style,
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
            seed=seed,
        )

    def _eligible(self, relation: Relation) -> tuple[Template, ...]:
        return tuple(
            t
            for t in relation.templates
            if (self.templates == "all" or t.source == "manual")
            and (t.style == "question" or not self._only_questions())
        )

    def _only_questions(self) -> bool:
        return self.questions or self.style == "qa"

    def _check_templates(self, dataset: Dataset) -> None:
        if any(self._eligible(relation) for relation in dataset.asked_relations()):
            return
        kind = "hand-written " if self.templates == "manual" else ""
        if self._only_questions():
            raise DataError(
                f"dataset {dataset.name!r} has no {kind}question templates for what is asked; "
                "templates with style 'question', such as 'Where was [X] born? [Y].', are needed: "
                "set style to mask and questions to false, or templates to all"
            )
        raise DataError(
            f"dataset {dataset.name!r} has no {kind}templates for what is asked; "
            "set templates to all, or name other relations"
        )


def _judged(known: World, outcomes: Outcomes) -> Judged:
    return Judged(
        grid=outcomes.grid,
        relations=known.relations,
        pairs=tuple(fact for _, fact in known.pairs),
        names=tuple(pair.names for pair in known.pairs.values()),
        templates=known.templates,
        answers=tuple(outcomes.texts),
        way="written",
        sure=np.where(outcomes.tokens == 1, outcomes.likely, np.nan),
        matches=alike,
        words=outcomes.words,
    )


COMPONENT = BeliefIcl
