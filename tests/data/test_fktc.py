"""FKTC's files: frames, facts and wrong objects, and everything that is off in them, counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import DataError
from sonde.data.catalog import load
from sonde.data.check import problems
from sonde.prompting.cues import answer_last_templates, question_templates
from sonde.prompting.options import (
    draw_wrong_names,
    names_correct_for,
    names_correct_for_repeated_subjects,
)

SEVEN = tuple(
    f"Where, in {word} words, lies [X]?" for word in "one two three four five six no".split()
)


def row(subject: str, object: str, wrong: Sequence[str] = ("Peru", "Mali")) -> dict[str, Any]:
    return {"subject": subject, "object": object, "taxonomy": list(wrong)}


def written(
    folder: Path, *rows: dict[str, Any], frames: Sequence[str] = SEVEN, name: str = "P17-subclass"
) -> Path:
    """A folder with the file of one relation."""
    folder.mkdir(exist_ok=True)
    lines = [{"relations": list(frames)}, *rows]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def test_frames_become_questions_with_a_place_for_the_answer(tmp_path: Path) -> None:
    relation = load(f"fktc:{written(tmp_path, row('Ulm', 'Germany'))}").relation("P17")
    found = question_templates(relation)
    assert [frame.text for frame in found] == [f"{text} [Y]." for text in SEVEN]
    assert found[0].id == "P17-fktc-1" and found[0].source == "manual"
    assert {frame.source for frame in found[1:]} == {"paraphrase"}
    assert {frame.group for frame in found} == {"P17-fktc-1"}


def test_rows_with_an_empty_label_are_dropped_and_counted(tmp_path: Path) -> None:
    dataset = load(f"fktc:{written(tmp_path, row('Ulm', 'Germany'), row('Oslo', ' '))}")
    assert [fact.subject.name for fact in dataset.facts("P17")] == ["Ulm"]
    assert dataset.notes["rows_read"] == 2 and dataset.notes["rows_incomplete"] == 1


def test_label_kind_and_statements_are_those_of_atlas(tmp_path: Path) -> None:
    ours = load(f"fktc:{written(tmp_path, row('Ulm', 'Germany'))}").relation("P17")
    atlas = load("atlas").relation("P17")
    assert (ours.label, ours.kind) == (atlas.label, atlas.kind)
    assert ours.templates[7:] == tuple(t for t in atlas.templates if t.style == "statement")
    assert answer_last_templates(ours) == answer_last_templates(atlas)


def test_a_relation_that_atlas_does_not_know_is_judged_by_its_rows(tmp_path: Path) -> None:
    written(tmp_path, row("Ann", "tea"), row("Bea", "tea"), name="drinks-subclass")
    written(tmp_path, row("Ann", "tea"), row("Ann", "milk"), name="buys-subclass")
    written(tmp_path, row("Ann", "cups"), row("Bea", "jugs"), name="owns-subclass")
    dataset = load(f"fktc:{tmp_path}")
    assert [(r.id, r.kind) for r in dataset.relations] == [
        ("buys", "N-M"),
        ("owns", "1-1"),
        ("drinks", "N-1"),
    ]
    assert all(len(r.templates) == 7 for r in dataset.relations)


def test_a_fact_keeps_its_wrong_objects(tmp_path: Path) -> None:
    [fact] = load(f"fktc:{written(tmp_path, row('Ulm', 'Germany'))}").facts("P17")
    assert fact.id == "P17:Ulm:Germany"
    assert [entity.name for entity in fact.wrong] == ["Peru", "Mali"]
    assert (fact.subject.name, fact.objects[0].name, fact.split) == ("Ulm", "Germany", "test")


def test_a_row_that_repeats_a_fact_is_dropped_and_counted(tmp_path: Path) -> None:
    written(tmp_path, row("Ulm", "Germany"), row("Ulm", "Germany", ["Iran"]))
    dataset = load(f"fktc:{tmp_path}")
    [fact] = dataset.facts("P17")
    assert [entity.name for entity in fact.wrong] == ["Peru", "Mali"], (
        "the first says what is wrong"
    )
    assert dataset.notes["rows_read"] == 2
    assert dataset.notes["duplicate_rows"] == 1


def test_frames_that_repeat_or_are_too_few_are_counted(tmp_path: Path) -> None:
    written(tmp_path, row("Ulm", "Germany"), frames=(*SEVEN[:6], SEVEN[0]))
    written(tmp_path, row("Ulm", "Germany"), frames=(*SEVEN[:5], "no slot?"), name="P30-subclass")
    dataset = load(f"fktc:{tmp_path}")
    assert [len(question_templates(r)) for r in dataset.relations] == [6, 5]
    assert dataset.notes["templates_repeated"] == 1
    assert dataset.notes["templates_without_slots"] == 1
    assert dataset.notes["relations_without_seven_frames"] == 1


def test_rows_that_call_a_right_object_wrong_are_counted_and_kept(tmp_path: Path) -> None:
    written(
        tmp_path,
        row("Kehl", "Germany", ["Germany", "Peru"]),
        row("Berg", "Austria", ["Mali", "Norway"]),
        row("Berg", "Norway", ["Peru", "Mali"]),
    )
    dataset = load(f"fktc:{tmp_path}")
    assert dataset.notes["rows_with_a_right_object_as_wrong"] == 2
    right = names_correct_for_repeated_subjects(dataset, "P17")
    left = [
        draw_wrong_names(fact, names_correct_for(fact, right), (), seed=0, limit=5)
        for fact in dataset.facts("P17")
    ]
    assert left == [(("Peru",), 1), (("Mali",), 1), (("Peru", "Mali"), 0)]


def test_a_list_of_wrong_objects_may_be_empty(tmp_path: Path) -> None:
    [fact] = load(f"fktc:{written(tmp_path, row('Ulm', 'Germany', []))}").facts("P17")
    assert fact.wrong == ()


def test_a_name_with_two_dots_is_a_relation_like_any_other(tmp_path: Path) -> None:
    written(tmp_path, row("Ulm", "Germany"), name="P276-subclass.")
    written(tmp_path, row("Ulm", "Germany"), name="P30-subclass")
    assert [r.id for r in load(str(tmp_path)).relations] == ["P30", "P276"]


def test_a_folder_is_recognised_by_the_names_of_its_files(tmp_path: Path) -> None:
    assert load(str(written(tmp_path / "a", row("Ulm", "Germany")))).name == "fktc"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "P17.json").write_text("{}")
    with pytest.raises(DataError, match="no reader knows its files"):
        load(str(tmp_path / "b"))
    with pytest.raises(DataError, match="no file of FKTC"):
        load(f"fktc:{tmp_path / 'b'}")


def test_the_fingerprint_names_the_content(tmp_path: Path) -> None:
    one = load(str(written(tmp_path, row("Ulm", "Germany")))).fingerprint
    assert load(str(tmp_path)).fingerprint == one
    assert load(str(written(tmp_path, row("Ulm", "Peru")))).fingerprint != one


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ('{"subject": "Ulm"}\n', "line 1: 'relations' must be a list of texts"),
        ('{"relations": "Where is [X]?"}\n', "line 1: 'relations' must be a list"),
        ('{"relations": ["Where is [X]?"]}\n{"subj', "line 2: expected a JSON object"),
        ('{"relations": ["Where is [X]?"]}\n["Ulm"]', "line 2: expected a JSON object"),
        (
            '{"relations": ["Where is [X]?"]}\n\n{"subject": "Ulm", "taxonomy": []}',
            "line 3: 'object' must be a text",
        ),
        (
            '{"relations": ["Where is [X]?"]}\n{"subject": "Ulm", "object": "Peru"}',
            "line 2: 'taxonomy' must be a list of texts",
        ),
        (
            '{"relations": ["Where is [X]?"]}\n'
            '{"subject": "Ulm", "object": "Peru", "taxonomy": "Mali"}',
            "line 2: 'taxonomy' must be a list of texts",
        ),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "P17-subclass.json").write_text(text)
    with pytest.raises(DataError, match="P17-subclass") as error:
        load(f"fktc:{tmp_path}")
    assert complaint in str(error.value)


def test_two_files_of_one_relation_are_refused(tmp_path: Path) -> None:
    for name in ("P17-subclass", "P17-subclass."):
        written(tmp_path, row("Ulm", "Germany"), name=name)
    with pytest.raises(DataError, match="hold the same relation"):
        load(f"fktc:{tmp_path}")


@pytest.mark.shared
def test_the_published_files_hold_what_is_known_of_them(shared: Path) -> None:
    dataset = load(f"fktc:{shared / 'data' / 'fktc'}")
    assert len(dataset.relations) == 20
    assert dict(dataset.notes) == {
        "rows_read": 16_198,
        "duplicate_rows": 12,
        "rows_with_a_right_object_as_wrong": 64,
        "relations_without_seven_frames": 2,
        "templates_read": 138,
        "templates_repeated": 1,
        "templates_without_slots": 0,
    }
    assert sum(1 for r in dataset.relations for _ in dataset.facts(r.id)) == 16_186
    six = [r.id for r in dataset.relations if len(question_templates(r)) == 6]
    assert six == ["P101", "P264", "P276"]
    assert all(len(question_templates(r)) == 7 for r in dataset.relations if r.id not in six)
    assert all(len(answer_last_templates(r)) >= 7 for r in dataset.relations)
    assert all(len(f.wrong) == 5 for r in dataset.relations for f in dataset.facts(r.id))
    assert list(problems(dataset)) == []
