"""What LKE probes say of every prompt, and what they say where there is no answer."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest

import sonde
from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.core.prompts import Score
from sonde.models.controls import majority
from sonde.models.scripted import Scripted
from sonde.former.lke.baselines import LkeBaselines
from sonde.former.lke.eic import EicLke
from sonde.former.lke.ic import IcLke
from sonde.former.lke.separators import LkeSeparators
from sonde.former.lke.sequence import LkeSequence
from sonde.former.lke.shots import LkeShots
from sonde.testing import oracle_for
from tests.rows import answer_all
from tests.worlds import world

from .lke_world import ANSWERS

USUAL = "relation pair fact template name prompt answer right verdict rank confidence".split()
USUAL += ["gold_logprob"]

PROBES: tuple[tuple[Any, list[str]], ...] = (
    (IcLke(), ["seed"]),
    (EicLke(), ["seed"]),
    (LkeShots(n=(1, 2), seeds=2), ["shots", "draw"]),
    (LkeSeparators(n=2, seeds=1), ["separators", "draw"]),
    (LkeBaselines(n=2, most=2), ["how"]),
    (LkeSequence(seeds=2, replace="incorrect"), ["sequence", "changed"]),
)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return world()


@pytest.mark.parametrize(("probe", "own"), PROBES, ids=lambda p: getattr(p, "name", ""))
def test_every_prompt_has_a_row_with_the_keys_of_the_probe(
    probe: Any, own: list[str], data: Dataset
) -> None:
    answered = answer_all(oracle_for(data), probe.ask(data))
    judged = probe.judged(data, answered)
    frame = judged.frame()
    assert frame.columns == [*USUAL, *own]
    assert frame.select("pair", "template").is_unique().all()
    assert frame.equals(probe.judged(data, answered[::-1]).frame())
    assert probe.read(data, answered).judged.frame().equals(frame)
    assert judged.facts()["right"].mean() > 0.9


@pytest.mark.parametrize(("probe", "own"), PROBES, ids=lambda p: getattr(p, "name", ""))
def test_a_run_without_answers_is_refused_and_says_what_to_do(
    probe: Any, own: list[str], data: Dataset
) -> None:
    for reads in (probe.read, probe.judged):
        with pytest.raises(DataError, match=r"no answers to read.*'sonde run'"):
            reads(data, [])


def test_a_fact_is_left_out_of_eic_lke_where_not_all_its_options_were_answered(
    data: Dataset,
) -> None:
    probe = EicLke(layout="options", training=6, start=2, stride=2)
    answered = answer_all(Scripted(answers=ANSWERS), probe.ask(data))
    whole = probe.judged(data, answered).frame()
    assert probe.judged(data, answered[1:]).frame().equals(whole.filter(whole["pair"] != 0))
    assert probe.read(data, answered[1:]).counts["facts"] == whole.height - 1


def test_judged_rows_average_to_what_a_study_reports(data: Dataset) -> None:
    probe = LkeShots(n=(1, 3), seeds=2)
    answered = answer_all(Scripted(answers=ANSWERS), probe.ask(data))
    frame = probe.judged(data, answered).frame().filter(shots=3)
    found = probe.read(data, answered).estimates
    for relation in ("P36", "P1303"):
        mean = frame.filter(relation=relation)["right"].mean()
        assert found[f"accuracy.n.3.relation.{relation}"].value == pytest.approx(mean)
    masses = frame.filter(relation="P36")["gold_logprob"].exp().mean()
    assert found["mass.n.3.relation.P36"].value == pytest.approx(masses)


def test_what_was_written_stands_as_the_answer_without_rank_or_confidence(data: Dataset) -> None:
    probe = LkeBaselines(n=2, most=3)
    prompts = list(probe.ask(data))
    frame = probe.judged(data, answer_all(majority(data), prompts)).frame()
    written = frame.filter(how="written")
    assert written.height == sum(not isinstance(p.want, Score) for p in prompts)
    assert written["rank"].null_count() == written["confidence"].null_count() == written.height
    assert set(written["template"]) >= {"written:in-context"}
    scored = frame.filter(how="scored", template="in-context")
    assert scored["rank"].null_count() == 0


def test_an_object_of_a_sequence_is_right_where_it_is_likelier_than_not() -> None:
    data = sonde.dataset("atlas", relations=("P36",), limit=6)
    probe = LkeSequence(length=12, seeds=1, replace="incorrect", replaced=3)
    answered = answer_all(oracle_for(data), probe.ask(data))
    frame = probe.judged(data, answered).frame()
    places = probe.places(data, answered)
    assert frame.filter(changed=False).height == 12
    assert frame.filter(changed=True).height == 9, "what was replaced is another fact"
    assert frame.filter(changed=False)["right"].sum() == places["likely"].sum()
    for row in frame.iter_rows(named=True):
        assert row["confidence"] == pytest.approx(exp(row["gold_logprob"]))
        assert bool(row["answer"]) == row["right"] == (row["confidence"] > 0.5)
