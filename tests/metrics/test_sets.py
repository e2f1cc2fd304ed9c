"""Where right things stand: the fast way beside the literal one, prompt by prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.core.answers import Answered, Filled, Scored
from sonde.core.columns import in_blocks
from sonde.core.prompts import Key
from sonde.core.scores import Normalise, option_logps
from sonde.metrics.ranking import right_places, tops

NAMES = tuple("abcdefg")
OBJECTS = st.lists(
    st.lists(st.sampled_from((*NAMES, "A")), min_size=1, max_size=2, unique=True),
    min_size=1,
    max_size=4,
)
SCORES = st.lists(st.integers(-4, 0), min_size=len(NAMES), max_size=len(NAMES))
PROMPTS = st.lists(st.tuples(OBJECTS, SCORES, st.integers(3, len(NAMES))), min_size=1, max_size=4)

Things = Sequence[Sequence[str]]


def answered(answer: Scored | Filled, number: int) -> Answered:
    key = Key(fact=str(number), relation="r", template="t", subject="s")
    return Answered(key=key, prefix="", suffix="", answer=answer)


def owned(objects: Things) -> dict[str, int]:
    """The first object that has each name."""
    return {name: i for i, names in reversed(list(enumerate(objects))) for name in names}


def literal_scored(objects: Things, scores: dict[str, float]) -> list[int]:
    """Every thing in a list, the likeliest first, wrong ones before right ones of equal score."""
    owners = owned(objects)
    best: dict[int, float] = {}
    for name, score in scores.items():
        if name in owners:
            best[owners[name]] = max(best.get(owners[name], score), score)
    things = [(-score, False) for name, score in scores.items() if name not in owners]
    things += [(-score, True) for score in best.values()]
    return [place for place, (_, right) in enumerate(sorted(things), 1) if right]


def literal_filled(objects: Things, scores: dict[str, int]) -> list[int]:
    """Wrong tokens that are at least as likely stand before a right object, and better objects."""
    own = [{n.lower() for n in names if n.lower() in scores} for names in objects]
    wrong = [score for token, score in scores.items() if token not in set().union(*own)]
    bests = sorted(
        (max(scores[token] for token in tokens) for tokens in own if tokens), reverse=True
    )
    return [sum(score >= best for score in wrong) + n for n, best in enumerate(bests, 1)]


@pytest.mark.parametrize("normalise", ["none", "tokens"])
@given(prompts=PROMPTS)
def test_options_stand_where_the_literal_list_has_them(
    prompts: list[tuple[list[list[str]], list[int], int]], normalise: Normalise
) -> None:
    rows, wanted = [], []
    for number, (objects, scores, count) in enumerate(prompts):
        names, given = NAMES[:count], scores[:count]
        logps = tuple((float(score),) * (1 + i % 3) for i, score in enumerate(given))
        answer = Scored(options=names, logps=logps)
        rows.append(answered(answer, number))
        compared = option_logps(answer, normalise).tolist()
        wanted.append(literal_scored(objects, dict(zip(names, compared, strict=True))))
    check([p[0] for p in prompts], rows, wanted, normalise)


@given(PROMPTS)
def test_tokens_stand_where_the_literal_list_has_them(
    prompts: list[tuple[list[list[str]], list[int], int]],
) -> None:
    rows, wanted = [], []
    for number, (objects, scores, count) in enumerate(prompts):
        tokens = dict(zip(NAMES[:count], scores, strict=False))
        ranks = {t: sum(other >= score for other in tokens.values()) for t, score in tokens.items()}
        filled = Filled(
            top=("x",),
            top_logps=(-0.1,),
            watched=(*NAMES, "A"),  # the same token as a
            watched_logps=tuple(tokens.get(name.lower()) for name in (*NAMES, "A")),
            watched_ranks=tuple(ranks.get(name.lower()) for name in (*NAMES, "A")),
        )
        rows.append(answered(filled, number))
        wanted.append(literal_filled(objects, tokens))
    check([p[0] for p in prompts], rows, wanted)


def check(
    objects: Sequence[Things],
    rows: list[Answered],
    wanted: list[list[int]],
    normalise: Normalise = "none",
) -> None:
    (block,) = in_blocks(rows)
    owners, correct = np.arange(len(rows)), dict(enumerate(objects))
    answers = block.filled if block.kind == "filled" else block.rated
    places = right_places(answers, owners, owners, correct, normalise)
    found = [places.position[places.prompt == row].tolist() for row in range(len(rows))]
    assert found == wanted
    sizes = np.array([len(own) for own in objects])
    made = tops(places, sizes)
    for row, (own, size) in enumerate(zip(wanted, sizes.tolist(), strict=True)):
        if len(own) < 2:
            assert np.isnan(made.f1[row])
            continue
        hits = sum(place <= len(own) for place in own)
        precision, recall = hits / len(own), hits / size
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        assert np.allclose(
            [column[row] for column in made],
            [
                *(len(own), precision, recall, f1),
                sum(i / place for i, place in enumerate(own, 1)) / size,
                hits == size,
            ],
        )
