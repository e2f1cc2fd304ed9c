"""The wordings that `lke-baselines` compares: templates by kind, and groups of ways of asking.

Knows facts and templates, nothing of answers or tables. Kinds of wording: no words at all (examples
alone), templates written by hand, and mined ones; paraphrases where a dataset has none of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sonde.core.errors import DataError
from sonde.core.facts import ANSWER_SLOT, Dataset, Relation, Source, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Prompt, Score
from sonde.probes.lke.studies.study import Shown, after_examples, prompt
from sonde.prompting.sequences import Separators, asked

if TYPE_CHECKING:
    from polars import DataFrame

How = Literal["scored", "separator", "written"]

IN_CONTEXT = "in-context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The ways of asking of a kind that are averaged; `against`: the group it is held to."""

    id: str
    words: str
    kind: str
    how: How
    against: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """The templates of each relation that a study takes, by kind."""

    kinds: tuple[Source, ...]
    templates: Mapping[tuple[str, Source], tuple[Template, ...]]

    def of(self, relation: str) -> Iterator[Template]:
        """Every template of a relation."""
        for kind in self.kinds:
            yield from self.templates.get((relation, kind), ())

    def most(self, kind: Source) -> int:
        """How many templates of a kind a relation has at most."""
        return max((len(t) for (_, k), t in self.templates.items() if k == kind), default=0)

    def frame(self) -> DataFrame:
        """A row per template of a relation: its `kind`, and its `place` among those."""
        from polars import DataFrame, Int64, String

        names = dict.fromkeys(("relation", "template", "kind"), String)
        rows = [
            (relation, template.id, kind, place)
            for (relation, kind), own in self.templates.items()
            for place, template in enumerate(own)
        ]
        return DataFrame(rows, schema=names | {"place": Int64}, orient="row")


def wordings(dataset: Dataset, most: int) -> Wordings:
    """Templates with the answer last, up to so many of each kind; refuses where none has.

    Paraphrases stand in for the kind that is missing, written by hand or mined.
    """
    relations = dataset.asked_relations()
    there = {t.source for relation in relations for t in relation.templates if t.answer_last}
    written: Source = "manual" if "manual" in there or "mined" not in there else "paraphrase"
    kinds: tuple[Source, ...] = (written, "mined" if "mined" in there else "paraphrase")
    seed = dataset.selection.seed
    taken = {
        (relation.id, kind): chosen
        for relation in relations
        for kind in kinds
        if (chosen := _chosen(relation, kind, most, seed))
    }
    if not taken:
        raise DataError(
            f"dataset {dataset.name!r} has no template with the answer last for what is asked, "
            "such as 'The capital of [X] is [Y].'; without one there is nothing to compare: add "
            "some, or use ic-lke"
        )
    return Wordings(kinds=tuple(k for k in kinds if k in there), templates=taken)


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


def groups(kinds: tuple[Source, ...], *, separating: bool, written: bool) -> tuple[Group, ...]:
    """Every group of ways, those that are compared with each other behind what they are held to."""
    first, writes = "in_context", "written_in_context"
    made = [Group(id=first, words=IN_CONTEXT, kind=IN_CONTEXT, how="scored")]
    made += [
        Group(id=k, words=f"{k} templates", kind=k, how="scored", against=first) for k in kinds
    ]
    made += [
        Group(
            id=f"{k}_separator",
            words=f"{k} templates as separators",
            kind=k,
            how="separator",
            against=first,
        )
        for k in (kinds if separating else ())
    ]
    if written:
        words = f"written, {IN_CONTEXT}"
        made.append(Group(id=writes, words=words, kind=IN_CONTEXT, how="written", against=first))
        made += [
            Group(
                id=f"written_{k}",
                words=f"written, {k} templates",
                kind=k,
                how="written",
                against=writes,
            )
            for k in kinds
        ]
    return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How prompts are made: n examples, what stands between two, tokens to be written (or none).

    `separating`: templates are also put between the parts of the examples.
    """

    n: int
    separators: Separators
    separating: bool
    most: int

    def prompts(self, shown: Shown, known: Wordings) -> Iterator[Prompt]:
        """Every fact of a relation in every way, way by way: equal beginnings come together."""
        templates = tuple(known.of(shown.relation.id))
        yield from after_examples(shown, self.n, self.separators, IN_CONTEXT, how="scored")
        for template in templates:
            for item in shown.items:
                before, after = template.fill(item.fact.subject.name)
                want = Score(options=item.options)
                yield prompt(item.fact, before, want, template.id, after, how="scored")
        for template in templates if self.separating else ():
            sentence = Separators(inside=template.text, between=self.separators.between)
            yield from after_examples(shown, self.n, sentence, template.id, how="separator")
        if self.most:
            yield from self._written(shown, templates)

    def _written(self, shown: Shown, templates: tuple[Template, ...]) -> Iterator[Prompt]:
        """Left open: the model writes on from the examples, and from each template."""
        want = Generate(most=self.most, until="")
        for item in shown.items:
            lines = shown.lines(item, self.n)
            prefix = asked(lines, item.fact.subject.name, self.separators)
            yield prompt(item.fact, prefix, want, IN_CONTEXT, how="written")
        for template in templates:
            for item in shown.items:
                before, _ = template.fill(item.fact.subject.name)
                yield prompt(item.fact, before, want, template.id, how="written")
