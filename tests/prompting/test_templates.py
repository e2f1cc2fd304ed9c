"""Templates filled with subjects: order, slots, capitals, closing, parts."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import TemplateError
from sonde.core.facts import Dataset, Fact, Template
from sonde.probes.base import Probe
from sonde.probes.belief import Belief
from sonde.probes.lama import Lama
from sonde.prompting import templates
from sonde.prompting.templates import (
    build_name_part_prompts,
    content_free_subjects,
    fill_templates,
    missing_full_stop,
    pairs_with_subject_names,
    usual_names,
)
from sonde.prompts import Generate, PromptBatch, Score
from tests.worlds import dataset_of, entity, fact, relation, template

DATED = template("t", "In [T], [X] was led by [Y], who [details.did].")
OWN = template("own", "[details.prompt] [Y]")
TEXTS = st.text("ab [XYT]d.", min_size=1, max_size=9).filter(str.strip)


def led(name: str, date: str = "2015", **details: str) -> Fact:
    return replace(fact("P6", name, "Ann"), date=date, details=details)


def filled(data: Dataset, **settings: Any) -> list[PromptBatch]:
    (own,) = data.relations
    subjects = usual_names(data.frame(own.id))
    return list(fill_templates(own, own.templates, subjects, Generate(), **settings))


def texts(batches: list[PromptBatch]) -> list[tuple[str, str]]:
    return [row for batch in batches for row in batch.frame.select("prefix", "suffix").iter_rows()]


def test_prompts_are_in_the_order_of_subject_template_and_name() -> None:
    own = relation("P36", "[X] has [Y].", "[Y] is in [X]")
    subjects = pl.DataFrame(
        {"fact": ["a", "b"], "names": [["France", "Gaul"], ["Peru"]], "cue": ["x", "y"]}
    )
    (batch,) = fill_templates(own, own.templates, subjects, Score(), options=[("Paris",)])
    columns = ("relation", "fact", "template", "subject", "cue", "prefix", "suffix")
    assert batch.frame.columns == list(columns) and batch.cloze
    assert batch.frame.select("fact", "prefix", "suffix").rows() == [
        ("a", "France has ", "."),
        ("a", "Gaul has ", "."),
        ("a", "", " is in France"),
        ("a", "", " is in Gaul"),
        ("b", "Peru has ", "."),
        ("b", "", " is in Peru"),
    ]
    assert list(fill_templates(own, [], subjects, Score())) == []


def test_large_batches_are_split_between_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "BATCH", 4)
    facts = [fact("P1", f"s{i}", "o") for i in range(5)]
    batches = filled(dataset_of(facts, relation("P1", "[X] [Y]", "[X]: [Y]")))
    assert [len(batch) for batch in batches] == [2, 4, 4]


@given(TEXTS, TEXTS, TEXTS)
def test_every_slot_takes_literally_what_the_fact_has(name: str, did: str, prompt: str) -> None:
    (batch,) = filled(dataset_of([led(name, did=did, prompt=prompt)], relation("P6", DATED, OWN)))
    first = f"In 2015, {name} was led by ", f", who {did}."
    assert texts([batch]) == [first, (f"{prompt} ", "")]
    assert not batch.cloze


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [(led("Oslo"), "'did' of its details"), (led("Oslo", date="", did="sang"), "its 'date'")],
)
def test_a_fact_that_lacks_what_a_template_takes_is_an_error(wanted: Fact, missing: str) -> None:
    with pytest.raises(TemplateError, match=missing):
        filled(dataset_of([wanted], relation("P6", DATED)))


def test_capitals_begin_a_sentence_whoever_opens_it() -> None:
    facts = [fact("P1", "the Callas", "soprano"), fact("P1", "ßen", "tenor")]
    for text, prefixes in (
        ("[X] is a [Y].", ["The Callas is a ", "SSen is a "]),
        ("a [X] is [Y]", ["A the Callas is ", "A ßen is "]),
        ("[Y] is [X]", ["", ""]),
    ):
        (batch,) = filled(dataset_of(facts, relation("P1", text)), capitalize=True)
        assert batch.frame["prefix"].to_list() == prefixes
        assert batch.frame["subject"].to_list() == ["the Callas", "ßen"]


def test_open_templates_are_closed_once() -> None:
    facts = [fact("P127", "Yahoo Inc.", "Verizon"), fact("P127", "Flickr", "Yahoo")]
    data = dataset_of(facts, relation("P127", "[Y] owns [X]", "[X] is of [Y] . ", "[X]: [Y]  "))
    ends = [" owns Yahoo Inc.", " . ", ".", " owns Flickr.", " . ", "."]
    assert [suffix for _, suffix in texts(filled(data, close=True))] == ends
    dated = dataset_of([led("Peru", did="led")], relation("P6", "In [T] [X] was led by [Y]"))
    assert texts(filled(dated, close=True)) == [("In 2015 Peru was led by ", ".")]


@pytest.mark.parametrize(
    ("text", "language", "mark"),
    [
        ("[X] is in [Y]", "en", "."),
        ("[X] is in [Y] .", "en", ""),
        ("[X] (born in [Y])", "", "."),
        ('"[X] is in [Y]."', "", ""),
        ("[X] は [Y] にある", "ja", "。"),
        ("[X]位于[Y]", "", "。"),
        ("[X] की राजधानी [Y] है", "hi", "।"),
        ("[X] کا دارالحکومت [Y] ہے", "ur", "۔"),
        ("เมืองหลวงของ [X] คือ [Y]", "th", ""),
        ("[X] [Y]", "th", ""),
        ("Столица [X] — [Y]", "ru", "."),
    ],
)
def test_the_mark_is_that_of_the_language_or_script(text: str, language: str, mark: str) -> None:
    assert missing_full_stop(Template(id="t", text=text), language) == mark
    assert missing_full_stop(Template(id="t", text=text, source="optimised"), language) == ""


def test_facts_of_one_subject_and_date_are_one_pair_with_all_names() -> None:
    france = entity("France", id="Q1")
    facts = [
        fact("P36", france, "Paris", id="a"),
        fact("P36", entity("Gaul", "France", id="Q1"), "Lutetia", id="b"),
        fact("P36", entity("Hexagon", id="Q1"), "Lyon", id="c", split="train"),
        replace(fact("P36", france, "Vichy", id="d"), date="1940"),
    ]
    names = pairs_with_subject_names(dataset_of(facts), "P36").select("fact", "names").rows()
    assert names == [("a", ["France", "Gaul", "Hexagon"]), ("d", ["France"])]


def test_content_free_subjects_are_of_no_fact() -> None:
    (batch,) = fill_templates(
        relation("P1"), [template("t", "[X] [Y]")], content_free_subjects("?"), Score()
    )
    assert batch.frame.select("fact", "prefix").rows() == [("", "? ")]


def test_parts_of_names_are_those_of_persons_each_once() -> None:
    born = fact("P19", "Ann Ann Lee", "Rome")
    (own, subjects) = build_name_part_prompts(relation("P19"), dataset_of([born]).frame("P19")) or (
        None,
        None,
    )
    assert own is not None and own.text == "[X] is a common name in the following city: [Y]"
    assert subjects is not None and subjects["names"].to_list() == [["Ann", "Lee"]]
    assert build_name_part_prompts(relation("P36"), subjects) is None


@pytest.mark.parametrize("probe", [Lama(answer="fill"), Belief(answer="fill", bias=False)])
def test_facts_of_one_subject_at_two_dates_are_prompted_apart(probe: Probe) -> None:
    facts = [
        replace(fact("P6", "Oslo", name, id=date), date=date)
        for date, name in (("2015", "Ann"), ("2016", "Ben"))
    ]
    data = dataset_of(facts, relation("P6", "In [T], [X] was led by [Y]."))
    assert texts([*probe.prompts(data)]) == [(f"In {f.date}, Oslo was led by ", ".") for f in facts]
    assert probe.facts(data)["gold"].to_list() == ["Ann", "Ben"]
