"""Figures that several reports share, drawn over each other. Knows reports, no probe.

Each kind of figure has its own way to hold several runs: `OVERLAYS`. Where a figure has a few parts
of its own, such as two curves, every part becomes a figure of all runs; of many parts the first
alone, which is the mean by custom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from sonde.core.reports import (
    Bars,
    Boxes,
    Curve,
    Curves,
    DotPlot,
    Estimate,
    Figure,
    HeatMap,
    Histogram,
    Picture,
    Report,
    Series,
    Strip,
)
from sonde.reporting.build.figures import heat

FEW_PARTS = 3
"""Up to so many parts of a figure become a figure each."""

FEW_SERIES = 8
"""Up to so many runs are told apart by colours; more become columns of a heat map."""

FEW_PANELS, MOST_PANELS = 4, 8
FEW_BOXES = 24
FEW_MAPS = 6
POINTS = 2_000
"""Rows of a strip that become a figure each, or do where they are too many boxes for one figure;
these boxes; heat maps after each other; single points in all."""

CONTROL = "control"
"""What the name of a control's series holds."""

CUMULATIVE = "share of values up to here"

Runs = Mapping[str, Any]
"""The same figure in every run, by the name of the run."""


def side_figures(reports: Mapping[str, Report]) -> Iterator[Figure]:
    """Every figure that two reports have, of the runs that have it."""
    every = {run: {f.id: f for f in report.figures} for run, report in reports.items()}
    for id in dict.fromkeys(id for own in every.values() for id in own):
        same = {run: own[id] for run, own in every.items() if id in own}
        first, *others = same.values()
        alike = others and all(type(other) is type(first) for other in others)
        if alike and type(first) in OVERLAYS:
            yield from OVERLAYS[type(first)](first, same)


Part = TypeVar("Part", Curve, Series)
Parts = Mapping[str, Sequence[Part]]
"""A part of a figure in each run, by its name."""


def _parts(every: Sequence[Sequence[Part]]) -> Parts[Part]:
    """The parts that all runs have; single ones are the same whatever their names are."""
    if all(len(own) == 1 for own in every):
        return {"": [own[0] for own in every]}
    named = [{part.name: part for part in own} for own in every]
    shared = [name for name in named[0] if all(name in own for own in named)]
    return {name: [own[name] for own in named] for name in shared}


def _few(parts: Parts[Part]) -> Parts[Part]:
    """As many parts as are drawn: all, or the first."""
    return parts if len(parts) <= FEW_PARTS else dict([next(iter(parts.items()))])


class Named(NamedTuple):
    """What a figure of all runs is called."""

    id: str
    title: str


def _named(figure: Picture, part: str = "", number: int = 0) -> Named:
    """A figure by the part that it shows, in its id too unless it is the first."""
    slug = re.sub(r"[^\w]+", "-", part.lower()).strip("-")
    return Named(
        f"{figure.id}-{slug or number}" if number else figure.id,
        f"{figure.title}: {part}" if part else figure.title,
    )


def _curves(first: Curves, runs: Runs) -> Iterator[Figure]:
    """A curve for each run, and the places that a run marks under its name."""
    if any(figure.x_labels != first.x_labels for figure in runs.values()):
        return
    parts = _few(_parts([figure.curves for figure in runs.values()]))
    for k, (name, curves) in enumerate(parts.items()):
        called = _named(first, name, k)
        yield replace(
            first,
            id=called.id,
            title=called.title,
            curves=tuple(
                replace(_thinned(curve, len(runs)), name=run)
                for run, curve in zip(runs, curves, strict=True)
            ),
            marks=_marks(runs) if k == 0 else (),
        )


