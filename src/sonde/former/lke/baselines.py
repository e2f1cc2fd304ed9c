"""lke-baselines: is a fact found more often behind examples than behind a sentence?

Knows no model. The same facts with the same options are asked behind examples (IC-LKE), in
templates with the answer last, and behind examples written as such templates; and the model writes
on freely from examples and from templates. Numbers: accuracy of each way, paired differences, the
share of relations in which in-context estimation is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.components import setting
from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import ANSWER_SLOT, Dataset, Fact, Relation, Source, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Prompt, Score
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.lke.asking import (
    BETWEEN_HELP,
    INSIDE_HELP,
    OPTIONS_HELP,
    Asked,
    Shown,
    separators_of,
)
from sonde.former.lke.baselines_report import NO_WORDS, Wording, build_report, grouped
from sonde.former.lke.choices import Choices, Judging, Way, worded
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.matching import LANGUAGE_HELP, OWN, check_language, correct, language_of
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Separators, separated

if TYPE_CHECKING:
    from polars import DataFrame

KEYS = ("how", "template")


def wordings(dataset: Dataset, most: int) -> list[Wording]:
    """Templates with the answer last, up to so many of each kind; refuses where none has.

    Paraphrases stand in for the kind that is missing, written by hand or mined.
    """
    relations, seed = dataset.asked_relations(), dataset.selection.seed
    there = {t.source for relation in relations for t in relation.templates if t.answer_last}
    written: Source = "manual" if "manual" in there or "mined" not in there else "paraphrase"
    kinds: tuple[Source, ...] = (written, "mined" if "mined" in there else "paraphrase")
    taken = [
        Wording(relation.id, place, template)
        for relation in relations
        for kind in kinds
        for place, template in enumerate(_chosen(relation, kind, most, seed))
    ]
    if not taken:
        raise DataError(
            f"dataset {dataset.name!r} has no template with the answer last for what is asked, "
            "such as 'The capital of [X] is [Y].'; without one there is nothing to compare: add "
            "some, or use ic-lke"
        )
    return taken


def _chosen(relation: Relation, kind: Source, most: int, seed: int) -> tuple[Template, ...]:
    """Templates of a kind, drawn by the seed and their names, in the dataset's order.

    Questions are taken only for want of statements; of those that read the same up to the answer,
    the first.
    """
    distinct: dict[tuple[str, ...], Template] = {}
    for t in relation.templates:
        if t.source == kind and t.answer_last:
            distinct.setdefault(tuple(t.text.partition(ANSWER_SLOT)[0].split()), t)
    fit = list(distinct.values())
    drawn = sorted(
        fit,
        key=lambda t: (t.style == "question", draw_key(seed, f"templates:{relation.id}:{t.id}")),
    )[:most]
    return tuple(sorted(drawn, key=lambda t: (t.style == "question", fit.index(t))))


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeBaselines:
    """In-context estimation beside templates and written answers, on the same options."""

    name: ClassVar[str] = "lke-baselines"
    shrinks: ClassVar[str] = "n"

    n: int = setting(50, "how many examples to show", min=1)
    templates: int = setting(3, "the most templates of each kind and relation", min=1)
    separating: bool = setting(True, "also show the examples written as each template")
    most: int = setting(50, "tokens of a written answer; 0 for no written answers", min=0)
    options: int = setting(MANY, OPTIONS_HELP, min=2)
    inside: str = setting("space", INSIDE_HELP)
    between: str = setting("space", BETWEEN_HELP)
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)

    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_language(self.language)
        check_abstaining(self.abstaining)
        separated(self.inside, self.between)

    def suited(self, can: frozenset[Ability]) -> Self:
        """As it is: the model must score, and write unless no written answers are wanted."""
        need(self.name, can, "score")
        if self.most:
            need(f"{self.name}, unless most=0,", can, "generate")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Relation by relation, one way of asking after the other."""
        taken = wordings(dataset, self.templates)
        for shown in self._asked(dataset).shown:
            if self.most:
                check_language(language_of(self.language, shown.relation.language))
            templates = [w.template for w in taken if w.relation == shown.relation.id]
            yield from self._scored(shown, templates)
            yield from self._written(shown, templates) if self.most else ()

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every answer, each way of asking with each wording as a template."""
        return self._choices(dataset, answered, wordings(dataset, self.templates)).judged

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every answer and compare the ways of asking fact by fact."""
        taken = wordings(dataset, self.templates)
        asked = {"scored": True, "separator": self.separating, "written": bool(self.most)}
        hows = [how for how, wanted in asked.items() if wanted]
        return build_report(self._choices(dataset, answered, taken), taken, hows, self.most)

    def _asked(self, dataset: Dataset) -> Asked:
        return Asked.of(dataset, self.n, self.options)

    def _scored(self, shown: Shown, templates: list[Template]) -> Iterator[Prompt]:
        """Every fact in every way of choosing, way by way: equal beginnings come together."""
        usual = separated(self.inside, self.between, shown.relation.language)
        yield from shown.scored(self.n, usual, NO_WORDS, {"how": "scored"})
        for template in templates:
            for item in shown.items:
                before, after = template.fill(item.fact.subject.name, item.fact)
                want = Score(options=item.options)
                yield item.prompt(before, want, template.id, {"how": "scored"}, after)
        for template in templates if self.separating else ():
            sentence = Separators(inside=template.text, between=usual.between)
            yield from shown.scored(self.n, sentence, template.id, {"how": "separator"})

    def _written(self, shown: Shown, templates: list[Template]) -> Iterator[Prompt]:
        """Left open: the model writes on from the examples, and from each template."""
        want, own = Generate(most=self.most, until=""), {"how": "written"}
        usual = separated(self.inside, self.between, shown.relation.language)
        for item in shown.items:
            prefix = shown.prefix(item, self.n, usual)
            yield item.prompt(prefix, want, NO_WORDS, own)
        for template in templates:
            for item in shown.items:
                before, _ = template.fill(item.fact.subject.name, item.fact)
                yield item.prompt(before, want, template.id, own)

    def _choices(self, dataset: Dataset, answered: Given, taken: list[Wording]) -> Choices:
        """What was chosen and what was written, each with the kind of its wording."""
        asked = self._asked(dataset)
        texts = {(w.relation, w.template.id): w.template.text for w in taken}

        def template(way: Way) -> Template:
            how, id = way["how"], way["template"]
            name = id if how == "scored" else f"{how}:{id}"
            usual = worded(name, separators_of(dataset, self.inside, self.between))(way)
            return replace(usual, text=texts.get((way["relation"], id), usual.text))

        judging = Judging(asked)
        parts = (self._judged(block, judging, asked) for block in in_blocks(answered))
        choices = Choices.of(asked, parts, KEYS, template)
        return replace(choices, frame=grouped(choices.frame, taken))

    def _judged(self, block: Answers, judging: Judging, asked: Asked) -> DataFrame:
        from polars import Series

        rows = judging.about(block.frame.select("relation", "fact", *KEYS))
        if block.kind == "scored":
            return judging.choices(rows, block.rated)
        if block.kind != "generated":
            raise AbilityError("lke-baselines reads scored options and written texts")
        texts: list[str] = [answer.text for answer in block.columns]  # type: ignore[union-attr]
        facts = [asked.items[pair].fact for pair in rows["pair"]]
        own = {each.relation.id: each.relation.language for each in asked.shown}
        languages = [language_of(self.language, own[fact.relation]) for fact in facts]
        right = [*map(_right, texts, facts, languages)]
        abstains = abstaining(self.abstaining)
        given = Series([*map(_right, (fact.subject.name for fact in facts), facts, languages)])
        return rows.with_columns(
            answer=Series(texts),
            right=Series(right),
            given=Series(right) & given,
            abstained=Series([*map(abstains, texts)]) & ~Series(right),
        )


def _right(text: str, fact: Fact, language: str) -> bool:
    """Whether a right name occurs in a text."""
    names = tuple(name for entity in fact.objects for name in entity.names)
    return correct(text, names, language)


COMPONENT = LkeBaselines
