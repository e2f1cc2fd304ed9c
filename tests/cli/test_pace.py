"""How fast work goes and what is left of it, by a clock that the test moves, and what is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.cli import console
from sonde.cli.console import SETTLED, TRUSTED, WINDOW, Pace, duration, frequency, roughly
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
        if step * steps < TRUSTED * 1.001 and step * steps < 0.101 * total / rate:
            return  # too little of it is known
        assert seen.left(total) == pytest.approx(77, abs=1e-3)
        clock.now += 7
        assert seen.left(total) == pytest.approx(70, abs=1e-3)


def test_a_pace_is_that_of_the_last_minute_or_of_half_the_time() -> None:
    clock = Clock()
    seen = Pace(clock)
    for i in range(100):
        seen.tick(i)
        clock.now += 1
    for i in range(2 * int(WINDOW)):
        seen.tick(100 + 10 * i)
        clock.now += 1
    assert seen.rate == pytest.approx(10, rel=0.05)


def shown_left(speeds: list[float]) -> list[tuple[float, float]]:
    """Seconds that are left and those that are shown, of work that does so much in each second."""
    clock, done = Clock(), 0.0
    seen, total = Pace(clock), sum(speeds)
    shown: list[tuple[float, float]] = []
    for second, speed in enumerate(speeds, 1):
        clock.now += 1
        done += speed
        seen.tick(done)
        if (left := seen.left(total)) is not None:
            shown.append((len(speeds) - second, left))
    return shown


def test_a_slow_beginning_does_not_make_minutes_of_seconds() -> None:
    """A run of 2.5 minutes whose first seconds are slow was shown with 17 minutes left."""
    shown = shown_left([0.125] * 5 + [1.0] * 145)
    assert len(shown) > 120
    assert all(left <= 2.1 * true + 1 for true, left in shown)
    assert all(left <= 1.2 * true + 1 for true, left in shown[30:])


def test_relations_of_different_cost_are_averaged() -> None:
    shown = shown_left(([0.4] * 100 + [2.0] * 100) * 10)
    for true, left in shown[300:]:
        assert 0.6 * true - 100 <= left <= 1.7 * true + 100


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
    monkeypatch.setattr(console, "TRUSTED", 0.0)
    words = ("run", "belief", "-m", "control:majority", "-d", "atlas", "--limit", 3)
    done = sonde(*words, "-o", f"{tmp_path}/out", "--no-html")
    assert done.code == 0
    assert (
        done.err.count("left at this rate (--limit 2 about 1 s; --template-source manual about")
        == 1
    )
    assert "Ctrl-C stops and keeps what is stored" in done.err


def test_a_short_run_says_nothing_of_that(sonde: Sonde, tmp_path: object) -> None:
    done = sonde("run", "lama", "-m", "control:majority", "--limit", 2, "-o", f"{tmp_path}/out")
    assert done.err == ""