def _thinned(curve: Curve, runs: int) -> Curve:
    """The curve, or every so many of its points where they are too many to be drawn."""
    step = -(-len(curve.x) * runs // POINTS) if not curve.joined else 1
    columns = ("x", "y", "sizes", "low", "high")
    return replace(curve, **{name: getattr(curve, name)[:: max(1, step)] for name in columns})


def _marks(runs: Runs) -> tuple[tuple[str, float], ...]:
    """The places that all runs mark, once, else those of each run under its name."""
    own: list[tuple[tuple[str, float], ...]] = [figure.marks for figure in runs.values()]
    if all(marks == own[0] for marks in own):
        return own[0]
    return tuple((f"{run}: {label}", x) for run, f in runs.items() for label, x in f.marks)


def _labelled(first: DotPlot | Bars, runs: Runs) -> Iterator[Figure]:
    """A series for each run; a control that is the same in all runs stands beside the first."""
    labels = list(dict.fromkeys(label for figure in runs.values() for label in figure.labels))
    aligned = [[_at(series, figure.labels, labels) for series in figure.series]
               for figure in runs.values()]  # fmt: skip
    parts = _parts(aligned)
    same = [s[0] for name, s in parts.items() if CONTROL in name and all(x == s[0] for x in s)]
    moving = {name: s for name, s in parts.items() if s[0] not in same}
    drawn = _few(moving)
    for k, (name, series) in enumerate(drawn.items()):
        called = _named(first, name if len(moving) > 1 else "", k)
        of_runs = [replace(s, name=run) for run, s in zip(runs, series, strict=True)]
        yield _by_label(first, called, labels, of_runs, same if k == 0 else [])


def _at(series: Series, own: Sequence[str], labels: Sequence[str]) -> Series:
    """A series with a value for each label, those of its own figure where it has them."""
    values = dict(zip(own, series.values, strict=True))
    missing = Estimate.not_measured()
    return replace(series, values=tuple(values.get(label, missing) for label in labels))


def _by_label(
    first: DotPlot | Bars,
    called: Named,
    labels: Sequence[str],
    runs: Sequence[Series],
    beside: Sequence[Series],
) -> Figure:
    """The runs at each label that some run was measured at."""
    found = [i for i in range(len(labels)) if any(s.values[i].value is not None for s in runs)]
    kept = tuple(labels[i] for i in found)
    if len(runs) <= FEW_SERIES:
        series = (replace(s, values=tuple(s.values[i] for i in found)) for s in (*runs, *beside))
        return replace(first, id=called.id, title=called.title, labels=kept, series=tuple(series))
    values = [[series.values[i] for series in runs] for i in found]
    ends = [e.value for row in values for e in row if e.value is not None]
    return heat(
        kept,
        (series.name for series in runs),
        values,
        unit=first.kind,
        low=min([0.0, *ends]),
        high=max([1.0 if first.kind == "percent" else 1e-9, *ends]),
        note=first.note,
        id=called.id,
        title=called.title,
    )


def _histogram(first: Histogram, runs: Runs) -> Iterator[Figure]:
    """The share of values up to each edge, which is the same whatever the bins are."""
    same = {run: figure for run, figure in runs.items() if sum(figure.counts)}
    marks = {figure.marks for figure in runs.values()}
    yield Curves(
        id=first.id,
        title=first.title,
        note=f"The {CUMULATIVE}: the further to the right a curve rises, the higher the values. "
        f"{first.note if len({f.note for f in runs.values()}) == 1 else ''}".strip(),
        x_axis=first.axis,
        y_axis=CUMULATIVE,
        x_kind=first.kind,
        curves=tuple(
            Curve(
                name=run,
                x=figure.edges,
                y=tuple(n / sum(figure.counts) for n in accumulate(figure.counts, initial=0)),
            )
            for run, figure in same.items()
        ),
        marks=first.marks if len(marks) == 1 else (),
    )


def _boxes(first: Strip | Boxes, runs: Runs) -> Iterator[Figure]:
    """A box for each run: under every label, in a figure for each label, or over all labels."""
    labels = list(dict.fromkeys(label for figure in runs.values() for label in figure.labels))
    own = {run: _dots(figure) for run, figure in runs.items()}
    boxes: dict[str, Dots]
    if len(labels) <= (FEW_PANELS if len(labels) * len(runs) <= FEW_BOXES else MOST_PANELS):
        for k, label in enumerate(labels):
            boxes = {run: dots.get(label, []) for run, dots in own.items()}
            yield _box_figure(first, _named(first, label, k), boxes)
    elif len(labels) * len(runs) <= FEW_BOXES:
        boxes = {f"{label}: {run}": d.get(label, []) for label in labels for run, d in own.items()}
        yield _box_figure(first, _named(first), boxes)
    else:
        boxes = {
            run: [(f"{label}: {name}", value) for label in dots for name, value in dots[label]]
            for run, dots in own.items()
        }
        yield _box_figure(first, _named(first), boxes)


Dots = Sequence[tuple[str, float]]
"""Values with their names."""


def _dots(figure: Strip | Boxes) -> dict[str, Dots]:
    """The values of each row."""
    names = figure.names or tuple(("",) * len(row) for row in figure.values)
    rows = zip(figure.labels, names, figure.values, strict=True)
    return {label: list(zip(called, row, strict=True)) for label, called, row in rows}


def _box_figure(first: Strip | Boxes, called: Named, boxes: Mapping[str, Dots]) -> Boxes:
    return Boxes(
        id=called.id,
        title=called.title,
        kind=first.kind,
        axis=first.axis,
        labels=tuple(boxes),
        values=tuple(tuple(value for _, value in dots) for dots in boxes.values()),
        names=tuple(tuple(name for name, _ in dots) for dots in boxes.values()),
        note=first.note,
    )


def _maps(first: HeatMap, runs: Runs) -> Iterator[Figure]:
    """One map after the other, all on one scale."""
    low, high = min(f.low for f in runs.values()), max(f.high for f in runs.values())
    for k, (run, figure) in enumerate(list(runs.items())[:FEW_MAPS]):
        called = _named(first, run, k)
        yield replace(figure, id=called.id, title=called.title, low=low, high=high)


OVERLAYS: Mapping[type, Callable[[Any, Runs], Iterable[Figure]]] = {
    Bars: _labelled,
    Boxes: _boxes,
    Curves: _curves,
    DotPlot: _labelled,
    HeatMap: _maps,
    Histogram: _histogram,
    Strip: _boxes,
}
"""How a kind of figure holds several runs; a kind that is not here is left to each run's report."""
