"""Framing: how it judges, and what it says about what it had to leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polars import col

import sonde
from sonde.core.answers import Generated
from sonde.core.facts import Dataset, Entity
from sonde.core.prompts import Prompt
from sonde.core.reports import Report, Strip, Table
from sonde.models.controls import majority
from sonde.former.framing import tables as framing_tables
from sonde.former.framing.probe import Framing
from sonde.prompting.matching import cleaned, language_of
from sonde.testing import check_probe
from tests import tiny
from tests.rows import answer_all
from tests.worlds import CAPITAL, INSTRUMENT, fact, facts, relation, world

from .framing_world import Says, answered, literal, read, whimsical

OVER = "mean_over_relations"


def table(report: Report, id: str) -> Table:
    [found] = [t for t in report.tables if t.id == id]
    return found


@pytest.mark.parametrize("settings", [{"frame": "qa", "shots": 3}, {"paraphrases": 1}])
def test_other_settings_pass_the_checks(settings: dict[str, Any]) -> None:
    check_probe(Framing(**settings), world())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"frame": "qa", "shots": 2, "negatives": 2},
        {"paraphrases": 2, "language": "none"},
    ],
)
def test_the_report_is_what_a_literal_reading_gives(settings: dict[str, Any]) -> None:
    data = uneven()
    probe = Framing(**settings)
    rows = answered(probe, data, whimsical())
    estimates = probe.read(data, rows).estimates
    expected = literal(data, rows, language_of(probe.language, ""))
    skipped = (
        "above_control.",
        "above_half.",
        "control.same_verdict.",
        "abstained.",
        "right_when_",
    )
    measured = {
        name: estimate.value
        for name, estimate in estimates.items()
        if estimate.value is not None and not name.startswith(skipped)
    }
    assert measured == pytest.approx(expected, abs=1e-9)
    for name, value in expected.items():
        control = name.replace("accuracy.", "control.majority.")
        if name.startswith("accuracy.") and control in expected:
            above = estimates[name.replace("accuracy.", "above_control.")].value
            assert above == pytest.approx(value - expected[control], abs=1e-9)


def uneven() -> Dataset:
    """Facts with two right objects, two facts of one subject, one without a wrong object, a
    relation without questions."""
    more = [
        fact("P1303", "Ivy", "harp", "piano"),
        replace(fact("P1303", "Hal", "oboe"), id="P1303-Hal-2"),
        replace(fact("P36", "Togo", "Cairo"), wrong=(Entity(id="Cairo", names=("Cairo",)),)),
        fact("P9", "Rex", "Cairo"),
        fact("P9", "Sue", "oboe"),
    ]
    pets = relation("P9", "[X] has a [Y]", label="pet", kind="1-1")
    return world([*facts(training=3), *more], CAPITAL, INSTRUMENT, pets)


def test_each_answer_is_judged_by_its_own_rule() -> None:
    report = read(Framing(), world(relations=("P36",)), Says(write=lambda p: " It is Vienna."))
    assert report.estimates[f"accuracy.wp.{OVER}"].value == 0.5
    assert report.estimates[f"accuracy.qa_lemma.{OVER}"].value == 0.5
    assert report.estimates[f"accuracy.qa.{OVER}"].value == 0


@pytest.mark.parametrize(
    ("said", "right"), [(" Washington, D.C.", 1), (" Washington, D.C", 1), (" Washington", 0)]
)
def test_closing_punctuation_of_answer_and_name_does_not_matter(said: str, right: int) -> None:
    data = world(given=[*facts()[:6], fact("P36", "USA", "Washington, D.C.")], relations=("P36",))
    report = read(Framing(), data, Says(write=lambda p: said))
    assert report.estimates[f"accuracy.qa.{OVER}"].value == right


@pytest.mark.parametrize("said", [" Cairo", " al-Qahira", " Thebes"])
def test_any_name_of_any_object_right_for_the_subject_counts(said: str) -> None:
    names = Entity(id="Cairo", names=("Cairo", "al-Qahira"))
    asked = replace(fact("P36", "Egypt", "Cairo"), objects=(names,))
    other = replace(fact("P36", "Egypt", "Thebes", split="train"), id="another")
    data = world(given=[*facts()[:6], asked, other], relations=("P36",))
    report = read(Framing(), data, Says(write=lambda p: said))
    assert report.estimates[f"accuracy.qa.{OVER}"].value == 1
    assert all(p.own["object"] != "Thebes" or p.own["task"] != "fc" for p in Framing().ask(data))


def test_always_saying_true_is_right_on_half_of_the_balanced_statements() -> None:
    report = read(Framing(), world(), Says(write=lambda p: " True", check=lambda p: (-1.0, -2.0)))
    for after in ("", "_written"):
        values = {
            name: report.estimates[f"{name}{after}.{OVER}"].value
            for name in ("accuracy.fc_pos", "accuracy.fc_neg", "accuracy.fc", "said_true.fc")
        }
        assert list(values.values()) == [1, 0, 0.5, 1]
        assert report.estimates[f"above_half.fc{after}.{OVER}"].value == 0
    assert any("not distinguishable from the 50 %" in finding for finding in report.findings)
    assert any("leans to True" in finding for finding in report.findings)


def test_a_tie_and_another_word_are_wrong_verdicts_and_are_counted() -> None:
    report = read(Framing(negatives=1), world(relations=("P36",)), Says(write=lambda p: " Maybe"))
    for after in ("", "_written"):
        assert report.estimates[f"accuracy.fc_pos{after}.{OVER}"].value == 0
        assert report.estimates[f"accuracy.fc_neg{after}.{OVER}"].value == 0
        assert report.estimates[f"said_neither.fc{after}.{OVER}"].value == 1
    assert report.counts["verdicts_tied"] == report.counts["verdicts_neither"] == 2 * 3 * 2


def test_verdicts_are_read_from_the_sum_over_tokens_of_each_option() -> None:
    # False has two tokens of half of it each, so that its mean would be the larger one
    report = read(Framing(), world(), Says(check=lambda p: (-1.0, -1.5)))
    assert report.estimates[f"accuracy.fc_pos.{OVER}"].value == 1


def test_a_model_that_repeats_the_name_in_front_is_seen_to_do_so() -> None:
    def write(prompt: Prompt) -> str:
        return " " + prompt.prefix.rpartition("\n")[2].partition(".")[0]

    report = read(Framing(), world(), Says(write=write))
    found = {name: report.estimates[f"{name}.{OVER}"].value for name in
             ("told.none", "told.right", "told.wrong", "copied.right", "copied.wrong")}  # fmt: skip
    assert list(found.values()) == [0, 1, 0, 1, 1]
    assert report.estimates[f"told_minus_none.right.{OVER}"].value == 1


def test_sentences_and_bare_questions_are_judged_one_by_one() -> None:
    data, probe = world(), Framing()
    rows = answered(probe, data, whimsical())
    report, judged = probe.read(data, rows), probe.judged(data, rows[::-1])
    frame, titles = judged.frame(), {t.id: t for r in data.relations for t in r.templates}
    bare = [row for row in rows if row.own["task"] != "fc" and row.own["told"] == "none"]
    assert len(frame) == len(bare)
    asked = {(row.key.fact, row.key.template): row for row in bare}
    for row in frame.iter_rows(named=True):
        answer = asked[row["fact"], row["template"]].answer
        assert isinstance(answer, Generated) and row["answer"] == cleaned(answer.text)
    for id, style in (("wp", "statement"), ("qa", "question")):
        of_style = [name for name, template in titles.items() if template.style == style]
        facts = frame.filter(frame["template"].is_in(of_style), relation="P36").group_by("fact")
        mean = facts.agg(col("right").mean())["right"].mean()
        assert mean == pytest.approx(report.estimates[f"accuracy.{id}.relation.P36"].value)
    assert judged.facts()["prompts"].sum() == len(frame)


def test_the_control_in_the_report_is_the_control_as_a_model() -> None:
    data = sonde.dataset("atlas", relations=("P30", "P36", "P103"), limit=8)
    probe = Framing(paraphrases=2, negatives=1)
    estimates = probe.read(data, answer_all(majority(data), list(probe.ask(data)))).estimates
    for id in ("wp", "qa", "qa_lemma"):
        control = estimates[f"control.majority.{id}.{OVER}"].value
        assert estimates[f"accuracy.{id}.{OVER}"].value == control
    assert control


def test_of_two_answers_to_a_prompt_the_later_one_counts() -> None:
    data, probe = world(relations=("P36",)), Framing(paraphrases=1)
    rows = [*answered(probe, data, Says()), *answered(probe, data, Says(write=lambda p: " Cairo"))]
    report = probe.read(data, rows)
    assert report.estimates[f"accuracy.wp.{OVER}"].value == 0.5
    assert report.counts["empty_answers"] == 0
    assert report.counts["prompts"] == len(rows) // 2


def test_empty_answers_are_wrong_and_counted() -> None:
    report = read(Framing(negatives=1), world(relations=("P36",)), Says(write=lambda p: " ...\n"))
    assert report.estimates[f"accuracy.qa.{OVER}"].value == 0
    assert report.counts["empty_answers"] == 2 * (1 + 1 + 2)
    assert "8 answers are empty, and wrong." in report.findings


@pytest.mark.parametrize(
    ("style", "tasks", "missing"),
    [
        ("question", ("accuracy.wp", "accuracy.fc_pos"), ["relations_without_questions"]),
        (
            "statement",
            ("accuracy.qa", "told.right"),
            ["relations_without_sentences", "relations_without_statements"],
        ),
    ],
)
def test_a_relation_without_templates_for_a_task_is_left_out_of_it(
    style: str, tasks: tuple[str, ...], missing: list[str]
) -> None:
    kept = tuple(t for t in CAPITAL.templates if t.style != style)
    report = read(Framing(), world(None, replace(CAPITAL, templates=kept), INSTRUMENT), whimsical())
    for name in ("accuracy.wp", "accuracy.qa", "accuracy.fc_pos", "told.right"):
        asked = report.estimates[f"{name}.relation.P36"].value is not None
        assert asked == (name in tasks)
        assert report.estimates[f"{name}.{OVER}"].n == (4 if asked else 2)
    assert [n for n in report.counts if "_without_" in n and report.counts[n]] == missing
    assert any("P36" in finding and "nothing was" in finding for finding in report.findings)


def test_a_statement_that_does_not_end_with_its_object_is_checked_only() -> None:
    relation = replace(CAPITAL, templates=CAPITAL.templates[1:2])
    prompts = list(Framing().ask(world(None, relation)))
    assert {p.own["task"] for p in prompts} == {"fc"}
    report = read(Framing(), world(None, relation), whimsical())
    assert report.headlines
    assert report.estimates[f"accuracy.wp.{OVER}"].value is None
    assert "sentences" not in report.summary


def test_a_fact_with_no_wrong_object_left_is_counted_and_asked_the_rest() -> None:
    data = world(given=[fact("P36", "Egypt", "Cairo")])
    report = read(Framing(), data, whimsical())
    assert report.counts["facts_without_wrong_names"] == 1
    assert report.estimates[f"accuracy.fc_pos.{OVER}"].n == 1
    for name in ("accuracy.fc_neg", "accuracy.fc", "told.wrong", "copied.wrong"):
        assert report.estimates[f"{name}.{OVER}"].value is None
    assert any("no wrong object left" in finding for finding in report.findings)


def test_one_template_has_no_spread() -> None:
    report = read(Framing(paraphrases=1), world(), whimsical())
    for id in ("wp", "qa", "fc_pos", "fc_neg"):
        assert report.estimates[f"stdev.{id}.{OVER}"].value is None
        ends = {report.estimates[f"{n}.{id}.{OVER}"].value for n in ("accuracy", "best", "worst")}
        assert len(ends) == 1


def test_unequal_numbers_of_paraphrases_are_reported() -> None:
    report = read(Framing(paraphrases=2), world(), whimsical())
    assert report.counts["relations_fewer_questions"] == 1
    rows = {row[1]: row for row in table(report, "by-relation").rows}
    assert rows["capital"][-1] == "1/1/2"
    assert rows["instrument"][-1] == "1/2/1"
    assert "1 relation has fewer questions than the 2 asked for: P36." in report.findings


def test_facts_are_shown_with_their_answers() -> None:
    data = world(relations=("P36",))
    report = read(Framing(negatives=1), data, Says(write=lambda p: f" {p.key.subject} City."))
    shown = table(report, "facts")
    titles = [column.title for column in shown.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in shown.rows]
    assert [(r["subject"], r["right"], r["questions"]) for r in rows] == [
        ("Austria", "Vienna", "Austria City"),
        ("Egypt", "Cairo", "Egypt City"),
    ]
    assert [r["after wrong names"] for r in rows] == ["Austria City", "Egypt City"]


def test_of_many_facts_some_are_shown_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing_tables, "SHOWN", 1)
    report = read(Framing(), world(), whimsical())
    assert len(table(report, "facts").rows) == 1
    assert "1 of the 4 facts" in table(report, "facts").note
    assert report.estimates[f"accuracy.wp.{OVER}"].n == 4


def test_the_figure_has_a_dot_for_every_paraphrase() -> None:
    report = read(Framing(), world(), whimsical())
    [figure] = [f for f in report.figures if f.id == "accuracy-by-paraphrase"]
    assert isinstance(figure, Strip)
    assert [len(row) for row in figure.values] == [2, 3, 4, 4]


def test_a_stored_run_can_be_read_by_other_lemmas(tmp_path: Path) -> None:
    probe, data = Framing(paraphrases=2, negatives=1), world(relations=("P1303",))
    model = Says(write=lambda p: " the guitars")
    run = sonde.run(probe, model, data, out=tmp_path / "run")
    by = {language: run.report(language=language).estimates for language in ("en", "none")}
    assert by["en"][f"accuracy.wp.{OVER}"].value == 0.5
    assert by["none"][f"accuracy.wp.{OVER}"].value == 0


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_models_of_both_kinds_take_it(kind: str, tmp_path: Path) -> None:
    folder = {**tiny.CAUSAL, **tiny.SEQ2SEQ}[kind](tmp_path / kind)
    data, probe = world(limit=1), Framing(paraphrases=1, negatives=1)
    rows = answer_all(sonde.model(f"hf:{folder}", device="cpu"), list(probe.ask(data)))
    estimates = probe.read(data, rows).estimates
    assert {r.key for r in rows} == {p.key for p in probe.ask(data)}
    for name, value in literal(data, rows).items():
        assert estimates[name].value == pytest.approx(value, abs=1e-9)


def test_equal_accuracies_have_no_spread_at_all() -> None:
    data = world(given=[*facts()[:6], *(fact("P36", f"Land {i}", f"City {i}") for i in range(10))])
    knows = Says(check=lambda p: (-1.0, -1.0 - ("Land 3" in p.prefix)))
    report = read(Framing(), data, knows)
    assert report.estimates["accuracy.fc_pos.relation.P36"].value == pytest.approx(0.1)
    assert report.estimates["stdev.fc_pos.relation.P36"].value == 0


def test_the_distance_to_one_half_is_as_sure_as_the_accuracy() -> None:
    estimates = read(Framing(), world(), whimsical()).estimates
    for name in (OVER, "relation.P36"):
        own, above = estimates[f"accuracy.fc.{name}"], estimates[f"above_half.fc.{name}"]
        assert None not in (own.value, own.low, own.high)
        found = [own.value or 0.0, own.low or 0.0, own.high or 0.0]
        assert [above.value, above.low, above.high] == [x - 0.5 for x in found]


def test_readings_do_not_agree_on_saying_nothing() -> None:
    estimates = read(Framing(), world(), Says()).estimates
    assert estimates[f"readings_agree.fc.{OVER}"].value == 0
