"""Encoder-decoder models pass the public checks, whatever is asked of them together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sonde.core.errors import PromptError, PromptTooLong
from sonde.core.prompts import Generate, Key, Prompt, Sample, Score, Want
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.open import open_model
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.runs.shards import answer
from sonde.testing import check_model
from tests.tiny import SEQ2SEQ

TEXTS = ("The capital of France is ", "", "Who wrote it? ", "東京 é (", "Oslo", "Paris " * 9)
WANTS: tuple[Want, ...] = (
    Score(options=("Paris", "Paris France", "Paris France is", "Par", "New York", "New Norway")),
    Generate(most=5, until=""),
    Score(options=("東京", "京", "é", "1867", "Who wrote it?")),
    Sample(count=9, most=3),
    Score(options=("Oslo",)),
    Generate(most=3, until="a"),
)


@pytest.fixture(scope="module", params=SEQ2SEQ)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = SEQ2SEQ[request.param](tmp_path_factory.mktemp(request.param) / "m")
    return open_model(f"hf:{request.param}", folder, LoadOptions(device="cpu"))


def prompt(text: str, want: Want, fact: str = "f") -> Prompt:
    return Prompt(
        key=Key(fact=fact, relation="P36", template="t", subject="s"), prefix=text, want=want
    )


def test_many_wants_of_many_texts_conform_together(model: Seq2SeqModel) -> None:
    check_model(model, [prompt(text, want) for text in TEXTS for want in WANTS])


def test_small_batches_conform_too(tmp_path: Path) -> None:
    for kind, make in SEQ2SEQ.items():
        options = LoadOptions(device="cpu", batch_tokens=20)
        small: Any = open_model(f"hf:{kind}", make(tmp_path / kind), options)
        check_model(small, [prompt(text, want) for text in TEXTS[:3] for want in WANTS])


def test_a_text_is_read_once_whatever_is_asked_of_it(model: Seq2SeqModel) -> None:
    read: Counter[tuple[int, ...]] = Counter()

    def note(_module: Any, _given: Any, named: dict[str, Any]) -> None:
        for ids, seen in zip(named["input_ids"], named["attention_mask"], strict=True):
            read[tuple(ids[seen == 1].tolist())] += 1

    hook = model.model.get_encoder().register_forward_pre_hook(note, with_kwargs=True)
    prompts = [prompt(text, want) for want in WANTS for text in TEXTS]
    list(answer(model, prompts))
    hook.remove()
    assert set(read) == {model.encoder.source(text).ids for text in TEXTS}
    assert set(read.values()) == {1}


def test_what_was_read_is_forgotten_when_others_are_asked(model: Seq2SeqModel) -> None:
    list(answer(model, [prompt(text, WANTS[0]) for text in TEXTS]))
    assert len(model.reader.cache.kept) == len(TEXTS)
    list(answer(model, [prompt("Oslo", WANTS[0])]))
    assert list(model.reader.cache.kept) == [model.encoder.source("Oslo").ids]


@pytest.mark.parametrize("want", [WANTS[0], WANTS[1], WANTS[3]])
def test_a_text_too_long_is_refused_with_what_it_needs(tmp_path: Path, want: Want) -> None:
    bart: Any = open_model("hf:bart", SEQ2SEQ["bart"](tmp_path), LoadOptions(device="cpu"))
    with pytest.raises(PromptTooLong, match="fact 'long'") as refused:
        list(answer(bart, [prompt("Oslo", want), prompt("Paris " * 80, want, "long")]))
    assert refused.value.limit == 64
    assert refused.value.needed == len(bart.encoder.source("Paris " * 80).ids)


def test_an_answer_too_long_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    bart: Any = open_model("hf:bart", SEQ2SEQ["bart"](tmp_path), LoadOptions(device="cpu"))
    with pytest.raises(PromptTooLong) as refused:
        list(answer(bart, [prompt("Oslo", Score(options=("Oslo", "Paris " * 80)))]))
    assert refused.value.needed > refused.value.limit == 64
    # with the two tokens that open it, an answer of 62 fills the decoder
    list(answer(bart, [prompt("Oslo", Generate(most=62, until=""))]))
    with pytest.raises(PromptTooLong) as refused:
        list(answer(bart, [prompt("Oslo", Generate(most=63))]))
    assert refused.value.needed == 65


def test_nothing_to_answer_is_refused(model: Seq2SeqModel) -> None:
    for want in (Score(options=()), Score(options=("",)), Generate(most=0)):
        with pytest.raises(PromptError, match="fact 'f'"):
            list(answer(model, [prompt("Oslo", want)]))
    with pytest.raises(PromptError, match="only writes on"):
        list(model.generate([replace(prompt("Oslo", WANTS[1]), suffix=" is here")]))
