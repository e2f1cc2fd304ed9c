"""Separators by name."""

from __future__ import annotations

import pytest

from sonde.core.errors import TemplateError, UsageError
from sonde.prompting.sequences import NAMES, USUAL, Separators, named_separators


def test_the_usual_separators_are_spaces() -> None:
    assert named_separators(USUAL) == Separators()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_stands_for_its_text(name: str) -> None:
    made = named_separators(f"{name}/{name}")
    assert made.inside == made.between == NAMES[name]


def test_what_is_no_name_stands_for_itself() -> None:
    made = named_separators("The capital of [X] is [Y]./\\n\\n")
    assert made.frame == ("The capital of ", " is ", ".")
    assert made.between == "\n\n"


@pytest.mark.parametrize("word", ["space", "", "/", "space/", "/space"])
def test_half_a_pair_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="INSIDE/BETWEEN"):
        named_separators(word)


def test_a_sentence_that_answers_first_is_refused() -> None:
    with pytest.raises(TemplateError):
        named_separators("[Y] is the capital of [X]./space")
