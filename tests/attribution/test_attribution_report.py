"""The prompts of a fact fall into parts, and every token counts for one of them."""

from __future__ import annotations

import re

import pytest

from sonde.attribution.asking import Parted, Shape, find_fact, free, of_fact
from sonde.attribution.report import Attributed, report, shares
from sonde.core.errors import UsageError
from sonde.core.examinations import Attribution, Token
from sonde.core.facts import Dataset
from sonde.core.reports import HeatStrip, Report
from tests.worlds import dataset_of, fact, question, relation

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Chile": "Santiago"}


def world() -> Dataset:
    texts = ("What is the capital of [X]?", "Which city governs [X]?")
    asked = (question(f"q{i}", text) for i, text in enumerate(texts))
    facts = [fact(id, *pair) for id in ("P36", "P37") for pair in CAPITALS.items()]
    return dataset_of(facts, relation("P36", *asked), relation("P37"))


def prompts(shape: Shape) -> list[Parted]:
    dataset = world()
    return of_fact(dataset, find_fact(dataset, "P36-France", ""), shape, None)


def words(prompt: Parted) -> dict[str, str]:
    return {part.name: prompt.text[part.start : part.stop] for part in prompt.parts}


def test_a_fact_has_an_anchor_its_frames_and_wrong_names() -> None:
    made = prompts(Shape(form="qa", negatives=2))
    assert [p.kind for p in made] == ["anchor", "framing", "framing", *["interference"] * 2]
    assert made[0].text == "Q: Paris. What is the capital of France?\nA: "
    assert words(made[0]) == {"context": "Paris. ", "subject": "France"}
    assert words(made[2]) == {"subject": "France"}
    for wrong in made[3:]:
        assert words(wrong)["context"].removesuffix(". ") in set(CAPITALS.values()) - {"Paris"}
    assert {p.answer for p in made} == {"Paris"}


def test_examples_are_a_part_and_never_about_the_subject() -> None:
    made = prompts(Shape(form="plain", shots=2, frames=1, negatives=1))
    assert len(made) == 3
    for prompt in made:
        shown = words(prompt)["examples"]
        assert prompt.text.startswith(shown)
        assert shown.count("\n") == prompt.shots == 2
        assert "France" not in shown


def test_a_token_belongs_to_the_part_it_shares_most_with() -> None:
    prompt = prompts(Shape(negatives=0))[0]
    assert prompt.text == "Paris. What is the capital of France? "
    at = prompt.text.index("France")
    assert prompt.part_of(0, 5) == prompt.part_of(5, 6) == "context"
    assert prompt.part_of(6, 11) == "rest"  # the space closes the context, the word does not
    assert prompt.part_of(at - 1, at + 6) == "subject"
    assert prompt.part_of(at + 6, at + 7) == "rest"


def put(prompt: Parted, model: str = "m", weight: float = 1.0) -> Attributed:
    found = [Token(text=m[0], start=m.start(), stop=m.end())
             for m in re.finditer(r" ?\w+|[^\w ]", prompt.text)]  # fmt: skip
    weights = tuple(weight * (-1) ** i for i in range(len(found)))
    done = Attribution(answer="Paris", tokens=tuple(found), weights=weights, score=-1.0,
                       baseline=-9.0, error=0.1, steps=50)  # fmt: skip
    return Attributed(prompt=prompt, model=model, own="Rome", found=done)


def test_shares_are_of_absolute_weights_and_sum_to_one() -> None:
    for prompt in prompts(Shape(form="qa", shots=2, negatives=2)):
        found = shares(put(prompt))
        assert sum(found.values()) == pytest.approx(1)
        assert found["subject"] > 0
        assert (found.get("context", 0) > 0) == (prompt.kind != "framing")
    assert shares(put(prompt, weight=0.0)) == {}


def whole(*models: str) -> Report:
    made = prompts(Shape(form="qa", shots=2, negatives=2))
    return report([put(p, model) for model in models for p in made], "T")


def test_the_report_sets_prompts_and_models_side_by_side() -> None:
    made = whole("one", "two")
    strips = [figure for figure in made.figures if isinstance(figure, HeatStrip)]
    assert [len(strip.rows) for strip in strips] == [2, 4, 4]
    assert [row.label.split(":")[0] for row in strips[1].rows] == ["one", "two"] * 2
    assert {strip.limit for strip in strips} == {1.0}
    assert strips[0].rows[0].folded_name == "2 examples"
    assert "it answers “Rome”" in strips[0].rows[0].note


def test_the_means_are_those_of_the_rows() -> None:
    (table,) = (table for table in whole("one").tables if table.id == "shares")
    rows = {row[0]: row[1:] for row in table.rows}
    wrong = [row for label, row in rows.items() if str(label).endswith("(wrong)")]
    assert len(wrong) == 2
    mean = [sum(column) / 2 for column in zip(*wrong, strict=True)]
    assert list(rows["mean of interference"]) == pytest.approx(mean)
    assert rows["mean of framing"][0] is None, "nothing stands in front there"
    named = whole("one").estimates["share.one.interference.context"]
    assert named.value == pytest.approx(mean[0]) and named.n == 2


def test_a_large_error_is_told() -> None:
    prompt = free("Where?", "Paris")
    assert report([put(prompt)], "T").findings == ()
    rough = put(prompt)
    rough = Attributed(prompt=prompt, model="m", own="", found=Attribution(
        answer="Paris", tokens=rough.found.tokens, weights=rough.found.weights, score=-1.0,
        baseline=-9.0, error=2.0, steps=50))  # fmt: skip
    assert "1 of 1 strips" in report([rough], "T").findings[0]


def test_a_space_stands_before_the_answer() -> None:
    assert free("The capital is", None).text == "The capital is "
    assert free("Q: Where?\nA:\n", None).text == "Q: Where?\nA:\n"
    with pytest.raises(UsageError, match="prompt is empty"):
        free("  ", None)


def test_facts_that_are_not_there_are_refused_with_a_hint() -> None:
    dataset = world()
    with pytest.raises(UsageError, match="did you mean 'P36-France'"):
        find_fact(dataset, "P36-Frances", "P36")
    with pytest.raises(UsageError, match="no question templates"):
        of_fact(dataset, find_fact(dataset, "P37-France", ""), Shape(), None)
