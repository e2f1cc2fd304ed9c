"""Templates written by hand, from a table: relation, template, and what [X] and [Y] are.

    relation   an id or a label of the base facts
    template   a sentence with [X] and [Y]; `text` will do
    category   optional: a line for whoever paraphrases the relation, such as "[Y] is a place"

A relation's lines are its templates, in their order; those for relations without facts are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import TemplateError, UsageError
from sonde.core.facts import LAMA, Dataset, Relation, Template
from sonde.data.lines import Row
from sonde.data.tables.cells import text_in
from sonde.data.tables.columns import plain
from sonde.data.tables.faults import Faults
from sonde.data.tables.files import is_table, read_table
from sonde.data.wordings import style_of

ADVICE = (
    "A line has a relation and a template, such as "
    '{"relation": "P36", "template": "The capital of [X] is [Y]."}'
)
TEXTS = ("template", "text", "pattern", "sentence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written by hand for one relation; `category` says what [X] and [Y] are, if told."""

    templates: tuple[Template, ...]
    category: str = ""


class Read(NamedTuple):
    """The templates of each relation that has facts, and how many lines were of no use."""

    written: Mapping[str, Written]
    repeated: int
    strangers: int


def read_templates(path: Path, dataset: Dataset) -> Read:
    """The hand-written templates of a dataset's relations; all faults of the file at once."""
    if not is_table(path):
        raise UsageError(f"--templates takes a table (.jsonl, .csv, .tsv, …), not {path}")
    faults, counts = Faults(str(path), ADVICE), Counter[str]()
    texts: dict[str, dict[str, Template]] = {}
    categories: dict[str, str] = {}
    for row in read_table(path, faults.add):
        cells = {plain(name): text_in(cell) for name, cell in row.values.items()}
        relation = _relation(cells.get("relation", ""), dataset, row, faults)
        if relation is None:
            counts["strangers"] += 1
            continue
        if category := cells.get("category", ""):
            categories[relation.id] = category
        kept = texts.setdefault(relation.id, {})
        template = _template(cells, relation, len(kept) + 1, row, faults)
        if template is not None:
            counts["repeated"] += template.text in kept
            kept.setdefault(template.text, template)
    faults.refuse()
    written = {
        id: Written(templates=tuple(kept.values()), category=categories.get(id, ""))
        for id, kept in texts.items()
        if kept
    }
    return Read(written, counts["repeated"], counts["strangers"])


def _relation(name: str, dataset: Dataset, row: Row, faults: Faults) -> Relation | None:
    if not name:
        faults.add("'relation' is missing", row.where)
    found = [
        r for r in dataset.relations if name.casefold() in (r.id.casefold(), r.label.casefold())
    ]
    if len(found) > 1:
        faults.add(f"{name!r} is the label of several relations; write an id", row.where)
    return found[0] if found else None


def _template(
    cells: Mapping[str, str], relation: Relation, number: int, row: Row, faults: Faults
) -> Template | None:
    """A row's template, called after its place; LAMA's own sentence is known as that."""
    text = next((cells[name] for name in TEXTS if cells.get(name)), "")
    if not text:
        if not cells.get("category"):
            faults.add("'template' is missing", row.where)
        return None
    id = f"{relation.id}-{number}"
    origin = LAMA if _bare(text) in _lama(relation.templates) else ""
    try:
        return Template(id=id, text=text, style=style_of(text), group=id, origin=origin)
    except TemplateError as error:
        faults.add(str(error), row.where)
        return None


def _lama(templates: Iterable[Template]) -> set[str]:
    return {_bare(template.text) for template in templates if template.origin == LAMA}


def _bare(text: str) -> str:
    """A sentence without its spaces: LAMA has one before each full stop."""
    return "".join(text.split())
