"""lke-separators: does it matter what stands between subject, object and the next example?

Knows no model. The same facts with the same options are asked behind the same examples, written
with one pair of separators after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from sonde.core.abilities import needs
from sonde.core.columns import Given
from sonde.core.components import setting
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import DotPlot, Metric, Report, Series, Table
from sonde.core.words import clearly, named, told_apart
from sonde.metrics.estimates import RELATIONS, lead
from sonde.metrics.judged import Judged
from sonde.former.lke.asking import OPTIONS_HELP, Asked
from sonde.former.lke.choices import Choices, Way, judge, worded
from sonde.former.lke.metrics import ACCURACY, VARIED, accuracy_headline
from sonde.prompting.options import MANY
from sonde.prompting.sequences import USUAL, Separators, named_separators, told
from sonde.reporting.build.figures import WHISKERS
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field
from sonde.stats.paired import holm

ABOVE_FIRST = Metric(
    "above_first",
    "above the first",
    "points",
    sentence="accuracy minus that with the first separators, fact by fact",
    better="",
)
METRICS = (*VARIED, ABOVE_FIRST)

SEPARATORS = (
    USUAL,
    "colon/space",
    "comma/space",
    "newline/space",
    "space/comma",
    "space/newline",
    "colon/comma",
    "colon/newline",
)
FEW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LkeSeparators:
    """Accuracy under several separators, the same facts, options and examples."""

    name: ClassVar[str] = "lke-separators"
    shrinks: ClassVar[str] = "n"

    separators: tuple[str, ...] = setting(
        SEPARATORS,
        "inside a pair / between two, by name (space, colon, comma, newline) or as written",
    )
    n: int = setting(50, "how many examples to show", min=1)
    seeds: int = setting(3, "how often to draw the examples", min=1)
    options: int = setting(MANY, OPTIONS_HELP, min=2)

    def __post_init__(self) -> None:
        if not self.separators:
            raise UsageError("setting separators is empty; name at least one, such as space/space")
        for name in self.separators:
            named_separators(name)

    suited = needs("score")

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Separator by separator and draw by draw; prompts of a relation share their beginning."""
        for each in self._asked(dataset).shown:
            for name in self._places:
                for draw, _ in enumerate(each.draws):
                    own = {"separators": name, "draw": draw}
                    chosen = named_separators(name, each.relation.language)
                    yield from each.scored(self.n, chosen, self.name, own, draw)

    def judged(self, dataset: Dataset, answered: Given) -> Judged:
        """Every choice, each pair of separators in each draw as a template."""
        return self._choices(dataset, answered).judged

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by separator."""
        choices, places = self._choices(dataset, answered), self._places
        column = choices.frame["separators"]
        ways = {place: column == name for name, place in places.items()}
        choices.vary(ways, "separator.1", ABOVE_FIRST)
        accuracies = {name: choices.value(ACCURACY, place) for name, place in places.items()}
        low, high = min(accuracies.values()), max(accuracies.values())
        return Report(
            title=f"Separators of in-context examples on {dataset.name}",
            summary=f"Under {len(places)} separators accuracy lies between {low:.1%} and "
            f"{high:.1%}.",
            metrics=METRICS,
            estimates=choices.estimates,
            counts=choices.counts(),
            headlines=(accuracy_headline("separator.1", f"Accuracy with {self.separators[0]}"),),
            tables=shown(_table(choices, places)),
            figures=shown(_figure(choices, places)),
            findings=shown(
                _best(choices, accuracies),
                _against_first(choices, places),
                *choices.asked.sentences(),
            ),
            notes=(
                "Every separator is asked with the same facts, options and draws of examples "
                f"({self.seeds} of up to {self.n}).",
                "Intervals are 95 %: a bootstrap over subjects within relations; of one relation "
                "with one draw Wilson's, and Newcombe's for a difference. A separator is called "
                "better where a paired test says so, corrected for how many there are (Holm).",
                "Ties count as wrong.",
            ),
            judged=choices.judged,
        )

    @property
    def _places(self) -> dict[str, str]:
        """What the names of estimates have in the place of each pair of separators."""
        return {name: f"separator.{k}" for k, name in enumerate(dict.fromkeys(self.separators), 1)}

    def _asked(self, dataset: Dataset) -> Asked:
        return Asked.of(dataset, self.n, self.options, self.seeds)

    def _choices(self, dataset: Dataset, answered: Given) -> Choices:
        def chosen(way: Way) -> Separators:
            return named_separators(way["separators"], dataset.relation(way["relation"]).language)

        template = worded("{separators}-draw-{draw}", chosen)
        return judge(self._asked(dataset), answered, ("separators", "draw"), template)


def _table(choices: Choices, places: Mapping[str, str]) -> Table:
    shown = next(each for each in choices.asked.shown if each.items)
    lines, language = shown.draws[0][:2], shown.relation.language
    return choices.by_way(
        Field("separators", lambda name: name, help="inside a pair / between two pairs"),
        places,
        ABOVE_FIRST.named(f"above {next(iter(places))}"),
        Field(
            "looks like",
            lambda name: told(lines, named_separators(name, language)).replace("\n", "⏎"),
            detail=True,
        ),
        id="by-separator",
        title="By separator",
    )


def _figure(choices: Choices, places: Mapping[str, str]) -> DotPlot:
    """One row per separator; relations are series of their own where they are few."""
    metrics = [ACCURACY.under(place) for place in places.values()]
    return DotPlot(
        id="accuracy-by-separator",
        title="Accuracy under each separator",
        axis="accuracy",
        labels=tuple(places),
        series=tuple(
            Series(name=name, values=tuple(choices.estimates[m.at(over)] for m in metrics))
            for over, name in choices.series(FEW).items()
        ),
        note=f"Inside a pair / between two pairs. {WHISKERS}",
    )


def _best(choices: Choices, accuracies: Mapping[str, float]) -> str:
    first = lead(accuracies, lambda name, other: _p(choices, name, other))
    if first is None:
        return ""
    share = f"{first.value:.1%}"
    return named(
        f"{first.best} is right most often: {share} of facts.",
        "Which separator is right most often",
        f"{first.best} ({share})",
        first.tied,
    )


def _against_first(choices: Choices, places: Mapping[str, str]) -> str:
    usual, *others = places
    moved = []
    for name, p in zip(others, holm([_p(choices, name, usual) for name in others]), strict=True):
        change = choices.estimates[ABOVE_FIRST.at(f"{places[name]}.{RELATIONS}")]
        if told_apart(change, p):
            moved.append(f"{name} is {clearly(change, 'better', 'worse', '')}")
    against = f"{usual} on these facts"
    if moved:
        return f"Against {against}: {'; '.join(moved)}."
    return f"No separator is distinguishable from {against}." if others else ""


def _p(choices: Choices, name: str, other: str) -> float:
    column = choices.frame["separators"]
    return choices.p(column == name, column == other, f"separators:{name}:{other}")


COMPONENT = LkeSeparators
