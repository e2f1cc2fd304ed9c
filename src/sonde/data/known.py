"""What the bundled atlas knows of well-known relations, for sources that lack a label or sentences.

It has the relations of LAMA's T-REx part.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from sonde.core.facts import Kind, Relation, Template
from sonde.data.format import template
from sonde.data.lines import read_rows

ATLAS = Path(__file__).parent / "bundled" / "atlas"


@cache
def known_relations() -> dict[str, Relation]:
    """Relations by identifier, without templates."""
    return {
        row.text("id"): Relation(
            id=row.text("id"), label=row.text("label"), kind=cast(Kind, row.text("kind"))
        )
        for row in read_rows(ATLAS / "relations.jsonl")
    }


@cache
def known_statements() -> dict[str, tuple[Template, ...]]:
    """The statement templates of relations, by identifier."""
    found: dict[str, tuple[Template, ...]] = {}
    for row in read_rows(ATLAS / "templates.jsonl"):
        made = template(row)
        if made.style == "statement":
            id = row.text("relation")
            found[id] = (*found.get(id, ()), made)
    return found
