"""Ranking knowledge, of every run that scores options: are correct ones likelier than wrong ones?

Of each prompt the share of (correct, wrong) pairs of options in which the correct one is likelier,
from the stored scores; of a fact their mean. All that is right of the subject in the relation is
correct. Knows stored answers and facts, no probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sonde.analysis.readings import QUESTION, Asked, Reading
from sonde.core.columns import Answers
from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Estimate, Estimates, Metric, Table
from sonde.core.scores import Normalise, compared_by
from sonde.metrics.estimates import FACTS, RELATIONS
from sonde.metrics.ranking import ranked_each
from sonde.metrics.verdicts import Floats, Ints, Objects, correct_options
from sonde.prompting.sentences import is_name_template
from sonde.reporting.build.tables import by_place

if TYPE_CHECKING:
    from polars import DataFrame

RANKING = Metric(
    "ranking",
    "ranking",
    "percent",
    "share of (correct, wrong) pairs of options in which the correct one is likelier, by fact",
)
FULL = Metric(
    "ranking_full",
    "ranked fully",
    "percent",
    "share of facts with every correct option likelier than every wrong one in all prompts",
)
METRICS = (RANKING, FULL)


def read(asked: Asked) -> Reading | None:
    """The mean share, and how many facts have all of it; None where none can be ranked."""
    facts = asked.facts()
    means, full = ranked_facts(asked, facts)
    if np.isnan(means).all():
        return None
    by_fact = asked.by_fact(facts)
    estimates: dict[str, Estimate] = {}
    numbers = {RANKING.id: (means, None), FULL.id: (full, None)}
    for id, resampled in by_fact.together(numbers).items():
        estimates |= resampled.means(id, by_fact.ids)
    table = _table(estimates, asked.judged.relations, asked.normalise)
    return Reading(metrics=METRICS, estimates=estimates, tables=(table,))


def ranked_facts(asked: Asked, facts: DataFrame) -> tuple[Floats, Floats]:
    """Of each fact the mean share over its prompts, and whether all of them are 1.

    nan where it has no prompt with a correct and a wrong option.
    """
    correct = _correct(asked.dataset, facts)
    keys = zip(facts["relation"], facts["fact"], strict=True)
    places = {key: place for place, key in enumerate(keys)}
    count = len(places)
    total, whole, prompts = np.zeros((3, count))
    for block in asked.answers():
        if block.kind == "scored":
            place, shares = _ranked(block, places, correct, asked.normalise)
            total += np.bincount(place, shares, count)
            whole += np.bincount(place, shares == 1, count)
            prompts += np.bincount(place, minlength=count)
    means = np.divide(total, prompts, out=np.full(count, np.nan), where=prompts > 0)
    return means, np.where(prompts > 0, whole == prompts, np.nan)


def _ranked(
    block: Answers,
    places: Mapping[tuple[str, str], int],
    correct: Mapping[int, Objects],
    normalise: Normalise,
) -> tuple[Ints, Floats]:
    """The fact of each prompt that has a share, and the share."""
    place = block.numbers(("relation", "fact"), places, lambda _: -1)
    codes, templates = block.codes("template")
    about_names = np.array([is_name_template(id) for id in templates], dtype=np.bool_)[codes]
    rated = block.rated
    right = correct_options(rated, place, correct)
    shares = ranked_each(rated.compared(normalise), right, rated.owners, len(block))
    kept = (place >= 0) & ~about_names & ~np.isnan(shares)
    return place[kept], shares[kept]


def _correct(dataset: Dataset, facts: DataFrame) -> dict[int, Objects]:
    """All that is right of each fact's subject, by the fact's place; nothing of what is no fact."""
    import polars
    from polars import col

    every = polars.concat([dataset.frame(id) for id in facts["relation"].unique()])
    right = every.group_by(QUESTION).agg(col("object_names").explode())
    own = facts.select(QUESTION).join(right, on=QUESTION, how="left", maintain_order="left")
    return {-1: [], **dict(enumerate(own["object_names"].to_list()))}


def _table(estimates: Estimates, relations: Sequence[Relation], normalise: Normalise) -> Table:
    places = {"all facts": FACTS}
    if len(relations) > 1:
        places = {"all relations": RELATIONS} | places
        places |= {relation.title: f"relation.{relation.id}" for relation in relations}
    return by_place(
        estimates,
        places,
        METRICS,
        head="over",
        id="ranking",
        title="Ranking of options",
        note=f"{compared_by(normalise)}; ties count as wrong. Chance is 50 % of pairs.",
    )
