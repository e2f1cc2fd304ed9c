"""Questions for the relations of a dataset, out of a file or written by a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation
from sonde.data.builders.endpoint import SPARE, Asker, candidates
from sonde.data.lines import read_rows


def read_by_relation(path: Path) -> dict[str, tuple[str, ...]]:
    """Texts by relation from a file of JSON lines: `relation` and `text`."""
    found: dict[str, list[str]] = {}
    for row in read_rows(path):
        found.setdefault(row.text("relation"), []).append(row.text("text"))
    return {relation: tuple(texts) for relation, texts in found.items()}


def questions(
    asker: Asker, relation: Relation, kept: Sequence[str], missing: int, turn: int
) -> tuple[str, ...]:
    """Some questions, unlike those that are kept, if there are any; `turn` counts from 1."""
    text = request(relation, kept, missing + SPARE)
    return tuple(candidates(asker.answer(text, str(turn), relation.id)))


def request(relation: Relation, kept: Sequence[str], count: int) -> str:
    """What a model is asked: to reword the questions there are, or to make some of a statement."""
    if kept:
        task = f"Reword this question in {count} different ways:\n{kept[0]}\n"
    else:
        task = f"Write {count} different questions that ask for the answer to: {_told(relation)}\n"
    if kept[1:]:
        task += "These are there already; use other words and another order:\n"
        task += "".join(f"{text}\n" for text in kept[1:])
    return (
        f"{task}\n"
        f"{SUBJECT_SLOT} stands for a name. Write {SUBJECT_SLOT} exactly once in every question, "
        "name no other thing, and end each with a question mark. Every question must ask for "
        f"exactly the same thing ({relation.label}). Write one question a line and nothing else."
    )


def _told(relation: Relation) -> str:
    """The statement that a question is made of; the bare label where there is none."""
    for template in relation.templates:
        if template.style == "statement":
            return f"{template.text} ({ANSWER_SLOT} is the answer, the {relation.label})"
    return f"the {relation.label} of {SUBJECT_SLOT}"
