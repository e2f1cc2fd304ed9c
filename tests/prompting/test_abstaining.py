"""Answers that say that the model does not know are told from answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.prompting.abstaining import (
    PHRASES,
    build_abstention_test,
    check_abstaining_setting,
    normalize_words,
)


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "i dont know",
        " I don’t know who that is.\nQ: And",
        "Unknown",
        "UNKNOWN.",
        "N/A",
        "Not sure, maybe Rome",
        "It is not known.",
        "I cannot answer that.",
        "As an AI language model, I",
        "Keine Ahnung!",
        "Je ne sais pas",
        "No lo sé.",
        "我不知道这个问题",
        "わかりません。",
    ],
)
def test_not_knowing_is_heard(answer: str) -> None:
    assert build_abstention_test()(answer)


@pytest.mark.parametrize(
    "answer",
    ["", "Paris", "Unknown Pleasures", "N. A. Smith", "Idkerberga", "The Unsure Man", "Nowhere"],
)
def test_an_answer_is_no_abstention(answer: str) -> None:
    assert not build_abstention_test()(answer)


def test_lists_are_chosen_by_language_and_phrases_are_added() -> None:
    assert build_abstention_test(("de",))("Keine Ahnung") and not build_abstention_test(("de",))(
        "I don't know"
    )
    assert not build_abstention_test(("none",))("I don't know")
    own = build_abstention_test(("none", "pass", "ask me later"))
    assert own("Pass.") and own("Ask me later, please") and not own("Password")


@pytest.mark.parametrize("language", PHRASES)
def test_every_phrase_of_a_list_abstains_whatever_its_case(language: str) -> None:
    abstains = build_abstention_test((language,))
    for phrase in PHRASES[language]:
        assert abstains(phrase) and abstains(f" {phrase.upper()}."), phrase


@given(st.text())
def test_words_are_the_same_when_they_are_looked_at_again(text: str) -> None:
    assert normalize_words(normalize_words(text)) == normalize_words(text)


def test_a_list_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no list of phrases for 'xx'; known: de, en"):
        check_abstaining_setting(("en", "xx"))
    with pytest.raises(UsageError, match="no list of phrases for '…'"):
        check_abstaining_setting(("…",))
