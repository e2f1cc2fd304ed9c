"""Facts that change: what a wrong answer was, year by year, and the year that answers fit best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.facts import Dataset, Fact
from sonde.core.reports import Report
from sonde.models.scripted import Scripted
from sonde.prompting import segmenting
from tests.worlds import dataset_of, entity, fact, question, relation, template

Spans = Mapping[str, tuple[tuple[str, int, int], ...]]

CLUBS: Spans = {
    "Ann": (("Reds", 2010, 2012), ("Blues", 2013, 2016)),
    "Bob": (("Blues", 2010, 2011), ("Reds", 2012, 2016)),
    "Cy": (("Greens", 2010, 2015), ("Reds", 2016, 2016)),
}


def dated(clubs: Spans = CLUBS) -> Dataset:
    """A fact for each player and year."""
    asked = template("plays", "[X] plays for [Y]."), template("then", "In [T], [X] is of [Y].")
    return dataset_of(list(facts(clubs)), relation("P54", *asked))


def facts(clubs: Spans) -> list[Fact]:
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


def living_in(year: int, clubs: Spans = CLUBS) -> dict[str, str]:
    """What a model answers that takes every year for this one."""
    then = {
        name: next(club for club, first, last in spans if first <= year <= last)
        for name, spans in clubs.items()
    }
    return {f.id: then[f.subject.id] for f in facts(clubs)}


def report(answers: dict[str, str], folder: Path, data: Dataset | None = None) -> Report:
    data = data or dated()
    probe = sonde.probe("lama", answer="score")
    return sonde.run(probe, Scripted(answers=answers), data, folder / "run").report()


def shares(made: Report, place: str = "mean_over_facts") -> list[float | None]:
    names = ("right", "outdated", "too_new", "wrong")
    return [made.estimates[f"dates.{name}.{place}"].value for name in names]


def test_answers_are_right_outdated_too_new_or_wrong(tmp_path: Path) -> None:
    said = living_in(2013) | {"Cy-2014": "Blues"}
    made = report(said, tmp_path)
    assert shares(made, "year.2010") == pytest.approx([1 / 3, 0, 2 / 3, 0])
    assert shares(made, "year.2016") == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert shares(made, "year.2014") == pytest.approx([2 / 3, 0, 0, 1 / 3])
    assert sum(share or 0.0 for share in shares(made)) == pytest.approx(1.0)
    assert made.counts["facts_with_a_date"] == 21


def test_the_year_that_answers_fit_best_is_the_one_a_model_lives_in(tmp_path: Path) -> None:
    made = report(living_in(2013), tmp_path)
    best = made.estimates["dates.best_year"]
    assert best.value == 2013 and best.low is not None and 2010 <= best.low <= 2013
    assert made.estimates["dates.fit.year.2013"].value == 1.0
    assert made.estimates["dates.fit.year.2012"].value == pytest.approx(2 / 3)
    assert any("fit the years 2013, 2014, 2015 equally well" in f for f in made.findings)
    assert best.high is not None and best.high >= 2015, "the interval holds what ties"
    assert made.figure("dates-by-year").x_labels == tuple(map(str, range(2010, 2017)))  # type: ignore[union-attr]


def test_one_year_that_fits_best_is_told_with_its_interval(tmp_path: Path) -> None:
    made = report(living_in(2016), tmp_path)
    assert made.estimates["dates.best_year"].value == 2016
    assert any("fit the year 2016 (" in finding for finding in made.findings)


def test_a_year_in_which_no_fact_is_right_is_not_measured(tmp_path: Path) -> None:
    own = [
        replace(known, date="2020" if known.subject.id == "Cy" else known.date)
        for known in facts(dict.fromkeys(CLUBS, (("Reds", 2010, 2012),)))
        if known.date == "2011"
    ]
    made = report({}, tmp_path, dataset_of(own, relation("P54", "[X] plays for [Y].")))
    assert made.estimates["dates.fit.year.2020"].value is None
    assert made.estimates["dates.fit.year.2011"].value == 1.0
    assert made.estimates["dates.best_year"].value is None


def test_facts_that_are_all_asked_about_outside_their_time_make_a_report(tmp_path: Path) -> None:
    own = [replace(known, date="2020") for known in facts({"Ann": (("Reds", 2010, 2010),)})]
    made = report({}, tmp_path, dataset_of(own, relation("P54", "[X] plays for [Y].")))
    assert shares(made) == [1.0, 0.0, 0.0, 0.0]
    assert made.estimates["dates.fit.year.2020"].value is None


def test_what_is_right_at_the_date_by_another_fact_is_right(tmp_path: Path) -> None:
    own = [
        replace(
            fact("P6", entity("Aland", id="Aland"), head, id=head),
            date=last, valid_from=first, valid_to=last,
        )
        for head, first, last in (
            ("Ann", "2008", "2012"), ("Bob", "2012", "2016"), ("Cid", "2017", "2020")
        )
    ]  # fmt: skip
    data = dataset_of(own, relation("P6", "The head of [X] was [Y]."))
    made = report({"Ann": "Bob", "Bob": "Ann", "Cid": "Cid"}, tmp_path, data)
    assert shares(made, "year.2012") == [1.0, 0.0, 0.0, 0.0]
    assert shares(made, "year.2016") == [0.0, 1.0, 0.0, 0.0]


@given(st.data())
def test_every_answer_is_one_of_the_four(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    clubs = st.sampled_from(["Reds", "Blues", "Greens"])
    said = {f.id: data.draw(clubs) for f in facts(CLUBS)}
    made = report(said, tmp_path_factory.mktemp("dates"))
    naive = dict.fromkeys(("right", "outdated", "too_new", "wrong"), 0)
    for f in facts(CLUBS):
        when = [s for s in CLUBS[f.subject.id] if s[0] == said[f.id]]
        asked = int(f.date)
        if any(first <= asked <= last for _, first, last in when):
            naive["right"] += 1
        elif any(last < asked for _, _, last in when):
            naive["outdated"] += 1
        else:
            naive["too_new" if when else "wrong"] += 1
    assert shares(made) == pytest.approx([count / 21 for count in naive.values()])


def test_facts_without_a_date_are_asked_about_the_time_they_are_right(tmp_path: Path) -> None:
    spans = [(club, first, last) for club, first, last in CLUBS["Ann"]]
    own = [
        replace(
            fact("P54", entity("Ann", id="Ann"), club, id=club),
            valid_from=str(first),
            valid_to="" if club == "Blues" else str(last),
        )
        for club, first, last in spans
    ]
    data = dataset_of(own, relation("P54", "[X] plays for [Y]."))
    made = report({"Reds": "Blues", "Blues": "Reds"}, tmp_path, data)
    assert shares(made) == [0.0, 0.5, 0.5, 0.0]


def test_a_dataset_without_dates_has_no_such_reading(tmp_path: Path) -> None:
    data = dataset_of([fact("P36", "Peru", "Lima"), fact("P36", "Chile", "Santiago")])
    made = report({}, tmp_path, data)
    assert not any(name.startswith("dates") for name in made.estimates)


def test_written_answers_are_compared_as_they_are_judged(tmp_path: Path) -> None:
    data = dated()
    answers = {id: f"the {club}" for id, club in living_in(2016).items()}
    probe = sonde.probe("belief-icl", context="zero-shot", samples=1, draws=50)
    made = sonde.run(probe, Scripted(answers=answers), data, tmp_path / "run").report()
    found = shares(made, "year.2010")
    assert found == pytest.approx([0.0, 0.0, 1.0, 0.0])
    assert np.isclose(made.estimates["dates.fit.year.2016"].value or 0.0, 1.0)


def japanese() -> Dataset:
    heads = {"2010": "安倍晋三", "2011": "菅義偉", "2012": "岸田文雄"}
    own = [
        replace(
            fact("P6", entity(land, id=land), head, id=f"{land}-{year}"),
            date=year, valid_from=year, valid_to=year,
        )
        for land in ("日本", "中国", "韓国", "英国")
        for year, head in heads.items()
    ]  # fmt: skip
    asked = question("q", "[X]の首相は誰ですか？"), template("s", "[X]の首相は[Y]です。")
    return dataset_of(own, replace(relation("P6", *asked), language="ja"))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("qa", {"context": "zero-shot", "language": "none"}),
        ("qa", {"context": "zero-shot", "language": "none", "match": "within"}),
        ("belief-icl", {"context": "zero-shot", "samples": 1, "draws": 20, "language": "none"}),
        ("framing", {"language": "none"}),
        ("monitor", {}),
    ],
)
def test_answers_are_compared_as_the_probe_does_where_words_cannot_be_cut(
    name: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmenting, "find_spec", lambda name: None)
    segmenting._cuts.cache_clear()
    data = japanese()
    answers = {f.id: "菅義偉" for f in data.facts("P6")}
    made = sonde.run(
        sonde.probe(name, **given), Scripted(answers=answers), data, tmp_path / "run"
    ).report()
    assert shares(made, "year.2010") == [0.0, 0.0, 1.0, 0.0]
    assert shares(made, "year.2011") == [1.0, 0.0, 0.0, 0.0]
    assert shares(made, "year.2012") == [0.0, 1.0, 0.0, 0.0]


def test_an_answer_that_only_holds_a_name_is_not_right_where_the_probe_wants_it_equal(
    tmp_path: Path,
) -> None:
    asked = relation("P54", question("q", "Whom does [X] play for?"))
    data = dataset_of(facts(CLUBS), asked)
    answers = {id: f"{club} of old" for id, club in living_in(2013).items()}
    probe = sonde.probe("qa", context="zero-shot")
    run = sonde.run(probe, Scripted(answers=answers), data, tmp_path / "run")
    assert shares(run.report()) == [0.0, 0.0, 0.0, 1.0]
    assert shares(run.report(match="within"), "year.2013") == [1.0, 0.0, 0.0, 0.0]
