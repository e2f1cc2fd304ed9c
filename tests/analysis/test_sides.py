"""Reports of several runs side by side: every number is one of a single report."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.analysis.runs import UNKNOWN, Compared, Lineage
from sonde.analysis.sides.figures import FEW_SERIES, OVERLAYS, side_figures
from sonde.analysis.sides.report import FEW_RUNS, ordered, side_tables, with_sides
from sonde.core.reports import (
    Bars,
    Boxes,
    Column,
    Curve,
    Curves,
    DotPlot,
    Estimate,
    Figure,
    Headline,
    HeatMap,
    HeatStrip,
    Histogram,
    Report,
    Series,
    Strip,
    Table,
)
from tests.analysis.world import run

NAMES = tuple("abcdefghij")
SHARES = st.floats(0, 1, allow_nan=False).map(lambda value: round(value, 4))


def estimate(value: float | None, n: int = 9) -> Estimate:
    """An estimate with an interval of some width."""
    ends = (None, None) if value is None else (value - 0.1, value + 0.1)
    return Estimate(value=value, low=ends[0], high=ends[1], n=n)


def named(*names: str, **lineage: Any) -> list[Compared]:
    """Runs of one pair, by name."""
    return [replace(run(name, [[[0]]]), lineage=Lineage(**lineage)) for name in names]


def table(rows: dict[str, list[float | None]], *titles: str, **more: Any) -> Table:
    """A table of named rows with an estimate under each title."""
    columns = (Column(title="task"), *(Column(title=title, kind="percent") for title in titles))
    cells = tuple((name, *map(estimate, values)) for name, values in rows.items())
    return Table(**({"id": "t", "title": "Tasks", "columns": columns, "rows": cells} | more))


def report(*tables: Table, figures: tuple[Figure, ...] = (), **more: Any) -> Report:
    """A report of some tables and figures."""
    return Report(**({"title": "r", "estimates": {}, "tables": tables, "figures": figures} | more))


def laid(*reports: Report) -> list[Table]:
    """The tables of runs that have these reports."""
    return list(side_tables(named(*NAMES[: len(reports)]), reports))


def cells(table: Table) -> list[Estimate]:
    """The estimates in a table."""
    return [cell for row in table.rows for cell in row if isinstance(cell, Estimate)]


@st.composite
def tables(draw: st.DrawFn) -> list[Table]:
    """The same table in several runs, each with values of its own; all rows are measured."""
    rows = [f"row {i}" for i in range(draw(st.integers(1, 14)))]
    titles = NAMES[: draw(st.integers(1, 3))]
    runs = draw(st.integers(2, 8))
    return [
        table({row: [draw(SHARES) for _ in titles] for row in rows}, *titles) for _ in range(runs)
    ]


@given(tables())
def test_every_number_of_a_shared_table_is_shown_once_however_many_runs_there_are(
    given_tables: list[Table],
) -> None:
    shown = laid(*[report(each) for each in given_tables])
    together = [cell for table in shown for cell in cells(table)]
    apart = [cell for table in given_tables for cell in cells(table)]
    assert sorted(map(repr, together)) == sorted(map(repr, apart))
    assert len({table.id for table in shown}) == len(shown)


def test_few_runs_stand_in_columns() -> None:
    one = table({"sentence": [0.1], "question": [0.2]}, "accuracy")
    two = table({"sentence": [0.3], "question": [0.4]}, "accuracy")
    [made] = laid(report(one), report(two))
    assert made.title == "Tasks: accuracy, run by run"
    assert [column.title for column in made.columns] == ["task", "a", "b"]
    assert made.rows == (
        ("sentence", estimate(0.1), estimate(0.3)),
        ("question", estimate(0.2), estimate(0.4)),
    )


def test_many_runs_stand_in_rows_with_what_is_known_of_their_models() -> None:
    runs = named(*NAMES[: FEW_RUNS + 1], family="bloomz", size=560_000_000, stage="fine-tuned")
    own = table({"sentence": [0.1], "question": [0.2]}, "accuracy")
    [made] = side_tables(runs, [report(own)] * len(runs))
    titles = ["run", "family", "billions", "stage", "sentence", "question"]
    assert [column.title for column in made.columns] == titles
    assert made.rows[0] == ("a", "bloomz", 0.56, "fine-tuned", estimate(0.1), estimate(0.2))
    assert [row[0] for row in made.rows] == list(NAMES[: FEW_RUNS + 1])


def test_several_numbers_stand_under_each_other_and_say_what_they_are() -> None:
    own = table({"nothing": [0.1, None], "right name": [0.2, 0.3]}, "accuracy", "moved")
    [made] = laid(report(own), report(own))
    assert [row[:2] for row in made.rows] == [
        ("accuracy", "nothing"),
        ("accuracy", "right name"),
        ("moved", "right name"),
    ]


def test_of_a_long_table_the_first_number_is_shown_and_others_are_searched() -> None:
    own = table({f"row {i}": [0.1, 0.2] for i in range(15)}, "accuracy", "mass")
    first, more = laid(report(own), report(own))
    assert (first.title, first.browsable) == ("Tasks: accuracy, run by run", False)
    assert (more.id, more.browsable) == ("t-more", True)
    assert more.title == "Tasks: further numbers: mass, run by run"


@pytest.mark.parametrize(
    "other",
    [
        table({"other": [0.1]}, "accuracy"),
        table({"sentence": [0.1]}, "mass"),
        table({"sentence": [0.1]}, "accuracy", id="u"),
        table({"sentence": [0.1]}, "accuracy", browsable=True),
    ],
    ids=["other rows", "other columns", "another id", "to be searched"],
)
def test_tables_that_are_not_the_same_are_left_to_each_run(other: Table) -> None:
    own = table({"sentence": [0.1]}, "accuracy")
    assert laid(report(other), report(own)) == []


def test_in_a_run_without_a_table_nothing_was_measured() -> None:
    own = table({"sentence": [0.1]}, "accuracy")
    [made] = laid(report(), report(own), report(own))
    assert made.rows == (("sentence", None, estimate(0.1), estimate(0.1)),)
    assert laid(report(), report(), report(own)) == []


def test_rows_that_are_only_numbered_are_left_to_each_run() -> None:
    columns = (Column(title="bin", kind="count"), Column(title="accuracy", kind="percent"))
    own = Table(id="t", title="T", columns=columns, rows=((1, 0.5), (2, 0.7)))
    assert laid(report(own), report(own)) == []
    measured = replace(own, rows=((1, estimate(0.5)), (5, estimate(0.7))))
    assert len(laid(report(measured), report(measured))) == 1


def test_a_row_that_is_given_and_not_measured_is_left_out() -> None:
    columns = (Column(title="verdict"), Column(title="true ones", kind="percent"))
    rows = (("option", estimate(0.4)), ("always True", 1.0))
    own = Table(id="t", title="T", columns=columns, rows=rows)
    [made] = laid(report(own), report(own))
    assert [row[0] for row in made.rows] == ["option"]


def test_headlines_have_their_control_under_them_and_units_apart() -> None:
    lines = (
        Headline(label="Accuracy", estimate="acc", control="majority", control_label="commonest"),
        Headline(label="Bias", estimate="bias", kind="number"),
        Headline(label="Only here", estimate="own"),
    )
    numbers = {"acc": estimate(0.5), "majority": estimate(0.1), "bias": estimate(0.2)}
    first = report(headlines=lines, estimates=numbers | {"own": estimate(0.9)})
    second = report(headlines=lines[:2], estimates=numbers)
    shares, others = laid(first, second)
    assert [row[0] for row in shares.rows] == ["Accuracy", "… commonest"]
    assert others.rows == (("Bias", estimate(0.2), estimate(0.2)),)
    assert (shares.id, others.id) == ("headlines", "headlines-number")


@pytest.mark.parametrize("runs", [2, FEW_RUNS + 1])
def test_controls_of_one_name_stand_apart_where_they_are_different_numbers(runs: int) -> None:
    lines = tuple(
        Headline(
            label=f"{task}, mean", estimate=task, control=f"{task}.c", control_label="commonest"
        )
        for task in ("Sentences", "Questions")
    )
    numbers = {"Sentences": 0.5, "Sentences.c": 0.1, "Questions": 0.6, "Questions.c": 0.2}
    own = report(headlines=lines, estimates={k: estimate(v) for k, v in numbers.items()})
    [made] = laid(*[own] * runs)
    assert [cell.value for cell in cells(made)].count(0.1) == runs
    assert [cell.value for cell in cells(made)].count(0.2) == runs
    told = [row[0] for row in made.rows] if runs == 2 else [c.title for c in made.columns]
    assert told[-1] == "… commonest (Questions, mean)"


def overlaid(*figures: Figure) -> list[Figure]:
    """The figures of runs that have these."""
    reports = {name: report(figures=(f,)) for name, f in zip(NAMES, figures, strict=False)}
    return list(side_figures(reports))


def curves(name: str, *y: float, **more: Any) -> Curves:
    """A figure of one curve."""
    drawn = (Curve(name=name, x=tuple(map(float, range(len(y)))), y=y),)
    return Curves(
        **({"id": "f", "title": "F", "x_axis": "x", "y_axis": "y", "curves": drawn} | more)
    )


def test_a_curve_of_each_run_is_drawn_with_the_place_that_it_marks() -> None:
    one = curves("model", 0.1, 0.2, marks=(("95% with 5", 5.0),))
    two = curves("model", 0.1, 0.3, marks=(("95% with 2", 2.0),))
    [made] = overlaid(one, two)
    assert isinstance(made, Curves)
    assert [(c.name, c.y) for c in made.curves] == [("a", (0.1, 0.2)), ("b", (0.1, 0.3))]
    assert made.marks == (("a: 95% with 5", 5.0), ("b: 95% with 2", 2.0))


@pytest.mark.parametrize(("parts", "ids"), [(2, ["f", "f-p1"]), (4, ["f"])])
def test_few_curves_become_a_figure_each_and_of_many_the_first_does(
    parts: int, ids: list[str]
) -> None:
    drawn = tuple(Curve(name=f"p{i}", x=(0.0,), y=(float(i),)) for i in range(parts))
    made = overlaid(*[curves("", curves=drawn)] * 2)
    assert [figure.id for figure in made] == ids
    assert all(len(figure.curves) == 2 for figure in made if isinstance(figure, Curves))
    assert made[0].title == "F: p0"


def dots(values: dict[str, dict[str, float]], kind: type = DotPlot) -> DotPlot | Bars:
    """A figure of series, each by label."""
    labels = tuple(next(iter(values.values())))
    series = tuple(
        Series(name=name, values=tuple(estimate(of[label]) for label in labels))
        for name, of in values.items()
    )
    made: DotPlot | Bars = kind(id="f", title="F", axis="x", labels=labels, series=series)
    return made


def test_runs_are_series_whatever_the_order_of_their_labels_and_a_shared_control_stands_once() -> (
    None
):
    control = {"majority control": {"P1": 0.3, "P2": 0.3}}
    one = dots({"model": {"P1": 0.1, "P2": 0.2}} | control)
    two = dots({"model": {"P2": 0.5, "P1": 0.4}} | control)
    [made] = overlaid(one, two)
    assert isinstance(made, DotPlot) and made.labels == ("P1", "P2") and made.title == "F"
    assert {s.name: [e.value for e in s.values] for s in made.series} == {
        "a": [0.1, 0.2],
        "b": [0.4, 0.5],
        "majority control": [0.3, 0.3],
    }


def test_what_happens_to_be_equal_is_no_control() -> None:
    both = dots({"sentence": {"P1": 0.1}, "statement": {"P1": 0.0}})
    first, second = overlaid(both, both)
    for made in (first, second):
        assert isinstance(made, DotPlot) and [s.name for s in made.series] == ["a", "b"]


def test_a_label_that_a_run_lacks_was_not_measured_there() -> None:
    [made] = overlaid(dots({"model": {"P1": 0.1}}, Bars), dots({"model": {"P2": 0.2}}, Bars))
    assert isinstance(made, Bars) and made.labels == ("P1", "P2")
    assert [e.value for e in made.series[0].values] == [0.1, None]


def test_a_label_that_no_run_was_measured_at_is_left_out() -> None:
    both = dots({"sentence": {"P1": 0.1, "P2": 0.2}, "written": {"P1": 0.3, "P2": 0.4}})
    alone = replace(both.series[1], values=(Estimate.not_measured(), both.series[1].values[1]))
    own = replace(both, series=(both.series[0], alone))
    first, second = overlaid(own, own)
    assert isinstance(first, DotPlot) and first.labels == ("P1", "P2")
    assert isinstance(second, DotPlot) and second.labels == ("P2",)


def test_more_runs_than_colours_become_a_heat_map() -> None:
    runs = [dots({"model": {"P1": i / 10, "P2": 0.5}}) for i in range(FEW_SERIES + 1)]
    [made] = overlaid(*runs)
    assert isinstance(made, HeatMap) and made.columns == NAMES[: FEW_SERIES + 1]
    assert made.values[0] == tuple(i / 10 for i in range(FEW_SERIES + 1))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(1, 5))
def test_histograms_become_shares_up_to_each_edge(counts: list[int], width: int) -> None:
    edges = tuple(float(width * i) for i in range(len(counts) + 1))
    own = Histogram(id="f", title="F", axis="x", edges=edges, counts=tuple(counts))
    sure = Histogram(id="f", title="F", axis="x", edges=(0.0, 1.0), counts=(3,))
    [made] = overlaid(sure, own)
    assert isinstance(made, Curves)
    assert made.curves[0].y == (0.0, 1.0)
    for curve in made.curves[1:]:
        assert curve.x == edges and curve.y[-1] == 1.0 and sorted(curve.y) == list(curve.y)
    assert len(made.curves) == (2 if sum(counts) else 1)


def strip(*labels: str) -> Strip:
    """Two dots a row."""
    names = tuple((f"{label} t1", f"{label} t2") for label in labels)
    values = tuple((0.1, 0.2) for _ in labels)
    return Strip(id="f", title="F", axis="x", labels=labels, values=values, names=names)


@pytest.mark.parametrize(
    ("rows", "runs", "boxes"),
    [(1, 3, [3]), (4, 3, [3] * 4), (6, 3, [18]), (8, 4, [4] * 8), (20, 3, [3])],
)
def test_dots_become_boxes_of_the_runs_and_none_is_lost(
    rows: int, runs: int, boxes: list[int]
) -> None:
    own = strip(*(f"P{i}" for i in range(rows)))
    made = overlaid(*[own] * runs)
    assert all(isinstance(figure, Boxes) for figure in made)
    assert [len(figure.labels) for figure in made if isinstance(figure, Boxes)] == boxes
    dots = [v for f in made if isinstance(f, Boxes) for row in f.values for v in row]
    assert len(dots) == 2 * rows * runs
    assert len({figure.id for figure in made}) == len(made)


def test_heat_maps_follow_each_other_on_one_scale() -> None:
    first = HeatMap(id="f", title="F", rows=("r",), columns=("c",), values=((0.5,),))
    made = overlaid(first, replace(first, high=2.0))
    told = [(figure.title, figure.high) for figure in made if isinstance(figure, HeatMap)]
    assert told == [("F: a", 2.0), ("F: b", 2.0)]


def test_every_kind_of_figure_but_coloured_texts_has_a_way_to_hold_several_runs() -> None:
    kinds = {DotPlot, Curves, Histogram, Strip, Boxes, HeatMap, Bars, HeatStrip}
    assert set(OVERLAYS) == kinds - {HeatStrip}


def test_a_figure_is_drawn_of_the_runs_that_have_it() -> None:
    reports = {name: report(figures=(curves("m", 0.1),)) for name in "bc"}
    [made] = side_figures({"a": report(), **reports})
    assert isinstance(made, Curves) and [curve.name for curve in made.curves] == ["b", "c"]
    assert list(side_figures({"a": report(), "b": reports["b"]})) == []


def test_figures_of_another_kind_or_other_labels_are_left_to_each_run() -> None:
    assert overlaid(curves("m", 0.1), dots({"m": {"P1": 0.1}})) == []
    assert overlaid(curves("m", 0.1, x_labels=("a",)), curves("m", 0.1, x_labels=("b",))) == []


def lineage(name: str, family: str, size: int | None, stage: str = "base") -> Compared:
    [made] = named(name, family=family, size=size, stage=stage)
    return made


def test_runs_of_a_family_stand_together_from_the_smallest_and_the_base_first() -> None:
    runs = [
        lineage("pythia-12b", "pythia", 12),
        lineage("own", UNKNOWN, None),
        lineage("llama-13b-chat", "llama", 13, "fine-tuned"),
        lineage("pythia-1b", "pythia", 1),
        lineage("llama-13b", "llama", 13),
    ]
    names = [run.name for run in ordered(runs)]
    assert names == ["pythia-1b", "pythia-12b", "own", "llama-13b", "llama-13b-chat"]


@given(st.permutations([(f, s) for f, s in product(("x", "y", UNKNOWN), (1, 2, None))]))
def test_the_order_of_runs_loses_none_and_keeps_unknown_ones_in_their_order(
    known: list[tuple[str, int | None]],
) -> None:
    runs = [lineage(f"{i}", family, size) for i, (family, size) in enumerate(known)]
    after = ordered(runs)
    assert sorted(run.name for run in after) == sorted(run.name for run in runs)
    for family in ("x", "y"):
        own = [i for i, run in enumerate(after) if run.lineage.family == family]
        assert own == list(range(own[0], own[0] + 3))
        assert [after[i].lineage.size for i in own] == [1, 2, None]
    alone = [run.name for run in after if run.lineage.family == UNKNOWN]
    assert alone == sorted(alone, key=int)


def test_what_the_report_shows_already_is_not_shown_again() -> None:
    own = report(table({"sentence": [0.1]}, "accuracy"), figures=(curves("model", 0.1),))
    runs = [replace(run, report=own) for run in named("a", "b")]
    before = report(table({}, id="t"), figures=(curves("before", 0.5),))
    made = with_sides(before, runs)
    assert (made.tables, made.figures) == (before.tables, before.figures)
    assert with_sides(report(), runs).tables[0].id == "t"


def test_runs_without_reports_are_left_as_they_are() -> None:
    before = report(table({"sentence": [0.1]}, "accuracy"))
    assert with_sides(before, named("a", "b")) is before
