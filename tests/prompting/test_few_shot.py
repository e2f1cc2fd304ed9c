"""What stands before a question: the instruction and the examples, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from sonde.core.errors import DataError, TemplateError, UsageError
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.prompting.few_shot import (
    Context,
    Contexts,
    ShotsPer,
    Style,
    Target,
    question,
    usual_layout,
)
from tests.worlds import (
    CAPITAL,
    CAPITALS,
    INSTRUMENT,
    MUSIC,
    fact,
    facts,
    relation,
    template,
    world,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "icl"
FEW: tuple[Context, ...] = ("random", "relation", "template")


def eligible(style: Style, relation: Relation) -> tuple[Template, ...]:
    return tuple(t for t in relation.templates if style == "mask" or t.style == "question")


Shape = dict[str, Any]
"""Keywords of `Contexts`."""


def contexts(data: Dataset, shape: Shape) -> Contexts:
    style = shape.get("style", "mask")
    return Contexts(data, lambda relation: eligible(style, relation), **shape)


def target(asked: Fact) -> Target:
    return Target(fact=asked.id, relation=asked.relation, names=asked.subject.names)


def prompt(data: Dataset, asked: Fact, template: Template, shape: Shape) -> str:
    return contexts(data, shape).prompt(target(asked), template, asked.subject.name).text


def examples(text: str) -> list[tuple[str, str]]:
    """Question and answer of every example in a prompt."""
    lines = text.splitlines()[1:-2]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(q.removeprefix("Q: "), a.removeprefix("A: ")) for q, a in pairs]


@pytest.mark.parametrize(("style", "context"), [*product(get_args(Style), get_args(Context))])
def test_a_prompt_is_written_byte_for_byte(style: Style, context: Context) -> None:
    shape = Shape(style=style, context=context)
    written = [
        prompt(world(), asked, template, shape)
        for asked in facts()
        if asked.split == "test"
        for template in eligible(style, world().relation(asked.relation))
    ]
    golden = GOLDEN / f"{style}-{context}.txt"
    assert "\n\n".join(written) + "\n" == golden.read_text(encoding="utf-8")


def test_the_papers_own_prompt_comes_out() -> None:
    """Two examples of belief-icl's appendix, with one fact to show and one to ask."""
    part = template("P361-1", "[Y] consists of [X].")
    held = [fact("P361", "Panzer Division Kempf", "Wehrmacht", split="train")]
    asked = fact("P361", "environmental factors", "environment")
    text = prompt(
        world([*held, asked], relation("P361", part, label="part of")), asked, part, Shape(shots=1)
    )
    assert text == (
        "Predict the [MASK] in each sentence in one word.\n"
        "Q: [MASK] consists of Panzer Division Kempf.\n"
        "A: Wehrmacht.\n"
        "Q: [MASK] consists of environmental factors.\n"
        "A:"
    )


def test_zero_shot_is_the_instruction_and_the_question() -> None:
    asked = facts()[7]
    for style in get_args(Style):
        shape = Shape(style=style, context="zero-shot")
        text = prompt(world(), asked, CAPITAL.templates[2], shape)
        asks = question(CAPITAL.templates[2], "Egypt", style)
        assert text == f"{usual_layout(style).head}Q: {asks}\nA:"


@pytest.mark.parametrize("context", FEW)
@pytest.mark.parametrize("per", get_args(ShotsPer))
def test_the_target_is_never_among_its_examples(context: Context, per: ShotsPer) -> None:
    """Everything is for training here, so that every target stands in the pool."""
    data = world(facts(training=8))
    for seed in range(5):
        made = contexts(data, Shape(context=context, shots_per=per, seed=seed))
        for asked in facts(training=8):
            for chosen in data.relation(asked.relation).templates:
                text = made.prompt(target(asked), chosen, asked.subject.name).text
                found = examples(text)
                assert len(found) == len(set(found)) == 4
                assert not any(asked.subject.name in q for q, _ in found)


def test_a_target_that_is_shown_under_another_name_is_left_out_too() -> None:
    asked = facts(training=8)[0]
    made = contexts(world(facts(training=8)), Shape(shots=7))
    text = made.prompt(target(asked), CAPITAL.templates[0], "old Peru").text
    assert len(examples(text)) == 7 and "of Peru" not in text and "old Peru" in text


def test_no_subject_is_shown_twice() -> None:
    """Peru has a row for each of three objects, as in datasets of one object a row."""
    rows = [replace(f, id=f"{f.id}-{i}") for f in facts()[:1] for i in range(3)]
    data = world([*rows, *facts()[1:]])
    for seed in range(10):
        found = examples(prompt(data, facts()[7], CAPITAL.templates[0], Shape(seed=seed)))
        assert len({q for q, _ in found}) == 4


def test_facts_share_their_examples_and_the_spare_replaces_the_target_alone() -> None:
    data = world(facts(training=8))
    made = contexts(data, Shape())
    first = CAPITAL.templates[0]
    found = {
        asked.subject.name: examples(made.prompt(target(asked), first, asked.subject.name).text)
        for asked in facts(training=8)
        if asked.relation == "P36"
    }
    usual = max(found.values(), key=list(found.values()).count)
    shown_names = {name for name in found if any(name in q for q, _ in usual)}
    assert len(shown_names) == 4
    for name, own in found.items():
        assert len(set(usual) - set(own)) == (1 if name in shown_names else 0)


