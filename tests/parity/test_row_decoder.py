"""Texts that grow as rows: recorded steps, rows that leave and join, and what a plan says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.prompts import Prompt
from sonde.engine.sampling import cumulative, split
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.rows import RowCache
from sonde.models.torch.causal.shared_prefix import SharedPrefixes
from sonde.models.torch.causal.step_graph import Recorder, StepGraph
from sonde.models.torch.decode.growing import Growing, Shares, drawn_tokens
from sonde.models.torch.decode.steps import NoDistribution
from tests.parity.test_memory import ERRORS
from tests.parity.writing import LONG, Fed, assert_same_text, causal, draw, drawn, write, written
from tests.tiny import Load

NAMES = ("Oslo", "York", "Paris", "Vienna", "Warsaw", "Norway")
WRITES = [
    write(f"{start}{name} is in", most=n) for start in ("", LONG) for n, name in enumerate(NAMES, 2)
]
WRITES += [write(f"{LONG}{name} is", most=9, until="a") for name in NAMES]
DRAWS = [
    draw(f"{start}{name} is in", count=n) for start in ("", LONG) for n, name in enumerate(NAMES, 4)
]
# of these some texts end while others part
DRAWS += [
    draw(f"{LONG}{name} is", count=30, most=8, until="a", seed=n) for n, name in enumerate(NAMES)
]


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps go through the fixed buffers of a graph, also where there is no GPU to record it."""
    recorded: list[int] = []
    if not torch.cuda.is_available():
        monkeypatch.setattr(StepGraph, "record", lambda graph: recorded.append(len(graph.ids)))
    begin = Recorder.__init__

    def usable(self: Recorder, model: Any) -> None:
        begin(self, model)
        self.usable = True

    monkeypatch.setattr(Recorder, "__init__", usable)
    return recorded


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("budget", [120, 600, 10_000])
def test_recorded_steps_write_and_draw_the_same(
    tiny: Load, kind: str, budget: int, recording: list[int]
) -> None:
    expected = written(causal(tiny, kind, False), WRITES), drawn(causal(tiny, kind, False), DRAWS)
    model = causal(tiny, kind, "rows", budget)
    for one, other in zip(written(model, WRITES), expected[0], strict=True):
        assert_same_text(one, other)
    assert drawn(model, DRAWS) == expected[1]
    assert model.recorder.usable and model.recorder.tried


@pytest.mark.parametrize("fails", ["recording", "what is recorded"])
def test_a_step_that_cannot_be_recorded_is_taken_as_it_is(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, recording: list[int], fails: str
) -> None:
    expected = written(causal(tiny, "llama", False), WRITES)

    def refuse(graph: StepGraph) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    def mistake(graph: StepGraph, tokens: np.ndarray) -> Any:
        return torch.ones(len(tokens), model.loaded.vocabulary, device=graph.ids.device)

    monkeypatch.setattr(
        StepGraph, *(("record", refuse) if fails == "recording" else ("step", mistake))
    )
    model = causal(tiny, "llama", "rows")
    for one, other in zip(written(model, WRITES), expected, strict=True):
        assert_same_text(one, other)
    assert not model.recorder.usable


def test_where_recording_runs_out_of_memory_it_is_tried_once_for_the_same_rows(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, recording: list[int]
) -> None:
    asked = [write(f"{name} is in", most=6) for name in NAMES]
    expected = written(causal(tiny, "llama", False), asked)
    caches: list[Any] = []

    def refuse(graph: StepGraph) -> None:
        caches.append(graph.cache)
        raise torch.OutOfMemoryError("none is left")

    monkeypatch.setattr(StepGraph, "record", refuse)
    model = causal(tiny, "llama", "rows")
    for one, other in zip(written(model, asked), expected, strict=True):
        assert_same_text(one, other)
    assert model.recorder.usable and len({id(cache) for cache in caches}) == len(caches) > 0


def test_rows_that_have_ended_leave_and_others_join(tiny: Load) -> None:
    model = causal(tiny, "llama", "rows", budget=10_000)
    lengths = [len(model.encoder.open(prompt.prefix)) for prompt in WRITES]
    with Fed(model.model) as fed:
        written(model, WRITES)
    steps = [size for size, width in zip(fed.sizes, fed.widths, strict=True) if width == 1]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == len(WRITES) and steps[-1] < len(WRITES) / 4
    one = causal(tiny, "llama", "rows", budget=4 * (max(lengths) + 9))
    joined: list[int] = []
    join = Growing.join

    def noting(self: Growing, other: Growing) -> Growing:
        joined.append(len(other.leaves))
        return join(self, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Growing, "join", noting)
        written(one, WRITES)
    assert joined


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "linux", "windows", "python"])
@pytest.mark.parametrize("place", ["join", "take"])
def test_memory_that_runs_out_between_steps_changes_nothing(
    tiny: Load, monkeypatch: pytest.MonkeyPatch, error: Exception, place: str
) -> None:
    expected = written(causal(tiny, "llama", False), WRITES)
    model = causal(tiny, "llama", "rows", budget=500)
    whole = getattr(RowCache, place)
    failed: list[int] = []

    def fails(self: RowCache, *args: Any) -> Any:
        if not failed and len(self.lengths) > 2:
            failed.append(len(self.lengths))
            raise error
        return whole(self, *args)

    monkeypatch.setattr(RowCache, place, fails)
    for one, other in zip(written(model, WRITES), expected, strict=True):
        assert_same_text(one, other)
    assert failed


