"""Which examples precede a question, byte for byte, and that another fact moves none of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest

from sonde.core.errors import DataError, TemplateError, UsageError
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.prompting.examples import (
    Context,
    Draw,
    FewShot,
    Pool,
    PromptLayout,
    ShotsPer,
    Style,
    choose_fixed_examples,
    default_prompt_layout,
    fill_question,
    mix_keys,
    random_keys,
)
from tests.worlds import (
    CAPITAL,
    CAPITALS,
    INSTRUMENT,
    MUSIC,
    entity,
    fact,
    facts,
    relation,
    template,
    world,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "icl"
FEW: tuple[Context, ...] = ("random", "relation", "template")
FIRST = CAPITAL.templates[0]


def eligible(style: Style) -> Callable[[Relation], Sequence[Template]]:
    return lambda r: [t for t in r.templates if style == "mask" or t.style == "question"]


def prompts(data: Dataset, asked: Sequence[Fact], by: Template, **settings: Any) -> list[str]:
    """The prompts of facts of one relation, with their usual names."""
    style = settings.get("style", "mask")
    few = FewShot(data, eligible(style), lambda relation: default_prompt_layout(style), **settings)
    rows = {
        "fact": [f.id for f in asked],
        "subject": [f.subject.name for f in asked],
        "names": [list(f.subject.names) for f in asked],
    }
    return few.prompts(data.relation(asked[0].relation), by, pl.DataFrame(rows))["prefix"].to_list()


def examples(text: str) -> list[tuple[str, str]]:
    """Question and answer of every example in a prompt."""
    lines = text.splitlines()[1:-2]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(q.removeprefix("Q: "), a.removeprefix("A: ")) for q, a in pairs]


def capitals(training: int = 8) -> list[Fact]:
    return [f for f in facts(training) if f.relation == "P36"]


def pool(*rows: tuple[str, str, str]) -> Pool:
    """Facts of one relation: id, and their subject's id and name."""
    return Pool(
        pl.DataFrame(
            [("r", *row) for row in rows],
            ["relation", "fact", "subject_id", "subject"],
            orient="row",
        )
    )


def test_the_smallest_keys_are_taken_and_one_fact_of_each_subject() -> None:
    rows = [
        ("a", "1", "Ann"),
        ("b", "1", "Anne"),
        ("c", "2", "Ann"),
        ("d", "3", "Bob"),
        ("e", "4", "Cy"),
    ]
    draw = Draw(np.array([1, 0, 2, 4, 3], np.uint64), pool(*rows))
    assert draw.take_rows(9) == [1, 2, 4, 3]  # b before a, who is the same subject
    assert draw.take_rows(2) == [1, 2]
    assert draw.take_rows(2, {("r", "Anne")}) == [2, 4]
    assert draw.take_rows(2, {("other", "Anne")}) == [1, 2]


def test_a_draw_from_many_facts_is_that_of_a_sort() -> None:
    keys = random_keys(0, map(str, range(1000)))
    draw = Draw(keys, pool(*((str(i), str(i), str(i)) for i in range(1000))))
    assert draw.take_rows(3) == np.argsort(keys)[:3].tolist()
    assert draw.take_rows(1000) == np.argsort(keys).tolist()


def test_mixed_keys_make_other_draws() -> None:
    keys = random_keys(0, map(str, range(100)))
    orders = {tuple(np.argsort(mix_keys(keys, key))[:5]) for key in range(50)}
    assert len(orders) == 50


@pytest.mark.parametrize(("style", "context"), [*product(get_args(Style), get_args(Context))])
def test_a_prompt_is_written_byte_for_byte(style: Style, context: Context) -> None:
    written = [
        text
        for asked in facts()
        if asked.split == "test"
        for by in eligible(style)(world().relation(asked.relation))
        for text in prompts(world(), [asked], by, style=style, context=context)
    ]
    golden = (GOLDEN / f"{style}-{context}.txt").read_text(encoding="utf-8")
    assert "\n\n".join(written) + "\n" == golden


