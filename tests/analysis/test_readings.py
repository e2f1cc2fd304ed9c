"""Readings: what any probe's report says beside its own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def keyed(blocks: Iterable[Answers]) -> list[tuple[str, str]]:
    """The text and the first answer of every prompt about the second fact and the third."""
    rows = (row for block in blocks for row in block.each() if row.key.fact in ("f2", "f3"))
    return [(f"{row.prefix}|{row.suffix}", str(row.answer)) for row in rows]


def test_answers_are_read_once_unless_they_are_many(tmp_path: Path) -> None:
    data = world(FACTS, relation("P36", "The capital of [X] is [Y]."))
    model = sonde.model("control:majority", data=data)
    run = sonde.run(sonde.probe("lama"), model, data, out=tmp_path / "run")
    reads: list[int] = []

    def answers() -> Iterator[Answers]:
        reads.append(1)
        return run.answers()

    found: dict[tuple[int, int], int] = {}
    wanted, about = keyed(run.answers()), frozenset({"f2", "f3"})
    assert len(wanted) == 2
    for many in range(0, 2000, 20):
        kept = Kept(answers, about, many)
        reads.clear()
        assert keyed(kept.once()) == wanted
        assert keyed(kept(about)) == wanted and keyed(kept(about - {"f2"})) == wanted
        some = len(reads)
        assert keyed(kept()) == wanted and keyed(kept({"f1"})) == wanted
        found.setdefault((some, len(reads) - some), many)
    # too many: read for each look; the facts' own: for looks at others; all: never again
    assert list(found) == [(3, 2), (1, 2), (1, 0)]