@pytest.mark.parametrize("prompts", [WRITES, DRAWS], ids=["written", "drawn"])
def test_a_plan_tells_what_is_read_before_anything_is_written(
    tiny: Load, prompts: list[Prompt]
) -> None:
    model = causal(tiny, "llama", "rows", budget=400)
    (shard,) = model.estimate_costs([prompts])
    planned = sum(cost.computed + cost.padding - cost.grown for cost in shard.costs)
    with Fed(model.model) as fed:
        (written if prompts is WRITES else drawn)(model, prompts)
    assert sum(size for size, width in zip(fed.sizes, fed.widths, strict=True) if width > 1) == (
        planned
    )


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    seed=st.integers(0, 100),
)
def test_many_rows_are_drawn_from_as_each_is(counts: list[int], seed: int) -> None:
    numbers = np.random.default_rng(seed)
    logits = torch.from_numpy(numbers.normal(size=(len(counts), 50)))
    logits[:, ::7] = -torch.inf
    sets = [numbers.random(count) for count in counts]
    rows = np.repeat(np.arange(len(counts)), counts)
    tokens = drawn_tokens(logits, np.concatenate(sets), rows)
    weights = torch.softmax(logits.float(), -1).numpy()
    for row, (own, draws) in enumerate(zip(weights, sets, strict=True)):
        found, times = np.unique(tokens[rows == row], return_counts=True)
        expected = split(cumulative(own), draws)
        assert dict(zip(found.tolist(), times.tolist(), strict=True)) == expected


def test_a_row_that_nothing_can_be_drawn_from_is_named() -> None:
    logits = torch.zeros(3, 5)
    logits[1] = torch.nan
    assert len(drawn_tokens(logits, np.array([0.5, 0.5]), np.array([0, 2]))) == 2
    with pytest.raises(NoDistribution) as caught:
        drawn_tokens(logits, np.array([0.5, 0.5]), np.array([0, 1]))
    assert caught.value.row == 1


def test_texts_longer_than_a_sliding_window_go_along_trees(tiny: Load) -> None:
    model: CausalModel = causal(tiny, "mistral", "rows")
    decoder: Any = model.decoder()
    assert decoder.farthest is not None
    far = write(LONG + LONG + "Oslo is in", most=4)
    assert decoder._too_far(decoder.openings([far], type(far.want))[0])
    (one,) = written(model, [far])
    (other,) = written(causal(tiny, "mistral", False), [far])
    assert_same_text(one, other)


def test_a_row_that_parts_while_another_ends_keeps_both_of_its_tokens() -> None:
    cache = RowCache(2, 8)
    cache.add(1)
    growing = Growing(
        leaves=np.array([0, 1]),
        paths=np.array([[3, 0, 0], [4, 0, 0]]),
        logps=np.zeros((2, 3), dtype=np.float32),
        lengths=np.array([1, 1]),
        rows=np.array([0, 1]),
        owners=np.array([0, 1]),
        counts=np.array([5, 5]),
        cache=cache,
        prefixes=SharedPrefixes.of([[]], np.zeros(2, dtype=np.int64)),
    )
    shares = Shares(
        rows=np.array([0, 0]),
        owners=np.array([0, 0]),
        counts=np.array([2, 3]),
        tokens=np.array([5, 7]),
        logps=np.zeros(2),
    )
    parted = growing.onward(shares, 1 / 8)
    assert parted.paths[parted.rows, 1].tolist() == [5, 7]
    assert parted.counts.tolist() == [2, 3]


def test_texts_that_end_while_others_part_are_drawn_as_a_tree_draws_them(tiny: Load) -> None:
    rows, tree = causal(tiny, "llama", "rows"), causal(tiny, "llama")
    for seed in range(120, 140):  # in 133 as many texts end as others part
        asked = [draw("Oslo is in", count=4, most=6, until="a", seed=seed)]
        assert drawn(rows, asked) == drawn(tree, asked)
