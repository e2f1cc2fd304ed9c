"""The label and kind of well-known relations, for sources that name relations by identifier only.

They are those of the bundled atlas, which has the relations of LAMA's T-REx part.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from sonde.core.facts import Kind, Relation
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
