"""Say what a run would cost before it is made: prompts, tokens, time, memory. Writes nothing.

Knows nothing of how tokens are counted (a model's own `estimate_costs`) or of how a plan is shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.core.abilities import WANTED, Model, Plans, Probe
from sonde.core.costs import Batches, Cost, Memory, ShardCost
from sonde.core.errors import UsageError
from sonde.core.fact_frames import refuse_repeats
from sonde.core.facts import Dataset
from sonde.core.progress import advance, begin
from sonde.core.prompts import Prompt, Prompts, Score, put
from sonde.runs.batches import computing, settle
from sonde.runs.refusals import fitting, refuse_unasked, suited
from sonde.runs.run import default_folder, describe
from sonde.runs.shards import OPTION, SHARD_WEIGHT, answer, asked, shards, weights
from sonde.runs.throughput import MARGIN, Pool, Throughput, measure
from sonde.store.manifest import Manifest, differences, mismatch
from sonde.store.runs import RunFolder

if TYPE_CHECKING:
    from polars import DataFrame

COUNTED = 48
"""Shards that are counted at most, unless all are asked for."""

POOLED = 16
"""Shards whose prompts are kept for measuring."""

TAIL = 8
"""Prompts before a counted shard that say which beginnings the model already holds."""

SECONDS = 5.0
OUTLINE: dict[str, Any] = {
    "shard": int,
    "relation": str,
    "want": str,
    "prompts": int,
    "options": int,
    "work": int,
}
"""The columns of shards in numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """Seconds a run will take: about `value`, between `low` and `high`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One relation's part of what is left to do; `share` is of the time."""

    relation: str
    label: str
    prompts: int
    options: int
    cost: Cost | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """What a run would cost. `cost`, `memory`, `relations` and `time` are of what is left to do.

    `wants`: prompts by what they want of the model. `counted`: shards whose tokens were counted;
    where that is fewer than are left, token counts are scaled from them. `cost` and `memory` are
    None for a model that computes no tokens, `time` and `pace` where nothing was measured. `work`:
    what time is reckoned by: tokens that go through the model, or else options and prompts.
    `batches`: tokens that go through it at once, by what is wanted.
    """

    probe: str
    dataset: str
    model: str
    device: str
    folder: Path
    prompts: int
    options: int
    wants: Mapping[str, int]
    shards: int
    done_prompts: int
    done_shards: int
    counted: int
    work: int
    cost: Cost | None
    memory: Memory | None
    relations: tuple[Share, ...]
    batches: Mapping[str, int] = field(default_factory=dict)
    time: Time | None = None
    pace: Throughput | None = None

    def __repr__(self) -> str:
        time = "" if self.time is None else f", about {self.time.value:,.0f} s"
        what = f"{self.probe} on {self.dataset}, {self.model}"
        return f"<Plan: {what}: {self.prompts:,} prompts{time}>"

    @property
    def left(self) -> int:
        """Shards that are still to be computed."""
        return self.shards - self.done_shards

    @property
    def exact(self) -> bool:
        """Whether every token that is left was counted."""
        return self.counted == self.left


def plan(
    probe: Probe,
    model: Model,
    dataset: Dataset,
    out: str | Path | None = None,
    *,
    exact: bool = False,
    seconds: float = SECONDS,
    shard_weight: int = SHARD_WEIGHT,
) -> Plan:
    """What `run` with the same arguments would cost; nothing is answered for good or written.

    `exact` counts every shard of a large run. `seconds` bounds the measurement; 0 leaves it out.
    """
    probe = suited(probe, model, dataset)
    refuse_unasked(probe, dataset)
    manifest = describe(probe, model, dataset, shard_weight)
    folder = Path(out) if out is not None else default_folder(manifest)
    batches = foreseen(model, folder, manifest)
    shard_weight *= batches.shards
    began = time.perf_counter()
    outline = outline_of(shards(asked(probe, model, dataset), shard_weight))
    asking = time.perf_counter() - began
    refuse_repeats(dataset, dataset.asked_relations())
    if not outline.height:
        raise UsageError(f"probe {probe.name!r} finds nothing to ask in dataset {dataset.name!r}")
    done = finished(folder, outline["shard"].n_unique())
    left = outline.filter(~outline["shard"].is_in(done))
    chosen = choose(left, left["shard"].n_unique() if exact else COUNTED)
    cut = enumerate(shards(asked(probe, model, dataset), shard_weight))
    begin("counting tokens", len(chosen))
    with fitting(probe, model, dataset):
        counted = count(model, steps(cut, chosen, done))
    scheme = _scheme(probe, model, dataset, folder, outline, done, len(chosen), counted)
    at_once = {kind: count for kind, count in batches.now.items() if kind in scheme.wants}
    scheme = replace(scheme, batches=at_once)
    if not chosen or seconds <= 0:
        return scheme
    begin("measuring the speed")
    work = scheme.work
    with computing(model, batches):
        pace = measure(
            lambda ps: list(answer(model, ps)), meter(model), counted.pool, work, seconds
        )
    return replace(scheme, pace=pace, time=_time(pace, work, asking))


