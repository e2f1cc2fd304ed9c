"""Sentences that several reports say of their estimates. Knows numbers and relations' names.

A finding is a small rule: a function of estimates that gives a sentence, or nothing. A report lists
its rules, `findings=shown((above_control("P@1", …), trust(…)))`, and the empty ones go.
"""

from __future__ import annotations

from collections.abc import Iterable

from sonde.core.facts import Relation
from sonde.core.reports import Estimates, Metric
from sonde.core.words import above_zero, listed
from sonde.reporting.build.tables import titled


def above_on_relations(
    estimates: Estimates, above: Metric, relations: Iterable[Relation], most: int = 1000
) -> str:
    """On how many relations the model is clearly above the control, and on which it is not."""
    rows = [(titled(r), estimates[above.at(f"relation.{r.id}")]) for r in relations]
    measured = [(name, estimate) for name, estimate in rows if estimate.value is not None]
    unclear = [name for name, estimate in measured if not above_zero(estimate)]
    if not measured:
        return ""
    if not unclear:
        return "The model is clearly above the control on every relation."
    return (
        f"The model is clearly above the control on {len(measured) - len(unclear)} of "
        f"{len(measured)} relations. It is not on: {listed(unclear, most)}."
    )
