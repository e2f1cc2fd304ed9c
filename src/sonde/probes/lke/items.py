"""What in-context estimation asks about: facts with their options, and what had to be left out.

Knows facts and options, nothing of prompts or answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact
from sonde.core.words import listed
from sonde.prompting.options import correct_for, correct_names, options, spelled, spellings
from sonde.prompting.sequences import TRAIN, Separators

TWO = 2
SHOWN = 3
LEVELS = (0.25, 0.5, 0.75, 0.9)

INSIDE_HELP = "what stands between subject and object; or a sentence with [X] and [Y]"
BETWEEN_HELP = "what stands between one example and the next (\\n is a new line)"
OPTIONS_HELP = "the most options of a fact: its own object and wrong ones of the relation"
LEVELS_HELP = "Accuracy@K is reported for these K, the least probability of the chosen option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact to ask about, with the names that the model chooses between, in no telling order.

    Where options are scored under all their names, `texts` are all of these and `names` those of
    the right one.
    """

    fact: Fact
    options: tuple[str, ...]
    texts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def gold(self) -> str:
        """The right one: the usual name of the fact's own object."""
        return self.fact.objects[0].name


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A fact with fewer options than wanted: of how many objects that the dataset names for the
    relation, or as wrong ones for the fact (`listed`), so many are right, and what is left."""

    named: int
    right: int
    options: int
    listed: bool


@dataclass(slots=True, kw_only=True)
class Census:
    """What was asked and what had to be made smaller or left out, by reason.

    `examples`: the most examples that a fact of each relation has before it. `short`: by relation,
    the facts with fewer options than wanted.
    """

    examples: dict[str, int] = field(default_factory=dict)
    without_training: list[str] = field(default_factory=list)
    short: dict[str, list[Short]] = field(default_factory=dict)
    few_examples: int = 0
    no_examples: int = 0
    spares: int = 0
    several_objects: int = 0
    correct_after_all: int = 0

    def shown(self, relation: str, found: int, wanted: int, spare: bool) -> None:
        """Note how many examples a fact has; `spare`: it was among them and one took its place."""
        self.examples[relation] = max(found, self.examples.get(relation, 0))
        self.few_examples += found < wanted
        self.spares += spare

    def relations_below(self, wanted: int) -> list[str]:
        """The relations that have fewer examples than wanted."""
        return [id for id, found in self.examples.items() if found < wanted]

    def sentences(self, wanted: int, options: int) -> Iterator[str]:
        """What had to be made smaller or left out; nothing where all was as asked for."""
        if below := self.relations_below(wanted):
            used = _between([self.examples[id] for id in below])
            yield (
                f"{_have(len(below), 'relation')} fewer training facts than the {wanted} asked "
                f"for; {used} were used: {listed(below)}."
            )
        yield self.few_options(options)
        if self.without_training:
            yield (
                f"{_have(len(self.without_training), 'relation')} no training facts and were not "
                f"asked: {listed(self.without_training)}."
            )
        if self.without_options:
            yield f"{_have(self.without_options)} only one option and were not asked about."
        if self.no_examples:
            yield (
                f"{_have(self.no_examples)} no example but one about the same subject, and were "
                "not asked about."
            )
        if self.correct_after_all:
            yield (
                f"{self.correct_after_all:,} options that the dataset calls wrong are right for "
                "their subject after all; they were dropped."
            )

    def few_options(self, wanted: int) -> str:
        """How few options there are, why, and what to do; nothing where there are enough."""
        left = self._left()
        if not left:
            return ""
        return (
            f"{_have(len(left))} fewer options than the {wanted} asked for, because the dataset "
            f"names few wrong objects ({self.shortage()}). Take data with more, such as T-REx-MC "
            f"('sonde data build trex-mc'), or ask for no more than there are: --options "
            f"{min(left)}."
        )

    @property
    def fewer_options(self) -> int:
        """How many facts that are asked about have fewer options than wanted."""
        return len(self._left())

    @property
    def without_options(self) -> int:
        """How many facts have no option but their own object, and are not asked about."""
        return sum(one.options < TWO for own in self.short.values() for one in own)

    def _left(self) -> list[int]:
        return [one.options for own in self.short.values() for one in own if one.options >= TWO]

    def shortage(self) -> str:
        """Which objects there are to choose from, for the first few relations that lack some."""
        told = "; ".join(_shortage(id, own) for id, own in list(self.short.items())[:SHOWN])
        more = len(self.short) - SHOWN
        return f"{told}; and {more} more relations" if more > 0 else told

    def counts(self, wanted: int) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        return {
            "relations_without_training": len(self.without_training),
            "relations_fewer_examples": len(self.relations_below(wanted)),
            "facts_fewer_examples": self.few_examples,
            "facts_without_examples": self.no_examples,
            "facts_among_examples": self.spares,
            "facts_fewer_options": self.fewer_options,
            "facts_without_options": self.without_options,
            "facts_several_objects": self.several_objects,
            "options_correct_after_all": self.correct_after_all,
        }


class OptionPool:
    """The facts of a relation with their options."""

    def __init__(self, dataset: Dataset, relation: str, count: int) -> None:
        self._dataset, self._relation, self._count = dataset, relation, count
        self._names = correct_names(dataset, relation)
        self._pool = dataset.object_names(relation)
        self._spellings: Mapping[str, tuple[str, ...]] | None = None

    def items(self, census: Census, *, spell: bool = False) -> Iterator[Item]:
        """Every fact that is asked about and has two options or more, these under all names."""
        for fact in self._dataset.asked(self._relation):
            correct = correct_for(fact, self._names)
            found = options(fact, correct, self._pool, self._dataset.selection.seed, self._count)
            self._note(fact, correct, found, census)
            if len(found) >= TWO:
                item = Item(fact=fact, options=found)
                yield self._spelled(item, correct) if spell else item

    def _spelled(self, item: Item, correct: frozenset[str]) -> Item:
        if self._spellings is None:
            self._spellings = spellings(self._dataset, self._relation)
        owners = spelled(item.options, item.fact, correct, self._spellings)
        names = tuple(name for name, option in owners.items() if option == item.gold)
        return replace(item, texts=tuple(sorted(owners)), names=names)

    def _note(
        self, fact: Fact, correct: frozenset[str], found: tuple[str, ...], census: Census
    ) -> None:
        census.several_objects += not correct <= set(fact.objects[0].names)
        census.correct_after_all += sum(entity.name in correct for entity in fact.wrong)
        if len(found) < self._count:
            named = dict.fromkeys(e.name for e in fact.wrong) or self._pool
            short = Short(
                named=len(named),
                right=sum(name in correct for name in named),
                options=len(found),
                listed=bool(fact.wrong),
            )
            census.short.setdefault(fact.relation, []).append(short)


def _have(count: int, noun: str = "fact") -> str:
    return f"1 {noun} has" if count == 1 else f"{count:,} {noun}s have"


def _shortage(relation: str, facts: Sequence[Short]) -> str:
    """
    >>> _shortage("P30", [Short(named=6, right=k, options=7 - k, listed=False) for k in (1, 2)])
    'P30: 6 objects, 1 to 2 of them right for a subject, 5 to 6 options left'
    """
    named, right, left = (
        _between([getattr(one, name) for one in facts]) for name in ("named", "right", "options")
    )
    what = f"object{'s' * (named != '1')}"
    if facts[0].listed:
        known = f"{named} wrong {what} for a fact, {right} of them right after all"
    else:
        known = f"{named} {what}, {right} of them right for a subject"
    return f"{relation}: {known}, {left} option{'s' * (left != '1')} left"


def _between(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least} to {most}" if least < most else str(most or "none")


def separators(inside: str, between: str) -> Separators:
    r"""The separators as they are set; \n may be written for a new line."""
    return Separators(inside=inside.replace("\\n", "\n"), between=between.replace("\\n", "\n"))


def check_levels(levels: tuple[float, ...]) -> None:
    """Refuse what is no probability."""
    for level in levels:
        if not 0 <= level <= 1:
            raise UsageError(f"setting levels takes probabilities from 0 to 1, not {level:g}")


def refuse_nothing(dataset: Dataset, census: Census) -> None:
    """Say why there is nothing to ask; called where a whole dataset gave no prompt."""
    if census.without_options:
        raise DataError(
            f"dataset {dataset.name!r}: no fact that is asked about has two options, its own "
            f"object and a wrong one ({census.shortage()}); take data with more objects, such as "
            "T-REx-MC ('sonde data build trex-mc'), or name wrong options in the facts ('wrong')"
        )
    raise DataError(
        f"dataset {dataset.name!r} has no training facts to show as examples for what is asked; "
        f"give some facts of each relation the split {TRAIN!r}, or name other relations"
    )
