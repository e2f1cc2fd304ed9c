"""lke-separators: does it matter what stands between subject, object and the next example?

Knows no model. The same facts with the same options are asked behind the same examples, written
with one pair of separators after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.core.abilities import Ability, need
from sonde.core.columns import Given
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt
from sonde.core.reports import DotPlot, Metric, Report, Series, Table
from sonde.core.settings import setting
from sonde.core.words import clearly, named, told_apart
from sonde.metrics.estimates import lead
from sonde.probes.lke.choices import Kept
from sonde.probes.lke.items import OPTIONS_HELP
from sonde.probes.lke.metrics import (
    ABOVE_FIRST,
    ACCURACY,
    DEVIATION,
    MASS,
)
from sonde.probes.lke.metrics import SEPARATORS as METRICS
from sonde.probes.lke.studies.study import Study, after_examples, shown_relations
from sonde.prompting.options import MANY
from sonde.prompting.sequences import USUAL, named_separators, told
from sonde.reporting.build.figures import WHISKERS
from sonde.reporting.build.parts import shown
from sonde.reporting.build.tables import Field, table
from sonde.reporting.catalogue import RELATIONS
from sonde.stats.paired import holm

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
    n: int = setting(50, "how many examples to show", least=1)
    seeds: int = setting(3, "how often to draw the examples", least=1)
    options: int = setting(MANY, OPTIONS_HELP, least=2)

    def __post_init__(self) -> None:
        if not self.separators:
            raise UsageError("setting separators is empty; name at least one, such as space/space")
        for name in self.separators:
            named_separators(name)

    def suited(self, can: frozenset[Ability]) -> Self:
        """Any model that can score options will do."""
        need(self.name, can, "score")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        """Separator by separator and draw by draw; prompts of a relation share their beginning."""
        relations, _ = shown_relations(dataset, self.options, self.seeds)
        for each in relations:
            for name in dict.fromkeys(self.separators):
                for draw in range(self.seeds):
                    own = {"separators": name, "draw": draw}
                    chosen = named_separators(name)
                    yield from after_examples(each, self.n, chosen, self.name, **own)

    def read(self, dataset: Dataset, answered: Given) -> Report:
        """Judge every choice and average by separator."""
        study = Study.of(dataset, self.options, self.seeds, answered, ("separators", "draw"))
        column = study.choices.frame["separators"]
        kept = {name: column == name for name in dict.fromkeys(self.separators)}
        places = {f"separator.{k}": own for k, own in enumerate(kept.values(), 1)}
        study.put_varied(places, "separator.1", ABOVE_FIRST)
        values = _values(study, kept)
        low, high = min(values.values()), max(values.values())
        return Report(
            title=f"Separators of in-context examples on {dataset.name}",
            summary=f"Under {len(values)} separators accuracy lies between {low:.1%} and "
            f"{high:.1%}.",
            metrics=METRICS,
            estimates=study.estimates,
            counts=study.counts(),
            headlines=(study.headline("separator.1", f"Accuracy with {self.separators[0]}"),),
            tables=shown((_table(study, tuple(kept)),)),
            figures=shown((_figure(study, tuple(kept)),)),
            findings=shown(
                (
                    _best(study, kept),
                    _against_first(study, kept),
                    *study.lacking(self.n, self.options),
                )
            ),
            notes=(
                "Every separator is asked with the same facts, options and draws of examples "
                f"({self.seeds} of up to {self.n}).",
                "Intervals are 95 %: a bootstrap over subjects within relations; of one relation "
                "with one draw Wilson's, and Newcombe's for a difference. A separator is called "
                "better where a paired test says so, corrected for how many there are (Holm).",
                "Ties count as wrong.",
            ),
        )


Ways = Mapping[str, Kept]
"""The choices under each pair of separators."""


def _values(study: Study, kept: Ways) -> dict[str, float]:
    """The accuracy under each pair of separators."""
    values = ((way, study.value(ACCURACY, f"separator.{k}")) for k, way in enumerate(kept, 1))
    return {way: value for way, value in values if value is not None}


def _table(study: Study, ways: tuple[str, ...]) -> Table:
    lines = study.shown[0].draws[0][:2]
    places = {way: f"separator.{k}" for k, way in enumerate(ways, 1)}
    fields: list[Metric | Field[str]] = [
        Field("separators", lambda way: way, help="inside a pair / between two pairs"),
        ACCURACY.named("accuracy", "mean over relations, facts and draws"),
        ABOVE_FIRST.named(f"above {ways[0]}"),
        DEVIATION.without_interval(),
        MASS.detail(),
        Field(
            "looks like",
            lambda way: told(lines, named_separators(way)).replace("\n", "⏎"),
            detail=True,
        ),
    ]
    return table(
        ways,
        fields,
        lambda way, metric: study.at(metric, places[way]),
        id="by-separator",
        title="By separator",
    )


def _figure(study: Study, ways: tuple[str, ...]) -> DotPlot:
    """One row per separator; relations are series of their own where they are few."""
    metrics = [ACCURACY.under(f"separator.{k}") for k, _ in enumerate(ways, 1)]
    return DotPlot(
        id="accuracy-by-separator",
        title="Accuracy under each separator",
        axis="accuracy",
        labels=ways,
        series=tuple(
            Series(name=name, values=tuple(study.estimates[m.at(over)] for m in metrics))
            for over, name in study.series(FEW).items()
        ),
        note=f"Inside a pair / between two pairs. {WHISKERS}",
    )


def _best(study: Study, kept: Ways) -> str:
    first = lead(_values(study, kept), lambda a, b: _p(study, kept, a, b))
    if first is None:
        return ""
    share = f"{first.value:.1%}"
    return named(
        f"{first.best} is right most often: {share} of facts.",
        "Which separator is right most often",
        f"{first.best} ({share})",
        first.tied,
    )


def _against_first(study: Study, kept: Ways) -> str:
    usual, *others = kept
    chances = holm([_p(study, kept, way, usual) for way in others])
    moved = []
    for (k, way), p in zip(enumerate(others, 2), chances, strict=True):
        change = study.estimates[ABOVE_FIRST.at(f"separator.{k}.{RELATIONS}")]
        if told_apart(change, p):
            moved.append(f"{way} is {clearly(change, 'better', 'worse', '')}")
    against = f"{usual} on these facts"
    if moved:
        return f"Against {against}: {'; '.join(moved)}."
    return f"No separator is told from {against}." if others else ""


def _p(study: Study, kept: Ways, way: str, other: str) -> float:
    return study.p(kept[way], kept[other], f"separators:{way}:{other}")


COMPONENT = LkeSeparators
