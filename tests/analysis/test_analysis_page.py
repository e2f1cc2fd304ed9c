"""The page of `sonde compare` names every estimate and every count."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from sonde.analysis.runs import Reading
from tests.analysis import monitors
from tests.analysis.world import asked, changed, report_of, run
from tests.docs.pages import DOCS, first_cells, section

PAGE = DOCS / "compare.md"
WIDE = run("wide", [[[0], [1]], [[0], [0]]], group="g")
SMALL = run("small", [[[0], [1]]], group="h")
KIN = [
    changed(run, guessable=np.array([True, False]))
    for run in (
        asked("wide", [[1, 0]], group="g", family="f", size=2, stage="base"),
        asked("small", [[1, 1]], group="h", family="f", size=1, stage="base"),
    )
]
MONITORED = [
    replace(monitors.run(name, monitors.monitored(seed, (4,))), group="g")
    for seed, name in enumerate(("wide", "small"))
]
READING = Reading(draws=100)
REPORT = report_of([WIDE, SMALL], READING)
FRAMED = report_of(MONITORED, READING)
ESTIMATES = {**REPORT.estimates, **report_of(KIN, READING).estimates, **FRAMED.estimates}

PLACES = {
    "ROW": "(wide|small)",
    "COLUMN": "(wide|small)",
    "RUN": "(wide|small)",
    "GROUP": "(g|h)",
    "RELATION": "R0",
    "KIND": r"[\w-]+",
    "MEMBERS": r"[\w-]+",
    "SUBSET": r"(first|draw_\d)",
    "STAT": "(pearson|p|spearman)",
}


def pattern(name: str) -> str:
    """A documented name, as it may read."""
    made = re.escape(name).replace("NAME", r"(?P<name>[\w.]+?)")
    for word, places in PLACES.items():
        made = made.replace(word, places)
    return made


def test_every_estimate_is_documented_and_every_documented_one_is_there() -> None:
    documented = first_cells(PAGE, "Names of the numbers")
    # a number of a run reads like others that are documented by themselves
    order = sorted(documented, key=lambda name: "NAME" in name)
    met = {name: [e for e in ESTIMATES if re.fullmatch(pattern(name), e)] for name in order}
    assert all(met.values()), met
    assert {e for names in met.values() for e in names} == set(ESTIMATES)


def test_every_number_of_a_run_is_documented() -> None:
    text = section(PAGE, "Names of the numbers")
    elsewhere = ("known_alone", "accuracy", "frames.", "monitor.relation")
    for name in [*REPORT.estimates, *FRAMED.estimates]:
        found = re.fullmatch(r"(own\.)?(.+)\.run\.(wide|small)", name)
        if found and not name.startswith(elsewhere):
            own = found[2]
            assert f"`{own}`" in text or f"`{own.split('.')[0]}.`" in text, name


def test_every_count_is_documented() -> None:
    text = section(PAGE, "Names of the numbers")
    for name in [*REPORT.counts, *FRAMED.counts]:
        assert f"`{re.sub('(wide|small)$', 'RUN', name)}`" in text, name
