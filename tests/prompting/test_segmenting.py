"""Words of scripts without spaces, as their segmenters cut them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import MissingExtra, UsageError
from sonde.prompting import segmenting
from sonde.prompting.matching import (
    answer_contains_name,
    begins_with_name,
    check_language,
    comparison_language,
    count_words,
    is_contained,
    lemmatize,
    one_contains_other,
)
from sonde.prompting.segmenting import PACKAGES, check_segmenter


def installed(language: str) -> pytest.MarkDecorator:
    packages = PACKAGES[language][1]
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


japanese, chinese, thai = installed("ja"), installed("zh"), installed("th")


@japanese
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("東京です。", "東京"),
        ("答えは「ベネチア」です", "ヴェネツィア"),
        ("南アフリカ共和国", "アフリカ"),
        ("キエフ県", "キエフ"),
        ("アルフレッド・アドラーという人です", "アルフレッド・アドラー"),
        ("コンピュータ", "コンピューター"),
        ("1867年です", "1867"),
        ("Appleの製品", "apple"),
        ("フランス語です", "フランス語"),
    ],
)
def test_a_japanese_answer_holds_the_words_of_a_name(answer: str, name: str) -> None:
    assert answer_contains_name(answer, [name], "ja")


@japanese
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("東京都", "京都"),
        ("フランス語", "フランス"),
        ("日本人です", "日本"),
        ("ルーマニア", "ローマ"),
        ("オマーン", "マン"),
        ("", "東京"),
        ("。", "東京"),
    ],
)
def test_letters_that_are_not_words_are_no_japanese_answer(answer: str, name: str) -> None:
    assert not answer_contains_name(answer, [name], "ja")


@japanese
def test_japanese_words_are_counted_as_a_reader_would() -> None:
    texts = ("東京", "アメリカ合衆国", "東京です。", "アルフレッド・アドラー", "Apple", "。", "")
    assert [count_words(text, "ja") for text in texts] == [1, 1, 2, 2, 1, 0, 0]
    assert count_words("東京") is None


@chinese
def test_chinese_is_cut_into_words() -> None:
    assert answer_contains_name("法国的首都是巴黎。", ["巴黎"], "zh")
    assert not answer_contains_name("东京都", ["京都"], "zh")
    assert count_words("法国的首都是巴黎。", "zh") == 5


@chinese
@pytest.mark.parametrize(
    ("answer", "name", "right"),
    [
        ("北京市", "北京", True),
        ("广东省广州市", "广州", True),
        ("他住在纽约市。", "纽约", True),
        ("北京", "北京市", False),  # a part of a name is not enough
        ("城市", "城", False),
        ("北京大学", "北京", False),
    ],
)
def test_a_chinese_place_may_have_its_kind_behind_its_name(
    answer: str, name: str, right: bool
) -> None:
    assert answer_contains_name(answer, [name], "zh") is right
    assert answer_contains_name(answer, [answer], "zh")
    assert count_words("北京市", "zh") == 1


@thai
def test_thai_is_cut_into_words() -> None:
    assert answer_contains_name("เมืองหลวงของฝรั่งเศสคือปารีส", ["ปารีส"], "th")
    assert not answer_contains_name("โรมาเนีย", ["โรม"], "th")
    assert count_words("เมืองหลวงของฝรั่งเศสคือปารีส", "th") == 5


@japanese
@given(st.text("東京都大阪アフリカスイタのはですAb1 。・ー", max_size=12))
def test_every_text_is_like_itself_and_holds_itself(text: str) -> None:
    said = lemmatize(text, "ja")
    assert one_contains_other(said, said) and is_contained(said, said) == bool(said)
    assert bool(said) == bool(count_words(text, "ja"))
    assert lemmatize(f" {text}。", "ja") == said


@pytest.mark.parametrize("language", PACKAGES)
def test_a_language_without_its_segmenter_names_the_command(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmenting, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"run: pip install 'sonde\[{language}\]'") as refused:
        check_language(language)
    assert "\n" not in str(refused.value)
    with pytest.raises(MissingExtra):
        check_segmenter(language)


def test_an_unknown_language_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"language 'xx'; known: .*\bja\b.*\bzh\b"):
        check_language("xx")


def test_relations_choose_their_language_unless_one_is_set() -> None:
    assert [comparison_language("auto", own) for own in ("", "ja", "de")] == ["en", "ja", "de"]
    assert comparison_language("auto", "ta") == "none"
    assert [comparison_language(each, "ja") for each in ("en", "none")] == ["en", "none"]


def test_a_japanese_text_begins_with_a_name_that_hiragana_follows() -> None:
    assert (
        begins_with_name("東京です", "東京")
        and begins_with_name("東京", "東京")
        and begins_with_name("東京、大阪", "東京")
    )
    assert not begins_with_name("東京都", "東京") and not begins_with_name(
        "アフリカンダ", "アフリカ"
    )
    assert not begins_with_name("Oslofjord", "Oslo")
