"""BELIEF-ICL: causal models answer in their own words, after an instruction and some examples.

Knows no model. Each pair of subject and relation is asked in every template, under every name that
is chosen; the answer is written greedily to the end of the line, and for up to 10,000 pairs also
drawn many times. Numbers: Acc@1, fluctuation, Consist by matching, one-word rate, Overconf from
drawn answers and from probabilities by length, template accuracies, coverage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice, product
from typing import ClassVar, Literal, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Key, Prompt, Sample
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.belief_icl.judge import Outcomes, judge
from sonde.former.belief_icl.report import build_report
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.few_shot import (
    Context,
    Contexts,
    Layout,
    ShotsPer,
    Style,
    Target,
    usual_layout,
)
from sonde.prompting.languages import (
    INSTRUCTION_HELP,
    MARKERS_HELP,
    STOP_HELP,
    check_markers,
    in_english,
    phrasing,
)
from sonde.prompting.matching import LANGUAGE_HELP, OWN, check_language, language_of
from sonde.prompting.pairs import Pair, asked_pairs, numbered_pairs
from sonde.reporting.build.multi_prompt.sections import DRAWS, Draw

BLOCK = 1024
"""Pairs that are asked template by template, so that prompts which begin alike come together."""


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
    shots: int = setting(4, "how many examples stand before a question", min=1)
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
    samples: int = setting(100, "answers drawn for each confidence; 0 for no confidence", min=0)
    sampled_pairs: int = setting(10_000, "the most pairs whose answers are drawn", min=1)
    most: int = setting(16, "the most tokens of an answer", min=1)
    draw: Draw = setting(
        "relation",
        "fluctuation shown first: a template per relation, or a prompt per pair, is drawn",
        analysis_only=True,
    )
    draws: int = setting(DRAWS, "how many draws the fluctuation takes", min=2, analysis_only=True)
    floor: int = setting(
        100, "one-token answers a template needs for an Overconf of its own", min=1, analysis_only=True
    )
    instruction: str = setting("", INSTRUCTION_HELP)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)

    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_markers(self.markers)
        check_language(self.language)
        check_abstaining(self.abstaining)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must write, and draw unless no confidence is wanted."""
        need(self.name, can, "generate")
        if self.samples:
            need(f"{self.name}, unless samples=0,", can, "sample")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, some pairs at a time, template by template: written, then drawn."""
        self._check_templates(dataset)
        for relation in dataset.asked_relations():
            check_language(language_of(self.language, relation.language))
        seed = dataset.selection.seed
        contexts = Contexts(
            dataset,
            self.eligible,
            style=self.style,
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
            seed=seed,
            layout=self._layout,
        )
        drawn = self._sampled_pairs(dataset)
        sample = Sample(count=self.samples, most=self.most, seed=seed)
        for relation in dataset.asked_relations():
            templates = self.eligible(relation)
            pairs = asked_pairs(dataset, relation.id) if templates else iter(())
            while block := list(islice(pairs, BLOCK)):
                chosen = {
                    (pair.fact, *_sampled_prompt(pair, templates, self.named(pair), seed))
                    for pair in block
                    if (relation.id, pair.fact) in drawn
                }
                for template in templates:
                    written = list(self._written(relation.id, template, block, contexts))
                    yield from written
                    for prompt in written:
                        if (prompt.key.fact, prompt.key.template, prompt.key.subject) in chosen:
                            yield replace(prompt, want=sample)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer by its lemmas and compute every number."""
        few = "" if self.context == "zero-shot" else f"{self.shots}-"
        return build_report(
            dataset,
            self._outcomes(dataset, answered),
            title=f"{self.style} {few}{self.context}",
            style=self.style,
            draw=self.draw,
            draws=self.draws,
            floor=self.floor,
            notes=self._notes(dataset),
            attempts=self._attempts(),
        )

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every judged prompt, for comparisons with other runs."""
        return self._outcomes(dataset, answered).judged

    def _outcomes(self, dataset: Dataset, answered: Given) -> Outcomes:
        asked = numbered_pairs(dataset, {r.id: self.eligible(r) for r in dataset.asked_relations()})
        abstains = abstaining(self.abstaining)
        languages = [language_of(self.language, r.language) for r in asked.relations]
        return judge(dataset, asked, answered, languages=languages, abstains=abstains)

    def _layout(self, relation: Relation) -> Layout:
        """How a relation's questions and answers are laid out."""
        around = phrasing(
            relation.language, instruction=self.instruction, markers=self.markers, stop=self.stop
        )
        return usual_layout(self.style, around)

    def eligible(self, relation: Relation) -> tuple[Template, ...]:
        """The templates of a relation that are asked."""
        return tuple(
            t
            for t in relation.templates
            if t.plain
            and (self.templates == "all" or t.source == "manual")
            and (t.style == "question" or not self._only_questions())
        )

    def named(self, pair: Pair) -> tuple[str, ...]:
        """The names of a subject that are asked."""
        return pair.names if self.names == "all" else pair.names[:1]

    def _only_questions(self) -> bool:
        return self.questions or self.style == "qa"

    def _check_templates(self, dataset: Dataset) -> None:
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

    def _written(
        self, relation: str, template: Template, pairs: Sequence[Pair], contexts: Contexts
    ) -> Iterator[Prompt]:
        for pair in pairs:
            target = Target(fact=pair.fact, relation=relation, names=pair.names)
            for name in self.named(pair):
                text, turns = contexts.prompt(target, template, name)
                yield Prompt(
                    key=Key(fact=pair.fact, relation=relation, template=template.id, subject=name),
                    prefix=text,
                    turns=turns,
                    want=Generate(most=self.most),
                )

    def _sampled_pairs(self, dataset: Dataset) -> frozenset[tuple[str, str]]:
        """The pairs, as (relation, fact), whose answers are drawn too: all, or some by the seed."""
        seed, most = dataset.selection.seed, self.sampled_pairs if self.samples else 0
        every = (
            (relation.id, pair.fact)
            for relation in dataset.asked_relations()
            if self.eligible(relation)
            for pair in asked_pairs(dataset, relation.id)
        )
        return frozenset(
            nsmallest(most, every, key=lambda pair: draw_key(seed, f"samples:{':'.join(pair)}"))
        )

    def _attempts(self) -> list[str]:
        """What may make a model write something."""
        if self.context == "zero-shot":
            return ["--set context=template"]
        other = ["--set style=qa"] if self.style == "mask" else []
        return [f"--set shots={2 * self.shots}", *other]

    def _notes(self, dataset: Dataset) -> tuple[str, ...]:
        drawn = (
            f"Confidence is the share of {self.samples} drawn answers (whole vocabulary, "
            "temperature 1) that match the written one, for one prompt of each pair."
            if self.samples
            else "No answers were drawn (samples=0), so Overconf and ECE are not measured."
        )
        return (
            f"Answers were written greedily to the end of the line, {self.most} tokens at most. "
            "Words are compared by their lemmas: right if the words of a correct name stand in the "
            "answer, consistent if those of one answer stand in the other. An empty answer is "
            "wrong.",
            drawn,
            *in_english(
                () if self.instruction else dataset.languages(), "instruction, markers and stop"
            ),
        )


def _sampled_prompt(
    pair: Pair, templates: tuple[Template, ...], names: tuple[str, ...], seed: int
) -> tuple[str, str]:
    """The one prompt of a pair whose answers are drawn, as (template, name)."""
    prompts = product((template.id for template in templates), names)
    return min(prompts, key=lambda p: draw_key(seed, f"samples:{pair.fact}:{p[0]}:{p[1]}"))


COMPONENT = BeliefIcl
