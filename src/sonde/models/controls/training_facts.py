"""The facts that a counting control is fitted on: the split `train`, without what leaks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Fact
from sonde.core.train_test_overlap import TRAIN, training

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Training facts by relation, and how many there were, for the record."""

    facts: Mapping[str, tuple[Fact, ...]]
    details: Mapping[str, str]


def training_facts(control: str, dataset: Dataset) -> Fitted:
    """The training facts of the relations that are asked about; says how many were dropped."""
    found = {r.id: training(dataset, r.id) for r in dataset.asked_relations()}
    facts = {relation: own.facts for relation, own in found.items() if own.facts}
    if not facts:
        raise DataError(
            f"{control} learns from training facts, and dataset {dataset.name!r} has none for "
            f"what is asked; give some facts the split {TRAIN!r}, or use control:majority"
        )
    used = sum(map(len, facts.values()))
    leaked = sum(len(own.leaked) for own in found.values())
    without = [relation for relation in found if relation not in facts]
    log.info(
        "%s: fitted on %s training facts; %s more were dropped because they are also asked about%s",
        control,
        f"{used:,}",
        f"{leaked:,}" if leaked else "no",
        f"; no training facts for {', '.join(without)}" if without else "",
    )
    details = {
        "fitted_on": f"{used:,} facts of split {TRAIN}",
        "leaked_dropped": f"{leaked:,}",
        "relations_without_training": f"{len(without):,}",
    }
    return Fitted(facts=facts, details=details)
