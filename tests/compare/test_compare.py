"""Runs of the same facts are compared whatever their templates, probes and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import sonde
from sonde.compare.conditions import align, conditions, open_runs
from sonde.compare.learned import with_learning
from sonde.compare.pairwise import known_in_one, sharing
from sonde.core.errors import SondeError, UsageError
from sonde.evaluation.estimate import estimate
from sonde.models.scripted import Scripted

TOWNS = {
    "Munich": "Germany",
    "Lyon": "France",
    "Nice": "France",
    "Porto": "Portugal",
    "Turin": "Italy",
    "Brno": "Czechia",
}
STATEMENT, OTHER = "[X] is a city in [Y].", "[X] lies in [Y]."
QUESTION = "In which country is [X]? [Y]"


def write(path: Path, rows: Mapping[str, str], head: str = "town,country", more: str = "") -> Path:
    lines = (f"{subject},{answer}{more}" for subject, answer in rows.items())
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def prompted(
    out: Path,
    file: Path,
    template: str,
    correct: Sequence[str],
    probe: str = "lama",
    columns: tuple[str, str] = ("town", "country"),
    **selection: Any,
) -> sonde.Run:
    """A run on a table of a model that knows some of the towns."""
    mapping = dict(zip(("subject", "object"), columns, strict=True))
    data = sonde.dataset(file, template=template, columns=mapping, **selection)
    answers = {f"{columns[1]}:{town}": TOWNS[town] for town in correct}
    settings = {"answer": "score"} if probe == "lama" else {}
    return sonde.run(sonde.probe(probe, **settings), Scripted(answers=answers), data, out)


def test_two_templates_on_one_table(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, ["Lyon", "Nice"])
    other = prompted(tmp_path / "b", table, OTHER, ["Lyon", "Nice", "Porto", "Turin", "Brno"])
    found = sonde.compare([one, other])
    assert found.verdict.facts == 6
    assert found.verdict.difference.estimate.value == pytest.approx(0.5)
    assert found.verdict.sentence.endswith("same model, different template)")
    assert found.facts["subject"].to_list() == list(TOWNS)
    assert found.flipped["subject"].to_list() == ["Porto", "Turin", "Brno"]
    assert set(found.flipped["change"]) == {"gained"}


def test_the_order_of_runs_decides_the_sign_alone(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, ["Lyon", "Nice"])
    other = prompted(tmp_path / "b", table, OTHER, ["Lyon", "Porto", "Brno"])
    first, second = (sonde.compare(*runs).verdict.difference.estimate for runs in
                     ((one, other), (other, one)))  # fmt: skip
    assert first.value == pytest.approx(-(second.value or 0.0))
    assert first.p == pytest.approx(second.p)


def test_two_probes_on_one_table_are_different_tasks(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, ["Lyon"])
    other = prompted(tmp_path / "b", table, QUESTION, ["Lyon", "Nice"], probe="qa")
    found = sonde.compare(one, other)
    assert found.verdict.difference.estimate.value == pytest.approx(1 / 6)
    assert found.verdict.sentence.endswith(
        "(6 shared facts; same model, different probe, different task)"
    )
    [(_, lines)] = found.report.warnings
    assert any("Tasks differ" in str(line) for line in lines)


def test_two_tables_that_share_some_facts(tmp_path: Path) -> None:
    first = write(tmp_path / "towns.csv", TOWNS)
    shared = {"Turin": "Italy", "Oslo": "Norway", "Munich": "Bavaria", "Lyon": "France"}
    second = write(tmp_path / "more.csv", shared, "place,country,size", ",big")
    one = prompted(tmp_path / "a", first, STATEMENT, ["Turin"])
    names = ("place", "country")
    other = prompted(tmp_path / "b", second, STATEMENT, ["Turin", "Lyon"], columns=names)
    found = sonde.compare(one, other)
    assert found.facts["subject"].to_list() == ["Lyon", "Turin"], "Munich has another object"
    assert found.facts["correct scripted b"].to_list() == [1.0, 1.0]
    assert found.facts["correct scripted a"].to_list() == [0.0, 1.0]
    assert found.verdict.sentence.endswith("(2 shared facts; same model, different dataset)")


def test_facts_with_other_objects_are_not_shared(tmp_path: Path) -> None:
    first = write(tmp_path / "towns.csv", {"Munich": "Germany", "Lyon": "France"})
    second = write(tmp_path / "more.csv", {"Munich": "Bavaria", "Lyon": "Gaul"})
    runs = [prompted(tmp_path / file.stem, file, STATEMENT, []) for file in (first, second)]
    with pytest.raises(UsageError, match=r"share no fact of towns and more; .* correct objects"):
        sonde.compare(*runs)


def test_other_limits_and_templates_share_the_facts_of_the_smaller_limit(tmp_path: Path) -> None:
    table = write(tmp_path / "towns.csv", TOWNS)
    one = prompted(tmp_path / "a", table, STATEMENT, [], limit=4)
    other = prompted(tmp_path / "b", table, OTHER, [], limit=2)
    assert sonde.compare(one, other).verdict.facts == 2


def knowing(out: Path, correct: int, of: int, name: str) -> sonde.Run:
    facts = {f"Town {i}": ("France", "Italy")[i % 2] for i in range(of)}
    file = out / f"towns-{of}.csv"
    write(file, facts)
    data = sonde.dataset(file, template=STATEMENT, columns={"subject": "town", "object": "country"})
    answers = {
        f"country:Town {i}": ("France", "Italy")[(i + (i >= correct)) % 2] for i in range(of)
    }
    probe = sonde.probe("lama", answer="score")
    return sonde.run(probe, Scripted(answers=answers), data, out / name)


def test_a_verdict_follows_the_test_and_names_the_smallest_difference(tmp_path: Path) -> None:
    few, some, most = (knowing(tmp_path, n, 40, f"r{n}") for n in (10, 12, 36))
    same = sonde.compare(few, some).verdict
    assert same.word == "none" and (same.difference.estimate.p or 0.0) > 0.05
    low, high = same.difference.estimate.low, same.difference.estimate.high
    assert low is not None and high is not None and low <= 0 <= high
    better = sonde.compare(few, most).verdict
    assert better.word == "better" and (better.difference.estimate.low or 0.0) > 0
    three = sonde.compare(few, some, most).verdict
    assert three.word == "best" and three.best == ("scripted r36",)
    assert three.ranks == {"scripted r10": (2, 3), "scripted r12": (2, 3), "scripted r36": (1, 1)}
    # 26 of 40 facts change: how often is that difference found if it is the true one?
    smallest = better.difference.smallest or 0.0
    found, draws = 0, 2000
    rng = np.random.default_rng(1)
    for changed in rng.binomial(40, 26 / 40, draws):
        won = rng.binomial(changed, (1 + smallest / (26 / 40)) / 2)
        found += binomtest(int(won), int(changed)).pvalue < 0.05
    assert 0.78 < found / draws < 0.85


def test_one_relation_is_compared_on_request(tmp_path: Path) -> None:
    data = sonde.dataset("atlas", limit=5, relations=("P30", "P36"))
    runs = [
        sonde.run(sonde.probe("lama"), sonde.model(f"control:{m}", data=data), data, tmp_path / m)
        for m in ("majority", "class-prior")
    ]
    assert sonde.compare(*runs, relations=("P30",)).verdict.facts == 5
    with pytest.raises(UsageError, match="has no relation 'P3'; did you mean"):
        sonde.compare(*runs, relations=("P3",))


def test_what_runs_share(tmp_path: Path) -> None:
    runs = [knowing(tmp_path, n, 40, f"r{n}") for n in (10, 20)]
    aligned = align(conditions(open_runs(runs)))
    a, b = aligned.names
    values = {(y, x): value for y, x, value in sharing(aligned).iter_rows()}
    assert values == {(a, a): 1.0, (a, b): 1.0, (b, a): 0.5, (b, b): 1.0}
    assert known_in_one(aligned) == (0.5, 20)


def test_learning_splits_easy_and_hard_facts(tmp_path: Path) -> None:
    data = sonde.dataset("atlas", limit=20, relations=("P30", "P103", "P413"))
    runs = [
        sonde.run(sonde.probe("lama"), sonde.model(f"control:{m}", data=data), data, tmp_path / m)
        for m in ("majority", "class-prior", "naive-bayes")
    ]
    learned, sentence = with_learning(conditions(open_runs(runs)))
    assert sentence == "A fact is easy if naive-bayes answers it."
    values = {
        (run, metric): value
        for run, c in learned.items()
        for metric, of, value in estimate(c.results, c.metrics, over=("relations",))
        .select("metric", "of", "value")
        .iter_rows()
        if of == "value"
    }
    # naive Bayes decides what is easy, so it knows all of that and nothing else
    assert values["naive-bayes", "easy.accuracy"] == 1.0
    assert values["naive-bayes", "hard.accuracy"] == 0.0
    # the class prior always answers the most common training object
    assert values["class-prior", "majority.answered"] == 1.0
    assert values["class-prior", "other.correct"] == 0.0
    assert values["class-prior", "accuracy"] == values["class-prior", "majority.correct"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "needs at least two runs"),
        (("=a", "b"), "write NAME=FOLDER"),
        (("nowhere", "elsewhere"), "is no run folder"),
    ],
)
def test_bad_requests(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(SondeError, match=message):
        sonde.compare(*given)
