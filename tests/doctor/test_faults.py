"""Each fault is injected into a real model and found."""

from __future__ import annotations

from dataclasses import replace
from math import log, nan
from pathlib import Path
from typing import Any

import pytest

from sonde.core.answers import Filled, Scored
from sonde.core.facts import Dataset
from sonde.data.catalog import load as load_dataset
from sonde.doctor.numbers import diverse
from sonde.engine.encode import Span, Start, lengthened, shortened
from sonde.models.load import examiner
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.masked.model import MaskedModel
from tests import tiny as world
from tests.tiny import Load
from tests.written import CAPITALS, dataset

from .faulty import (
    Altered,
    AlteredMask,
    AlteredWriter,
    Apart,
    Beside,
    ReadsBeside,
    Recoded,
    fault,
    faults,
    look,
    with_encoder,
)


def moved(by: int, span: Span) -> Span:
    return replace(span, start=span.start + by, stop=span.stop + by, end=span.end + by)


def test_a_doubled_bos_is_found(tiny: Load, data: Dataset) -> None:
    model = with_encoder(tiny("llama"), lambda e: Recoded(e, lambda s: lengthened(s, (0,))))
    found = look(model, data)
    assert "doubled BOS" in fault(found, "how texts open")
    assert faults(found) == {"how texts open"}


def test_a_missing_bos_is_found(tiny: Load, data: Dataset) -> None:
    found = look(CausalModel(tiny("llama"), start=Start(id=0, always=False)), data)
    assert "lack the beginning" in fault(found, "how texts open")
    assert faults(found) == {"how texts open"}


def test_a_bos_that_was_refused_is_a_warning(tmp_path: Path, data: Dataset) -> None:
    options = LoadOptions(bos="never", device="cpu")
    found = look(CausalModel(load_folder("l", world.llama(tmp_path / "m"), options)), data)
    assert not found.faults
    assert "how texts open" in {finding.check for finding in found.warnings}


def test_a_text_cut_at_its_start_is_found(tiny: Load, data: Dataset) -> None:
    def last(span: Span) -> Span:
        return shortened(span, max(0, span.start - 2))

    found = look(with_encoder(tiny("gpt2"), lambda e: Recoded(e, last)), data)
    assert "truncated" in fault(found, "length")


def test_a_text_cut_at_its_end_is_found(tiny: Load, data: Dataset) -> None:
    class Short(Beside):
        def masked(self, texts: Any) -> list[Span]:
            spans = self.inner.masked(texts)
            return [replace(s, ids=s.ids[: s.stop], end=s.stop) for s in spans]

    model: Any = MaskedModel(tiny("bert"))
    model.encoder = Short(model.encoder, 0)
    found = look(model, data)
    assert "lack the end" in fault(found, "how texts open")
    assert "truncated" in fault(found, "length")


def test_a_prompt_longer_than_the_context_is_found_wherever_it_stands(
    tiny: Load, tmp_path: Path
) -> None:
    subjects = {**CAPITALS, "Land of " * 30: "Rome"}
    folder = dataset(tmp_path / "long", {"P36": ("The capital of [X] is [Y].", subjects)})
    found = look(CausalModel(tiny("gpt2")), load_dataset(str(folder)))
    assert "the model takes 64" in fault(found, "length")
    assert faults(found) == {"length"}


def test_log_probabilities_of_the_token_before_are_found(tiny: Load, data: Dataset) -> None:
    loaded = tiny("llama")
    shifted = with_encoder(loaded, lambda e: Recoded(e, lambda s: moved(-1, s)))
    found = look(shifted, data, shows=CausalModel(loaded))
    assert "given to the token after it" in fault(found, "not shifted")
    assert "scoring vs naive" in faults(found)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_mask_read_beside_itself_is_found(tiny: Load, data: Dataset, by: int) -> None:
    found = look(ReadsBeside(MaskedModel(tiny("bert")), by), data)
    assert ("before" if by < 0 else "behind") in fault(found, "not shifted")
    assert "filling vs naive" in faults(found)


def test_constant_log_probabilities_are_found(tiny: Load, data: Dataset) -> None:
    def flat(answer: Scored) -> Scored:
        rows = tuple((-6.0 / len(row),) * len(row) for row in answer.logps)
        return replace(answer, logps=rows)

    found = look(Altered(CausalModel(tiny("gpt2")), scored=flat), data)
    assert "equally likely" in fault(found, "answers vary")


def test_a_model_that_does_not_see_the_subject_is_found(tiny: Load, data: Dataset) -> None:
    def blind(answer: Scored) -> Scored:
        return replace(answer, logps=tuple((-float(len(o)),) for o in answer.options))

    found = look(Altered(CausalModel(tiny("gpt2")), scored=blind), data)
    assert "different subjects" in fault(found, "answers vary")


