"""Answer matching: what counts as right, what as the same."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import UsageError
from sonde.prompting.matching import (
    PLAIN,
    answer_contains_name,
    answers_agree,
    check_language,
    clean_answer,
    count_words,
    is_contained,
    lemmatize,
    one_contains_other,
)

WORDS = st.sampled_from(
    ["a", "the", "guitar", "guitars", "New", "York", "city", "Paris", "東京", "1,000", "U.S.", "É"]
)
TEXTS = st.one_of(st.text(max_size=20), st.lists(WORDS, max_size=5).map(" ".join))


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (" Paris.", "Paris"),
        ("PARIS", "paris"),
        ("a guitar", "guitar"),
        ("guitars", "a guitar"),
        ("He played the guitars", "guitar"),
        ("Hague", "The Hague"),
        ("the Hague, I think", "The Hague"),
        ("It is New York City", "New York"),
        ("Jean Paul Sartre", "Jean-Paul Sartre"),
        ("rock and-roll", "rock and roll"),
        ("O’Brien's house", "O'Brien"),
        ("Peru's", "Peru"),
        ("Washington DC", "Washington, D.C."),
        ("J. R. R. Tolkien", "J.R.R. Tolkien"),
        ("the USA", "U.S.A."),
        ("Germans", "German"),
        ("women", "woman"),
        ("caf\u00e9", "cafe\u0301"),
        ("die Straße", "Straße"),
        ("STRASSE", "straße"),
        ("東京です", "東京"),
        ("京都。", "京都"),
        ("「京都」 日本", "京都"),
        ("ジョン・レノン", "レノン"),
        ("首都はパリです", "パリ"),
        ("らーめんです", "らーめんです"),
        ("1990年", "1990"),
        ("東京 Tokyo", "東京"),
        ("กรุงเทพ มหานคร", "กรุงเทพ"),
        ("ភ្នំពេញ។", "ភ្នំពេញ"),
        ("Ｔｏｋｙｏ", "Tokyo"),
        ("भाषा हिन्दी है", "हिन्दी"),
        ("in 1990.", "1990"),
        ("1000 people", "1,000"),
        ("C++ of course", "C++"),
    ],
)
def test_an_answer_that_holds_the_name_is_right(answer: str, name: str) -> None:
    assert answer_contains_name(answer, [name])
    assert answers_agree(answer, name)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("city", "Tokyo City"),
        ("Romania", "Oman"),
        ("New City York", "New York"),
        ("C", "C++"),
        ("3.5", "3"),
        ("1990s", "1990"),
        ("जर्मन", "जर्म"),
        ("東京都", "京都"),
        ("東京都です", "京都"),
        ("京都市", "京都"),
        ("南アフリカ", "アフリカ"),
        ("北アイルランドの", "アイルランド"),
        ("北京大学", "北京"),
        ("กรุงเทพมหานคร", "กรุงเทพ"),
        ("ភ្នំពេញ", "ភ្នំ"),
        ("ວຽງຈັນ", "ວຽງ"),
        ("ရန်ကုန်", "ရန်"),
        ("ལྷ་ས", "ལྷ"),
        ("", "Paris"),
        ("...", "Paris"),
        ("the", "The Hague"),
        ("Paris", ""),
    ],
)
def test_a_part_of_the_name_or_of_a_word_is_not_right(answer: str, name: str) -> None:
    assert not answer_contains_name(answer, [name])


def test_any_name_will_do() -> None:
    assert answer_contains_name("Holland", ["the Netherlands", "Holland"])
    assert not answer_contains_name("Holland", [])


def test_consistency_goes_both_ways_and_correctness_one() -> None:
    assert answers_agree("city", "Tokyo City") and answers_agree("Tokyo City", "city")
    assert answer_contains_name("Tokyo City", ["city"]) and not answer_contains_name(
        "city", ["Tokyo City"]
    )


def test_matching_is_not_transitive() -> None:
    assert answers_agree("New York", "York") and answers_agree("York", "York Minster")
    assert not answers_agree("New York", "York Minster")


def test_an_empty_answer_is_like_an_empty_one_alone() -> None:
    assert answers_agree("", " . ")
    assert not answers_agree("", "Paris") and not answers_agree("Paris", "\n")


def test_the_language_says_which_words_are_one() -> None:
    assert answers_agree("die Gitarren", "eine Gitarre", "de")
    assert not answers_agree("Gitarren", "Gitarre", PLAIN)
    assert answers_agree("les villes", "ville", "fr")
    assert not answers_agree("guitars", "guitar", PLAIN)


def test_an_unknown_language_is_refused_with_those_there_are() -> None:
    check_language("en")
    check_language(PLAIN)
    with pytest.raises(UsageError, match=r"no list of lemmas for language 'xx'.*\ben\b.*'none'"):
        check_language("xx")


def test_words_are_counted_by_spaces_and_punctuation_is_none() -> None:
    texts = ("", " .", "Paris", " Paris.", "Jean-Paul", "New York", "New York .", "«Rome»", "서울")
    assert [count_words(text) for text in texts] == [0, 0, 1, 1, 1, 2, 2, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "東京",
        "東京は日本の首都です。",
        "ﾄｳｷﾖｳ",
        "กรุงเทพ",
        "ភ្នំពេញ",
        "ວຽງຈັນ",
        "ရန်ကုန်",
        "ལྷ་ས",
        "Tokyo 東京",
    ],
)
def test_words_of_scripts_without_spaces_are_not_counted(text: str) -> None:
    assert count_words(text) is None


UNSPACED = ("東京都市南", "アフリカ", "กรุงเทพ", "ភ្នំពេញ", "ວຽງຈັນ", "ရန်ကုန်", "ལྷས")
RUNS = st.sampled_from(UNSPACED).flatmap(lambda script: st.text(script, min_size=1, max_size=4))


@given(RUNS, st.data())
def test_a_name_inside_a_run_of_characters_is_not_right(name: str, data: st.DataObject) -> None:
    script = next(script for script in UNSPACED if set(name) <= set(script))
    around = st.text(script, max_size=3)
    before, after = data.draw(around), data.draw(around)
    assert answer_contains_name(f"{before}{name}{after}", [name]) == (before == after == "")
    assert answer_contains_name(f"{before}、{name}。{after}", [name])
    assert count_words(f"{before}{name}{after}") is None


SPACED = st.text(st.sampled_from("aÉß9.,+#-_ '’、。؟？हिन्दी서울дом\u0301"), max_size=20)


@given(SPACED)
def test_scripts_with_spaces_are_cut_as_ever(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text)
    joined = re.sub(
        r"\b[^\W\d_](?:\.\s?[^\W\d_])+\b\.?",
        lambda found: re.sub(r"[.\s]", "", found[0]) + " ",
        plain,
    )
    marks = "".join(c for c in set(joined) if unicodedata.category(c)[0] == "M")
    word = rf"(?:[^\W_]|[{re.escape(marks)}])+[+#]*" if marks else r"[^\W_]+[+#]*"
    found = re.findall(rf"\d+(?:[.,]\d+)+|{word}", joined)
    numbers = re.compile(r"\d{1,3}(?:,\d{3})+")
    cut = [w.replace(",", "") if numbers.fullmatch(w) else w.casefold() for w in found]
    assert lemmatize(text, PLAIN) == " ".join(cut)
    counted = sum(any(map(str.isalnum, piece)) for piece in text.split())
    assert count_words(text) == counted


@given(TEXTS)
def test_every_answer_is_like_itself_however_it_is_written(text: str) -> None:
    assert answers_agree(text, text)
    assert answers_agree(text, f"  {text} ")
    assert answer_contains_name(text, [text]) == bool(lemmatize(text))


@given(TEXTS, TEXTS)
def test_a_right_answer_is_consistent_with_the_name_and_order_does_not_matter(
    one: str, other: str
) -> None:
    assert answers_agree(one, other) == answers_agree(other, one)
    if answer_contains_name(one, [other]):
        assert answers_agree(one, other)


@given(TEXTS, TEXTS, TEXTS)
def test_words_around_an_answer_do_not_make_it_wrong(before: str, name: str, after: str) -> None:
    said = lemmatize(name, PLAIN)
    joined = " ".join(filter(None, (lemmatize(before, PLAIN), said, lemmatize(after, PLAIN))))
    assert is_contained(said, joined) == bool(said)


@given(st.lists(WORDS, max_size=4), st.lists(WORDS, max_size=4))
def test_one_is_within_the_other_if_its_lemmas_are_a_run_of_the_others(
    one: list[str], other: list[str]
) -> None:
    a, b = lemmatize(" ".join(one)), lemmatize(" ".join(other))
    part, whole = a.split(), b.split()
    runs = [whole[i : i + len(part)] for i in range(len(whole))]
    assert is_contained(a, b) == (bool(part) and part in runs)
    assert one_contains_other(a, b) == (a == b or is_contained(a, b) or is_contained(b, a))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" Paris.\n\nQ: next", "Paris"),
        ("\n Paris", "Paris"),
        ("", ""),
        (" . ", ""),
        ("Washington, D.C.", "Washington, D.C"),
        ("100 %", "100"),
    ],
)
def test_an_answer_is_its_first_line_without_closing_punctuation(text: str, kept: str) -> None:
    assert clean_answer(text) == kept


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean_answer(clean_answer(text)) == clean_answer(text)
