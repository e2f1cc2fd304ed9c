"""The dataset form: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import read_parquet

from sonde.core.errors import DataError, UsageError
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Card, Dataset, Entity, Fact, Relation, Template
from sonde.data.check import folder_faults
from sonde.data.fact_files import fact_lines, placed_facts
from sonde.data.format import open_dataset, seal, write_dataset
from sonde.data.lines import read_rows
from tests.worlds import dataset_of, entity, fact, relation, template

GOLDEN = Path(__file__).parents[1] / "golden" / "dataset"

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, min_size=1, max_size=12).filter(str.strip)
ids = st.text("abcXYZ019_.-é", min_size=1, max_size=6)
entities = st.builds(Entity, id=texts, names=st.lists(texts, min_size=1, max_size=3).map(tuple))
between = st.text(characters, max_size=8).filter(lambda text: "[" not in text and "]" not in text)
words = st.text(characters, min_size=1, max_size=8).filter(lambda w: not {"\n", "\r"} & set(w))


@st.composite
def templates(draw: st.DrawFn) -> Template:
    slots = draw(st.permutations(["[X]", "[Y]"]))
    text = draw(between) + slots[0] + draw(between) + slots[1] + draw(between)
    return Template(
        id=draw(texts),
        text=text,
        source=draw(st.sampled_from(["manual", "paraphrase", "mined"])),
        style=draw(st.sampled_from(["statement", "question"])),
        group=draw(texts),
    )


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    names = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    relations = tuple(
        Relation(
            id=name,
            label=draw(texts),
            kind=draw(st.sampled_from(["1-1", "N-1", "N-M"])),
            templates=tuple(draw(st.lists(templates(), max_size=2))),
        )
        for name in names
    )
    facts = {name: draw(st.lists(_facts(name), max_size=3)) for name in names}
    return Dataset(
        card=draw(st.builds(Card, name=texts, licence=texts, description=st.just("") | texts)),
        relations=relations,
        read=lambda id: facts[id],
        fingerprint="",
        vocabulary=draw(st.none() | st.lists(words, max_size=3).map(tuple)),
    )


def _facts(relation: str) -> st.SearchStrategy[Fact]:
    return st.builds(
        Fact,
        id=texts,
        relation=st.just(relation),
        subject=entities,
        objects=st.lists(entities, min_size=1, max_size=2).map(tuple),
        split=texts,
        tags=st.lists(texts, max_size=2).map(tuple),
        wrong=st.lists(entities, max_size=2).map(tuple),
        details=st.dictionaries(texts, st.text(characters, max_size=8), max_size=2),
    )


@given(dataset=datasets(), columns=st.booleans())
def test_what_is_written_is_read_back(dataset: Dataset, columns: bool) -> None:
    with TemporaryDirectory() as folder:
        write_dataset(dataset, Path(folder), columns=not columns)  # what stood there makes way
        write_dataset(dataset, Path(folder), columns=columns)
        found = open_dataset(Path(folder))
        assert found.card == dataset.card
        assert found.relations == dataset.relations
        assert found.vocabulary == dataset.vocabulary
        for relation in dataset.relations:
            assert list(found.facts(relation.id)) == list(dataset.facts(relation.id))
            assert [fact for _, fact in placed_facts(Path(folder), relation.id)] == list(
                dataset.facts(relation.id)
            )
        write_dataset(found, Path(folder), columns=columns)  # onto itself
        assert open_dataset(Path(folder)).fingerprint == found.fingerprint


def tiny() -> Dataset:
    france = entity("France", "République française", id="Q142")
    objects = (entity("Paris", id="Q90"), entity('"<b>', id="Q0"))
    first = fact("P36", france, *objects, id="P36:Q142", tags=("hard",))
    rules = template(
        "P36-2", "[Y] rules [X].", source="paraphrase", style="question", group="P36-1"
    )
    capital = relation("P36", "The capital of [X] is [Y].", rules, label="capital", kind="1-1")
    made = dataset_of([first, replace(first, id="P36:Q1", split="train", tags=())], capital)
    card = Card(name="tiny", licence="CC0", sources=("nowhere",), description="Two facts.")
    return replace(made, card=card, vocabulary=("Paris", "Rome"))


def test_the_form_is_as_it_always_was(tmp_path: Path) -> None:
    write_dataset(tiny(), tmp_path)
    made = {p.relative_to(tmp_path): p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    golden = {p.relative_to(GOLDEN): p.read_text() for p in GOLDEN.rglob("*") if p.is_file()}
    assert made == golden


def test_an_old_folder_is_still_read() -> None:
    found = open_dataset(GOLDEN)
    assert found.card == tiny().card
    assert list(found.facts("P36")) == list(tiny().facts("P36"))


def test_what_may_be_left_out_has_a_default(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "dataset.json").write_text('{"format": 1, "name": "bare"}')
    (tmp_path / "relations.jsonl").write_text('{"id": "P1", "label": "l", "kind": "N-M"}\n\n')
    template = '{"id": "t", "relation": "P1", "text": "[X] [Y]"}'
    (tmp_path / "templates.jsonl").write_text(template)
    thing = {"id": "x", "names": ["x"]}
    fact = json.dumps({"id": "f", "subject": thing, "objects": [thing]})
    (tmp_path / "facts" / "P1.jsonl").write_text(fact + "\r\n")
    found = open_dataset(tmp_path)
    assert found.relations[0].templates[0].group == "t"
    assert next(found.facts("P1")).split == "test"
    assert found.vocabulary is None


def test_wrong_options_and_details_are_written_only_where_there_are_any(tmp_path: Path) -> None:
    plain = next(tiny().facts("P36"))
    full = replace(plain, wrong=(Entity(id="Q220", names=("Rome",)),), details={"title": "France"})
    bare, more = map(json.loads, fact_lines(frame_of([plain, full])))
    assert not {"wrong", "details"} & bare.keys()
    assert more["wrong"] == [{"id": "Q220", "names": ["Rome"]}]
    assert more["details"] == {"title": "France"}
    assert len({plain, full}) == 2  # facts can still be told apart in a set


@pytest.mark.parametrize("details", ["[]", '"a"', "null", '{"a": 1}', '{"a": ["b"]}'])
def test_details_that_are_no_texts_are_refused(tmp_path: Path, details: str) -> None:
    write_dataset(tiny(), tmp_path)
    path = tmp_path / "facts" / "P36.jsonl"
    line = path.read_text().splitlines()[0]
    path.write_text(line[:-1] + f', "details": {details}}}\n')
    seal(tmp_path)
    with pytest.raises(DataError, match="line 1: 'details' must be an object of texts"):
        list(open_dataset(tmp_path).facts("P36"))


def test_a_question_without_an_answer_slot_is_read_as_a_question(tmp_path: Path) -> None:
    write_dataset(tiny(), tmp_path)
    line = '{"id": "t", "relation": "P36", "text": "In which country is [X]?"}\n'
    (tmp_path / "templates.jsonl").write_text(line)
    seal(tmp_path)
    [question] = open_dataset(tmp_path).relations[0].templates
    assert (question.text, question.style) == ("In which country is [X]? [Y]", "question")


def test_a_template_without_a_group_is_its_own_group(tmp_path: Path) -> None:
    relation = replace(tiny().relations[0], templates=(Template(id="t", text="[X] [Y]"),))
    write_dataset(replace(tiny(), relations=(relation,)), tmp_path)
    assert open_dataset(tmp_path).relations[0].templates[0].group == "t"


def test_a_vocabulary_that_is_gone_leaves_no_trace(tmp_path: Path) -> None:
    write_dataset(tiny(), tmp_path)
    write_dataset(replace(tiny(), vocabulary=None), tmp_path)
    assert open_dataset(tmp_path).vocabulary is None


def test_facts_are_not_read_before_they_are_asked_for(tmp_path: Path) -> None:
    write_dataset(tiny(), tmp_path)
    (tmp_path / "facts" / "P36.jsonl").write_text("this is no fact\n")
    seal(tmp_path)
    facts = open_dataset(tmp_path).facts("P36")
    with pytest.raises(DataError, match=r"P36.jsonl, line 1: expected a JSON object"):
        next(facts)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"none", "is no Parquet file that can be read"), (None, "has other columns than facts have")],
)
def test_columns_that_are_no_facts_are_refused(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    write_dataset(tiny(), tmp_path, columns=True)
    path = tmp_path / "facts" / "P36.parquet"
    if content is None:
        read_parquet(path).drop("details").write_parquet(path)
    else:
        path.write_bytes(content)
    seal(tmp_path)
    with pytest.raises(DataError, match=f"P36.parquet {complaint}"):
        open_dataset(tmp_path).frame("P36")
    assert complaint in folder_faults(tmp_path)[0].text


@pytest.mark.parametrize("name", ["relations.jsonl", "templates.jsonl", "facts/P36.jsonl"])
def test_a_change_anywhere_changes_the_fingerprint(tmp_path: Path, name: str) -> None:
    write_dataset(tiny(), tmp_path)
    before = open_dataset(tmp_path).fingerprint
    (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
    with pytest.raises(DataError, match="dataset.json says " + before):
        open_dataset(tmp_path)
    head = json.loads((tmp_path / "dataset.json").read_text())
    assert seal(tmp_path) != before
    assert json.loads((tmp_path / "dataset.json").read_text()).keys() == head.keys()
    assert not list(tmp_path.glob("*.partial"))


def test_what_a_relation_says_of_itself_is_kept(tmp_path: Path) -> None:
    space = (entity("Paris", id="Q90"), entity("Rome", "Roma", id="Q220"), entity("Oslo", id="Q1"))
    known = replace(
        relation("P36.fr"), kind=None, tags=("places",), answers=space, language="fr", same="P36"
    )
    known_fact = fact("P36.fr", entity("France", id="Q142"), entity("Paris", id="Q90"))
    known_fact = replace(
        known_fact, numbers={"views": 1.5, "rank": 3}, date="2015", valid_to="2020"
    )
    write_dataset(dataset_of([known_fact], known), tmp_path / "made")
    read = open_dataset(tmp_path / "made")
    assert read.relations == (known,)
    assert list(read.facts("P36.fr")) == [known_fact]
    assert read.object_names("P36.fr") == ("Paris", "Rome", "Oslo")
    assert read.object_names("P36.fr", aliases=True) == ("Paris", "Rome", "Roma", "Oslo")
    assert read.in_languages(["fr"]).asked_relations() == (known,)
    with pytest.raises(UsageError, match="no language 'ja'; it has fr"):
        read.in_languages(["ja"])


def test_an_object_outside_the_answer_space_is_named_with_its_line(tmp_path: Path) -> None:
    known = replace(relation("P36"), answers=(entity("Rome", id="Q220"),))
    right, wrong = (
        fact("P36", entity(name, id=name), entity(city, id=id))
        for name, city, id in (("Italy", "Rome", "Q220"), ("France", "Paris", "Q90"))
    )
    write_dataset(dataset_of([right, wrong], replace(known, answers=())), tmp_path)
    row = {"id": "P36", "label": "capital", "answers": [{"id": "Q220", "names": ["Rome"]}]}
    (tmp_path / "relations.jsonl").write_text(json.dumps(row) + "\n")
    seal(tmp_path)
    with pytest.raises(DataError, match=r"P36.jsonl, line 2: object 'Q90' of fact .* answers of"):
        open_dataset(tmp_path).frame("P36")


def test_an_answer_of_another_name_is_named_with_its_line(tmp_path: Path) -> None:
    italy = fact("P36", entity("Italy", id="Q38"), entity("Rome", id="Q220"))
    write_dataset(dataset_of([italy], relation("P36")), tmp_path)
    row = {"id": "P36", "label": "capital", "answers": [{"id": "Q220", "names": ["Oslo", "O"]}]}
    (tmp_path / "relations.jsonl").write_text(json.dumps(row) + "\n")
    seal(tmp_path)
    words = r"P36.jsonl, line 1: object 'Q220' of fact .* is called 'Rome', but 'Oslo' among"
    with pytest.raises(DataError, match=words):
        open_dataset(tmp_path).frame("P36")
    (found,) = map(str, folder_faults(tmp_path))
    assert found.startswith(f"{tmp_path / 'facts' / 'P36.jsonl'}, line 1: object 'Q220'")


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_no_number_is_never_written(tmp_path: Path, value: float, columns: bool) -> None:
    odd = replace(fact("P36", "Italy", "Rome", id="f"), numbers={"rank": 3.0, "views": value})
    with pytest.raises(DataError, match=r"fact 'f' has 'views' .*, which is no number"):
        write_dataset(dataset_of([odd], relation("P36")), tmp_path, columns=columns)
    assert not list((tmp_path / "facts").iterdir())


def test_a_key_that_a_fact_has_twice_says_where(tmp_path: Path) -> None:
    write_dataset(tiny(), tmp_path)
    (path,) = (tmp_path / "facts").iterdir()
    path.write_text(path.read_text().replace('"id"', '"id": "x", "id"', 1))
    seal(tmp_path)
    dataset = open_dataset(tmp_path)
    with pytest.raises(DataError, match=r"line 1: .* key 'id' is there more than once"):
        dataset.frame(dataset.relations[0].id)


def test_a_line_that_was_cut_says_where(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"id": "a')
    with pytest.raises(DataError, match=r"Unterminated string starting at column 8$"):
        list(read_rows(tmp_path / "lines.jsonl"))


def test_facts_that_were_written_without_numbers_and_dates_are_read(tmp_path: Path) -> None:
    known = fact("P36", entity("Italy", id="Q38"), entity("Rome", id="Q220"))
    write_dataset(dataset_of([known], relation("P36")), tmp_path, columns=True)
    path = tmp_path / "facts" / "P36.parquet"
    read_parquet(path).drop("numbers", "date", "valid_from", "valid_to").write_parquet(path)
    seal(tmp_path)
    assert list(open_dataset(tmp_path).facts("P36")) == [known]