def test_one_answer_to_nearly_everything_is_a_warning(tiny: Load, tmp_path: Path) -> None:
    capitals = {f"land {i}": f"town {i % 6}" for i in range(12)}
    folder = dataset(tmp_path / "d", {"P36": ("The capital of [X] is [Y].", capitals)})
    data, model = load_dataset(str(folder)), CausalModel(tiny("gpt2"))

    def same(answer: Scored) -> Scored:
        first = answer.options.index(min(answer.options))
        rows = list(answer.logps)
        rows[first] = tuple(logp / 1000 for logp in rows[first])
        return replace(answer, logps=tuple(rows))

    found = look(Altered(model, scored=same), data)
    [warned] = [finding for finding in found.warnings if finding.check == "answers vary"]
    assert "1 different answer to 12 prompts with 6 different objects" in warned.found
    assert warned.values == {"answers": 1, "objects": 6, "largest share": 1}


@pytest.mark.parametrize(
    ("answers", "objects", "verdict"),
    [
        ("abcabcabcabc", "abcdefghijkl", "warning"),  # three answers in all
        ("abcdabcdabcd", "abcdefghijkl", "ok"),
        ("aaaaaaaaaaab", "abcdefabcdef", "warning"),  # nearly always the same
        ("aaaaaaaaaabc", "abcdefabcdef", "ok"),
        ("aaaaaaaaaaaa", "aaaaaaaaabcd", "warning"),  # four objects, one answer
        ("aaaaaaaaaaab", "aaaaaaaaabcd", "ok"),  # one object is that common
        ("aaaaaaaaaaaa", "abcabcabcabc", "ok"),  # too few objects to say
        ("aaaaaaa", "abcdefg", "ok"),  # too few prompts
    ],
)
def test_how_much_answers_must_vary(answers: str, objects: str, verdict: str) -> None:
    assert diverse(list(zip(answers, objects, strict=True))).verdict == verdict


def test_a_nan_of_the_engine_is_found(tiny: Load, data: Dataset) -> None:
    def broken(answer: Scored) -> Scored:
        return replace(answer, logps=((nan, *answer.logps[0][1:]), *answer.logps[1:]))

    found = look(Altered(CausalModel(tiny("gpt2")), scored=broken), data)
    assert "the naive path gives none" in fault(found, "finite numbers")
    assert "scoring vs naive" in faults(found)


def test_a_nan_of_the_weights_is_found(tmp_path: Path, data: Dataset) -> None:
    loaded = load_folder("n", world.gpt2(tmp_path / "m"), LoadOptions(device="cpu"))
    loaded.model.transformer.ln_f.weight.data[0] = nan
    assert "the model itself" in fault(look(CausalModel(loaded), data), "finite numbers")


def test_raw_logits_are_found(tiny: Load, data: Dataset) -> None:
    def raised(answer: Scored) -> Scored:
        rows = tuple(tuple(logp + 9 for logp in row) for row in answer.logps)
        return replace(answer, logps=rows)

    found = look(Altered(CausalModel(tiny("gpt2")), scored=raised), data)
    assert "raw logits" in fault(found, "sum to one")


@pytest.mark.parametrize("factor", [1.5, 0.8])
def test_a_mass_other_than_one_is_found(tiny: Load, data: Dataset, factor: float) -> None:
    def scaled(answer: Filled) -> Filled:
        return replace(answer, mass=answer.mass + log(factor))

    found = look(AlteredMask(MaskedModel(tiny("bert")), filled=scaled), data)
    fault(found, "sum to one")


def test_a_softmax_over_a_part_of_the_vocabulary_is_found(tiny: Load, data: Dataset) -> None:
    class Partial(Altered):
        def examine(self, prompts: Any) -> Any:
            return ((i, replace(shown, totals=(0.7,))) for i, shown in super().examine(prompts))

    found = look(Partial(CausalModel(tiny("gpt2"))), data)
    assert faults(found) == {"sum to one"}


def test_a_boundary_tokenised_apart_is_found(tiny: Load, data: Dataset) -> None:
    found = look(with_encoder(tiny("gpt2"), Apart), data)
    assert "tokenised apart" in fault(found, "answer's tokens")


def test_an_answer_looked_for_in_the_wrong_place_is_found(tiny: Load, data: Dataset) -> None:
    found = look(with_encoder(tiny("gpt2"), lambda e: Recoded(e, lambda s: moved(-1, s))), data)
    assert "not the answer's" in fault(found, "answer's tokens")


def test_other_tokens_than_the_texts_are_found(tiny: Load, data: Dataset) -> None:
    def swapped(span: Span) -> Span:
        return replace(span, ids=(*span.ids[:2], 77, *span.ids[3:]))

    found = look(with_encoder(tiny("gpt2"), lambda e: Recoded(e, swapped)), data)
    assert "other tokens" in fault(found, "answer's tokens")


