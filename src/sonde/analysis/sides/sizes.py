"""The first number of a report against the size of models, over all relations and in each.

Knows reports and where models come from, no probe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.analysis.runs import BILLION, Compared, families, family_names, relation_name
from sonde.analysis.sides.lines import shared_headlines
from sonde.core.reports import Curves, Estimate, Headline, Report
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.catalogue import RELATIONS

FEW_RELATIONS = 12
"""Curves that can be told apart in a figure."""

Points = list[tuple[float, Estimate]]
"""A number at the size of each model of a family, in billions of parameters."""


def against_size(runs: Sequence[Compared], reports: Mapping[str, Report]) -> Iterator[Curves]:
    """The first headline that all reports have, where a family has models of two sizes."""
    headlines, lines = shared_headlines([*reports.values()]), families(runs)
    if not headlines or not lines:
        return
    first = headlines[0]
    named = dict(zip(family_names([*lines]), lines.values(), strict=True))
    overall = {name: _points(own, reports, first.estimate) for name, own in named.items()}
    yield _figure(first, "", f"{first.label}, against size", overall, f"A family each. {WHISKERS}")
    for name, members in named.items():
        of_relations = {
            relation_name(relation): _points(members, reports, _in_relation(first, relation.id))
            for relation in members[0].judged.relations
        }
        most = sorted(of_relations, key=lambda label: -_moved(of_relations[label]))[:FEW_RELATIONS]
        left = len(of_relations) - len(most)
        yield _figure(
            first,
            f"-relations-{name}",
            f"{first.label.partition(',')[0]} in each relation, against size: {name}",
            {label: of_relations[label] for label in of_relations if label in most},
            f"{WHISKERS}{f' {left:,} relations that move less are left out.' if left else ''}",
        )


def _in_relation(headline: Headline, id: str) -> str:
    """The name of a headline's number in one relation."""
    return f"{headline.estimate.removesuffix(f'.{RELATIONS}')}.relation.{id}"


def _points(members: Sequence[Compared], reports: Mapping[str, Report], name: str) -> Points:
    missing = Estimate.not_measured()
    return [
        ((run.lineage.size or 0) / BILLION, reports[run.name].estimates.get(name, missing))
        for run in members
    ]


def _moved(points: Points) -> float:
    """How far a number goes up or down from the smallest to the largest model."""
    values = [estimate.value for _, estimate in points if estimate.value is not None]
    return abs(values[-1] - values[0]) if values else 0.0


def _figure(
    headline: Headline, after: str, title: str, lines: Mapping[str, Points], note: str
) -> Curves:
    return Curves(
        id=f"scaling{after}",
        title=title,
        kind="percent" if headline.kind == "percent" else "number",
        x_axis="parameters in billions",
        y_axis=headline.label,
        x_kind="number",
        curves=tuple(curve(name, points) for name, points in lines.items()),
        note=note,
    )
