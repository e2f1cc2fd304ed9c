"""How many requests are under way at once."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sonde.http.gate import Gate
from tests.data.loopback import noted


@given(st.integers(1, 64), st.lists(st.sampled_from(["well", "busy", "late"]), max_size=200))
def test_the_width_stays_between_one_and_the_most(most: int, events: list[str]) -> None:
    gate = Gate(most, asyncio.sleep)
    for event in events:
        before = gate.width
        match event:
            case "well":
                gate.well()
                assert gate.width >= before
            case "busy":
                assert gate.busy(float("inf"))
                assert gate.width == max(1, before / 2)
            case _:
                gate.busy(-1.0)  # sent before the server was found busy
                assert gate.width == before
        assert 1 <= gate.width <= most


@given(st.integers(1, 64), st.integers(1, 8))
def test_good_answers_bring_the_width_back_slowly(most: int, busy: int) -> None:
    gate = Gate(most, asyncio.sleep)
    for _ in range(busy):
        gate.busy(float("inf"))
    low, answers = gate.width, 0
    while gate.width < most:
        gate.well()
        answers += 1
    assert answers >= (most - low) * low, "as many answers for one more as it is wide"
    assert answers <= most * (most + 1)


def test_no_more_are_let_through_than_it_is_wide() -> None:
    async def crowd(most: int, lowered: int) -> int:
        gate, inside, seen = Gate(most, asyncio.sleep), 0, 0
        for _ in range(lowered):
            gate.busy(float("inf"))

        async def visit() -> None:
            nonlocal inside, seen
            async with gate:
                inside += 1
                seen = max(seen, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(visit() for _ in range(50)))
        return seen

    assert asyncio.run(crowd(8, 0)) == 8
    assert asyncio.run(crowd(8, 1)) == 4
    assert asyncio.run(crowd(8, 9)) == 1


def test_who_waits_for_a_place_heeds_a_pause_that_is_asked_for_meanwhile() -> None:
    waits: list[float] = []

    async def visits() -> None:
        gate = Gate(1, noted(waits))

        async def late() -> None:
            async with gate:
                assert waits, "sent while the server wants none"

        async with gate:
            waiting = asyncio.create_task(late())
            await asyncio.sleep(0)  # it stands before the gate
            gate.pause(600)
        await waiting
        async with gate:  # nobody keeps a place
            pass

    asyncio.run(visits())
    assert waits[0] > 500


def test_who_gives_up_in_a_pause_keeps_no_place() -> None:
    async def visits() -> None:
        gate = Gate(1, asyncio.sleep)
        gate.pause(600)

        async def never() -> None:
            async with gate:
                raise AssertionError("it was let through")

        waiting = asyncio.create_task(never())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate._until = 0.0
        async with gate:
            pass

    asyncio.run(asyncio.wait_for(visits(), 60))
