"""Facts of one source under the templates and with the names of others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact
from sonde.data.catalog import load, readers
from sonde.data.format import open_dataset, write_dataset
from sonde.data.lines import Row
from sonde.data.statistics import relation_counts, totals
from sonde.data.tables.columns import Faults
from sonde.data.tables.dataset import Table, dataset_of
from sonde.testing import check_dataset
from tests.docs.pages import DOCS, first_cells

from . import sources

GOLDEN = Path(__file__).parents[1] / "golden_values" / "answers"

ELSEWHERE = ("templates_dropped_in_review", "relations_without_question", "questions_without_facts")
"""Counts of a review and of KAMEL, whose own tests find them."""


def facts(dataset: Dataset, relation: str = "P1") -> dict[str, Fact]:
    return {fact.subject.name: fact for fact in dataset.facts(relation)}


def names(fact: Fact) -> list[tuple[str, ...]]:
    return [entity.names for entity in fact.objects]


@pytest.fixture
def lama(tmp_path: Path) -> str:
    return f"lama:{sources.lama(tmp_path / 'lama')}"


def test_lama_alone_keeps_a_fact_per_row(lama: str) -> None:
    assert len(list(load(lama).facts("P1"))) == 3


def test_rows_of_one_subject_become_one_fact_with_all_objects(lama: str, tmp_path: Path) -> None:
    joined = load(f"{lama}+pararel:{sources.pararel(tmp_path / 'p')}")
    ann = facts(joined)["Ann"]
    assert (ann.id, names(ann)) == ("P1:Q1", [("Dutch",), ("Greek",)])
    assert facts(joined)["Bea"].id == "P1:Bea"
    assert joined.notes["rows_merged"] == 1


def test_an_empty_pattern_is_left_out_and_counted(lama: str, tmp_path: Path) -> None:
    path = sources.pararel(tmp_path / "p") / "P1.jsonl"
    path.write_text(path.read_text() + '{"pattern": ""}\n')
    joined = load(f"{lama}+pararel:{tmp_path / 'p'}")
    assert joined.notes["templates_read"] == 5 and joined.notes["rows_incomplete"] == 1


def test_patterns_take_the_place_of_the_templates_and_what_is_left_out_is_counted(
    lama: str, tmp_path: Path
) -> None:
    joined = load(f"{lama}+pararel:{sources.pararel(tmp_path / 'p')}")
    assert [r.id for r in joined.relations] == ["P1"]
    texts = {t.id: t.text for t in joined.relations[0].templates}
    assert texts == {
        "P1-pararel-1": "[X] speaks [Y].",
        "P1-pararel-2": "[Y] is spoken by [X].",
    }
    assert joined.notes == {
        "rows_read": 4,
        "duplicate_rows": 0,
        "rows_merged": 1,
        "relations_without_templates": 1,
        "facts_without_templates": 1,
        "relations_without_facts": 1,
        "templates_without_facts": 1,
        "templates_read": 5,
        "templates_repeated": 1,
        "templates_without_slots": 1,
    }
    check_dataset(joined)


def test_aliases_add_names_and_correct_objects_and_survive_missing_identifiers(
    lama: str, tmp_path: Path
) -> None:
    joined = load(f"{lama}+aliases:{sources.aliases(tmp_path / 'a')}")
    ann, bea = facts(joined)["Ann"], facts(joined)["Bea"]
    assert ann.subject.names == ("Ann", "Annie")
    assert names(ann) == [("Dutch", "Flemish"), ("Greek",), ("Irish", "Gaelic")]
    assert bea.subject.names == ("Bea",)
    assert {k: joined.notes[k] for k in list(joined.notes)[-4:]} == {
        "subjects_without_aliases": 1,
        "subject_names_added": 2,
        "objects_added": 1,
        "objects_without_names": 1,
    }


def test_aliases_without_multi_valued_objects_only_add_names(lama: str, tmp_path: Path) -> None:
    folder = sources.aliases(tmp_path / "a")
    (folder / "multi_valued.tsv").unlink()
    joined = load(f"{lama}+aliases:{folder}")
    assert names(facts(joined)["Ann"]) == [("Dutch", "Flemish"), ("Greek",)]


def test_a_template_that_says_what_lama_s_own_says_is_lama_s_own(lama: str, tmp_path: Path) -> None:
    [own] = load(lama).relation("P1").templates
    assert (own.text, own.origin) == ("[X] speaks [Y] .", "lama")
    rows = [{"pattern": "[X] talks in [Y]."}, {"pattern": "[X] speaks [Y]."}]
    sources.lines(tmp_path / "p" / "P1.jsonl", rows)
    joined = load(f"{lama}+pararel:{tmp_path / 'p'}")
    assert [t.origin for t in joined.relation("P1").templates] == ["", "lama"]
    write_dataset(joined, tmp_path / "written")
    assert load(str(tmp_path / "written")).relations == joined.relations


def test_lpaqa_gives_sources(lama: str, tmp_path: Path) -> None:
    folder = sources.lpaqa(tmp_path / "l")
    both = load(f"{lama}+lpaqa:{folder}").relations[0].templates
    assert [t.source for t in both] == ["mined", "paraphrase"]
    mined = load(f"{lama}+lpaqa:{folder / 'mine'}").relations[0].templates
    assert [t.id for t in mined] == ["P1-lpaqa-mine-1"]
    best = load(f"{lama}+lpaqa:{folder / 'top1_relations.jsonl'}").relations[0].templates
    assert [t.text for t in best] == ["[X] uses [Y] ."]


def test_several_sources_of_templates_are_put_together(lama: str, tmp_path: Path) -> None:
    p, q = sources.pararel(tmp_path / "p"), sources.lpaqa(tmp_path / "l")
    joined = load(f"{lama}+pararel:{p}+lpaqa:{q}+aliases:{sources.aliases(tmp_path / 'a')}")
    assert len(joined.relations[0].templates) == 4
    assert joined.name == "lama+pararel+lpaqa+aliases"
    assert joined.notes["templates_read"] == 5 + 3


def test_a_text_that_two_sources_have_stays_once_and_is_counted(lama: str, tmp_path: Path) -> None:
    p, q = sources.pararel(tmp_path / "p"), sources.pararel(tmp_path / "q")
    joined = load(f"{lama}+pararel:{p}+pararel:{q}")
    assert len(joined.relations[0].templates) == 2
    # one repeated within each, and all three of the second stand in the first
    assert joined.notes["templates_repeated"] == 1 + 1 + 3


def test_every_source_is_in_the_fingerprint(lama: str, tmp_path: Path) -> None:
    p, a = sources.pararel(tmp_path / "p"), sources.aliases(tmp_path / "a")
    whole = f"{lama}+pararel:{p}+aliases:{a}"
    prints = {load(r).fingerprint for r in (lama, f"{lama}+pararel:{p}", whole)}
    (a / "en.tsv").write_text("Q1\tAnita\n")
    prints.add(load(whole).fingerprint)
    (p / "P1.jsonl").write_text('{"pattern": "[X] has [Y]."}\n')
    prints.add(load(whole).fingerprint)
    assert len(prints) == 5


def test_a_joined_dataset_survives_being_written(lama: str, tmp_path: Path) -> None:
    p = sources.lpaqa(tmp_path / "l")
    joined = load(f"{lama}+lpaqa:{p}+aliases:{sources.aliases(tmp_path / 'a')}")
    write_dataset(joined, tmp_path / "out")
    again = open_dataset(tmp_path / "out")
    assert again.relations == joined.relations
    assert facts(again) == facts(joined)


@pytest.mark.parametrize(
    ("reference", "error", "said"),
    [
        ("pararel:{p}", UsageError, "pararel holds no facts"),
        ("atlas+parrel:{p}", UsageError, "'parrel'"),
        ("lama:{l}+parrel:{p}", UsageError, "did you mean 'pararel'"),
        ("lama:{l}+pararel:{p}/nowhere", DataError, "does not exist"),
        ("lama:{l}/nowhere+pararel:{p}", DataError, "nowhere is not a folder"),
        ("lama:{l}+pararel:{l}", DataError, "no P*.jsonl"),
        ("lama:{l}+lpaqa:{l}", DataError, "no template of LPAQA"),
        ("lama:{l}+aliases:{p}", DataError, "en.tsv is missing"),
        ("atlas+pararel:{p}", DataError, "no relation has facts and templates"),
    ],
)
def test_a_bad_combination_is_refused_clearly(
    reference: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    places = {"l": sources.lama(tmp_path / "l"), "p": sources.pararel(tmp_path / "p")}
    with pytest.raises(error, match=said.replace("*", r"\*")):
        load(reference.format(**places))


@pytest.mark.parametrize("line", ["Q1", "Q1\t", "\tAnn"])
def test_a_line_of_names_without_a_name_is_refused_with_its_number(
    line: str, lama: str, tmp_path: Path
) -> None:
    folder = sources.aliases(tmp_path / "a")
    (folder / "en.tsv").write_text(f"Q1\tAnn\n{line}\n")
    with pytest.raises(DataError, match="line 2"):
        load(f"{lama}+aliases:{folder}")


def test_statistics_count_triples_pairs_and_prompts(lama: str, tmp_path: Path) -> None:
    p, a = sources.pararel(tmp_path / "p"), sources.aliases(tmp_path / "a")
    joined = load(f"{lama}+pararel:{p}+aliases:{a}")
    counted = totals(relation_counts(joined))
    # Ann (2 names): Dutch 2, Greek 1, Irish 2; Bea (1 name): Dutch 2; under 2 templates
    assert (counted["unique triples"], counted["subject-relation pairs"]) == (4, 2)
    assert counted["derived triples"] == (2 * 5 + 1 * 2) * 2
    assert (counted["prompts"], counted["prompts per pair"]) == (6, 3.0)


@pytest.mark.shared
def test_the_real_sources_join_into_half_a_million_prompts(shared: Path) -> None:
    data = shared / "data"
    lama = f"lama:{data / 'lama'}"
    alone = load(lama)
    assert sum(1 for r in alone.relations for _ in alone.asked(r.id)) == 34_017
    joined = load(f"{lama}+pararel:{data / 'pararel'}+aliases:{data / 'aliases'}")
    counted = totals(relation_counts(joined))
    assert (counted["relations"], counted["templates"]) == (39, 329)
    assert (counted["subject-relation pairs"], counted["prompts"]) == (29_784, 552_278)
    assert joined.notes["subjects_without_aliases"] == 32


@pytest.mark.shared
def test_the_real_lpaqa_templates_are_read(shared: Path) -> None:
    data = shared / "data"
    joined = load(f"lama:{data / 'lama'}+lpaqa:{data / 'lpaqa'}")
    assert joined.notes["templates_read"] == 1_166 + 1_073


def test_every_count_of_what_is_left_out_is_documented(lama: str, tmp_path: Path) -> None:
    p, a = sources.pararel(tmp_path / "p"), sources.aliases(tmp_path / "a")
    sources.lines(tmp_path / "lama/train/P1/train.jsonl", [{"sub": "Cid", "obj": "Latin"}])
    prompt = {"uuid": "u", "rel_uri": "P1", "sub_ent": "Ann", "template": "[X] [Y]"}
    objects = {"obj_uris": ["Q10"], "obj_ents": ["Dutch"], "obj_aliases": [], "is_manual": 1}
    sources.lines(tmp_path / "m" / "rows.jsonl", [{**prompt, **objects}])
    (tmp_path / "P17-subclass.json").write_text('{"relations": ["Where is [X]?"]}')
    found = {**load(f"{lama}+pararel:{p}+aliases:{a}").notes, **load(str(tmp_path / "m")).notes}
    found |= readers()["fktc"].read(tmp_path).notes  # it holds no fact
    found |= load(f"bmlama:{GOLDEN / 'tongues'}").notes
    words = {"relation": "P1", "template": "[X] [Y]"}
    triple = {"sub_label": "Ann", "obj_label": "Dutch", "sub_uri": "Q1", "obj_uri": "Q10"}
    sources.lines(tmp_path / "t" / "en" / "templates.jsonl", [words])
    sources.lines(tmp_path / "t" / "en" / "P1.jsonl", [triple])
    found |= load(f"mlama:{tmp_path / 't'}").notes
    found |= dict.fromkeys(ELSEWHERE, 0)
    half = Row({"subject": "Ann", "object": "", "spoken": "Dutch"}, "row 1")
    table = Table(source="t", file="t", title="t", rows=[half])
    given = {"object": ["object", "spoken"]}
    found |= dataset_of(table, given, Faults("t", "")).notes
    rows = [half, Row({**half.values, "object": "Dutch"}, "row 2")]
    found |= dataset_of(replace(table, rows=rows, published=True), {}, Faults("t", "")).notes
    assert set(found) == set(first_cells(DOCS / "public-datasets.md", "Counts"))
