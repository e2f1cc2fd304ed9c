"""docs/ic-lke.md and docs/eic-lke.md tell the names that the probes have."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.probes.lke.eic import EicLke
from sonde.probes.lke.ic import IcLke
from tests.docs.pages import DOCS, first_cells
from tests.worlds import world

from .lke_world import read

PAGE = DOCS / "ic-lke.md"
PAGES = {IcLke: PAGE, EicLke: DOCS / "eic-lke.md"}
Kind = type[IcLke] | type[EicLke]


def documented(relation: str, level: str, seed: str) -> set[str]:
    averaged = [
        f"{metric}.{over}"
        for metric in first_cells(PAGE, "Metrics")
        for over in first_cells(PAGE, "Averages")
    ]
    sure = [
        f"{name}.{over}"
        for name in first_cells(PAGE, "Where the model is sure")
        for over in ("mean_over_relations", "mean_over_choices", "relation.ID")
    ]
    seeds = [
        f"{name}.{over}"
        for name in first_cells(PAGE, "Over seeds")
        for over in ("mean_over_relations", "relation.ID")
    ]
    alone = [*first_cells(PAGE, "For all choices together"), *seeds]
    return {
        name.replace("ID", relation)
        .replace("_at.K", f"_at.{level}")
        .replace("seed.S.", f"seed.{seed}.")
        for name in (*averaged, *sure, *alone)
    }


@pytest.mark.parametrize("probe", PAGES)
def test_the_estimates_are_documented(probe: Kind) -> None:
    report = read(probe(levels=(0.5,)), world(relations=("P36",)))
    assert set(report.estimates) == documented("P36", "0.5", "0")


@pytest.mark.parametrize("probe", PAGES)
def test_the_counts_are_documented(probe: Kind) -> None:
    assert list(read(probe(), world()).counts) == first_cells(PAGES[probe], "Counts")


def test_the_documented_sequence_is_the_one_that_is_read() -> None:
    [prompt, *_] = EicLke(training=6, start=2, stride=2, options=4).ask(world())
    beginning = "Norway Oslo, Chile Santiago, "
    assert prompt.prefix.startswith(beginning)
    assert beginning in Path(PAGES[EicLke]).read_text(encoding="utf-8")
