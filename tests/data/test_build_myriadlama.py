"""MyriadLAMA's steps: the base's pairs, the objects that triples bring, names, and all of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError
from sonde.core.facts import APART, Dataset, Entity
from sonde.data.builders.myriadlama.assembly import (
    Gathered,
    extended,
    kept,
    pairs,
    prompt_rows,
    translated,
)
from sonde.data.builders.myriadlama.objects import (
    Mined,
    Named,
    Names,
    Objects,
    mine,
    stated,
    table_names,
)
from sonde.data.builders.triples import Faults, triple_files
from sonde.data.builders.work import Journal
from sonde.data.catalog import load
from sonde.data.lines import write_rows
from tests import worlds
from tests.worlds import dataset_of, entity, fact, relation

LENNON = entity("John Lennon", id="Q1203")
GUITAR = entity("guitar", id="Q6607")
PIANO = "Q5994"


def band(*more: Entity) -> Dataset:
    """John Lennon's guitar, and another of his name whom nobody can tell apart by it."""
    facts = [fact("P1303", LENNON, GUITAR, *more), fact("P1303", entity("Ravi", id="Q1"), "sitar")]
    return dataset_of(facts, relation("P1303", "[X] plays [Y].", label="instrument"))


def written(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(subject: str, object: str, subject_id: str = "", object_id: str = "") -> dict[str, Any]:
    ids = {"sub_uri": subject_id or None, "obj_uri": object_id or None}
    return {"sub_label": subject, "obj_label": object, "relation": "P1303", **ids}


def mined(dataset: Dataset, tmp_path: Path, *rows: dict[str, Any]) -> Mined:
    path = written(tmp_path / "triples.jsonl", rows)
    return mine(dataset, [path], Journal(tmp_path / "j"), Faults(limit=0))


def test_a_base_has_one_fact_for_a_subject_and_none_that_was_collected_apart() -> None:
    rows = [
        fact("P37", entity("Chile", id="Q298"), "Spanish", id="a"),
        fact("P37", entity("Chile", id="Q298"), "Mapudungun", id="b"),
        fact("P37", "Peru", "Quechua", id="c", split="train", tags=(APART,)),
        fact("P36", "Peru", "Lima", id="d", split="train", tags=(APART,)),
    ]
    base = pairs(dataset_of(rows))
    [one] = [f for r in base.relations for f in base.facts(r.id)]
    assert [e.name for e in one.objects] == ["Spanish", "Mapudungun"]
    with pytest.raises(DataError, match="no facts to build on"):
        pairs(dataset_of(rows[2:]))


def test_what_a_model_judged_is_made_once_for_each_key(tmp_path: Path) -> None:
    made: list[str] = []

    def make(name: str) -> Dataset:
        made.append(name)
        return band()

    for key in ("a", "a", "b"):
        again = kept(tmp_path, key, lambda key=key: make(key))  # type: ignore[misc]
        assert again.size == 2
    assert made == ["a", "b"]


def test_a_triple_finds_its_fact_by_identifier(tmp_path: Path) -> None:
    found = mined(
        band(),
        tmp_path,
        row("Lennon", "piano", "Q1203", PIANO),
        row("John Lennon", "drums", "Q999", "Q11404"),
        {**row("John Lennon", "London", "Q1203", "Q84"), "relation": "P937"},
    )
    assert found.objects == {("P1303", "Q1203"): {PIANO: "piano"}}
    assert (found.rows, found.matched) == (3, 1), "one of that name is not him"


def test_a_triple_without_identifiers_finds_it_by_a_name_of_one_thing_alone(tmp_path: Path) -> None:
    twins = [fact("P1303", entity("Sam", id=f"Q{n}"), "lute") for n in (7, 8)]
    dataset = dataset_of([*band().facts("P1303"), *twins], relation("P1303", label="instrument"))
    rows = [
        {"head": "john lennon", "relation": "Instrument", "tail": "Guitar"},
        {"head": "John  Lennon", "relation": "P1303", "tail": "piano"},
        {"head": "Sam", "relation": "instrument", "tail": "piano"},
    ]
    found = mined(dataset, tmp_path, *rows)
    assert found.objects == {("P1303", "Q1203"): {"Q6607": "Guitar", "piano": "piano"}}


def test_documents_of_trex_are_triples(tmp_path: Path) -> None:
    wiki = "http://www.wikidata.org"
    document = {
        "docid": f"{wiki}/entity/Q1203",
        "title": "John Lennon",
        "text": "He played.",
        "triples": [
            {
                "subject": {"uri": f"{wiki}/entity/Q1203", "surfaceform": None},
                "predicate": {"uri": f"{wiki}/prop/direct/P1303", "surfaceform": None},
                "object": {"uri": f"{wiki}/entity/{PIANO}", "surfaceform": "piano"},
                "annotator": "NoSubject-Triple-aligner",
            },
            {
                "subject": {"uri": f"{wiki}/entity/Q1203", "surfaceform": "He"},
                "predicate": {"uri": f"{wiki}/prop/direct/P569"},
                "object": {"uri": "1940-10-09T00:00:00Z^^http://www.w3.org/x", "surfaceform": "9"},
            },
        ],
    }
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "re-nlg_0-10000.json").write_text(json.dumps([document]))
    (tmp_path / "t" / "dataset.json").write_text('{"no": "documents"}')
    source = triple_files(tmp_path / "t")
    triples = list(source.read(Faults(limit=0), lambda count: None))
    assert [(t.relation, t.subject, t.entities[1].id) for t in triples] == [
        ("P1303", "John Lennon", PIANO),
        ("P569", "He", "9"),
    ]
    journal = Journal(tmp_path / "j")
    paths = [tmp_path / "t" / "re-nlg_0-10000.json"]
    assert mine(band(), paths, journal, Faults(limit=0)).objects == {
        ("P1303", "Q1203"): {PIANO: "piano"}
    }
    paths[0].write_text("[{}, {")
    with pytest.raises(DataError, match=r"re-nlg_0-10000.json: no list of T-REx's documents"):
        mine(band(), paths, journal, Faults(limit=0))


