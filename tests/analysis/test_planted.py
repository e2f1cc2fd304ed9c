"""Differences that were planted on some relations of scripted models are found, and no others."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import sonde
from sonde.core.facts import Dataset
from sonde.core.words import told_apart
from sonde.models.scripted import Scripted
from tests.worlds import dataset_of, fact, relation

FACTS = 40
RELATIONS = tuple(f"R{i}" for i in range(12))
OBJECTS = tuple("abcdefgh")
PLANTED = {"R2": (0.15, 0.85), "R5": (0.85, 0.15), "R9": (0.2, 0.9)}
"""How often the first and the second model are right; elsewhere both are half of the time."""


def planted_world() -> Dataset:
    """Twelve relations, each asked in three templates."""
    draw = Random("objects")
    return dataset_of(
        [fact(r, f"{r}s{i}", draw.choice(OBJECTS)) for r in RELATIONS for i in range(FACTS)],
        *(relation(r, f"{r} of [X] is [Y].", f"[X] has {r} [Y].", "[X]: [Y]") for r in RELATIONS),
    )


def model(data: Dataset, which: int, seed: int, planted: bool = True) -> Scripted:
    """Right by chance: so often as its relation says."""
    draw, answers = Random(f"{which}:{seed}"), {}
    for id in RELATIONS:
        often = PLANTED.get(id, (0.5, 0.5))[which] if planted else 0.5
        for asked in data.asked(id):
            others = [name for name in OBJECTS if name != asked.objects[0].name]
            known = draw.random() < often
            answers[asked.id] = asked.objects[0].name if known else draw.choice(others)
    return Scripted(answers=answers)


def compared(probe: str, home: Path, seed: int, planted: bool = True) -> sonde.Comparison:
    data = planted_world()
    runs = [
        sonde.run(
            sonde.probe(probe), model(data, which, seed, planted), data, out=home / f"run{which}"
        )
        for which in (0, 1)
    ]
    return sonde.compare(f"first={runs[0].path}", f"second={runs[1].path}")


def holding(
    found: sonde.Comparison, second: str = "second", first: str = "first"
) -> dict[str, bool]:
    """The relations on which the difference holds, and whether the second is better there."""
    begins, ends = "difference.relation.", f".runs.{second}.minus.{first}"
    named = {
        name.removeprefix(begins).removesuffix(ends): estimate
        for name, estimate in found.report.estimates.items()
        if name.startswith(begins) and name.endswith(ends)
    }
    assert len(named) > 10
    return {id: (e.value or 0.0) > 0 for id, e in named.items() if told_apart(e)}


@pytest.mark.parametrize("seed", range(4))
def test_planted_differences_are_found_and_no_others(seed: int, tmp_path: Path) -> None:
    found = compared("lama", tmp_path, seed)
    assert holding(found) == {"R2": True, "R5": False, "R9": True}
    first = found.report.findings[0]
    assert "second is better on label of R" in first and "worse on label of R5" in first
    assert "on the other 9 it cannot be told (corrected for 12 comparisons)" in first


def test_planted_differences_are_found_over_several_templates(tmp_path: Path) -> None:
    assert holding(compared("belief", tmp_path, 0)) == {"R2": True, "R5": False, "R9": True}


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_was_planted_nothing_is_found(seed: int, tmp_path: Path) -> None:
    found = compared("lama", tmp_path, seed, planted=False)
    assert holding(found) == {}
    assert found.verdict.word == "cannot be told apart"
    assert found.report.title.startswith("first and second cannot be told apart: ")


def test_facts_that_flipped_have_both_answers(tmp_path: Path) -> None:
    found = compared("lama", tmp_path, 0)
    flipped = found.flipped
    gained = flipped.filter(flipped["change"] == "gained")
    assert (gained["answer second"] == gained["gold"]).all()
    assert (gained["answer first"] != gained["gold"]).all()
    assert gained["confidence second"].to_list() == pytest.approx([0.9] * len(gained), abs=1e-6)
    lost = flipped.filter(flipped["change"] == "lost")
    assert len(gained) + len(lost) == len(flipped)
    difference = found.verdict.difference
    assert (len(gained) - len(lost)) / difference.n == pytest.approx(difference.value)
    assert repr(found) == f"<Comparison: {found.report.title}>"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("probe", "limit"),
    [(sonde.probe("lama"), 4), (sonde.probe("belief", bias=False), 2)],
    ids=["lama", "belief"],
)
def test_two_encoders_are_told_apart_only_as_the_test_says(
    probe: Any, limit: int, shared: Path, tmp_path: Path
) -> None:
    folder = shared / "data"
    data = sonde.dataset(f"lama:{folder / 'lama'}+pararel:{folder / 'pararel'}", limit=limit)
    runs = [
        sonde.run(probe, sonde.model(f"hf:{shared / 'models' / name}"), data, tmp_path / name)
        for name in ("encoder-11m", "encoder-24m")
    ]
    found = sonde.compare(*runs)
    difference = found.verdict.difference
    assert difference.p is not None and difference.p > 0.05
    assert found.verdict.word == "cannot be told apart"
    assert found.verdict.best == tuple(found.verdict.ranks), "both may be the best"
    assert not holding(found, "encoder-24m", "encoder-11m")
