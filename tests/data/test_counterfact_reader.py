"""CounterFact's two files: cases, their prompts, their neighbours, and what is off in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact
from sonde.data.catalog import load

EDIT = {
    "case_id": 7,
    "prompt": "The capital of Peru is",
    "subject": "Peru",
    "ground_truth": "Lima",
    "target_new": "Oslo",
    "rephrase_prompt": "Peru is governed from",
    "locality_prompt": "The largest city of Peru is",
    "locality_ground_truth": "Lima",
}


def released(case: int, subject: str, true: str, new: str, **more: Any) -> dict[str, Any]:
    """A case of the original release."""
    return {
        "case_id": case,
        "pararel_idx": 1,
        "requested_rewrite": {
            "prompt": "The capital of {} is",
            "relation_id": "P36",
            "target_new": {"str": new, "id": f"Q-{new}"},
            "target_true": {"str": true, "id": f"Q-{true}"},
            "subject": subject,
        },
        "paraphrase_prompts": [f"A bird sang. {subject}, governed from"],
        "neighborhood_prompts": ["A is governed from", "B is governed from"],
        "attribute_prompts": ["C is governed from"],
        "generation_prompts": ["In the capital of", "Near the capital of"],
        **more,
    }


def written(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def facts(dataset: Dataset, split: str) -> list[Fact]:
    return [f for r in dataset.relations for f in dataset.facts(r.id) if f.split == split]


def test_a_case_is_a_fact_with_its_prompts_and_the_new_object_as_a_wrong_one(
    tmp_path: Path,
) -> None:
    dataset = load(f"counterfact:{written(tmp_path / 'counterfact-edit.json', EDIT)}")
    [case], [neighbour] = facts(dataset, "test"), facts(dataset, "neighbourhood")
    assert (case.id, case.subject.name, case.objects[0].name) == ("7", "Peru", "Lima")
    assert case.wrong[0].name == neighbour.wrong[0].name == "Oslo"
    assert neighbour.objects[0].name == "Lima" and neighbour.details["case"] == "7"
    own, other = dataset.relations[0].templates
    assert own.fill("Peru", case) == ("The capital of Peru is ", ".")
    assert other.fill("Peru", case) == ("Peru is governed from ", ".")
    assert own.fill("", neighbour) == ("The largest city of Peru is ", ".")
    assert (other.source, other.group) == ("paraphrase", own.id)
    assert "many ask" in dataset.card.description


def test_the_original_release_has_relations_identifiers_and_several_neighbours(
    tmp_path: Path,
) -> None:
    more = released(2, "Chile", "Santiago", "Oslo", paraphrase_prompts=["One", "Two"])
    path = written(tmp_path / "counterfact.json", released(1, "Peru", "Lima", "Oslo"), more)
    dataset = load(f"counterfact:{path}")
    relation = dataset.relation("P36")
    assert relation.label == load("atlas").relation("P36").label
    assert [t.id for t in relation.templates] == [
        *("P36-prompt", "P36-paraphrase-1", "P36-paraphrase-2")
    ]
    first = next(dataset.facts("P36"))
    assert first.details["prompt"] == "The capital of Peru is"
    assert (first.objects[0].id, first.wrong[0].id) == ("Q-Lima", "Q-Oslo")
    assert len(facts(dataset, "neighbourhood")) == 4
    assert {f.objects[0].name for f in facts(dataset, "neighbourhood")} == {"Lima", "Santiago"}
    assert dataset.notes == {
        "cases_read": 2,
        "attribute_prompts_left_out": 2,
        "generation_prompts_left_out": 4,
    }
    assert dataset.card.name == "counterfact" and not dataset.card.description


def test_a_folder_is_known_by_its_file_and_gives_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "counterfact-edit.json", EDIT)
    whole = load(str(tmp_path))
    assert whole.fingerprint == load(f"counterfact:{path}").fingerprint


def test_a_case_with_an_empty_text_is_dropped_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "counterfact-edit.json", changed(prompt="  "), EDIT)
    dataset = load(f"counterfact:{path}")
    assert dataset.size == 2 and dataset.notes == {"cases_read": 2, "rows_incomplete": 1}


def changed(**more: Any) -> dict[str, Any]:
    return {**EDIT, **more}


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([changed(prompt=5)], "entry 1: 'prompt' must be a text that is not empty"),
        ([EDIT, changed(target_new="Lima")], "entry 2: the new object must differ"),
        ([changed(case_id=None)], "'case_id' must be a number or a text, found nothing"),
        ([EDIT, 5], "entry 2: expected an object, found 5"),
        ([], "holds no case of CounterFact"),
        (
            [released(1, "Peru", "Lima", "Oslo", requested_rewrite={"subject": "Peru"})],
            "requested_rewrite: 'prompt' must be a text",
        ),
        (
            [released(1, "Peru", "Lima", "Oslo", neighborhood_prompts="A")],
            "'neighborhood_prompts' must be a list of texts",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, rows: list[Any], fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        load(f"counterfact:{written(tmp_path / 'counterfact.json', *rows)}")


def test_a_prompt_without_a_place_for_its_subject_is_refused(tmp_path: Path) -> None:
    row = released(1, "Peru", "Lima", "Oslo")
    row["requested_rewrite"]["prompt"] = "The capital is"
    with pytest.raises(DataError, match=r"'prompt' must hold \{\} once, for the subject"):
        load(f"counterfact:{written(tmp_path / 'counterfact.json', row)}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"case_id": 1}', "expected a JSON list of objects, found"),
        ('[{"case_id": 1},\n {"case_id"', "expected a JSON list of objects, but .* at line 2"),
    ],
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "counterfact.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=fault):
        load(f"counterfact:{tmp_path}")


def test_a_folder_with_two_files_asks_which_one(tmp_path: Path) -> None:
    for name in ("counterfact.json", "counterfact-edit.json"):
        written(tmp_path / name, EDIT)
    with pytest.raises(DataError, match=r"give one file of .* it holds counterfact-edit.json, c"):
        load(f"counterfact:{tmp_path}")


@pytest.mark.shared
def test_the_published_file_has_1500_cases_and_as_many_neighbours(shared: Path) -> None:
    dataset = load(f"counterfact:{shared / 'data/counterfact/counterfact-edit.json'}")
    frame = dataset.frame("counterfact")
    counts = dict(frame["split"].value_counts().iter_rows())
    assert counts == {"test": 1500, "neighbourhood": 1500}
    assert frame["wrong_names"].list.len().to_list() == [1] * 3000
