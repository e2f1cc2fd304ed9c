"""Tokenised on other processes or here, texts become the same columns in the same order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, get_ident

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import PromptError
from sonde.core.prompts import Prompts, put
from sonde.core.threads import prefetch
from sonde.engine.masked_batch import MaskedEncoder, MaskedTexts, columns
from sonde.engine.tokenise import ROOM, TASK, Memory, Tokenisers, _Worker, split, utf8
from tests import tiny


@pytest.fixture(scope="module")
def encoder() -> MaskedEncoder:
    return MaskedEncoder(tiny.word_pieces(), "[MASK]")


@pytest.fixture
def two(encoder: MaskedEncoder) -> Iterator[Tokenisers]:
    made = Tokenisers(encoder, 2)
    yield made
    made.close()


def texts(count: int, word: str) -> list[tuple[str, str]]:
    return [(f"the {word} of {i} is ", ".") for i in range(count)]


def asked(given: list[tuple[str, str]]) -> Prompts:
    return put([tiny.fill(*sides) for sides in given])


def workers(made: Tokenisers) -> list[_Worker]:
    """Its processes, none of which is asked anything now."""
    assert made._idle is not None
    found = [made._idle.get() for _ in range(made.workers)]
    for worker in found:
        made._idle.put(worker)
    return found


def same(one: MaskedTexts, other: MaskedTexts) -> bool:
    pairs = ((one.ids, other.ids), (one.offsets, other.offsets), (one.places, other.places))
    return all((a == b).all() for a, b in pairs)


def test_workers_give_what_is_made_here_in_order(two: Tokenisers, encoder: MaskedEncoder) -> None:
    sizes = (TASK + 5, 3, 2 * TASK, TASK, 1)  # short chunks are made here, between the others
    chunks = [texts(n, f"capital {i}") for i, n in enumerate(sizes)]
    for found, chunk in zip(two.columns(map(asked, chunks)), chunks, strict=True):
        assert same(found, encoder.columns(chunk))


def test_threads_that_ask_first_at_once_start_no_more_workers_than_wanted(
    two: Tokenisers, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    meeting = Barrier(2, timeout=0.2)
    begin = _Worker.__init__

    def slow(self: _Worker, encoder: MaskedEncoder) -> None:
        made.append(get_ident())
        with suppress(BrokenBarrierError):
            meeting.wait()  # another thread has the time to find that there are none yet
        begin(self, encoder)

    monkeypatch.setattr(_Worker, "__init__", slow)
    chunk = asked(texts(TASK, "capital"))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: list(two.columns([chunk])), range(2)))
    assert len(made) == 2 and len(set(made)) == 1


PIECES = st.sampled_from(("the ", "capital", " ", "", "[MASK]", "[CLS] ", "⟦", "é", "\n", "."))
SIDES = st.lists(PIECES, max_size=4).map("".join)


@given(st.lists(st.tuples(SIDES, SIDES), max_size=5))
def test_columns_are_those_of_texts_encoded_one_by_one(
    encoder: MaskedEncoder, sides: list[tuple[str, str]]
) -> None:
    one_by_one = [(span.ids, span.start) for span in encoder.masked(sides)]
    assert same(encoder.columns(sides), columns(one_by_one))


def test_texts_of_any_characters_and_any_number_reach_a_worker(
    two: Tokenisers, encoder: MaskedEncoder
) -> None:
    strange = [("", ""), ("é\n[MASK] ", "🗼"), ("the capital", "\0"), ("", ".")]
    chunk = [*strange, *texts(TASK, "city")]
    assert same(next(iter(two.columns([asked(chunk)]))), encoder.columns(chunk))
    long = [("the city " * 300, ".")] * (2 * TASK)
    assert sum(len(before) for before, _ in long) > 2 * ROOM
    for several in (long, chunk):  # the memory grows, and then more lies there than is new
        assert same(next(iter(two.columns([asked(several)]))), encoder.columns(several))


@given(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=5), st.integers(0, 4))
def test_texts_end_to_end_are_told_apart_again(sides: list[tuple[str, str]], cut: int) -> None:
    whole = asked(sides)
    for prompts in (whole, whole.part(cut, len(sides))):
        if len(prompts):
            before, after = (split(*utf8(prompts, name)) for name in ("prefix", "suffix"))
            assert list(zip(before, after, strict=True)) == sides[len(sides) - len(prompts) :]


def test_a_worker_that_fails_says_why_and_the_others_go_on(two: Tokenisers) -> None:
    bad = [*texts(TASK, "capital"), ("⟦P1:1⟧", "")]
    with pytest.raises(PromptError, match="soft prompt"):
        list(two.columns([asked(bad)]))
    assert len(next(iter(two.columns([asked(texts(TASK, "city"))])))) == TASK


def test_texts_of_a_worker_that_is_killed_are_tokenised_and_another_is_started(
    two: Tokenisers, encoder: MaskedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    chunk = texts(2 * TASK, "city")
    next(iter(two.columns([asked(chunk)])))
    ended = workers(two)
    for worker in ended:
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    assert same(next(iter(two.columns([asked(chunk)]))), encoder.columns(chunk))
    assert [record.message for record in caplog.records] == [
        "a tokenising process was ended by something else; another is started"
    ] * 2
    assert same(next(iter(two.columns([asked(chunk)]))), encoder.columns(chunk))
    assert not set(map(id, ended)) & set(map(id, workers(two)))


def test_workers_end_when_closed_even_those_that_were_never_asked(encoder: MaskedEncoder) -> None:
    made = Tokenisers(encoder, 2)
    next(iter(made.columns([asked(texts(TASK, "city"))])))
    started = workers(made)
    made.close()
    assert [worker.process.returncode for worker in started] == [0, 0]


@pytest.mark.parametrize("named", [False, True])
def test_nothing_of_the_memory_is_left_behind(
    encoder: MaskedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if named:  # as where there is no memory without a name, or not for everybody
        monkeypatch.delattr(os, "memfd_create", raising=False)
    shared, files = Path("/dev/shm"), len(os.listdir("/proc/self/fd"))
    before = set(shared.iterdir()) if shared.exists() else set()
    made = Tokenisers(encoder, 1)
    assert len(next(iter(made.columns([asked(texts(TASK, "city"))])))) == TASK
    assert not list(tmp_path.iterdir())
    assert not shared.exists() or not [
        p for p in set(shared.iterdir()) - before if "sonde" in str(p)
    ]
    made.close()
    assert len(os.listdir("/proc/self/fd")) == files


def test_memory_that_is_not_there_is_refused_and_not_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory.new()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        memory.write([np.zeros(2 * ROOM, np.uint8)])
    monkeypatch.undo()
    assert memory.write([np.arange(3)]).tolist() == [3]
    assert memory.read([np.int64], [3])[0].tolist() == [0, 1, 2]
    memory.close()


def test_a_worker_runs_no_code_of_the_folder_one_stands_in(
    encoder: MaskedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tokenizers", "numpy", "pickle", "sitecustomize", "sonde"):
        code = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    made = Tokenisers(encoder, 1)
    assert len(next(iter(made.columns([asked(texts(TASK, "city"))])))) == TASK
    made.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ahead", [1, 4])
def test_what_is_made_ahead_fails_where_it_is_used(ahead: int) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise PromptError("no")

    coming = prefetch(items(), ahead)
    assert next(coming) == 1
    with pytest.raises(PromptError):
        next(coming)
