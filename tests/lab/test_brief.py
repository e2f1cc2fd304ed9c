"""One estimator on one model in a single table."""

from __future__ import annotations

from sonde.lab.report.report import brief

from .trials import known, trial, verdicts

FACTS = [
    known("a1"),
    known("a2", guess="cue"),
    known("a3", guess="majority"),
    known("a4", 1, stored=True),
    known("a5", 1),
    known("a6", 10, stored=True, guess="cue"),
    known("b1", guess="cue", shown=False),
    known("b2", shown=False),
]
FOUND = {"a2", "a3", "a4", "b1"}


def made() -> tuple[str, list[tuple[object, ...]], str]:
    """The summary, the rows of the table, and everything else that is said."""
    ids = [one.fact for one in FACTS]
    said = verdicts("lama", ids, [float(fact in FOUND) for fact in ids])
    report = brief(trial(FACTS, [said]), beside="that one")
    [table] = report.tables
    return report.summary, list(table.rows), " ".join((*report.findings, *report.notes))


def test_facts_are_counted_by_how_often_they_are_stated() -> None:
    _, rows, _ = made()
    assert rows == [
        ("0, nor any of its relation", 2, 0, 1),
        ("0, not guessable", 1, 0, 0),
        ("0, guessable", 2, 0, 2),
        ("1", 2, 1, 1),
        ("10", 1, 1, 0),
        ("all", 8, 2, 4),
    ]


def test_shares_are_those_of_the_same_facts() -> None:
    summary, _, more = made()
    assert "LAMA says that 50.0% of 8 facts are known; 37.5% were taught, and 25.0%" in summary
    assert "misses 1 of the 2 facts that are stored" in more
    assert "finds 3 of the 5 facts that were never taught; 2 of these can be guessed" in more
    assert "Nobody can draw this table for that one" in more


def test_steps_that_no_fact_is_on_have_no_row() -> None:
    said = verdicts("lama", ["a1"], [1.0])
    [table] = brief(trial([known("a1", 5)], [said]), beside="that one").tables
    assert table.rows == (("5", 1, 0, 1), ("all", 1, 0, 1))
