"""qa: what is asked byte for byte, and lists of answers graded as sets."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonde
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Fact
from sonde.probes.qa import Qa
from sonde.prompts import Generate
from tests.worlds import dataset_of, entity, fact, question, relation, template

from .shares import Numbers, texts

SPEAKS = relation("P37", question("P37-1", "What is spoken in [X]?"), label="language", kind="N-M")
TRAINING = [
    fact("P37", "Laos", "Lao", split="train"),
    fact("P37", "Belgium", "Dutch", "French", split="train"),
    fact("P37", "Peru", "Spanish", "Quechua", split="train"),
]
SWISS = fact("P37", "Switzerland", entity("German", "Deutsch"), "French", "Italian")


def speaks(*more: Fact) -> Dataset:
    return dataset_of([*TRAINING, SWISS, *more], SPEAKS)


def numbers(text: str, **settings: Any) -> Numbers:
    return Numbers(Qa(shots=2, **settings), speaks(), lambda prompt: text)


def count(text: str, names: Sequence[Sequence[str]], **settings: Any) -> tuple[int, int]:
    return Qa(**settings)._count_correct_and_wrong(text, names, "en")


def test_the_default_is_kamels_prompt() -> None:
    (batch,) = Qa(shots=2).prompts(speaks())
    *examples, last = batch.frame["prefix"][0].splitlines()
    assert last == "What is spoken in Switzerland?"
    assert len(examples) == 2
    assert set(examples) < {
        "What is spoken in Laos? Lao%",
        "What is spoken in Belgium? Dutch; French%",
        "What is spoken in Peru? Spanish; Quechua%",
    }
    assert batch.request == Generate(max_tokens=100, stop="%")


@pytest.mark.parametrize(
    ("layout", "end", "stop"),
    [
        ("popqa", "Q: What is spoken in Switzerland? A:", "\n"),
        ("lines", "\nQ: What is spoken in Switzerland?\nA:", "\n"),
        ("<[Q]|[A]>", "><What is spoken in Switzerland?|", ">"),
        (r"[Q]\n[A].\n", ".\nWhat is spoken in Switzerland?\n", "\n"),
    ],
)
def test_other_layouts_are_settings(layout: str, end: str, stop: str) -> None:
    (batch,) = Qa(shots=2, prompt_layout=layout).prompts(speaks())
    assert batch.frame["prefix"][0].endswith(end)
    assert batch.request == Generate(max_tokens=100, stop=stop)


def test_without_examples_the_question_is_alone() -> None:
    probe = Qa(context="zero-shot", instruction="Answer with a list.")
    assert texts(probe.prompts(speaks())) == [
        ("Answer with a list.\nWhat is spoken in Switzerland?", "")
    ]


def test_facts_may_have_questions_of_their_own() -> None:
    own = relation("P1", template("P1-1", "[details.question] [Y]", style="question"))
    facts = [
        sonde.Fact(
            id=name,
            relation="P1",
            subject=entity(name),
            objects=(entity("x"),),
            details={"question": f"Who knows {name}?"},
        )
        for name in ("Ann", "Bo")
    ]
    assert texts(Qa(shots=1).prompts(dataset_of(facts, own))) == [
        ("Who knows Bo? x%\nWho knows Ann?", ""),
        ("Who knows Ann? x%\nWho knows Bo?", ""),
    ]


def test_a_list_is_graded_as_a_set() -> None:
    of = numbers(" French; Deutsch; Romansh%")
    assert [of(id) for id in ("precision", "recall", "f1", "f1_of_means")] == pytest.approx(
        [2 / 3] * 4
    )
    assert (of("exact_set"), of("any_right")) == (0.0, 1.0)
    whole = numbers("Italian; French; German")
    assert whole("f1") == whole("exact_set") == 1.0
    nothing = numbers("")
    assert nothing("precision") == nothing("recall") == nothing("f1") == 0.0


def test_the_control_answers_with_the_most_common_object_alone() -> None:
    of = numbers("French; German; Italian")  # of three equally common ones the first by name
    assert of("f1", of="baseline") == 2 / (1 + 0 + 3)
    assert of("f1", of="difference") == pytest.approx(0.5)


def test_another_name_of_an_object_that_was_named_counts_neither_way() -> None:
    assert numbers("German; Deutsch; German")("precision") == 1.0
    assert numbers("German; Deutsch")("recall") == pytest.approx(1 / 3)


def test_words_around_a_name_are_correct_only_if_that_is_chosen() -> None:
    assert numbers("the German language")("any_right") == 0.0
    assert numbers("the German language", match="within")("any_right") == 1.0
    assert numbers("German, French", separator="")("any_right") == 0.0
    assert numbers("German, French", separator=", ")("recall") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answer", "correct"),
    [("1936", True), ("May 12, 1936", True), ("12 May 1937", False), ("36", False)],
)
@pytest.mark.parametrize("match", ["equal", "within"])
def test_dates_are_compared_as_dates(
    answer: str, correct: bool, match: Literal["equal", "within"]
) -> None:
    assert count(answer, [("1936", "12 May 1936")], match=match) == (correct, not correct)


def test_numbers_and_names_are_groups_and_so_are_sizes() -> None:
    def model(prompt: dict[str, Any]) -> str:
        return "1000" if prompt["subject"] == "Nowhere" else "x"

    of = Numbers(Qa(shots=2), speaks(fact("P37", "Nowhere", "1,000")), model)
    assert of("f1", "literal", over="facts") == 1.0
    assert of("f1", "entity", over="facts") == 0.0
    assert of("recall", "3", over="facts") == 0.0


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=5))
def test_every_answer_counts_for_one_object_at_most(fits: list[list[int]]) -> None:
    # object i has the names of all answers that fit it
    names = [tuple(f"a{n}" for n, own in enumerate(fits) if i in own) for i in range(5)]
    answers = "; ".join(f"a{n}" for n in range(len(fits)))
    taken = {
        len({object for object in chosen if object is not None})
        for chosen in _choices(fits)
        if len([o for o in chosen if o is not None]) == len({o for o in chosen if o is not None})
    }
    correct, wrong = count(answers, names, language="none")
    assert correct == max(taken)
    assert wrong == sum(not own for own in fits)


def _choices(fits: list[list[int]]) -> list[list[int | None]]:
    """Every way to give each answer one object that it fits, or none."""
    ways: list[list[int | None]] = [[]]
    for own in fits:
        ways = [[*way, object] for way in ways for object in [None, *own]]
    return ways


@given(st.lists(st.sampled_from("abcde"), max_size=5), st.lists(st.sampled_from("abc"), min_size=1))
def test_the_order_of_a_list_does_not_matter(answers: list[str], objects: list[str]) -> None:
    names = [(name,) for name in dict.fromkeys(objects)]
    found = count("; ".join(answers), names, language="none")
    assert found == (len({*answers} & {*objects}), len({*answers} - {*objects}))
    for other in list(permutations(answers))[:6]:
        assert count("; ".join(other), names, language="none") == found


def test_relations_without_a_question_are_excluded() -> None:
    bare = relation("P1", "[X] is [Y].")
    data = dataset_of([*TRAINING, SWISS, fact("P1", "Ann", "x")], SPEAKS, bare)
    counts = Numbers(Qa(shots=2), data, lambda prompt: "x").results.counts()
    assert counts["excluded.no question template"] == 1 == counts["prompts"]
    with pytest.raises(DataError, match="has no question template to prompt with"):
        list(Qa().prompts(dataset_of([fact("P1", "Ann", "x")], bare)))
    with pytest.raises(DataError, match="has no question template 2"):
        list(Qa(template_no=2).prompts(speaks()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prompt_layout": "Q: [Q]"}, r"a layout needs \[Q\] once and then \[A\] once"),
        ({"prompt_layout": "[A] [Q]"}, "a layout needs"),
        ({"separator": "\n"}, "separator must have more than spaces"),
        ({"language": "xx"}, "no list of lemmas"),
    ],
)
def test_settings_that_cannot_be_are_rejected(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Qa(**settings)


@pytest.mark.shared
def test_kamel_has_examples_of_its_training_facts(shared: Path) -> None:
    data = sonde.dataset(f"kamel:{shared / 'data' / 'kamel'}", relations=("P47",), limit=2)
    training = {f.subject.name for f in data.facts("P47") if f.split == "train"}
    (batch,) = Qa().prompts(data)
    for subject, prefix in batch.frame.select("subject", "prefix").iter_rows():
        *shown, last = prefix.splitlines()
        names = [line.removeprefix("What countries is ").partition(" sharing")[0] for line in shown]
        assert len(shown) == 5 and set(names) <= training
        assert last == f"What countries is {subject} sharing borders with?"


@pytest.mark.shared
def test_every_list_of_kamel_is_complete_when_it_is_given_back(shared: Path) -> None:
    data = sonde.dataset(f"kamel:{shared / 'data' / 'kamel'}")
    for one in (each for r in data.relations for each in data.asked(r.id)):
        names = [entity.names for entity in one.objects]
        for stated in ([own[0] for own in names], [own[-1] for own in names]):
            assert count("; ".join(stated), names) == (len(names), 0)