def outline_of(cut: Iterable[Prompts]) -> DataFrame:
    """Shards in numbers, rows of a shard, relation and want: prompts, options, work."""
    import polars
    from polars import col

    rows = []
    for number, shard in enumerate(cut):
        for block in shard.blocks:
            weighed = block.frame.select("relation").with_columns(work=weights(block))
            counted = col("work").len().alias("prompts")
            sums = weighed.group_by("relation").agg(counted, col("work").sum())
            scored, want = isinstance(block.want, Score), WANTED[type(block.want)]
            for relation, prompts, work in sums.iter_rows():
                options = work // OPTION if scored else 0
                rows.append((number, relation, want, prompts, options, work))
    return polars.DataFrame(rows, schema=OUTLINE, orient="row")


def foreseen(model: Model, path: Path, manifest: Manifest) -> Batches:
    """How much would go through the model at once, as `run` settles it, but never measured.

    A folder with another run is refused, as `run` does.
    """
    found, folder, begun = manifest, RunFolder(path), False
    if (path / "manifest.json").exists():
        found, begun = folder.manifest(), bool(folder.shards())
        unlike = differences(found, manifest)
        if unlike and begun:
            raise mismatch(path, unlike)
        found = manifest if unlike else found
    return settle(model, Batches(**found.batches), begun=begun, work=0)


def finished(path: Path, count: int) -> frozenset[int]:
    """Shards of the run that the folder already holds."""
    if not (path / "manifest.json").exists():
        return frozenset()
    return frozenset(n for n in (int(p.stem) for p in RunFolder(path).shards()) if n < count)


