"""A plan says what is left, what it was counted from and how long it takes, and writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars
import pytest

import sonde
from sonde.core.abilities import Identity
from sonde.core.answers import Scored
from sonde.core.costs import Cost, Memory, ShardCost
from sonde.core.errors import RunMismatch, UsageError
from sonde.core.prompts import Prompt, Score, put
from sonde.runs.plan import COUNTED, choose, plan, steps
from sonde.runs.throughput import Pool, measure
from tests.rows import asked
from tests.runs.world import Listing
from tests.worlds import dataset_of, numbered, relation

PROBE = sonde.probe("lama", answer="score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A model that takes ten tokens for each option of P1 and one for those of P2."""

    name: str = "priced"
    counted: list[int] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(name=self.name, architecture="priced")

    def score(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Scored]]:
        yield from Listing().score(prompts)

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        for prompts in shards:
            self.counted.append(len(prompts))
            yield ShardCost(
                costs=tuple(map(price, prompts)), memory=Memory(weights=8, batch=len(prompts))
            )


def price(prompt: Prompt) -> Cost:
    assert isinstance(prompt.want, Score)
    count = len(prompt.want.options)
    each = 10 if prompt.key.relation == "P1" else 1
    return Cost(prompts=1, options=count, naive=20 * count, computed=each * count)


def test_a_plan_counts_prompts_options_and_shards(tmp_path: Path) -> None:
    made = plan(PROBE, Priced(), numbered(6), tmp_path / "run", shard_weight=12, seconds=0)
    assert (made.prompts, made.options, made.shards) == (12, 72, 6)
    assert made.wants == {"score": 12}
    assert made.cost == Cost(prompts=12, options=72, naive=1440, computed=396)
    assert made.memory == Memory(weights=8, batch=2)
    assert [(s.relation, s.prompts, s.share) for s in made.relations] == [
        ("P1", 6, 360 / 396),
        ("P2", 6, 36 / 396),
    ]
    assert made.time is None


def test_planning_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan(PROBE, Priced(), numbered(), tmp_path / "run", seconds=0.01)
    plan(PROBE, Priced(), numbered(), seconds=0.01)
    assert list(tmp_path.iterdir()) == []


def test_what_a_folder_already_holds_is_not_planned_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    sonde.run(PROBE, Priced(), numbered(), out, shard_weight=12)
    whole = plan(PROBE, Priced(), numbered(), out, shard_weight=12)
    assert (whole.left, whole.done_prompts, whole.time) == (0, 12, None)
    assert whole.cost == Cost()
    (out / "shards" / "00000.parquet").unlink()
    (out / "shards" / "00005.parquet").unlink()
    rest = plan(PROBE, Priced(), numbered(), out, shard_weight=12, seconds=0)
    assert (rest.left, rest.done_shards, rest.done_prompts) == (2, 4, 8)
    assert rest.cost == Cost(prompts=4, options=24, naive=480, computed=132)


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    sonde.run(PROBE, Priced(), numbered(), tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(
        RunMismatch, match=r"model\.name: 'priced' in the folder, 'other' asked for"
    ):
        plan(PROBE, Priced(name="other"), numbered(), tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_without_tokens_has_a_time_and_no_cost(tmp_path: Path) -> None:
    made = plan(PROBE, Listing(), numbered(), tmp_path / "run", seconds=0.01)
    assert made.cost is None and made.memory is None
    assert made.time is not None
    assert 0 < made.time.low < made.time.value < made.time.high
    assert [share.share for share in made.relations] == [0.5, 0.5]


def test_a_very_large_run_is_counted_in_part_and_scaled() -> None:
    model, facts = Priced(), numbered(2 * COUNTED)
    made = plan(PROBE, model, facts, seconds=0, shard_weight=2 * COUNTED)
    assert not made.exact
    assert made.counted == COUNTED
    assert len(model.counted) < 2 * COUNTED  # fewer than the shards, with the ends before them
    exact = plan(PROBE, Priced(), facts, seconds=0, shard_weight=2 * COUNTED, exact=True)
    assert exact.exact
    assert made.cost == exact.cost  # every prompt of a relation costs the same here
    assert made.relations == exact.relations


def test_every_relation_is_counted_somewhere() -> None:
    outline = polars.DataFrame({"shard": range(90), "relation": [f"P{n // 3}" for n in range(90)]})
    chosen = choose(outline, 40)
    assert len(chosen) == 40
    assert {n // 3 for n in chosen} == set(range(30))


def test_a_counted_shard_comes_after_the_end_of_the_one_before() -> None:
    prompts = put(asked(PROBE, numbered(20)))
    cut = [prompts.part(i, i + 10) for i in range(0, 40, 10)]
    (none, tail), *found = steps(enumerate(cut), {1, 2}, done=())
    assert (none, list(tail)) == (None, list(cut[0])[-8:])
    assert found == [(1, cut[1]), (2, cut[2])]
    assert list(steps(enumerate(cut), {1, 2}, done={0})) == [(1, cut[1]), (2, cut[2])]


def test_nothing_to_ask_is_refused() -> None:
    with pytest.raises(UsageError, match="finds nothing to ask"):
        plan(PROBE, Priced(), dataset_of([], relation("P1", "[X] has [Y].")))


def pool(sizes: Sequence[int]) -> Pool:
    prompts = asked(PROBE, numbered(sum(sizes)))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    cut = tuple(prompts[a : a + n] for a, n in zip(starts, sizes, strict=True))
    return Pool(shards=cut, work=tuple([1] * n for n in sizes))


def test_slices_are_spread_and_stay_in_their_shard() -> None:
    many = pool([30, 5, 30])
    slices = [many.slice(number, 7) for number in range(12)]
    assert {len(found) for found in slices} <= {5, 7}
    assert len({found[0].key.fact for found in slices}) > 9
    homes = [{p.key.fact for p in shard} for shard in many.shards]
    for found in slices:
        assert any({p.key.fact for p in found} <= home for home in homes)


def test_the_warm_up_is_no_part_of_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    calls: list[int] = []
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def answer(prompts: Sequence[Prompt]) -> None:
        clock[0] += 0.01 * len(prompts) + (3.0 if not calls else 0.0)
        calls.append(len(prompts))

    work: Callable[[Sequence[Prompt]], int] = len
    found = measure(answer, work, pool([400]), total=10**6, seconds=20)
    assert found.value == pytest.approx(0.01)
    assert found.low == pytest.approx(0.008)
    assert found.high == pytest.approx(0.012)
    assert found.start == pytest.approx(3.0)
    assert found.spent == pytest.approx(clock[0])
    assert len(calls) > 3


@pytest.mark.slow
@pytest.mark.shared
def test_the_estimated_time_is_near_the_measured_one(shared: Path, tmp_path: Path) -> None:
    """The one place where a clock is compared: 300 facts, both times within a factor of two."""
    facts = sonde.dataset(
        str(shared / "data/lama"), relations=("P103", "P36", "P176", "P20", "P30", "P527"), limit=50
    )
    name = f"hf:{shared / 'models/encoder-24m'}"
    made = sonde.plan(sonde.probe("lama"), sonde.model(name), facts, tmp_path / "run")
    assert made.prompts == 300
    model = sonde.model(name)
    began = time.perf_counter()
    sonde.run(sonde.probe("lama"), model, facts, tmp_path / "run")
    took = time.perf_counter() - began
    assert made.time is not None
    assert took / 2 < made.time.value < took * 2
