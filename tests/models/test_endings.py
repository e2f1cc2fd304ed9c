"""Where a written text ends, whatever tokens it is written with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders

from sonde.core.prompts import Generate
from sonde.models.torch.decode.steps import End, Endings, end_tokens
from tests.tiny import byte_pairs, metaspaces


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
