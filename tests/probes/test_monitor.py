"""MONITOR: its prompts, and every number of a world small enough to compute by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact, Relation
from sonde.probes.monitor import Monitor
from sonde.prompts import Generate, Score
from sonde.testing import check_probe
from tests.worlds import dataset_of, fact, question, relation, template

from .shares import Numbers

CAPITAL = relation(
    "P36",
    template("P36-s", "The capital of [X] is [Y]."),
    question("P36-1", "What is the capital of [X]?"),
    question("P36-2", "Which city is the capital of [X]?"),
    question("P36-3", "Which city governs [X]?"),
    label="capital",
)
BIRTH = relation(
    "P19",
    question("P19-1", "Where was [X] born?"),
    question("P19-2", "In which place was [X] born?"),
)
FACTS = (
    fact("P36", "Peru", "Lima", wrong=("Oslo", "Quito", "Bern")),
    fact("P36", "Norway", "Oslo", wrong=("Lima", "Oslo")),
    fact("P36", "Austria", "Vienna", wrong=("Lima",)),
    *(fact("P36", s, o, split="train") for s, o in (("Chile", "Santiago"), ("Kenya", "Nairobi"))),
    *(fact("P36", s, o, split="train") for s, o in (("Japan", "Tokyo"), ("Egypt", "Cairo"))),
    *(fact("P19", s, o) for s, o in (("Ann", "York"), ("Bob", "Leeds"), ("Cy", "York"))),
)
PROBABILITY = {"right": 0.8, "none": 0.6, "wrong": 0.2}
GOLD = {f.id: f.objects[0].name for f in FACTS}
Texts = Callable[[dict[str, Any]], str]


def world(*facts: Fact, relations: tuple[Relation, ...] = (CAPITAL, BIRTH)) -> Dataset:
    return dataset_of(facts or FACTS, *relations)


def numbers(
    data: Dataset | None = None,
    probe: Monitor = Monitor(),  # noqa: B008
    says: Texts = lambda prompt: GOLD[prompt["fact"]],
    **probability: float,
) -> Numbers:
    """Of a model that gives an object a probability by the cue before the question."""
    table = PROBABILITY | probability

    def model(prompt: dict[str, Any]) -> Any:
        scored = prompt["request"] == "Score"
        return {GOLD[prompt["fact"]]: table[prompt["cue"]]} if scored else says(prompt)

    return Numbers(probe, data or world(), model)


def prompts(probe: Monitor, data: Dataset, request: type = Generate) -> pl.DataFrame:
    batches = probe.prompts(data)
    return pl.concat([b.frame for b in batches if isinstance(b.request, request)])


def test_prompts_are_the_anchor_the_questions_and_the_base_question_after_wrong_cues() -> None:
    frame = prompts(Monitor(), world(FACTS[1], relations=(CAPITAL,)))
    assert frame.select("template", "cue", "prompt_no", "prefix").rows() == [
        ("P36-1", "right", 0, "Oslo. What is the capital of Norway? "),
        ("P36-1", "none", 1, "What is the capital of Norway? "),
        ("P36-2", "none", 2, "Which city is the capital of Norway? "),
        ("P36-3", "none", 3, "Which city governs Norway? "),
        ("P36-1", "wrong", 4, "Lima. What is the capital of Norway? "),
    ]


def test_the_object_is_scored_in_each_prompt_also_of_a_full_grid() -> None:
    data, full = world(FACTS[0], FACTS[1], relations=(CAPITAL,)), Monitor(full=True)
    scored = next(b for b in full.prompts(data) if isinstance(b.request, Score))
    options = [scored.options[i] for i in scored.options_ids()]
    assert options == [("Lima",)] * 7 + [("Oslo",)] * 5
    assert len(prompts(full, data)) == 7 + 2 * 3 + 5 + 2
    assert len(prompts(Monitor(), data)) == 7 + 5


def test_examples_are_never_about_the_subject_nor_graded() -> None:
    probe = Monitor(shots=1, frame="qa")
    of = numbers(world(*FACTS[-3:], relations=(BIRTH,)), probe)
    for subject, prefix in prompts(probe, world()).select("subject", "prefix").iter_rows():
        assert prefix.count("A:") == 2 and prefix.count(subject) == 1
    assert of.results.counts()["excluded.used as an example"] == 1
    with pytest.raises(DataError, match="not all examples"):
        list(probe.prompts(world(FACTS[-1], relations=(BIRTH,))))


@pytest.mark.parametrize("probe", [Monitor(), Monitor(frame="qa", shots=2, full=True, frames=1)])
def test_the_probe_passes_the_checks(probe: Monitor) -> None:
    check_probe(probe, world())


def test_distances_are_from_the_anchor() -> None:
    of = numbers()
    expected = ((0.2**2 + 0.6**2 + 0.2 * 0.6) / 3) ** 0.5 / 0.8
    for group in ((), ("P36",), ("P19",)):
        assert of("pfd", *group) == pytest.approx(0.2)
        assert of("ird", *group) == pytest.approx(0.6)
        assert of("ird", *group, of="difference") == pytest.approx(0.4)
        assert of("monitor", *group) == pytest.approx(expected)
    assert of("anchor_probability") == pytest.approx(0.8)
    assert [numbers(right=p)("solid_anchors") for p in (0.7, 0.9)] == [0, 1]


def test_distances_are_means_over_the_tokens_of_the_object() -> None:
    tokens = {"right": [0.9, 0.7], "none": [0.4, 0.8], "wrong": [0.1, 0.7]}

    def model(prompt: dict[str, Any]) -> Any:
        return {"Lima": tokens[prompt["cue"]]} if prompt["request"] == "Score" else "Lima."

    of = Numbers(Monitor(), world(FACTS[0], relations=(CAPITAL,)), model)
    by_cue = dict(
        of.results.rows.group_by("cue").agg(pl.col("distance").mean()).cast({"cue": str}).rows()
    )
    assert by_cue == pytest.approx({"right": 0, "none": 0.3, "wrong": 0.4})


def test_weights_and_questions_may_be_changed_in_the_analysis() -> None:
    assert numbers(probe=Monitor(alphas=(1.0, 0.0, 0.0)))("monitor") == pytest.approx(0.2 / 0.8)
    of = numbers(probe=Monitor(alphas=(0.0, 1.0, 0.0), first_frames=1))
    assert of("monitor") == of("monitor.frames.1") == pytest.approx(0.6 / 0.8)


@pytest.mark.parametrize("alphas", [(1.0, 1.0), (-1.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
def test_weights_that_make_no_distance_are_rejected(alphas: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="alphas"):
        Monitor(alphas=alphas)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("Lima.", {"exact": 1, "prefix": 1, "any": 1}),
        ("Lima, of course", {"exact": 0, "prefix": 1, "any": 0}),
        ("Limassol", {"exact": 0, "prefix": 0, "any": 0}),
        ("", {"exact": 0, "prefix": 0, "any": 0}),
    ],
)
def test_an_anchor_is_valid_by_its_rule(text: str, valid: dict[str, int]) -> None:
    of = numbers(world(FACTS[0], relations=(CAPITAL,)), says=lambda _: text)
    assert {rule: of(f"anchor_rate.{rule}") for rule in valid} == valid


def test_any_prompt_with_the_object_as_its_answer_makes_an_anchor_by_that_rule() -> None:
    data = world(FACTS[0], relations=(CAPITAL,))
    says = lambda p: "Lima" if p["template"] == "P36-3" else "no"  # noqa: E731
    assert numbers(data, says=says)("monitor") is None
    assert numbers(data, Monitor(anchor="any"), says)("monitor") is not None


def test_relations_without_a_valid_anchor_are_not_measured() -> None:
    of = numbers(says=lambda p: GOLD[p["fact"]] if p["relation"] == "P19" else "no")
    assert of("monitor") == of("monitor", "P19")
    assert of.frame.filter(pl.col("metric") == "monitor", pl.col("group") == ["P36"]).is_empty()


def test_a_fact_without_a_wrong_object_has_no_monitor_but_an_accuracy() -> None:
    data = world(replace(FACTS[0], wrong=FACTS[0].objects), FACTS[2], relations=(CAPITAL,))
    of = numbers(data)
    assert of.line("monitor")["n"] == 1
    assert of.line("accuracy.all.avg")["n"] == of.line("anchor_rate.exact")["n"] == 2


def test_accuracy_is_over_questions_and_wrong_cues_but_never_after_the_object() -> None:
    def says(prompt: dict[str, Any]) -> str:
        if prompt["cue"] == "wrong":
            return "Oslo"
        return "Lima" if prompt["template"] == "P36-1" else "?"

    of = numbers(world(FACTS[0], relations=(CAPITAL,)), says=says)
    assert of("accuracy.all.avg") == pytest.approx(1 / 6)
    assert [of(f"accuracy.all.{name}") for name in ("max", "min", "base")] == [1, 0, 1]
    assert of("accuracy.all.stdev") == pytest.approx((1 / 6) ** 0.5)
    assert of("accuracy.uncued") == of("accuracy.uncued", "P36") == pytest.approx(1 / 3)
    assert of("copied_wrong_name") == pytest.approx(1 / 3)


def test_each_prompt_weighs_the_same_though_few_facts_have_so_many_wrong_cues() -> None:
    data = world(FACTS[0], FACTS[2], relations=(CAPITAL,))
    of = numbers(data, says=lambda p: "Lima" if p["cue"] == "wrong" else "?")
    # three questions, one wrong cue of both facts, two of Peru alone
    assert of("accuracy.all.avg") == pytest.approx((3 * 0 + 1 / 2 + 1 + 1) / 6)


def test_accuracies_of_valid_anchors_leave_out_the_other_facts() -> None:
    data = world(FACTS[1], FACTS[2], relations=(CAPITAL,))
    of = numbers(data, says=lambda p: "Oslo" if p["subject"] == "Norway" else "Graz")
    assert of("accuracy.all.avg") == pytest.approx(0.5)
    assert of("accuracy.valid.avg") == 1


def test_what_another_fact_states_about_the_subject_is_correct_too() -> None:
    again = replace(FACTS[0], id="again", objects=FACTS[1].objects)
    data = world(FACTS[0], again, relations=(CAPITAL,))
    of = Numbers(
        Monitor(), data, lambda p: {"Lima": 0.5, "Oslo": 0.5} if p["request"] == "Score" else "Oslo"
    )
    assert of("accuracy.all.avg") == of("accuracy.all.avg", of="baseline") == 1


def test_facts_whose_object_has_other_tokens_in_some_prompt_are_excluded() -> None:
    def model(prompt: dict[str, Any]) -> Any:
        odd = prompt["fact"] == "P36-Peru" and prompt["template"] == "P36-2"
        tokens = {"Lima": [0.5] * (1 + odd), "Vienna": [0.5]}
        return tokens if prompt["request"] == "Score" else "Lima"

    of = Numbers(Monitor(), world(FACTS[0], FACTS[2], relations=(CAPITAL,)), model)
    counts = of.results.counts()
    reason = "excluded.the object's tokens differ between prompts"
    assert (counts["scored"], counts[reason], of.line("anchor_rate.any")["n"]) == (1, 1, 1)


def test_relations_without_questions_are_excluded() -> None:
    silent = replace(CAPITAL, templates=CAPITAL.templates[:1])
    of = numbers(world(relations=(silent, BIRTH)))
    assert of.results.counts()["excluded.the relation has no template"] == 3
    with pytest.raises(DataError, match="no question to ask"):
        list(Monitor().prompts(world(*FACTS[:3], relations=(silent,))))
