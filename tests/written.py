"""Folders of small datasets, written by hand, line by line, as a user would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Chile": "Santiago"}
LANGUAGES = {"France": "French", "Italy": "Italian", "Spain": "Spanish", "Chile": "Spanish"}


def rows(values: Iterable[Mapping[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def fact(relation: str, subject: str, answer: str, split: str = "test") -> dict[str, Any]:
    """A fact's line."""
    return {
        "id": f"{relation}:{subject}",
        "subject": {"id": f"s:{subject}", "names": [subject]},
        "objects": [{"id": f"o:{answer}", "names": [answer]}],
        "split": split,
    }


def template(relation: str, text: str) -> dict[str, Any]:
    """A template's line."""
    return {"id": f"{relation}-1", "relation": relation, "text": text}


def dataset(folder: Path, relations: Mapping[str, tuple[str, Mapping[str, str]]]) -> Path:
    """Write a dataset by hand: for each relation a template, and an object for each subject."""
    (folder / "facts").mkdir(parents=True)
    (folder / "dataset.json").write_text('{"format": 1, "name": "world"}\n')
    heads = ({"id": id, "label": f"label of {id}", "kind": "N-1"} for id in relations)
    (folder / "relations.jsonl").write_text(rows(heads))
    texts = (template(id, text) for id, (text, _) in relations.items())
    (folder / "templates.jsonl").write_text(rows(texts))
    for id, (_, pairs) in relations.items():
        lines = rows(fact(id, subject, answer) for subject, answer in pairs.items())
        (folder / "facts" / f"{id}.jsonl").write_text(lines)
    return folder


def two_relations(folder: Path) -> Path:
    """Capitals and languages of four countries."""
    return dataset(
        folder,
        {
            "P36": ("The capital of [X] is [Y].", CAPITALS),
            "P37": ("The language of [X] is [Y].", LANGUAGES),
        },
    )


def many_shards(folder: Path, facts: int = 100, objects: int = 1024) -> Path:
    """One relation with so many options that a shard holds 4096 / `objects` prompts."""
    asked = {f"subject {i}": f"object {i}" for i in range(facts)}
    folder = dataset(folder, {"P1": ("The thing of [X] is [Y].", asked)})
    others = (fact("P1", f"other {i}", f"object {i}", "train") for i in range(facts, objects))
    with (folder / "facts" / "P1.jsonl").open("a") as file:
        file.write(rows(others))
    return folder