def choose(outline: DataFrame, most: int) -> frozenset[int]:
    """Shards to count: all if they are few, else one in the middle of each relation, and others."""
    from polars import col

    numbers = outline["shard"].unique().sort().to_list()
    if len(numbers) <= most:
        return frozenset(numbers)
    homes = outline.group_by("relation").agg(col("shard").unique().sort())["shard"].to_list()
    middles = sorted({shards[len(shards) // 2] for shards in homes})
    chosen = set(spread(middles, most))
    others = [n for n in numbers if n not in chosen]
    return frozenset(chosen | set(spread(others, most - len(chosen))))


def spread(items: Sequence[int], most: int) -> list[int]:
    """At most so many of the items, evenly apart.

    >>> spread([1, 2, 3, 4, 5, 6], 2)
    [2, 5]
    """
    if len(items) <= most:
        return list(items)
    return [items[int((i + 0.5) * len(items) / most)] for i in range(most)]


def steps(
    cut: Iterable[tuple[int, Prompts]], chosen: Collection[int], done: Collection[int]
) -> Iterator[tuple[int | None, Prompts]]:
    """The shards to count, each after the end of an uncounted one before it, which has no number.

    That end is not paid for: it tells the model which beginnings it will hold by then.
    """
    tail: Prompts | None = None
    for number, shard in cut:
        if number in chosen:
            if tail is not None:
                yield None, tail
            yield number, shard
        tail = None if number in chosen or number in done else shard[-TAIL:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What counting found: tokens by relation, the work behind them, memory, and a pool."""

    costs: Mapping[str, Cost]
    work: Counter[str]
    memory: Memory | None
    pool: Pool


def count(model: Model, shards: Iterable[tuple[int | None, Prompts]]) -> Count:
    """Count the tokens of some shards, keeping a few of them to measure with."""
    costs: dict[str, Cost] = {}
    work: Counter[str] = Counter()
    memory: Memory | None = None
    kept: list[tuple[Prompts, list[int]]] = []
    seen, every = 0, 1
    estimate = estimator(model)
    for number, prompts in shards:
        cost = estimate(prompts)
        if number is None:
            continue
        own = work_of(prompts)
        for i, relation in enumerate(prompts.column("relation")):
            work[relation] += own[i]
            if cost:
                costs[relation] = costs.get(relation, Cost()) + cost.costs[i]
        advance()
        if cost and cost.memory.total:
            memory = cost.memory | (memory or Memory())
        if seen % every == 0:
            kept.append((prompts, [c.fed for c in cost.costs] if cost else own))
        seen += 1
        if len(kept) > POOLED:
            kept, every = kept[::2], every * 2
    pool = Pool(shards=tuple(p for p, _ in kept), work=tuple(w for _, w in kept))
    return Count(costs=costs, work=work, memory=memory, pool=pool)


def work_of(prompts: Prompts) -> list[int]:
    """What each prompt weighs."""
    return [weight for block in prompts.blocks for weight in weights(block).tolist()]


def estimator(model: Model) -> Callable[[Sequence[Prompt]], ShardCost | None]:
    """What prompts cost that are put to the model one after the other; None if it does not say."""
    if not isinstance(model, Plans):
        return lambda prompts: None
    given: list[Sequence[Prompt]] = []

    def shards() -> Iterator[Sequence[Prompt]]:
        while True:
            yield given.pop()

    costs = model.estimate_costs(shards())

    def estimate(prompts: Sequence[Prompt]) -> ShardCost:
        given.append(prompts)
        return next(costs)

    return estimate


def _scheme(
    probe: Probe,
    model: Model,
    dataset: Dataset,
    folder: Path,
    outline: DataFrame,
    done: Collection[int],
    counted: int,
    found: Count,
) -> Plan:
    """The plan without time."""
    of_done = outline["shard"].is_in(done)
    relations = _shares(dataset, outline.filter(~of_done), found)
    costs = [share.cost for share in relations if share.cost is not None]
    wants = outline.group_by("want").agg("prompts").sort("want")
    return Plan(
        probe=probe.name,
        dataset=dataset.name,
        model=model.identity.name,
        device=model.identity.details.get("device", "cpu"),
        folder=folder,
        prompts=int(outline["prompts"].sum()),
        options=int(outline["options"].sum()),
        wants={want: sum(prompts) for want, prompts in wants.iter_rows()},
        shards=outline["shard"].n_unique(),
        done_prompts=int(outline.filter(of_done)["prompts"].sum()),
        done_shards=len(done),
        counted=counted,
        work=sum(costs, Cost()).fed if costs else int(outline.filter(~of_done)["work"].sum()),
        cost=sum(costs, Cost()) if isinstance(model, Plans) else None,
        memory=found.memory,
        relations=relations,
    )


def _shares(dataset: Dataset, left: DataFrame, counted: Count) -> tuple[Share, ...]:
    """What each relation takes of what is left, the most expensive first."""
    labels = {r.id: r.label for r in dataset.relations if r.title != r.id}
    sums = left.select("relation", "prompts", "options", "work").group_by("relation").sum()
    shares = []
    for relation, prompts, options, work in sums.iter_rows():
        cost = _scaled(relation, prompts, options, work, counted)
        shares.append(
            Share(
                relation=relation,
                label=labels.get(relation, ""),
                prompts=prompts,
                options=options,
                cost=cost,
                share=work if cost is None else cost.fed,
            )
        )
    total = sum(share.share for share in shares) or 1
    ordered = sorted(shares, key=lambda share: (-share.share, share.relation))
    return tuple(replace(share, share=share.share / total) for share in ordered)


def _scaled(relation: str, prompts: int, options: int, work: int, counted: Count) -> Cost | None:
    """A relation's tokens, scaled by its work where only a part was counted."""
    if not counted.costs:
        return None
    cost, seen = counted.costs.get(relation), counted.work[relation]
    if cost is None:  # none of it was counted: take it to be like the others
        cost, seen = sum(counted.costs.values(), Cost()), counted.work.total()
    elif seen == work:
        return cost
    return replace(cost.scaled(work / seen), prompts=prompts, options=options)


def meter(model: Model) -> Callable[[Sequence[Prompt]], int]:
    """The work of slices that are put to the model one after the other."""
    estimate = estimator(model)

    def work(prompts: Sequence[Prompt]) -> int:
        cost = estimate(prompts)
        return sum(c.fed for c in cost.costs) if cost else sum(work_of(put(prompts)))

    return work


def _time(pace: Throughput, work: int, asking: float) -> Time:
    """The pace applied to the work, after what comes once."""
    once = pace.start + asking
    return Time(
        value=once + pace.value * work,
        low=once * (1 - MARGIN) + pace.low * work,
        high=once * (1 + MARGIN) + pace.high * work,
    )
