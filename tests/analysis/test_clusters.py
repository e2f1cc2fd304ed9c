"""Facts of one subject are resampled together, in reports and where runs are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import sonde
from sonde.analysis.comparison.numbers import accuracies, leading_relation, paired
from sonde.analysis.comparison.numbers import compare as side_by_side
from sonde.analysis.differences.numbers import Differences
from sonde.analysis.joins import align
from sonde.analysis.runs import Aligned, Reading
from sonde.core.reports import Estimate
from sonde.models.scripted import Scripted
from tests import written
from tests.analysis.world import asked, run
from tests.grids import grid

SUBJECTS, FACTS, SETS = 50, 4, 200
SHARE, KEPT = 0.3, 0.95
TRUTH = SHARE * KEPT + (1 - SHARE) * (1 - KEPT)


def table(subjects: list[str]) -> polars.DataFrame:
    """Facts f0, f1, … with their subjects."""
    columns: dict[str, Any] = {
        "fact": [f"f{i}" for i in range(len(subjects))],
        "relation": ["R0"] * len(subjects),
        "subject": subjects,
        "date": [""] * len(subjects),
        "cluster": [f"R0:{subject}" for subject in subjects],
        "gold": [["x"]] * len(subjects),
        "tags": [[]] * len(subjects),
        "details": [[]] * len(subjects),
        "commonest": [False] * len(subjects),
    }
    return polars.DataFrame(columns, schema_overrides={"tags": polars.List(polars.String)})


def drawn(random: np.random.Generator) -> list[int]:
    """Whether each fact is right: facts of a subject mostly share the outcome of their subject."""
    subjects = np.repeat(random.random(SUBJECTS) < SHARE, FACTS)
    return np.where(random.random(len(subjects)) < KEPT, subjects, ~subjects).astype(int).tolist()


def both(random: np.random.Generator) -> Aligned:
    """Two runs with four facts about each subject."""
    facts = table([f"s{i // FACTS}" for i in range(SUBJECTS * FACTS)])
    made = (asked(name, [drawn(random)]) for name in ("a", "b"))
    return align([replace(of, facts=facts) for of in made])


def test_intervals_hold_the_truth_where_subjects_have_four_facts() -> None:
    random = np.random.default_rng(7)
    of_runs = of_differences = 0
    for seed in range(SETS):
        aligned = both(random)
        low, high = dict(accuracies(aligned, seed))["accuracy.relation.R0.run.a"].ends
        of_runs += low <= TRUTH <= high
        low, high = paired(aligned, "a", "b", seed).mean_over_facts().ends
        of_differences += low <= 0 <= high
    # 95 % of 200, less three standard errors; with facts for subjects about 130
    assert of_runs >= 180 and of_differences >= 180


def test_every_number_of_a_run_has_the_same_interval_for_the_same_facts() -> None:
    aligned = both(np.random.default_rng(3))
    side = side_by_side(aligned, Reading(draws=50)).estimates
    own = Differences(aligned=aligned).accuracies["a"]
    names = ("acc_at_1", "coverage.oracle", "template_accuracy.max", "accuracy.mean_over_relations")
    for name in names:
        assert side[f"{name}.run.a"].ends == own.ends, name
    lonely = side_by_side(
        align([replace(of, facts=None) for of in aligned.runs]), Reading(draws=50)
    )
    for name in (*names, "overconf", "ece"):
        wide, narrow = (of[f"{name}.run.a"] for of in (side, lonely.estimates))
        if wide.value is not None:
            assert np.diff(wide.ends) > 1.5 * np.diff(narrow.ends), name


def test_shared_knowledge_and_leading_relations_count_subjects() -> None:
    outcomes = [[int(i < 4 * known) for i in range(48)] for known in (6, 3)]
    facts = table([f"s{i // 4}" for i in range(96)])
    runs = [asked(name, outcomes) for name in ("a", "b")]
    runs[1] = asked("b", [of[4:] + of[:4] for of in outcomes])
    lonely, clustered = (
        side_by_side(align([replace(of, facts=told) for of in runs]), Reading(draws=50))
        for told in (None, facts)
    )
    shares = (of.estimates["sharing.runs.a.in.b"] for of in (lonely, clustered))
    narrow, wide = (np.diff(share.ends)[0] for share in shares)
    assert wide > 1.3 * narrow
    alone, together = (leading_relation(of) for of in (lonely, clustered))
    assert alone is not None and together is not None
    assert alone.tied == () and together.tied == ("R1",)


def test_overconfidence_differs_within_relations_of_fixed_size() -> None:
    """Relation R0 is all right and R1 all wrong, each with one subject of one fact and one of nine:
    only the number of facts drawn could move the difference."""
    owners = [0] * 10 + [1] * 10
    rows = [(p, r, 0, r == 0, r) for p, r in enumerate(owners)]
    sure, unsure = (
        replace(grid(rows, owners, [0, 1]), confidence=np.full(20, share)) for share in (0.9, 0.4)
    )
    unsure = replace(unsure, right=np.zeros(20, dtype=np.bool_))
    facts = table([f"{r}:{p % 10 == 0}" for p, r in enumerate(owners)])
    aligned = align([replace(run(n, g), facts=facts) for n, g in (("a", sure), ("b", unsure))])
    difference = Differences(aligned=aligned).overconf["b", "a"]
    assert difference.value == pytest.approx(0.0)
    assert difference.ends == pytest.approx((0.0, 0.0), abs=1e-9)


def world(folder: Path) -> Path:
    """Two relations in three templates; subjects have one to three facts, in no order."""
    random = np.random.default_rng(5)
    written.dataset(folder, {id: ("[X] has [Y].", {}) for id in ("P1", "P2")})
    texts = ("[X] has [Y].", "[X] owns [Y].", "What [X] has is [Y].")
    made = (
        written.template(id, text) | {"id": f"{id}-{i}"}
        for id in ("P1", "P2")
        for i, text in enumerate(texts)
    )
    (folder / "templates.jsonl").write_text(written.rows(made))
    for id, count in (("P1", 40), ("P2", 25)):
        facts = []
        for number in random.permutation(count).tolist():
            subject, answer = f"s{number % 17 * 5 % 19}", f"word{int(random.integers(5))}"
            facts.append(written.fact(id, subject, answer) | {"id": f"{id}:{number}"})
        (folder / "facts" / f"{id}.jsonl").write_text(written.rows(facts))
    return folder


PAIRS = {
    "lama": ("p_at_1.mean_over_facts", "accuracy.mean_over_facts"),
    "bear": ("accuracy.mean_over_facts", "accuracy.mean_over_facts"),
    "belief": ("acc_at_1", "accuracy.mean_over_facts"),
    "ic-lke": ("accuracy.mean_over_facts", "accuracy.mean_over_facts"),
}
"""A number of a run's own report, and the same number where runs are compared; by probe."""


@pytest.mark.parametrize("probe", PAIRS)
def test_a_report_and_a_comparison_print_one_interval_for_one_number(
    probe: str, tmp_path: Path
) -> None:
    data = sonde.dataset(world(tmp_path / "world"))
    right = {
        f.id: f.objects[0].name
        for r in ("P1", "P2")
        for f in data.facts(r)
        if len(f.id) + int(f.id[3:]) % 7 < 8
    }
    models = {
        "scripted": Scripted(answers=right),
        "majority": sonde.model("control:majority", data=data),
    }
    runs = [
        sonde.run(sonde.probe(probe), model, data, out=tmp_path / name)
        for name, model in models.items()
    ]
    compared = sonde.compare(*runs).report.estimates
    own, other = runs[0].report().estimates, f"{PAIRS[probe][1]}.run.scripted"
    assert own[PAIRS[probe][0]].ends == compared[other].ends
    shared = [id for id in own if f"{id}.run.scripted" in compared and own[id].low is not None]
    different = [id for id in shared if not same(own[id], compared[f"{id}.run.scripted"])]
    assert not different


def same(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates agree in value and ends."""
    return bool(np.allclose([one.value, *one.ends], [other.value, *other.ends], atol=1e-12))
