"""Processes that answer together leave what one leaves, whoever of them is lost on the way."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sonde
from sonde.core.errors import ModelError, SondeError, UsageError, WorkerError
from sonde.models.options import LoadOptions
from sonde.runs.workers.local import gpus_of_each, surroundings
from sonde.runs.workers.spec import Workers

from .mortal import mark
from .world import (
    alive,
    ask,
    ask_tiny,
    await_that,
    driver,
    installed,
    kept,
    kill_half_way,
    plan,
    tiny_model,
    workers_of,
)


@pytest.fixture(autouse=True)
def mortal(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path):
        yield
    assert not workers_of(os.getpid()), "a worker is left"


@pytest.mark.parametrize(("kind", "on"), [("masked", "local:3"), ("causal", "local:2")])
def test_workers_of_which_one_is_killed_leave_what_one_process_leaves(
    kind: str, on: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model(kind, tmp_path / "model")
    ask_tiny(kind, model, tmp_path / "alone")
    mortal = plan(tmp_path, model, dies={"P1:9": 1})
    with caplog.at_level(logging.WARNING):
        ask_tiny(kind, mortal, tmp_path / "together", on)
    assert len([*(tmp_path / "alone" / "shards").glob("*.parquet")]) >= 6
    assert kept(tmp_path / "together") == kept(tmp_path / "alone")
    assert mark(tmp_path / "plan.json", "dies", "P1:9").exists()
    assert "was lost while it answered shard" in caplog.text
    assert "killed with signal 9" in caplog.text


def test_more_workers_than_shards_leave_what_one_process_leaves(tmp_path: Path) -> None:
    ask("control:majority", tmp_path / "alone", shard_weight=96)
    ask("control:majority", tmp_path / "together", "local:5", shard_weight=96)
    assert kept(tmp_path / "together") == kept(tmp_path / "alone")


def test_a_run_whose_driver_is_killed_goes_on_with_another_number_of_workers_or_none(
    tmp_path: Path,
) -> None:
    ask("control:majority", tmp_path / "alone")
    for number, on in enumerate(("local:3", "")):
        out, place = tmp_path / f"out-{number}", tmp_path / f"plan-{number}"
        place.mkdir()
        model = plan(place, "control:majority", waits={"P2:2": 1})
        running = driver(model, out, "local:2")
        waits = mark(place / "plan.json", "waits", "P2:2")
        await_that(lambda waits=waits, out=out: waits.exists() and _shards(out) > 3)  # type: ignore[misc]
        left = workers_of(running.pid)
        running.kill()
        running.communicate()
        assert len(left) == 2
        await_that(lambda left=left: not any(map(alive, left)))  # type: ignore[misc]
        assert not (out / "complete.json").exists()
        ask(model, out, on)
        assert kept(out) == kept(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize(("on", "after"), [(2, 3), (3, 2)])
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_a_real_model_whose_driver_is_killed_goes_on_with_the_same_bytes(
    kind: str, on: int, after: int, tmp_path: Path
) -> None:
    model, left = kill_half_way(kind, tmp_path, f"local:{on}")
    await_that(lambda: not any(map(alive, left)))
    ask_tiny(kind, model, tmp_path / "out", f"local:{after}")
    assert kept(tmp_path / "out") == kept(tmp_path / "alone")


def _shards(out: Path) -> int:
    return len([*(out / "shards").glob("*.parquet")])


def test_an_interrupt_ends_all_workers_and_keeps_what_is_finished(tmp_path: Path) -> None:
    model = plan(tmp_path, "control:majority", waits={"P2:2": 1})
    running = driver(model, tmp_path / "out", "local:2")
    await_that(lambda: mark(tmp_path / "plan.json", "waits", "P2:2").exists())
    left = workers_of(running.pid)
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert len(left) == 2 and not any(map(alive, left))
    ask(model, tmp_path / "out")
    ask("control:majority", tmp_path / "alone")
    assert kept(tmp_path / "out") == kept(tmp_path / "alone")


def test_a_shard_at_which_three_workers_die_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    model = plan(tmp_path, "control:majority", dies={"P1:5": 3})
    with pytest.raises(WorkerError) as caught:
        ask(model, tmp_path / "out", "local:2")
    assert str(caught.value).startswith("3 workers were lost while they answered shard 2, the last")
    assert "relation 'P1', fact 'P1:4'" in str(caught.value)
    assert caught.value.exit_code == 6
    ask(model, tmp_path / "out", "local:2")  # by now nothing is deadly any more
    ask("control:majority", tmp_path / "alone")
    assert kept(tmp_path / "out") == kept(tmp_path / "alone")


def test_a_worker_that_dies_while_it_loads_is_replaced_until_three_have(tmp_path: Path) -> None:
    twice = plan(tmp_path, "control:majority", dies={"load": 2})
    ask(twice, tmp_path / "out", "local:1")
    thrice = plan(tmp_path, "control:majority", dies={"load": 5})
    with pytest.raises(WorkerError, match="3 were lost one after the other, the last killed with"):
        ask(thrice, tmp_path / "never", "local:1")
    assert not (tmp_path / "never").exists()


def test_workers_with_other_weights_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    model = plan(tmp_path, "control:majority", differs=True)
    with pytest.raises(WorkerError, match=r"has another model than .* weights is 'those of \d+'"):
        ask(model, tmp_path / "out", "local:2")
    assert not (tmp_path / "out").exists()


def test_an_error_of_a_worker_is_the_error_of_the_run(tmp_path: Path) -> None:
    model = plan(tmp_path, "control:majority", fails={"P1:3": 1})
    with pytest.raises(ModelError, match="P1:3 is more than this model can bear") as caught:
        ask(model, tmp_path / "out", "local:2")
    assert type(caught.value) is ModelError
    with pytest.raises(SondeError, match="nowhere is not a folder"):
        ask("hf:./nowhere", tmp_path / "out", "local:2")
    with pytest.raises(UsageError, match="give its name"):
        ask(sonde.model("scripted:"), tmp_path / "out", "local:2")


def test_the_progress_of_workers_never_goes_back_and_ends_with_all(tmp_path: Path) -> None:
    ticks: list[tuple[float, int]] = []
    tell = lambda done, total: ticks.append((done, total))  # noqa: E731
    ask("control:majority", tmp_path / "out", "local:2", progress=tell)
    done = [each for each, _ in ticks]
    assert ticks[-1] == (24, 24) and done == sorted(done)


def test_threads_are_shared_out_and_gpus_dealt_in_turn() -> None:
    three = Workers(place="local", count=3, gpus=1)
    found = [surroundings(three, n, {}, ["0", "1"]) for n in range(3)]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["0", "1", "0"]
    pairs = [surroundings(replace(three, gpus=2), n, {}, ["4", "5", "6", "7"]) for n in range(2)]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in pairs] == ["4,5", "6,7"]
    share = max(len(os.sched_getaffinity(0)) // 3, 1)
    assert {each["OMP_NUM_THREADS"] for each in found} == {str(share)}
    alone = [surroundings(replace(three, count=n), 0, {}, []) for n in (1, 9)]
    assert {each["OMP_NUM_THREADS"] for each in alone} == {"1"}, "whatever their number"
    chosen = surroundings(replace(three, count=2), 0, {"OMP_NUM_THREADS": "7"}, [])
    assert chosen["OMP_NUM_THREADS"] == "7" and "CUDA_VISIBLE_DEVICES" not in chosen
    given = Workers(place="local", count=2, threads=5, gpus=0)
    found = [surroundings(given, 1, {"OMP_NUM_THREADS": "7"}, ["0"])]
    assert found[0]["OMP_NUM_THREADS"] == "5" and found[0]["CUDA_VISIBLE_DEVICES"] == ""
    assert found[0]["PYTHONPATH"].split(os.pathsep) == [path for path in sys.path if path]


def test_gpus_are_a_share_where_a_model_is_spread_and_no_more_than_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = Workers(place="local", count=2)
    assert [gpus_of_each(two, there, spread=True) for there in (0, 1, 4, 5)] == [1, 1, 2, 2]
    assert [gpus_of_each(two, there, spread=False) for there in (0, 1, 4)] == [1, 1, 1]
    assert gpus_of_each(replace(two, gpus=3), 4, spread=True) == 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(WorkerError, match="local:2 is to have 2 GPUs, and this machine has 1"):
        ask("control:majority", tmp_path / "out", "local:2,gpus=2")
    with pytest.raises(UsageError, match="--device cuda:1 names one GPU, and workers are given"):
        ask("control:majority", tmp_path / "out", "local:2", load=LoadOptions(device="cuda:1"))
    assert not (tmp_path / "out").exists()
