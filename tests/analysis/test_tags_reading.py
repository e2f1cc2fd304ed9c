"""Accuracy by tags of relations, in the report of any probe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sonde
from sonde.analysis.readings import has_tags
from sonde.analysis.readings.tags import tagged
from sonde.core.facts import Dataset
from sonde.models.scripted import Scripted
from tests.worlds import dataset_of, fact, relation, world

TAGS = {"r0": ("a", "b"), "r1": ("a",), "r2": ("b", "x & y"), "r3": ()}
KNOWN = {"r0": 4, "r1": 1, "r2": 2, "r3": 0}
"""Of four facts each."""


def places() -> Dataset:
    facts = [fact(r, f"{r} {n}", f"{r} o{n % 2}", id=f"{r}:{n}") for r in TAGS for n in range(4)]
    relations = (replace(relation(r, "[X] [Y].", "[X], [Y]."), tags=TAGS[r]) for r in TAGS)
    return dataset_of(facts, *relations)


def report(probe: str, data: Dataset, out: Path) -> sonde.Report:
    right = {f"{r}:{n}": f"{r} o{n % 2}" for r, known in KNOWN.items() for n in range(known)}
    settings = {"answer": "score"} | ({"draws": 50} if probe == "belief" else {})
    model = Scripted(answers=right)
    return sonde.run(sonde.probe(probe, **settings), model, data, out=out).report()


@pytest.mark.parametrize("probe", ["lama", "belief"])
def test_a_tag_has_the_mean_over_its_relations(probe: str, tmp_path: Path) -> None:
    found = report(probe, places(), tmp_path / "run")
    shares = {r: known / 4 for r, known in KNOWN.items()}
    for end, ids in (("a", "r0 r1"), ("b", "r0 r2"), ("x-y", "r2"), ("no-tag", "r3")):
        estimate = found.estimates[f"tags.accuracy.tag.{end}"]
        assert estimate.value == pytest.approx(np.mean([shares[id] for id in ids.split()]))
        assert estimate.n == 4 * len(ids.split())
        assert estimate.ends[0] <= (estimate.value or 0.0) <= estimate.ends[1]
    rows = {row[0]: row[1] for row in found.table("tags").rows}
    assert rows == {"all relations": 4, "a": 2, "b": 2, "x & y": 1, "(no tag)": 1}
    assert found.figure("tags").labels[-1] == "(no tag)"  # type: ignore[union-attr]


def test_the_interval_is_that_of_a_mean_over_these_relations_alone(tmp_path: Path) -> None:
    every = report("lama", places(), tmp_path / "every").estimates
    some = places().select(replace(places().selection, relations=("r0", "r1")))
    alone = report("lama", some, tmp_path / "some").estimates
    assert every["tags.accuracy.tag.a"] == alone["p_at_1.mean_over_relations"]


def test_nothing_is_read_where_no_relation_that_is_asked_has_a_tag() -> None:
    assert not has_tags(world())
    assert has_tags(places())
    assert not has_tags(places().select(replace(places().selection, relations=("r3",))))
    assert tagged(places().relations)["(no tag)"] == ("r3",)
