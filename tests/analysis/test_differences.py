"""What tells runs apart: who is better, on what, and what must be known before it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.analysis.differences.facts import facts_of_pairs
from sonde.analysis.differences.numbers import Differences, groups
from sonde.analysis.differences.report import cares, verdict
from sonde.analysis.joins import align
from sonde.analysis.runs import Compared, Made
from sonde.core.reports import Estimate
from sonde.core.words import by_test, told_apart
from sonde.metrics.estimates import hold_together
from tests.analysis.world import asked, changed, report_of, run, several, table
from tests.worlds import dataset_of, entity, fact, relation


def of(*runs: Compared, seed: int = 0) -> Differences:
    return Differences(aligned=align(runs), seed=seed)


def many(name: str, right: int, of: int = 40) -> Compared:
    """A run that is right on the first so many facts."""
    return asked(name, [[int(i < right) for i in range(of)]])


def mirrored(estimate: Estimate) -> list[float | None]:
    ends = (estimate.value, estimate.high, estimate.low)
    return [None if end is None else -end for end in ends] + [estimate.p]


def plain(estimate: Estimate) -> list[float | None]:
    return [estimate.value, estimate.low, estimate.high, estimate.p]


@given(several(runs=2), st.integers(0, 5))
def test_a_comparison_the_other_way_round_has_the_other_sign(
    runs: Sequence[Compared], seed: int
) -> None:
    one, other = of(*runs, seed=seed), of(*runs[::-1], seed=seed)
    assert plain(one.of("r1", "r0")) == pytest.approx(mirrored(other.of("r0", "r1")))
    for (id, _), estimate in one.relations.items():
        assert plain(estimate) == pytest.approx(mirrored(other.relations[id, ("r0", "r1")]))
    words = {"better": "worse", "worse": "better"}
    assert verdict(one).word == words.get(verdict(other).word, verdict(other).word)
    assert set(verdict(one).best) == set(verdict(other).best)


@given(several(runs=1))
def test_a_run_and_itself_cannot_be_told_apart(runs: Sequence[Compared]) -> None:
    found = of(*runs, replace(runs[0], name="again"))
    assert found.of("again", "r0").value == 0 and found.of("again", "r0").p == 1
    assert verdict(found).word == "cannot be told apart"
    assert not any(told_apart(e) for e in found.relations.values())
    assert not any(told_apart(e) for e in found.groups.values())
    assert all(e.value in (0, None) for e in (*found.consist.values(), *found.overconf.values()))


@given(several(runs=4))
def test_ranks_are_ranges_in_which_the_place_of_every_run_lies(runs: Sequence[Compared]) -> None:
    found = of(*runs)
    for place, name in enumerate(found.leaders, 1):
        low, high = found.ranks[name]
        assert 1 <= low <= place <= high <= len(runs)


def test_runs_that_cannot_be_told_apart_share_a_range_of_ranks() -> None:
    found = of(many("a", 30), many("b", 28), many("c", 2))
    assert found.ranks == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    report = report_of([many("a", 30), many("b", 28), many("c", 2)])
    assert [row[:2] for row in table(report, "standing").rows] == [
        ("1–2", "a"), ("1–2", "b"), ("3", "c")
    ]  # fmt: skip
    assert report.verdict.ranks["b"] == (1, 2)


def test_the_best_run_is_told_apart_from_all_others() -> None:
    found = of(many("a", 30), many("b", 20), many("c", 18))
    clear = Estimate(value=-0.2, low=-0.3, high=-0.1, n=40, p=0.001)
    vague = Estimate(value=-0.3, low=-0.7, high=0.1, n=40, p=0.2)
    found.__dict__["pooled"] = {("b", "a"): clear, ("c", "b"): clear, ("c", "a"): vague}
    assert found.ranks["a"] == (1, 2)
    assert verdict(found).word == "cannot be told apart"
    assert "a (75.0%) cannot be told apart from c (45.0%)" in verdict(found).sentence


def test_a_difference_that_no_fact_varies_has_a_width_among_several_runs() -> None:
    rows = {"all": [1] * 12, "none": [0] * 12, "half": [1, 0] * 6}
    found = of(*(asked(name, [row] * 5) for name, row in rows.items()))
    difference = found.of("all", "none")
    assert difference.value == 1 and 0.5 < (difference.low or 0) < 0.99


def test_many_runs_can_still_be_told_apart() -> None:
    runs = [asked(f"r{i}", [[int(i % 2 == 0)] * 10] * 2) for i in range(34)]
    assert told_apart(of(*runs).of("r0", "r1")), "561 couples are looked at"


def test_intervals_of_several_runs_are_wider_than_those_of_two() -> None:
    runs = [many("a", 30), many("b", 22), many("c", 15), many("d", 8)]
    two, four = of(*runs[:2]).of("b", "a"), of(*runs).of("b", "a")
    assert four.value == two.value
    assert (four.low or 0) < (two.low or 0) and (four.high or 0) > (two.high or 0)
    assert (four.p or 0) >= (two.p or 0)


@given(st.lists(st.tuples(st.floats(-0.9, 0.9), st.floats(0.01, 0.3), st.floats(0, 1))))
def test_what_holds_together_is_never_surer_than_alone(rows: list[tuple[float, ...]]) -> None:
    alone = [by_test(Estimate(value=v, low=v - w, high=v + w, n=9), p) for v, w, p in rows]
    for one, wide in zip(alone, hold_together(alone), strict=True):
        low, high = max(one.low or 0, -1), min(one.high or 0, 1)
        assert (wide.low or 0) <= low and (wide.high or 0) >= high
        assert (wide.p or 0) >= (one.p or 0)
        assert told_apart(one) or not told_apart(wide)
        assert by_test(wide) == wide
        if (wide.p or 0) >= 0.05:
            assert (wide.low or 0) <= 0 <= (wide.high or 0)


def test_one_difference_stays_as_it_is() -> None:
    one = Estimate(value=0.2, low=0.1, high=0.3, n=9, p=0.01)
    assert hold_together([one]) == [one]


def test_groups_are_what_the_dataset_says_of_facts() -> None:
    data = dataset_of(
        [
            fact("R0", "Peru", "Lima", id="f0", tags=("hard",)),
            fact("R0", "Chile", entity("Oslo", "Christiania"), "Lima", id="f1"),
            fact("R0", "Norway", "Oslo", id="f2"),
        ]
    )
    found = asked("a", [[1, 0, 1]])
    found = replace(found, facts=facts_of_pairs(data, found.judged.pairs))
    made = {(g.kind, g.name): g.prompts.tolist() for g in groups(align([found, found_as(found)]))}
    assert made == {
        ("answer", "the commonest of its relation"): [True, True, False],
        ("answer", "another"): [False, False, True],
        ("answers", "one is right"): [True, False, True],
        ("answers", "several are right"): [False, True, False],
        ("tag", "hard"): [True, False, False],
    }


def test_a_relation_without_a_kind_is_in_no_group_of_kinds() -> None:
    kinds = (relation("R0", kind="1-1"), relation("R1", kind=None))
    made = [changed(asked(name, [[1, 0], [0, 1]]), relations=kinds) for name in "ab"]
    assert [(g.kind, g.name, g.prompts.tolist()) for g in groups(align(made))] == [
        ("type", "1-1", [True, True, False, False])
    ]


def found_as(run: Compared) -> Compared:
    return replace(run, name="b")


def test_facts_of_one_subject_belong_to_one_pair_where_the_probe_asks_pairs() -> None:
    data = dataset_of(
        [
            fact("R0", "Peru", "Lima", id="f0"),
            fact("R0", "Peru", "Cusco", id="f1"),
            fact("R0", "Chile", "Santiago", id="f2"),
        ]
    )
    pooled = facts_of_pairs(data, ["f0", "f2"])
    assert pooled["gold"].to_list() == [["Lima", "Cusco"], ["Santiago"]]
    apart = facts_of_pairs(data, ["f0", "f1", "f2"])
    assert apart["gold"].to_list() == [["Lima"], ["Cusco"], ["Santiago"]]
    assert apart["cluster"].n_unique() == 2


def test_facts_of_one_subject_are_not_independent_of_each_other() -> None:
    same = dataset_of([fact("R0", "Peru", f"o{i}", id=f"f{i}") for i in range(8)])
    first, second = many("a", 0, of=8), many("b", 8, of=8)
    alone = of(first, second).of("b", "a")
    told = replace(first, facts=facts_of_pairs(same, first.judged.pairs))
    together = of(told, second).of("b", "a")
    assert told_apart(alone) and not told_apart(together)


def test_overconfidence_differs_by_what_it_differs_in_the_two_runs() -> None:
    sure, unsure = run("a", [[[0], [1]], [[1], [1]]]), run("b", [[[0], [0]], [[1], [1]]])
    columns = {"a": [0.9, 0.8, 0.7, 0.6], "b": [0.4, 0.3, 0.2, 0.1]}
    runs = [
        changed(made, grid=replace(made.judged.grid, confidence=np.array(columns[made.name])))
        for made in (sure, unsure)
    ]
    report = report_of(runs)
    own = [report.estimates[f"overconf.run.{name}"].value or 0.0 for name in "ba"]
    found = report.estimates["overconf.runs.b.minus.a"].value
    assert found == pytest.approx(own[0] - own[1])


def made_with(name: str, **made: object) -> Compared:
    return replace(many(name, 3, of=4), made=Made(**made))  # type: ignore[arg-type]


def test_runs_that_were_asked_alike_need_no_care() -> None:
    same = {"probe": "lama", "version": "1", "settings": {"k": "1"}, "tokenizer": "t"}
    assert list(cares([made_with("a", **same), made_with("b", **same)])) == []


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"tokenizer": "t"}, {"tokenizer": "u"}, "different vocabularies (a; b)"),
        ({"settings": {"k": "1"}}, {"settings": {"k": "2"}}, "different settings (k 1 / 2)"),
        ({"version": "1"}, {"version": "2"}, "different versions of sonde (a: 1; b: 2)"),
        ({}, {"numerics": "why"}, "The numbers of b are not known to be the model's own: why."),
        ({"probe": "lama"}, {"probe": "belief"}, "different probes (a: lama; b: belief)"),
        (
            {"offered": {"R0": frozenset("xy")}},
            {"offered": {"R0": frozenset("xyz")}},
            "different answers to choose from in 1 relation (R0)",
        ),
    ],
)
def test_what_differs_beside_the_models_is_said(
    one: dict[str, object], other: dict[str, object], said: str
) -> None:
    runs = [made_with("a", **one), made_with("b", **other)]
    [care] = cares(runs)
    assert said in care
    report = report_of(runs)
    assert "Take care: " in report.summary and care in report.summary
    assert report.verdict.care == (care,)


def test_nothing_is_concluded_from_runs_whose_answers_are_mostly_empty() -> None:
    full, silent = many("full", 40), many("silent", 0)
    wrote = np.zeros(40, dtype=np.bool_)
    spoken = [changed(full, way="written", abstained=wrote)]
    nothing = ("Vienna", "", *silent.judged.answers[2:])
    spoken.append(changed(silent, way="written", abstained=wrote, answers=nothing))
    told = verdict(of(*spoken))
    assert told.word == "not concluded"
    assert told.sentence.startswith(
        "Nothing is concluded: most answers of silent are empty (40 of 40), on 40 facts"
    )
    report = report_of(spoken)
    assert "--set frame=qa" in report.findings[0] and len(report.findings) == 1
    assert not any("minus" in line.label for line in report.headlines)
    assert report.verdict.best == () and not any(t.id == "groups-of-facts" for t in report.tables)
    assert verdict(of(full, silent)).word == "worse"
