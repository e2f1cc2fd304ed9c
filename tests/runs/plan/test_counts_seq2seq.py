"""The tokens of a plan are those that an encoder-decoder model really reads and is fed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.costs import Cost
from sonde.core.errors import AbilityError, PromptTooLong
from sonde.core.facts import Dataset
from sonde.core.prompts import Generate, Prompt, Sample, Want
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.probes.lama import Lama
from sonde.runs.shards import answer
from tests import tiny
from tests.written import CAPITALS, LANGUAGES, dataset

Make = Callable[..., Any]

KINDS = pytest.mark.parametrize("kind", ["t5", "bart"])
BUDGETS = pytest.mark.parametrize("tokens", [None, 60, 9])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A fresh model of an architecture."""
    folders: dict[str, Path] = {}

    def make(kind: str, tokens: int | None = None) -> Any:
        if kind not in folders:
            folders[kind] = getattr(tiny, kind)(tmp_path_factory.mktemp(kind) / "model")
        return load(f"hf:{folders[kind]}", LoadOptions(device="cpu", batch_tokens=tokens))

    return make


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = dataset(
        tmp_path_factory.mktemp("world") / "data",
        {
            "P36": ("The capital of [X] is [Y].", CAPITALS),
            "P37": ("The language of [X], spoken by nearly all, is [Y].", LANGUAGES),
        },
    )
    return sonde.dataset(str(folder))


def watched(model: Seq2SeqModel) -> list[int]:
    """The number of tokens of every pass through encoder or decoder from now on."""
    sizes: list[int] = []

    def note(_module: Any, given: Any, named: Any) -> None:
        sizes.append((named["input_ids"] if "input_ids" in named else given[0]).numel())

    for part in (model.model.get_encoder(), model.model.get_decoder()):
        part.register_forward_pre_hook(note, with_kwargs=True)
    return sizes


def asked(*wants: Want) -> list[Prompt]:
    """Prompts of unlike length about some countries, one of them twice, in every way wanted."""
    texts = [f"{start}{country} is" for start in ("In ", "A city of ") for country in CAPITALS]
    found = [tiny.score(text, ("x",), fact=text) for text in (*texts, texts[0])]
    return [replace(prompt, want=want) for want in wants for prompt in found]


def cost_of(model: Any, prompts: Sequence[Prompt]) -> Cost:
    (shard,) = model.estimate_costs([prompts])
    assert len(shard.costs) == len(prompts)
    return sum(shard.costs, Cost())


@KINDS
@pytest.mark.parametrize(("weight", "tokens"), [(4096, None), (9, 40)])
def test_a_run_feeds_exactly_the_planned_tokens(
    made: Make, world: Dataset, kind: str, weight: int, tokens: int | None, tmp_path: Path
) -> None:
    probe, out = Lama(), tmp_path / "run"
    planned = sonde.plan(probe, made(kind, tokens), world, out, seconds=0, shard_weight=weight)
    model = made(kind, tokens)
    sizes = watched(model)
    sonde.run(probe, model, world, out, shard_weight=weight)
    assert planned.cost is not None and planned.memory is not None
    assert planned.exact
    assert planned.cost.fed == sum(sizes)
    assert planned.cost.computed < planned.cost.naive
    assert planned.cost.texts == planned.cost.options
    assert min(planned.memory.weights, planned.memory.batch, planned.memory.stems) > 0


@KINDS
@BUDGETS
@pytest.mark.parametrize("want", [Generate(most=1), Sample(count=7, most=1)])
def test_what_is_read_before_writing_is_counted_exactly(
    made: Make, kind: str, want: Want, tokens: int | None
) -> None:
    prompts = asked(want)
    cost = cost_of(made(kind, tokens), prompts)
    model = made(kind, tokens)
    sizes = watched(model)
    list(answer(model, prompts))
    assert cost.fed == sum(sizes)
    assert cost.grown == 0


@KINDS
@BUDGETS
def test_what_is_scored_and_written_from_is_read_once(
    made: Make, kind: str, tokens: int | None
) -> None:
    score, write = tiny.score("", tiny.CITIES).want, Generate(most=1)
    both = asked(score, write)
    cost = cost_of(made(kind, tokens), both)
    model = made(kind, tokens)
    sizes = watched(model)
    list(answer(model, both))
    assert cost.fed == sum(sizes)
    once, again = (cost_of(made(kind, tokens), asked(*wants)) for wants in ([score], [write]))
    assert cost.computed < once.computed + again.computed


@KINDS
@pytest.mark.parametrize("room", [0, 1000])
def test_what_does_not_fit_is_read_again_and_counted(made: Make, kind: str, room: int) -> None:
    prompts = asked(tiny.score("", tiny.CITIES).want, Generate(most=1))
    models = made(kind), made(kind)
    for model in models:
        model.reader.cache.room = room
    sizes = watched(models[1])
    list(answer(models[1], prompts))
    assert cost_of(models[0], prompts).fed == sum(sizes)
    assert models[1].reader.cache.held <= room


@KINDS
@pytest.mark.parametrize("want", [Generate(most=6, until=""), Sample(count=5, most=4, until="")])
def test_what_is_written_takes_at_most_what_is_planned(
    made: Make, kind: str, want: Generate | Sample
) -> None:
    prompts = asked(want)
    cost = cost_of(made(kind), prompts)
    model = made(kind)
    sizes = watched(model)
    list(answer(model, prompts))
    assert 0 < sum(sizes) <= cost.fed
    assert cost.grown > 0


def test_what_is_refused_is_refused_by_the_plan(made: Make) -> None:
    for prompt in (
        tiny.score("Paris " * 80, tiny.CITIES),
        replace(tiny.score("Oslo", ("x",)), want=Generate(most=64)),
    ):
        with pytest.raises(PromptTooLong, match="takes 64") as refused:
            cost_of(made("bart"), [prompt])
        assert refused.value.limit == 64 < refused.value.needed
    with pytest.raises(AbilityError, match="cannot fill"):
        cost_of(made("bart"), [tiny.fill("Oslo is in ")])