def test_the_papers_own_prompt_comes_out() -> None:
    """Two examples of belief-icl's appendix, with one fact to show and one to ask."""
    part = template("P361-1", "[Y] consists of [X].")
    held = [fact("P361", "Panzer Division Kempf", "Wehrmacht", split="train")]
    asked = fact("P361", "environmental factors", "environment")
    data = world([*held, asked], relation("P361", part, label="part of"))
    assert prompts(data, [asked], part, shots=1) == [
        "Predict the [MASK] in each sentence in one word.\n"
        "Q: [MASK] consists of Panzer Division Kempf.\n"
        "A: Wehrmacht.\n"
        "Q: [MASK] consists of environmental factors.\n"
        "A:"
    ]


def test_spans_hold_the_answers_of_the_examples() -> None:
    few = FewShot(world(), eligible("mask"), lambda r: default_prompt_layout("mask"), shots=2)
    asked = pl.DataFrame({"fact": ["f"], "subject": ["Iraq"], "names": [["Iraq"]]})
    [row] = few.prompts(CAPITAL, FIRST, asked).iter_rows(named=True)
    a, b, c, d = row["example_spans"]
    assert [row["prefix"][a:b], row["prefix"][c:d]] == [
        f"{x}\n" for _, x in examples(row["prefix"])
    ]


@pytest.mark.parametrize("context", FEW)
@pytest.mark.parametrize("per", get_args(ShotsPer))
@pytest.mark.parametrize("seed", range(3))
def test_a_fact_is_never_its_own_example(context: Context, per: ShotsPer, seed: int) -> None:
    """Everything is for training here, so that every fact is in the pool."""
    data = world(facts(training=8), split="train", seed=seed)
    for by in CAPITAL.templates:
        texts = prompts(data, capitals(), by, context=context, shots_per=per)
        for asked, text in zip(capitals(), texts, strict=True):
            found = examples(text)
            assert len(found) == len(set(found)) == 4
            assert not any(asked.subject.name in question for question, _ in found)


def test_a_subject_under_another_name_is_no_example_either() -> None:
    few = FewShot(
        world(facts(8)), eligible("mask"), lambda r: default_prompt_layout("mask"), shots=7
    )
    asked = pl.DataFrame(
        {"fact": ["P36-Peru"], "subject": ["old Peru"], "names": [["Peru", "old Peru"]]}
    )
    [text] = few.prompts(CAPITAL, FIRST, asked)["prefix"]
    assert len(examples(text)) == 7 and "of Peru" not in text and "old Peru" in text


def test_facts_share_their_examples_and_the_spare_replaces_the_fact_alone() -> None:
    names = [f.subject.name for f in capitals()]
    texts = prompts(world(facts(8)), capitals(), FIRST)
    found = dict(zip(names, map(examples, texts), strict=True))
    usual = max(found.values(), key=list(found.values()).count)
    shown = {name for name in found if any(name in question for question, _ in usual)}
    assert len(shown) == 4
    for name, own in found.items():
        assert len({*usual} - {*own}) == (name in shown)


def test_examples_can_be_drawn_again_for_each_fact() -> None:
    texts = prompts(world(facts(8)), capitals(), FIRST, shots_per="fact", shots=2)
    assert len({str(examples(text)) for text in texts}) > 3


def test_each_context_takes_its_examples_from_where_it_says() -> None:
    of_any, of_relation, of_template = (
        [
            pair
            for seed in range(8)
            for pair in examples(prompts(world(seed=seed), capitals(6)[7:], FIRST, context=c)[0])
        ]
        for c in FEW
    )
    assert any("play" in q for q, _ in of_any) and any("capital" in q for q, _ in of_any)
    assert all("capital" in q for q, _ in of_relation)
    assert len({q.split()[0] for q, _ in of_relation}) > 2
    assert all(q.startswith("The capital of ") for q, _ in of_template)
    training = {subject for subject, _ in (*CAPITALS[:6], *MUSIC[:6])}
    for q, _ in (*of_any, *of_relation, *of_template):
        assert any(subject in q for subject in training), "an example from the test split"


