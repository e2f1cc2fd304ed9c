"""Templates that take a date or details from their fact: literally, in columns and one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.errors import TemplateError
from sonde.core.facts import Fact, Template
from sonde.core.prompts import Score
from sonde.prompting.sentences import sentences, usual_names
from tests.worlds import dataset_of, fact, relation, template

DATED = template("t", "In [T], [X] was led by [Y], who [details.did].")
OWN = template("own", "[details.prompt] [Y]")
TEXTS = st.text("ab [XYT]d.", min_size=1, max_size=9).filter(str.strip)


def told(name: str, date: str = "2015", **details: str) -> Fact:
    return replace(fact("P6", name, "Ann"), date=date, details=details)


@given(TEXTS, TEXTS, TEXTS)
def test_every_slot_takes_what_the_fact_has_literally(name: str, did: str, prompt: str) -> None:
    asked = told(name, did=did, prompt=prompt)
    assert DATED.fill(name, asked) == (f"In 2015, {name} was led by ", f", who {did}.")
    assert OWN.fill(name, asked) == (f"{prompt} ", "")
    data = dataset_of([asked], relation("P6", DATED, OWN))
    block = sentences(data.relations[0], [DATED, OWN], usual_names(data.frame("P6")), Score())
    assert block.texts() == [DATED.fill(name, asked), OWN.fill(name, asked)]


def test_a_fact_without_what_a_template_takes_is_refused() -> None:
    with pytest.raises(TemplateError, match="'did' of its details"):
        DATED.fill("Oslo", told("Oslo"))
    with pytest.raises(TemplateError, match="takes its 'date' from each fact"):
        DATED.fill("Oslo", told("Oslo", date="", did="sang"))
    with pytest.raises(TemplateError, match="ask with other templates"):
        OWN.fill("Oslo")
    with pytest.raises(TemplateError, match="no subject slot"):
        Template(id="t", text="In [T] it was [Y].")


def test_facts_of_one_subject_at_two_dates_are_asked_apart(tmp_path: Path) -> None:
    facts = [
        replace(fact("P6", "Oslo", name, id=date), date=date)
        for date, name in (("2015", "Ann"), ("2016", "Ben"))
    ]
    data = dataset_of(facts, relation("P6", "In [T], [X] was led by [Y]."))
    for probe in ("lama", "belief"):
        model = sonde.model("control:majority", data=data)
        run = sonde.run(sonde.probe(probe), model, data, out=tmp_path / probe)
        assert next(run.answered()).prefix == "In 2015, Oslo was led by "
        assert run.facts()["gold"].to_list() == ["Ann", "Ben"]
