"""Small runs of LAMA facts by hand: what each run answers, and what the training facts have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from sonde.analysis.learning.facts import Learning, Lesson, Method, learning
from sonde.core.fact_frames import frame_of
from sonde.core.facts import Kind
from tests.analysis.world import judged
from tests.grids import grid
from tests.worlds import fact, relation

KINDS: tuple[Kind, ...] = ("1-1", "N-1", "N-M")

Objects = Sequence[Sequence[str]]
"""By relation and fact."""


def lesson(
    number: int, objects: Sequence[str], trained: Mapping[str, int], subjects: Sequence[str] = ()
) -> Lesson:
    """A relation R0, R1, … with facts f0-0, f0-1, … that have these objects, each of a subject."""
    called = subjects or [f"S{i}" for i in range(len(objects))]
    facts = [
        fact(f"R{number}", called[i], name, id=f"f{number}-{i}") for i, name in enumerate(objects)
    ]
    return Lesson(
        relation=relation(f"R{number}", label=f"label {number}", kind=KINDS[number % 3]),
        facts=frame_of(facts),
        trained=trained,
    )


def method(name: str, objects: Objects, answers: Objects, **more: Any) -> Method:
    """A run that gives these answers; an empty one could not be judged."""
    told: dict[str, int] = {}
    owners = [r for r, own in enumerate(objects) for _ in own]
    pairs = [f"f{r}-{i}" for r, own in enumerate(objects) for i in range(len(own))]
    rows = []
    gold = [name for own in objects for name in own]
    given = [name for own in answers for name in own]
    for pair, (owner, right, answer) in enumerate(zip(owners, gold, given, strict=True)):
        if answer:
            rows.append((pair, owner, 0, answer == right, told.setdefault(answer, len(told))))
    made = judged(
        grid(rows, owners, list(range(len(objects)))), pairs=tuple(pairs), answers=tuple(told)
    )
    return Method(name=name, judged=made, **more)


def world(
    objects: Objects,
    runs: Mapping[str, Objects],
    trained: Sequence[Mapping[str, int]],
    easy: Sequence[str] = (),
) -> Learning:
    """Runs of the same facts."""
    known = {f"R{i}": lesson(i, own, trained[i]) for i, own in enumerate(objects)}
    return learning([method(name, objects, a) for name, a in runs.items()], known, easy)


@st.composite
def worlds(draw: st.DrawFn) -> Learning:
    """Up to three relations and four runs, m0 to m3; m2 and m3 say what is easy."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    names = st.sampled_from("abc")
    objects = [draw(st.lists(names, min_size=n, max_size=n)) for n in sizes]
    known = {}
    for i, own in enumerate(objects):
        subjects = draw(st.lists(st.sampled_from("XYZ"), min_size=len(own), max_size=len(own)))
        trained = draw(st.dictionaries(names, st.integers(1, 9), max_size=3))
        order = dict(sorted(trained.items(), key=lambda entry: (-entry[1], entry[0])))
        known[f"R{i}"] = lesson(i, own, order, subjects)
    runs = [
        method(f"m{m}", objects, [draw(st.lists(names, min_size=n, max_size=n)) for n in sizes])
        for m in range(4)
    ]
    return learning(runs, known, ("m2", "m3"))