def test_qa_style_draws_from_question_templates_only() -> None:
    bare = replace(INSTRUMENT, templates=INSTRUMENT.templates[:1])
    for data in (world(), world(facts(), CAPITAL, bare)):
        [text] = prompts(data, capitals(6)[7:], CAPITAL.templates[2], style="qa", context="random")
        assert all(q.endswith("?") for q, _ in examples(text))


def test_without_training_facts_others_are_shown() -> None:
    [text] = prompts(world(facts(0)), capitals(0)[:1], FIRST)
    assert len(examples(text)) == 4 and not any("Peru" in q for q, _ in examples(text))


def test_another_fact_moves_no_draw_unless_it_is_drawn_itself() -> None:
    more = [fact("P36", f"Land {i}", f"Town {i}", split="train") for i in range(6)]
    for seed in range(10):
        before, after = (
            examples(prompts(world(held, seed=seed), capitals(6)[7:], FIRST)[0])
            for held in (facts(), [*facts(), *more])
        )
        kept = [pair for pair in after if "Land" not in pair[0]]
        assert kept == before[: len(kept)]


def test_draws_are_about_even() -> None:
    """Over many seeds each of six facts comes first about as often as another."""
    first = [
        examples(prompts(world(seed=seed), capitals(6)[7:], FIRST, shots=1)[0])[0][1]
        for seed in range(300)
    ]
    counts = [first.count(f"{capital}.") for _, capital in CAPITALS[:6]]
    assert sum(counts) == 300 and min(counts) > 25 and max(counts) < 80


@pytest.mark.parametrize(("context", "where"), [("template", "relation P36"), ("random", "the da")])
def test_fewer_facts_than_shots_are_rejected(context: Context, where: str) -> None:
    data = world(capitals(6), CAPITAL)
    with pytest.raises(DataError, match=rf"{where}.* has 7 facts to show .* the 8 of shots"):
        prompts(data, capitals(6)[7:], FIRST, context=context, shots=8)


def test_a_context_with_examples_needs_shots() -> None:
    with pytest.raises(UsageError, match="shots of at least 1"):
        prompts(world(), capitals(6)[7:], FIRST, shots=0)


def test_an_answer_ends_with_one_full_stop() -> None:
    example = default_prompt_layout("qa").write_example
    assert example("Where?", ["Lima"]) == ("Q: Where?\nA: ", "Lima.\n")
    assert example("Where?", ["Washington, D.C."]) == ("Q: Where?\nA: ", "Washington, D.C.\n")


@pytest.mark.parametrize("text", ["[A] [Q]", "[Q]", "[Q] [A] [A]"])
def test_a_layout_has_one_question_and_then_one_answer(text: str) -> None:
    with pytest.raises(UsageError, match="a layout needs"):
        PromptLayout(text=text)


def test_a_question_ends_at_its_question_mark_whatever_the_subject() -> None:
    asked = template("q", "Who wrote [X]? It was [Y].", style="question")
    assert fill_question(asked, "Who Is It? Not [Y]", "qa") == "Who wrote Who Is It? Not [Y]?"


@pytest.mark.parametrize("text", ["[X] was born in [Y].", "[Y] is what? [X].", "Who? [Y] [X]"])
def test_a_question_template_that_does_not_ask_first_is_rejected(text: str) -> None:
    with pytest.raises(TemplateError, match="must ask before it answers"):
        fill_question(template("q", text, style="question"), "Ann", "qa")


def test_fixed_examples_are_training_facts_if_there_are_enough() -> None:
    shown = choose_fixed_examples(world(), "P36", 2)
    assert shown["split"].to_list() == ["train"] * 4  # two are spares
    assert not shown["held"].any()


def test_fixed_examples_that_are_prompted_otherwise_are_held() -> None:
    shown = choose_fixed_examples(world(facts(training=0)), "P36", 2)
    assert shown["held"].to_list() == [True, True]


def test_two_facts_of_one_name_are_not_both_shown() -> None:
    held = [
        fact("P36", entity("Peru", id=f"Q{i}"), "Lima", id=str(i), split="train") for i in range(5)
    ]
    assert (
        choose_fixed_examples(world([*held, *capitals(6)]), "P36", 5)["subject"].is_unique().all()
    )
