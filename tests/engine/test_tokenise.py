"""Tokenised on other processes or here, texts become the same columns in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.errors import PromptError
from sonde.core.threads import prefetch
from sonde.engine.masked_batch import MaskedEncoder, MaskedTexts, columns
from sonde.engine.tokenise import TASK, Tokenisers
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


def same(one: MaskedTexts, other: MaskedTexts) -> bool:
    pairs = ((one.ids, other.ids), (one.offsets, other.offsets), (one.places, other.places))
    return all((a == b).all() for a, b in pairs)


def test_workers_give_what_is_made_here_in_order(two: Tokenisers, encoder: MaskedEncoder) -> None:
    sizes = (TASK + 5, 3, 2 * TASK, TASK, 1)  # short chunks are made here, between the others
    chunks = [texts(n, f"capital {i}") for i, n in enumerate(sizes)]
    for found, chunk in zip(two.columns(iter(chunks)), chunks, strict=True):
        assert same(found, encoder.columns(chunk))


PIECES = st.sampled_from(("the ", "capital", " ", "", "[MASK]", "[CLS] ", "⟦", "é", "\n", "."))
SIDES = st.lists(PIECES, max_size=4).map("".join)


@given(st.lists(st.tuples(SIDES, SIDES), max_size=5))
def test_columns_are_those_of_texts_encoded_one_by_one(
    encoder: MaskedEncoder, sides: list[tuple[str, str]]
) -> None:
    one_by_one = [(span.ids, span.start) for span in encoder.masked(sides)]
    assert same(encoder.columns(sides), columns(one_by_one))


def test_texts_of_any_characters_reach_a_worker(two: Tokenisers, encoder: MaskedEncoder) -> None:
    strange = [("", ""), ("é\n[MASK] ", "🗼"), ("the capital", "\0"), ("", ".")]
    chunk = [*strange, *texts(TASK, "city")]
    assert same(next(iter(two.columns([chunk]))), encoder.columns(chunk))
    with pytest.raises(PromptError, match="soft prompt"):
        next(iter(two.columns([[("⟦P1:1⟧", ""), *chunk]])))


def test_a_worker_that_fails_says_why_and_the_others_go_on(two: Tokenisers) -> None:
    bad = [*texts(TASK, "capital"), (None, "")]
    with pytest.raises(TypeError):
        list(two.columns([bad]))  # type: ignore[list-item]
    assert len(next(iter(two.columns([texts(TASK, "city")])))) == TASK


def test_workers_end_when_closed_even_those_that_were_never_asked(encoder: MaskedEncoder) -> None:
    made = Tokenisers(encoder, 2)
    next(iter(made.columns([texts(TASK, "city")])))
    assert made._idle is not None
    workers = [made._idle.get() for _ in range(2)]
    for worker in workers:
        made._idle.put(worker)
    made.close()
    assert [worker.process.returncode for worker in workers] == [0, 0]


def test_a_worker_runs_no_code_of_the_folder_one_stands_in(
    encoder: MaskedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tokenizers", "numpy", "pickle", "sitecustomize", "sonde"):
        code = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    made = Tokenisers(encoder, 1)
    assert len(next(iter(made.columns([texts(TASK, "city")])))) == TASK
    made.close()
    assert not (tmp_path / "ran").exists()


def test_what_is_made_ahead_fails_where_it_is_used() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise PromptError("no")

    coming = prefetch(items())
    assert next(coming) == 1
    with pytest.raises(PromptError):
        next(coming)
