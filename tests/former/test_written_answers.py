"""Answers that abstain are counted apart in every probe that writes; empty ones say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sonde.core.abilities import Probe
from sonde.core.answers import Answered, Generated, Scored
from sonde.core.facts import Dataset
from sonde.core.prompts import Generate, Prompt, Score, prompts_of
from sonde.core.reports import Report
from sonde.former.belief_icl.probe import BeliefIcl
from sonde.former.framing.probe import Framing
from sonde.former.lke.baselines import LkeBaselines
from sonde.former.monitor.probe import Monitor
from sonde.former.qa.probe import Qa
from tests.worlds import world

WRITERS: dict[str, Any] = {
    "belief-icl": BeliefIcl(samples=0, draws=50),
    "monitor": Monitor(),
    "framing": Framing(),
    "lke-baselines": LkeBaselines(n=2, most=5),
    "qa": Qa(shots=2),
}
each_writer = pytest.mark.parametrize("name", WRITERS)
Says = Callable[[Dataset, Prompt], str]


def gold(data: Dataset, prompt: Prompt) -> str:
    facts = {fact.id: fact for fact in data.facts(prompt.key.relation)}
    return facts[prompt.key.fact].objects[0].name


def answered(probe: Probe, data: Dataset, says: Says) -> list[Answered]:
    """Every prompt answered: options by their order, texts as is said."""
    rows = []
    for prompt in prompts_of(probe.ask(data)):
        answer: Any
        if isinstance(prompt.want, Score):
            options = prompt.want.options
            answer = Scored(options=options, logps=tuple((-1.0 - i,) for i in range(len(options))))
        else:
            assert isinstance(prompt.want, Generate)
            answer = Generated(text=says(data, prompt), logps=(-0.5,))
        rows.append(
            Answered(
                key=prompt.key, prefix=prompt.prefix, suffix=prompt.suffix, answer=answer,
                own=prompt.own,
            )
        )  # fmt: skip
    return rows


def report(name: str, says: Says) -> Report:
    data = world()
    made: Report = WRITERS[name].read(data, answered(WRITERS[name], data, says))
    return made


def sometimes(word: str) -> Says:
    """Right for every second fact; for the others a word."""

    def says(data: Dataset, prompt: Prompt) -> str:
        ids = [fact.id for fact in data.facts(prompt.key.relation)]
        return gold(data, prompt) if ids.index(prompt.key.fact) % 2 else word

    return says


@each_writer
def test_abstaining_is_counted_apart_and_moves_no_other_number(name: str) -> None:
    silent, wrong = report(name, sometimes("I don't know.")), report(name, sometimes("Nonsense"))
    apart = ("abstained.", "right_when_answered.")
    for id, estimate in wrong.estimates.items():
        if not id.startswith((*apart, "consist", "one_word", "overconf")):
            assert silent.estimates[id] == estimate, id
    shares = {id: e.value for id, e in silent.estimates.items() if id.startswith("abstained.")}
    assert shares and all(value is None or 0 < value < 1 for value in shares.values())
    answered = [e.value for id, e in silent.estimates.items() if id.startswith(apart[1])]
    assert {value for value in answered if value is not None} == {1.0}
    assert silent.counts["abstained_answers"] > 0 == wrong.counts["abstained_answers"]


@each_writer
def test_what_abstains_is_shown_where_there_is_any(name: str) -> None:
    silent, wrong = report(name, sometimes("unknown")), report(name, sometimes("Nonsense"))
    assert "abstained" in {table.id for table in silent.tables}
    assert any("the model does not know" in sentence for sentence in silent.findings)
    assert "abstained" not in {table.id for table in wrong.tables}
    assert not any("does not know" in sentence for sentence in wrong.findings)


@each_writer
def test_every_judged_prompt_has_a_verdict(name: str) -> None:
    probe, data = WRITERS[name], world()
    for word, verdict in (("not sure", "abstained"), ("", "empty"), ("Nonsense", "wrong")):
        judged = probe.judged(data, answered(probe, data, sometimes(word)))
        frame = judged.frame()
        written = frame if "how" not in frame else frame.filter(how="written")
        assert set(written["verdict"]) == {"right", verdict}
        assert written.filter(verdict="right")["right"].all()
        assert not written.filter(verdict=verdict)["right"].any()
        assert set(judged.facts()["verdict"]) <= {"right", "wrong", verdict}


@each_writer
def test_the_lists_are_a_setting_that_only_reads(name: str) -> None:
    probe, data = WRITERS[name], world()
    rows = answered(probe, data, sometimes("pass"))
    own = replace(probe, abstaining=("none", "pass"))
    assert probe.read(data, rows).counts["abstained_answers"] == 0
    assert own.read(data, rows).counts["abstained_answers"] > 0


@each_writer
def test_where_most_answers_are_empty_that_is_the_first_finding(name: str) -> None:
    empty = report(name, lambda data, prompt: "")
    assert empty.findings[0].startswith("Mostly empty, so that nothing is concluded from them: ")
    assert "Try --set " in empty.findings[0]
    some = report(name, sometimes(""))
    assert not any("Mostly empty" in sentence for sentence in some.findings)


@pytest.mark.parametrize("name", ["belief-icl", "monitor", "framing", "qa"])
def test_nothing_is_concluded_from_empty_answers(name: str) -> None:
    empty, some = report(name, lambda data, prompt: "\n"), report(name, sometimes("Nonsense"))
    words = ("better", "worse", "control:", "majority control", "raises", "lowers", "told apart")
    rest = [sentence for sentence in empty.findings[1:] if "likelier option" not in sentence]
    assert not [s for s in rest if any(word in s for word in words)], rest
    held = {line.estimate for line in empty.headlines if line.difference}
    assert held < {line.estimate for line in some.headlines if line.difference}
    assert held <= {"accuracy.fc.mean_over_relations"}  # chosen, not written
    for id, estimate in empty.estimates.items():
        assert estimate.value is None or np.isfinite(estimate.value), id


def test_framing_keeps_what_it_concludes_from_answers_that_are_there() -> None:
    def says(data: Dataset, prompt: Prompt) -> str:
        return gold(data, prompt) if prompt.own["task"] == "wp" else ""

    told = report("framing", says)
    assert "answers to questions (" in told.findings[0] and "sentences" not in told.findings[0]
    assert any(s.startswith("Accuracy on sentences is") for s in told.findings)
    assert not any(s.startswith("Accuracy on questions is") for s in told.findings)
