"""Tiny files in the forms of the public sources, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lama(folder: Path) -> Path:
    """Two relations; Ann speaks two languages in two rows, and Bea has no identifier."""
    relation = {"template": "[X] speaks [Y] .", "label": "language", "type": "N-M"}
    other = {"template": "[X] lives in [Y] .", "label": "home", "type": "N-1"}
    lines(folder / "relations.jsonl", [{"relation": "P1", **relation}, {"relation": "P2", **other}])
    lines(
        folder / "facts" / "P1.jsonl",
        [
            row("Ann", "Q1", "Dutch", "Q10"),
            row("Bea", None, "Dutch", "Q10"),
            row("Ann", "Q1", "Greek", "Q11"),
        ],
    )
    lines(folder / "facts" / "P2.jsonl", [row("Ann", "Q1", "Ghent", "Q20")])
    return folder


def row(subject: str, subject_id: str | None, object: str, object_id: str) -> dict[str, Any]:
    ids = {"sub_uri": subject_id, "obj_uri": object_id}
    return {"sub_label": subject, "obj_label": object, **ids}


def pararel(folder: Path) -> Path:
    """P1 has a repeated pattern and one without a slot; P2 has none, and P9 has no facts."""
    texts = ("[X] speaks [Y].", "[Y] is spoken by [X].", "[X]  speaks [Y].", "[X] speaks.")
    lines(folder / "P1.jsonl", [{"pattern": text} for text in texts])
    lines(folder / "P9.jsonl", [{"pattern": "[X] eats [Y]."}])
    return folder


def lpaqa(folder: Path) -> Path:
    lines(folder / "mine" / "P1.jsonl", [{"template": "[X] , [Y] speaker", "weight": 0.75}])
    lines(
        folder / "paraphrase" / "P1.jsonl",
        [
            {"template": "[X] talks [Y] .", "weight": 0.25},
            {"template": "[X] , [Y] speaker", "weight": 0.5},
        ],
    )
    lines(folder / "top1_relations.jsonl", [{"relation": "P1", "template": "[X] uses [Y] ."}])
    return folder


def aliases(folder: Path) -> Path:
    """Ann is also Annie; she speaks Q12 too, which has names, and Q13, which has none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "en.tsv").write_text("Q1\tAnn\tAnnie\nQ10\tFlemish\nQ12\tIrish\tGaelic\nQ77\tZed\n")
    (folder / "multi_valued.tsv").write_text("Q1\tP1\tQ10 Q12 Q13\nQ5\tP1\tQ10\n")
    return folder
