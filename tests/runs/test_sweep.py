"""A sweep: every cell a run of its own, gone on with where it stopped, read side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import sonde
from sonde.core.errors import StoreError, UsageError
from sonde.runs.sweep import cells
from tests.worlds import numbered

from .world import Listing

LAMA = sonde.probe("lama", answer="score")


def test_a_grid_has_every_combination_and_leaves_other_settings_alone() -> None:
    grid = list(cells(LAMA, {"capitals": (True, False), "punctuation": (True, False)}))
    assert [tuple(values.values()) for values, _ in grid] == [
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert all(probe.answer == "score" for _, probe in grid)  # type: ignore[attr-defined]


def test_every_cell_is_a_run_that_is_not_asked_again(tmp_path: Path) -> None:
    over = {"capitals": (True, False)}
    made = sonde.sweep(LAMA, Listing(), numbered(), over, tmp_path / "out")
    assert [run.path.name for _, run in made.cells] == ["capitals=True", "capitals=False"]
    again = Listing()
    sonde.sweep(LAMA, again, numbered(), {"capitals": (True, False, False)}, tmp_path / "out")
    assert again.asked == []
    there = sonde.open_sweep(tmp_path / "out")
    assert [values for values, _ in there.cells] == [{"capitals": True}, {"capitals": False}]


def test_the_report_has_the_headlines_of_every_cell(tmp_path: Path) -> None:
    over = {"capitals": (True, False)}
    made = sonde.sweep(LAMA, Listing(), numbered(), over, tmp_path / "out")
    report = made.report()
    name = "p_at_1.mean_over_relations"
    for _, run in made.cells:
        value = run.report().estimates[name]
        assert report.estimates[f"{name}.cell.{run.path.name.replace('=', '-')}"] == value
    [table] = report.tables
    titles = [column.title for column in table.columns]
    assert titles[0] == "capitals" and len(set(titles)) == len(titles)
    assert [row[0] for row in table.rows] == ["True", "False"]
    assert report.figures[0].labels == ("capitals=True", "capitals=False")  # type: ignore[union-attr]


def test_what_only_reads_needs_no_sweep() -> None:
    with pytest.raises(UsageError, match=r"how answers are read needs no sweep \(k\)"):
        list(cells(LAMA, {"k": (5, 10)}))
    with pytest.raises(UsageError, match="no setting 'colour'"):
        list(cells(LAMA, {"colour": ("red",)}))


def test_a_folder_without_a_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no sweep"):
        sonde.open_sweep(tmp_path)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    over = {"capitals": (True,)}
    out = sonde.run(LAMA, Listing(), numbered(), tmp_path / "run").path
    before = sorted(path.name for path in out.iterdir())
    with pytest.raises(StoreError, match="not empty and holds no sweep"):
        sonde.sweep(LAMA, Listing(), numbered(), over, out)
    assert sorted(path.name for path in out.iterdir()) == before
    sonde.sweep(LAMA, Listing(), numbered(), over, tmp_path / "out")
    other = sonde.probe("belief", answer="score")
    with pytest.raises(StoreError, match="holds a sweep of lama, not of belief"):
        sonde.sweep(other, Listing(), numbered(), {"bias": (True,)}, tmp_path / "out")
