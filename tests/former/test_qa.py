"""qa: what is asked byte for byte, and lists of answers judged as sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.answers import Answered, Generated
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact
from sonde.core.prompts import Generate, Prompt, prompts_of
from sonde.former.qa.judge import Match, Rule, most_pairs
from sonde.former.qa.probe import Qa
from sonde.testing import answer_all, check_probe, oracle_for
from tests.worlds import dataset_of, entity, fact, question, relation, template, world

SPEAKS = relation("P37", question("P37-1", "What is spoken in [X]?"), label="language", kind="N-M")
TRAINING = [
    fact("P37", "Laos", "Lao", split="train"),
    fact("P37", "Belgium", "Dutch", "French", split="train"),
    fact("P37", "Peru", "Spanish", "Quechua", split="train"),
]
SWISS = fact("P37", "Switzerland", entity("German", "Deutsch"), "French", "Italian")


def speaks(*more: Fact) -> Dataset:
    return dataset_of([*TRAINING, SWISS, *more], SPEAKS)


def said(data: Dataset, says: Callable[[str], str], **settings: Any) -> list[Answered]:
    asked = prompts_of(Qa(shots=2, **settings).ask(data))
    return [
        Answered(
            key=prompt.key,
            prefix=prompt.prefix,
            suffix="",
            answer=Generated(text=says(prompt.key.subject), logps=(-1.0,)),
        )
        for prompt in asked
    ]


def values(data: Dataset, text: str, **reading: Any) -> dict[str, float]:
    report = Qa(shots=2, **reading).read(data, said(data, lambda _: text))
    places = {name: e for name, e in report.estimates.items() if name.endswith("_relations")}
    return {name.partition(".mean")[0]: round(e.value or 0.0, 6) for name, e in places.items()}


def only(asked: Qa, data: Dataset) -> Prompt:
    (prompt,) = prompts_of(asked.ask(data))
    return prompt


def test_the_default_is_kamels_prompt() -> None:
    prompt = only(Qa(shots=2), speaks())
    lines = prompt.prefix.splitlines()
    assert lines[-1] == "What is spoken in Switzerland?"
    assert len(lines) == 3 and all(line.endswith("%") for line in lines[:-1])
    shown = {
        "What is spoken in Laos? Lao%",
        "What is spoken in Belgium? Dutch; French%",
        "What is spoken in Peru? Spanish; Quechua%",
    }
    assert set(lines[:-1]) < shown
    assert prompt.want == Generate(most=100, until="%")


@pytest.mark.parametrize(
    ("layout", "end", "until"),
    [
        ("popqa", "Q: What is spoken in Switzerland? A:", "\n"),
        ("lines", "\nQ: What is spoken in Switzerland?\nA:", "\n"),
        ("<[Q]|[A]>", "><What is spoken in Switzerland?|", ">"),
        (r"[Q]\n[A].\n", ".\nWhat is spoken in Switzerland?\n", "\n"),
    ],
)
def test_other_layouts_are_settings(layout: str, end: str, until: str) -> None:
    prompt = only(Qa(shots=2, layout=layout), speaks())
    assert prompt.prefix.endswith(end)
    assert isinstance(prompt.want, Generate) and prompt.want.until == until


def test_without_examples_the_question_stands_alone() -> None:
    prompt = only(Qa(context="zero-shot", instruction="Answer with a list."), speaks())
    assert prompt.prefix == "Answer with a list.\nWhat is spoken in Switzerland?"


def test_facts_may_be_asked_by_questions_of_their_own() -> None:
    own = relation("P1", template("P1-1", "[details.question] [Y]", style="question"))
    asked = [
        sonde.Fact(
            id=name,
            relation="P1",
            subject=entity(name),
            objects=(entity("x"),),
            details={"question": f"Who knows {name}?"},
        )
        for name in ("Ann", "Bo")
    ]
    prompts = list(prompts_of(Qa(shots=1).ask(dataset_of(asked, own))))
    assert [p.prefix for p in prompts] == [
        "Who knows Bo? x%\nWho knows Ann?",
        "Who knows Ann? x%\nWho knows Bo?",
    ]


def test_a_set_is_judged_by_what_is_in_it() -> None:
    found = values(speaks(), " French; Deutsch; Romansh%")
    assert (found["precision"], found["recall"]) == (round(2 / 3, 6), round(2 / 3, 6))
    assert found["f1"] == round(2 / 3, 6) == found["f1_of_means"]
    assert (found["exact_set"], found["any_right"]) == (0.0, 1.0)
    whole = values(speaks(), "Italian; French; German")
    assert whole["f1"] == whole["exact_set"] == 1.0
    nothing = values(speaks(), "")
    assert nothing["precision"] == nothing["recall"] == nothing["f1"] == 0.0


def test_another_name_of_a_thing_that_was_named_counts_neither_way() -> None:
    assert values(speaks(), "German; Deutsch; German")["precision"] == 1.0
    assert values(speaks(), "German; Deutsch")["recall"] == round(1 / 3, 6)


def test_words_around_a_name_are_right_only_if_that_is_chosen() -> None:
    assert values(speaks(), "the German language")["any_right"] == 0.0
    assert values(speaks(), "the German language", match="within")["any_right"] == 1.0
    assert values(speaks(), "German, French", separator="")["any_right"] == 0.0
    assert values(speaks(), "German, French", separator=", ")["recall"] == round(2 / 3, 6)


@pytest.mark.parametrize(
    ("answer", "right"),
    [("1936", True), ("May 12, 1936", True), ("12 May 1937", False), ("36", False)],
)
@pytest.mark.parametrize("match", ["equal", "within"])
def test_dates_are_compared_as_dates(answer: str, right: bool, match: Match) -> None:
    rule = Rule(separator="; ", match=match, language="en")
    assert rule.members(answer, [("1936", "12 May 1936")]).right == right


def test_numbers_and_names_of_things_are_told_apart() -> None:
    data = speaks(fact("P37", "Nowhere", "1,000"))
    report = Qa(shots=2).read(data, said(data, lambda name: "1000" if name == "Nowhere" else "x"))
    assert report.estimates["f1.answers.literal"].value == 1.0
    assert report.estimates["f1.answers.entity"].value == 0.0
    assert report.estimates["recall.objects.3"].value == 0.0
    assert "by-answers" in {table.id for table in report.tables}


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=5))
def test_every_answer_stands_for_one_object_at_most(fits: list[list[int]]) -> None:
    def placed(order: tuple[int, ...]) -> int:
        """Answers in some order, each taking the first object that is left, or the best of all."""
        if not order:
            return 0
        first, rest = order[0], order[1:]
        return max([tried(first, object, rest) for object in fits[first]] + [placed(rest)])

    taken: set[int] = set()

    def tried(answer: int, object: int, rest: tuple[int, ...]) -> int:
        if object in taken:
            return 0
        taken.add(object)
        found = 1 + placed(rest)
        taken.remove(object)
        return found

    assert most_pairs(fits) == placed(tuple(range(len(fits))))


@given(st.lists(st.sampled_from("abcde"), max_size=5), st.lists(st.sampled_from("abc"), min_size=1))
def test_the_order_of_a_list_does_not_matter(answers: list[str], objects: list[str]) -> None:
    rule = Rule(separator="; ", match="equal", language="none")
    names = [(name,) for name in dict.fromkeys(objects)]
    found = rule.members("; ".join(answers), names)
    given, right = set(answers), set(objects)
    assert found == (len(given & right), len(given - right), len(right))
    for other in list(permutations(answers))[:6]:
        assert rule.members("; ".join(other), names) == found


def test_an_oracle_knows_everything_and_no_order_matters() -> None:
    check_probe(Qa(shots=2), world())
    data = world()
    found = Qa(shots=2).read(data, answer_all(oracle_for(data), Qa(shots=2).ask(data)))
    assert found.estimates["exact_set.mean_over_facts"].value == 1.0


def test_relations_without_a_question_are_left_out_and_counted() -> None:
    bare = relation("P1", "[X] is [Y].")
    data = dataset_of([*TRAINING, SWISS, fact("P1", "Ann", "x")], SPEAKS, bare)
    report = Qa(shots=2).read(data, said(data, lambda _: "x"))
    assert report.counts["relations_without_questions"] == 1 == report.counts["questions"]
    with pytest.raises(DataError, match="has no question template for what is asked"):
        list(Qa().ask(dataset_of([fact("P1", "Ann", "x")], bare)))
    with pytest.raises(DataError, match="has no question template 2"):
        list(Qa(template=2).ask(speaks()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"layout": "Q: [Q]"}, r"a layout needs \[Q\] once and \[A\] once behind it"),
        ({"layout": "[A] [Q]"}, "a layout needs"),
        ({"separator": "\n"}, "separator must have more than spaces"),
        ({"language": "xx"}, "no list of lemmas"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Qa(**settings)


@pytest.mark.shared
def test_kamel_is_asked_behind_its_training_facts(shared: Path) -> None:
    data = sonde.dataset(f"kamel:{shared / 'data' / 'kamel'}", relations=("P47",), limit=2)
    training = {f.subject.name for f in data.facts("P47") if f.split == "train"}
    for prompt in prompts_of(Qa().ask(data)):
        *shown, last = prompt.prefix.splitlines()
        names = [line.removeprefix("What countries is ").partition(" sharing")[0] for line in shown]
        assert len(shown) == 5 and set(names) <= training
        assert last == f"What countries is {prompt.key.subject} sharing borders with?"


@pytest.mark.shared
def test_every_list_of_kamel_is_whole_when_it_is_given_back(shared: Path) -> None:
    data = sonde.dataset(f"kamel:{shared / 'data' / 'kamel'}")
    rule = Rule(separator="; ", match="equal", language="en")
    for asked in (each for r in data.relations for each in data.asked(r.id)):
        names = [entity.names for entity in asked.objects]
        for told in ([own[0] for own in names], [own[-1] for own in names]):
            assert rule.members("; ".join(told), names) == (len(names), 0, len(names))
