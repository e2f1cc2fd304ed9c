"""The answer is found among the tokens of the whole text, whatever the text holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, processors

from sonde.core.errors import PromptError
from sonde.core.prompts import Score
from sonde.engine.encode import CausalEncoder, Span, Start, opening
from sonde.engine.masked_batch import MaskedEncoder
from tests.tiny import byte_pairs, metaspaces, word_pieces

NOTHING = Start(id=None, always=False)
FIRST = Start(id=0, always=False)
SPECIAL = ("[MASK]", "<mask>", "<|im_end|>", "<|endoftext|>", "</s>", "<s>", "[CLS]", "[UNK]")
ALPHABET = st.sampled_from(["Paris", "York", "a", "is", " ", "é", "東", "🙂", ".", "\n", *SPECIAL])
TEXTS = st.lists(ALPHABET, max_size=6).map("".join)


def tokens(tokenizer: Tokenizer, ids: tuple[int, ...]) -> list[str]:
    return [tokenizer.id_to_token(id) or "?" for id in ids]


def answer(tokenizer: Tokenizer, span: Span) -> list[str]:
    return tokens(tokenizer, span.ids[span.start : span.stop])


def causal(prefix: str, option: str, suffix: str = "", start: Start = FIRST) -> Span:
    return CausalEncoder(byte_pairs(), start).encode(prefix, [option], suffix)[0]


def test_a_token_that_straddles_the_boundary_belongs_to_the_option() -> None:
    span = causal("The capital of France is ", "Paris")
    assert answer(byte_pairs(), span) == ["ĠParis"]
    assert tokens(byte_pairs(), span.ids[: span.start])[-1] == "Ġis"


def trimming() -> Tokenizer:
    """Byte-level BPE whose offsets leave spaces out, as Llama 3 and SmolLM2 have it."""
    tokenizer = Tokenizer.from_str(byte_pairs().to_str())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


@pytest.mark.parametrize("tokenizer", [byte_pairs(), trimming(), metaspaces()])
def test_every_option_accounts_for_the_space_before_it(tokenizer: Tokenizer) -> None:
    spans = CausalEncoder(tokenizer, FIRST).encode("is ", ["Paris", "Oslo", "東"], "")
    # one token with the space in it, and the space as a token of its own
    assert len(answer(tokenizer, spans[0])) == 1
    assert answer(tokenizer, spans[1])[0] in ("Ġ", "▁")
    assert {span.ids[: span.start] for span in spans} == {spans[0].ids[: spans[0].start]}


@given(prefix=TEXTS, option=TEXTS.filter(bool), suffix=TEXTS)
def test_the_tokens_of_an_answer_spell_it(prefix: str, option: str, suffix: str) -> None:
    tokenizer = byte_pairs()
    span = causal(prefix, option, suffix)
    assert option in tokenizer.decode(list(span.ids[span.start : span.stop]))
    assert tokenizer.decode(list(span.ids)) == prefix + option + suffix


def test_characters_of_several_bytes_are_found_whole() -> None:
    span = causal("日本 is ", "東京", " today")
    assert byte_pairs().decode(list(span.ids[span.start : span.stop])) == " 東京"
    assert byte_pairs().decode(list(span.ids[span.stop :])) == " today"


@pytest.mark.parametrize("text", ["<|im_end|>", "<|endoftext|>"])
def test_special_text_in_a_causal_prompt_is_taken_literally(text: str) -> None:
    special = byte_pairs().token_to_id(text)
    span = causal(f"The name of {text} is ", f"a{text}")
    assert special not in span.ids
    assert byte_pairs().decode(list(span.ids[span.start : span.stop])) == f" a{text}"


@pytest.mark.parametrize("suffix", ["?!.", " in France."])
def test_a_suffix_stands_apart_behind_the_answer(suffix: str) -> None:
    span = causal("It is ", "Paris", suffix)
    assert byte_pairs().decode(list(span.ids[span.stop : span.end])) == suffix


def test_a_suffix_of_punctuation_counts_only_where_it_is_wanted() -> None:
    plain, wanted = Score(options=("Paris",)), Score(options=("Paris",), punctuation=True)
    assert [want.after("?!.") for want in (plain, wanted)] == ["", "?!."]
    assert [want.after(" in France.") for want in (plain, wanted)] == [" in France."] * 2


def test_an_option_without_a_token_is_refused() -> None:
    with pytest.raises(PromptError, match="the answer '' has no token"):
        causal("It is ", "")
    bert = MaskedEncoder(word_pieces(), "[MASK]")
    with pytest.raises(PromptError, match="has no token"):
        bert.options("It is ", ["Paris", "\ufffd"], ".")


def test_the_start_token_opens_every_text_if_it_always_does() -> None:
    span = causal("It is ", "Paris", start=Start(id=0, always=True))
    assert span.ids[0] == 0
    assert answer(byte_pairs(), span) == ["ĠParis"]


def test_the_start_token_opens_only_an_answer_that_comes_first() -> None:
    assert causal("It is ", "Paris").ids[0] != 0
    first = causal("", "Paris", " is it")
    assert (first.ids[0], first.start) == (0, 1)
    assert answer(byte_pairs(), first) == ["Paris"]


def test_an_answer_that_comes_first_needs_a_token_to_start_from() -> None:
    assert causal("It is ", "Paris", start=NOTHING).start > 0
    with pytest.raises(PromptError, match="no token to start from"):
        causal("", "Paris", start=NOTHING)


def test_options_of_one_prompt_all_begin_alike() -> None:
    tokenizer = Tokenizer.from_str(byte_pairs().to_str())
    tokenizer.add_tokens([AddedToken("(X", normalized=False)])
    spans = CausalEncoder(tokenizer, FIRST).encode("(", ["X", "Paris"], "")
    # the first option melts into the bracket, so that nothing is before it
    assert [span.ids[0] for span in spans] == [0, 0]


MASKED = [(word_pieces(), "[MASK]"), (byte_pairs(mask=True), "<mask>")]


@pytest.mark.parametrize(("tokenizer", "mask"), MASKED, ids=["bert", "roberta"])
@given(prefix=TEXTS, suffix=TEXTS)
def test_a_hole_holds_the_one_mask_whatever_stands_around_it(
    tokenizer: Tokenizer, mask: str, prefix: str, suffix: str
) -> None:
    encoder = MaskedEncoder(tokenizer, mask)
    span = encoder.masked([(prefix, suffix)])[0]
    assert span.ids.count(encoder.mask_id) == 1
    assert span.ids[span.start] == encoder.mask_id
    special = {tokenizer.token_to_id(text) for text in SPECIAL} - {None, encoder.mask_id}
    unknown = {tokenizer.token_to_id("[UNK]")}
    assert not special.intersection(span.ids[1:-1]) - unknown


@pytest.mark.parametrize(("tokenizer", "mask"), MASKED, ids=["bert", "roberta"])
@given(prefix=TEXTS, suffix=TEXTS)
def test_the_two_ways_to_a_hole_agree_where_both_can_go(
    tokenizer: Tokenizer, mask: str, prefix: str, suffix: str
) -> None:
    if any(text in prefix + suffix for text in SPECIAL):
        return
    encoder = MaskedEncoder(tokenizer, mask)
    assert encoder.masked([(prefix, suffix)])[0] == encoder._literal_span(prefix, suffix)


def test_a_mask_that_a_tokenizer_finds_in_another_spelling_is_no_hole() -> None:
    tokenizer = Tokenizer.from_str(word_pieces().to_str())
    tokenizer.add_special_tokens([AddedToken("<HOLE>", normalized=True, special=True)])
    encoder = MaskedEncoder(tokenizer, "<HOLE>")
    span = encoder.masked([("The <hole> of France is ", ".")])[0]
    assert span.ids.count(encoder.mask_id) == 1
    assert tokens(tokenizer, span.ids[span.start + 1 :]) == [".", "[SEP]"]


def test_an_option_of_a_masked_model_is_taken_literally() -> None:
    span = MaskedEncoder(word_pieces(), "[MASK]").options("It is ", ["[MASK]"], ".")[0]
    assert word_pieces().token_to_id("[MASK]") not in span.ids
    assert len(span.ids[span.start : span.stop]) > 1


def test_a_word_is_one_token_as_it_stands_in_the_hole() -> None:
    encoder = MaskedEncoder(byte_pairs(mask=True), "<mask>")
    words = ["Paris", "York", "Oslo"]

    def known(prefix: str) -> list[str]:
        return tokens(encoder.tokenizer, tuple(encoder.single_tokens(words, prefix).values()))

    # " Oslo" is two tokens; at the start of a text there is no space to be part of a token
    assert known("It is ") == ["ĠParis", "ĠYork"]
    assert known("") == known("It (") == known("It is\n") == ["Paris", "Oslo"]


@pytest.mark.parametrize("prefix", ["It is ", "", "It (", "It is\n"])
@pytest.mark.parametrize(("tokenizer", "mask"), MASKED, ids=["bert", "roberta"])
def test_filling_and_scoring_mean_the_same_token_by_a_word(
    tokenizer: Tokenizer, mask: str, prefix: str
) -> None:
    encoder = MaskedEncoder(tokenizer, mask)
    words = ["Paris", "York", "Oslo", "Norwegian", "and"]
    known = encoder.single_tokens(words, prefix)
    scored = dict(zip(words, encoder.options(prefix, words, "."), strict=True))
    single = {w: s.ids[s.start] for w, s in scored.items() if s.stop == s.start + 1}
    assert known
    assert known == single


def test_a_token_that_holds_more_than_the_word_is_not_the_word() -> None:
    tokenizer = Tokenizer.from_str(byte_pairs(mask=True).to_str())
    tokenizer.add_tokens([AddedToken("(X", normalized=False)])
    assert MaskedEncoder(tokenizer, "<mask>").single_tokens(["X"], "It (") == {}


def test_an_unknown_word_is_not_a_token() -> None:
    encoder = MaskedEncoder(word_pieces(), "[MASK]")
    assert encoder.single_tokens(["東", "Paris"], "It is ").keys() == {"Paris"}


def test_truncation_and_padding_of_the_tokenizer_are_not_used() -> None:
    tokenizer = Tokenizer.from_str(word_pieces().to_str())
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=20)
    plain = MaskedEncoder(word_pieces(), "[MASK]").masked([("The capital of France is ", ".")])
    assert MaskedEncoder(tokenizer, "[MASK]").masked([("The capital of France is ", ".")]) == plain
    whole, short = (CausalEncoder(t, FIRST) for t in (word_pieces(), tokenizer))
    text = ("The capital of France is ", ["Paris"], " in Norway")
    assert short.encode(*text) == whole.encode(*text)


def test_a_tokenizer_without_the_mask_is_refused() -> None:
    with pytest.raises(PromptError, match=r"no mask token '\[MASK\]'"):
        MaskedEncoder(byte_pairs(), "[MASK]")


def test_what_opens_a_text_depends_on_the_last_character_only() -> None:
    assert opening(" ") == opening("") == ""
    assert opening("a b ") == opening("c ") == ". "
    assert opening('He said "') == '"'
