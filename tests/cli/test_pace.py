"""How fast work goes and what is left of it, by a clock that the test moves, and what is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.cli import console
from sonde.cli.console import SETTLED, WINDOW, Pace, duration, frequency, roughly
from tests.command import Sonde


class Clock:
    """Tells the time that it was set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.floats(0.01, 1000), st.floats(0.05, 20), st.integers(2, 40), st.floats(0, 500))
def test_a_steady_pace_is_found_whatever_was_done_before(
    rate: float, step: float, steps: int, before: float
) -> None:
    clock = Clock()
    seen = Pace(clock)
    clock.now += 1000  # counting, or looking at what is there
    for i in range(steps + 1):
        seen.tick(before + rate * step * (i + 1))
        clock.now += step
    clock.now -= step
    if step * steps < SETTLED * 0.999:
        assert seen.rate is None and seen.left(1e9) is None
    elif step * steps > SETTLED * 1.001:
        assert seen.rate == pytest.approx(rate)
        total = before + rate * step * (steps + 1) + rate * 77
        assert seen.left(total) == pytest.approx(77, abs=1e-3)
        clock.now += 7
        assert seen.left(total) == pytest.approx(70, abs=1e-3)


def test_a_pace_is_that_of_the_last_minute() -> None:
    clock = Clock()
    seen = Pace(clock)
    for i in range(100):
        seen.tick(i)
        clock.now += 1
    for i in range(int(WINDOW) + 2):
        seen.tick(100 + 10 * i)
        clock.now += 1
    assert seen.rate == pytest.approx(10, rel=0.05)


def test_work_that_stands_still_tells_no_pace() -> None:
    clock = Clock()
    seen = Pace(clock)
    for _ in range(10):
        seen.tick(1)
        clock.now += 5
    assert seen.rate is None


@given(st.floats(0, 1e7))
def test_durations_and_rates_are_short_words(number: float) -> None:
    for words in (duration(number), roughly(number), frequency(number / 1000)):
        assert len(words) <= 14 and "e" not in words.replace("under", "")


def test_a_long_run_says_once_how_long_and_what_would_be_shorter(
    sonde: Sonde, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(console, "LONG", 0.0)
    monkeypatch.setattr(console, "MEASURED", 0.0)
    monkeypatch.setattr(console, "SETTLED", 1e-9)
    words = ("run", "belief", "-m", "control:majority", "-d", "atlas", "--limit", 3)
    done = sonde(*words, "-o", f"{tmp_path}/out", "--no-html")
    assert done.code == 0
    assert done.err.count("left at this rate (--limit 2 about 1 s; --templates manual about") == 1
    assert "Ctrl-C stops and keeps what is done" in done.err


def test_a_short_run_says_nothing_of_that(sonde: Sonde, tmp_path: object) -> None:
    done = sonde("run", "lama", "-m", "control:majority", "--limit", 2, "-o", f"{tmp_path}/out")
    assert done.err == ""
