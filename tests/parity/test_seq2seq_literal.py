"""Encoder-decoder models beside transformers itself: labels, padded batches and its own writing.

Nothing here comes from sonde's encoder: texts go through the tokenizer as its users call it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from tests.parity.test_seq2seq import KINDS, opened
from tests.parity.writing import in_order, write
from tests.tiny import Load, score

TEXTS = ("The capital of France is", "Oslo", "Who wrote it? It was written in Paris", "東京 is in")
NAMES = ("Paris", "New York", "New Norway", "Paris is the capital", "東京", "é", "1867")


def losses(model: Any, read: str, answer: str) -> tuple[float, int]:
    """The summed loss of an answer's tokens as transformers has it, and how many tokens those are.

    What opens and ends the labels is left out: the end by its mark, which feeds nothing, and the
    opening by taking away its own loss.
    """
    tokenizer = model.loaded.tokenizer
    ids = tokenizer(read, return_tensors="pt").to(model.model.device)
    labels = tokenizer(text_target=answer, return_tensors="pt").to(model.model.device).input_ids
    opening = labels[:, : len(model.encoder.opens)]
    labels = torch.cat([labels[:, :-1], labels.new_tensor([[-100]])], -1)
    with torch.inference_mode():
        whole = model.model(**ids, labels=labels).loss.item() * (labels.shape[1] - 1)
        if opening.shape[1]:
            whole -= model.model(**ids, labels=opening).loss.item() * opening.shape[1]
    return whole, labels.shape[1] - 1 - opening.shape[1]


@KINDS
def test_an_answers_log_probabilities_sum_to_the_loss_of_its_labels(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    found = in_order(
        list(one_by_one(model.score([score(f"{text} ", NAMES) for text in TEXTS]))), len(TEXTS)
    )
    for text, answer in zip(TEXTS, found, strict=True):
        assert isinstance(answer, Scored)
        assert max(map(len, answer.logps)) > 2
        for name, logps in zip(NAMES, answer.logps, strict=True):
            loss, count = losses(model, text, name)
            assert len(logps) == count
            assert -sum(logps) == pytest.approx(loss, abs=1e-3)


@KINDS
def test_each_token_has_the_log_probability_that_labels_give_it(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    (answer,) = (a for _, a in one_by_one(model.score([score(TEXTS[0], NAMES)])))
    tokenizer: Any = model.loaded.tokenizer
    for name, logps in zip(NAMES, answer.logps, strict=True):
        labels = tokenizer(text_target=name, return_tensors="pt").to(model.model.device).input_ids
        with torch.inference_mode():
            given = tokenizer(TEXTS[0], return_tensors="pt").to(model.model.device)
            logits = model.model(**given, labels=labels).logits[0]
        every = torch.log_softmax(logits, -1).gather(1, labels[0][:, None])[:, 0].tolist()
        assert logps == pytest.approx(every[len(model.encoder.opens) : -1], abs=1e-4)


@KINDS
def test_the_end_and_the_space_of_a_prefix_are_no_part_of_an_answer(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    plain, spaced = (
        dict(one_by_one(model.score([score(text, NAMES)])))[0] for text in ("Oslo", "Oslo ")
    )
    assert plain == spaced
    targets = model.encoder.targets(NAMES)
    assert [model.loaded.backend.decode(list(ids)) for ids in targets] == list(NAMES)
    assert not any(model.loaded.tokenizer.eos_token_id in ids for ids in targets)


@KINDS
def test_writing_in_a_padded_batch_is_what_transformers_generates(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    found = in_order(list(model.generate([write(text, most=7) for text in TEXTS])), len(TEXTS))
    tokenizer: Any = model.loaded.tokenizer
    batch = tokenizer(list(TEXTS), return_tensors="pt", padding=True).to(model.model.device)
    assert batch.attention_mask.min() == 0, "some are padded"
    opening = batch.input_ids.new_tensor([[model.start, *model.encoder.opens]] * len(TEXTS))
    written: Any = model.model.generate(
        input_ids=batch.input_ids,
        attention_mask=batch.attention_mask,
        decoder_input_ids=opening,
        max_new_tokens=7,
        do_sample=False,
        num_beams=1,
        output_logits=True,
        return_dict_in_generate=True,
    )
    for row, answer in enumerate(found):
        ids = written.sequences[row, opening.shape[1] :].tolist()
        logps = [
            torch.log_softmax(logits[row], -1)[id].item()
            for logits, id in zip(written.logits, ids, strict=True)
        ]
        ended = ids.index(1) if 1 in ids else len(ids)
        assert answer.text == tokenizer.decode(ids[:ended])
        assert answer.finished == (1 in ids)
        assert list(answer.logps) == pytest.approx(logps[: len(answer.logps)], abs=1e-4)


def test_t5_opens_its_answers_as_transformers_does(tiny: Load) -> None:
    model = opened(tiny, "t5")
    batch = model.loaded.tokenizer([TEXTS[0]], return_tensors="pt").to(model.model.device)
    whole = model.model.generate(**batch, max_new_tokens=5, do_sample=False, num_beams=1)[0]
    (answer,) = (a for _, a in model.generate([write(TEXTS[0], most=5)]))
    assert answer.text == model.loaded.tokenizer.decode(whole[1:], skip_special_tokens=True)
