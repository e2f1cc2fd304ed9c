"""What counts as a difference to a golden document, and how documents are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.reports.cells import Estimate
from sonde.reports.model import Report

from . import documents
from .documents import changes, settled
from .plain import Document, plain_report

NEAR = {"values": 1e-9, "intervals": 1e-9}


def report(value: float = 0.5, high: float = 0.9, **more: Estimate) -> Document:
    estimates = {"p": Estimate(value=value, low=0.1, high=high, n=4), "seconds": Estimate(1.5)}
    return plain_report(Report(title="t", estimates=estimates | more, counts={"facts": 4}))


def describe(golden: Document, found: Document) -> list[str]:
    return [str(change) for change in changes(golden, found, NEAR)]


def test_a_changed_number_is_named() -> None:
    assert describe(report(), report(0.25)) == ["values / estimates / p: [0.5, 4] → [0.25, 4]"]


def test_ends_of_intervals_are_apart() -> None:
    assert describe(report(), report(high=0.8)) == ["intervals / p: [0.1, 0.9] → [0.1, 0.8]"]


def test_a_further_estimate_is_new_and_moves_nothing_else() -> None:
    wider = report(q=Estimate(value=0.1, n=2))
    assert [(c.kind, c.place) for c in changes(report(), wider, NEAR)] == [
        ("new", "values / estimates / q")
    ]
    assert [c.kind for c in changes(wider, report(), NEAR)] == ["gone"]


def test_a_number_that_is_near_is_no_change_and_keeps_its_digits() -> None:
    near = report(0.5 + 1e-12)
    assert not describe(report(), near)
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
