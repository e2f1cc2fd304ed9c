"""What the studies of in-context estimation ask about: the same facts and options in every way.

Knows facts and their options, nothing of answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Key, Prompt, Score, Want
from sonde.core.reports import Estimate
from sonde.probes.lke.items import Census, Item, OptionPool, refuse_nothing
from sonde.probes.lke.studies.fact_scores import FactScores, Guess, Ways, put
from sonde.prompting.sequences import TRAIN, Line, Separators, asked, drawn, examples, line_of

CONTROL = "control.majority.accuracy"
ABOVE = "above_control.accuracy"
LISTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The facts of a relation with their options, and its training facts in each draw's order."""

    relation: str
    items: tuple[Item, ...]
    draws: tuple[tuple[Line, ...], ...]

    @property
    def shown(self) -> int:
        """How many examples there are to show."""
        return len(self.draws[0])

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts."""
        return tuple(item.fact for item in self.items)


def asked_relations(dataset: Dataset, options: int, seeds: int) -> tuple[list[Asked], Census]:
    """Every relation with something to ask and something to show; refuses where none has."""
    census, found = Census(), []
    first = dataset.selection.seed
    for relation in dataset.asked_relations():
        # read once: a fact with its wrong options is long
        shown = [fact for fact in dataset.facts(relation.id) if fact.split == TRAIN]
        if not shown:
            census.without_training.append(relation.id)
            continue
        orders = (drawn(shown, first + turn) for turn in range(seeds))
        draws = tuple(tuple(map(line_of, order)) for order in orders)
        items = tuple(OptionPool(dataset, relation.id, options).items(census))
        if items:
            found.append(Asked(relation=relation.id, items=items, draws=draws))
    if not found:
        refuse_nothing(dataset, census)
    return found, census


def after_examples(
    one: Asked, turn: int, n: int, separators: Separators, way: str
) -> Iterator[Prompt]:
    """Every fact of a relation behind n examples of a draw, its options to be scored."""
    for item in one.items:
        lines = examples(one.draws[turn], item.fact.subject, n)
        prefix = asked(lines, item.fact.subject.name, separators)
        yield prompt(item.fact, prefix, Score(options=item.options), way, str(turn))


def prompt(fact: Fact, prefix: str, want: Want, way: str, context: str, suffix: str = "") -> Prompt:
    """A prompt about a fact; the way of asking stands in the template's column."""
    key = Key(
        fact=fact.id,
        relation=fact.relation,
        template=way,
        subject=fact.subject.name,
        context=context,
    )
    return Prompt(key=key, prefix=prefix, suffix=suffix, want=want)


def put_control(
    made: dict[str, Estimate], dataset: Dataset, found: list[Asked], right: FactScores, ways: Ways
) -> None:
    """Add what always answering the commonest option reaches, and how far the model is above it."""
    seed = dataset.selection.seed
    for one in found:
        guess = Guess(dataset, one.relation)
        for item in one.items:
            for turn in range(len(one.draws)):
                right.add(one.relation, item.fact.id, CONTROL, float(guess.right(item)), turn)
    control = right.everywhere(CONTROL)
    put(made, CONTROL, right.samples(control), seed)
    put(made, ABOVE, right.samples(ways, minus=control), seed)


def census_findings(census: Census, found: list[Asked], wanted: int, options: int) -> list[str]:
    """What there was less of than was asked for."""
    said = []
    short = {one.relation: one.shown for one in found if one.shown < wanted}
    if short:
        said.append(f"Fewer than {wanted} training facts to show: {listed(short)}.")
    if few := census.few_options(options):
        said.append(few)
    if census.without_training:
        names = ", ".join(census.without_training[:LISTED])
        said.append(f"Left out, having no training facts to show: {names}.")
    return said


def listed(numbers: Mapping[str, int]) -> str:
    """Some relations with a number each, the first few of them.

    >>> listed({"P36": 50, "P30": 12})
    'P36 50, P30 12'
    """
    words = ", ".join(f"{id} {number}" for id, number in list(numbers.items())[:LISTED])
    more = len(numbers) - LISTED
    return f"{words} and {more} more relations" if more > 0 else words


def counts(found: list[Asked], census: Census, prompts: int, ties: int) -> dict[str, int]:
    """What every study of choices counts."""
    return {
        "relations": len(found),
        "facts": sum(len(one.items) for one in found),
        "prompts": prompts,
        "ties": ties,
        "relations_without_training": len(census.without_training),
        "facts_fewer_options": census.fewer_options,
        "facts_without_options": census.without_options,
    }
