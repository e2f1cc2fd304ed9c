"""BELIEF-ICL: what is asked, what counts as right, consistent and sure, what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import log
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import sonde
from sonde.core.abilities import Ability
from sonde.core.answers import Answer, Answered, Generated, Sampled
from sonde.core.errors import AbilityError, DataError, UsageError
from sonde.core.facts import Dataset
from sonde.core.prompts import Generate, Prompt, Sample
from sonde.core.reports import Estimate, Report, Table
from sonde.models.controls import majority
from sonde.former.belief_icl.judge import answer_logps
from sonde.former.belief_icl.probe import BeliefIcl
from sonde.prompting.few_shot import Context, Style
from sonde.testing import check_probe, oracle_for
from tests import tiny
from tests.rows import answer_all
from tests.worlds import CAPITAL, INSTRUMENT, MUSIC, fact, facts, relation, template, world

CAN: frozenset[Ability] = frozenset({"generate", "sample"})


def written(text: str, *logps: float, finished: bool = True) -> Generated:
    return Generated(text=text, logps=logps or (-0.5,), finished=finished)


def answered(
    prompts: Sequence[Prompt],
    say: Callable[[Prompt], str],
    drawn: Mapping[str, int] | None = None,
) -> list[Answered]:
    """Prompts with what `say` gives, and `drawn` texts where some are wanted."""
    texts = drawn or {" Paris": 1}

    def answer(prompt: Prompt) -> Answer:
        if isinstance(prompt.want, Sample):
            return Sampled(texts=tuple(texts), counts=tuple(texts.values()))
        return written(say(prompt))

    return [Answered(key=p.key, prefix=p.prefix, suffix="", answer=answer(p)) for p in prompts]


def report(
    probe: BeliefIcl,
    data: Dataset,
    say: Callable[[Prompt], str],
    drawn: Mapping[str, int] | None = None,
) -> Report:
    return probe.read(data, answered(list(probe.ask(data)), say, drawn))


def value(result: Report, name: str) -> float | None:
    return result.estimates[name].value


def table(result: Report, id: str) -> Table:
    return next(t for t in result.tables if t.id == id)


CAPITALS_ONLY = world(relations=("P36",))
"""Austria and Egypt, each asked in three hand-written templates."""


def test_each_pair_is_asked_in_every_chosen_template_and_name() -> None:
    counts = {}
    for templates, names in product(("manual", "all"), ("original", "all")):
        probe = BeliefIcl(templates=templates, names=names, samples=0)  # type: ignore[arg-type]
        counts[templates, names] = len(list(probe.ask(CAPITALS_ONLY)))
    assert counts == {
        ("manual", "original"): 6,
        ("manual", "all"): 12,
        ("all", "original"): 8,
        ("all", "all"): 16,
    }


def test_prompts_want_a_line_and_end_where_the_answer_begins() -> None:
    for prompt in BeliefIcl(most=7).ask(world()):
        assert prompt.prefix.endswith("\nA:") and prompt.suffix == ""
        assert prompt.want.until == "\n" and prompt.want.most == 7  # type: ignore[union-attr]


def test_prompts_that_begin_alike_come_together() -> None:
    keys = [p.key for p in BeliefIcl(samples=0).ask(CAPITALS_ONLY)]
    assert [k.template for k in keys] == ["P36-1"] * 2 + ["P36-2"] * 2 + ["P36-3"] * 2


def test_one_prompt_of_a_pair_is_also_drawn_from() -> None:
    prompts = list(BeliefIcl(names="all").ask(world()))
    drawn = [p for p in prompts if isinstance(p.want, Sample)]
    assert all(p.want == Sample(count=100, most=16, seed=0) for p in drawn)
    assert sorted(p.key.fact for p in drawn) == sorted({p.key.fact for p in prompts})
    by_greed = {(p.prefix, p.key.fact) for p in prompts if isinstance(p.want, Generate)}
    assert all((p.prefix, p.key.fact) in by_greed for p in drawn)
    assert {type(p.want) for p in prompts} == {Generate, Sample}


def test_only_so_many_pairs_are_drawn_from_and_a_larger_number_keeps_them() -> None:
    def pairs(most: int) -> set[str]:
        asked = BeliefIcl(sampled_pairs=most).ask(world())
        return {p.key.fact for p in asked if isinstance(p.want, Sample)}

    assert [len(pairs(n)) for n in (1, 3, 10_000)] == [1, 3, 4]
    assert pairs(1) < pairs(3) < pairs(4)


def test_qa_asks_question_templates_only_and_mask_style_can_do_so_too() -> None:
    qa = [p.key for p in BeliefIcl(style="qa").ask(world())]
    mask = [p.key for p in BeliefIcl(questions=True).ask(world())]
    assert qa == mask
    assert {k.template for k in qa} == {"P36-3", "P1303-2", "P1303-3"}


def test_facts_of_one_subject_are_one_pair_and_each_ones_object_is_right() -> None:
    held = [*facts(), fact("P36", "Bolivia", "Sucre"), fact("P36", "Bolivia", "La Paz")]
    held[-1] = replace(held[-1], id="second")
    data = world(held, CAPITAL)
    for said in ("Sucre", "La Paz"):
        result = report(BeliefIcl(samples=0), data, lambda _, said=said: said)  # type: ignore[misc]
        assert result.counts["pairs"] == 3
        assert value(result, "acc_at_1") == pytest.approx(1 / 3)


def test_an_answer_is_right_if_the_words_of_a_name_stand_in_it() -> None:
    more = [fact("P1303", "Ida", "a guitar"), fact("P1303", "Jo", "bass guitar")]
    data = world([*facts(), *more], relations=("P1303",))
    result = report(BeliefIcl(samples=0), data, lambda _: " The guitars, of course.")
    right = {row[1]: row[-1] for row in table(result, "prompts").rows}
    assert right == {"Gus": "wrong", "Hal": "right", "Ida": "right", "Jo": "wrong"}


def test_acc_at_1_is_the_mean_over_pairs_of_the_share_of_right_prompts() -> None:
    def say(prompt: Prompt) -> str:
        return " Vienna." if prompt.key.template != "P36-1" else " Cairo."

    result = report(BeliefIcl(), CAPITALS_ONLY, say)
    assert value(result, "acc_at_1") == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert value(result, "acc_at_1.relation.P36") == value(result, "acc_at_1")
    assert value(result, "coverage.oracle") == 1.0


def test_the_control_answers_the_commonest_object_under_the_same_matching() -> None:
    held = [fact("P1303", s, o if s != "Dee" else "guitars") for s, o in MUSIC]
    data = world(held, INSTRUMENT)
    result = report(BeliefIcl(samples=0), data, lambda _: " drums")
    assert value(result, "control.majority.acc_at_1") == 0.5  # "guitars" too
    assert value(result, "above_control.acc_at_1") == pytest.approx(1 / 8 - 0.5)
    same = BeliefIcl(samples=0)
    control = same.read(data, answer_all(majority(data), list(same.ask(data))))
    assert value(control, "acc_at_1") == 0.5


def test_consist_counts_answers_that_match_in_either_direction() -> None:
    said = {"P36-1": "New York", "P36-2": "York", "P36-3": "York Minster"}
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda p: said[p.key.template])
    assert value(result, "consist") == pytest.approx(2 / 3)


def test_confidence_is_the_share_of_drawn_answers_that_match_the_written_one() -> None:
    drawn = {" Vienna": 40, "the city of Vienna.": 20, " Paris": 35, "": 5}
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda _: " Vienna", drawn)
    assert value(result, "overconf") == pytest.approx(0.6 - 0.5)
    assert result.estimates["overconf"].n == 2
    assert result.counts["prompts_with_confidence"] == 2
    assert {row[6] for row in table(result, "prompts").rows} == {None, 0.6}


def test_without_samples_overconf_is_not_measured() -> None:
    result = report(BeliefIcl(samples=0), CAPITALS_ONLY, lambda _: " Vienna")
    assert value(result, "overconf") is None and value(result, "ece") is None
    assert any("samples=0" in note for note in result.notes)
    assert value(result, "acc_at_1") == 0.5


def test_one_word_rate_leaves_punctuation_out() -> None:
    said = {"P36-1": " Vienna.", "P36-2": " New York", "P36-3": " ."}
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda p: said[p.key.template])
    assert value(result, "one_word_rate") == pytest.approx(1 / 3)


def test_a_japanese_sentence_is_not_one_word() -> None:
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda _: " 東京は日本の首都です。")
    assert result.estimates["one_word_rate"] == Estimate.not_measured()
    said = {"P36-1": " Vienna", "P36-2": " New York", "P36-3": " ウィーン"}
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda p: said[p.key.template])
    assert value(result, "one_word_rate") == 0.5


def test_overconf_by_length_takes_the_probability_of_the_whole_answer() -> None:
    half = log(0.5)
    sizes = {"P36-1": 1, "P36-2": 2, "P36-3": 6}
    probe = BeliefIcl(samples=0)
    rows = [
        Answered(
            key=p.key,
            prefix=p.prefix,
            suffix="",
            answer=written(" Vienna", *[half] * sizes[p.key.template]),
        )
        for p in probe.ask(CAPITALS_ONLY)
    ]
    result = probe.read(CAPITALS_ONLY, rows)
    assert value(result, "overconf.tokens.1") == pytest.approx(0.5 - 0.5)
    assert value(result, "overconf.tokens.2") == pytest.approx(0.25 - 0.5)
    assert value(result, "overconf.tokens.3") is None
    assert value(result, "overconf.tokens.1-5") == pytest.approx(0.375 - 0.5)
    assert value(result, "within_5_tokens") == pytest.approx(2 / 3)
    assert result.counts["longer_than_5_tokens"] == 2


def test_overconf_by_template_needs_enough_answers_of_one_token() -> None:
    say = {"Austria": " Vienna", "Egypt": " Vienna"}
    few = report(BeliefIcl(floor=3), CAPITALS_ONLY, lambda p: say[p.key.subject])
    assert value(few, "overconf_by_template.mean") is None
    enough = report(BeliefIcl(floor=2), CAPITALS_ONLY, lambda p: say[p.key.subject])
    assert len(table(enough, "overconf-by-template").rows) == 3
    gap = pytest.approx(2.718281828**-0.5 - 0.5)
    assert value(enough, "overconf_by_template.mean") == gap
    assert value(enough, "overconf_by_template.max") == gap


def test_the_standard_deviation_of_overconf_over_templates_is_an_estimate() -> None:
    say = {"P36-1": " Vienna", "P36-2": " Cairo", "P36-3": " Oslo"}
    found = report(BeliefIcl(floor=2), CAPITALS_ONLY, lambda p: say[p.key.template])
    # equally sure of all: under the first two templates one of two is right, under the last none
    stdev = found.estimates["overconf_by_template.stdev"]
    assert stdev.value == pytest.approx(np.std([0.5, 0.5, 0], ddof=1))
    assert stdev.n == 3 and stdev.low is not None and stdev.high is not None
    assert "standard deviation" not in table(found, "overconf-by-template").note


def test_the_full_stop_that_closes_an_answer_is_not_one_of_its_tokens() -> None:
    assert answer_logps(written(" Paris.", -1.0, -2.0)) == (-1.0,)
    assert answer_logps(written(" Paris", -1.0, -2.0)) == (-1.0, -2.0)
    assert answer_logps(written(".", -1.0)) == (-1.0,)


def test_a_relation_with_one_template_has_no_fluctuation_and_no_consist() -> None:
    alone = replace(CAPITAL, templates=CAPITAL.templates[:1])
    result = report(BeliefIcl(), world(facts(), alone), lambda _: " Vienna")
    for name in ("consist", "fluctuation.relation.range", "fluctuation.relation.stdev"):
        assert value(result, name) is None
    assert value(result, "acc_at_1") == 0.5


def test_empty_answers_are_wrong_alike_and_counted() -> None:
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda _: "", {"": 30, " Paris": 70})
    assert value(result, "acc_at_1") == 0.0 and value(result, "consist") == 1.0
    assert value(result, "overconf") == pytest.approx(0.3)
    assert result.counts["empty_answers"] == 6


def test_right_answers_that_stand_in_the_subjects_name_are_counted() -> None:
    held = [*facts(), fact("P36", "Mexico", "Mexico City"), fact("P36", "Kuwait City", "Kuwait")]
    data = world(held, CAPITAL)
    result = report(BeliefIcl(samples=0), data, lambda p: f"{p.key.subject} City")
    assert value(result, "acc_at_1") == 0.5
    assert result.counts["right_and_in_subject"] == 3  # of Kuwait, in three templates


def test_many_empty_and_unfinished_answers_are_told() -> None:
    probe = BeliefIcl(samples=0)
    rows = [
        Answered(
            key=p.key,
            prefix=p.prefix,
            suffix="",
            answer=written(" on and on" if p.key.template == "P36-1" else "", finished=False),
        )
        for p in probe.ask(CAPITALS_ONLY)
    ]
    told = " ".join(probe.read(CAPITALS_ONLY, rows).findings)
    assert "answers (4 of 6)" in told and "6 of 6 answers did not end" in told
    fine = " ".join(report(probe, CAPITALS_ONLY, lambda _: " Vienna").findings)
    assert "empty" not in fine and "did not end" not in fine and "Only" not in fine


def test_an_answer_of_no_token_at_all_is_read() -> None:
    probe = BeliefIcl(samples=0)
    nothing = Generated(text="", logps=())
    rows = [
        Answered(key=p.key, prefix=p.prefix, suffix="", answer=nothing)
        for p in probe.ask(CAPITALS_ONLY)
    ]
    result = probe.read(CAPITALS_ONLY, rows)
    assert value(result, "within_5_tokens") == 0.0
    assert value(result, "overconf.tokens.1-5") is None


def test_answers_that_are_all_the_same_are_consistent_and_do_not_fluctuate() -> None:
    result = report(BeliefIcl(), CAPITALS_ONLY, lambda _: " Vienna", {" Vienna": 100})
    assert value(result, "consist") == 1.0
    assert value(result, "fluctuation.relation.range") == 0.0
    assert value(result, "overconf") == pytest.approx(0.5)


def test_a_relation_without_question_templates_is_left_out_and_counted() -> None:
    bare = replace(INSTRUMENT, templates=INSTRUMENT.templates[:1])
    data = world(facts(), CAPITAL, bare)
    result = report(BeliefIcl(style="qa"), data, lambda _: " Vienna")
    assert result.counts["relations_without_templates"] == 1
    assert result.counts["pairs"] == 2
    assert value(result, "acc_at_1.relation.P1303") is None


@pytest.mark.parametrize("settings", [{"style": "qa"}, {"questions": True}])
def test_no_question_template_at_all_is_refused(settings: dict[str, Any]) -> None:
    bare = replace(CAPITAL, templates=CAPITAL.templates[:2])
    with pytest.raises(DataError, match="'world' has no hand-written question templates"):
        next(BeliefIcl(**settings).ask(world(facts(), bare)))


def test_no_hand_written_template_at_all_is_refused() -> None:
    bare = replace(CAPITAL, templates=CAPITAL.templates[3:])
    with pytest.raises(DataError, match=r"no hand-written templates .* set templates to all"):
        next(BeliefIcl().ask(world(facts(), bare)))
    assert next(BeliefIcl(templates="all").ask(world(facts(), bare)))


def test_fewer_facts_than_shots_are_refused() -> None:
    with pytest.raises(DataError, match="relation P36 has 7 facts to show"):
        next(BeliefIcl(shots=9).ask(world()))


def test_a_model_must_write_and_draw_unless_no_confidence_is_wanted() -> None:
    assert BeliefIcl().suited(CAN) == BeliefIcl()
    assert BeliefIcl(samples=0).suited(frozenset({"generate"})).samples == 0
    with pytest.raises(AbilityError, match="can 'generate'"):
        BeliefIcl().suited(frozenset({"fill", "score"}))
    with pytest.raises(AbilityError, match=r"unless samples=0.* can 'sample'"):
        BeliefIcl().suited(frozenset({"generate"}))


def test_settings_are_checked() -> None:
    for settings, complaint in (
        ({"context": "4-template"}, "must be one of zero-shot, random, relation, template"),
        ({"language": "xx"}, "no list of lemmas"),
        ({"shots": 0}, "at least 1"),
    ):
        with pytest.raises(UsageError, match=complaint):
            sonde.probe("belief-icl", **settings)


@pytest.mark.parametrize(("style", "context"), [*product(get_args(Style), get_args(Context))])
def test_every_shape_passes_the_checks(style: Style, context: Context) -> None:
    check_probe(BeliefIcl(style=style, context=context, samples=5, draws=100), world())


def test_a_template_id_may_be_used_in_two_relations() -> None:
    one = relation("P36", template("t", "[X] has [Y]."))
    two = replace(one, id="P1303")
    data = world(facts(), one, two)
    probe = BeliefIcl(samples=0)
    result = probe.read(data, answer_all(oracle_for(data), list(probe.ask(data))))
    assert value(result, "acc_at_1") == 1.0 and result.counts["templates"] == 2


def test_a_run_with_a_tiny_causal_model_is_read_again_in_another_language(tmp_path: Path) -> None:
    model = sonde.model(f"hf:{tiny.llama(tmp_path / 'model', max_position_embeddings=512)}")
    probe = sonde.probe("belief-icl", samples=4, most=3, draws=100)
    run = sonde.run(probe, model, CAPITALS_ONLY, tmp_path / "run")
    result = sonde.open_run(tmp_path / "run").report()
    assert result.counts["prompts"] == 6 and result.counts["prompts_with_confidence"] == 2
    assert len(table(result, "prompts").rows) == 6
    assert run.report(language="none", draw="pair").counts == result.counts
    with pytest.raises(UsageError, match="decided what was asked"):
        run.report(style="qa")
