"""A text tokenised in parts has the tokens it has as a whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from sonde.engine.encode import CausalEncoder, Start, gathered, lengthened
from sonde.engine.seams import Beginnings, ends_word, has_seams
from tests import tiny

TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "byte pairs": tiny.byte_pairs,
    "metaspaces": tiny.metaspaces,
    "word pieces": tiny.word_pieces,
}
WORDS = st.sampled_from(
    ["Paris", "is", "New", "York", "1867", "é東", "(France)", "it's", "Par", ",", "—", "\n", "a  b"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
OPTIONS = st.lists(
    st.sampled_from(["Paris", "Par is", "New York", "1867", "東京", "(x", "_a", "é", "York's"]),
    min_size=1,
    max_size=5,
    unique=True,
).map(tuple)


SUFFIXES = st.sampled_from(["", ".", " in"])


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("start", [Start(id=0, always=True), Start(id=0, always=False)])
@given(
    prompts=st.lists(
        st.tuples(
            TEXTS, st.sampled_from(["", " ", "  "]), OPTIONS, st.sampled_from(["", ".", " in"])
        ),
        min_size=1,
        max_size=5,
    ),
    ahead=st.booleans(),
)
def test_parts_have_the_tokens_of_the_whole(
    kind: str, start: Start, prompts: list[tuple[str, str, tuple[str, ...], str]], ahead: bool
) -> None:
    encoder = CausalEncoder(TOKENIZERS[kind](), start)
    if ahead:
        encoder.prepare((text + space, options, suffix) for text, space, options, suffix in prompts)
    for text, space, options, suffix in prompts:
        whole = encoder.encode(text + space, options, suffix)
        found = encoder.branch(text + space, options, suffix)
        assert [lengthened(span, found.head) for span in found.spans] == whole
        assert found.head
    assert encoder.seams == has_seams(encoder.tokenizer)


@given(texts=st.lists(TEXTS, min_size=2, max_size=6))
def test_a_beginning_that_was_seen_before_is_tokenised_as_if_it_were_new(texts: list[str]) -> None:
    tokenizer = tiny.byte_pairs()
    again = Beginnings(tokenizer)
    for text in (first + " York " + last for first in texts for last in texts):
        assert again.encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_only_what_is_new_is_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    beginnings = Beginnings(tiny.byte_pairs())
    long = "Paris is the capital of France " * 20
    beginnings.encode(long + "and Oslo")
    fed: list[str] = []

    class Watching:
        def encode(self, text: str, **settings: object) -> object:
            fed.append(text)
            return tiny.byte_pairs().encode(text, add_special_tokens=False)

    monkeypatch.setattr(beginnings, "tokenizer", Watching())
    beginnings.encode(long + "and New York")
    assert fed == ["France and New York"]


def test_a_vocabulary_with_tokens_of_two_words_has_no_seams() -> None:
    vocabulary = {"N": 0, "e": 1, "Ġ": 2, "eĠ": 3, "NeĠ": 4}
    joined = Tokenizer(models.BPE(vocabulary, [("e", "Ġ"), ("N", "eĠ")]))
    assert not has_seams(joined)


def test_a_tokenizer_that_splits_elsewhere_has_no_seams() -> None:
    odd = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    odd.pre_tokenizer = pre_tokenizers.Split(".", "isolated")
    assert not has_seams(odd)


def test_parts_that_differ_from_the_whole_are_given_up(caplog: pytest.LogCaptureFixture) -> None:
    encoder = CausalEncoder(tiny.byte_pairs(), Start(id=0, always=False))
    encoder.beginnings.encode = lambda text: [1, 2, 3]  # type: ignore[method-assign]
    found = encoder.branch("The capital is ", ("Paris", "Oslo"), "")
    assert found == gathered(encoder.encode("The capital is ", ("Paris", "Oslo"), ""))
    assert "joins words" in caplog.text and not encoder.seams


def test_an_option_that_opens_with_no_letter_needs_the_whole_text() -> None:
    assert ends_word("It is ")
    assert not any(map(ends_word, ("It is", " ", "It is  ")))
