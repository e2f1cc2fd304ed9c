"""What BELIEF-ICL can be set to, and what it asks. Knows facts and texts, nothing of answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice
from typing import Literal

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Key, Prompt, Sample
from sonde.core.settings import setting
from sonde.prompting.few_shot import Context, Contexts, Shape, ShotsPer, Style, Target
from sonde.prompting.matching import check_language
from sonde.prompting.pairs import Pair, asked_pairs
from sonde.reporting.build.multi_prompt.sections import DRAWS, Draw

BLOCK = 1024
"""Pairs that are asked template by template, so that prompts which begin alike come together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How prompts look, which of them are asked, and how answers are read."""

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

    @property
    def title(self) -> str:
        """The setting as the papers name it: mask 4-template."""
        few = "" if self.context == "zero-shot" else f"{self.shots}-"
        return f"{self.style} {few}{self.context}"

    def eligible(self, relation: Relation) -> tuple[Template, ...]:
        """The templates of a relation that are asked."""
        return tuple(
            t
            for t in relation.templates
            if (self.templates == "all" or t.source == "manual")
            and (t.style == "question" or not self._only_questions())
        )

    def named(self, pair: Pair) -> tuple[str, ...]:
        """The names of a subject that are asked."""
        return pair.names if self.names == "all" else pair.names[:1]

    def shape(self, seed: int) -> Shape:
        """How prompts look."""
        return Shape(
            style=self.style,
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
            seed=seed,
        )

    def _only_questions(self) -> bool:
        return self.questions or self.style == "qa"

    def check_templates(self, dataset: Dataset) -> None:
        """Refuse a dataset without templates that may be asked."""
        if any(self.eligible(relation) for relation in dataset.asked_relations()):
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


def prompts(dataset: Dataset, settings: Settings) -> Iterator[Prompt]:
    """Relation by relation, some pairs at a time, template by template: written, then drawn."""
    seed = dataset.selection.seed
    contexts = Contexts(dataset, settings.shape(seed), settings.eligible)
    drawn = _sampled_pairs(dataset, settings)
    sample = Sample(count=settings.samples, most=settings.most, seed=seed)
    for relation in dataset.asked_relations():
        templates = settings.eligible(relation)
        pairs = asked_pairs(dataset, relation.id) if templates else iter(())
        while block := list(islice(pairs, BLOCK)):
            chosen = {
                (pair.fact, *_sampled_prompt(pair, templates, settings.named(pair), seed))
                for pair in block
                if (relation.id, pair.fact) in drawn
            }
            for template in templates:
                written = [
                    prompt
                    for pair in block
                    for prompt in _written(relation.id, template, pair, contexts, settings)
                ]
                yield from written
                for prompt in written:
                    key = prompt.key
                    if (key.fact, key.template, key.subject) in chosen:
                        yield replace(prompt, want=sample)


def _written(
    relation: str, template: Template, pair: Pair, contexts: Contexts, settings: Settings
) -> Iterator[Prompt]:
    target = Target(fact=pair.fact, relation=relation, names=pair.names)
    for name in settings.named(pair):
        yield Prompt(
            key=Key(fact=pair.fact, relation=relation, template=template.id, subject=name),
            prefix=contexts.prompt(target, template, name),
            want=Generate(most=settings.most),
        )


def _sampled_pairs(dataset: Dataset, settings: Settings) -> frozenset[tuple[str, str]]:
    """The pairs, as (relation, fact), whose answers are also drawn: all, or some by the seed."""
    seed, most = dataset.selection.seed, settings.sampled_pairs if settings.samples else 0
    every = (
        (relation.id, pair.fact)
        for relation in dataset.asked_relations()
        if settings.eligible(relation)
        for pair in asked_pairs(dataset, relation.id)
    )
    return frozenset(nsmallest(most, every, key=lambda p: draw_key(seed, f"samples:{p[0]}:{p[1]}")))


def _sampled_prompt(
    pair: Pair, templates: tuple[Template, ...], names: tuple[str, ...], seed: int
) -> tuple[str, str]:
    """The one prompt of a pair whose answers are drawn, as (template, name)."""
    prompts = ((template.id, name) for template in templates for name in names)
    return min(prompts, key=lambda p: draw_key(seed, f"samples:{pair.fact}:{p[0]}:{p[1]}"))
