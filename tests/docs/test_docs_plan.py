"""The names of a plan that programs rely on, as documented."""

from __future__ import annotations

from pathlib import Path

import sonde
from sonde.cli.plan import as_json
from sonde.models.load import load
from sonde.models.options import LoadOptions
from tests import tiny

from .pages import DOCS, first_cells, rows

PAGE = DOCS / "scale-out.md"


def test_the_json_plan_has_the_documented_keys(tmp_path: Path) -> None:
    model = load(f"hf:{tiny.bert(tmp_path / 'model')}", LoadOptions(device="cpu"))
    dataset = sonde.dataset("atlas", relations=("P30",), limit=2)
    printed = as_json(sonde.plan(sonde.probe("lama"), model, dataset, seconds=0.01))
    assert sorted(printed) == sorted(first_cells(PAGE, "JSON of a plan"))
    assert sorted(printed["cost"]) == sorted(first_cells(PAGE, "Tokens"))
    words = {row[0].strip("`"): row[1] for row in rows(PAGE, "JSON of a plan")}
    for part in ("memory", "time", "pace"):
        for name in printed[part]:
            assert f"`{name}`" in words[part], f"scale-out.md does not mention {part}.{name}"
    for name in printed["relations"][0]:
        assert f"`{name}`" in words["relations"]
