"""Estimators against the truth: what each number counts, and over which worlds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import DataFrame

from sonde.core.reports import Estimate
from sonde.lab.evaluation.judging import ANY, Group, Verdicts, judge
from sonde.lab.evaluation.measures import (
    CAUSES,
    Measured,
    auroc,
    includes_none,
    mean,
    mean_less,
    measures,
    over_worlds,
)
from sonde.lab.worlds.world import Guess
from tests.lab.trials import Known, known, study, trial, verdicts

GUESSES: tuple[Guess, ...] = ("", "majority", "cue")
FACTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 5]),
        st.sampled_from(GUESSES),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


def group(facts: list[Known], *said: Verdicts, world: str = "plain-1") -> Group:
    [found] = judge([trial(facts, said, world=world)])
    return found


def asked(rows: list[tuple[int, Guess, bool, bool, bool]]) -> DataFrame:
    """Facts, some of them stored and some found; no fact is taught in a relation never shown."""
    facts = [
        known(
            f"{'a' if shown else 'b'}{i}",
            exposure if shown else 0,
            stored=stored and shown and exposure > 0,
            guess=guess,
            shown=shown,
        )
        for i, (exposure, guess, shown, stored, _) in enumerate(rows)
    ]
    said = verdicts("e", [f.fact for f in facts], [float(row[-1]) for row in rows])
    return trial(facts, [said]).beside(said)


def values(found: dict[str, Measured]) -> dict[str, float]:
    return {name: m.value for name, m in found.items() if m.value is not None}


@given(FACTS)
def test_causes_part_the_untaught_facts(rows: list[tuple[int, Guess, bool, bool, bool]]) -> None:
    one = asked(rows)
    parts = {c: one.select(part.where).to_series().to_numpy() for c, part in CAUSES.items()}
    untaught = ~one["taught"].to_numpy()
    assert (np.sum([*parts.values()], axis=0) == untaught).all()
    found = values(dict(measures(one)))
    total = sum(found.get(f"false.{cause}", 0.0) * part.sum() for cause, part in parts.items())
    assert total == pytest.approx(found.get("false.untaught", 0.0) * untaught.sum())


@given(FACTS)
def test_steps_of_the_ladder_add_up_to_recall(
    rows: list[tuple[int, Guess, bool, bool, bool]],
) -> None:
    one = asked(rows)
    found = values(dict(measures(one)))
    steps = sum(
        found.get(f"recall.exposure.{step}", 0.0) * (one["exposure"] == step).to_numpy().sum()
        for step in (1, 5)
    )
    assert steps == pytest.approx(found.get("recall.taught", 0.0) * one["taught"].to_numpy().sum())


@given(FACTS)
def test_what_is_found_adds_up_from_both_sides(
    rows: list[tuple[int, Guess, bool, bool, bool]],
) -> None:
    one = asked(rows)
    found = values(dict(measures(one)))
    decided = found["share.estimated"] * len(rows)
    true = found.get("recall.taught", 0.0) * one["taught"].to_numpy().sum()
    assert true + found.get("false.rate.taught", 0.0) * decided == pytest.approx(decided)
    assert found["share.less_stored"] == pytest.approx(
        found["share.estimated"] - found["share.stored"]
    )


def test_a_perfect_estimator_errs_nowhere() -> None:
    facts = [known(f"a{i}", i % 3, stored=i % 3 > 0) for i in range(30)]
    truth = [float(one.stored) for one in facts]
    found = group(facts, verdicts("e", [f.fact for f in facts], truth))
    for measure, value in {
        "auroc.taught": 1.0,
        "auroc.stored": 1.0,
        "recall.taught": 1.0,
        "false.untaught": 0.0,
        "false.rate.taught": 0.0,
        "share.less_stored": 0.0,
        "ece.stored": 0.0,
        "brier.stored": 0.0,
    }.items():
        assert found.of(measure, "e").value == pytest.approx(value), measure
    assert found.of("auroc.taught", "e").low != 1.0
    assert found.of("recall.taught", "e").low != 1.0


def test_a_useless_estimator_ranks_nothing() -> None:
    facts = [known(f"a{i}", i % 2) for i in range(10)]
    found = group(facts, verdicts("e", [f.fact for f in facts], [0.3] * 10))
    assert found.of("auroc.taught", "e").value == 0.5
    assert found.of("auroc.stored", "e") == Estimate.not_measured()


def test_scores_are_read_as_probabilities() -> None:
    facts = [known(f"a{i}", 1, stored=i < 3) for i in range(4)]
    found = group(facts, verdicts("e", [f.fact for f in facts], [0.9, 0.9, 0.9, 0.5]))
    assert found.of("gap.stored", "e").value == pytest.approx(0.8 - 0.75)
    assert found.of("brier.stored", "e").value == pytest.approx((3 * 0.01 + 0.25) / 4)
    assert found.of("ece.stored", "e").value == pytest.approx((3 * 0.1 + 0.5) / 4)
    assert found.of("recall.not_stored", "e").value == 1.0
    assert found.of("recall.not_stored", "e").n == 1
    assert found.of("false.rate.stored", "e").value == pytest.approx(1 / 4)


def test_gains_are_paired_with_lama_and_the_control() -> None:
    facts = [known(f"a{i}", guess="cue" if i < 4 else "") for i in range(8)]
    ids = [f.fact for f in facts]
    found = group(
        facts,
        verdicts("lama", ids, [1, 0, 0, 0, 0, 0, 0, 0]),
        verdicts("soft", ids[:6], [1, 1, 1, 1, 0, 0], learns=True),
        verdicts("soft-random", ids[1:], [1, 0, 1, 0, 1, 1, 1], learns=True, control=True),
    )
    assert found.of("gain.guessable", "soft").value == pytest.approx(3 / 4)
    # neither the first fact nor the last two were asked of both
    assert found.of("gain.guessable", "soft-random").value == pytest.approx(2 / 3)
    assert found.of("matched.guessable", "soft-random").value == pytest.approx(1 / 3)
    assert found.of("matched.not_guessable", "soft-random").value == pytest.approx(-1 / 2)
    assert found.of("matched.not_guessable", "soft-random").n == 2
    assert found.controls_of("soft") == ("soft-random",)


def test_an_unshown_relation_is_held_against_chance() -> None:
    facts = [known(f"b{i}", shown=False) for i in range(40)]
    ids = [f.fact for f in facts]
    chance = np.linspace(0.04, 0.06, 40).tolist()
    lucky = verdicts("lucky", ids, [1, 1] + [0] * 38, chance=chance)
    never = verdicts("never", ids, [0] * 40, chance=chance)
    knows = verdicts("knows", ids, [1] * 20 + [0] * 20, chance=chance)
    found = group(facts, lucky, never, knows)
    off = {name: found.of("unshown.less_chance", name) for name in found.names}
    assert off["lucky"].value == pytest.approx(0.0)
    assert (
        includes_none(off["lucky"])
        and includes_none(off["never"])
        and not includes_none(off["knows"])
    )


def test_facts_at_the_top_are_found_by_one_or_counted_as_not_stored() -> None:
    facts = [known(f"a{i}", 9, stored=i < 3) for i in range(5)]
    facts += [known(f"a{i}", 0) for i in range(5, 10)]
    ids = [f.fact for f in facts]
    found = group(
        facts,
        verdicts("one", ids, [1, 0, 0, 0, 0] + [0] * 5),
        verdicts("two", ids, [0, 1, 0, 0, 0] + [0] * 5),
        verdicts("all", ids, [1] * 10),
        verdicts("tuned", ids, [0, 0, 1, 1, 0] + [0] * 5, learns=True),
    )
    assert found.finders == ("one", "two")  # one that calls everything known finds nothing
    assert found.of("recall.exposure.9", ANY).value == pytest.approx(2 / 5)
    top = found.top
    assert (top.exposure, top.facts, top.unfound, top.stored, top.learnt) == (9, 5, 3, 1, 2)


def test_kinds_and_sorts_of_worlds_are_judged_apart() -> None:
    groups = judge(study(("plain", "skew"), worlds=2, facts=12, names=("lama", "class-prior")))
    assert [(g.kind, g.worlds) for g in groups] == [
        ("causal", "plain"), ("causal", "skew"), ("masked", "plain"), ("masked", "skew")
    ]  # fmt: skip
    assert all(g.of("auroc.taught", "lama").n == 2 for g in groups)
    assert groups[0].world_names == ("plain-1", "plain-2")
    assert groups[0].names[-1] in groups[0].controls


def test_models_of_one_world_count_once() -> None:
    def one(value: float) -> Measured:
        return Measured(value, lambda: Estimate(value=value, low=value - 0.1, high=1.0, n=9))

    found = over_worlds([[one(0.2), one(0.4)], [one(0.5)]])
    assert found.value == pytest.approx(0.4) and found.n == 2
    alone = over_worlds([[one(0.2), one(0.4)]])
    assert alone.value == pytest.approx(0.3) and alone.low == pytest.approx(0.2) and alone.n == 9
    assert over_worlds([[], []]) == Estimate.not_measured()


def test_worlds_that_agree_leave_the_interval_of_their_facts() -> None:
    nothing = mean(np.zeros(30), np.zeros(30, dtype=np.int64))
    found, single = over_worlds([[nothing]] * 3), nothing.estimate()
    assert found.value == found.low == 0.0
    assert found.high is not None and single.high is not None
    assert found.high == pytest.approx(single.high / np.sqrt(3))


def test_the_interval_of_a_share_over_worlds_stays_a_share() -> None:
    worlds = [[mean(np.full(4, v), np.zeros(4, dtype=np.int64))] for v in (0.7, 1.0, 1.0)]
    found = over_worlds(worlds)
    assert found.high == 1.0 and found.low is not None and found.low < 0.7


def test_the_spread_between_relations_adds_nothing_to_an_interval() -> None:
    relations = np.repeat([0, 1, 2], [300, 200, 100])
    values = np.random.default_rng(0).random(600) * 0.4 + relations * 0.2
    low, high = mean(values, relations).estimate().ends
    assert 0 < high - low < 0.025  # they are those asked about


def test_a_known_number_adds_nothing_to_an_interval() -> None:
    hits = (np.arange(50) < 3).astype(np.float64)
    found = mean_less(hits, np.linspace(0.0, 0.12, 50)).estimate()
    assert found.value == pytest.approx(0.0)
    assert (found.low, found.high) == pytest.approx((0.02062 - 0.06, 0.16217 - 0.06), abs=1e-4)


def test_verdicts_on_strange_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="'a9', no fact of plain-1-masked"):
        group([known("a1")], verdicts("e", ["a9"], [1.0])).of("auroc.taught", "e")


def test_a_share_of_all_is_exactly_one_however_the_facts_are_spread() -> None:
    relations = np.repeat(np.arange(7), 15)  # seven times a seventh is less than 1 in floats
    assert mean(np.ones(len(relations)), relations).estimate().value == 1.0


def test_a_control_belongs_to_the_longest_name_that_it_begins_with() -> None:
    names = ("soft", "soft-manual", "soft-manual-random")
    said = [verdicts(n, ["a1"], [1.0], learns=True, control="random" in n) for n in names]
    found = group([known("a1")], *said)
    assert found.controls_of("soft") == ()
    assert found.controls_of("soft-manual") == ("soft-manual-random",)


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    score, positive = np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True])
    value, low, high = auroc(score, positive) or (0, 0, 0)
    assert value == 0.875
    assert 0 < low < value < high < 1
    assert auroc(score, np.ones(4, dtype=bool)) is None
