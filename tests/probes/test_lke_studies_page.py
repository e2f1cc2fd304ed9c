"""docs/lke-studies.md tells the names that the studies have."""

from __future__ import annotations

import re

import pytest

from sonde.core.abilities import Probe
from sonde.probes.lke.baselines import LkeBaselines
from sonde.probes.lke.separators import LkeSeparators
from sonde.probes.lke.sequence import LkeSequence
from sonde.probes.lke.shots import LkeShots
from tests.docs.pages import DOCS, first_cells, rows
from tests.worlds import world

from .lke_world import read

PAGE = DOCS / "lke-studies.md"
STUDIES: tuple[Probe, ...] = (
    LkeShots(n=(1, 2), seeds=2),
    LkeSequence(replace="unknown", seeds=1),
    LkeSeparators(n=2, seeds=1),
    LkeBaselines(n=2),
)
WAYS = "(written_)?(in_context|manual|mined|paraphrase)|(manual|mined|paraphrase)_separator"
GROUPS = "replaced|after_[123]|other|before|neighbours"
PLACE = rf"(\.(n\.\d+|separator\.\d+|part\.\d+|{WAYS}|{GROUPS}))?"
OVER = r"(\.(mean_over_relations|relation\.P36))?"


@pytest.mark.parametrize("probe", STUDIES, ids=lambda probe: probe.name)
def test_estimates_have_the_documented_names(probe: Probe) -> None:
    found = set(read(probe, world(relations=("P36",))).estimates)
    documented = first_cells(PAGE, f"Estimates of {probe.name}")
    patterns = [re.compile(re.escape(name) + PLACE + OVER) for name in documented]
    assert not {name for name in found if not any(p.fullmatch(name) for p in patterns)}
    assert not [p for p in patterns if not any(map(p.fullmatch, found))]


@pytest.mark.parametrize("probe", STUDIES, ids=lambda probe: probe.name)
def test_counts_have_the_documented_names(probe: Probe) -> None:
    documented = [
        row[0].strip("`")
        for row in rows(PAGE, "Counts")
        if row[1] == "all"
        or row[1] == probe.name
        or (row[1] == "all but lke-sequence" and probe.name != "lke-sequence")
    ]
    assert set(read(probe, world()).counts) == set(documented)
