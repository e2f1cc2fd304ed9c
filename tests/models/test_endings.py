"""Where a written text ends, whatever tokens it is written with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders

from sonde.core.prompts import Generate
from sonde.engine.endings import End, Endings
from sonde.engine.token_texts import TokenTexts
from sonde.models.torch.decode.steps import end_tokens
from tests.tiny import byte_pairs, metaspaces, word_pieces


def llama2() -> Tokenizer:
    """Sentence pieces with the decoder that Llama 2 has."""
    tokenizer = metaspaces()
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    return tokenizer


TOKENIZERS = {"bytes": byte_pairs(), "pieces": llama2()}
TEXTS = st.text("Paris é東\n.o🙂", max_size=8)


def ids(tokenizer: Tokenizer, *tokens: str) -> tuple[int, ...]:
    vocabulary = tokenizer.get_vocab()
    return tuple(vocabulary[token] for token in tokens)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(prompt=TEXTS.filter(lambda text: text.strip(" ")), text=TEXTS)
def test_what_is_written_is_read_back(kind: str, prompt: str, text: str) -> None:
    """Tokenising the whole gives the ids of the prompt and then those of the text."""
    tokenizer = TOKENIZERS[kind]
    whole = tokenizer.encode(prompt + text, add_special_tokens=False)
    opening = tokenizer.encode(prompt, add_special_tokens=False).ids
    if whole.ids[: len(opening)] != opening:
        return  # the text goes into the prompt's last token
    endings = Endings(tokenizer, frozenset())
    path = tuple(whole.ids[len(opening) :])
    assert endings.text(endings.tail(opening), path) == text


def test_the_space_of_a_first_piece_is_kept() -> None:
    endings = Endings(llama2(), frozenset())
    path = ids(endings.tokenizer, "▁Paris")
    for prompt in ("<s>", "▁is", "s"):
        assert endings.text(endings.tail(ids(endings.tokenizer, prompt)), path) == " Paris"


def test_a_prompt_that_ends_in_bytes_is_decoded_from_a_whole_character() -> None:
    endings = Endings(llama2(), frozenset())
    opening = endings.tokenizer.encode("is東", add_special_tokens=False).ids
    tail = endings.tail(opening)
    assert len(tail) == 3
    assert endings.text(tail, ids(endings.tokenizer, "<0xE6>", "<0x9D>", "<0xB1>")) == "東"


def ended(path: tuple[str, ...], until: str = "\n", most: int = 9) -> tuple[End | None, int]:
    """How a path of byte-level tokens ends, and how many of them hold text."""
    tokenizer = byte_pairs()
    endings = Endings(tokenizer, frozenset(ids(tokenizer, "<|endoftext|>", "<|im_end|>")))
    tail, tokens = ids(tokenizer, "A"), ids(tokenizer, *path)
    end = endings.end(tail, tokens, Generate(most=most, until=until))
    return end, -1 if end is None else endings.said(tail, tokens, end.text)


@pytest.mark.parametrize(
    ("path", "until", "text", "said"),
    [
        (("ĠParis", "Ċ"), "\n", " Paris", 1),
        (("ĠParis", "<|endoftext|>"), "\n", " Paris", 1),
        (("ĠParis", "<|im_end|>"), "", " Paris", 1),
        (("<|im_end|>",), "\n", "", 0),
        (("Ċ",), "\n", "", 0),
        (("ĠParis", "ĠFrance"), "F", " Paris ", 2),
        (("ĠParis", ".", "Ċ", "Ċ"), "\n\n", " Paris.", 2),
        (("Ġ", "æ", "Ŀ", "±", "Ċ"), "\n", " 東", 4),
        (("Ġ", "æ", "Ŀ", "±"), "東", " ", 1),
    ],
)
def test_a_text_ends_at_its_end(path: tuple[str, ...], until: str, text: str, said: int) -> None:
    assert ended(path, until) == (End(text=text, finished=True), said)
    assert ended(path[:-1], until)[0] is None


def test_a_text_that_only_the_limit_ends_is_not_finished() -> None:
    assert ended(("ĠParis",), most=1)[0] == End(text=" Paris", finished=False)
    assert ended(("Ċ",), most=1)[0] == End(text="", finished=True)


def suffixes() -> Tokenizer:
    """Words that end in a mark which becomes a space before the next, as in GPT-1."""
    tokenizer: Tokenizer = Tokenizer.from_str(byte_pairs().to_str())
    tokenizer.decoder = decoders.BPEDecoder("s")
    return tokenizer


def metaspaced() -> Tokenizer:
    """Sentence pieces with the decoder that T5 has."""
    tokenizer: Tokenizer = Tokenizer.from_str(metaspaces().to_str())
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


DECODERS = {
    "bytes": byte_pairs(),
    "pieces": llama2(),
    "metaspaces": metaspaced(),
    "words": word_pieces(),
    "suffixes": suffixes(),
}


@pytest.mark.parametrize("kind", DECODERS)
@given(data=st.data())
def test_pieces_tell_where_a_text_may_end_and_what_it_says(kind: str, data: Any) -> None:
    """Only after a token that may close it, or at its limit, does a text have to be looked at."""
    tokenizer = DECODERS[kind]
    size = tokenizer.get_vocab_size() + 2  # a model may have tokens that its tokenizer has not
    tokens = st.integers(0, size - 1)
    tail = tuple(data.draw(st.lists(tokens.filter(lambda i: i < size - 2), min_size=1, max_size=3)))
    path = tuple(data.draw(st.lists(tokens, min_size=1, max_size=8)))
    plain = Endings(tokenizer, frozenset({5}))
    whole = plain.text(tail, path)
    cuts = [whole[i:j] for i in range(len(whole)) for j in range(i + 1, min(i + 4, len(whole)) + 1)]
    until = data.draw(st.sampled_from(["", "\n", " ", "é", "東", "is", *cuts]))
    pieces = TokenTexts(tokenizer, size)
    quick = Endings(tokenizer, frozenset({5}), pieces)
    closing, want = pieces.closing(until), Generate(most=9, until=until)
    for n in range(1, len(path) + 1):
        expected = plain.end(tail, path[:n], want)
        assert quick.end(tail, path[:n], want) == expected
        assert quick.text(tail, path[:n]) == plain.text(tail, path[:n])
        if expected is not None:
            odd = not pieces.opens_whole(tail)
            assert closing[path[n - 1]] or path[n - 1] == 5 or odd
            assert quick.said(tail, path[:n], expected.text) == plain.said(
                tail, path[:n], expected.text
            )
            return


@pytest.mark.parametrize("kind", ["bytes", "pieces", "words"])
def test_few_tokens_have_to_be_looked_at(kind: str) -> None:
    pieces = TokenTexts(DECODERS[kind], DECODERS[kind].get_vocab_size())
    assert pieces.closing("\n").sum() <= 2
    assert sum(text is None for text in pieces.plain) <= 160


@pytest.mark.parametrize(
    ("generation", "config", "tokenizer", "expected"),
    [([2, 5], 1, 0, {2, 5}), (None, 1, 0, {1}), (None, None, 0, {0}), (None, None, None, set())],
)
def test_the_tokens_that_end_a_text_are_those_the_model_names(
    generation: Any, config: Any, tokenizer: Any, expected: set[int]
) -> None:
    made: list[Any] = [SimpleNamespace(eos_token_id=id) for id in (generation, config, tokenizer)]
    model = SimpleNamespace(generation_config=made[0], config=made[1])
    loaded: Any = SimpleNamespace(model=model, tokenizer=made[2])
    assert end_tokens(loaded) == expected
