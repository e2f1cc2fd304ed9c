"""docs/monitor.md tells the names that the probe has."""

from __future__ import annotations

from sonde.core.components import settings_of
from sonde.probes.monitor.probe import Monitor
from tests.docs.pages import DOCS, first_cells

from .monitor_world import golden, read, world

PAGE = DOCS / "monitor.md"


def documented(part: str) -> set[str]:
    names = [
        f"{metric}.{over}".replace("ID", "P36")
        for metric in first_cells(PAGE, "Metrics")
        for over in first_cells(PAGE, "Averages")
    ]
    parts = ("accuracy", "full") if part == "full" else ("accuracy",)
    return {
        name.replace("GROUP", group).replace("PART", part)
        for name in names
        for group in ("all", "valid")
        for part in parts
    }


def test_the_estimates_are_documented() -> None:
    data = world(relations=("P36",))
    for probe, part in ((Monitor(), ""), (Monitor(full=True), "full")):
        report = read(data, lambda prompt: 0.5, golden(data), probe)
        assert set(report.estimates) == documented(part)


def test_the_counts_are_documented() -> None:
    assert list(read(world(), lambda prompt: 0.5).counts) == first_cells(PAGE, "Counts")


def test_the_settings_are_documented() -> None:
    assert [s.name for s in settings_of(Monitor)] == first_cells(PAGE, "Settings")
