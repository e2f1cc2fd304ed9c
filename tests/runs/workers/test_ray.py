"""Actors of a Ray cluster leave what one process leaves, whoever of them is lost on the way.

Run by `make ray`, which installs Ray; skipped by `make slow` where it is not there. Clusters take
seconds to start. Each test's is bound to 127.0.0.1 and gone when the test ends.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sonde.core.errors import ModelError, WorkerError
from sonde.runs.workers.ray import RayPlace
from sonde.runs.workers.spec import Workers
from tests.runs.test_flat_memory import holds_little

from .mortal import mark
from .world import (
    alive,
    ask,
    ask_tiny,
    await_that,
    descendants,
    installed,
    kept,
    kill_half_way,
    listening,
    plan,
    tiny_model,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
]


@pytest.fixture(autouse=True)
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with installed(tmp_path):
        yield


@pytest.mark.parametrize("on", ["ray:2", "ray:3"])
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_workers_of_which_one_is_killed_leave_what_one_process_leaves(
    kind: str, on: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model(kind, tmp_path / "model")
    ask_tiny(kind, model, tmp_path / "alone")
    mortal = plan(tmp_path, model, dies={"P1:9": 1})
    with caplog.at_level(logging.WARNING):
        ask_tiny(kind, mortal, tmp_path / "together", on)
    assert kept(tmp_path / "together") == kept(tmp_path / "alone")
    assert mark(tmp_path / "plan.json", "dies", "P1:9").exists()
    assert "was lost while it answered shard" in caplog.text


@pytest.mark.parametrize(("on", "after"), [(2, 3), (3, 2)])
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_a_run_whose_driver_is_killed_goes_on_and_its_cluster_is_gone(
    kind: str, on: int, after: int, tmp_path: Path
) -> None:
    model, left = kill_half_way(kind, tmp_path, f"ray:{on}")
    assert len(left) > 3, "a cluster has several processes"
    await_that(lambda: not any(map(alive, left)))
    ask_tiny(kind, model, tmp_path / "out", f"ray:{after}")
    assert kept(tmp_path / "out") == kept(tmp_path / "alone")


def test_a_driver_holds_no_more_after_two_million_prompts_than_after_a_tenth() -> None:
    holds_little("ray:2")


def test_what_ends_a_run_does_so_with_its_sentence(tmp_path: Path) -> None:
    model = plan(tmp_path, "control:majority", dies={"P1:5": 3})
    with pytest.raises(WorkerError, match="3 workers were lost while they answered shard 2, the"):
        ask(model, tmp_path / "out", "ray:2")
    model = plan(tmp_path, "control:majority", differs=True)
    with pytest.raises(WorkerError, match=r"has another model than .* weights is 'those of \d+'"):
        ask(model, tmp_path / "unlike", "ray:2")
    assert not (tmp_path / "unlike").exists()
    model = plan(tmp_path, "control:majority", fails={"P1:3": 1})
    with pytest.raises(ModelError, match="P1:3 is more than this model can bear"):
        ask(model, tmp_path / "failed", "ray:2")


def test_a_cluster_that_cannot_be_had_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(WorkerError, match=r"no Ray cluster could be joined at 127\.0\.0\.1:1 "):
        ask("control:majority", tmp_path / "out", "ray:2,address=127.0.0.1:1")
    with pytest.raises(WorkerError, match=r"with 1 CPUs and 1 GPUs each do not fit into the Ray"):
        ask("control:majority", tmp_path / "out", "ray:2,gpus=1,threads=1")
    monkeypatch.setenv("RAY_TMPDIR", "/proc/nowhere")
    with pytest.raises(WorkerError, match="Ray did not start in 3 attempts") as caught:
        ask("control:majority", tmp_path / "out", "ray:2")
    assert caught.value.exit_code == 6
    assert "attempt 2 of 3" in caplog.text and "attempt 3 of 3" in caplog.text
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_is_started_listens_on_this_machine_alone() -> None:
    place = RayPlace(Workers(place="ray", count=1), cpu=True, spread=False)
    try:
        found = listening(descendants(os.getpid()))
    finally:
        place.close()
    assert len(found) > 3, "a cluster has several processes"
    assert set(found) <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ


def test_a_run_goes_on_when_a_machine_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from ray.cluster_utils import Cluster

    ask("control:majority", tmp_path / "alone")
    model = plan(tmp_path, "control:majority", waits={"P1:9": 1})
    # its head, which a cluster cannot lose, holds no worker
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        waits = mark(tmp_path / "plan.json", "waits", "P1:9")
        lose = Thread(target=_lose, args=(cluster, nodes, waits))
        lose.start()
        ask(model, tmp_path / "out", f"ray:2,threads=1,address={cluster.address}")
        lose.join()
    finally:
        cluster.shutdown()
    assert kept(tmp_path / "out") == kept(tmp_path / "alone")
    assert "was lost while it answered shard" in caplog.text


def _lose(cluster: Any, nodes: Sequence[Any], waits: Path) -> None:
    """Lose the machine on which a worker waits."""
    await_that(lambda: waits.exists() and waits.read_text() != "")
    waiting = int(waits.read_text())
    for node in nodes:
        if waiting in descendants(node.all_processes["raylet"][0].process.pid):
            cluster.remove_node(node, allow_graceful=False)
