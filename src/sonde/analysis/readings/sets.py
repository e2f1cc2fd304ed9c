"""`sets`: how many right answers stand at the top, where a question has several.

For options that were scored and positions that were filled. A thing with several names counts once,
by its likeliest; n is how many of the right things could be answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sonde.analysis.readings import QUESTION, Asked, Reading, several
from sonde.core.fact_frames import entities, united
from sonde.core.reports import Estimate
from sonde.core.scores import compared_by
from sonde.metrics.estimates import RELATIONS
from sonde.metrics.ranking import right_places, tops
from sonde.metrics.verdicts import Floats, Ints
from sonde.reporting.build.tables import by_place, titled
from sonde.reporting.catalogue import shares

if TYPE_CHECKING:
    from polars import DataFrame

METRICS = PRECISION, RECALL, F1, AVERAGE, WHOLE = shares(
    ("set_precision", "precision at n", "share of the n likeliest things that are right", "higher"),
    ("set_recall", "recall at n", "share of all right things among the n likeliest", "higher"),
    ("set_f1", "F1 at n", "harmonic mean of precision and recall at n", "higher"),
    (
        "average_precision",
        "average precision",
        "mean over right things of the share right down to each; 0 for those never answered",
        "higher",
    ),
    ("set_whole", "whole set", "share of facts whose right things all stand first", "higher"),
)


def read(asked: Asked) -> Reading | None:
    """Every subject with several objects, of which at least two could be answered."""
    facts = _with_sets(asked)
    sums = np.zeros((len(facts), len(METRICS)))
    counts = np.zeros(len(facts))
    for places, values in _judged(asked, facts):
        np.add.at(sums, places, values)
        np.add.at(counts, places, 1)
    kept = np.flatnonzero(counts)
    if not len(kept):
        return None
    columns = sums[kept] / counts[kept, None]
    by_fact = asked.by_fact(facts[kept])
    estimates: dict[str, Estimate] = {}
    every = {m.id: (column, None) for m, column in zip(METRICS, columns.T, strict=True)}
    for id, resampled in by_fact.together(every).items():
        found = by_fact.named(id, resampled)
        estimates |= {name: e for name, e in found.items() if e.value is not None}
    return _reading(asked, estimates, len(kept))


def _reading(asked: Asked, estimates: dict[str, Estimate], facts: int) -> Reading:
    measured = [
        relation
        for relation in asked.judged.relations
        if F1.at(f"relation.{relation.id}") in estimates
    ]
    columns = (F1, AVERAGE, WHOLE, PRECISION.detail(), RECALL.detail())
    scored = asked.judged.way == "scored"
    note = f"{compared_by(asked.normalise)}. " if scored else ""
    places = {"all": RELATIONS} | {titled(r): f"relation.{r.id}" for r in measured}
    return Reading(
        metrics=METRICS,
        estimates=estimates,
        counts={"facts_with_several_answers": facts},
        tables=(
            by_place(
                estimates, places, columns, head="relation", id="sets",
                title="Facts with several right answers",
                note=f"{note}n is how many of a fact's right answers could be given.",
            ),
        ),
    )  # fmt: skip


def _with_sets(asked: Asked) -> DataFrame:
    """The judged facts whose subjects have several objects, one a subject, with all of these."""
    from polars import col

    some = several(asked.dataset).collect().lazy()
    objects = united(entities(some, *QUESTION), *QUESTION)
    return (
        asked.facts(some)
        .lazy()
        .unique(QUESTION, keep="first", maintain_order=True)
        .drop("object_ids", "object_names")
        .join(objects, on=QUESTION, how="inner", maintain_order="left")
        .filter(col("object_ids").list.len() > 1)
        .collect()
    )


def _judged(asked: Asked, facts: DataFrame) -> Iterator[tuple[Ints, Floats]]:
    """For each block the facts that its prompts ask about, and the numbers of each prompt."""
    judged = asked.judged
    known = {key: place for place, key in enumerate(facts.select("relation", "fact").rows())}
    owners = judged.grid.template_relations.tolist()
    asked_with = {
        (judged.relations[owner].id, template.id): 0
        for owner, template in zip(owners, judged.templates, strict=True)
    }
    correct, ids = dict(enumerate(facts["object_names"].to_list())), frozenset(facts["fact"])
    sizes = np.array([len(own) for own in correct.values()], dtype=np.int64)
    for block in asked.answers(ids):
        if block.kind not in ("filled", "scored"):
            continue
        rows = block.naming("fact", ids)
        place = block.numbers(("relation", "fact"), known, lambda _: -1, rows)
        worded = block.numbers(("relation", "template"), asked_with, lambda _: -1, rows)
        sound = (place >= 0) & (worded >= 0)
        if not sound.any():
            continue
        rows, place = rows[sound], place[sound]
        answers = block.filled if block.kind == "filled" else block.rated
        right = right_places(answers, rows, place, correct, asked.normalise)
        found = tops(right, sizes[place])
        kept = found.n > 1
        yield place[kept], np.column_stack(found[1:])[kept]
