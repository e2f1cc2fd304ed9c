"""A report in brief: what fits on a screen, and what else there is."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from sonde.core.reports import Column, Estimate, Headline, Report, Table
from sonde.reporting.build.parts import trimmed
from sonde.reporting.render.terminal import MOST_FINDINGS, show

SHARE = Estimate(value=0.5, low=0.4, high=0.6, n=100)
TABLE = Table(id="t", title="By relation", columns=(Column(title="relation"),), rows=(("P36",),))


def report(**changes: object) -> Report:
    """A report of two averages of one metric."""
    given: dict[str, object] = {
        "title": "A probe",
        "estimates": {"p.mean_over_relations": SHARE, "p.mean_over_facts": SHARE},
        "headlines": (
            Headline(label="P, mean over relations", estimate="p.mean_over_relations"),
            Headline(label="P, mean over facts", estimate="p.mean_over_facts"),
        ),
        "findings": tuple(f"Finding {i}." for i in range(5)),
        "tables": (TABLE,),
        "notes": ("A note.",),
    }
    return Report(**(given | changes))  # type: ignore[arg-type]


def shown(given: Report, *, brief: bool) -> str:
    """What the terminal shows of a report."""
    console = Console(file=io.StringIO(), width=80)
    show(given, console, brief=brief)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_in_brief_there_are_numbers_three_findings_and_a_line_about_the_rest() -> None:
    text = shown(report(), brief=True)
    assert text.count("Finding ") == MOST_FINDINGS and "By relation" not in text
    assert "50.0%" in text and "A note." not in text
    rest = "2 more findings, 1 table and 1 note; --all-tables prints what a terminal can show"
    assert rest in " ".join(text.split())


def test_all_of_it_is_shown_otherwise() -> None:
    text = shown(report(), brief=False)
    assert text.count("Finding ") == 5 and "By relation" in text and "A note." in text
    assert "--all-tables" not in text


def test_without_headline_numbers_the_first_table_stands_there() -> None:
    other = replace(TABLE, id="u", title="By template")
    text = shown(report(headlines=(), tables=(TABLE, other)), brief=True)
    assert "By relation" in text and "By template" not in text and "1 table" in text


def test_a_table_that_leads_is_on_the_first_screen() -> None:
    leading = replace(TABLE, id="u", title="Beside the controls", leads=True)
    text = shown(report(tables=(TABLE, leading)), brief=True)
    assert "Beside the controls" in text and "By relation" not in text


def test_a_short_report_leaves_nothing_out() -> None:
    text = shown(report(findings=(), tables=(), notes=()), brief=True)
    assert "Not shown" not in text


@pytest.mark.parametrize(("other", "kept"), [(0.5, 1), (0.50001, 1), (0.51, 2)])
def test_an_average_that_reads_as_another_is_said_once(other: float, kept: int) -> None:
    facts = Estimate(value=other, low=0.4, high=0.6, n=100)
    given = report(estimates={"p.mean_over_relations": SHARE, "p.mean_over_facts": facts})
    assert len(trimmed(given).headlines) == kept


def test_equal_numbers_of_other_metrics_and_cells_are_all_said() -> None:
    names = ("p.mean_over_relations", "q.mean_over_relations", "p.mean_over_relations.k=1")
    lines = tuple(Headline(label=name, estimate=name) for name in names)
    given = report(estimates=dict.fromkeys(names, SHARE), headlines=lines)
    assert len(trimmed(given).headlines) == 3
