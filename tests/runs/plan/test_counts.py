"""The tokens of a plan are the tokens that a real run feeds, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.abilities import Model
from sonde.core.costs import Cost
from sonde.core.facts import Dataset, Template
from sonde.core.prompts import Generate, Prompt, Sample, Score, Want
from sonde.models.load import load
from sonde.models.options import LoadOptions
from sonde.runs.shards import answer
from tests import tiny
from tests.written import CAPITALS, LANGUAGES, dataset

LONG = "Paris is the capital of France, and Vienna that of Austria. Oslo is in Norway. "

Make = Callable[..., Model]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A fresh model of an architecture, with room for long texts."""
    folders: dict[str, Path] = {}

    def make(kind: str, tokens: int | None = None) -> Model:
        if kind not in folders:
            size = {"gpt2": {"n_positions": 256}, "mamba": {}}
            room = size.get(kind, {"max_position_embeddings": 256})
            folders[kind] = getattr(tiny, kind)(tmp_path_factory.mktemp(kind) / "model", **room)
        return load(f"hf:{folders[kind]}", LoadOptions(device="cpu", batch_tokens=tokens))

    return make


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Two relations: one behind a long beginning, one with text after the answer."""
    folder = dataset(
        tmp_path_factory.mktemp("world") / "data",
        {
            "P36": (LONG + "The capital of [X] is [Y].", CAPITALS),
            "P37": ("In [X] they speak [Y] at home.", LANGUAGES),
        },
    )
    return sonde.dataset(str(folder))


def watched(model: Any) -> list[int]:
    """The number of tokens of every pass from now on."""
    sizes: list[int] = []

    def note(_module: Any, given: Any, named: Any) -> None:
        sizes.append((named["input_ids"] if "input_ids" in named else given[0]).numel())

    model.model.register_forward_pre_hook(note, with_kwargs=True)
    return sizes


@pytest.mark.parametrize(("weight", "tokens"), [(4096, None), (9, 40)])
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *((kind, "score") for kind in ("llama", "gpt2", "mistral", "mamba", "bert", "convbert")),
        *((kind, "fill") for kind in ("bert", "roberta", "convbert")),
    ],
)
def test_a_run_feeds_exactly_the_planned_tokens(
    made: Make, world: Dataset, kind: str, how: str, weight: int, tokens: int | None, tmp_path: Path
) -> None:
    probe = sonde.probe("lama", answer=how)
    planned = sonde.plan(
        probe, made(kind, tokens), world, tmp_path / "run", seconds=0, shard_weight=weight
    )
    model = made(kind, tokens)
    sizes = watched(model)
    sonde.run(probe, model, world, tmp_path / "run", shard_weight=weight)
    assert planned.cost is not None
    assert planned.exact
    assert planned.cost.fed == sum(sizes)
    assert planned.cost.computed <= planned.cost.naive
    assert (planned.cost.stems > 0) == (kind in ("llama", "gpt2", "mistral"))


@pytest.mark.parametrize(("weight", "tokens"), [(4096, None), (9, 40)])
@pytest.mark.parametrize("kind", ["llama", "mamba", "bert", "convbert"])
def test_whole_sentences_feed_exactly_the_planned_tokens(
    made: Make, world: Dataset, kind: str, weight: int, tokens: int | None, tmp_path: Path
) -> None:
    probe, folder = sonde.probe("bear"), tmp_path / "run"
    planned = sonde.plan(
        probe, made(kind, tokens), world, folder, seconds=0, shard_weight=weight
    ).cost
    model = made(kind, tokens)
    sizes = watched(model)
    sonde.run(probe, model, world, folder, shard_weight=weight)
    assert planned is not None
    assert planned.fed == sum(sizes)
    assert planned.computed <= planned.naive


def test_beginnings_are_paid_once_over_all_shards(made: Make, world: Dataset) -> None:
    probe = sonde.probe("lama")
    costs = [
        sonde.plan(probe, made("llama"), world, seconds=0, shard_weight=weight).cost
        for weight in (4096, 9)
    ]
    one, many = (cost or Cost() for cost in costs)
    assert one.stems == many.stems > 0


def test_texts_laid_end_to_end_are_counted_with_what_fills_their_last_row(
    made: Make, world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU; the way of feeding is forced, since this model takes it anywhere."""
    models = [made("bert"), made("bert")]
    for model in models:
        ways: Any = model
        monkeypatch.setattr(ways, "ways", replace(ways.ways, packs=True))
        monkeypatch.setattr(ways, "enough", 1)
    planned = sonde.plan(sonde.probe("lama"), models[0], world, tmp_path / "run", seconds=0)
    sizes = watched(models[1])
    sonde.run(sonde.probe("lama"), models[1], world, tmp_path / "run")
    assert planned.cost is not None
    assert planned.cost.fed == sum(sizes)


def test_padding_is_counted_apart(made: Make, world: Dataset, tmp_path: Path) -> None:
    planned = sonde.plan(sonde.probe("lama"), made("bert"), world, seconds=0)
    assert planned.cost is not None
    assert planned.cost.padding > 0
    alone = sonde.plan(sonde.probe("lama"), made("convbert"), world, seconds=0)
    assert alone.cost == replace(planned.cost, padding=0)


