"""Runs of MONITOR by hand: probabilities and right answers without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sonde.analysis.runs import Compared, Lineage
from sonde.core.facts import Fact, Template
from sonde.metrics.distance import EQUAL, Monitored
from sonde.metrics.judged import Grid
from tests import worlds
from tests.analysis.world import judged
from tests.worlds import entity, question, relation

FRAMES, WRONG = 5, 3


def monitored(
    seed: int,
    facts: Sequence[int] = (6, 6),
    *,
    frames: int = FRAMES,
    noise: float = 0.3,
    valid: float = 0.8,
    knows: float = 0.6,
    **changes: Any,
) -> Monitored:
    """So many facts in each relation R0, R1, …, of objects of one or two tokens, drawn by a seed.

    noise: how far frames and wrong names move probabilities; valid: the share of valid anchors;
    knows: the share of right answers.
    """
    random = np.random.default_rng(seed)
    owners = [r for r, count in enumerate(facts) for _ in range(count)]
    anchor, framed, misled, right = [], [], [], []
    for c in range(len(owners)):
        tokens = 1 + c % 2
        top = random.uniform(0.5, 1.0, tokens)
        anchor.append(top)
        framed.append(top * (1 - noise * random.random((frames, tokens))))
        misled.append(top * (1 - noise * random.random((WRONG, tokens))))
        right.append(random.random(1 + frames + WRONG) < knows)
    exact = random.random(len(owners)) < valid
    made: dict[str, Any] = {
        "relations": tuple(relation(f"R{r}", label=f"label {r}") for r in range(len(facts))),
        "frames": tuple(frame_texts(r, frames) for r in range(len(facts))),
        "facts": tuple(fact(c, r) for c, r in enumerate(owners)),
        "relation": np.array(owners, dtype=np.int64),
        "anchor": tuple(anchor),
        "framed": tuple(framed),
        "misled": tuple(misled),
        "wrong": tuple(tuple(f"no{m}" for m in range(WRONG)) for _ in owners),
        "said": tuple(("a",) * (1 + frames + WRONG) for _ in owners),
        "right": tuple(right),
        "valid": {"exact": exact, "prefix": exact, "any": np.ones(len(owners), dtype=np.bool_)},
        "rule": "exact",
        "alphas": EQUAL,
        "seed": 0,
    }
    return Monitored(**(made | changes))


def frame_texts(number: int, frames: int) -> tuple[Template, ...]:
    """The frames of a relation, with ids of their own."""
    return tuple(question(f"R{number}-{j}", f"Which {j} of [X]?") for j in range(frames))


def fact(c: int, owner: int) -> Fact:
    """A fact; every third shares its subject with the one before."""
    subject = entity(f"subject {c}", id=f"Q{c - (c % 3 == 2)}")
    return worlds.fact(f"R{owner}", subject, entity(f"object {c}", id=f"O{c}"), id=f"f{c}")


def run(name: str, known: Monitored, setting: str = "", **lineage: Any) -> Compared:
    """A run that measured MONITOR, and judged the frames."""
    return Compared(
        name=name,
        judged=judged(grid_of(known), pairs=tuple(f.id for f in known.facts)),
        dataset="d",
        group=name,
        seconds=2.5,
        setting=setting,
        lineage=Lineage(**({"model": name} | lineage)),
        monitored=known,
    )


def grid_of(known: Monitored) -> Grid:
    """Whether each fact is right in each frame."""
    owners = known.relation.tolist()
    width = [len(own) for own in known.frames]
    firsts = np.cumsum([0, *width])
    rows = [(c, int(firsts[r]) + j) for c, r in enumerate(owners) for j in range(width[r])]
    pair, template = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    right = [bool(known.right[c][1 + t - firsts[owners[c]]]) for c, t in rows]
    return Grid(
        pair=pair,
        template=template,
        name=np.zeros(len(rows), dtype=np.int64),
        right=np.array(right, dtype=np.bool_),
        answer=np.array([0 if ok else 1 for ok in right], dtype=np.int64),
        confidence=np.full(len(rows), np.nan),
        relations=known.relation,
        template_relations=np.repeat(np.arange(len(width)), width),
    )


def permuted(known: Monitored, order: Sequence[int]) -> Monitored:
    """The same facts in another order."""
    at = np.array(order, dtype=np.int64)
    columns: dict[str, Any] = {
        name: tuple(getattr(known, name)[c] for c in order)
        for name in ("facts", "anchor", "framed", "misled", "wrong", "said", "right")
    }
    valid = {rule: which[at] for rule, which in known.valid.items()}
    return replace(known, relation=known.relation[at], valid=valid, **columns)


@st.composite
def several(draw: st.DrawFn, runs: int = 3) -> list[Compared]:
    """Runs of the same facts, with probabilities and answers of their own."""
    facts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    return [
        run(
            f"r{i}",
            monitored(
                draw(st.integers(0, 999)),
                facts,
                noise=draw(st.sampled_from([0.0, 0.3, 0.9])),
                valid=draw(st.sampled_from([0.0, 0.6, 1.0])),
                knows=draw(st.sampled_from([0.0, 0.5, 1.0])),
            ),
        )
        for i in range(runs)
    ]
