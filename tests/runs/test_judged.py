"""How prompts and facts did, as frames; controls stand beside a report without a second reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sonde
from sonde.core.columns import Answers
from sonde.metrics.judged import Grid, Judged
from sonde.runs.controls import attach_controls
from sonde.runs.run import Run
from tests.worlds import relation

RELATION = relation("P36", "The capital of [X] is [Y].", "[Y] is the capital of [X].")


def judged(**more: Any) -> Judged:
    """Two pairs under two templates, the second under a further name of its subject."""
    grid = Grid(
        pair=np.array([0, 0, 1, 1]),
        template=np.array([0, 1, 0, 1]),
        name=np.array([0, 0, 1, 1]),
        right=np.array([True, False, False, False]),
        answer=np.array([0, 1, 1, 0]),
        confidence=np.array([0.5, np.nan, 0.25, 0.75]),
        relations=np.array([0, 0]),
        template_relations=np.array([0, 0]),
    )
    return Judged(
        grid=grid,
        relations=(RELATION,),
        pairs=("f0", "f1"),
        templates=RELATION.templates,
        answers=("Vienna", "Cairo"),
        way="scored",
        sure=grid.confidence,
        **more,
    )


def test_a_prompt_is_its_template_with_the_name_that_was_asked() -> None:
    frame = judged(names=(("Austria",), ("Egypt", "Misr $1"))).frame()
    assert frame["name"].to_list() == ["Austria", "Austria", "Misr $1", "Misr $1"]
    assert frame["prompt"].to_list()[0] == "The capital of Austria is ___."
    assert frame["prompt"].to_list()[3] == "___ is the capital of Misr $1."


def test_only_what_was_written_can_be_empty() -> None:
    silent = np.array([False, False, False, True])
    chosen, written = judged(), replace(judged(abstained=silent), answers=("Vienna", ""))
    assert not chosen.empty.any()
    assert written.empty.tolist() == [False, True, True, False]
    assert written.frame()["verdict"].to_list() == ["right", "empty", "empty", "abstained"]


def test_what_was_not_measured_is_null() -> None:
    frame = judged(rank=np.array([1, 0, 3, 2])).frame()
    assert frame["rank"].to_list() == [1, None, 3, 2]
    assert frame["confidence"].to_list() == [0.5, None, 0.25, 0.75]
    assert frame["gold_logprob"].null_count() == frame["name"].null_count() == 4


def test_of_equally_common_answers_a_fact_has_the_first_by_name() -> None:
    facts = judged(names=(("Austria",), ("Egypt", "Misr"))).facts()
    assert facts["answer"].to_list() == ["Cairo", "Cairo"]
    assert facts["right"].to_list() == [0.5, 0.0]
    assert facts["confidence"].to_list() == [0.5, 0.5]
    assert facts["prompts"].to_list() == [2, 2]


@pytest.mark.parametrize(
    "probe",
    ["lama", "belief", "belief-icl", "framing", "monitor", "ic-lke", "lke-shots", "lke-sequence"],
)
def test_controls_and_report_read_the_answers_once(
    probe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sonde.dataset("atlas", limit=1, relations=("P36", "P30"))
    asked = sonde.probe(probe, **({"samples": 0} if probe == "belief-icl" else {}))
    for name, place in (("naive-bayes", tmp_path), ("majority", tmp_path / "controls/majority")):
        sonde.run(asked, sonde.model(f"control:{name}", data=data), data, place)
    reads: Counter[Path] = Counter()
    whole = Run.answers

    def counting(self: Run) -> Iterator[Answers]:
        reads[self.path] += 1
        return whole(self)

    monkeypatch.setattr(Run, "answers", counting)
    run = sonde.open_run(tmp_path)
    report = attach_controls(run, run.report())
    assert "controls" in {table.id for table in report.tables}
    assert reads == {tmp_path: 1, tmp_path / "controls" / "majority": 1}
    assert report.judged.frame().equals(run.judged())
