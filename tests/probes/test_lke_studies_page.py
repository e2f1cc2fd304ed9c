"""docs/lke-studies.md tells the names that the studies have."""

from __future__ import annotations

import re

import pytest

from sonde.core.abilities import Probe
from sonde.probes.lke.studies.baselines import LkeBaselines
from sonde.probes.lke.studies.separators import LkeSeparators
from sonde.probes.lke.studies.sequence import LkeSequence
from sonde.probes.lke.studies.shots import LkeShots
from tests.docs.pages import DOCS, first_cells, rows

from .lke_world import read, world

PAGE = DOCS / "lke-studies.md"
STUDIES: tuple[Probe, ...] = (
    LkeShots(n=(1, 2), seeds=2),
    LkeSequence(replace="unknown", seeds=1),
    LkeSeparators(n=2, seeds=1),
    LkeBaselines(n=2),
)
WORDS = {
    "OVER": r"(mean_over_relations|relation\.P36)",
    "GROUP": "(replaced|after_[123]|other|before|neighbours)",
    "WAY": "((written_)?(in_context|manual|mined|paraphrase)|(manual|mined|paraphrase)_separator)",
    "ID": "P36",
    "N": r"\d+",
    "K": r"\d+",
}


def pattern(name: str) -> str:
    """A documented name with words in capitals as what they stand for."""
    made = re.escape(name)
    for word, stands in WORDS.items():
        made = re.sub(rf"\b{word}\b", stands.replace("\\", r"\\"), made)
    return made


@pytest.mark.parametrize("probe", STUDIES, ids=lambda probe: probe.name)
def test_estimates_have_the_documented_names(probe: Probe) -> None:
    found = set(read(probe, world(relations=("P36",))).estimates)
    patterns = [pattern(name) for name in first_cells(PAGE, f"Estimates of {probe.name}")]
    unknown = {name for name in found if not any(re.fullmatch(p, name) for p in patterns)}
    assert not unknown
    unused = [p for p in patterns if not any(re.fullmatch(p, name) for name in found)]
    assert not unused


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
