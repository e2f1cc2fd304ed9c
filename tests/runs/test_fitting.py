"""Where prompts are too long, the largest setting with which they fit is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from sonde.core.abilities import Identity
from sonde.core.costs import Cost, Memory, ShardCost
from sonde.core.errors import PromptTooLong
from sonde.core.prompts import Prompt, prompts_of
from sonde.probes.ic_lke import IcLke
from sonde.probes.lama import Lama
from sonde.runs.refusals import fitting, largest
from tests.worlds import fact, world

DATA = world(
    [*(fact("P36", f"s{i}", "o", split="train") for i in range(40)), fact("P36", "x", "y")]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """Takes texts of so many characters."""

    limit: int

    @property
    def identity(self) -> Identity:
        return Identity(name="narrow", architecture="none")

    def estimate_costs(self, shards: Iterable[Sequence[Prompt]]) -> Iterator[ShardCost]:
        for shard in shards:
            longest = max(len(prompt.prefix) for prompt in shard)
            if longest > self.limit:
                raise PromptTooLong("too long", needed=longest, limit=self.limit)
            yield ShardCost(costs=tuple(Cost(prompts=1) for _ in shard), memory=Memory())


def brute(limit: int, most: int) -> int | None:
    sizes = {
        n: max(len(p.prefix) for p in prompts_of(IcLke(shots=n).ask(DATA))) for n in range(1, most)
    }
    return max((n for n, size in sizes.items() if size <= limit), default=None)


@pytest.mark.parametrize("limit", [1, 7, 8, 30, 61, 100, 150, 10_000])
def test_it_is_the_largest_of_all_smaller_ones(limit: int) -> None:
    assert largest(IcLke(shots=30), Narrow(limit=limit), DATA) == brute(limit, 30)


def test_a_refusal_says_what_would_fit() -> None:
    with (
        pytest.raises(
            PromptTooLong, match=r"too long. The largest shots that fits .* --shots \d+$"
        ),
        fitting(IcLke(shots=30), Narrow(limit=100), DATA),
    ):
        raise PromptTooLong("too long", needed=2, limit=1)


def test_a_probe_that_cannot_shrink_is_refused_as_before() -> None:
    with pytest.raises(PromptTooLong, match=r"^too long$"), fitting(Lama(), Narrow(limit=1), DATA):
        raise PromptTooLong("too long", needed=2, limit=1)
