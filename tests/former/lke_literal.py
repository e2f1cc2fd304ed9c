"""Definitions carried out literally: a text at a time through a tiny model, with no sharing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from sonde.core.facts import Dataset
from sonde.metrics.judged import Judged
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from tests.worlds import fact, world

CITIES = ("Paris", "Vienna", "Oslo", "Warsaw", "York", "New York", "St.", "Norway")


def cities() -> Dataset:
    """Training facts with long and short objects, and five facts to test."""
    shown = [fact("P36", f"land {i}", CITIES[i % 8], split="train") for i in range(9)]
    asked = [fact("P36", f"town {i}", CITIES[(3 * i) % 8]) for i in range(5)]
    return world([*shown, *asked], relations=("P36",))


def causal(folder: Path) -> CausalModel:
    """The model as sonde runs it."""
    return CausalModel(load_folder("hf:gpt2", folder, LoadOptions(device="cpu"), weights="gpt2"))


class Reader:
    """The model as transformers runs it."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    @torch.no_grad()
    def parts(self, text: str, places: list[tuple[int, int]]) -> Iterator[float]:
        """One forward pass over one text; the tokens of a part are found by their characters."""
        given = self.tokenizer(text, return_offsets_mapping=True)
        ids = torch.tensor([given["input_ids"]])
        logps = self.model(ids).logits[0].double().log_softmax(-1)
        for start, stop in places:
            yield sum(
                float(logps[i - 1, ids[0, i]])
                for i, (a, b) in enumerate(given["offset_mapping"])
                if b > start - 1 and a < stop  # with the space before
            )


def assert_equal(
    judged: Judged, data: Dataset, expected: Mapping[str, Mapping[str, float]]
) -> None:
    """The choices are those that the log-probabilities of each fact's options give."""
    golds = {f.id: f.objects[0].name for f in data.facts("P36")}
    facts = [judged.pairs[pair] for pair in judged.grid.pair.tolist()]
    assert sorted(facts) == sorted(expected)
    assert judged.gold_logprob is not None
    for row, id in enumerate(facts):
        options = expected[id]
        total = log(sum(np.exp(list(options.values()))))
        best = max(options, key=options.__getitem__)
        assert judged.gold_logprob[row] == pytest.approx(options[golds[id]] - total, abs=1e-4)
        assert log(judged.sure[row]) == pytest.approx(options[best] - total, abs=1e-4)
        assert judged.answers[judged.grid.answer[row]] == best