def test_a_file_is_read_once_for_a_base(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    first = written(tmp_path / "a.jsonl", [row("x", "piano", "Q1203", PIANO)])
    second = tmp_path / "b.jsonl.gz"
    second.write_bytes(gzip.compress(json.dumps(row("x", "drums", "Q1203", "Q11404")).encode()))
    whole = mine(band(), [first, second], journal, Faults(limit=0))
    assert len(journal) == 2
    heard: list[int] = []
    again = mine(band(), [first, second], Journal(tmp_path / "j"), Faults(limit=0), heard.append)
    assert again == whole and sum(heard) == first.stat().st_size + second.stat().st_size
    other = dataset_of([fact("P1303", LENNON, "harp")], relation("P1303"))
    mine(other, [first], journal, Faults(limit=0))
    assert len(journal) == 3, "other facts find other objects"


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["Q1203", "Q1", "Q2", ""]),
        st.sampled_from(["John Lennon", "Ravi", "ravi", "who"]),
        st.sampled_from(["Q6607", PIANO, "Q3", ""]),
        st.sampled_from(["guitar", "piano", "sitar", "Sitar"]),
        st.sampled_from(["P1303", "instrument", "P1"]),
    ),
    max_size=12,
)


@given(ROWS)
def test_mining_is_the_same_as_looking_at_each_row_for_each_fact(
    rows: list[tuple[str, ...]],
) -> None:
    import tempfile

    dataset = band()
    known = {"Q1203": ("John Lennon", {"guitar": "Q6607"}), "Q1": ("Ravi", {})}
    names = {"guitar": "Q6607", "sitar": "sitar"}
    naive: Objects = {}
    for subject_id, subject, object_id, object, label in rows:
        if label == "P1":
            continue
        for id, (name, _) in known.items():
            by_name = not subject_id and name.casefold() == subject.casefold()
            if subject_id == id or by_name:
                found = object_id or names.get(object.casefold(), object)
                naive.setdefault(("P1303", id), {}).setdefault(found, object)
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            {**row(subject, object, subject_id, object_id), "relation": label}
            for subject_id, subject, object_id, object, label in rows
        ]
        assert mined(dataset, Path(folder), *lines).objects == naive


