"""EIC-LKE: several facts tested in one long sequence of facts, each option in its turn.

Numbers: the numbers of IC-LKE from sequences of training facts between which test facts stand. In
layout "facts" a sequence tests one option of each of several facts; in layout "options" several
options of one fact. What there is to read is reported beside what IC-LKE would: it saves only
against scoring text by text. It is counted in names, since tokens differ; `sonde plan` counts a
model's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from sonde.core.abilities import needs
from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.components import setting
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset, Relation
from sonde.core.fingerprints import draw_key
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report, Table
from sonde.metrics.judged import Judged
from sonde.former.lke.asking import (
    BETWEEN_HELP,
    INSIDE_HELP,
    LEVELS,
    LEVELS_HELP,
    OPTIONS_HELP,
    Asked,
    Item,
    Shown,
    check_levels,
    separators_name,
    separators_of,
)
from sonde.former.lke.choices import Choices, Judging, gathered, summed, worded
from sonde.former.lke.report import Reading, build_report
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Line, Separators, separated, spaced, spans, told
from sonde.reporting.build.tables import Field, table

if TYPE_CHECKING:
    from polars import DataFrame

Block = tuple[list[Item], tuple[Line, ...], tuple[int, ...]]
"""Facts that are tested together, the training facts between them, and after how many of these."""


class Passage(NamedTuple):
    """One text to read: facts in a row, of which those `at` some places are tested.

    Each has the option of that number (layout "facts"), or the first has and those after it have
    the next ones.
    """

    lines: list[Line]
    at: list[int]
    option: int

    def text(self, separators: Separators) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text, and where in it the tested options stand."""
        text, every = told(self.lines, separators), spans(self.lines, separators)
        return text, spaced(text, (every[place] for place in self.at))


