"""BEAR's files: answer spaces, facts by their place in one, and faults with their place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.errors import DataError, SondeError
from sonde.core.facts import Dataset
from sonde.data.catalog import load

SPACE = {"answer_space_labels": ["Lima", "Paris", "Oslo"], "answer_space_ids": ["Q1", "Q2", "Q3"]}
TEMPLATES = {"templates": ["[X] is ruled from [Y].", "[Y] rules [X].", "[X] is ruled from [Y]."]}


def row(subject: str, place: int | None, id: str, label: str = "?", **more: Any) -> dict[str, Any]:
    known = {} if place is None else {"answer_idx": place}
    names = {"sub_id": f"S-{subject}", "sub_label": subject, "sub_aliases": []}
    return {**names, "obj_id": id, "obj_label": label, **known, **more}


def written(folder: Path, *rows: dict[str, Any], id: str = "P36", **described: Any) -> Path:
    """A folder with one relation."""
    head = {id: {**TEMPLATES, **SPACE, **described}}
    head = {id: {key: value for key, value in head[id].items() if value is not None}}
    (folder / "metadata_relations.json").write_text(json.dumps(head))
    (folder / f"{id}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def opened(folder: Path) -> Dataset:
    return load(f"bear:{folder}")


def test_an_object_is_the_answer_at_its_place(tmp_path: Path) -> None:
    aliases = ["French Republic", "France"]
    folder = written(tmp_path, row("Peru", 0, "Q1"), row("France", 1, "Q2", sub_aliases=aliases))
    dataset = opened(folder)
    (relation,) = dataset.relations
    assert dataset.object_names("P36") == ("Lima", "Paris", "Oslo"), "a distractor is an answer too"
    peru, france = dataset.facts("P36")
    assert (peru.id, peru.objects[0].name) == ("P36:S-Peru:Q1", "Lima")
    assert france.subject.names == ("France", "French Republic"), "the label first, each name once"
    assert (relation.label, relation.kind, relation.language) == ("capital", "1-1", "en")
    assert [t.id for t in relation.templates] == ["P36-bear-1", "P36-bear-2", "P36-bear-3"]
    assert len({t.text for t in relation.templates}) == 2, "one published sentence comes twice"
    assert load(str(folder)).fingerprint == dataset.fingerprint, "the folder is recognised"


def test_domains_are_tags(tmp_path: Path) -> None:
    folder = written(tmp_path, row("Peru", 0, "Q1"), domains=["Places", "Politics"])
    assert opened(folder).relations[0].tags == ("Places", "Politics")
    written(tmp_path, row("Peru", 0, "Q1"), relation_info={"domains": ["Places"]})
    assert opened(folder).relations[0].tags == ("Places",)


def test_without_a_space_all_objects_of_the_rows_are_answers(tmp_path: Path) -> None:
    rows = [row("Peru", None, "Q1", "Lima"), row("Ulm", None, "Q9", "Bonn"), *2 * [row_of_ulm()]]
    folder = written(tmp_path, *rows, answer_space_labels=None, answer_space_ids=None)
    dataset = opened(folder)
    assert dataset.object_names("P36") == ("Lima", "Bonn", "Berlin")
    assert dataset.relations[0].kind == "1-1" and dataset.size == 3
    assert dataset.notes["duplicate_rows"] == 1


def row_of_ulm() -> dict[str, Any]:
    return row("Ulm", None, "Q10", "Berlin")


@pytest.mark.parametrize(
    ("rows", "described", "told"),
    [
        ([row("Peru", 0, "Q1"), row("Ulm", 3, "Q1")], {}, "P36.jsonl, line 2: 'answer_idx' must"),
        ([row("Ulm", -1, "Q1")], {}, "0 to 2, found -1"),
        ([row("Ulm", 0, "Q1", answer_idx="0")], {}, "0 to 2, found '0'"),
        ([row("Ulm", 0, "Q2")], {}, "line 1: 'obj_id' must be that of answer 0, 'Q1', found 'Q2'"),
        ([row("Ulm", None, "Q7")], {}, "line 1: 'obj_id' must be one of the answer space"),
        ([row("Ulm", 0, "Q1", sub_label=5)], {}, "line 1: 'sub_label' must be a text that is not"),
        ([row("Ulm", 0, "Q1")], {"answer_space_ids": ["Q1"]}, "3 answer_space_labels and 1 answer"),
        ([row("Ulm", 0, "Q1")], {"answer_space_labels": ["a", "b", "a"]}, "'a' stands in the ans"),
        ([row("Ulm", 0, "Q1")], {"templates": ["[X] is big."]}, "P36, templates: template 'P36-be"),
        ([row("Ulm", 0, "Q1")], {"templates": None}, "P36: 'templates' must be a list of texts"),
    ],
)
def test_faults_are_told_with_their_place(
    tmp_path: Path, rows: list[dict[str, Any]], described: dict[str, Any], told: str
) -> None:
    with pytest.raises(SondeError) as fault:
        opened(written(tmp_path, *rows, **described))
    assert told in str(fault.value)


def test_rows_with_an_empty_label_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [row("Peru", None, "Q1", "Lima"), row("Ulm", None, "Q9", "Bonn", sub_label="")]
    no_space: dict[str, Any] = {"answer_space_labels": None, "answer_space_ids": None}
    dataset = opened(written(tmp_path, *rows, row("Rome", None, "Q8", " "), **no_space))
    assert [fact.subject.name for fact in dataset.facts("P36")] == ["Peru"]
    assert dataset.object_names("P36") == ("Lima",)
    assert dataset.notes["rows_read"] == 3 and dataset.notes["rows_incomplete"] == 2


@pytest.mark.parametrize("faulty", ["P1", "P99"])
def test_a_fault_in_a_relation_that_is_not_selected_does_not_matter(
    tmp_path: Path, faulty: str
) -> None:
    relations = {id: {**TEMPLATES, **SPACE} for id in sorted(["P36", faulty], key=len)}
    written(tmp_path, row("Peru", 0, "Q1"))
    (tmp_path / "metadata_relations.json").write_text(json.dumps(relations))
    (tmp_path / f"{faulty}.jsonl").write_text("{\n")
    dataset = sonde.dataset(f"bear:{tmp_path}", relations=("P36",))
    assert [fact.subject.name for fact in dataset.asked("P36")] == ["Peru"]
    run = sonde.run(
        sonde.probe("bear"), sonde.model("control:majority", data=dataset), dataset,
        out=tmp_path / "run",
    )  # fmt: skip
    assert [relation.id for relation in replace(run, asked=None).dataset().relations] == ["P36"]
    with pytest.raises(DataError, match=f"{faulty}.jsonl, line 1: expected a JSON object"):
        sonde.dataset(f"bear:{tmp_path}", relations=(faulty,))


def test_facts_need_a_description_and_a_description_facts(tmp_path: Path) -> None:
    folder = written(tmp_path, row("Peru", 0, "Q1"))
    (folder / "P9.jsonl").write_text("")
    with pytest.raises(DataError, match=r"P9\.jsonl: relation 'P9' is not in metadata_relations"):
        opened(folder)
    (folder / "P9.jsonl").unlink()
    (folder / "P36.jsonl").unlink()
    with pytest.raises(DataError, match="has no facts of BEAR"):
        opened(folder)


@pytest.mark.shared
def test_the_published_files_are_read_whole(shared: Path) -> None:
    dataset = opened(shared / "data/bear")
    assert len(dataset.relations) == 60 and dataset.size == 7731
    assert sum(len(relation.templates) for relation in dataset.relations) == 180
    assert {len(relation.answers) for relation in dataset.relations} >= {5, 6, 25, 60}
    assert dataset.notes["duplicate_rows"] == 0
