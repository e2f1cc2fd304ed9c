"""Which runs are set against each other: smallest and largest, base and fine-tuned."""

from __future__ import annotations

from typing import Any

from sonde.analysis.runs import Compared, smallest_and_largest, tuned
from tests.analysis.world import asked


def model(name: str, size: int | None = None, setting: str = "", **more: Any) -> Compared:
    family = {"family": "f", "stage": "base"} | more
    return asked(name, [[1]], setting=setting, size=size, **family)


def named(runs: list[Compared], *, by: str) -> list[tuple[str, str]]:
    if by == "size":
        return [(smallest, largest) for _, smallest, largest in smallest_and_largest(runs)]
    return [(fine_tuned, base) for _, base, fine_tuned in tuned(runs)]


SIX, ONE, TWO = model("six", 6), model("one", 1), model("two", 2)
CHAT = model("chat", 6, stage="fine-tuned", base="six")


def test_the_smallest_of_a_family_stands_against_the_largest_in_any_order() -> None:
    for runs in ([SIX, ONE, TWO], [ONE, TWO, SIX]):
        assert named(runs, by="size") == [("one", "six")]


def test_models_of_one_size_of_unknown_size_or_family_are_not_set_against_each_other() -> None:
    assert named([SIX, model("twin", 6)], by="size") == []
    assert named([SIX, model("guess")], by="size") == []
    lost = [model("a", 1, family="unknown"), model("b", 2, family="unknown")]
    assert named(lost, by="size") == []
    assert named([ONE, model("elsewhere", 9, family="g")], by="size") == []


def test_fine_tuned_models_are_compared_with_fine_tuned_ones() -> None:
    small = model("small chat", 1, stage="fine-tuned", base="one")
    found = named([SIX, ONE, CHAT, small], by="size")
    assert found == [("one", "six"), ("small chat", "chat")]


def test_runs_of_another_setting_are_not_compared() -> None:
    asked_otherwise = model("six", 6, setting="qa")
    assert named([ONE, asked_otherwise], by="size") == []
    assert named([CHAT, asked_otherwise], by="tuning") == []


def test_a_fine_tuned_model_stands_against_its_base_where_that_is_there() -> None:
    other = model("vicuna", 6, stage="fine-tuned", base="six")
    assert named([CHAT, ONE], by="tuning") == []
    assert named([CHAT, other, SIX], by="tuning") == [("chat", "six"), ("vicuna", "six")]
