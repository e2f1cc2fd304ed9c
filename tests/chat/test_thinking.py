"""How many tokens a chat model has for its thoughts and for its answer, whatever way it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.abilities import as_given
from sonde.core.prompts import Generate, Prompt, Sample, prompts_of, put
from sonde.engine.endings import Endings, Thoughts
from sonde.engine.token_texts import TokenTexts
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.served.asks import Written
from sonde.models.served.tokens import read_written
from sonde.models.torch import reference
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from tests.chat.templates import chat_model, tokenizer
from tests.parity.writing import assert_same_text, drawn, written
from tests.servers.agreement import write
from tests.servers.answering import Answering, Face, serving
from tests.tiny import spoiled

OPENED, CLOSED = "<think>", "</think>"
PARTS = (OPENED, CLOSED, "\n\n", " Paris", "Oslo", " ", "<", "think>", "東", ".", "k>Oslo", "<thin")
OWN, THINKING = 4, 9


def split(parts: list[str], made: Any) -> list[int]:
    """The tokens of each part, so that parts are written in several ways."""
    return [id for part in parts for id in made.encode(part, add_special_tokens=False)]


@pytest.mark.parametrize("thoughts", ["never", "may be", "begun"])
@pytest.mark.parametrize("quick", [True, False])
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=9),
    own=st.integers(1, 6),
    thinking=st.integers(0, 14),
    until=st.sampled_from(["", "\n", "O"]),
)
def test_a_text_ends_where_the_naive_way_ends_it(
    thoughts: Thoughts, quick: bool, parts: list[str], own: int, thinking: int, until: str
) -> None:
    made = tokenizer("qwen3")
    backend = made.backend_tokenizer
    opening, path = split(["It is"], made), split(parts, made)
    pieces = TokenTexts(backend, len(made)) if quick else None
    endings = Endings(backend, frozenset({0}), pieces, thoughts)
    naive = reference.Texts(backend, opening, {0}, thoughts)
    want = Generate(most=own + thinking, until=until, thinking=thinking)
    tail = endings.tail(opening)
    for count in range(1, len(path) + 1):
        ids = opening + path[:count]
        text, finished = naive.read(ids, until)
        end = endings.end(tail, tuple(path[:count]), want)
        assert (end is not None) is (finished or naive.full(ids, want))
        if end is not None:
            found = endings.generated(tail, tuple(path[:count]), [-1.0] * count, end)
            assert (end.thoughts + end.text, end.finished) == (text, finished)
            assert count - naive.thought(ids) >= len(found.logps) > 0 or not end.text
            return


@pytest.mark.parametrize(
    ("text", "kept", "tokens"),
    [
        ("Paris Paris Paris Paris Paris Paris", "Paris Paris Paris Paris", 4),
        ("<think> Paris</think>\n\n" + " Paris" * 6, "Paris Paris Paris Paris", 4),
        ("<think>" + " Paris" * 20, "", 0),
        ("<think></think> Paris<|im_end|>", "Paris", 1),
    ],
)
def test_thoughts_and_answer_have_a_limit_each(text: str, kept: str, tokens: int) -> None:
    made = tokenizer("qwen3", more=(OPENED, CLOSED))
    backend, ends = made.backend_tokenizer, {made.convert_tokens_to_ids("<|im_end|>")}
    want = Generate(most=OWN + THINKING, until="", thinking=THINKING)
    path = tuple(made.encode(text, add_special_tokens=False))
    for pieces in (None, TokenTexts(backend, len(made))):
        endings = Endings(backend, frozenset(ends), pieces, "may be")
        tail = endings.tail(made.encode("It is", add_special_tokens=False))
        tries = ((n, endings.end(tail, path[:n], want)) for n in range(1, len(path) + 1))
        count, end = next((n, end) for n, end in tries if end is not None)
        found = endings.generated(tail, path[:count], [-1.0] * count, end)
        assert (found.text, len(found.logps)) == (kept, tokens)
        assert count <= THINKING or kept


def thinker(folder: Path, name: str) -> Path:
    """A model that writes little but thoughts and their ends, names and lines."""
    made = tokenizer(name, more=(OPENED, CLOSED))
    chat_model(folder, name, more=(OPENED, CLOSED))
    ids = split([OPENED, OPENED, CLOSED, CLOSED, " Paris", "Oslo", "\n", ">", "<|im_end|>"], made)

    def loud(head: torch.Tensor) -> torch.Tensor:
        rows = torch.randn(len(ids), head.shape[1], generator=torch.Generator().manual_seed(3))
        head *= 0.01
        head[ids] = rows
        return head

    return spoiled(folder, "lm_head", loud)


def loaded(folder: Path) -> CausalModel:
    options = LoadOptions(device="cpu", chat="always", chat_thinking=THINKING)
    return CausalModel(load_folder("hf:chat", folder, options, weights="w"))


def asked(model: Any, *wants: Any) -> list[Prompt]:
    texts = (
        "Where is Paris?",
        "Where is Oslo?",
        "Which one is it?",
        "Name Norway",
        "A city",
        "1 2",
    )
    prompts = [write(text, want) for text in texts for want in wants]
    return list(prompts_of(as_given(model, put(prompts).blocks)))


@pytest.mark.parametrize("name", ["qwen3", "r1"])
def test_every_way_of_writing_keeps_both_limits(name: str, tmp_path: Path) -> None:
    model = loaded(thinker(tmp_path, name))
    texts = asked(model, Generate(most=OWN, until=""), Generate(most=OWN))
    draws = asked(model, Sample(count=60, most=OWN, until=""), Sample(count=60, most=2))
    naive = reference.generate_causal(
        model.model, model.encoder, texts, model.endings.ends, model.endings.thoughts
    )
    expected = [answer for _, answer in naive]
    assert all(len(answer.logps) <= OWN for answer in expected)
    counts = []
    for tree, rows in ((True, False), (False, False), (True, True)):
        model.tree, model.rows = tree, rows
        for one, other in zip(written(model, texts), expected, strict=True):
            assert_same_text(one, other)
            assert one.thoughts == other.thoughts
        counts.append(drawn(model, draws))
    assert counts[0] == counts[1] == counts[2]
    assert len({text for answer in counts[0] for text in answer.texts}) > 20


def test_a_served_model_keeps_both_limits(tmp_path: Path) -> None:
    """It is asked for the tokens of both; what it writes too much of is left out."""
    folder = thinker(tmp_path, "qwen3")
    here = loaded(folder)
    texts = asked(here, Generate(most=OWN, until=""), Generate(most=OWN))
    with serving(Face(Answering(folder, 512))) as address:
        options = LoadOptions(tokenizer=str(folder), chat="always", chat_thinking=THINKING)
        there: Any = load(f"server:{address}/v1", options)
        for one, other in zip(written(there, texts), written(here, texts), strict=True):
            assert_same_text(one, other)
            assert one.thoughts == other.thoughts
        # of what it draws, this server tells the text alone
        want = Sample(count=1, most=2 + THINKING, until="", thinking=THINKING)
        for text in ("<think>Oslo</think> Paris Paris Paris", " Paris Paris Paris"):
            end, *_ = read_written(there.tokens, (5,), Written(text=text, ended=False), want)
            assert end.text.split() == ["Paris", "Paris"] and not end.finished
