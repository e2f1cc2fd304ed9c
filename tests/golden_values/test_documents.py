"""What counts as a difference to a golden document, and how documents are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.core.reports import Cell, Column, Curve, Curves, Estimate, Report, Table

from . import documents
from .documents import changes, settled
from .plain import Document, plain_report

NEAR = {"values": 1e-9, "intervals": 1e-9}


def report(value: float = 0.5, high: float = 0.9, note: str = "n", *more: Column) -> Document:
    estimate = Estimate(value=value, low=0.1, high=high, n=4)
    curve = Curve(name="c", x=(0.0, 1.0), y=(0.5, value), low=(0.0, 0.1), high=(0.6, high))
    columns = (Column(title="relation"), *more, Column(title="P@1"), Column(title="seconds"))
    row: tuple[Cell, ...] = ("P36", *(1 for _ in more), estimate, 1.5)
    made = Report(
        title="t",
        summary="s",
        estimates={"p": estimate},
        tables=(Table(id="by", title="By", columns=columns, rows=(row,)),),
        figures=(Curves(id="f", title="F", x_axis="x", y_axis="y", curves=(curve,)),),
        notes=(note,),
    )
    return plain_report(made)


def told(golden: Document, found: Document) -> list[str]:
    return [str(change) for change in changes(golden, found, NEAR)]


def test_a_changed_number_is_named_wherever_it_stands() -> None:
    assert told(report(), report(0.25)) == [
        "values / estimates / p: [0.5, 4] → [0.25, 4]",
        "values / figures / f / curves / 0 / y: [0.5, 0.5] → [0.5, 0.25]",
        "values / tables / by / 0 P36 / P@1: [0.5, 4] → [0.25, 4]",
    ]


def test_ends_of_intervals_and_words_stand_apart() -> None:
    assert told(report(), report(high=0.8, note="m")) == [
        "intervals / estimates / p: [0.1, 0.9] → [0.1, 0.8]",
        "intervals / figures / f / curves / 0 / high: [0.6, 0.9] → [0.6, 0.8]",
        "intervals / tables / by / 0 P36 / P@1: [0.1, 0.9] → [0.1, 0.8]",
        'words / notes / 0: "n" → "m"',
    ]


def test_a_further_column_or_estimate_is_new_and_moves_nothing_else() -> None:
    wider = report(0.5, 0.9, "n", Column(title="count", kind="count"))
    wider["values"]["estimates"]["q"] = [0.1, 2]
    found = changes(report(), wider, NEAR)
    assert [(c.kind, c.place) for c in found if not c.place.startswith("words")] == [
        ("new", "values / estimates / q"),
        ("new", "values / tables / by / 0 P36 / count"),
    ]
    assert [c.kind for c in changes(wider, report(), NEAR) if c.place.startswith("values")] == [
        "gone",
        "gone",
    ]


def test_a_number_that_is_near_is_no_change_and_keeps_its_digits() -> None:
    near = report(0.5 + 1e-12)
    assert not told(report(), near)
    assert settled(report()["values"], near["values"], 1e-9) == report()["values"]
    assert settled(report()["values"], report(0.6)["values"], 1e-9) == report(0.6)["values"]


def test_a_document_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "FOLDER", tmp_path)
    documents.save("one", report())
    assert documents.load("one") == json.loads(json.dumps(report()))
    assert '"p": [0.5,4]' in (tmp_path / "one.json").read_text()
    assert documents.load("two") is None
