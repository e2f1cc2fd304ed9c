"""Budgets fit the chip and the model: by their sizes, by free memory and by a measurement."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.models.torch.loading import budgets
from sonde.models.torch.loading.budgets import Rates, Sizes, climb, feed, power_below
from tests.tiny import Load

SMALL = Sizes(parameters=134_515_008, layer=13_056, kept=23_040, logits=294_912)
LARGE = Sizes(parameters=6_738_415_616, layer=93_184, kept=524_288, logits=192_000)


@given(st.floats(0, 1e30))
def test_powers_of_two_are_never_above(number: float) -> None:
    found = power_below(number)
    assert found == 1 or found <= number < 2 * found or found == 2**62


@given(
    free=st.floats(1, 1e12),
    more=st.floats(1, 100),
    layer=st.integers(1, 10**6),
    kept=st.integers(0, 10**7),
    logits=st.integers(0, 10**6),
)
def test_more_memory_never_means_less_at_once_and_what_is_chosen_fits(
    free: float, more: float, layer: int, kept: int, logits: int
) -> None:
    sizes = Sizes(parameters=1, layer=layer, kept=kept, logits=logits)
    for kind in ("score", "generate"):
        most = sizes.most(kind, free)
        assert most <= sizes.most(kind, free * more)
    most = sizes.most("score", free)
    assert most == 1 or most * (layer + logits) <= free
    most = sizes.most("generate", free)
    assert most == 1 or most * kept <= free


@pytest.mark.parametrize(
    ("version", "said", "free"),
    [
        (1, "1000", 1000 - (700 - 300)),
        (1, "100", 0),
        (1, "9223372036854771712", 9223372036854771712 - 400),
        (2, "1000", 1000 - (700 - 300)),
        (2, "100", 0),
        (2, "max", float("inf")),
    ],
)
@pytest.mark.parametrize("place", ["", "slice/pod"])
def test_the_limit_of_a_cgroup_bounds_free_memory(
    tmp_path: Path, version: int, said: str, free: float, place: str
) -> None:
    group = tmp_path / "sys/fs/cgroup" / ("memory" if version == 1 else "") / place
    (group / "deeper").mkdir(parents=True)  # has no files: the limit is above
    limit, usage, idle = budgets.CGROUP_1 if version == 1 else budgets.CGROUP_2
    (group / limit).write_text(f"{said}\n")
    (group / usage).write_text("700\n")
    (group / "memory.stat").write_text(f"active_file 100\n{idle} 300\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    line = f"4:cpu,memory:/{place}/deeper" if version == 1 else f"0::/{place}/deeper"
    (tmp_path / "proc/self/cgroup").write_text(f"3:pids:/elsewhere\n{line}\n")
    assert budgets.cgroup_free(tmp_path) == free


def test_where_there_are_no_cgroups_nothing_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert budgets.cgroup_free(tmp_path) == float("inf")
    monkeypatch.setattr(budgets, "cgroup_free", lambda: 5.0)
    assert budgets.free_bytes(torch.device("cpu")) == 5.0


def test_a_small_model_takes_more_at_once_than_a_large_one() -> None:
    assert SMALL.busy == 32_768 and LARGE.busy == budgets.FEWEST
    assert SMALL.most("score", 24 * 2**30) == 32_768
    assert LARGE.most("generate", 120 * 2**30) == 65_536


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6), st.integers(1, 64))
def test_climbing_stops_where_twice_as_much_is_not_worth_it(rates: list[float], usual: int) -> None:
    sizes = [2**i for i in range(len(rates))]
    asked: list[int] = []

    def rate(size: int) -> float:
        asked.append(size)
        return rates[sizes.index(size)]

    best = climb(rate, sizes, 1.1, usual)
    steps = [b > 1.1 * a for a, b in pairwise(rates)]
    assert sizes.index(best) == (steps.index(False) if False in steps else len(steps))
    assert len(asked) <= sizes.index(best) + 2


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3", "mamba", "bert", "roberta", "t5"])
@pytest.mark.parametrize("tree", [True, False])
def test_every_kind_of_model_can_be_measured(tiny: Load, kind: str, tree: bool) -> None:
    model: Any = tiny(kind).model
    if tree and kind in ("llama", "gpt2", "gemma3"):
        feed(model, 64, tree=True)
    feed(model, 64, tree=False)


def test_a_measurement_ends_where_memory_does(tiny: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(model: Any, tokens: int, *, tree: bool) -> None:
        if tokens > 64:
            raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(budgets, "feed", full)
    monkeypatch.setattr(budgets, "SECONDS", {"cpu": 60.0})
    rates = Rates(tiny("llama").model, tree=False)
    assert rates(64) and rates(128) == 0.0
    monkeypatch.setattr(budgets, "SECONDS", {"cpu": -1.0})
    assert rates(64) is None


def test_what_cannot_be_measured_stays_as_is_usual(
    tiny: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonde.models.torch.masked.model import MaskedModel

    def refusing(model: Any, tokens: int, *, tree: bool) -> None:
        raise TypeError("it takes pictures")

    monkeypatch.setattr(budgets, "feed", refusing)
    model = MaskedModel(tiny("bert"))
    assert model.budgets.choose(measure=True).tokens == {"fill": 4096, "score": 4096}
