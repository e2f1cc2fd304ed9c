"""A run that is killed goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.command import COMMAND, await_that, files, leftovers, silent, with_slow_model
from tests.written import many_shards

Environment = dict[str, str]
Running = subprocess.Popen[bytes]


def test_twenty_kills_change_no_byte(tmp_path: Path) -> None:
    data = many_shards(tmp_path / "data", facts=440)
    words = ("run", "lama", "-d", data, "--no-html", "-m", "slow:0", "-o")
    slowly = (*words[:-2], "slow:0.002", "-o")
    killed = with_slow_model(tmp_path, most=20)  # of 440, twenty times
    kill_and_compare(words, slowly, tmp_path, with_slow_model(tmp_path), killed, kills=20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_kills_change_no_byte_of_a_real_models_answers(tmp_path: Path, kind: str) -> None:
    from tests import tiny

    model = getattr(tiny, kind)(tmp_path / "model")
    data = many_shards(tmp_path / "data", facts=200, objects=512)
    more = ("--answer", "score", "--device", "cpu", "--no-html", "-o")
    words = ("run", "lama", "-m", f"hf:{model}", "-d", data, *more)
    kill_and_compare(words, words, tmp_path, dict(os.environ), dict(os.environ), kills=8)


def kill_and_compare(
    words: tuple[object, ...],
    slowly: tuple[object, ...],
    home: Path,
    calmly: Environment,
    killed: Environment,
    kills: int,
) -> None:
    """Kill a slow run again and again, let it end, and compare it with one that was left alone."""

    def begin(out: Path, env: Environment) -> Running:
        command = [COMMAND, *map(str, slowly if env is killed else words), str(out)]
        return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    out, calm = home / "killed", home / "calm"
    assert begin(calm, calmly).wait() == 0
    random = Random("kills")
    for kill in range(kills):
        silent(home).unlink(missing_ok=True)
        with begin(out, killed) as running:
            try:
                MOMENTS[kill % len(MOMENTS)](out, running, random)
                assert running.poll() is None, "the run ended before it could be killed"
            finally:
                running.kill()
        assert running.returncode == -signal.SIGKILL
    last = begin(out, calmly)
    said = last.communicate()[1].decode()
    assert last.returncode == 0, said
    assert "going on after" in said
    assert "warning" not in said, "a kill left a shard that does not read back"
    assert files(out) == files(calm)
    assert not leftovers(out)


def while_starting(out: Path, running: Running, random: Random) -> None:
    """While modules are imported, the folder is made, and what is there is looked through."""
    time.sleep(random.uniform(0.01, 0.7))


def while_beginning(out: Path, running: Running, random: Random) -> None:
    """Around the moment at which the folder, the manifest or the dataset's copy appears."""
    was = set(out.rglob("*"))
    _wait(lambda: set(out.rglob("*")) != was, out, running)
    time.sleep(random.uniform(0, 0.004))


def while_computing(out: Path, running: Running, random: Random) -> None:
    """Between two shards."""
    there = len(list(out.glob("shards/*.parquet")))
    _wait(lambda: len(list(out.glob("shards/*.parquet"))) > there, out, running)
    time.sleep(random.uniform(0, 0.1))


def while_writing(out: Path, running: Running, random: Random) -> None:
    """When a shard is half written, or has just got its name."""
    _wait(lambda: any(out.glob("shards/*.partial")), out, running)
    time.sleep(random.choice((0, 0, 0.001)))


MOMENTS = (while_starting, while_beginning, while_computing, while_writing)


def _wait(until: Callable[[], bool], out: Path, running: Running) -> None:
    """Wait for a moment; a busy machine may miss it, and then there is no other in this run."""
    await_that(lambda: until() or silent(out.parent).exists(), running)