def in_turn(item: Item, seed: int) -> tuple[str, ...]:
    """The options in the order they are tested: drawn for each fact, so that no two facts agree."""
    id = item.fact.id
    return tuple(sorted(item.options, key=lambda o: (draw_key(seed, f"turn:{id}:{o}"), o)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EicLke:
    """Which option is likeliest, when several facts are tested in one sequence of facts."""

    name: ClassVar[str] = "eic-lke"
    shrinks: ClassVar[str] = "training"

    training: int = setting(100, "how many facts of the relation a sequence shows", min=1)
    start: int = setting(50, "after how many of them the first fact is tested", min=1)
    stride: int = setting(5, "after how many more the next one is", min=1)
    options: int = setting(MANY, OPTIONS_HELP, min=2)
    layout: Literal["facts", "options"] = setting(
        "facts", "what a sequence tests: an option of each of several facts, or options of one fact"
    )
    inside: str = setting("colon", INSIDE_HELP)
    between: str = setting("newline", BETWEEN_HELP)
    levels: tuple[float, ...] = setting(LEVELS, LEVELS_HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_levels(self.levels)
        separated(self.inside, self.between)

    suited = needs("trace")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per sequence, those of a block of facts after each other."""
        for shown in Asked.of(dataset, self.training, self.options).shown:
            for passage in self._passages(shown, dataset.selection.seed):
                text, where = passage.text(self._separators(shown.relation))
                facts, relation = [passage.lines[k].fact for k in passage.at], shown.relation.id
                yield Prompt(
                    key=Key(fact=facts[0], relation=relation, template=self.name, subject=""),
                    prefix=text,
                    want=Trace(spans=where),
                    own={"facts": facts, "option": passage.option},
                )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Gather every fact's options from the sequences, judge the choices, compute the rest."""
        choices, seed = self._choices(dataset, answered), dataset.selection.seed
        shown = choices.asked.shown
        passages = [(each.relation, [*self._passages(each, seed)]) for each in shown]
        cost = self._cost(shown, [text for _, texts in passages for text in texts])
        reading = Reading(
            name="EIC-LKE",
            levels=self.levels,
            separators=separators_name(self.inside, self.between),
            seeds=(seed,),
            prefixes={
                relation.id: texts[0].text(self._separators(relation))[0]
                for relation, texts in passages
                if texts
            },
            blank="",
            counts=cost,
            tables=(_cost_table(cost, len(choices.asked.items)),),
            notes=self._notes(),
        )
        return build_report(choices, reading)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return self._choices(dataset, answered).judged

    def spots(self, count: int) -> tuple[int, ...]:
        """After how many of so many training facts one is tested; with few it starts earlier.

        >>> EicLke().spots(100), EicLke().spots(30), EicLke().spots(1)
        ((50, 55, 60, 65, 70, 75, 80, 85, 90, 95), (15, 20, 25), (1,))
        """
        start = max(1, self.start * min(count, self.training) // self.training)
        return tuple(range(start, count, self.stride)) or (count,)

    def _separators(self, relation: Relation) -> Separators:
        return separated(self.inside, self.between, relation.language)

    def _asked(self, dataset: Dataset) -> Asked:
        """The facts that are tested, with how many training facts stand in their sequences."""
        asked = Asked.of(dataset, self.training, self.options)
        tested = ([i for items, _, _ in self._blocks(each) for i in items] for each in asked.shown)
        pairs = zip(asked.shown, tested, strict=True)
        return replace(asked, shown=[replace(each, items=tuple(items)) for each, items in pairs])

    def _blocks(self, shown: Shown) -> Iterator[Block]:
        """Facts by as many as a sequence has spots, with training facts about other subjects."""
        every = shown.draws[0] if shown.draws else ()
        most = len(self.spots(min(self.training, len(every)))) if self.layout == "facts" else 1
        first = {line.subject for line in every[: self.training]}
        left, waiting = iter(shown.items), list[Item]()
        while waiting := [*waiting, *islice(left, most - len(waiting))]:
            names = {name for item in waiting for name in item.fact.subject.names}
            lines = tuple(line for line in every if line.subject not in names)[: self.training]
            spots = self.spots(len(lines)) if lines else ()
            tested = [
                replace(
                    item, examples=len(lines), spare=not first.isdisjoint(item.fact.subject.names)
                )
                for item in waiting[: len(spots)]
            ]
            if tested:
                yield tested, lines, spots
            waiting = waiting[len(spots) or 1 :]

    def _passages(self, shown: Shown, seed: int) -> Iterator[Passage]:
        """Every text that tests the facts of one relation, block by block."""
        for items, lines, spots in self._blocks(shown):
            turned = [[_line(item, name) for name in in_turn(item, seed)] for item in items]
            if self.layout == "options":
                [options], size = turned, len(spots)
                tested = {k: options[k : k + size] for k in range(0, len(options), size)}
            else:
                # a fact with fewer options shows one again, so that the next stand as they should
                most = max(map(len, turned))
                tested = {k: [options[k % len(options)] for options in turned] for k in range(most)}
            for option, among in tested.items():
                yield _passage(lines, spots, among, option)

    def _choices(self, dataset: Dataset, answered: Given) -> Choices:
        """The options of every fact, put together from the sequences that they stand in.

        A fact some of whose options were not answered is left out.
        """
        from polars import len as count

        asked = self._asked(dataset)
        judging = Judging(asked)
        read = judging.about(gathered(self._read(block) for block in in_blocks(answered)))
        # a fact with fewer options than others has some of its own read again
        read = read.filter(read["option"] < read["offered"]).unique(["pair", "option"], keep="last")
        whole = read.select(count().over("pair")).to_series() == read["offered"]
        parts = read.filter(whole).sort("pair", "option").partition_by("owner", maintain_order=True)
        choices = (_judged(judging, asked, part) for part in parts)
        template = worded("lke-{seed}", separators_of(dataset, self.inside, self.between))
        return Choices.of(asked, choices, ["seed"], template)

    def _read(self, block: Answers) -> DataFrame:
        """The fact that each span of a block is of, which of its options, and how likely it is."""
        from polars import Series

        if block.kind != "traced":
            raise AbilityError("eic-lke reads traced texts, not other answers")
        rated = block.rated
        option = block.frame["option"].to_numpy()[rated.owners]
        if self.layout == "options":
            option = option + np.arange(len(option)) - rated.bounds[rated.owners]
        frame = block.frame.select("relation", fact="facts").explode("fact")
        return frame.with_columns(option=Series(option), logp=Series(rated.sums()))

    def _cost(self, shown: Sequence[Shown], passages: Sequence[Passage]) -> dict[str, int]:
        """How many names of subjects and objects are read, for the facts that are tested.

        `shared`: where sequences that begin alike are read once up to the first fact that is
        tested, whose subject is common, too. By IC-LKE: with a text for each option, as many
        examples as stand before that fact, and with every beginning read once.
        """
        read = sum(2 * len(passage.lines) for passage in passages)
        common = sum(2 * passage.at[0] + 1 for passage in passages if passage.option)
        naive = shared = 0
        for each in shown:
            if offered := [len(item.options) for item in each.items]:
                examples = self.spots(min(self.training, each.most))[0]
                naive += sum(offered) * (2 * examples + 2)
                shared += 2 * examples + len(offered) + sum(offered)
        return {
            "sequences": len(passages),
            "names_read": read,
            "names_read_shared": read - common,
            "names_ic_lke_naive": naive,
            "names_ic_lke_shared": shared,
        }

    def _notes(self) -> tuple[str, ...]:
        tested = (
            "one option of each of several facts, so wrong options of earlier facts stand before "
            "later ones"
            if self.layout == "facts"
            else "several options of one fact, so each stands behind options of the same fact"
        )
        return (
            f"A sequence shows up to {self.training} training facts of the relation; after "
            f"{self.start} of them a fact is tested, and every {self.stride} from there on. Where "
            f"there are fewer, testing starts earlier in proportion. It tests {tested}.",
        )


def _passage(
    shown: Sequence[Line], spots: Sequence[int], tested: Sequence[Line], option: int
) -> Passage:
    """The facts up to the last that is tested: nothing behind it can change what is read."""
    lines, at = list[Line](), list[int]()
    for start, spot, line in zip((0, *spots), spots, tested, strict=False):
        lines += (*shown[start:spot], line)
        at.append(len(lines) - 1)
    return Passage(lines, at, option)


def _line(item: Item, option: str) -> Line:
    return Line(fact=item.fact.id, subject=item.fact.subject.name, object=option)


def _judged(judging: Judging, asked: Asked, read: DataFrame) -> DataFrame:
    """The choices of one relation, from its options by fact; all have the same draw of examples."""
    from polars import lit

    seed = asked.dataset.selection.seed
    turned = {pair: in_turn(asked.items[pair], seed) for pair in read["pair"].unique().to_list()}
    names = [turned[pair][option] for pair, option in read.select("pair", "option").iter_rows()]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    facts = read.select(asked.facts.columns).unique("pair", maintain_order=True)
    bounds = np.cumsum([0, *facts["offered"]])
    options = np.array([codes[name] for name in names])
    answers = summed(read["logp"].to_numpy(), bounds, options, list(codes))
    return judging.choices(facts.with_columns(seed=lit(seed)), answers)


def _cost_table(cost: Mapping[str, int], facts: int) -> Table:
    """What both probes have to read, side by side."""
    ways = {
        "EIC-LKE, every sequence by itself": cost["names_read"],
        "EIC-LKE, common beginnings read once": cost["names_read_shared"],
        "IC-LKE, a text for each option": cost["names_ic_lke_naive"],
        "IC-LKE, common beginnings read once": cost["names_ic_lke_shared"],
    }
    fields: list[Field[str]] = [
        Field("way", lambda way: way),
        Field("names", ways.get, "count", "of subjects and objects, for all facts"),
        Field("names per fact", lambda way: ways[way] / max(facts, 1), "number"),
        Field(
            "times",
            lambda way: ways[way] / max(cost["names_ic_lke_shared"], 1),
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


COMPONENT = EicLke
