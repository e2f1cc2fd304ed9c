"""Requests go in lanes that keep what begins alike together, each of them once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sonde.models.served.asks import Next
from sonde.models.served.dialect import Request
from sonde.models.served.lanes import Lanes, in_lanes

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)


def _request(ids: tuple[int, ...]) -> Request:
    return Request(path="/", body={}, asks=(Next(ids, (1,)),))


def _ids(request: Request) -> tuple[int, ...]:
    return request.asks[0].ids


@given(st.lists(IDS), st.integers(1, 5))
def test_lanes_hold_every_request_once_in_the_order_of_their_tokens(
    texts: list[tuple[int, ...]], slots: int
) -> None:
    lanes = in_lanes([_request(ids) for ids in texts], slots)
    assert len(lanes) <= slots and all(lanes)
    assert [_ids(request) for lane in lanes for request in lane] == sorted(texts)


def test_texts_that_share_almost_everything_stay_in_one_lane() -> None:
    long = tuple(range(700))
    alike = [_request((*long, token)) for token in range(100)]
    assert len(in_lanes(alike, 4)) == 1
    apart = [_request((number, *long, token)) for number in range(8) for token in range(9)]
    assert [len(lane) for lane in in_lanes(apart, 4)] == [18] * 4


class Playing:
    """A transport that has some requests under way and answers one of them, drawn, at a time."""

    def __init__(self, width: int, drawn: st.DataObject) -> None:
        self.width, self.drawn = width, drawn
        self.sent: list[tuple[int, ...]] = []
        self.under_way: list[list[tuple[int, ...]]] = []

    def look(self, path: str) -> Any:
        return path

    def send(self, requests: Iterable[Request], read: Any, split: Any) -> Iterator[Any]:
        waiting: list[Request] = []
        rest = iter(requests)
        while True:
            while len(waiting) < self.width and (request := next(rest, None)):
                waiting.append(request)
            if not waiting:
                return
            self.under_way.append([_ids(request) for request in waiting])
            done = waiting.pop(self.drawn.draw(st.integers(0, len(waiting) - 1)))
            self.sent.append(_ids(done))
            yield done, read(done, "reply")


@given(st.lists(IDS, unique=True), st.integers(1, 4), st.integers(1, 5), st.data())
def test_every_request_is_answered_whatever_the_order(
    texts: list[tuple[int, ...]], slots: int, width: int, data: st.DataObject
) -> None:
    transport = Playing(width, data)
    requests = [_request(ids) for ids in texts]
    found = Lanes(transport, slots).send(requests, lambda request, _: _ids(request), lambda _: ())
    assert sorted(ids for _, ids in found) == sorted(texts) == sorted(transport.sent)


@given(st.data())
def test_a_lane_has_one_request_under_way_while_others_have_their_own(data: st.DataObject) -> None:
    requests = [_request((number, token)) for number in range(3) for token in range(12)]
    transport = Playing(3, data)
    list(Lanes(transport, 3).send(requests, lambda *_: 0, lambda _: ()))
    for under_way in transport.under_way[:12]:  # until a lane may have run dry
        assert len({ids[0] for ids in under_way}) == len(under_way)


@given(st.data())
def test_what_stays_in_one_lane_is_sent_one_by_one(data: st.DataObject) -> None:
    long = tuple(range(200))
    transport = Playing(4, data)
    requests = [_request((*long, token)) for token in range(9)]
    list(Lanes(transport, 4).send(requests, lambda *_: 0, lambda _: ()))
    assert transport.under_way == [[(*long, token)] for token in range(9)]
