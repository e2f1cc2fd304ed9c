"""Readings: what any probe's report says beside its own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sonde
from sonde.analysis import readings
from sonde.analysis.readings import Asked, Reading, read_further
from sonde.core.columns import Answers, Kept
from sonde.core.facts import Dataset
from sonde.core.reports import Report
from tests.worlds import entity, fact, relation, world

FACTS = [
    fact("P36", entity("Peru", id="Q1"), "Lima", id="f1"),
    fact("P36", entity("Peru", id="Q1"), "Cusco", id="f2"),
    fact("P36", entity("Chile", id="Q2"), "Lima", id="f3"),
]


class Sizes:
    """Counts what it is given."""

    name = "sizes"

    def applies(self, dataset: Dataset) -> bool:
        return dataset.relations[0].id == "P36"

    def read(self, asked: Asked) -> Reading | None:
        facts = asked.facts()
        assert facts["fact"].to_list() == [asked.judged.pairs[p] for p in facts["pair"]]
        prompts = [block.names_at(0, ("fact",)) for block in asked.answers() if len(block)]
        assert prompts and len(asked.judged.grid) == facts.height
        return Reading(counts={"right": int(facts["accuracy"].sum())}, notes=("sizes were read",))


@pytest.mark.parametrize(("probe", "right"), [("lama", 2), ("belief", 2)])
def test_a_reading_is_added_to_the_report_of_any_probe(
    probe: str, right: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "readings", lambda: {"sizes": Sizes()})
    data = world(FACTS, relation("P36", "The capital of [X] is [Y]."))
    model = sonde.model("control:majority", data=data)
    report = sonde.run(sonde.probe(probe), model, data, out=tmp_path / "run").report()
    assert report.counts["right"] == right
    assert report.notes[-1] == "sizes were read"


def test_a_report_without_judged_prompts_stays_as_it_is() -> None:
    report = Report(title="none", estimates={})
    assert read_further(report, world(), lambda: ()) is report


def test_answers_are_read_once_unless_they_are_many(tmp_path: Path) -> None:
    data = world(FACTS, relation("P36", "The capital of [X] is [Y]."))
    model = sonde.model("control:majority", data=data)
    run = sonde.run(sonde.probe("lama"), model, data, out=tmp_path / "run")
    for most, reads in ((2**20, 1), (0, 2)):
        read: list[int] = []

        def answers(read: list[int] = read) -> Iterator[Answers]:
            read.append(1)
            return run.answers()

        kept = Kept(answers, most)
        first = [block.texts() for block in kept.once()]
        assert [block.texts() for block in kept()] == first and len(read) == reads
