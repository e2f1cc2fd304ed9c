"""MyriadLAMA's rows, one prompt each, become facts with names and templates."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.probes.belief import Belief
from tests.probes.shares import Numbers

from . import sources

TEXTS = {"[X] speaks [Y].": True, "What does [X] speak? [Y].": False}


def prompts(**more: Any) -> list[dict[str, Any]]:
    """Ann, also called Annie, speaks two languages; Bea speaks one: six prompts."""
    spoken = {"uuid": "u1", "obj_uris": ["Q10", "Q11"], "obj_ents": ["Dutch", "Greek"]}
    ann = {**spoken, "obj_aliases": [["Flemish"], []]}
    bea = {"uuid": "u2", "obj_uris": ["Q10"], "obj_ents": ["Dutch"], "obj_aliases": [["Flemish"]]}
    return [
        {"rel_uri": "P1412", "sub_ent": name, "template": text, "is_manual": manual, **who, **more}
        for name, who in (("Ann", ann), ("Annie", ann), ("Bea", bea))
        for text, manual in TEXTS.items()
    ]


def check(reference: str) -> None:
    dataset = load(reference)
    [relation] = dataset.relations
    assert (relation.id, relation.label) == ("P1412", "languages spoken, written or signed")
    assert [(t.text, t.source, t.style) for t in relation.templates] == [
        ("[X] speaks [Y].", "manual", "statement"),
        ("What does [X] speak? [Y].", "paraphrase", "question"),
    ]
    ann, bea = dataset.facts("P1412")
    assert (ann.id, ann.subject.names) == ("P1412:u1", ("Ann", "Annie"))
    assert [o.names for o in ann.objects] == [("Dutch", "Flemish"), ("Greek",)]
    assert [o.names for o in bea.objects] == [("Dutch", "Flemish")]
    assert dataset.notes["rows_read"] == 6
    assert dataset.notes["prompts_not_among_rows"] == 0


def test_rows_with_an_empty_label_are_dropped_and_counted(tmp_path: Path) -> None:
    blank = [{**prompts()[0], "sub_ent": ""}, {**prompts()[0], "obj_ents": []}]
    sources.lines(tmp_path / "rows.jsonl", [*blank, *prompts()])
    check(f"myriadlama:{tmp_path}")
    assert load(f"myriadlama:{tmp_path}").notes["rows_incomplete"] == 2


def test_json_lines_are_read_and_recognised(tmp_path: Path) -> None:
    sources.lines(tmp_path / "rows.jsonl", prompts())
    check(f"myriadlama:{tmp_path}")
    check(str(tmp_path))


@pytest.mark.parametrize("written", [json.dumps, repr])
def test_csv_is_read_with_lists_as_json_or_python_text(written: Any, tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(prompts()[0]))
        table.writeheader()
        for row in prompts():
            lists = {k: written(v) for k, v in row.items() if isinstance(v, list)}
            table.writerow({**row, **lists})
    check(str(tmp_path))


def test_parquet_is_read_from_several_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for i, part in enumerate((prompts()[:2], prompts()[2:])):
        parquet.write_table(pyarrow.Table.from_pylist(part), tmp_path / "data" / f"{i}.parquet")
    check(str(tmp_path))


def test_rows_are_gathered_by_subject_where_it_has_an_identifier(tmp_path: Path) -> None:
    rows = [{**row, "uuid": str(i), "sub_uri": "Q1"} for i, row in enumerate(prompts()[:4])]
    sources.lines(tmp_path / "rows.jsonl", rows)
    [ann] = load(str(tmp_path)).facts("P1412")
    assert (ann.id, ann.subject.names) == ("P1412:Q1", ("Ann", "Annie"))


def test_where_each_row_has_its_own_uuid_rows_are_gathered_by_name(tmp_path: Path) -> None:
    rows = [{**row, "uuid": str(i)} for i, row in enumerate(prompts())]
    sources.lines(tmp_path / "rows.jsonl", rows)
    facts = load(str(tmp_path)).facts("P1412")
    assert [fact.subject.names for fact in facts] == [("Ann",), ("Annie",), ("Bea",)]


def test_repeated_and_missing_prompts_are_counted(tmp_path: Path) -> None:
    sources.lines(tmp_path / "rows.jsonl", [*prompts()[:5], prompts()[0]])
    notes = load(str(tmp_path)).notes
    assert (notes["duplicate_rows"], notes["prompts_not_among_rows"]) == (1, 1)


MANUAL = ("[X] died in [Y].", "In which place did [X] die? [Y].")
REWORDED = {
    "[X] died in the place [Y].": MANUAL[0],
    "[X] has died in [Y].": MANUAL[0],
    "In what place did [X] die? [Y].": MANUAL[1],
}


def worded(**more: Any) -> list[dict[str, Any]]:
    """Ann, first called Annie, under two templates written by hand and three paraphrases."""
    row = {"uuid": "u1", "rel_uri": "P20", "obj_uris": ["Q1"], "obj_ents": ["Ghent"]}
    return [
        {**row, "obj_aliases": [["Gent"]], "sub_ent": name, "template": text, **more}
        | {"is_manual": text in MANUAL}
        for name in ("Annie", "Ann")
        for text in (*REWORDED, *MANUAL)
    ]


def groups(reference: str) -> dict[str, str]:
    """Which template each belongs to, by text."""
    [relation] = load(reference).relations
    texts = {t.id: t.text for t in relation.templates}
    return {t.text: texts[t.group] for t in relation.templates}


def test_a_paraphrase_belongs_to_the_group_that_its_row_names(tmp_path: Path) -> None:
    named = {**REWORDED, "[X] has died in [Y].": MANUAL[1], **{text: text for text in MANUAL}}
    rows = [{**row, "group": named[row["template"]]} for row in worded()]
    sources.lines(tmp_path / "rows.jsonl", rows)
    assert groups(str(tmp_path)) == named
    assert load(str(tmp_path)).notes["paraphrases_grouped_by_likeness"] == 0
    numbers = {text: str(MANUAL.index(named[text])) for text in named}
    sources.lines(
        tmp_path / "rows.jsonl", [{**row, "group": numbers[row["template"]]} for row in worded()]
    )
    assert groups(str(tmp_path)) == named


def test_without_a_name_the_group_is_that_of_the_likest_template_and_that_is_counted(
    tmp_path: Path,
) -> None:
    sources.lines(tmp_path / "rows.jsonl", worded())
    assert groups(str(tmp_path)) == {**REWORDED, **{text: text for text in MANUAL}}
    assert load(str(tmp_path)).notes["paraphrases_grouped_by_likeness"] == 3


def test_the_original_name_is_the_one_marked_else_the_label_else_the_first(tmp_path: Path) -> None:
    def first(rows: list[dict[str, Any]]) -> tuple[tuple[str, ...], int]:
        sources.lines(tmp_path / "rows.jsonl", rows)
        dataset = load(str(tmp_path))
        [fact] = dataset.facts("P20")
        return fact.subject.names, dataset.notes["original_names_guessed"]

    assert first(worded()) == (("Annie", "Ann"), 1)
    assert first(worded(sub_label="Ann")) == (("Ann", "Annie"), 0)
    marked = [{**row, "is_original": row["sub_ent"] == "Ann"} for row in worded(sub_label="Annie")]
    assert first(marked) == (("Ann", "Annie"), 0)
    assert first(worded(sub_label="Anna")) == (("Annie", "Ann"), 1)
    assert first([row for row in worded() if row["sub_ent"] == "Ann"]) == (("Ann",), 0)


def test_columns_that_are_empty_in_a_table_say_nothing(tmp_path: Path) -> None:
    rows = [
        {**row, "obj_uris": '["Q1"]', "obj_ents": '["Ghent"]', "obj_aliases": "[]"}
        for row in worded(sub_label="", is_original="", group="")
    ]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    notes = load(str(tmp_path)).notes
    assert notes["original_names_guessed"] == 1
    assert notes["paraphrases_grouped_by_likeness"] == 3


def test_pairs_that_only_a_name_tells_apart_are_counted(tmp_path: Path) -> None:
    rows = [{**row, "uuid": str(i)} for i, row in enumerate(prompts())]
    sources.lines(tmp_path / "rows.jsonl", rows)
    assert load(str(tmp_path)).notes["pairs_told_by_name"] == 3
    sources.lines(tmp_path / "rows.jsonl", prompts())
    assert load(str(tmp_path)).notes["pairs_told_by_name"] == 0


def test_beliefs_tables_of_groups_and_of_names_are_measured_on_such_rows(tmp_path: Path) -> None:
    bea = {"uuid": "u2", "sub_ent": "Bea", "obj_uris": ["Q2"], "obj_ents": ["Lima"]}
    more = [{**row, **bea, "obj_aliases": []} for row in worded() if row["sub_ent"] == "Ann"]
    sources.lines(tmp_path / "rows.jsonl", [*worded(sub_label="Ann"), *more])
    dataset = load(str(tmp_path))
    # Ann is right in the first group and wrong in the second; Annie makes her end likelier
    answers = {
        (t.id, name): {"Ghent": share}
        if t.group.endswith("-4")
        else {"Bruges": 0.9, "Ghent": share}
        for t in dataset.relation("P20").templates
        for name, share in (("Ann", 0.02), ("Annie", 0.04))
    }
    probe = Belief(answer="fill", bias=False)
    model = lambda prompt: answers.get((prompt["template"], prompt["subject"]), {})  # noqa: E731
    value = Numbers(probe, dataset, model)
    assert value("groups.inner_consistency") == 1.0
    # to Bea the model has the same answer throughout
    assert value("groups.inter_consistency") == 0.5
    assert value("manual.rank") is not None
    assert value("aliases_help.subject") == 1.0
    assert dataset.notes["paraphrases_grouped_by_likeness"] == 3


@pytest.mark.parametrize(
    ("aliases", "names"),
    [
        ({"Q10": ["Flemish"]}, [("Dutch", "Flemish"), ("Greek",)]),
        ({"Greek": ["Hellenic"]}, [("Dutch",), ("Greek", "Hellenic")]),
        (["Flemish"], [("Dutch", "Flemish"), ("Greek",)]),
        (None, [("Dutch",), ("Greek",)]),
    ],
)
def test_aliases_come_in_several_forms(aliases: Any, names: Any, tmp_path: Path) -> None:
    sources.lines(tmp_path / "rows.jsonl", [{**prompts()[0], "obj_aliases": aliases}])
    [fact] = load(str(tmp_path)).facts("P1412")
    assert [o.names for o in fact.objects] == names


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"obj_uris": "Q10, Q11"}, "'obj_uris' must be a list"),
        ({"obj_ents": ["Dutch"]}, "equally long"),
        ({"is_manual": "perhaps"}, "'is_manual' must be true or false"),
        ({"template": 5}, "'template'"),
        ({"obj_aliases": 3}, "'obj_aliases'"),
    ],
)
def test_a_bad_row_is_named(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    sources.lines(tmp_path / "rows.jsonl", [prompts()[0], {**prompts()[1], **wrong}])
    with pytest.raises(DataError, match="line 2") as error:
        load(f"myriadlama:{tmp_path}")
    assert said in str(error.value)


def test_a_table_without_the_columns_is_refused(tmp_path: Path) -> None:
    sources.lines(tmp_path / "rows.jsonl", [{"uuid": "u1"}])
    with pytest.raises(DataError, match="rel_uri"):
        load(f"myriadlama:{tmp_path}")


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match="not a Parquet file"):
        load(f"myriadlama:{tmp_path}")
