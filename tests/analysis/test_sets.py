"""`sets`: the likeliest answers of facts with several right ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sonde
from sonde.core.facts import Dataset
from sonde.core.reports import Report
from sonde.core.scores import Normalise, option_logps
from sonde.models.scripted import Scripted
from sonde.models.torch.causal.model import CausalModel
from tests.rows import rows_of
from tests.tiny import Load
from tests.worlds import dataset_of, entity, fact, relation

SPOKEN = relation("P37", "In [X] they speak [Y].", "[Y] is spoken in [X].", label="language")


def spoken(merged: bool = True) -> Dataset:
    """Two countries with two languages each, one with one; the two as facts of one, or of two."""
    both = [("Belgium", "Dutch", "French"), ("Peru", "Quechua", "Spanish")]
    one = [fact("P37", "Laos", "Lao"), fact("P37", "Chad", "Arabic")]
    if merged:
        return dataset_of([*one, *(fact("P37", *each) for each in both)], SPOKEN)
    rows = [
        fact("P37", entity(land, id=f"{land}!"), name, id=f"{land}-{name}")
        for land, *names in both
        for name in names
    ]
    return dataset_of([*one, *rows], SPOKEN)


def report(data: Dataset, tmp_path: Path, probe: str = "lama", **settings: Any) -> Report:
    """Of a model that knows the first language alone; the others are equally likely."""
    known = {f.id: f.objects[0].name for f in data.facts("P37")}
    model = Scripted(answers=known)
    return sonde.run(sonde.probe(probe, **settings), model, data, tmp_path / "run").report()


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize(
    ("probe", "settings"),
    [
        ("lama", {"answer": "score"}),
        ("lama", {"answer": "fill"}),
        ("belief", {"answer": "score", "bias": False, "draws": 50}),
    ],
)
def test_of_two_right_answers_one_stands_first(
    probe: str, settings: dict[str, Any], merged: bool, tmp_path: Path
) -> None:
    made = report(spoken(merged), tmp_path, probe, **settings)
    found = {
        name: made.estimates[f"{name}.mean_over_relations"]
        for name in ("set_precision", "set_recall", "set_f1", "set_whole", "average_precision")
    }
    assert {name: e.n for name, e in found.items()} == dict.fromkeys(found, 2)
    assert found["set_precision"].value == found["set_recall"].value == 0.5
    assert found["set_f1"].value == 0.5 and found["set_whole"].value == 0.0
    # the other is tied with four wrong ones, and stands behind them
    assert found["average_precision"].value == pytest.approx((1 + 2 / 6) / 2)
    assert made.estimates["set_f1.relation.P37"].value == 0.5
    assert made.counts["facts_with_several_answers"] == 2


def test_facts_with_one_answer_each_have_no_sets(tmp_path: Path) -> None:
    data = dataset_of([fact("P37", "Laos", "Lao"), fact("P37", "Chad", "Arabic")], SPOKEN)
    made = report(data, tmp_path, answer="score")
    assert not [name for name in made.estimates if name.startswith("set_")]


@pytest.mark.parametrize(("probe", "settings"), [("ic-lke", {"n": 2}), ("framing", {})])
def test_where_other_right_answers_are_no_options_nothing_is_said(
    probe: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    made = report(spoken(), tmp_path, probe, **settings)
    assert not [name for name in made.estimates if name.startswith("set_")]


@pytest.mark.parametrize(("normalise", "way"), [("none", "summed"), ("tokens", "mean")])
def test_options_are_compared_as_the_probe_compares_them(
    normalise: Normalise, way: str, tiny: Load, tmp_path: Path
) -> None:
    data = spoken()
    probe = sonde.probe("lama", answer="score", normalise=normalise)
    run = sonde.run(probe, CausalModel(tiny("llama")), data, tmp_path / "run")
    right = {f.id: {o.name for o in f.objects} for f in data.facts("P37") if len(f.objects) > 1}
    found: dict[str, list[float]] = {}
    for row in rows_of(run.answers()):
        if row.key.fact in right:
            options = row.answer.options  # type: ignore[union-attr]
            scores = option_logps(row.answer, normalise)  # type: ignore[arg-type]
            hits = [options[i] in right[row.key.fact] for i in np.argsort(-scores)]
            shares = np.cumsum(hits) / np.arange(1, len(hits) + 1)
            found.setdefault(row.key.fact, []).append(float(shares[hits].mean()))
    report = run.report()
    wanted = np.mean([np.mean(own) for own in found.values()])
    made = report.estimates["average_precision.mean_over_relations"]
    assert made.value == pytest.approx(wanted) and made.n == len(right)
    assert report.table("sets").note.startswith(f"By {way} log-probability. n is")