def prompts(world: Dataset, want: Want) -> list[Prompt]:
    texts = [Template(id="t", text=LONG + "In [X] it is [Y]"), Template(id="u", text="[X] is [Y]")]
    found = []
    for text in texts:
        for country in CAPITALS:
            prompt = tiny.score(text.fill(country)[0], ("x",), fact=f"{text.id}:{country}")
            found.append(replace(prompt, want=want))
    return [*found, found[0]]


@pytest.mark.parametrize("tokens", [None, 60])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("want", [Generate(most=1), Sample(count=7, most=1)])
def test_what_is_read_before_writing_is_counted_exactly(
    made: Make, world: Dataset, kind: str, want: Want, tokens: int | None
) -> None:
    asked = prompts(world, want)
    cost = cost_of(made(kind, tokens), asked)
    model = made(kind, tokens)
    sizes = watched(model)
    list(answer(model, asked))
    assert cost.fed == sum(sizes)
    assert cost.grown == 0


@pytest.mark.parametrize("tokens", [40, 60])
def test_room_is_kept_for_whoever_wants_most_of_a_text(
    made: Make, world: Dataset, tokens: int
) -> None:
    asked = [p for count in (1, 9) for p in prompts(world, Sample(count=count, most=1))]
    cost = cost_of(made("llama", tokens), asked)
    model = made("llama", tokens)
    sizes = watched(model)
    list(answer(model, asked))
    assert cost.fed == sum(sizes)


@pytest.mark.parametrize("tokens", [None, 60, 9])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "mamba"])
def test_what_is_read_of_texts_is_counted_exactly(
    made: Make, kind: str, tokens: int | None
) -> None:
    """Behind stems, side by side, in pieces, twice the same, and over two shards."""
    asked = [
        reading(start, f"{country} is {city}, says it")
        for start in (LONG, "In ", "")
        for country, city in CAPITALS.items()
    ]
    asked += asked[:1]
    shards = [asked[: len(asked) // 2], asked[len(asked) // 2 :]]
    planner: Any = made(kind, tokens)
    planned = [sum(shard.costs, Cost()) for shard in planner.estimate_costs(shards)]
    model = made(kind, tokens)
    for shard, cost in zip(shards, planned, strict=True):
        sizes = watched(model)
        list(answer(model, shard))
        assert cost.fed == sum(sizes)
        assert cost.prompts == cost.texts == len(shard)
        assert kind == "mamba" or cost.computed < cost.naive
    assert (planned[0].stems > 0) == (kind != "mamba")


def reading(start: str, rest: str) -> Prompt:
    """A text that is read where the start ends, and short of its end."""
    first, last = len(start), len(start + rest) - 9
    return tiny.trace(start + rest, (first, first + 2), (last, last + 2))


@pytest.mark.parametrize("kind", ["llama", "mamba"])
@pytest.mark.parametrize("want", [Generate(most=6, until=""), Sample(count=5, most=4, until="")])
def test_what_is_written_takes_at_most_what_is_planned(
    made: Make, world: Dataset, kind: str, want: Generate | Sample
) -> None:
    asked = prompts(world, want)
    tokens = 1 if kind == "mamba" else None  # every row alone: what is written has padding too
    cost = cost_of(made(kind, tokens), asked)
    model = made(kind, tokens)
    sizes = watched(model)
    list(answer(model, asked))
    assert 0 < sum(sizes) <= cost.computed
    assert cost.grown > 0


@pytest.mark.parametrize("tokens", [None, 60, 9])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral", "mamba"])
def test_options_beside_what_is_written_are_counted_exactly(
    made: Make, world: Dataset, kind: str, tokens: int | None
) -> None:
    """Some beside a text, some too many for it, some after a prompt that nothing is written on."""
    wants: list[Want] = [Score(options=("Paris", "New York")), Score(options=("Oslo",))]
    wants += [Score(options=tiny.CITIES), Generate(most=1)]
    asked = [prompt for want in wants for prompt in prompts(world, want)]
    asked += [tiny.score("Nothing is written after ", ("this", "New York"))]
    shards = [asked[::-1], asked]
    planner: Any = made(kind, tokens)
    planned = [sum(shard.costs, Cost()) for shard in planner.estimate_costs(shards)]
    model = made(kind, tokens)
    for shard, cost in zip(shards, planned, strict=True):
        sizes = watched(model)
        list(answer(model, shard))
        assert cost.fed == sum(sizes)
        assert cost.prompts == len(shard)
        assert cost.grown == 0


def test_a_prompt_that_is_written_on_is_not_paid_again_for_its_options(
    made: Make, world: Dataset
) -> None:
    writes, scores = (prompts(world, w) for w in (Generate(most=1), Score(options=("Paris",))))
    model = made("llama")
    both, alone = cost_of(model, [*scores, *writes]), cost_of(model, writes)
    assert both.computed < alone.computed + len(scores) * 4
    assert both.naive == alone.naive + cost_of(model, scores).naive
    assert both.options == len(scores)


def cost_of(model: Any, asked: Sequence[Prompt]) -> Cost:
    costs: Iterator[Any] = model.estimate_costs([asked])
    return sum(next(costs).costs, Cost())
