"""Encoder-decoder models: options scored together are those scored alone, and so are texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.core.columns import one_by_one
from sonde.core.errors import AbilityError, PromptError, PromptTooLong
from sonde.core.prompts import Generate, Prompt
from sonde.engine.endings import Endings
from sonde.models.options import LoadOptions
from sonde.models.torch.decode.steps import end_tokens
from sonde.models.torch.loading.open import open_model
from sonde.models.torch.reference import generate_seq2seq, score_seq2seq
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.testing import assert_same, check_model
from tests.parity.test_memory import ERRORS
from tests.parity.world import OPTIONS, with_budget
from tests.parity.writing import UNTILS, assert_same_text, draw, in_order, write
from tests.tiny import CITIES, Load, bart, fill, score, t5, trace

KINDS = pytest.mark.parametrize("kind", ["t5", "bart"])
PREFIXES = st.sampled_from(
    ["The capital of France is ", "Oslo is in", "", "Who wrote it? ", "Paris (", "</s> is a token "]
)
BUDGETS = st.sampled_from([8, 64, 4096])


def opened(tiny: Load, kind: str, budget: int = 4096) -> Seq2SeqModel:
    return Seq2SeqModel(with_budget(tiny(kind), budget))


@KINDS
@given(
    prompts=st.lists(
        st.builds(score, PREFIXES, OPTIONS, capitals=st.booleans()), min_size=1, max_size=4
    ),
    budget=BUDGETS,
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_scoring_together_equals_the_reference(
    tiny: Load, kind: str, prompts: list[Prompt], budget: int
) -> None:
    model = opened(tiny, kind, budget)
    found = in_order(list(one_by_one(model.score(prompts))), len(prompts))
    slow = score_seq2seq(model.model, model.encoder, model.start, prompts)
    for (i, expected), answer in zip(slow, found, strict=True):
        assert_same(answer, expected, f"prompt {i}")


@KINDS
@given(
    prompts=st.lists(st.builds(write, PREFIXES, st.integers(1, 7), UNTILS), min_size=1, max_size=5),
    budget=BUDGETS,
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_writing_together_equals_the_reference(
    tiny: Load, kind: str, prompts: list[Prompt], budget: int
) -> None:
    model = opened(tiny, kind, budget)
    ends = end_tokens(model.loaded)
    found = in_order(list(model.generate(prompts)), len(prompts))
    slow = generate_seq2seq(model.model, model.encoder, model.start, prompts, ends)
    for (_, expected), answer in zip(slow, found, strict=True):
        assert_same_text(answer, expected)


@KINDS
def test_writing_equals_what_transformers_generates(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    (answer,) = (a for _, a in model.generate([write("The capital of France is", most=6)]))
    device = model.model.device
    ids = torch.tensor([model.encoder.source("The capital of France is").ids], device=device)
    opening = torch.tensor([[model.start, *model.encoder.opens]], device=device)
    given: dict[str, Any] = {"decoder_input_ids": opening, "do_sample": False, "num_beams": 1}
    whole = model.model.generate(input_ids=ids, max_new_tokens=6, **given)[0].tolist()
    text = model.loaded.backend.decode(whole[opening.shape[1] :], skip_special_tokens=True)
    assert answer.text.strip() == text.strip()


@KINDS
def test_batches_and_company_never_change_a_draw(tiny: Load, kind: str) -> None:
    prompts = [draw("The capital of France is "), draw("Oslo is in", seed=3), draw("")]
    together = in_order(list(opened(tiny, kind).sample(prompts)), 3)
    for prompt, answer in zip(prompts, together, strict=True):
        (alone,) = (a for _, a in opened(tiny, kind, budget=8).sample([prompt]))
        assert alone == answer
        assert sum(answer.counts) == 20


@KINDS
def test_first_tokens_are_drawn_as_the_model_has_them(tiny: Load, kind: str) -> None:
    model = opened(tiny, kind)
    (answer,) = (a for _, a in model.sample([draw("Oslo is in", count=4000, most=1)]))
    opening = (model.start, *model.encoder.opens)
    logits, _ = model.reader.open([model.encoder.source("Oslo is in").ids], opening)
    endings = Endings(model.loaded.backend, end_tokens(model.loaded))
    expected: Counter[str] = Counter()  # several tokens may say the same
    for token, share in enumerate(torch.softmax(logits[0], -1).tolist()):
        end = endings.end(opening, (token,), Generate(most=1, until=""))
        assert end is not None
        expected[end.text] += share
    drawn = dict(zip(answer.texts, answer.counts, strict=True))
    for text, share in expected.most_common(5):
        assert drawn.get(text, 0) / 4000 == pytest.approx(share, abs=0.04)


@KINDS
def test_an_encoder_decoder_model_conforms(tiny: Load, kind: str) -> None:
    texts = ("The capital of France is ", "Oslo is in ")
    check_model(opened(tiny, kind), [score(text, CITIES) for text in texts])
    check_model(opened(tiny, kind), [write(text) for text in texts])
    check_model(opened(tiny, kind), [draw(text) for text in texts])


def test_a_gap_stands_for_an_answer_inside_a_text(tiny: Load) -> None:
    model = opened(tiny, "t5")
    source = model.encoder.source("In ", " it was written.")
    assert model.encoder.gap in source.ids
    assert source.opens[-1] == model.encoder.gap
    prompts = [score("In ", CITIES, " it was written.")]
    (expected,) = (a for _, a in score_seq2seq(model.model, model.encoder, model.start, prompts))
    (answer,) = (a for _, a in one_by_one(model.score(prompts)))
    assert_same(answer, expected, "with a gap")


def test_without_a_token_for_gaps_the_answer_must_come_last(tiny: Load) -> None:
    with pytest.raises(PromptError, match=r"ends with the answer"):
        list(one_by_one(opened(tiny, "bart").score([score("In ", CITIES, " it was written.")])))
    (dropped,) = one_by_one(opened(tiny, "bart").score([score("In ", CITIES, ".")]))
    (bare,) = one_by_one(opened(tiny, "bart").score([score("In ", CITIES)]))
    assert dropped[1] == bare[1]
    with pytest.raises(PromptError, match=r"ends with the answer"):
        list(one_by_one(opened(tiny, "bart").score([score("In ", CITIES, ".", punctuation=True)])))


def test_punctuation_that_is_wanted_is_read_behind_the_gap(tiny: Load) -> None:
    model = opened(tiny, "t5")
    prompts = [score("In ", CITIES, ".", punctuation=wanted) for wanted in (True, False)]
    kept, dropped = (answer for _, answer in sorted(one_by_one(model.score(prompts))))
    assert kept != dropped and kept.suffix_logps == ()
    assert model.encoder.gap in model.encoder.source("In ", ".").ids


def test_a_text_too_long_to_read_is_refused(tiny: Load) -> None:
    with pytest.raises(PromptTooLong, match=r"fact 'f'.*takes 64"):
        list(one_by_one(opened(tiny, "bart").score([score("Paris " * 80, CITIES)])))


def test_what_it_cannot_do_is_refused(tiny: Load) -> None:
    model = opened(tiny, "t5")
    assert not hasattr(model, "trace")
    assert not hasattr(model, "fill")
    with pytest.raises(AbilityError):
        list(one_by_one(model.score([fill("Oslo is in ")])))
    with pytest.raises(AbilityError):
        list(model.generate([trace("Oslo is in", (0, 4))]))


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
def test_scoring_goes_on_in_smaller_batches(
    tiny: Load, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [score("Oslo is in ", CITIES)]
    expected = dict(one_by_one(opened(tiny, "t5").score(prompts)))[0]
    model = opened(tiny, "t5")
    whole: Any = model.model.forward
    widths = []

    def forward(**given: Any) -> Any:
        if len(given["decoder_input_ids"]) > 2:
            raise error
        widths.append(len(given["decoder_input_ids"]))
        return whole(**given)

    monkeypatch.setattr(model.model, "forward", forward)
    assert_same(dict(one_by_one(model.score(prompts)))[0], expected, "after running out of memory")
    assert max(widths) == 2


@pytest.mark.parametrize("make", [t5, bart])
def test_a_folder_opens_as_what_it_is(tmp_path: Path, make: Any) -> None:
    model = open_model("hf:x", make(tmp_path), LoadOptions(device="cpu"))
    assert isinstance(model, Seq2SeqModel)
    assert model.identity.details["scoring"] == "rows"
