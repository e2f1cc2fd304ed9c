"""Find options that can be scored beside a text that is written on from the same tokens.

Knows token ids alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from sonde.engine.encode import Branches
from sonde.engine.token_tree import options_tree

Room = tuple[tuple[int, ...], int]
"""Token ids that are written on from, and how many tokens may be written."""


def shared_prefill(
    texts: Mapping[int, Branches], openings: Mapping[int, Room]
) -> dict[int, tuple[int, ...]]:
    """The prompts whose options are scored at an opening, by the opening's position.

    A prompt goes to the first opening that has the tokens of its own head. All options there feed
    no more tokens than may be written, or else they would crowd other openings out of a batch; a
    prompt over that bound goes nowhere.

    >>> from sonde.engine.encode import Span
    >>> one = Branches(head=(5, 6), spans=(Span(ids=(7,), start=0, stop=1, end=1),))
    >>> beside({0: one}, {1: ((5,), 3), 2: ((5, 6), 3)})
    {2: (0,)}
    """
    hosts: dict[tuple[int, ...], int] = {}
    room: dict[int, int] = {}
    for position, (ids, most) in openings.items():
        host = hosts.setdefault(ids, position)
        room[host] = max(room.get(host, 0), most)
    found: dict[int, tuple[int, ...]] = {}
    for position, branches in texts.items():
        if (at := hosts.get(branches.head)) is None:
            continue
        size = len(options_tree(branches.spans).ids)
        if size <= room[at]:
            room[at] -= size
            found[at] = (*found.get(at, ()), position)
    return found
