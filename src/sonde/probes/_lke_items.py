"""What in-context estimation asks about: facts with their options, and what had to be left out.

Knows facts and options, nothing of prompts or answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact
from sonde.wording.options import correct_for, correct_names, options, spelled, spellings
from sonde.wording.sequences import TRAIN, Separators

TWO = 2
LEVELS = (0.25, 0.5, 0.75, 0.9)

INSIDE_HELP = "what stands between subject and object; or a sentence with [X] and [Y]"
BETWEEN_HELP = "what stands between one example and the next (\\n is a new line)"
OPTIONS_HELP = "the most options of a fact: its own object and wrong ones of the relation"
LEVELS_HELP = "Accuracy@K is reported for these K, the least probability of the chosen option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A fact to ask about, with the names that the model chooses between, in no telling order."""

    fact: Fact
    options: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Census:
    """What was asked and what had to be made smaller or left out, by reason.

    `examples`: the most examples that a fact of each relation has before it.
    """

    examples: dict[str, int] = field(default_factory=dict)
    without_training: list[str] = field(default_factory=list)
    few_examples: int = 0
    no_examples: int = 0
    spares: int = 0
    few_options: int = 0
    no_options: int = 0
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

    def counts(self, wanted: int) -> dict[str, int]:
        """Everything by name, as the report gives it."""
        return {
            "relations_without_training": len(self.without_training),
            "relations_fewer_examples": len(self.relations_below(wanted)),
            "facts_fewer_examples": self.few_examples,
            "facts_without_examples": self.no_examples,
            "facts_among_examples": self.spares,
            "facts_fewer_options": self.few_options,
            "facts_without_options": self.no_options,
            "facts_several_objects": self.several_objects,
            "options_correct_after_all": self.correct_after_all,
        }


class Offers:
    """The facts of a relation with their options."""

    def __init__(self, dataset: Dataset, relation: str, count: int) -> None:
        self._dataset, self._relation, self._count = dataset, relation, count
        self._names = correct_names(dataset, relation)
        self._pool = dataset.object_names(relation)
        self._spellings: Mapping[str, tuple[str, ...]] | None = None

    def items(self, census: Census) -> Iterator[Item]:
        """Every fact that is asked about and has two options or more."""
        for fact in self._dataset.asked(self._relation):
            correct = correct_for(fact, self._names)
            found = options(fact, correct, self._pool, self._dataset.selection.seed, self._count)
            self._note(fact, correct, found, census)
            if len(found) >= TWO:
                yield Item(fact=fact, options=found)

    def spelled(self, item: Item) -> dict[str, str]:
        """Every name of the item's options, with the option that it is a name of."""
        if self._spellings is None:
            self._spellings = spellings(self._dataset, self._relation)
        correct = correct_for(item.fact, self._names)
        return spelled(item.options, item.fact, correct, self._spellings)

    def _note(
        self, fact: Fact, correct: frozenset[str], found: tuple[str, ...], census: Census
    ) -> None:
        own = {name for entity in fact.objects[:1] for name in entity.names}
        census.several_objects += not correct <= own
        census.correct_after_all += sum(entity.name in correct for entity in fact.wrong)
        census.no_options += len(found) < TWO
        census.few_options += TWO <= len(found) < self._count


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
    if census.no_options:
        raise DataError(
            f"dataset {dataset.name!r}: no fact that is asked about has two options, its own "
            "object and a wrong one; add facts with other objects, or name wrong options in the "
            "facts ('wrong')"
        )
    raise DataError(
        f"dataset {dataset.name!r} has no training facts to show as examples for what is asked; "
        f"give some facts of each relation the split {TRAIN!r}, or name other relations"
    )
