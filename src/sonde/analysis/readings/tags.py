"""Accuracy by tags of relations, of any probe: the mean over the relations that have a tag.

A relation may have several tags and counts for each. Knows judged prompts and relations, no probe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sonde.analysis.readings import Asked, Reading
from sonde.core.facts import Relation
from sonde.core.reports import Estimate, Metric, Table
from sonde.metrics.estimates import RELATIONS
from sonde.reporting.build.figures import dots
from sonde.reporting.build.tables import Field, table

ACCURACY = Metric(
    "tags.accuracy",
    "accuracy",
    "percent",
    "share of a fact's prompts that are right: the mean of a relation, averaged over relations",
)

METRICS = (ACCURACY,)

UNTAGGED = "(no tag)"


def read(asked: Asked) -> Reading | None:
    """The mean over the relations of each tag, and over all of them."""
    facts, relations = asked.facts(), asked.judged.relations
    by_fact = asked.by_fact(facts)
    resampled = by_fact.resampled(facts["accuracy"].to_numpy())
    groups = tagged([r for r in relations if r.id in resampled.samples])
    if not set(groups) - {UNTAGGED}:
        return None
    estimates = {ACCURACY.at(RELATIONS): resampled.mean_over_relations()}
    places = {"all relations": RELATIONS}
    for tag, end in zip(groups, _ends(groups), strict=True):
        places[tag] = f"tag.{end}"
        estimates[ACCURACY.at(places[tag])] = resampled.mean_over_relations(groups[tag])
    return Reading(
        metrics=METRICS,
        estimates=estimates,
        tables=(_table(estimates, places, groups),),
        figures=(
            dots(
                estimates,
                _by_value(estimates, places),
                {"accuracy": ACCURACY},
                id="tags",
                title="Accuracy by tag",
                axis="accuracy, mean over relations",
            ),
        ),
    )


def tagged(relations: Sequence[Relation]) -> dict[str, tuple[str, ...]]:
    """The ids of the relations of each tag, by the alphabet; those without any come last."""
    tags = sorted({tag for relation in relations for tag in relation.tags})
    groups = {tag: tuple(r.id for r in relations if tag in r.tags) for tag in tags}
    if bare := tuple(r.id for r in relations if not r.tags):
        groups[UNTAGGED] = bare
    return groups


def _ends(tags: Iterable[str]) -> list[str]:
    """What the names of the estimates of each tag end with: different, without spaces.

    >>> _ends(["arts", "time & space", "time, space"])
    ['arts', 'time-space', 'time-space-2']
    """
    ends: list[str] = []
    for tag in tags:
        end, number = re.sub(r"[^\w-]+", "-", tag).strip("-") or "tag", 1
        while (name := end if number == 1 else f"{end}-{number}") in ends:
            number += 1
        ends.append(name)
    return ends


def _by_value(estimates: dict[str, Estimate], places: dict[str, str]) -> dict[str, str]:
    """The highest at the top."""
    values = {label: estimates[ACCURACY.at(place)].value or 0.0 for label, place in places.items()}
    return {label: places[label] for label in sorted(places, key=lambda name: -values[name])}


def _table(
    estimates: dict[str, Estimate], places: dict[str, str], groups: dict[str, tuple[str, ...]]
) -> Table:
    every = len({id for ids in groups.values() for id in ids})

    def look(label: str, metric: Metric) -> Estimate:
        return estimates[metric.at(places[label])]

    fields: list[Field[str] | Metric] = [
        Field("tag", lambda label: label),
        Field("relations", lambda label: len(groups[label]) if label in groups else every, "count"),
        ACCURACY,
    ]
    note = "Every relation of a tag counts the same; a relation with several tags counts for each."
    return table(places, fields, look, id="tags", title="By tag", note=note)
