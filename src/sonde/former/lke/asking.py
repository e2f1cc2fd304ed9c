"""What in-context estimation asks: facts with their options, behind examples of their relation.

Also what there was too little of for that. Knows facts, options and separators, nothing of answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact, Relation, commonest_objects
from sonde.core.prompts import Key, Prompt, Score, Want
from sonde.core.words import counted, listed
from sonde.prompting.options import correct_for, correct_names, options, spelled, spellings
from sonde.prompting.sequences import TRAIN, Line, Separators, asked, examples, separated, training

if TYPE_CHECKING:
    from polars import DataFrame

TWO = 2
SHOWN = 3
LEVELS = (0.25, 0.5, 0.75, 0.9)

SENTENCES = {
    "relations_fewer_examples": "{has} fewer training facts than the {n} asked for; {used} were "
    "used: {below}.",
    "facts_fewer_options": "{has} fewer options than the {options} asked for, because the dataset "
    "names few wrong objects ({shortage}). Take data with more, such as T-REx-MC ('sonde data "
    "build trex-mc'), or ask for no more than there are: --options {least}.",
    "relations_without_training": "{has} no training facts, so examples are other facts that are "
    "asked about: {without}.",
    "facts_without_options": "{has} only one option and were not asked about.",
    "facts_without_examples": "{has} no example but one about the same subject, and were not asked "
    "about.",
    "options_correct_after_all": "{count:,} options that the dataset calls wrong are right for "
    "their subject after all; they were dropped.",
}
"""What a report says of the counts that are not 0."""

INSIDE_HELP = (
    "what stands between subject and object: space, colon, comma or newline as the relation's "
    "language writes them, another text, or a sentence with [X] and [Y]"
)
BETWEEN_HELP = "what stands between one example and the next, likewise (\\n is a new line)"
OPTIONS_HELP = "the most options of a fact: its own object and wrong ones of the relation"
LEVELS_HELP = "Accuracy@K is reported for these K, the least probability of the chosen option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact to ask about, with the names that the model chooses between, in no telling order.

    `correct` are the names of all that is right for its subject. Where options are scored under all
    their names, `texts` are all of these and `names` those of the right one. So many `examples`
    stand before it; `spare`: one of them took the place of one about its own subject.
    """

    fact: Fact
    options: tuple[str, ...]
    correct: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    examples: int = 0
    spare: bool = False

    @property
    def gold(self) -> str:
        """The right option: the usual name of the fact's own object."""
        return self.fact.objects[0].name

    def prompt(
        self, prefix: str, want: Want, template: str, own: Mapping[str, Any], suffix: str = ""
    ) -> Prompt:
        """A prompt about the fact; `own` tells how it is put."""
        fact, subject = self.fact, self.fact.subject.name
        key = Key(fact=fact.id, relation=fact.relation, template=template, subject=subject)
        return Prompt(key=key, prefix=prefix, suffix=suffix, want=want, own=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A relation: its facts, of which `items` are asked about, and its training facts by draw.

    A fact is left out that has no second option, or no example about another subject.
    """

    relation: Relation
    draws: tuple[tuple[Line, ...], ...]
    facts: tuple[Item, ...]
    items: tuple[Item, ...]

    @property
    def most(self) -> int:
        """How many examples there are to show."""
        return len(self.draws[0]) if self.draws else 0

    def prefix(self, item: Item, n: int, separators: Separators, draw: int = 0) -> str:
        """A fact's subject behind n examples of a draw: all up to where its object is to stand."""
        subject = item.fact.subject
        return asked(examples(self.draws[draw], subject, n), subject.name, separators)

    def scored(
        self, n: int, separators: Separators, template: str, own: Mapping[str, Any], draw: int = 0
    ) -> Iterator[Prompt]:
        """Every fact behind n examples of a draw, its options to be scored."""
        for item in self.items:
            prefix = self.prefix(item, n, separators, draw)
            yield item.prompt(prefix, Score(options=item.texts or item.options), template, own)


def _items(
    dataset: Dataset, relation: str, lines: tuple[Line, ...], n: int, most: int, spell: bool
) -> Iterator[Item]:
    """Every fact that is asked about, its options drawn and its examples counted."""
    several, objects = correct_names(dataset, relation), dataset.object_names(relation)
    names = spellings(dataset, relation) if spell else {}
    for fact in dataset.asked(relation):
        correct = correct_for(fact, several)
        before = examples(lines, fact.subject, n)
        item = Item(
            fact=fact,
            options=options(fact, correct, objects, dataset.selection.seed, most),
            correct=correct,
            examples=len(before),
            spare=before != lines[: len(before)],
        )
        if spell:
            owners = spelled(item.options, fact, correct, names)
            right = tuple(name for name, option in owners.items() if option == item.gold)
            item = replace(item, texts=tuple(sorted(owners)), names=right)
        yield item


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Everything that is asked about, beside the `n` examples and the `options` asked for."""

    dataset: Dataset
    n: int
    options: int
    shown: Sequence[Shown]

    @classmethod
    def of(
        cls, dataset: Dataset, n: int, options: int, seeds: int = 1, *, spell: bool = False
    ) -> Asked:
        """Every relation, with so many draws of examples; refuses where nothing can be asked.

        `spell`: options are scored under all their names.
        """
        first, shown = dataset.selection.seed, []
        for relation in dataset.asked_relations():
            draws = training(dataset, relation.id, range(first, first + seeds))
            facts = _items(dataset, relation.id, draws[0], n, options, spell) if draws else ()
            every = tuple(facts)
            items = tuple(item for item in every if len(item.options) >= TWO and item.examples)
            shown.append(Shown(relation=relation, draws=draws, facts=every, items=items))
        asked_about = cls(dataset=dataset, n=n, options=options, shown=shown)
        return asked_about if asked_about.items else asked_about._refuse()

    def _refuse(self) -> NoReturn:
        """Say why there is nothing to ask."""
        if self.counts()["facts_without_options"]:
            raise DataError(
                f"dataset {self.dataset.name!r}: no fact that is asked about has two options, its "
                f"own object and a wrong one ({self._shortage()}); take data with more objects, "
                "such as T-REx-MC ('sonde data build trex-mc'), or name wrong options in the facts "
                "('wrong')"
            )
        raise DataError(
            f"dataset {self.dataset.name!r} has no fact to show as an example for what is asked; a "
            "relation needs two facts at least: add some, or name other relations"
        )

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Those of the dataset; some may have nothing to ask."""
        return tuple(each.relation for each in self.shown)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Every fact that is asked about, in the dataset's order."""
        return tuple(item for each in self.shown for item in each.items)

    @cached_property
    def examples(self) -> dict[str, int]:
        """The most examples that a fact of each relation has before it, where it has facts."""
        some = (each for each in self.shown if each.items)
        return {each.relation.id: max(item.examples for item in each.items) for each in some}

    @cached_property
    def commonest(self) -> dict[str, dict[str, int]]:
        """The objects of each relation in the split that is asked about, the commonest first."""
        common = {r.id: commonest_objects(self.dataset.split_frame(r.id)) for r in self.relations}
        return {id: {name: k for k, (name, _) in enumerate(names)} for id, names in common.items()}

    @cached_property
    def facts(self) -> DataFrame:
        """A row for each fact that is asked about.

        `pair`, its number; `relation` and `fact`, ids; `owner`, the number of the relation; the
        `name` of its subject, and `subject`, its number in sorted order; its `object`; how many
        options are `offered`, and `control`, whether the commonest of them is right.
        """
        from polars import DataFrame, Series, String

        owners = {relation.id: number for number, relation in enumerate(self.relations)}
        facts = [item.fact for item in self.items]
        subjects = [f"{fact.relation}:{fact.subject.id}" for fact in facts]
        return DataFrame(
            {
                "pair": range(len(facts)),
                "relation": [fact.relation for fact in facts],
                "fact": [fact.id for fact in facts],
                "owner": [owners[fact.relation] for fact in facts],
                "name": [fact.subject.name for fact in facts],
                "subject": Series(subjects, dtype=String).rank("dense"),
                "object": [item.gold for item in self.items],
                "offered": [len(item.options) for item in self.items],
                "control": [self._commonest(item) == item.gold for item in self.items],
            }
        )

    def _commonest(self, item: Item) -> str:
        """The option that is the object of most facts."""
        offered = {*item.options}
        ranked = (name for name in self.commonest[item.fact.relation] if name in offered)
        return next(ranked, item.options[0])

    @property
    def _fewer_examples(self) -> dict[str, int]:
        return {id: count for id, count in self.examples.items() if count < self.n}

    @property
    def _without_training(self) -> list[str]:
        splits = ((r.id, self.dataset.frame(r.id)["split"]) for r in self.relations)
        return [id for id, split in splits if len(split) and TRAIN not in split]

    @cached_property
    def _short(self) -> list[tuple[str, list[Item]]]:
        """The relations some of whose facts have fewer options than asked for, and these facts."""
        few = {
            each.relation.id: [i for i in each.facts if len(i.options) < self.options]
            for each in self.shown
        }
        return [(id, items) for id, items in few.items() if items]

    def counts(self) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        facts = [item for each in self.shown for item in each.facts]
        short = [len(item.options) for _, few in self._short for item in few]
        alone = sum(count < TWO for count in short)
        return {
            "relations_without_training": len(self._without_training),
            "relations_fewer_examples": len(self._fewer_examples),
            "facts_fewer_examples": sum(item.examples < self.n for item in self.items),
            "facts_without_examples": len(facts) - len(self.items) - alone,
            "facts_among_examples": sum(item.spare for item in self.items),
            "facts_fewer_options": len(short) - alone,
            "facts_without_options": alone,
            "facts_several_objects": sum(
                not item.correct <= {*item.fact.objects[0].names} for item in facts
            ),
            "options_correct_after_all": sum(
                entity.name in item.correct for item in facts for entity in item.fact.wrong
            ),
        }

    def sentences(self) -> Iterator[str]:
        """What had to be made smaller or left out; nothing where all was as asked for."""
        left = [len(item.options) for _, items in self._short for item in items]
        words = {
            "n": self.n,
            "used": _between(self._fewer_examples.values()),
            "below": listed([*self._fewer_examples]),
            "without": listed(self._without_training),
            "options": self.options,
            "shortage": self._shortage(),
            "least": min((count for count in left if count >= TWO), default=0),
        }
        counts = self.counts()
        for name, sentence in SENTENCES.items():
            if count := counts[name]:
                noun = name.partition("s_")[0]
                has = counted(count, f"{noun} has", f"{noun}s have")
                yield sentence.format(has=has, count=count, **words)

    def _shortage(self) -> str:
        """Which objects there are to choose from, for the first few relations that lack some."""
        some = "; ".join(self._objects(id, items) for id, items in self._short[:SHOWN])
        more = len(self._short) - SHOWN
        return f"{some}; and {more} more relations" if more > 0 else some

    def _objects(self, relation: str, items: Sequence[Item]) -> str:
        """How many objects a relation has, or its facts as wrong ones, and what is left of them."""
        objects = {*self.dataset.object_names(relation)}
        pools = [{entity.name for entity in item.fact.wrong} or objects for item in items]
        named, left = _between(map(len, pools)), _between(len(item.options) for item in items)
        right = _between(len(i.correct & pool) for i, pool in zip(items, pools, strict=True))
        what = f"object{'s' * (named != '1')}"
        if items[0].fact.wrong:
            there = f"{named} wrong {what} for a fact, {right} of them right after all"
        else:
            there = f"{named} {what}, {right} of them right for a subject"
        return f"{relation}: {there}, {left} option{'s' * (left != '1')} left"


def _between(numbers: Iterable[int]) -> str:
    """
    >>> _between([6, 5, 6]), _between([0])
    ('5 to 6', 'none')
    """
    every = sorted(numbers) or [0]
    least, most = every[0], every[-1]
    return f"{least} to {most}" if least < most else str(most or "none")


def separators_of(
    dataset: Dataset, inside: str, between: str
) -> Callable[[Mapping[str, Any]], Separators]:
    """The separators of each way of asking, as its relation's language writes them."""
    return lambda way: separated(inside, between, dataset.relation(way["relation"]).language)


def separators_name(inside: str, between: str) -> str:
    """How a report names separators; a line break is written as two characters.

    >>> separators_name("colon", "newline")
    'colon/newline'
    """
    return f"{inside}/{between}".replace("\n", "\\n")


def check_levels(levels: tuple[float, ...]) -> None:
    """Refuse what is no probability."""
    for level in levels:
        if not 0 <= level <= 1:
            raise UsageError(f"setting levels takes probabilities from 0 to 1, not {level:g}")
