"""The ways in which `lke-baselines` asks each fact, in groups that are compared.

Knows facts and templates, nothing of answers or tables. Kinds of wording: no words at all (examples
alone), templates written by hand, and mined ones; paraphrases where a dataset has none of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sonde.core.errors import DataError
from sonde.core.facts import ANSWER_SLOT, Dataset, Fact, Relation, Source, Template
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Generate, Prompt, Score
from sonde.probes.lke.items import Item
from sonde.probes.lke.studies.ask import Asked, prompt
from sonde.prompting.sequences import Line, Separators, asked, examples

How = Literal["scored", "separator", "written"]

IN_CONTEXT = "in-context"
TURN = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some ways of asking that are averaged, by relation; `against`: the group it is held to."""

    id: str
    words: str
    kind: str
    how: How
    ways: Mapping[str, tuple[str, ...]]
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


def wordings(dataset: Dataset, most: int) -> Wordings:
    """Templates with the answer last, up to so many of each kind; refuses where none has.

    Paraphrases stand in for the kind that is missing, written by hand or mined.
    """
    relations = dataset.asked_relations()
    there = {t.source for relation in relations for t in relation.templates if t.answer_last}
    written: Source = "manual" if "manual" in there or "mined" not in there else "paraphrase"
    kinds: tuple[Source, ...] = (written, "mined" if "mined" in there else "paraphrase")
    seed = dataset.selection.seed
    found = {
        (relation.id, kind): chosen
        for relation in relations
        for kind in kinds
        if (chosen := _chosen(relation, kind, most, seed))
    }
    if not found:
        raise DataError(
            f"dataset {dataset.name!r} has no template with the answer last for what is asked, "
            "such as 'The capital of [X] is [Y].'; without one there is nothing to compare: add "
            "some, or use ic-lke"
        )
    return Wordings(kinds=tuple(k for k in kinds if k in there), templates=found)


def _chosen(relation: Relation, kind: Source, most: int, seed: int) -> tuple[Template, ...]:
    """Templates of a kind, drawn by the seed and their names, in the dataset's order.

    Questions are taken only for want of statements; of those that read the same up to the answer,
    the first.
    """
    known: dict[tuple[str, ...], Template] = {}
    for t in relation.templates:
        if t.source == kind and t.answer_last:
            known.setdefault(tuple(t.text.partition(ANSWER_SLOT)[0].split()), t)
    fit = list(known.values())
    drawn = sorted(
        fit,
        key=lambda t: (t.style == "question", draw_key(seed, f"templates:{relation.id}:{t.id}")),
    )[:most]
    return tuple(sorted(drawn, key=lambda t: (t.style == "question", fit.index(t))))


def groups(
    found: Sequence[Asked], known: Wordings, *, separating: bool, written: bool
) -> tuple[Group, ...]:
    """Every group of ways, those that are compared with each other behind what they are held to."""
    relations = [one.relation for one in found]
    everywhere = {relation: (way("scored", IN_CONTEXT),) for relation in relations}
    made = [
        Group(id="in_context", words="in-context", kind=IN_CONTEXT, how="scored", ways=everywhere)
    ]
    hows: tuple[tuple[How, str, str], ...] = (
        ("scored", "{} templates", "{}"),
        ("separator", "{} templates as separators", "{}_separator"),
    )
    for how, words, id in hows if separating else hows[:1]:
        for kind in known.kinds:
            ways = _ways(relations, known, kind, how)
            made.append(_group(id.format(kind), words.format(kind), kind, how, ways, "in_context"))
    if written:
        own = {relation: (way("written", IN_CONTEXT),) for relation in relations}
        first = "written_in_context"
        made.append(_group(first, "written, in-context", IN_CONTEXT, "written", own, "in_context"))
        for kind in known.kinds:
            ways = _ways(relations, known, kind, "written")
            words = f"written, {kind} templates"
            made.append(_group(f"written_{kind}", words, kind, "written", ways, first))
    return tuple(made)


def _group(
    id: str, words: str, kind: str, how: How, ways: Mapping[str, tuple[str, ...]], against: str
) -> Group:
    return Group(id=id, words=words, kind=kind, how=how, ways=ways, against=against)


def _ways(
    relations: Sequence[str], known: Wordings, kind: Source, how: How
) -> dict[str, tuple[str, ...]]:
    return {
        relation: tuple(way(how, t.id) for t in known.templates.get((relation, kind), ()))
        for relation in relations
    }


def way(how: How, template: str) -> str:
    """How a way of asking is called in the template's column.

    >>> way("scored", "P36-1"), way("separator", "P36-1"), way("written", "in-context")
    ('P36-1', 'separator:P36-1', 'written:in-context')
    """
    return template if how == "scored" else f"{how}:{template}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How prompts are made: n examples, what stands between two, tokens to be written (or none).

    `separating`: templates are also put between the parts of the examples.
    """

    n: int
    separators: Separators
    separating: bool
    most: int


def prompts(one: Asked, known: Wordings, asking: Asking) -> Iterator[Prompt]:
    """Every fact of a relation in every way, way by way: equal beginnings come together."""
    yield from _after(one, asking.separators, "scored", IN_CONTEXT, asking)
    for template in known.of(one.relation):
        for item in one.items:
            before, after = template.fill(item.fact.subject.name)
            want = Score(options=item.options)
            yield prompt(item.fact, before, want, way("scored", template.id), TURN, after)
    for template in known.of(one.relation) if asking.separating else ():
        sentence = Separators(inside=template.text, between=asking.separators.between)
        yield from _after(one, sentence, "separator", template.id, asking)
    if asking.most:
        yield from _written(one, known, asking)


def _after(
    one: Asked, separators: Separators, how: How, name: str, asking: Asking
) -> Iterator[Prompt]:
    """Behind examples, the options scored."""
    for item in one.items:
        prefix = asked(_lines(one, item, asking), item.fact.subject.name, separators)
        yield prompt(item.fact, prefix, Score(options=item.options), way(how, name), TURN)


def _written(one: Asked, known: Wordings, asking: Asking) -> Iterator[Prompt]:
    """Left open: the model writes on from the examples, and from each template."""
    want = Generate(most=asking.most, until="")
    for item in one.items:
        subject = item.fact.subject.name
        prefix = asked(_lines(one, item, asking), subject, asking.separators)
        yield prompt(item.fact, prefix, want, way("written", IN_CONTEXT), TURN)
    for template in known.of(one.relation):
        for item in one.items:
            before, _ = template.fill(item.fact.subject.name)
            yield prompt(item.fact, before, want, way("written", template.id), TURN)


def _lines(one: Asked, item: Item, asking: Asking) -> tuple[Line, ...]:
    return examples(one.draws[0], item.fact.subject, asking.n)


def gold_names(fact: Fact) -> tuple[str, ...]:
    """Every name of every object that is right."""
    return tuple(name for entity in fact.objects for name in entity.names)
