"""IC-LKE: which object follows a subject after other facts of its relation, and nothing else.

The examples say what is asked; there is no template and no instruction. Numbers: accuracy over
options, probability mass on the right one, Accuracy@K with the share retained, spread over draws
of the examples, beside the majority control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import Report
from sonde.metrics.judged import Judged
from sonde.former.lke.asking import (
    BETWEEN_HELP,
    INSIDE_HELP,
    LEVELS,
    LEVELS_HELP,
    OPTIONS_HELP,
    Asked,
    Shown,
    check_levels,
    separators_name,
    separators_of,
)
from sonde.former.lke.choices import Choices, judge, worded
from sonde.former.lke.report import Reading, build_report
from sonde.prompting.options import MANY
from sonde.prompting.sequences import Separators, separated


@dataclass(frozen=True, slots=True, kw_only=True)
class IcLke:
    """Which of many options follows a subject, after other facts of the same relation."""

    name: ClassVar[str] = "ic-lke"
    shrinks: ClassVar[str] = "n"

    n: int = setting(50, "how many facts of the relation stand before the subject", min=1)
    inside: str = setting("colon", INSIDE_HELP)
    between: str = setting("newline", BETWEEN_HELP)
    options: int = setting(MANY, OPTIONS_HELP, min=2)
    names: Literal["usual", "all"] = setting(
        "usual", "score options by their usual names, or all names to pool them in the mass"
    )
    seeds: int = setting(
        1, "how often to draw the examples anew, to see how far it matters", min=1
    )
    levels: tuple[float, ...] = setting(LEVELS, LEVELS_HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_levels(self.levels)
        separated(self.inside, self.between)

    suited = needs("score")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """One prompt per fact and draw of examples; those of a relation share their beginning."""
        for shown in self._asked(dataset).shown:
            for draw, _ in enumerate(shown.draws):
                own = {"seed": dataset.selection.seed + draw}
                chosen = self._separators(shown)
                yield from shown.scored(self.n, chosen, self.name, own, draw)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and compute every number."""
        choices, first = self._choices(dataset, answered), dataset.selection.seed
        reading = Reading(
            name="IC-LKE",
            levels=self.levels,
            separators=separators_name(self.inside, self.between),
            seeds=range(first, first + self.seeds),
            prefixes={
                each.relation.id: each.prefix(each.items[0], self.n, self._separators(each))
                for each in choices.asked.shown
                if each.items
            },
            notes=(
                f"Before each subject stand up to {self.n} training facts of its relation, drawn "
                "by the seed; a fact about the subject itself is replaced by a spare.",
            ),
        )
        return build_report(choices, reading)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, for comparisons with other runs."""
        return self._choices(dataset, answered).judged

    def _asked(self, dataset: Dataset) -> Asked:
        return Asked.of(dataset, self.n, self.options, self.seeds, spell=self.names == "all")

    def _choices(self, dataset: Dataset, answered: Given) -> Choices:
        template = worded("lke-{seed}", separators_of(dataset, self.inside, self.between))
        return judge(self._asked(dataset), answered, ["seed"], template)

    def _separators(self, shown: Shown) -> Separators:
        return separated(self.inside, self.between, shown.relation.language)


COMPONENT = IcLke
