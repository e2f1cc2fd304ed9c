"""A run tells how far it is by the work that is done, also within a shard and within a prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.core.progress import advance, begin, heard, part, told
from sonde.data.format import write_dataset
from sonde.runs.throughput import shorter
from tests import tiny
from tests.worlds import dataset_of, numbered

from .world import Listing

MODELS: dict[str, tuple[Callable[..., Path], int]] = {
    "tree": (tiny.llama, 12),
    "flat": (tiny.mamba, 12),
    "masked": (tiny.bert, 12),
    "encoder and decoder": (tiny.t5, 40),
}
"""With how many facts, each of which has as many options, a prompt takes several passes."""


@pytest.mark.parametrize("kind", MODELS)
def test_a_bar_moves_within_a_prompt_that_takes_many_passes(kind: str, tmp_path: Path) -> None:
    build, facts = MODELS[kind]
    folder = build(tmp_path / "model")
    model = sonde.model(f"hf:{folder}", device="cpu", batch_tokens=16)
    ticks: list[tuple[float, int]] = []
    sonde.run(
        sonde.probe("lama", answer="score"),
        model,
        numbered(facts),
        tmp_path / "out",
        progress=lambda done, total: ticks.append((done, total)),
    )
    done = [each for each, _ in ticks]
    whole = 2 * facts
    assert ticks[0] == (0, whole) and ticks[-1] == (whole, whole)
    assert {total for _, total in ticks} == {whole}
    assert len([*(tmp_path / "out").glob("shards/*.parquet")]) == 1
    assert done == sorted(done) and len(set(done)) > 10
    assert any(each % 1 for each in done), "no step is smaller than a prompt"


def test_what_was_answered_before_is_not_told_step_by_step(tmp_path: Path) -> None:
    out, dataset, probe = tmp_path / "out", numbered(), sonde.probe("lama")
    sonde.run(probe, Listing(), dataset, out, shard_weight=12)
    (out / "shards" / "00004.parquet").unlink()
    (out / "complete.json").unlink()
    ticks: list[float] = []
    tell: Any = lambda done, total: ticks.append(done)  # noqa: E731
    sonde.run(probe, Listing(), dataset, out, shard_weight=12, progress=tell)
    assert ticks[:2] == [0, 8] and ticks[-1] == 12


def test_a_shorter_run_is_named_with_the_time_it_would_take() -> None:
    probe = sonde.probe("belief", bias=False).suited(frozenset({"score"}))
    found = dict(shorter(probe, numbered(400), 24_000))
    assert found == {"--limit 5": 300}
    assert dict(shorter(probe, numbered(400), 480_000)) == {"--limit 1": 1200}
    one = replace(numbered(400).selection, limit=1)
    assert not dict(shorter(probe, numbered(400).select(one), 24_000))


def test_fewer_templates_are_named_where_a_probe_chooses_among_them() -> None:
    dataset = sonde.dataset("atlas", limit=1)
    flags = dict(shorter(sonde.probe("belief").suited(frozenset({"score"})), dataset, 3600))
    assert 0 < flags["--template-source manual"] < 3600


class Heard:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, what: str, total: float) -> None:
        self.told.append((what, total))

    def advance(self, count: float) -> None:
        self.told.append(count)


def test_parts_are_heard_as_parts_and_items_without_what_makes_them() -> None:
    def items() -> Any:
        for each in "ab":
            begin("something inside")
            advance(99)
            yield each

    listener = Heard()
    with heard(listener):
        assert list(told(items(), "items", 2)) == ["a", "b"]
        with part(0.5):
            begin("a half")
            advance(3)
    advance(7)  # nobody listens
    assert listener.told == [("items", 2), 1, 1, 1.5]


def test_reading_a_run_and_writing_a_dataset_tell_how_far_they_are(tmp_path: Path) -> None:
    dataset, listener = numbered(), Heard()
    run = sonde.run(sonde.probe("lama"), Listing(), dataset, tmp_path / "out", shard_weight=12)
    with heard(listener):
        run.results()
        write_dataset(dataset, tmp_path / "data")
    read = (f"reading {tmp_path / 'out'}", 6)
    assert listener.told == [
        *(read, *[1] * 6, ("working out the numbers", 0)),
        *(("writing data", 2), 1, 1),
    ]


def test_prompts_of_more_work_count_for_more(tmp_path: Path) -> None:
    several, one = numbered(30), numbered(1)
    facts = [*several.facts("P1"), *one.facts("P2")]
    dataset = dataset_of(facts, *several.relations)
    ticks: list[float] = []
    tell: Any = lambda done, total: ticks.append(done)  # noqa: E731
    sonde.run(sonde.probe("lama"), Listing(), dataset, tmp_path / "out", progress=tell)
    steps = sorted({round(b - a, 6) for a, b in pairwise(ticks)} - {0})
    assert ticks[-1] == 31 and len(steps) == 2, "the two relations' prompts differ in options"
    assert steps[0] < 1 < steps[1]
