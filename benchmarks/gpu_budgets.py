"""Benchmark: is the number of tokens that is chosen near the best, on a GPU?

For SmolLM2, and for random weights in the shapes of Llama-2-7B and BERT-base: the rates that a
measurement finds, what is chosen with and without it, and how fast the same prompts are answered
under each of several budgets, text in, answers out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import sonde
from benchmarks import gpu_causal, gpu_masked
from benchmarks.common import Result, parser, tell
from sonde.core.abilities import Ability, abilities
from sonde.core.prompts import Prompt, Prompts
from sonde.models.options import LoadOptions
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.budgets import Rates
from sonde.models.torch.masked.model import MaskedModel
from sonde.runs.shards import SHARD_WEIGHT, answer, shards

SHAPE = SimpleNamespace(width=4096, layers=32, device="cuda")
TIMES = (1, 4, 16, 64, 256)
"""Budgets that are tried, times 2,048 tokens (8,192 where texts are written)."""


def main() -> None:
    """Measure and tell."""
    options = parser(__doc__ or "")
    options.add_argument("--only", default="", help="smollm2, llama or bert")
    options.add_argument("--limit", type=int, default=None, help="facts of each relation")
    options.add_argument("--times", type=int, nargs="+", default=TIMES, help="budgets, times 2,048")
    chosen = options.parse_args()
    rows: list[tuple[str, ...]] = []
    findings: list[str] = []
    for name, kind, make in worlds(chosen.limit):
        if chosen.only and chosen.only not in name:
            continue
        try:
            model, cut = make()
            found = list(timed(name, kind, model, cut, chosen.times))
            rows += found
            findings.append(told(name, model))
        except Exception as error:  # one that fails must not lose the others
            findings.append(f"{name}: {type(error).__name__}: {error}")
        print(*(row for row in rows if row[0] == name), findings[-1], sep="\n", flush=True)
    result = Result(
        name="gpu_budgets",
        title="Prompts a second under several token budgets",
        columns=("what", "tokens at once", "shards", "prompts/s", "chosen"),
        rows=tuple(rows),
        findings=tuple(findings),
    )
    tell(result, write=chosen.write)


World = tuple[str, Ability, Callable[[], tuple[Any, list[Prompts]]]]


def worlds(limit: int | None) -> Iterator[World]:
    """What is asked of which model."""
    for probe, kind in (("ic-lke", "score"), ("belief-icl", "sample"), ("framing", "generate")):
        yield f"smollm2, {probe}", kind, lambda probe=probe: asked(probe, limit)  # type: ignore[misc]
    yield "llama-2-7b shape, 100 options", "score", lambda: large(400 if limit is None else limit)
    yield "bert-base shape, clozes", "fill", lambda: masked(limit)


def asked(name: str, limit: int | None) -> tuple[Any, list[Prompts]]:
    """A probe's own prompts to SmolLM2, in shards as a run cuts them."""
    model: Any = sonde.model("smollm2")
    dataset = sonde.dataset("atlas", limit=limit)
    spaces = {"pair_separator": "space", "example_separator": "space"}
    settings = spaces if name == "ic-lke" else {}
    probe = sonde.probe(name, **settings).suited(abilities(model))
    weight = SHARD_WEIGHT * model.budgets.choose(measure=False).shards
    return model, list(shards(probe.ask(dataset), weight))


def large(count: int) -> tuple[Any, list[Prompts]]:
    """100 options behind 600 tokens that all share."""
    dataset = sonde.dataset("atlas")
    facts = [fact for relation in dataset.relations for fact in dataset.facts(relation.id)]
    wrapped = gpu_causal.tokenizer([f"{f.subject.name} {o.name}" for f in facts for o in f.objects])
    model = CausalModel(gpu_causal.llama(wrapped, LoadOptions(), SHAPE))
    weight = SHARD_WEIGHT * model.budgets.choose(measure=False).shards
    return model, list(shards(gpu_causal.asked(facts, wrapped, count), weight))


def masked(limit: int | None) -> tuple[Any, list[Prompts]]:
    """Every name of every subject in every template."""
    dataset = sonde.dataset("atlas")
    model = MaskedModel(gpu_masked.bert(gpu_masked.tokenizer(dataset), LoadOptions()))
    prompts: Sequence[Prompt] = gpu_masked.asked(dataset, watch=False)
    weight = SHARD_WEIGHT * model.budgets.choose(measure=False).shards
    return model, list(shards(prompts[: limit and 100 * limit], weight))


def timed(
    name: str, kind: Ability, model: Any, cut: list[Prompts], times: Sequence[int]
) -> Iterator[tuple[str, ...]]:
    """Prompts a second under each budget, after a turn that warms up."""
    usual = model.budgets.usual()[kind]
    prompts = sum(map(len, cut))
    sizes = sorted(
        {(8192 if kind in ("generate", "sample") else 2048) * t for t in times} | {usual}
    )
    for turn, size in enumerate([usual, *sizes]):
        model.budgets.fix(dict.fromkeys(model.budgets.tokens, size))
        began = time.perf_counter()
        for shard in cut:
            list(answer(model, shard))  # which waits for all of it
        took = time.perf_counter() - began
        left = model.budgets[kind].tokens
        note = "usual" if size == usual else ""
        note += "" if left == size else f" memory left {left:,}"
        if turn:
            yield name, f"{size:,}", str(len(cut)), f"{prompts / took:,.1f}", note.strip()


def told(name: str, model: Any) -> str:
    """What a measurement finds, and what is chosen by it."""
    rates = Rates(model.model, tree="score" in model.budgets.trees)
    ladder = {size: rates(size) for size in (2**i for i in range(10, 19))}
    found = ", ".join(f"{n:,}: {rate / 1e6:.2f}" for n, rate in ladder.items() if rate)
    model.budgets.fix(model.budgets.usual())
    began = time.perf_counter()
    batches = model.budgets.choose(measure=True)
    took = time.perf_counter() - began
    return (
        f"{name}: {model.budgets.sizes}; million tokens a second at once: {found}; usual "
        f"{model.budgets.usual()}, {batches.chosen} {batches.tokens} in {took:.2f} s, shards "
        f"{batches.shards} times"
    )


if __name__ == "__main__":
    main()
