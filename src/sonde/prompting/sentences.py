"""Templates filled with subjects, a block at a time: one sentence for each, with a gap to fill.

Knows templates and names, nothing of what is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Relation, Template
from sonde.core.prompts import KEY, TEXTS, Block, Want, capitalised

if TYPE_CHECKING:
    from polars import DataFrame, Expr

MOST = 2**16
"""Sentences in a block, about."""


def sentences(
    relation: Relation,
    templates: Sequence[Template],
    subjects: DataFrame,
    want: Want,
    *,
    capitals: bool = False,
) -> Block:
    """Every template with every name of every subject, in the order of subject, template and name.

    `subjects` has the columns `fact` and `names`, a list. `capitals`: sentences begin with one.
    """
    import polars

    texts = [template.text.split(ANSWER_SLOT) for template in templates]
    sides = {
        f"{side}.{part}": [(*text[i].split(SUBJECT_SLOT, 1), None)[part] for text in texts]
        for i, side in enumerate(TEXTS)
        for part in (0, 1)
    }
    wording = polars.DataFrame(
        {"template": [template.id for template in templates], **sides},
        schema=dict.fromkeys(("template", *sides), polars.String),
    )
    frame = (
        subjects.lazy()
        .join(wording.lazy(), how="cross", maintain_order="left_right")
        .explode("names")
        .with_columns(relation=polars.lit(relation.id), subject="names")
        .with_columns(**{side: _filled(side) for side in TEXTS})
        .select(*KEY, *TEXTS)
        .collect()
    )
    if capitals:
        opened = [capitalised(text) for text in frame["prefix"].to_list()]
        frame = frame.with_columns(prefix=polars.Series(opened, dtype=polars.String))
    return Block(frame=frame, want=want, cloze=True)


def in_parts(subjects: DataFrame, sentences: int) -> Iterator[DataFrame]:
    """Subjects with their names, cut so that a block of them is not too large.

    `sentences`: how many there are for each name.
    """
    parts = (subjects["names"].list.len().cum_sum() * sentences // MOST).to_numpy()
    starts = np.flatnonzero(np.diff(parts, prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(parts)]):
        yield subjects[start:stop]


def usual_names(facts: DataFrame) -> DataFrame:
    """Facts with the usual name of their subject alone."""
    import polars

    return facts.select("fact", names=polars.concat_list("subject"))


def nothing(*names: str) -> DataFrame:
    """Names of no subject at all."""
    import polars

    return polars.DataFrame(
        {"fact": [""], "names": [list(names)]},
        schema={"fact": polars.String, "names": polars.List(polars.String)},
    )


def _filled(side: str) -> Expr:
    """One side of the gap: with the subject in its place, where it has one."""
    from polars import col, concat_str, when

    before, after = col(f"{side}.0"), col(f"{side}.1")
    return when(after.is_null()).then(before).otherwise(concat_str(before, "subject", after))
