"""Sequences of EIC-LKE: training facts in a row with the facts that are tested set between them.

In layout "facts" a sequence tests one option of each of several facts; in layout "options" several
options of one fact. What there is to read is counted in names, since tokens differ; `sonde plan`
counts a model's own. Knows facts and options, nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Table
from sonde.probes.lke.items import Census, Item
from sonde.prompting.sequences import Line, Separators, spaced, spans, told
from sonde.reporting.build.tables import Field, table

Layout = Literal["facts", "options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How sequences look: `training` facts, one tested after the `start`-th and every `stride`."""

    training: int = 100
    start: int = 50
    stride: int = 5
    layout: Layout = "facts"
    separators: Separators
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One text to read: facts in a row, of which those `at` some places are tested, with option
    `number` of each (layout "facts"), or one fact with option `number` and those after it.
    """

    lines: tuple[Line, ...]
    at: tuple[int, ...]
    number: int
    separators: Separators

    @property
    def facts(self) -> list[str]:
        """The fact that is tested at each place."""
        return [self.lines[place].fact for place in self.at]

    def text(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text, and where in it the tested options stand."""
        text, every = told(self.lines, self.separators), spans(self.lines, self.separators)
        return text, spaced(text, (every[place] for place in self.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Facts that are tested together, in the order of the spots they are tested at."""

    items: tuple[Item, ...]
    shown: tuple[Line, ...]
    spots: tuple[int, ...]


def spots(training: int, shape: Shape) -> tuple[int, ...]:
    """After how many training facts one is tested; with fewer than asked for it starts earlier.

    >>> spots(100, Shape(separators=Separators()))
    (50, 55, 60, 65, 70, 75, 80, 85, 90, 95)
    >>> spots(30, Shape(separators=Separators())), spots(1, Shape(separators=Separators()))
    ((15, 20, 25), (1,))
    """
    start = max(1, shape.start * min(training, shape.training) // shape.training)
    return tuple(range(start, training, shape.stride)) or (training,)


def in_turn(item: Item, seed: int) -> tuple[str, ...]:
    """The options in the order they are tested: drawn for each fact, so that no two facts agree."""
    id = item.fact.id
    return tuple(sorted(item.options, key=lambda o: (draw_key(seed, f"turn:{id}:{o}"), o)))


def passages(
    items: Iterable[Item], lines: Sequence[Line], shape: Shape, census: Census
) -> Iterator[Passage]:
    """Every text that tests the facts of one relation, block by block."""
    for block in _blocks(items, lines, shape, census):
        turned = [in_turn(item, shape.seed) for item in block.items]
        if shape.layout == "options":
            yield from _of_options(block, turned[0], shape)
        else:
            yield from _of_facts(block, turned, shape)


def _of_facts(block: _Block, turned: Sequence[tuple[str, ...]], shape: Shape) -> Iterator[Passage]:
    for number in range(max(map(len, turned))):
        # a fact with fewer options shows one again, so that the next stand where they should
        tested = [
            _line(item, options[number % len(options)])
            for item, options in zip(block.items, turned, strict=True)
        ]
        yield _passage(block, tested, number, shape.separators)


def _of_options(block: _Block, turned: tuple[str, ...], shape: Shape) -> Iterator[Passage]:
    (item,) = block.items
    for number in range(0, len(turned), len(block.spots)):
        tested = [_line(item, o) for o in turned[number : number + len(block.spots)]]
        yield _passage(block, tested, number, shape.separators)


def _blocks(
    items: Iterable[Item], lines: Sequence[Line], shape: Shape, census: Census
) -> Iterator[_Block]:
    """Facts by as many as a sequence has spots, each with training facts about other subjects."""
    most = 1 if shape.layout == "options" else len(spots(min(shape.training, len(lines)), shape))
    waiting: list[Item] = []
    left = iter(items)
    while waiting := [*waiting, *islice(left, most - len(waiting))]:
        names = {name for item in waiting for name in item.fact.subject.names}
        shown = tuple(line for line in lines if line.subject not in names)[: shape.training]
        if not shown:
            census.no_examples += 1
            waiting = waiting[1:]
            continue
        places = spots(len(shown), shape)
        chosen = tuple(waiting[: len(places)])
        waiting = waiting[len(places) :]
        for item in chosen:
            names = set(item.fact.subject.names)
            met = any(line.subject in names for line in lines[: shape.training])
            census.shown(item.fact.relation, len(shown), shape.training, met)
        yield _Block(items=chosen, shown=shown, spots=places)


def _line(item: Item, option: str) -> Line:
    return Line(fact=item.fact.id, subject=item.fact.subject.name, object=option)


def _passage(block: _Block, tested: Sequence[Line], number: int, separators: Separators) -> Passage:
    """The facts up to the last that is tested: nothing behind it can change what is read."""
    lines: list[Line] = []
    start, at = 0, []
    for spot, line in zip(block.spots, tested, strict=False):
        lines += (*block.shown[start:spot], line)
        at.append(len(lines) - 1)
        start = spot
    return Passage(lines=tuple(lines), at=tuple(at), number=number, separators=separators)


@dataclass(slots=True, kw_only=True)
class Cost:
    """Names of subjects and objects that are read, for the facts that are tested.

    `names` are those of the sequences as they are, `joined` those left where sequences that begin
    alike are read once up to the first fact that is tested. `naive`: by IC-LKE with a text for each
    option, with as many examples as stand before that fact; `shared`: the same with every beginning
    read once.
    """

    sequences: int = 0
    names: int = 0
    joined: int = 0
    facts: int = 0
    naive: int = 0
    shared: int = 0

    def read(self, passage: Passage) -> None:
        """Count one sequence."""
        self.sequences += 1
        names = 2 * len(passage.lines)
        common = 2 * passage.at[0] + 1  # the subject that is tested is common, too
        self.names += names
        self.joined += names - (common if passage.number else 0)

    def compare(self, items: Iterable[Item], examples: int) -> None:
        """Count what IC-LKE would read for the facts of one relation."""
        offered = [len(item.options) for item in items]
        self.facts += len(offered)
        self.naive += sum(offered) * (2 * examples + 2)
        self.shared += 2 * examples * bool(offered) + sum(1 + count for count in offered)

    def counts(self) -> dict[str, int]:
        """By name, as the report gives it."""
        return {
            "sequences": self.sequences,
            "names_read": self.names,
            "names_read_shared": self.joined,
            "names_ic_lke_naive": self.naive,
            "names_ic_lke_shared": self.shared,
        }


def cost_table(cost: Cost) -> Table:
    """What both probes have to read, side by side."""
    ways = {
        "EIC-LKE, every sequence by itself": cost.names,
        "EIC-LKE, common beginnings read once": cost.joined,
        "IC-LKE, a text for each option": cost.naive,
        "IC-LKE, common beginnings read once": cost.shared,
    }
    fields: list[Field[str]] = [
        Field("way", lambda way: way),
        Field("names", ways.get, "count", "of subjects and objects, for all facts"),
        Field("names per fact", lambda way: ways[way] / max(cost.facts, 1), "number"),
        Field(
            "times",
            lambda way: ways[way] / max(cost.shared, 1),
            "number",
            "as many as IC-LKE with shared beginnings",
        ),
    ]
    return table(
        ways,
        fields,
        id="cost",
        title="What the model has to read",
        note="EIC-LKE saves against scoring text by text, not against sharing what begins alike. "
        "Names, not tokens; 'sonde plan' counts the tokens of a model.",
    )
