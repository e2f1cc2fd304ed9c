"""BELIEF-ICL: its prompts, and every number of worlds small enough to compute by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from math import exp, log
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest

from sonde.core.errors import AbilityError, DataError
from sonde.core.facts import Dataset
from sonde.probes.belief_icl import BeliefIcl
from sonde.prompting.examples import Context, Style
from sonde.prompts import Generate, Sample
from sonde.testing import check_probe
from tests.worlds import CAPITAL, INSTRUMENT, MUSIC, entity, fact, facts, relation, template, world

from .shares import Numbers

CAPITALS = world(relations=("P36",))  # Austria and Egypt, each in three hand-written templates
FAST = BeliefIcl(fluctuation_draws=100, aliases="original")
GREEDY = replace(FAST, samples=0)
Says = Callable[[dict[str, Any]], Any]


def numbers(
    says: Says | str,
    data: Dataset = CAPITALS,
    probe: BeliefIcl = FAST,
    drawn: Mapping[str, int] | None = None,
) -> Numbers:
    """Of a model that generates these texts; `drawn` counts its samples by text."""

    def model(prompt: dict[str, Any]) -> Any:
        if prompt["request"] == "Sample":
            return drawn or {" Paris": 100}
        return says if isinstance(says, str) else says(prompt)

    return Numbers(probe, data, model)


def by_template(**texts: Any) -> Says:
    return lambda prompt: texts[prompt["template"].replace("-", "_")]


def prompts(probe: BeliefIcl, data: Dataset, request: type = Generate) -> pl.DataFrame:
    batches = probe.prompts(data)
    return pl.concat([b.frame for b in batches if isinstance(b.request, request)])


def test_each_pair_is_prompted_in_every_chosen_template_under_every_chosen_name() -> None:
    chosen: Any = product(("manual", "all"), ("original", "all"))
    probes = [replace(FAST, template_source=source, aliases=names) for source, names in chosen]
    assert [len(prompts(probe, CAPITALS)) for probe in probes] == [6, 12, 8, 16]
    assert len(prompts(BeliefIcl(), CAPITALS)) == 12


def test_prompts_end_where_the_answer_begins_and_equal_beginnings_meet() -> None:
    batches = list(BeliefIcl(max_tokens=7, samples=0).prompts(CAPITALS))
    assert {b.request for b in batches} == {Generate(max_tokens=7, stop="\n")}
    assert [b.frame["template"].unique().to_list() for b in batches] == [
        ["P36-1"],
        ["P36-2"],
        ["P36-3"],
    ]
    for prefix in pl.concat([b.frame for b in batches])["prefix"]:
        assert prefix.startswith("Predict the [MASK]") and prefix.count("\nA:") == 5
        assert prefix.endswith("\nA:")


def test_one_prompt_of_a_pair_is_sampled_and_a_larger_limit_keeps_the_pairs() -> None:
    data = world()
    key = ["fact", "template", "subject", "prefix"]
    for limit, n in ((1, 1), (3, 3), (10_000, 4)):
        sampled = prompts(BeliefIcl(sampled_facts=limit), data, Sample)
        assert sampled["fact"].n_unique() == len(sampled) == n
        assert len(sampled.join(prompts(BeliefIcl(), data), on=key, how="semi")) == n
    few, more = (set(prompts(BeliefIcl(sampled_facts=n), data, Sample)["fact"]) for n in (1, 3))
    assert few < more


def test_qa_uses_question_templates_only_and_mask_style_can_do_so_too() -> None:
    qa, mask = (
        prompts(replace(FAST, **s), world()) for s in ({"style": "qa"}, {"questions": True})
    )
    assert qa.select("fact", "template").equals(mask.select("fact", "template"))
    assert set(qa["template"]) == {"P36-3", "P1303-2", "P1303-3"}


def test_objects_of_all_facts_of_a_pair_are_correct() -> None:
    more = [fact("P36", "Bolivia", o, id=o) for o in ("Sucre", "La Paz")]
    for text in ("Sucre", "La Paz"):
        of = numbers(text, world([*facts(), *more], CAPITAL), GREEDY)
        assert of("acc_at_1") == pytest.approx(1 / 3) and of.line("acc_at_1")["n"] == 3


def test_an_answer_is_correct_if_the_lemmas_of_a_name_are_in_it() -> None:
    more = [fact("P1303", "Ida", "a guitar"), fact("P1303", "Jo", "bass guitar")]
    of = numbers(" The guitars, of course.", world([*facts(), *more], relations=("P1303",)), GREEDY)
    rows = of.results.table(["subject", "correct", "generated"]).unique().collect()
    assert dict(rows.select("subject", "correct").rows()) == {
        "Gus": False, "Hal": True, "Ida": True, "Jo": False
    }  # fmt: skip
    assert set(rows["generated"]) == {"The guitars, of course."}


def test_accuracy_averages_over_the_prompts_of_a_pair_and_then_over_pairs() -> None:
    of = numbers(by_template(P36_1=" Cairo.", P36_2=" Vienna.", P36_3=" Vienna."))
    assert of("acc_at_1") == of("acc_at_1", "P36") == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert of("coverage.oracle") == 1


def test_the_control_is_the_most_common_object_by_the_same_rule() -> None:
    music = [fact("P1303", s, o if s != "Dee" else "guitars") for s, o in MUSIC]
    of = numbers(" drums", world(music, INSTRUMENT), GREEDY)
    assert of("acc_at_1", of="baseline") == 0.5  # "guitars" too
    assert of("acc_at_1", of="difference") == pytest.approx(1 / 8 - 0.5)


def test_answers_are_consistent_if_one_contains_the_other_though_that_is_not_transitive() -> None:
    of = numbers(by_template(P36_1="New York", P36_2="York", P36_3="York Minster"))
    assert of("consistency") == of("only_templates.consistency") == pytest.approx(2 / 3)


def test_empty_answers_are_wrong_and_consistent_with_each_other() -> None:
    of = numbers("", drawn={"": 30, " Paris": 70})
    assert (of("acc_at_1"), of("consistency")) == (0, 1)
    assert of("overconfidence") == pytest.approx(0.3)
    mixed = numbers(by_template(P36_1="", P36_2="", P36_3="York"))
    assert mixed("consistency") == pytest.approx(1 / 3)


def test_confidence_is_the_share_of_samples_that_match_the_answer() -> None:
    drawn = {" Vienna": 40, " Paris": 35, "the city of Vienna.": 20, "": 5}
    of = numbers(" Vienna", drawn=drawn)
    assert of("overconfidence") == pytest.approx(0.6 - 0.5)
    assert of.line("overconfidence")["n"] == 2
    assert of.results.rows["confidence"].value_counts().sort("confidence").rows() == [
        (None, 4), (0.6, 2)
    ]  # fmt: skip
    assert set(of.results.rows["answer_mode"]) == {"generate"}
    without = numbers(" Vienna", probe=GREEDY)
    assert without("overconfidence") is None and without("acc_at_1") == 0.5


def test_the_one_word_rate_leaves_out_punctuation_and_answers_without_spaces() -> None:
    of = numbers(by_template(P36_1=" Vienna.", P36_2=" New York", P36_3=" ."))
    assert of("one_word_rate") == pytest.approx(1 / 3)
    of = numbers(by_template(P36_1=" Vienna", P36_2=" New York", P36_3=" ウィーン"))
    assert of("one_word_rate") == 0.5
    assert numbers(" 東京は日本の首都です。")("one_word_rate") is None


def test_overconfidence_by_length_is_of_the_probability_of_the_whole_answer() -> None:
    half = log(0.5)
    texts = {f"P36_{n}": (" Vienna", [half] * size) for n, size in ((1, 1), (2, 2), (3, 6))}
    of = numbers(by_template(**texts), probe=GREEDY)
    assert of("overconfidence.tokens.1") == pytest.approx(0.5 - 0.5, abs=1e-6)
    assert of("overconfidence.tokens.2") == pytest.approx(0.25 - 0.5)
    assert of("overconfidence.tokens.3") is None
    assert of("overconfidence.tokens.1-5") == pytest.approx(0.375 - 0.5)
    assert of("within_5_tokens") == pytest.approx(2 / 3)
    exhibits = GREEDY.layout.extra
    assert exhibits is not None
    curve = {e.id: e for e in exhibits(of.results, of.frame)}["overconfidence-by-length"]
    assert curve.frame.sort("x").select("x", "y", "n").rows()[:2] == [
        (1, pytest.approx(0, abs=1e-6), 2), (2, pytest.approx(-0.25), 2)
    ]  # fmt: skip


def test_the_full_stop_that_closes_an_answer_is_none_of_its_tokens() -> None:
    texts = {"P36_1": (" Paris.", [-1, -2]), "P36_2": (" Paris", [-1, -2]), "P36_3": (".", [-1])}
    rows = numbers(by_template(**texts), probe=GREEDY).results.rows.sort("template_no")
    assert rows["n_tokens"].to_list() == [1, 1, 2, 2, 1, 1]
    assert rows["sequence_prob"].to_list()[::2] == pytest.approx([exp(-1), exp(-3), exp(-1)])
    nothing = numbers(lambda _: ("", []), probe=GREEDY)
    assert nothing("within_5_tokens") == 0 and nothing("overconfidence.tokens.1-5") is None


def test_overconfidence_of_templates_with_enough_one_token_answers() -> None:
    says = by_template(P36_1=" Vienna", P36_2=" Cairo", P36_3=" Oslo")
    assert numbers(says, probe=replace(FAST, min_prompts=3))("template_overconfidence.mean") is None
    of = numbers(says, probe=replace(FAST, min_prompts=2))
    # equally sure of all: with the first two templates one of two is correct, with the last none
    gaps = exp(-0.5) - np.array([0.5, 0.5, 0])
    assert of("template_overconfidence.mean") == pytest.approx(gaps.mean())
    assert of("template_overconfidence.stdev") == pytest.approx(gaps.std(ddof=1))
    assert of("template_overconfidence.max") == pytest.approx(gaps.max())


def test_lu_is_the_accuracy_of_lamas_own_template_on_facts_whose_subject_hides_the_object() -> None:
    lama = replace(
        CAPITAL, templates=(replace(CAPITAL.templates[0], origin="lama"), *CAPITAL.templates[1:])
    )
    held = [*facts(), fact("P36", entity("Mexico City", "DF"), "Mexico")]
    says = by_template(P36_1=" Vienna", P36_2=" Mexico", P36_3=" Mexico")
    of = numbers(says, world(held, lama), replace(GREEDY, aliases="all"))
    assert (of("single_prompt.acc_at_1"), of.line("single_prompt.acc_at_1")["n"]) == (0.5, 2)


def test_a_relation_with_one_template_has_no_fluctuation_and_no_consistency() -> None:
    of = numbers(" Vienna", world(facts(), replace(CAPITAL, templates=CAPITAL.templates[:1])))
    assert of("consistency") is None and of("fluctuation.relation.range") is None
    assert of("acc_at_1") == 0.5


def test_relations_without_a_template_of_the_settings_are_excluded() -> None:
    bare = replace(INSTRUMENT, templates=INSTRUMENT.templates[:1])
    of = numbers(" Vienna", world(facts(), CAPITAL, bare), replace(GREEDY, style="qa"))
    assert of.results.counts()["excluded.the relation has no template"] == 2
    assert of.line("acc_at_1")["n"] == 2


@pytest.mark.parametrize(
    ("settings", "templates", "complaint"),
    [
        ({"style": "qa"}, CAPITAL.templates[:2], "'world' has no hand-written question templates"),
        ({"questions": True}, CAPITAL.templates[:2], "no --questions"),
        ({}, CAPITAL.templates[3:], "no hand-written templates .* use --template-source all"),
        ({"shots": 9}, CAPITAL.templates, "relation P36 has 7 facts to show"),
    ],
)
def test_data_that_the_settings_leave_nothing_of_is_rejected(
    settings: dict[str, Any], templates: Any, complaint: str
) -> None:
    data = world(facts(), replace(CAPITAL, templates=templates))
    with pytest.raises(DataError, match=complaint):
        list(BeliefIcl(**settings).prompts(data))


def test_a_model_must_sample_unless_no_confidence_is_wanted() -> None:
    assert BeliefIcl().resolve(frozenset({"generate", "sample"})) == BeliefIcl()
    assert GREEDY.resolve(frozenset({"generate"})) == GREEDY
    with pytest.raises(
        AbilityError, match="--samples 100' needs a model that can generate and sample"
    ):
        BeliefIcl().resolve(frozenset({"generate"}))
    with pytest.raises(AbilityError, match="can fill, score"):
        GREEDY.resolve(frozenset({"fill", "score"}))


@pytest.mark.parametrize(("style", "context"), [*product(get_args(Style), get_args(Context))])
def test_every_shape_passes_the_checks(style: Style, context: Context) -> None:
    check_probe(replace(FAST, style=style, context=context, samples=5), world())


def test_a_template_id_may_be_used_in_two_relations() -> None:
    one = relation("P36", template("t", "[X] has [Y]."))
    data = world(facts(), one, replace(one, id="P1303"))
    gold = {f.id: f.objects[0].name for f in facts()}
    of = numbers(lambda p: gold[p["fact"]], data, GREEDY)
    assert of("acc_at_1") == 1 and of.results.templates.height == 2