def test_faulty_rows_are_passed_over_up_to_a_limit(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", [{"head": "x"}, row("x", "piano", "Q1203", PIANO)])
    faults = Faults(limit=1)
    assert mine(band(), [path], Journal(tmp_path / "j"), faults).matched == 1
    assert "line 1" in faults.first[0]
    with pytest.raises(DataError, match="line 1"):
        mine(band(), [path], Journal(tmp_path / "k"), Faults(limit=0))
    assert not (tmp_path / "k").exists()


def built(objects: dict[str, Objects], names: Names, base: Dataset | None = None) -> Dataset:
    return extended(base or band(), Gathered(objects=objects, names=names), "en")


def first_fact(dataset: Dataset) -> tuple[tuple[str, ...], list[tuple[str, tuple[str, ...]]]]:
    one = next(dataset.facts("P1303"))
    return one.subject.names, [(e.id, e.names) for e in one.objects]


PAIR = ("P1303", "Q1203")


def test_original_names_stand_first_and_objects_follow_the_facts_own() -> None:
    names = {
        "Q1203": Named(("John Winston Lennon", "John Lennon"), "Q1203"),
        "Q6607": Named(("acoustic guitar", "guitar"), "Q6607"),
        PIANO: Named(("piano", "pianoforte"), PIANO),
    }
    objects = {"statements": {PAIR: {PIANO: "", "Q404": ""}}, "triples": {PAIR: {PIANO: "Piano"}}}
    made = built(objects, names)
    assert first_fact(made) == (
        ("John Lennon", "John Winston Lennon"),
        [("Q6607", ("guitar", "acoustic guitar")), (PIANO, ("piano", "pianoforte"))],
    )
    assert {k: n for k, n in made.notes.items() if n} == {
        "facts_with_more_subject_names": 1,
        "facts_with_more_object_names": 1,
        "facts_with_more_objects": 1,
        "objects_from_statements": 1,
        "objects_without_names": 1,
    }
    assert made.relations[0].language == "en"


def test_an_object_that_only_triples_name_goes_by_that_name() -> None:
    objects = {"statements": {PAIR: {PIANO: ""}}, "triples": {PAIR: {PIANO: "piano"}}}
    made = built(objects, {})
    assert first_fact(made)[1][1] == (PIANO, ("piano",))
    assert made.notes["objects_from_triples"] == 1 and not made.notes.get("objects_without_names")


def test_a_merged_item_and_a_bare_name_are_the_object_they_stand_for() -> None:
    names = {
        "Q6607": Named(("guitar",), "Q6607"),
        "Q66": Named(("guitar", "six-string"), "Q6607"),
        PIANO: Named(("piano", "grand"), PIANO),
    }
    found = {PAIR: {"Q66": "", "Grand": "Grand", PIANO: "", "GUITAR": "GUITAR"}}
    assert [id for id, _ in first_fact(built({"triples": found}, names))[1]] == ["Q6607", PIANO]
    twice = built({}, names, band(entity("guitar", id="Q66")))
    assert first_fact(twice)[1] == [("Q6607", ("guitar", "six-string"))]


def test_objects_outside_an_answer_space_are_left_out() -> None:
    base = band()
    space = (GUITAR, entity("sitar"), entity("lute", id="Q180733"))
    closed = replace(base, relations=(replace(base.relations[0], answers=space),))
    made = built({"triples": {PAIR: {PIANO: "piano", "Q180733": "lute"}}}, {}, closed)
    assert [id for id, _ in first_fact(made)[1]] == ["Q6607", "Q180733"]
    assert made.notes["objects_outside_answers"] == 1


IDS = st.sampled_from(["Q6607", "Q66", PIANO, "Q3", "grand", "guitar"])
NAMES = st.dictionaries(
    IDS,
    st.builds(Named, st.lists(st.sampled_from("abc"), unique=True, max_size=2).map(tuple), IDS),
)


@given(st.dictionaries(IDS, st.sampled_from(["", "a", "grand", "guitar"])), NAMES)
def test_own_objects_stay_first_and_every_object_has_a_name_and_stands_once(
    found: dict[str, str], names: dict[str, Named]
) -> None:
    made = built({"triples": {PAIR: found}}, names)
    (subject, *_), objects = first_fact(made)
    assert subject == "John Lennon"
    assert objects[0][0] == "Q6607" and objects[0][1][0] == "guitar"
    same = [names[id].same if id in names else id for id, _ in objects]
    assert len(set(same)) == len(same)
    assert all(each for _, each in objects)
    assert len(objects) - 1 == made.notes.get("objects_from_triples", 0)


def test_a_translated_set_has_the_names_of_its_language_alone() -> None:
    base = replace(band(entity("harp", id="Q47369")), vocabulary=("guitar",))
    names = {
        "Q1203": Named(("ジョン・レノン", "レノン"), "Q1203"),
        "Q6607": Named(("ギター",), "Q6607"),
        "Q1": Named(("ラヴィ",), "Q1"),
        PIANO: Named(("ピアノ",), PIANO),
    }
    spoken = translated(base, names, "ja")
    made = extended(
        spoken, Gathered(objects={"triples": {PAIR: {PIANO: "piano"}}}, names=names), "ja"
    )
    assert made.size == 1 and made.notes["facts_without_names"] == 1, "the sitar has no name"
    assert first_fact(made) == (
        ("ジョン・レノン", "レノン"),
        [("Q6607", ("ギター",)), (PIANO, ("ピアノ",))],
    )
    assert made.relations[0].language == "ja" and made.vocabulary is None
    with pytest.raises(DataError, match="no fact of 'world' has names in 'ja'"):
        translated(base, {}, "ja")


def test_statements_of_other_pairs_do_not_count() -> None:
    statements = [(PAIR, ["Q1", "Q2"]), (("P19", "Q1203"), ["Q3"]), (("P1303", "Q9"), ["Q3"])]
    assert stated(statements, band()) == {PAIR: {"Q1": "", "Q2": ""}}


def test_a_relation_of_one_language_has_the_statements_of_what_it_is_in_all() -> None:
    spoken = replace(relation("P1303.ja", "[X]は[Y]"), language="ja", same="P1303")
    dataset = dataset_of([fact("P1303.ja", LENNON, GUITAR)], spoken)
    assert stated([(PAIR, [PIANO])], dataset) == {("P1303.ja", "Q1203"): {PIANO: ""}}


def test_rows_are_read_back_as_the_same_set(tmp_path: Path) -> None:
    """Names, the original first; objects with their names; the groups of templates."""
    head = worlds.template("a", "[X] plays [Y].")
    more = [
        worlds.template("a-1", "It is [Y] that [X] plays.", source="paraphrase", group="a"),
        worlds.question("b", "What does [X] play?"),
    ]
    names = {
        "Q1203": Named(("Lennon",), "Q1203"),
        "Q6607": Named(("six-string",), "Q6607"),
        PIANO: Named(("piano", "grand"), PIANO),
    }
    base = dataset_of(list(band().facts("P1303")), relation("P1303", head, *more))
    made = built({"triples": {PAIR: {PIANO: ""}}}, names, base)
    write_rows(tmp_path / "rows.jsonl", prompt_rows(made))
    again = load(f"myriadlama:{tmp_path}")
    assert again.notes["rows_read"] == 3 * (2 + 1)
    left = ("prompts_not_among_rows", "original_names_guessed", "paraphrases_grouped_by_likeness")
    assert not any(again.notes[key] for key in left)
    assert first_fact(again) == first_fact(made)
    texts = [{t.id: t.text for t in d.relations[0].templates} for d in (made, again)]
    grouped = [
        [(t.text, t.source, text[t.group]) for t in d.relations[0].templates]
        for d, text in zip((made, again), texts, strict=True)
    ]
    assert grouped[0] == grouped[1]


def test_a_table_has_the_names_of_a_language(tmp_path: Path) -> None:
    (tmp_path / "ja.tsv").write_text("Q1\tジョン\tレノン\nQ2\tx\n", encoding="utf-8")
    assert table_names(tmp_path, "ja", {"Q1"}) == {"Q1": Named(("ジョン", "レノン"), "Q1")}
    with pytest.raises(DataError, match=r"en.tsv is missing: names in 'en'"):
        table_names(tmp_path, "en", {"Q1"})
