"""Runs whose prompts want parts of their own text read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import ClassVar, Self

import pyarrow.parquet as pq
import pytest

import sonde
from sonde.core.abilities import Ability, Model, need
from sonde.core.answers import Traced
from sonde.core.columns import Given
from sonde.core.errors import AbilityError
from sonde.core.facts import Dataset
from sonde.core.prompts import Key, Prompt, Trace
from sonde.core.reports import Report
from sonde.models.options import LoadOptions
from sonde.models.scripted import Scripted
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import load_folder
from sonde.models.torch.reference import trace_causal
from sonde.runs.shards import WEIGHED, shards
from tests.command import files
from tests.tiny import CAUSAL, trace
from tests.worlds import numbered

from .world import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reciting:
    """Reads all objects of a relation in one sequence, the second time with wrong ones."""

    name: ClassVar[str] = "reciting"

    def suited(self, can: frozenset[Ability]) -> Self:
        need(self.name, can, "trace")
        return self

    def ask(self, dataset: Dataset) -> Iterator[Prompt]:
        for relation in dataset.asked_relations():
            facts = list(dataset.asked(relation.id))
            for shift in (0, 1):
                names = [fact.objects[0].name for fact in (*facts[shift:], *facts[:shift])]
                text, spans = "", []
                for fact, name in zip(facts, names, strict=True):
                    text += fact.subject.name
                    spans.append((len(text), len(text) + 1 + len(name)))
                    text += f" {name}, "
                yield Prompt(
                    key=Key(
                        fact=facts[0].id, relation=relation.id, template="sequence", subject=""
                    ),
                    prefix=text,
                    want=Trace(spans=tuple(spans)),
                    own={"facts": [fact.id for fact in facts], "shift": shift},
                )

    def read(self, dataset: Dataset, answered: Given) -> Report:
        raise NotImplementedError


def oracle(dataset: Dataset) -> Scripted:
    facts = (fact for relation in ("P1", "P2") for fact in dataset.facts(relation))
    return Scripted(answers={fact.id: fact.objects[0].name for fact in facts})


def test_each_span_of_a_sequence_is_its_own_facts(tmp_path: Path) -> None:
    world = numbered()
    run = sonde.run(Reciting(), oracle(world), world, tmp_path / "out")
    right, wrong, *_ = [row.answer for row in run.answered()]
    assert isinstance(right, Traced)
    assert isinstance(wrong, Traced)
    assert [round(exp(logp), 3) for (logp,) in right.logps] == [0.9] * 6
    assert [round(exp(logp), 3) for (logp,) in wrong.logps] == [0.1] * 6
    assert run.to_polars()["kind"].to_list() == ["traced"] * 4


def test_what_was_read_comes_back_from_the_folder(tmp_path: Path) -> None:
    folder = CAUSAL["llama"](tmp_path / "m", max_position_embeddings=512)
    model = CausalModel(load_folder("hf:m", folder, LoadOptions(device="cpu"), weights="m"))
    world = numbered()
    run = sonde.run(Reciting(), model, world, tmp_path / "out", shard_weight=2)
    assert len(list((tmp_path / "out" / "shards").glob("*.parquet"))) > 1
    prompts = list(Reciting().ask(world))
    expected = dict(trace_causal(model.model, model.encoder, prompts))
    for i, row in enumerate(run.answered()):
        assert isinstance(row.answer, Traced)
        assert row.own["facts"] == [f"{row.key.relation}:{n}" for n in range(6)]
        for one, other in zip(row.answer.logps, expected[i].logps, strict=True):
            assert one == pytest.approx(other, abs=1e-4)
    before = files(tmp_path / "out")
    (tmp_path / "out" / "shards" / "00001.parquet").unlink()
    sonde.run(Reciting(), model, world, tmp_path / "out", shard_weight=2)
    assert files(tmp_path / "out") == before
    assert "options" not in pq.read_table(tmp_path / "out" / "shards").column_names


def test_a_model_that_cannot_read_is_refused_before_any_work(tmp_path: Path) -> None:
    model: Model = Listing()
    with pytest.raises(AbilityError, match="'reciting' needs a model that can 'trace'"):
        sonde.run(Reciting(), model, numbered(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_texts_weigh_by_their_length() -> None:
    short, long = trace("It is", (0, 2)), trace("It is " * WEIGHED, (0, 2))
    assert [len(shard) for shard in shards([short] * 14, 7)] == [7, 7]
    assert [len(shard) for shard in shards([long] * 4, 14)] == [2, 2]
