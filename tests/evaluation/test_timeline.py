"""Facts that change: whether a wrong answer is outdated or too new, year by year."""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.facts import Dataset, Fact
from sonde.evaluation.timeline import estimate_by_year
from sonde.probes.belief_icl import BeliefIcl
from sonde.probes.lama import Lama
from tests.probes.shares import by_fact, results
from tests.worlds import dataset_of, entity, fact, relation

Spans = Mapping[str, tuple[tuple[str, int, int], ...]]

CLUBS: Spans = {
    "Ann": (("Reds", 2010, 2012), ("Blues", 2013, 2016)),
    "Bob": (("Blues", 2010, 2011), ("Reds", 2012, 2016)),
    "Cy": (("Greens", 2010, 2015), ("Reds", 2016, 2016)),
}


def facts(clubs: Spans) -> list[Fact]:
    """A fact for each player and year."""
    return [
        replace(
            fact("P54", entity(name, id=name), club, id=f"{name}-{year}"),
            date=str(year),
            valid_from=str(first),
            valid_to=str(last),
        )
        for name, spans in clubs.items()
        for club, first, last in spans
        for year in range(first, last + 1)
    ]


def dated(facts: list[Fact]) -> Dataset:
    return dataset_of(facts, relation("P54", "[X] plays for [Y]."))


def living_in(year: int) -> dict[str, str]:
    """The answers of a model that takes every year for this one."""
    then = {
        name: next(club for club, first, last in spans if first <= year <= last)
        for name, spans in CLUBS.items()
    }
    return {f.id: then[f.subject.id] for f in facts(CLUBS)}


def numbers(answers: dict[str, str], data: Dataset) -> dict[tuple[str, ...], tuple[float, int]]:
    """Value and n of every metric over facts, by its name and year."""
    made = results(Lama(answer="score"), data, by_fact(**answers))
    frame = estimate_by_year(made, data)[0]
    frame = frame.filter(of="value", over="facts").filter(
        ~pl.col("group_by").list.contains("relation")
    )
    return {
        (row["metric"].removeprefix("dates."), *row["group"]): (row["value"], row["n"])
        for row in frame.iter_rows(named=True)
    }


def shares(found: dict[tuple[str, ...], tuple[float, int]], *group: str) -> list[float]:
    return [found[name, *group][0] for name in ("correct", "outdated", "too_new", "wrong")]


def test_answers_are_correct_outdated_too_new_or_wrong() -> None:
    found = numbers(living_in(2013) | {"Cy-2014": "Blues"}, dated(facts(CLUBS)))
    assert shares(found, "2010") == pytest.approx([1 / 3, 0, 2 / 3, 0])
    assert shares(found, "2016") == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert shares(found, "2014") == pytest.approx([2 / 3, 0, 0, 1 / 3])
    assert sum(shares(found)) == pytest.approx(1.0)
    assert found["correct",][1] == 21


def test_an_answer_that_another_fact_makes_correct_at_the_date_is_correct() -> None:
    two = facts({"Ann": (("Reds", 2010, 2010), ("Blues", 2010, 2010))})
    two[1] = replace(two[1], id="other")
    found = numbers({"Ann-2010": "Blues", "other": "Blues"}, dated(two))
    assert shares(found) == [1.0, 0.0, 0.0, 0.0]


def test_facts_without_a_date_are_prompted_about_the_time_they_are_true() -> None:
    own = [replace(f, date="") for f in facts(CLUBS) if f.id in ("Ann-2010", "Ann-2013")]
    found = numbers({"Ann-2010": "Blues", "Ann-2013": "Reds"}, dated(own))
    assert shares(found) == [0.0, 0.5, 0.5, 0.0]
    assert {key[1] for key in found if len(key) == 2} == {"2010", "2013"}


def test_data_without_dates_have_no_timeline() -> None:
    data = dataset_of([fact("P54", "Ann", "Reds"), fact("P54", "Bob", "Blues")])
    frame, exhibits = estimate_by_year(results(Lama(answer="score"), data, by_fact()), data)
    assert frame.is_empty() and exhibits == []


@given(
    st.dictionaries(
        st.sampled_from(sorted(living_in(2010))), st.sampled_from(["Reds", "Blues", "Greens"])
    )
)
def test_every_answer_is_one_of_the_four(changed: dict[str, str]) -> None:
    answers = living_in(2012) | changed
    counts = dict.fromkeys(("correct", "outdated", "too_new", "wrong"), 0)
    for f in facts(CLUBS):
        spans = [(a, b) for club, a, b in CLUBS[f.subject.id] if club == answers[f.id]]
        year = int(f.date)
        if any(a <= year <= b for a, b in spans):
            counts["correct"] += 1
        elif any(b < year for _, b in spans):
            counts["outdated"] += 1
        else:
            counts["too_new" if spans else "wrong"] += 1
    found = numbers(answers, dated(facts(CLUBS)))
    assert shares(found) == pytest.approx([count / 21 for count in counts.values()])


def test_generated_answers_are_compared_as_their_probe_does() -> None:
    data = dated([f for f in facts(CLUBS) if f.date in ("2011", "2014")])
    probe = BeliefIcl(context="zero-shot", samples=0)
    made = results(probe, data, lambda prompt: "the club of the Reds")
    frame = estimate_by_year(made, data)[0].filter(of="value", over="facts")
    found = dict(
        frame.filter(pl.col("group_by").list.len() == 0).select("metric", "value").iter_rows()
    )
    # Ann 2011 and Bob 2014 are correct, Ann 2014 is outdated, Bob 2011 too new, Cy never a Red
    assert found["dates.correct"] == pytest.approx(2 / 6)
    assert found["dates.outdated"] == pytest.approx(1 / 6)
    assert found["dates.too_new"] == pytest.approx(1 / 6)


def test_the_figure_has_a_line_for_each_share() -> None:
    data = dated(facts(CLUBS))
    _, (lines,) = estimate_by_year(
        results(Lama(answer="score"), data, by_fact(**living_in(2013))), data
    )
    assert lines.kind == "lines" and {"x", "y", "low", "high", "color"} <= set(lines.frame.columns)
    assert lines.frame["color"].unique(maintain_order=True).to_list() == [
        "correct",
        "outdated",
        "too new",
        "wrong",
    ]
