"""Templates without facts: what a source such as ParaRel brings to the facts of another.

Knows nothing of facts; `joining` puts the two together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.core.errors import TemplateError
from sonde.core.facts import ANSWER_SLOT, Card, Source, Style, Template
from sonde.data.format import hash_files
from sonde.data.lines import Row, read_rows
from sonde.prompting.few_shot import QUESTION_MARKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One sentence as a source has it, before anything is known of its soundness."""

    relation: str
    text: str
    source: Source
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """Templates by relation, with the count of what was left out; `fingerprint` names the files."""

    card: Card
    templates: Mapping[str, tuple[Template, ...]]
    fingerprint: str
    notes: Mapping[str, int]


def gather(
    name: str, wordings: Iterable[Wording]
) -> tuple[dict[str, tuple[Template, ...]], dict[str, int]]:
    """Templates by relation and notes: those that repeat another or lack a slot are left out.

    A template is numbered by its place among all the relation's wordings, so that leaving one out
    renames no other.
    """
    kept: dict[str, dict[str, Template]] = {}
    places: Counter[str] = Counter()
    notes = {"templates_read": 0, "templates_repeated": 0, "templates_without_slots": 0}
    for wording in wordings:
        notes["templates_read"] += 1
        places[wording.relation] += 1
        known = kept.setdefault(wording.relation, {})
        text = " ".join(wording.text.split())
        if text in known:
            notes["templates_repeated"] += 1
            continue
        template = _template(f"{wording.relation}-{name}-{places[wording.relation]}", text, wording)
        if template is None:
            notes["templates_without_slots"] += 1
        else:
            known[text] = template
    return {relation: tuple(t.values()) for relation, t in kept.items() if t}, notes


def read_wordings(
    card: Card, folder: Path, paths: Sequence[Path], wording: Callable[[Path, Row], Wording]
) -> Wordings:
    """The templates of files of JSON lines below a folder; `wording` says how a row is read."""
    rows = ((path, row) for path in paths for row in read_rows(path))
    templates, notes = gather(card.name, (wording(path, row) for path, row in rows))
    return Wordings(
        card=card, templates=templates, fingerprint=hash_files(folder, list(paths)), notes=notes
    )


def _template(id: str, text: str, wording: Wording) -> Template | None:
    try:
        return Template(
            id=id,
            text=text,
            source=wording.source,
            style=style_of(text),
            group=id,
            weight=wording.weight,
        )
    except TemplateError:
        return None


def style_of(text: str) -> Style:
    """A question where a question mark stands before the answer.

    >>> style_of("What is the capital of [X]? [Y]."), style_of("[X] lies in [Y].")
    ('question', 'statement')
    """
    head = text.partition(ANSWER_SLOT)[0]
    return "question" if any(mark in head for mark in QUESTION_MARKS) else "statement"
