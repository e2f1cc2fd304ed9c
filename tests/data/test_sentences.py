"""Wording by sentences, one by one or in files, and relations by their labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Selection
from sonde.data.catalog import load
from tests.worlds import world

ROWS = """subject,relation,object
Peru,capital,Lima
Peru,official language,Spanish
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "facts.csv").write_text(ROWS)
    return str(tmp_path / "facts.csv")


def texts(dataset: Dataset) -> dict[str, list[str]]:
    return {r.id: [t.text for t in r.templates] for r in dataset.relations}


WORDED = {
    "capital": ["The capital of [X] is [Y].", "What is the capital of [X]? [Y]."],
    "official-language": ["In [X] they speak [Y]."],
}
FILES = {
    "words.txt": "capital=The capital of [X] is [Y].\n\n"
    "capital = What is the capital of [X]? [Y].\n"
    "official language=In [X] they speak [Y].\n",
    "words.json": '{"capital": ["The capital of [X] is [Y].", "What is the capital of [X]? [Y]."], '
    '"OFFICIAL LANGUAGE": "In [X] they speak [Y]."}',
    "words.csv": "relation,template\ncapital,The capital of [X] is [Y].\n"
    "capital,What is the capital of [X]? [Y].\nofficial-language,In [X] they speak [Y].\n",
    "words.jsonl": '{"relation": "capital", "template": "The capital of [X] is [Y]."}\n'
    '{"relation": "capital", "template": "What is the capital of [X]? [Y]."}\n'
    '{"relation": "official language", "template": "In [X] they speak [Y]."}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_sentences_words_every_relation(name: str, table: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    dataset = load(table, str(tmp_path / name))
    assert texts(dataset) == WORDED
    assert [t.style for t in dataset.relation("capital").templates] == ["statement", "question"]


QUESTIONS = {
    "words.txt": "capital=In which country is [X]?",
    "words.json": '{"capital": "In which country is [X]?"}',
    "words.csv": "relation,template\ncapital,In which country is [X]?\n",
    "": "capital=In which country is [X]?",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_needs_no_answer_slot(name: str, table: str, tmp_path: Path) -> None:
    words = QUESTIONS[name]
    if name:
        (tmp_path / name).write_text(words)
        words = str(tmp_path / name)
    [question] = load(table, words).relation("capital").templates
    assert (question.text, question.style) == ("In which country is [X]? [Y]", "question")


def test_a_question_in_a_table_needs_no_answer_slot(tmp_path: Path) -> None:
    rows = "subject,object,template\nLyon,France,In which country is [X]?\n"
    (tmp_path / "towns.csv").write_text(rows)
    [question] = load(str(tmp_path / "towns.csv")).relations[0].templates
    assert (question.text, question.style) == ("In which country is [X]? [Y]", "question")


def test_a_statement_needs_an_answer_slot(table: str) -> None:
    with pytest.raises(DataError, match="has no \\[Y\\]"):
        load(table, "capital=The capital of [X] is")


def test_sentences_by_flags_are_the_same_as_in_a_file(table: str, tmp_path: Path) -> None:
    flags = [f"{relation}={text}" for relation, several in WORDED.items() for text in several]
    dataset = load(table, flags)
    assert texts(dataset) == WORDED
    (tmp_path / "words.txt").write_text(FILES["words.txt"])
    assert dataset.fingerprint == load(table, str(tmp_path / "words.txt")).fingerprint
    assert dataset.fingerprint != load(table).fingerprint != load(table, flags[:1]).fingerprint


def test_a_sentence_without_a_relation_is_for_the_only_one_that_is_selected(table: str) -> None:
    sentence = "The capital of [X] is [Y]."
    assert texts(load(table, sentence, relations=("Capital",))) == {"capital": [sentence]}
    with pytest.raises(DataError, match=r"of 2 relations .* or select one with --relations"):
        load(table, sentence)


def test_relations_without_a_sentence_are_left_out_and_told(
    table: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sonde")
    dataset = load(table, "capital=The capital of [X] is [Y].")
    assert list(texts(dataset)) == ["capital"]
    assert dataset.notes["facts_without_templates"] == 1
    assert caplog.messages[-1] == "left out, for no wording was given: official language"


def test_a_file_may_word_more_than_there_is(table: str, tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text('{"capital": "[X] [Y]", "colour": "[X] is [Y]."}')
    dataset = load(table, str(tmp_path / "words.json"))
    assert dataset.notes["relations_without_facts"] == 1


def test_a_bundled_dataset_takes_sentences_too() -> None:
    dataset = load("atlas", ["capital=[X] has its seat of power in [Y].", "P30=[X] is in [Y]."])
    assert texts(dataset) == {
        "P30": ["[X] is in [Y]."],
        "P36": ["[X] has its seat of power in [Y]."],
    }
    assert dataset.name == "atlas under wording"


def test_sentences_stand_beside_the_templates_of_a_source() -> None:
    dataset = load("atlas", ["P36=[X] is run from [Y].", "atlas"])
    capital = [t.text for t in dataset.relation("P36").templates]
    assert capital[0] == "[X] is run from [Y]." and len(capital) > 5


def test_a_relation_is_found_by_its_label_whatever_its_case() -> None:
    atlas = load("atlas")
    assert atlas.relation("Capital").id == atlas.relation("p36").id == "P36"
    chosen = atlas.select(Selection(relations=("CAPITAL", "P30")))
    assert chosen.selection.relations == ("P36", "P30"), "a run keeps ids"
    with pytest.raises(UsageError, match=r"no relation 'captial'; did you mean 'capital'"):
        atlas.relation("captial")


def test_a_label_that_is_the_id_is_not_said_twice() -> None:
    relation = Relation(id="Grape", label="grape", kind="N-M")
    assert relation.title == "Grape"
    assert load("atlas").relation("P36").title == "P36 capital"


def test_a_label_that_two_relations_have_names_neither() -> None:
    data = world(relations=("P36", "P1303"))
    relations = tuple(type(r)(id=r.id, label="same", kind=r.kind) for r in data.relations)
    twins = Dataset(card=data.card, relations=relations, read=data.read, fingerprint="")
    with pytest.raises(UsageError, match="label of several relations; name one by its id: P36, P1"):
        twins.relation("same")
