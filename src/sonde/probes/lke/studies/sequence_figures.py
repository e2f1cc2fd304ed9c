"""The figures of `lke-sequence`: the mean along the sequence, and every place of it.

Knows outcomes and estimates, nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Curve, Curves, Estimate
from sonde.probes.lke.studies.sequence_outcomes import PARTS, Place

Number = Callable[[Place], float]


def along(estimates: Mapping[str, Estimate], found: Sequence[Place], changed: bool) -> Curves:
    """Means of tenths, drawn at the middle of each tenth of the longest sequence."""
    longest = max(len(place.told.clean) for place in found)
    shown = ("clean", "changed") if changed else ("clean",)
    return Curves(
        id="along-the-sequence",
        title="Probability of the object along the sequence",
        x_axis="place in the sequence",
        y_axis="mean probability of the object",
        curves=tuple(_part_curve(estimates, how, longest) for how in shown),
        x_kind="number",
        note="Each point averages a tenth of the sequence, less the replaced facts where it is "
        "changed; whiskers are 95 % intervals.",
    )


def _part_curve(estimates: Mapping[str, Estimate], how: str, longest: int) -> Curve:
    got = {k: estimates[f"probability.{how}.part.{k}"] for k in range(1, PARTS + 1)}
    kept = {k: e for k, e in got.items() if e.value is not None}
    aside = longest / 150 if how == "changed" else 0.0  # so that neither hides the other
    return Curve(
        name="as it is" if how == "clean" else "changed",
        x=tuple((k - 0.5) * longest / PARTS + 0.5 + aside for k in kept),
        y=tuple(e.value for e in kept.values() if e.value is not None),
        low=tuple(e.ends[0] for e in kept.values()),
        high=tuple(e.ends[1] for e in kept.values()),
    )


def dots(dataset: Dataset, found: Sequence[Place], changed: bool) -> Curves:
    """Each place of the first relation, averaged over its sequences; by group where changed."""
    relation = dataset.relation(found[0].told.relation)
    own = [place for place in found if place.told.relation == relation.id]
    kinds = ("replaced", "1 after", "all others") if changed else ("all",)

    def kind(place: Place) -> str:
        named = {"replaced": "replaced", "after_1": "1 after"}
        return named.get(place.group, "all others") if changed else "all"

    value: Number = (lambda p: p.changed) if changed else (lambda p: p.clean)
    return Curves(
        id="every-place",
        title=f"Every place of the sequence: {relation.id} {relation.label}",
        x_axis="place in the sequence",
        y_axis="probability of the object",
        curves=tuple(_dot_curve([p for p in own if kind(p) == k], k, value) for k in kinds),
        x_kind="number",
        note="A dot is the mean over the sequences of one relation"
        + (", in the changed sequence." if changed else "."),
    )


def _dot_curve(places: Sequence[Place], name: str, value: Number) -> Curve:
    by_place: dict[int, list[float]] = {}
    for place in places:
        if not isnan(value(place)):
            by_place.setdefault(place.place, []).append(value(place))
    spots = sorted(by_place)
    means = tuple(float(np.mean(by_place[spot])) for spot in spots)
    return Curve(name=name, x=tuple(map(float, spots)), y=means, joined=False)
