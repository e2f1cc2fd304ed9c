"""MONITOR: what it asks, how it reads, and what it says about what it had to leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import DataError, UsageError
from sonde.core.prompts import Prompt
from sonde.metrics.distance import Monitors
from sonde.metrics.judged import Judges
from sonde.former.monitor.probe import Monitor
from sonde.prompting.matching import begins
from sonde.testing import check_probe
from tests.rows import answer_all
from tests.worlds import fact

from .monitor_world import BIRTH, CAPITAL, FACTS, Told, golden, kind, read, without_wrong, world

GOLDEN = Path(__file__).parents[1] / "golden" / "monitor.txt"

LIKELY = {"right": 0.8, "none": 0.6, "wrong": 0.2}


def by_kind(prompt: Prompt) -> float:
    return LIKELY[kind(prompt)]


def written() -> str:
    shown = []
    for settings in ({}, {"frame": "qa", "shots": 2, "negatives": 1, "full": True}):
        for prompt in Monitor(**settings).ask(world(relations=("P36",))):  # type: ignore[arg-type]
            key = (prompt.key.fact, prompt.key.template, *prompt.own.values())
            shown.append(f"{' '.join(key)}\n{prompt.prefix!r}\n{prompt.want}\n")
    return "\n".join(shown)


def test_prompts_are_those_written_down() -> None:
    assert written() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "probe",
    [Monitor(), Monitor(frame="qa", shots=2), Monitor(full=True, frames=1), Monitor(anchor="any")],
)
def test_the_probe_passes_the_checks(probe: Monitor) -> None:
    check_probe(probe, world())


def test_distances_are_those_that_were_made() -> None:
    estimates = read(world(), by_kind).estimates
    for where in ("mean_over_relations", "relation.P36", "relation.P19"):
        assert estimates[f"pfd.{where}"].value == pytest.approx(0.2)
        assert estimates[f"ird.{where}"].value == pytest.approx(0.6)
        expected = ((0.2**2 + 0.6**2 + 0.2 * 0.6) / 3) ** 0.5 / 0.8
        assert estimates[f"monitor.{where}"].value == pytest.approx(expected)
    assert estimates["anchor_probability.mean_over_relations"].value == pytest.approx(0.8)
    for factor, solid in ((1.1, 1), (0.9, 0)):
        estimates = read(world(), lambda p, by=factor: by * by_kind(p)).estimates  # type: ignore[misc]
        assert estimates["solid_anchors.mean_over_relations"].value == solid


def test_weights_may_be_changed_when_reading() -> None:
    one = read(world(), by_kind, probe=Monitor(alphas=(1.0, 0.0, 0.0))).estimates
    two = read(world(), by_kind, probe=Monitor(alphas=(0.0, 1.0, 0.0))).estimates
    assert one["monitor.mean_over_relations"].value == pytest.approx(0.2 / 0.8)
    assert two["monitor.mean_over_relations"].value == pytest.approx(0.6 / 0.8)


@given(st.floats(0.01, 1), st.sampled_from(["Lima", "York"]))
def test_a_model_that_ignores_its_prompt_has_no_distance(likely: float, answer: str) -> None:
    report = read(world(), lambda prompt: likely, lambda prompt: answer)
    assert report.estimates["monitor.mean_over_relations"].value == pytest.approx(0, abs=1e-12)
    assert report.counts["anchors_exact"] > 0


def test_a_model_that_only_repeats_the_name_in_front_has_one() -> None:
    def likely(prompt: Prompt) -> float:
        return 1.0 if kind(prompt) == "right" else 1e-12

    report = read(world(), likely)
    assert report.estimates["monitor.mean_over_relations"].value == pytest.approx(1)


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ("Lima.", {"exact": 1, "prefix": 1, "any": 1}),
        ("Lima, of course", {"exact": 0, "prefix": 1, "any": 0}),
        ("Limassol", {"exact": 0, "prefix": 0, "any": 0}),
        ("", {"exact": 0, "prefix": 0, "any": 0}),
    ],
)
def test_an_anchor_counts_by_its_rule(said: str, counts: dict[str, int]) -> None:
    data = world([FACTS[0]], having=(CAPITAL,))
    report = read(data, by_kind, lambda prompt: said)
    assert {rule: report.counts[f"anchors_{rule}"] for rule in counts} == counts


@pytest.mark.parametrize(
    ("text", "name"), [("京都府", "京都"), ("กรุงเทพ", "กร"), ("ភ្នំពេញ", "ភ្នំ"), ("หิน", "ห")]
)
def test_a_name_inside_a_word_of_any_script_begins_no_answer(text: str, name: str) -> None:
    assert not begins(text, name)
    assert begins(f"{name}、{text}", name) and begins(name, name)


def test_any_prompt_that_is_answered_makes_an_anchor_by_that_rule() -> None:
    data = world([FACTS[0]], having=(CAPITAL,))
    report = read(
        data,
        by_kind,
        lambda p: "Lima" if p.key.template == "P36-3" else "no",
        Monitor(anchor="any"),
    )
    assert (report.counts["anchors_exact"], report.counts["anchors_any"]) == (0, 1)
    assert report.estimates["monitor.mean_over_relations"].value is not None


def test_facts_are_dropped_by_reason_and_counted() -> None:
    said = {"Peru": "", "Norway": "Oslo and more", "Austria": "Graz"}
    data = world(relations=("P36",))
    report = read(data, by_kind, lambda prompt: said[prompt.key.subject])
    assert report.counts["dropped_answer_empty"] == 1
    assert report.counts["dropped_answer_goes_on"] == 1
    assert report.counts["dropped_another_answer"] == 1
    assert report.counts["relations_without_anchors"] == 1
    assert report.estimates["monitor.relation.P36"].value is None
    assert report.estimates["monitor.mean_over_relations"].value is None
    assert "not measured" in report.summary


def test_a_relation_without_anchors_is_not_measured_and_the_others_are() -> None:
    data = world()
    known = golden(data)
    report = read(data, by_kind, lambda p: known(p) if p.key.relation == "P19" else "no")
    assert report.estimates["monitor.relation.P36"].value is None
    overall = report.estimates["monitor.mean_over_relations"].value
    assert overall == report.estimates["monitor.relation.P19"].value
    assert any("P36 capital" in sentence for sentence in report.findings)


def test_a_fact_with_no_wrong_name_left_is_left_out_and_counted() -> None:
    data = world([without_wrong(FACTS[0]), FACTS[2]], having=(CAPITAL,))
    report = read(data, by_kind)
    assert report.counts["facts_without_wrong_names"] == 1
    assert report.counts["dropped_without_wrong_names"] == 1
    assert report.estimates["monitor.relation.P36"].n == 1
    assert report.estimates["accuracy.all.avg.relation.P36"].n == 2


def test_names_that_are_right_after_all_are_dropped_and_counted() -> None:
    report = read(world(), by_kind)
    assert report.counts["wrong_names_correct_after_all"] == 1


def test_a_single_frame_is_enough_and_said() -> None:
    report = read(world(), by_kind, probe=Monitor(frames=1))
    assert report.estimates["pfd.relation.P36"].value == pytest.approx(0.2)
    assert report.counts["relations_with_one_frame"] == 2
    assert any("single frame" in sentence for sentence in report.findings)


def test_a_relation_without_questions_is_left_out() -> None:
    silent = replace(CAPITAL, templates=CAPITAL.templates[:1])
    report = read(world(having=(silent, BIRTH)), by_kind)
    assert report.counts["relations_without_frames"] == 1
    with pytest.raises(DataError, match="no question to ask"):
        list(Monitor().ask(world(FACTS[:3], having=(silent,))))


def test_accuracy_is_over_frames_and_wrong_names_never_the_right_one() -> None:
    data = world([FACTS[0]], having=(CAPITAL,))

    def says(prompt: Prompt) -> str:
        if kind(prompt) == "wrong":
            return "Oslo"
        return "Lima" if prompt.key.template == "P36-1" else "?"

    estimates = read(data, by_kind, says).estimates
    accuracy = {
        name: estimates[f"accuracy.all.{name}.relation.P36"].value
        for name in ("avg", "max", "min", "base", "stdev")
    }
    assert accuracy["avg"] == pytest.approx(1 / 6)
    assert (accuracy["max"], accuracy["min"], accuracy["base"]) == (1, 0, 1)
    assert accuracy["stdev"] == pytest.approx((1 / 6) ** 0.5)
    assert estimates["copied_wrong_name.relation.P36"].value == pytest.approx(1 / 3)


def test_accuracies_of_valid_anchors_leave_the_others_out() -> None:
    data = world([FACTS[1], FACTS[2]], having=(CAPITAL,))
    report = read(data, by_kind, lambda p: "Oslo" if p.key.subject == "Norway" else "Graz")
    assert report.estimates["accuracy.all.avg.relation.P36"].value == pytest.approx(0.5)
    assert report.estimates["accuracy.valid.avg.relation.P36"].value == 1


def test_the_full_grid_has_every_frame_after_every_wrong_name() -> None:
    data = world(relations=("P36",))
    asked = list(Monitor(full=True).ask(data))
    texts = {(p.key.fact, p.prefix) for p in asked if kind(p) != "right"}
    grid = sum(3 * (1 + m) for m in (3, 1, 1))
    assert len(texts) == grid
    few = {(p.key.fact, p.prefix) for p in Monitor().ask(data)}
    assert len(few) == sum(3 + 1 + m for m in (3, 1, 1))
    table = next(t for t in read(data, by_kind, probe=Monitor(full=True)).tables if t.id == "cost")
    assert [row[1] for row in table.rows] == [17, 14, grid]


def test_examples_never_tell_of_the_subject_and_are_not_asked_about() -> None:
    data = world(relations=("P19",))
    with_shots = Monitor(shots=1)
    asked = {p.key.subject for p in with_shots.ask(data)}
    report = read(data, by_kind, probe=with_shots)
    assert len(asked) == 2
    assert report.counts["facts_held_back_as_examples"] == 1
    for prompt in with_shots.ask(data):
        assert prompt.prefix.count(prompt.key.subject) == 1


def test_all_facts_held_back_is_refused() -> None:
    data = world([fact("P19", "Ann", "York")], having=(BIRTH,))
    with pytest.raises(DataError, match="not all examples"):
        list(Monitor(shots=1).ask(data))


@pytest.mark.parametrize("alphas", [(1.0, 1.0), (-1.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
def test_weights_that_make_no_distance_are_refused(alphas: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="alphas"):
        Monitor(alphas=alphas)


def test_prompts_without_a_written_answer_are_wrong() -> None:
    data, probe = world(relations=("P36",)), Monitor()
    model = Told(likely=by_kind, says=golden(data))
    answers = answer_all(model, list(probe.ask(data)))
    scored = [row for row in answers if type(row.answer).__name__ == "Scored"]
    report = probe.read(data, scored)
    assert report.counts["facts"] == 3 and report.counts["anchors_any"] == 0
    assert report.estimates["accuracy.all.max.relation.P36"].value == 0


def test_a_cut_that_differs_between_prompts_leaves_the_fact_out() -> None:
    from sonde.core.answers import Answered, Scored

    data = world([FACTS[0], FACTS[2]], having=(CAPITAL,))
    probe = Monitor()
    model = Told(likely=by_kind, says=golden(data))
    answered = answer_all(model, list(probe.ask(data)))
    place = next(
        i
        for i, row in enumerate(answered)
        if row.own["told"] == "none" and isinstance(row.answer, Scored)
    )
    row = answered[place]
    answered[place] = Answered(
        key=row.key,
        prefix=row.prefix,
        suffix="",
        own=row.own,
        answer=Scored(options=("Lima",), logps=((-0.1, -0.2),)),
    )
    report = probe.read(data, answered)
    assert report.counts["facts_cut_into_other_tokens"] == 1
    assert report.counts["facts"] == 1


def test_runs_of_it_can_be_compared() -> None:
    probe = Monitor()
    assert isinstance(probe, Judges)
    assert isinstance(probe, Monitors)
    data = world()
    answered = answer_all(Told(likely=by_kind, says=golden(data)), list(probe.ask(data)))
    judged = probe.judged(data, answered)
    assert len(judged.grid) == 3 * 3 + 3 * 2
    assert judged.grid.right.all()
    assert len(probe.monitored(data, answered).facts) == 6