def test_examples_can_be_drawn_anew_for_each_fact() -> None:
    made = contexts(world(facts(training=8)), Shape(shots_per="fact", shots=2))
    capitals = [f for f in facts(training=8) if f.relation == "P36"]
    first = CAPITAL.templates[0]
    texts = {str(examples(made.prompt(target(f), first, f.subject.name).text)) for f in capitals}
    assert len(texts) > 3


def test_each_context_takes_its_examples_from_where_it_says() -> None:
    asked = facts()[7]
    first = CAPITAL.templates[0]
    subjects = {subject for subject, _ in (*CAPITALS[:6], *MUSIC[:6])}
    of_any, of_relation, of_template = (
        [
            pair
            for seed in range(8)
            for pair in examples(prompt(world(), asked, first, Shape(context=c, seed=seed)))
        ]
        for c in FEW
    )
    assert any("play" in q for q, _ in of_any) and any("capital" in q for q, _ in of_any)
    assert all("capital" in q for q, _ in of_relation)
    assert len({q.split()[0] for q, _ in of_relation}) > 2
    assert all(q.startswith("The capital of ") for q, _ in of_template)
    for q, _ in (*of_any, *of_relation, *of_template):
        assert any(subject in q for subject in subjects), "an example from the test split"


def test_qa_style_draws_from_question_templates_only() -> None:
    asked = facts()[7]
    bare = replace(INSTRUMENT, templates=INSTRUMENT.templates[:1])
    for seed in range(5):
        shape = Shape(style="qa", context="random", seed=seed)
        found = examples(prompt(world(), asked, CAPITAL.templates[2], shape))
        assert all(q.endswith("?") for q, _ in found)
        without = world(facts(), CAPITAL, bare)
        found = examples(prompt(without, asked, CAPITAL.templates[2], shape))
        assert all("capital" in q for q, _ in found)


def test_without_a_train_split_other_facts_are_shown() -> None:
    data = world(facts(training=0))
    asked = facts(training=0)[0]
    found = examples(prompt(data, asked, CAPITAL.templates[0], Shape()))
    assert len(found) == 4 and not any("Peru" in q for q, _ in found)


def test_another_fact_moves_no_draw_unless_it_is_drawn_itself() -> None:
    asked = facts()[7]
    more = [fact("P36", f"Land {i}", f"Town {i}", split="train") for i in range(6)]
    for seed in range(10):
        shape = Shape(seed=seed)
        before = examples(prompt(world(), asked, CAPITAL.templates[0], shape))
        data = world([*facts(), *more])
        after = examples(prompt(data, asked, CAPITAL.templates[0], shape))
        kept = [pair for pair in after if "Land" not in pair[0]]
        assert kept == before[: len(kept)]


def test_styles_and_contexts_show_the_same_facts() -> None:
    asked, chosen = facts()[7], CAPITAL.templates[2]
    answers = [
        [answer for _, answer in examples(prompt(world(), asked, chosen, shape))]
        for shape in (Shape(), Shape(style="qa"), Shape(context="relation"))
    ]
    assert answers[0] == answers[1] == answers[2]


def test_draws_are_about_even() -> None:
    """Over many seeds each of six facts stands first about as often as another."""
    asked = facts()[7]
    first = [
        examples(prompt(world(), asked, CAPITAL.templates[0], Shape(seed=seed, shots=1)))[0][1]
        for seed in range(300)
    ]
    counts = [first.count(f"{capital}.") for _, capital in CAPITALS[:6]]
    assert sum(counts) == 300 and min(counts) > 25 and max(counts) < 80


def test_an_answer_is_closed_by_one_full_stop() -> None:
    shown = usual_layout("qa").shown
    assert shown("Where?", ["Lima"]) == ("Q: Where?\nA: ", "Lima.\n")
    assert shown("Where?", ["Washington, D.C."]) == ("Q: Where?\nA: ", "Washington, D.C.\n")


def test_a_question_ends_at_its_question_mark_whatever_the_subject() -> None:
    asked = template("q", "Who wrote [X]? It was [Y].", style="question")
    assert question(asked, "Who Is It? Not [Y]", "qa") == "Who wrote Who Is It? Not [Y]?"


@pytest.mark.parametrize("text", ["[X] was born in [Y].", "[Y] is what? [X].", "Who? [Y] [X]"])
def test_a_question_template_that_does_not_ask_first_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match="must ask before it answers"):
        question(template("q", text, style="question"), "Ann", "qa")


@pytest.mark.parametrize(("context", "where"), [("template", "relation P36"), ("random", "the da")])
def test_fewer_facts_than_shots_are_told(context: Context, where: str) -> None:
    data = world([f for f in facts() if f.relation == "P36"], CAPITAL)
    with pytest.raises(DataError, match=rf"{where}.* has 7 facts to show .* 8 were asked for"):
        prompt(data, facts()[7], CAPITAL.templates[0], Shape(context=context, shots=8))


def test_a_context_with_examples_needs_shots() -> None:
    with pytest.raises(UsageError, match="shots of at least 1"):
        contexts(world(), Shape(shots=0))
