"""`bins`: accuracy by the numbers of facts, for every probe that judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.analysis.readings.bins import BINS, LEAST, quantile_edges
from sonde.core.facts import Dataset, Fact
from sonde.core.reports import Curves, Report
from sonde.models.scripted import Scripted
from tests.worlds import dataset_of, entity, fact, question, relation

PLACES = ("Ulm", "Oslo", "Rome", "Lima")
BORN = relation("P19", "[X] was born in [Y].", question("P19-q", "Where was [X] born?"))
DIED = relation("P20", "[X] died in [Y].", question("P20-q", "Where did [X] die?"))


def numbered(relation: str, number: int, **numbers: float) -> Fact:
    place = PLACES[number % len(PLACES)]
    plain = fact(relation, entity(f"person {number}", id=f"{relation}{number}"), place)
    return replace(plain, numbers=numbers)


def people(count: int = 40) -> Dataset:
    """In each relation popularity rises with the person's number; height says nothing."""
    made = [
        numbered(id, i, popularity=float(10 + i**3), **{"height, cm": 150.0 + i * 7 % 40})
        for id in ("P19", "P20")
        for i in range(count)
    ]
    return dataset_of(made, BORN, DIED)


def report(probe: str, tmp_path: Path, data: Dataset, known: int, **settings: Any) -> Report:
    """Of a model that knows the facts from some number on."""
    answers = {
        f.id: f.objects[0].name
        for r in data.relations
        for f in data.facts(r.id)
        if int(f.subject.name.split()[1]) >= known
    }
    run = sonde.run(sonde.probe(probe, **settings), Scripted(answers=answers), data, tmp_path / "r")
    return run.report()


@pytest.mark.parametrize(
    ("probe", "settings"),
    [
        ("lama", {"answer": "score"}),
        ("belief", {"answer": "score", "bias": False, "draws": 50}),
        ("belief-icl", {"style": "qa", "samples": 0, "draws": 50}),
        ("qa", {}),
        ("ic-lke", {"n": 3}),
    ],
)
def test_every_probe_has_accuracy_by_every_number(
    probe: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    made = report(probe, tmp_path, people(), known=20, **settings)
    bins = [made.estimates[f"bin_accuracy.popularity.{i}"] for i in range(1, BINS + 1)]
    assert bins[0].value == 0.0 and bins[-1].value == 1.0
    assert sum(each.n for each in bins) == 80
    for name in ("trend", "trend_within", "slope"):
        found = made.estimates[f"{name}.popularity"]
        assert found.low is not None and found.low > 0, name
        assert found.p is not None and found.p < 0.001, name
        assert f"{name}.height_cm" in made.estimates
    assert any(s.startswith("Accuracy rises with popularity: 0.0% in the") for s in made.findings)
    assert any("does not clearly go with height, cm" in s for s in made.findings)
    assert made.table("trends").rows[0][2] == made.table("trends").rows[0][4] == "<0.001"
    (figure,) = [f for f in made.figures if f.id == "bins-popularity"]
    assert isinstance(figure, Curves)
    assert figure.x_labels[0].startswith("10 – ") and figure.x_labels[-1].endswith("59,329")


def test_facts_without_the_number_are_left_out(tmp_path: Path) -> None:
    data = people(30)
    bare = [fact("P19", f"person {i}", "Ulm", id=f"bare{i}") for i in range(100, 110)]
    mixed = dataset_of([*data.facts("P19"), *data.facts("P20"), *bare], BORN, DIED)
    made = report("lama", tmp_path, mixed, known=0, answer="score")
    assert made.estimates["trend.popularity"].value is None  # all are right
    bins = [e for name, e in made.estimates.items() if name.startswith("bin_accuracy.popularity")]
    assert sum(each.n for each in bins) == 60


@pytest.mark.parametrize("data", [people(5), dataset_of([fact("P19", "Ann", "Ulm")], BORN)])
def test_few_facts_or_none_with_a_number_have_no_bins(data: Dataset, tmp_path: Path) -> None:
    chosen = data if data.size == 1 else data.select(replace(data.selection, relations=("P19",)))
    run = sonde.run(sonde.probe("lama", answer="score"), Scripted(answers={}), chosen, tmp_path)
    made = run.report()
    assert not [name for name in made.estimates if name.startswith(("bin_", "trend", "slope"))]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=120))
def test_bins_hold_every_fact_and_part_no_equal_numbers(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.float64)
    edges = quantile_edges(values)
    if len(values) < 2 * LEAST:
        assert not len(edges)
        return
    assert (np.diff(edges) > 0).all() or len(edges) == 2
    place = np.searchsorted(edges[1:-1], values, side="right")
    sizes = np.bincount(place, minlength=len(edges) - 1)
    assert len(sizes) == len(edges) - 1 <= BINS and sizes.min() >= LEAST
    for number in set(numbers):
        assert len(set(place[values == number].tolist())) == 1


def test_one_fact_apart_from_all_others_makes_no_bin(tmp_path: Path) -> None:
    data = dataset_of([numbered("P19", i, popularity=float(i > 0)) for i in range(20)], BORN)
    made = report("lama", tmp_path, data, known=10, answer="score")
    assert not [name for name in made.estimates if name.startswith(("bin_", "trend", "slope"))]


def test_numbers_with_names_alike_have_estimates_of_their_own(tmp_path: Path) -> None:
    facts = [
        numbered(
            "P19", i, **{"page views": float(i), "page_views": 40.0 - i, "page/views": 1.0 * i}
        )
        for i in range(40)
    ]
    made = report("lama", tmp_path, dataset_of(facts, BORN), known=20, answer="score")
    trends = {name: e.value or 0 for name, e in made.estimates.items() if name.startswith("trend.")}
    assert list(trends) == ["trend.page_views-2", "trend.page_views", "trend.page_views-3"]
    assert trends["trend.page_views"] < 0 < trends["trend.page_views-2"]
    ids = [each.id for each in (*made.tables, *made.figures)]
    assert {"bins-page_views", "bins-page_views-2", "bins-page_views-3"} <= set(ids)
    assert len({t.id for t in made.tables}) == len(made.tables)
    assert [row[0] for row in made.table("trends").rows] == [
        "page views",
        "page_views",
        "page/views",
    ]
    assert any(s.startswith("Accuracy falls with page_views: ") for s in made.findings)


def test_what_rises_between_relations_may_fall_within_them(tmp_path: Path) -> None:
    """The people of P20 are popular and known, of each relation those with high numbers less so."""
    numbers = {"P19": range(40), "P20": range(1000, 1040)}
    facts = [
        numbered(id, i, popularity=float(id == "P20") * 100 + (40 - i % 1000) * 0.1)
        for id, own in numbers.items()
        for i in own
    ]
    known = {f.id: f.objects[0].name for f in facts if f.numbers["popularity"] % 100 < 0.55}
    known |= {f.id: f.objects[0].name for f in facts if 100 < f.numbers["popularity"] < 103.5}
    run = sonde.run(
        sonde.probe("lama", answer="score"),
        Scripted(answers=known),
        dataset_of(facts, BORN, DIED),
        tmp_path / "r",
    )
    (told,) = [s for s in run.report().findings if "popularity" in s]
    assert told.startswith("Accuracy rises with popularity, but falls within relations: ")
    assert told.endswith("(corrected for 2 trends, unlike the interval).")
