"""Ctrl-C and its kin: a clean message, an exit code of its own, and a run that goes on."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.command import (
    COMMAND,
    PATIENCE,
    Done,
    await_that,
    files,
    leftovers,
    process,
    silent,
    with_slow_model,
)
from tests.written import many_shards

AGAIN = "run the same command again to resume\n"
RESUMES = "interrupted; run the same command again to resume from what is stored\n"


def begin(words: tuple[object, ...], env: dict[str, str], ignore: bool = False) -> Running:
    def listen() -> None:
        # said either way, because the tests themselves may run where interrupts are ignored
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignore else signal.SIG_DFL)

    return subprocess.Popen(
        [COMMAND, *map(str, words)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen,
    )


Running = subprocess.Popen[str]


def end(running: Running) -> Done:
    out, err = running.communicate(timeout=PATIENCE)
    return Done(running.returncode, out, err)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A dataset, and what a run on it keeps that was left in peace."""
    home = tmp_path_factory.mktemp("calm")
    data, out = many_shards(home / "data", facts=40), home / "out"
    words = ("run", "lama", "-m", "slow:0", "-d", data, "-o", out, "--no-html")
    assert process(*words, env=with_slow_model(home)).code == 0
    return data, files(out)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_goes_on(
    calm: tuple[Path, dict[str, bytes]], tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    (data, expected), out = calm, tmp_path / "out"
    words = ("run", "lama", "-m", "slow:0", "-d", data, "-o", out, "--no-html")
    running = begin(words, with_slow_model(tmp_path, most=10))
    await_that(silent(tmp_path).exists, running)
    await_that(lambda: any(out.glob("shards/*.parquet")), running)
    running.send_signal(sent)
    done = end(running)
    stored = sum(pq.read_metadata(path).num_rows for path in out.glob("shards/*.parquet"))
    assert 0 < stored <= 10
    lost = {0: "", 1: ", 1 unfinished answer is lost"}
    more = lost.get(10 - stored, f", {10 - stored} unfinished answers are lost")
    said = f"interrupted; {stored} of 40 prompts are stored in {out}{more}; {AGAIN}"
    assert done == Done(code, "", said)
    assert not leftovers(out)
    kept = files(out)
    done = process(*words, env=with_slow_model(tmp_path))
    assert done.code == 0
    assert f"{out}: going on after" in done.err
    assert files(out) == expected
    assert kept.items() <= expected.items()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_while_the_model_loads_makes_no_folder(
    tmp_path: Path, data: Path, sent: signal.Signals, code: int
) -> None:
    out = tmp_path / "out"
    words = ("run", "lama", "-m", "slow:load", "-d", data, "-o", out)
    running = begin(words, with_slow_model(tmp_path))
    assert running.stderr is not None
    assert running.stderr.readline() == "loading\n"
    running.send_signal(sent)
    assert end(running) == Done(code, "", RESUMES)
    assert not out.exists()


def test_a_run_that_is_stopped_in_its_first_shard_says_that_nothing_is_stored(
    tmp_path: Path, data: Path
) -> None:
    out = tmp_path / "out"
    words = ("run", "lama", "-m", "slow:0", "-d", data, "-o", out)
    running = begin(words, with_slow_model(tmp_path, most=3))
    await_that(silent(tmp_path).exists, running)
    running.send_signal(signal.SIGINT)
    said = f"0 of 8 prompts are stored in {out}, 3 unfinished answers are lost; {AGAIN}"
    assert end(running) == Done(130, "", f"interrupted; {said}")


@pytest.mark.parametrize("verb", ["plan lama", "doctor", "attribute --fact P36:Q38"])
def test_what_keeps_nothing_says_so(tmp_path: Path, verb: str) -> None:
    running = begin((*verb.split(), "-m", "slow:load"), with_slow_model(tmp_path))
    assert running.stderr is not None
    assert running.stderr.readline() == "loading\n"
    running.send_signal(signal.SIGINT)
    assert end(running) == Done(130, "", "interrupted; nothing was kept\n")


def test_what_was_told_to_ignore_ctrl_c_ignores_it(tmp_path: Path) -> None:
    data, out = many_shards(tmp_path / "data", facts=20), tmp_path / "out"
    words = ("run", "lama", "-m", "slow:0.02", "-d", data, "-o", out, "--no-html")
    running = begin(words, with_slow_model(tmp_path), ignore=True)
    await_that(lambda: any(out.glob("shards/*.parquet")), running)
    running.send_signal(signal.SIGINT)
    done = end(running)
    assert done.code == 0
    assert done.err == ""


def test_a_reader_that_has_seen_enough_is_no_failure_to_talk_about(
    tmp_path: Path, data: Path
) -> None:
    for words in (["data", "show", "atlas"], ["probes"]):
        running = begin(tuple(words), with_slow_model(tmp_path))
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
        assert running.wait() in (0, 1)
