"""The report as JSON, held to a golden file."""

from __future__ import annotations

import json
from pathlib import Path

from sonde.core.reports import Estimate, Report
from sonde.reporting.render.json import as_json

from .sample import PROVENANCE, lama

GOLDEN = Path(__file__).parent / "golden" / "lama.json"


def test_the_json_of_a_report_is_as_it_always_was() -> None:
    made = json.dumps(as_json(lama(10), PROVENANCE), indent=2, ensure_ascii=False)
    assert made + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_keys_are_sorted_at_every_depth() -> None:
    made = as_json(lama(10), PROVENANCE)
    assert json.dumps(made) == json.dumps(made, sort_keys=True)


def test_floats_are_not_rounded() -> None:
    third = Estimate(value=1 / 3, low=0.1 + 0.2, high=2 / 3, n=3)
    made = as_json(Report(title="R", summary="", estimates={"x": third}), {})
    assert made["estimates"] == {"x": {"value": 1 / 3, "low": 0.1 + 0.2, "high": 2 / 3, "n": 3}}


def test_what_was_not_measured_is_null() -> None:
    estimates = {"x": Estimate.not_measured()}
    made = as_json(Report(title="R", summary="", estimates=estimates), {})
    assert made["estimates"] == {"x": {"value": None, "low": None, "high": None, "n": 0}}


def test_provenance_of_any_kind_becomes_plain_data() -> None:
    provenance = {"path": Path("/a"), "sizes": (1, 2), "names": {"b", "a"}, "bad": float("nan")}
    made = as_json(Report(title="R", summary="", estimates={}), provenance)
    assert made["provenance"] == {"bad": None, "names": ["a", "b"], "path": "/a", "sizes": [1, 2]}
    json.dumps(made, allow_nan=False)