def test_an_engine_whose_tree_mask_is_lost_is_found(
    tiny: Load, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CausalModel(tiny("llama"))
    assert model.tree
    whole = model.model.forward

    def overlooking(*args: Any, **kwargs: Any) -> Any:
        return whole(*args, **{**kwargs, "attention_mask": None})

    monkeypatch.setattr(model.model, "forward", overlooking)
    assert "max |Δ log p|" in fault(look(model, data), "scoring vs naive")


def test_flipped_answers_are_found(tiny: Load, data: Dataset) -> None:
    def reversed_(answer: Scored) -> Scored:
        rows = tuple(tuple(-9 - logp for logp in row) for row in answer.logps)
        return replace(answer, logps=rows)

    found = look(Altered(CausalModel(tiny("gpt2")), scored=reversed_), data)
    assert "flipped" in fault(found, "scoring, choices")


def test_flipped_fillings_are_found(tiny: Load, data: Dataset) -> None:
    def other(answer: Filled) -> Filled:
        return replace(answer, top=answer.top[::-1])

    found = look(AlteredMask(MaskedModel(tiny("bert")), filled=other), data)
    assert faults(found) == {"filling, choices"}


def test_other_texts_are_found(tiny: Load, data: Dataset) -> None:
    found = look(AlteredWriter(CausalModel(tiny("gpt2"))), data)
    assert faults(found) == {"writing, choices"}


def test_a_model_that_would_rather_be_opened_is_a_warning(tiny: Load, data: Dataset) -> None:
    class Better(Altered):
        def examine(self, prompts: Any) -> Any:
            shown = super().examine(prompts)
            return ((i, replace(s, likelihood=-3.0, otherwise=-1.0)) for i, s in shown)

    found = look(Better(CausalModel(tiny("gpt2"))), data)
    said = {finding.check: finding.advice for finding in found.warnings}
    assert "--bos always" in said["other opening"]
    assert "likelihood" not in said, "three nats are better than drawn blindly"


def test_a_model_to_which_text_is_noise_is_a_warning(tiny: Load, data: Dataset) -> None:
    found = look(CausalModel(tiny("gpt2")), data)  # its weights are random
    assert "likelihood" in {finding.check for finding in found.warnings}


def test_a_tokenizer_with_more_tokens_than_the_model_is_found(
    tmp_path: Path, data: Dataset
) -> None:
    folder = world.gpt2(tmp_path / "m", vocab_size=300)
    model = CausalModel(load_folder("m", folder, LoadOptions(device="cpu")))
    said = fault(look(model, data), "vocabulary")
    assert "the tokenizer has 380 tokens and the model 300" in said
    assert "do not belong together" in said


def test_a_tokenizer_far_smaller_than_the_model_is_a_warning(tmp_path: Path, data: Dataset) -> None:
    folder = world.gpt2(tmp_path / "m", vocab_size=1000)
    found = look(CausalModel(load_folder("m", folder, LoadOptions(device="cpu"))), data)
    assert "vocabulary" in {finding.check for finding in found.warnings}


def test_options_that_become_unknown_are_a_warning(tiny: Load, tmp_path: Path) -> None:
    names = {"France": "Paris", "Norway": "京都", "Austria": "東京"}
    folder = dataset(tmp_path / "d", {"P36": ("The capital of [X] is [Y].", names)})
    found = look(MaskedModel(tiny("bert")), load_dataset(str(folder)))
    said = {finding.check: finding.found for finding in found.warnings}
    assert "京都" in said["unknown words"] and "東京" in said["unknown words"]
    assert "Paris" not in said["unknown words"]


def test_subjects_that_become_the_same_tokens_are_a_warning(tiny: Load, tmp_path: Path) -> None:
    names = {"京": "Paris", "東": "Oslo"}
    folder = dataset(tmp_path / "d", {"P36": ("The capital of [X] is [Y].", names)})
    found = look(MaskedModel(tiny("bert")), load_dataset(str(folder)))
    said = {finding.check: finding.found for finding in found.warnings}
    assert "the same tokens" in said["answers vary"]


def test_a_refused_prompt_is_told(tiny: Load, tmp_path: Path) -> None:
    folder = dataset(tmp_path / "d", {"P36": ("[Y] is the capital of [X].", CAPITALS)})
    model = CausalModel(tiny("gpt2"), start=Start(id=None, always=False))
    found = look(model, load_dataset(str(folder)))
    assert "no token to start from" in fault(found, "answered")


def test_a_table_shows_nothing(data: Dataset) -> None:
    class Table:
        identity = None

    assert examiner(Table()) is None  # type: ignore[arg-type]
