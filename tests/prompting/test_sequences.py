"""Facts in a row: what a model reads, where each object stands, which facts are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import TemplateError
from sonde.core.facts import Entity
from sonde.prompting.sequences import (
    Line,
    Separators,
    asked,
    examples,
    spaced,
    spans,
    told,
    training,
)
from tests.worlds import entity, fact, facts, world

GOLDEN = Path(__file__).parents[1] / "golden" / "lke" / "separators.txt"
LINES = (
    Line(fact="1", subject="Peru", object="Lima"),
    Line(fact="2", subject="New Zealand", object="Wellington"),
)
WAYS = {
    "space": Separators(),
    "colon": Separators(inside=" : ", between=" "),
    "comma": Separators(inside=" ", between=", "),
    "newline": Separators(inside=" : ", between="\n"),
    "sentence": Separators(inside="The capital of [X] is [Y].", between=" "),
}
TEXT = st.text(st.characters(exclude_characters="[]"), min_size=1, max_size=6)
SEPARATORS = st.builds(Separators, inside=TEXT, between=TEXT) | st.sampled_from([*WAYS.values()])


@st.composite
def lines(draw: st.DrawFn) -> list[Line]:
    pairs = draw(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
    return [Line(fact=str(i), subject=s, object=o) for i, (s, o) in enumerate(pairs)]


def test_prompts_are_worded_as_written_down() -> None:
    written = [f"{name}\n{asked(LINES, 'Chile', way)!r}" for name, way in WAYS.items()]
    assert "\n".join(written) + "\n" == GOLDEN.read_text(encoding="utf-8")


@given(lines(), SEPARATORS)
def test_a_span_holds_the_object_of_its_line(given_lines: list[Line], way: Separators) -> None:
    text = told(given_lines, way)
    found = [text[start:stop] for start, stop in spans(given_lines, way)]
    assert found == [line.object for line in given_lines]


@given(lines(), SEPARATORS)
def test_what_is_asked_ends_where_the_object_would_stand(
    given_lines: list[Line], way: Separators
) -> None:
    *before, last = given_lines
    start, _ = spans(given_lines, way)[-1]
    assert told(given_lines, way)[:start] == asked(before, last.subject, way)


def test_a_span_takes_the_spaces_before_it_but_nothing_else() -> None:
    text = told(LINES, WAYS["colon"])
    found = [text[start:stop] for start, stop in spaced(text, spans(LINES, WAYS["colon"]))]
    assert found == [" Lima", " Wellington"]


@pytest.mark.parametrize(
    "sentence", ["[X] is", "is [Y]", "[Y] is the capital of [X]", "[X] has [Y] as its capital"]
)
def test_a_sentence_must_have_its_answer_last(sentence: str) -> None:
    with pytest.raises(TemplateError):
        Separators(inside=sentence)


def test_only_facts_for_training_are_drawn() -> None:
    drawn = training(world(), "P36", [0])[0]
    assert {line.fact for line in drawn} == {
        f.id for f in facts() if f.relation == "P36" and f.split == "train"
    }


def test_the_seed_decides_the_order_and_not_which_facts_there_are() -> None:
    one, other = (training(world(), "P36", [seed])[0] for seed in (0, 1))
    assert one != other
    assert set(one) == set(other)


def test_a_new_fact_moves_no_other() -> None:
    before = training(world(), "P36", [3])[0]
    more = [*facts(), fact("P36", "Cuba", "Havana", split="train")]
    after = training(world(more), "P36", [3])[0]
    assert tuple(line for line in after if line.subject != "Cuba") == before


def test_a_subject_is_drawn_once_even_under_two_identifiers() -> None:
    held = [
        fact("P36", "Peru", "Lima", split="train"),
        fact("P36", entity("Peru", id="Q2"), "Cusco", id="Q2", split="train"),
    ]
    assert len(training(world(held), "P36", [0])[0]) == 1


def test_a_spare_takes_the_place_of_the_subject_that_is_asked_about() -> None:
    drawn = training(world(), "P36", [0])[0]
    second = Entity(id="x", names=("other name", drawn[1].subject))
    assert examples(drawn, second, 3) == (drawn[0], drawn[2], drawn[3])


def test_fewer_facts_than_asked_for_are_all_of_them() -> None:
    drawn = training(world(), "P36", [0])[0]
    assert examples(drawn, Entity(id="x", names=("Nowhere",)), 99) == drawn
