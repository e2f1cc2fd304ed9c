"""Each fault is injected into a real encoder-decoder model and found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest
import torch

from sonde.core.answers import Scored
from sonde.core.facts import Dataset
from sonde.core.prompts import Prompt, Score
from sonde.data.catalog import load as load_dataset
from sonde.engine.seq2seq_encode import Source
from sonde.models.options import LoadOptions
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.seq2seq import Seq2SeqModel
from tests import tiny as world
from tests.tiny import SEQ2SEQ, Load
from tests.written import CAPITALS, dataset

from .faulty import Altered, AlteredWriter, fault, faults, look

KINDS = pytest.mark.parametrize("kind", SEQ2SEQ)
Ids = tuple[int, ...]


class Repaired:
    """An encoder whose sources or answers are changed, for the engine and the naive path alike."""

    def __init__(
        self,
        encoder: Any,
        source: Callable[[Source], Source] = lambda source: source,
        target: Callable[[Ids], Ids] = lambda ids: ids,
    ) -> None:
        self.inner = encoder
        self.change = source
        self.changed = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def source(self, prefix: str, suffix: str = "") -> Source:
        return self.change(self.inner.source(prefix, suffix))

    def targets(self, options: Sequence[str]) -> list[Ids]:
        return [self.changed(ids) for ids in self.inner.targets(options)]


def broken(loaded: Any, **changes: Any) -> Any:
    """A model with a faulty encoder."""
    model: Any = Seq2SeqModel(loaded)
    model.encoder = Repaired(model.encoder, **changes)
    return model


@KINDS
def test_another_token_than_the_decoders_own_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    model = Seq2SeqModel(tiny(kind))
    model.start = 77
    found = look(model, data)
    assert "decoder_start_token_id" in fault(found, "how texts open")


def test_a_decoder_opened_without_the_tokenizers_token_is_found(tiny: Load, data: Dataset) -> None:
    def bare(source: Source) -> Source:
        return replace(source, opens=())

    found = look(broken(tiny("bart"), source=bare), data)
    assert "lack the beginning" in fault(found, "how texts open")


@KINDS
def test_a_doubled_start_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    def twice(source: Source) -> Source:
        start = Seq2SeqModel(tiny(kind)).start
        return replace(source, opens=(*source.opens, start))

    found = look(broken(tiny(kind), source=twice), data)
    assert "more than" in fault(found, "how texts open")


@KINDS
def test_a_text_without_its_end_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    def open_ended(source: Source) -> Source:
        return replace(source, ids=source.ids[:-1])

    found = look(broken(tiny(kind), source=open_ended), data)
    assert "lack the end" in fault(found, "how texts open")


@KINDS
def test_a_text_cut_short_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    def cut(source: Source) -> Source:
        opening = source.ids[: len(source.opens)]
        return replace(source, ids=(*opening, *source.ids[len(opening) + 2 :]))

    found = look(broken(tiny(kind), source=cut), data)
    assert "truncated" in fault(found, "length")


@KINDS
def test_an_answer_scored_with_its_end_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(broken(tiny(kind), target=lambda ids: (*ids, 1)), data)
    assert "other tokens" in fault(found, "answer's tokens")


@KINDS
def test_another_text_than_was_asked_is_found(tiny: Load, data: Dataset, kind: str) -> None:
    def swapped(source: Source) -> Source:
        return replace(source, ids=(*source.ids[:2], 77, *source.ids[3:]))

    found = look(broken(tiny(kind), source=swapped), data)
    assert "as it is read" in fault(found, "answer's tokens")


def test_a_text_longer_than_the_context_is_found(tiny: Load, tmp_path: Path) -> None:
    subjects = {**CAPITALS, "Land of " * 30: "Rome"}
    folder = dataset(tmp_path / "long", {"P36": ("The capital of [X] is [Y].", subjects)})
    found = look(Seq2SeqModel(tiny("bart")), load_dataset(str(folder)))
    assert "the model takes 64" in fault(found, "length")


class ReadsBeside(Altered):
    """Scores answers by the rows of logits after their tokens, as if nothing opened them."""

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        model: Any = self.model
        for i, prompt in enumerate(prompts):
            assert isinstance(prompt.want, Score)
            source = model.encoder.source(prompt.prefix, prompt.want.after(prompt.suffix))
            opening = (model.start, *source.opens)
            rows = []
            for target in model.encoder.targets(prompt.want.options):
                ids = torch.tensor([[*opening, *target]])
                given: dict[str, Any] = {"decoder_input_ids": ids}
                with torch.inference_mode():
                    logits = model.model(input_ids=torch.tensor([source.ids]), **given).logits[0]
                table = torch.log_softmax(logits, -1)[len(opening) :]
                rows.append(tuple(table[n, id].item() for n, id in enumerate(target)))
            yield i, Scored(options=prompt.want.options, logps=tuple(rows))


@KINDS
def test_logits_read_one_place_too_late_are_found(tiny: Load, data: Dataset, kind: str) -> None:
    found = look(ReadsBeside(Seq2SeqModel(tiny(kind))), data)
    assert "read one place too late" in fault(found, "not shifted")
    assert "scoring vs naive" in faults(found)


@KINDS
@pytest.mark.parametrize("part", ["get_encoder", "get_decoder"])
def test_padding_that_is_looked_at_is_found(
    tiny: Load, data: Dataset, kind: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Seq2SeqModel(tiny(kind))
    looking: Any = getattr(model.model, part)()
    whole = looking.forward
    name = "attention_mask" if part == "get_encoder" else "encoder_attention_mask"

    def overlooking(*args: Any, **named: Any) -> Any:
        return whole(*args, **{**named, name: None})

    monkeypatch.setattr(looking, "forward", overlooking)
    assert "max |Δ log p|" in fault(look(model, data), "scoring vs naive")


@KINDS
def test_answers_that_change_from_one_time_to_the_next_are_found(
    tmp_path: Path, data: Dataset, kind: str
) -> None:
    folder = SEQ2SEQ[kind](tmp_path / "m", **{"dropout_rate" if kind == "t5" else "dropout": 0.3})
    loaded = load_folder("d", folder, LoadOptions(device="cpu"))
    loaded.model.train()
    assert "dropout" in fault(look(Seq2SeqModel(loaded), data), "asked again")


def test_a_model_that_does_not_see_the_subject_is_found(tiny: Load, data: Dataset) -> None:
    def blind(answer: Scored) -> Scored:
        return replace(answer, logps=tuple((-float(len(o)),) for o in answer.options))

    found = look(Altered(Seq2SeqModel(tiny("t5")), scored=blind), data)
    assert "different subjects" in fault(found, "answers vary")


def test_a_nan_of_the_weights_is_found(tmp_path: Path, data: Dataset) -> None:
    loaded = load_folder("n", world.t5(tmp_path / "m"), LoadOptions(device="cpu"))
    loaded.model.decoder.final_layer_norm.weight.data[0] = nan
    assert "the model itself" in fault(look(Seq2SeqModel(loaded), data), "finite numbers")


def test_other_texts_are_found(tiny: Load, data: Dataset) -> None:
    found = look(AlteredWriter(Seq2SeqModel(tiny("t5"))), data)
    assert "writing, choices" in faults(found)


def test_a_tokenizer_with_more_tokens_than_the_model_is_found(
    tmp_path: Path, data: Dataset
) -> None:
    folder = world.t5(tmp_path / "m", vocab_size=300)
    model = Seq2SeqModel(load_folder("m", folder, LoadOptions(device="cpu")))
    assert "do not belong together" in fault(look(model, data), "vocabulary")


def test_an_answer_inside_a_text_is_no_fault(tiny: Load, tmp_path: Path) -> None:
    folder = dataset(tmp_path / "d", {"P36": ("In [Y] is the seat of [X] today.", CAPITALS)})
    assert not look(Seq2SeqModel(tiny("t5")), load_dataset(str(folder))).faults
    found = look(Seq2SeqModel(tiny("bart")), load_dataset(str(folder)))
    assert "ends with the answer" in fault(found, "answered")
