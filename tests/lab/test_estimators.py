"""Estimators: what they make of a probe's judgements, and what chance would give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import cast

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import DataFrame

from sonde.bridge import as_answers
from sonde.core.abilities import Model
from sonde.core.answers import Filled
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact, Selection
from sonde.evaluation.tables import collect_results
from sonde.lab.estimators.asking import EFFORTS, Setup, unused_only
from sonde.lab.estimators.catalogue import (
    AVERAGE,
    DIGITS,
    LIKELIEST,
    Estimator,
    by_chance,
    chosen,
    estimators,
    read_prompts,
)
from sonde.models.options import LoadOptions
from sonde.optimise.making import methods
from sonde.probes import PROBES
from sonde.probes.base import Probe
from sonde.runs.run import Run
from tests import worlds
from tests.worlds import dataset_of, entity, question

from .guessing import Fills, Writes

OBJECTS = {"R1": tuple("Alda Bero Cuno Dami Elmo".split()), "R2": tuple("FGHIJKLMNOPQ")}
ASKED = 7
JUDGED = ("lama", "belief-average", "belief-oracle", "belief-icl", "ic-lke", "eic-lke")


def dataset() -> Dataset:
    """Two relations of some facts; the facts of R2 have two objects."""
    relations = [
        worlds.relation(
            id,
            "The x of [X] is [Y].",
            "[X] has [Y] as x.",
            question(f"{id}-3", "Which x has [X]?"),
            "[X] took [Y].",
            kind="N-1" if id == "R1" else "N-M",
        )
        for id in OBJECTS
    ]
    made = dataset_of((fact for id in OBJECTS for fact in _facts(id)), *relations)
    return replace(made, vocabulary=tuple(name for names in OBJECTS.values() for name in names))


def _facts(relation: str) -> Iterator[Fact]:
    names = OBJECTS[relation]
    for i in range(ASKED + 6):
        objects = [names[i % len(names)], names[(i + 1) % len(names)]][: 1 + (relation == "R2")]
        yield worlds.fact(
            relation,
            entity(f"Sub{i} Fam", f"Ali{i}", id=f"{relation}s{i}"),
            *objects,
            id=f"{relation}-{i}",
            split="test" if i < ASKED else "train",
        )


def asked(estimator: Estimator, model: Model, folder: Path, data: Dataset | None = None) -> Run:
    data = data or dataset()
    setup = Setup(
        reference="",
        model=model,
        place="",
        dataset=data,
        used={},
        spending=EFFORTS["full"],
        options=LoadOptions(),
    )
    return estimator.ask(setup, folder)


def turned(data: Dataset, by: int) -> Dataset:
    """The dataset in which every fact that is asked about has the objects of another one."""

    def read(relation: str) -> list[Fact]:
        facts = list(data.facts(relation))
        test = [fact for fact in facts if fact.split == "test"]
        others = {f.id: test[(i + by) % len(test)].objects for i, f in enumerate(test)}
        return [replace(f, objects=others.get(f.id, f.objects)) for f in facts]

    return replace(data, read=read)


def judged_otherwise(run: Run, by: int) -> dict[str, list[bool]]:
    """Whether each prompt of a fact is right, if its objects were those of another fact."""
    data = turned(run.dataset(), by)
    probe = cast(Probe, run.probe())
    rows = collect_results(probe, data, map(as_answers, run.answers())).table(["fact", "correct"])
    found: dict[str, list[bool]] = {}
    for fact, correct in rows.collect().iter_rows():
        found.setdefault(fact, []).append(correct)
    return found


def columns_of(frame: DataFrame) -> dict[str, tuple[float, bool, float, float]]:
    return {fact: row for fact, *row in frame.iter_rows()}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in JUDGED for kind in estimators()[name].kinds]
)
def test_chance_is_how_often_the_probe_finds_other_facts_objects(
    name: str, kind: str, tmp_path: Path
) -> None:
    estimator = estimators()[name]
    # with one object each, as in-context options leave a subject's other objects out
    data = dataset()
    data = replace(data, relations=data.relations[:1]) if name.endswith("lke") else data
    writes = Writes(dataset=data)
    run = asked(estimator, writes if kind == "causal" else Fills(writes=writes), tmp_path, data)
    found = columns_of(estimator.read(run))
    counted = any if name == "belief-oracle" else np.mean
    others = [judged_otherwise(run, by) for by in range(1, ASKED)]
    assert len(found) == ASKED * len(data.relations)
    for fact, (_, _, _, chance) in found.items():
        assert chance == pytest.approx(np.mean([counted(other[fact]) for other in others]))
    assert any(0 < row[3] < 1 for row in found.values())


@given(st.data())
def test_chance_is_that_of_a_double_loop(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    words = ("a", "b", "c", "d")
    whole = st.integers(0, size - 1)
    rows = data.draw(st.lists(st.tuples(whole, st.integers(0, 3)), min_size=1, max_size=15)) + [
        (fact, 0) for fact in range(size)
    ]
    names = data.draw(
        st.lists(
            st.lists(st.sampled_from(words), min_size=1, max_size=2, unique=True).map(tuple),
            min_size=size,
            max_size=size,
        )
    )
    relation = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    asked = [(relation[fact], fact, words[a]) for fact, a in rows]
    prompts = DataFrame(asked, schema=["relation", "fact", "answer"], orient="row")
    right = [(relation[fact], fact, name) for fact in range(size) for name in names[fact]]
    right_names = DataFrame(right, schema=["relation", "fact", "name"], orient="row")
    for how in ("mean", "any"):
        chances = by_chance(prompts, right_names, any=how == "any")
        found = dict(chances.select("fact", "chance").iter_rows())
        for fact in range(size):
            said = [words[a] for owner, a in rows if owner == fact]
            others = [o for o in range(size) if o != fact and relation[o] == relation[fact]]
            each = [[word in names[o] for word in said] for o in others]
            wanted = [float(np.mean(e)) if how == "mean" else float(any(e)) for e in each]
            assert found[fact] == pytest.approx(np.mean(wanted) if wanted else 0.0)


def test_the_best_template_is_that_which_answers_most_facts_of_its_relation(tmp_path: Path) -> None:
    run = asked(estimators()["belief-max"], Writes(dataset=dataset()), tmp_path)
    found = columns_of(estimators()["belief-max"].read(run))
    rows = run.results().table(["relation", "template_no", "alias_no", "correct"])
    rates = rows.filter(polars.col("alias_no") == 0).group_by("relation", "template_no")
    for (relation,), part in rates.agg(polars.col("correct").mean()).collect().group_by("relation"):
        own = [row[2] for fact, row in found.items() if fact.startswith(str(relation))]
        correct = part["correct"].to_numpy()
        assert np.mean(own) == pytest.approx(correct.max())
        assert correct.max() > correct.min()


def test_average_and_oracle_count_the_same_prompts_otherwise(tmp_path: Path) -> None:
    run = asked(estimators()["belief-average"], Writes(dataset=dataset()), tmp_path)
    average, oracle = (estimators()[n].read(run) for n in ("belief-average", "belief-oracle"))
    assert average["fact"].equals(oracle["fact"])
    assert (oracle["counts"] == (average["counts"] > 0)).all()
    assert (average["decision"] == (average["counts"] > 0.5)).all()
    more, less = oracle["chance"], average["chance"]
    assert (more >= less - 1e-12).all() and (more > less).any()


def test_a_filled_score_is_a_share_of_the_answers_allowed(tmp_path: Path) -> None:
    model = Fills(writes=Writes(dataset=dataset()))
    run = asked(estimators()["lama"], model, tmp_path)
    found = columns_of(estimators()["lama"].read(run))
    for row in run.answered():
        answer = row.answer
        assert isinstance(answer, Filled)
        fact = next(f for f in dataset().facts(row.key.relation) if f.id == row.key.fact)
        logps = dict(zip(answer.watched, answer.watched_logps, strict=True))
        mass = sum(exp(logps[e.name] or 0.0) for e in fact.objects)
        assert found[fact.id][0] == pytest.approx(mass / exp(answer.mass))


def test_chances_of_monitor_are_those_of_names_that_are_wrong(tmp_path: Path) -> None:
    data = replace(dataset(), relations=dataset().relations[:1])
    anchor, distance = estimators()["monitor-anchor"], estimators()["monitor-distance"]
    run = asked(anchor, Writes(dataset=data), tmp_path, data)
    table = run.results().table(["fact", "cue", "object", "answer", "answer_mode", "anchor_exact"])
    rows = table.filter(polars.col("answer_mode").cast(polars.String) == "generate").collect()
    found, moved = anchor.read(run), distance.read(run)
    assert [*found["fact"]] == [*moved["fact"]] == [*rows["fact"].unique(maintain_order=True)]
    for fact, chance, known in found.select("fact", "chance", "decision").iter_rows():
        own = rows.filter(fact=fact)
        misled = own.filter(polars.col("cue").cast(polars.String) == "wrong")
        same = misled["answer"].cast(polars.String) == misled["object"].cast(polars.String)
        assert chance == pytest.approx(same.mean())
        assert known == own["anchor_exact"][0]
    assert (moved["chance"] <= found["chance"]).all()
    unanchored = moved.filter(~found["decision"])
    assert not unanchored["decision"].any() and (unanchored["score"] == 0).all()


def test_an_unused_template_is_a_statement_that_ends_with_its_object_where_there_is_one() -> None:
    used = {"R1": ("R1-1",), "R2": ("R2-1", "R2-2", "R2-4")}
    found = unused_only(dataset(), used)
    assert [r.templates[0].id for r in found.relations] == ["R1-4", "R2-3"]
    assert found.fingerprint != dataset().fingerprint


def test_a_relation_whose_templates_are_all_used_has_no_unused_one() -> None:
    every = {r.id: tuple(t.id for t in r.templates) for r in dataset().relations}
    assert [r.id for r in unused_only(dataset(), {"R1": every["R1"]}).relations] == ["R2"]
    with pytest.raises(DataError, match="every template"):
        unused_only(dataset(), every)


def test_every_setting_of_every_effort_is_one_that_its_probe_or_method_has() -> None:
    for spending in EFFORTS.values():
        for name, values in spending.probes.items():
            PROBES.find(name)(**values)
        for name, values in spending.methods.items():
            methods()[name.removesuffix("-free")](**values)  # a variant of OptiPrompt


def test_an_unknown_estimator_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'belief-oracle'"):
        chosen(["belief-oracel"])


def test_every_estimator_says_what_it_does_in_a_line() -> None:
    for each in estimators().values():
        assert each.says and "\n" not in each.says and len(each.says) < 160, each.name
        assert not each.control or each.learns


def test_an_average_is_over_prompts_and_an_oracle_takes_the_likeliest() -> None:
    prompts = DataFrame(
        {
            "relation": ["r", "r", "r"],
            "pair": [0, 0, 1],
            "fact": ["f", "f", "g"],
            "answer": ["a", "b", "a"],
            "right": [True, False, False],
            "likely": [0.7, 0.2, 0.1],
        }
    )
    names = DataFrame({"relation": ["r", "r"], "fact": ["f", "g"], "name": ["a", "b"]})
    average = read_prompts(prompts, names, AVERAGE)
    oracle = read_prompts(prompts, names, LIKELIEST, any=True)
    assert average["counts"].to_list() == [0.5, 0.0] and not average["decision"].any()
    assert oracle["score"].to_list() == [0.7, 0.1]
    assert oracle["decision"].to_list() == [True, False]
    assert average["chance"].to_list() == [0.5, 1.0] and oracle["chance"].to_list() == [1.0, 1.0]


def test_scores_that_differ_in_their_last_digits_are_equal(tmp_path: Path) -> None:
    run = asked(estimators()["naive-bayes"], Writes(dataset=dataset()), tmp_path)
    scores = estimators()["naive-bayes"].read(run)["score"]
    logs = scores.log()
    assert (logs - logs.round(DIGITS)).abs().max() < 10**-DIGITS / 100


def test_limits_hold_for_what_is_asked(tmp_path: Path) -> None:
    data = dataset().select(Selection(limit=3))
    lama = estimators()["lama"]
    assert len(lama.read(asked(lama, Writes(dataset=data), tmp_path, data))) == 6
