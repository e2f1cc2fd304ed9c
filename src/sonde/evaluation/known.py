"""How much a model knows, from several instruments that each miss some of it.

An instrument is one way to ask about a fact: a template, a list of examples, a question. Three
things follow from the answers alone:

- Chance: how often an answer fits a fact if the answers of a relation are dealt to its other facts.
- Evidence: whether the answers fit their own facts better than dealt ones do. Without it no share
  of known facts is estimated, since the model below finds 6 to 32% in answers that know nothing.
- The share known: a known fact is answered correctly with a sensitivity of the instrument, an
  unknown one by chance. The overlap between instruments tells how many facts all of them miss, as
  in capture and recapture. It is too low if instruments miss the same facts, and too high if they
  share a guess (benchmarks/profile_lab.py and benchmarks/profile_simulated.py measure both).

Knows arrays; nothing of prompts, models or files.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

DEALS = 200
BLOCK = 500  # facts among which answers are dealt; more would take time that is quadratic
FEWEST = 3  # facts of a relation whose answers can be dealt
LIMIT = 1e-3  # no probability is closer to 0 or 1
TOLERANCE, STEPS = 1e-5, 3000  # of the share known, in EM
DRAWS = 200  # of the bootstrap


class Dealt(NamedTuple):
    """What the answers of one relation get if they are dealt to its other facts."""

    chance: Floats  # [facts, instruments]: expected accuracy; nan if it was not asked
    hits: Bools  # [deals, facts, instruments]


def deal(
    answers: Sequence[Ints], golds: Sequence[Ints], fits: Sequence[Bools], rng: np.random.Generator
) -> Dealt:
    """Deal the answers of the facts of a relation, at most 500 at a time.

    Args:
        answers: of each instrument, the number of each fact's answer; -1 fits no fact, -2: not
            asked.
        golds: of each instrument, the number of each fact's set of correct names.
        fits: of each instrument, whether an answer fits a set of names: [golds, answers].
    """
    n = len(answers[0])
    chance = np.full((n, len(answers)), np.nan)
    hits = np.zeros((DEALS, n, len(answers)), dtype=bool)
    order = rng.permutation(n)
    for block in np.array_split(order, -(-n // BLOCK)):
        donors = np.array([derangement(len(block), rng) for _ in range(DEALS)])
        for k, (answer, gold, fit) in enumerate(zip(answers, golds, fits, strict=True)):
            asked = answer[block] > -2
            # a column of its own for answers that fit nobody
            table = np.hstack([fit, np.zeros((len(fit), 2), dtype=bool)])
            pairs = table[gold[block][:, None], answer[block][None, :]] & asked[:, None]
            others = pairs.sum(axis=1) - np.diagonal(pairs)
            if (m := int(asked.sum())) > 1:
                chance[block[asked], k] = others[asked] / (m - 1)
            hits[:, block, k] = pairs[np.arange(len(block)), donors]
    return Dealt(chance, hits)


def derangement(n: int, rng: np.random.Generator) -> Ints:
    """For each of n facts another one; each once."""
    while True:
        order = rng.permutation(n)
        if not (order == np.arange(n)).any():
            return order


def threshold(dealt: Floats) -> float:
    """What the mean accuracy must exceed to be evidence: the 95th percentile of the deals."""
    # answers that are all the same tie with every deal
    return float(np.quantile(dealt, 0.95)) + 1e-9


class Known(NamedTuple):
    share: float
    sensitivity: Floats  # [instruments]
    posterior: Floats  # [facts]: the probability that the fact is known


def known(correct: Floats, chance: Floats, weights: Floats | None = None) -> Known:
    """The share of facts known by two classes and EM, behind evidence only.

    Args:
        correct: [facts, instruments], 1 or 0, nan if it was not asked.
        chance: [facts, instruments], as dealt in the relation of the fact.
        weights: how often each fact counts.
    """
    # facts with the same answers and the same chance are one row
    keys = np.nan_to_num(np.hstack([correct, chance]), nan=-1.0)
    _, first, row = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    row = row.ravel()
    counts = np.bincount(row, weights, len(first)).astype(float)
    asked, hit = ~np.isnan(correct[first]), np.nan_to_num(correct[first])
    by_chance = np.clip(np.nan_to_num(chance[first]), LIMIT, 1 - LIMIT)
    used = asked * counts[:, None]
    total = np.maximum(used.sum(axis=0), 1e-9)
    # nothing is known less often than it is guessed
    floor = np.minimum((used * by_chance).sum(axis=0) / total + LIMIT, 1 - LIMIT)
    unknown = np.where(asked, np.log(np.where(hit, by_chance, 1 - by_chance)), 0).sum(axis=1)
    share, sensitivity = 0.5, np.clip((used * hit).sum(axis=0) / total + 0.2, 0.3, 0.95)
    sensitivity = np.maximum(sensitivity, floor)
    posterior = np.zeros(len(first))
    for _ in range(STEPS):
        each = np.where(hit, sensitivity, 1 - sensitivity)
        odds = np.where(asked, np.log(each), 0).sum(axis=1) - unknown
        posterior = 1 / (1 + np.exp(-(odds + np.log(share) - np.log1p(-share))))
        before, share = (
            share,
            float(np.clip(np.average(posterior, weights=counts), LIMIT, 1 - LIMIT)),
        )
        weight = posterior[:, None] * used
        sensitivity = (weight * hit).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9)
        sensitivity = np.clip(sensitivity, floor, 1 - LIMIT)
        if abs(share - before) < TOLERANCE:
            break
    return Known(share, sensitivity, posterior[row])


def interval(
    correct: Floats, chance: Floats, relation: Ints, cluster: Ints, rng: np.random.Generator
) -> Mapping[Any, tuple[float, float]]:
    """95% intervals of the share known: of all facts (None), and of each relation.

    Subjects are drawn within their relation; chance stays as it is, and EM runs in each draw.
    """
    numbers = np.unique(relation)
    drawn: dict[Any, list[float]] = {None: [], **{r: [] for r in numbers.tolist()}}
    members = []
    for number in numbers:
        rows = np.flatnonzero(relation == number)
        members.append((rows, np.unique(cluster[rows], return_inverse=True)[1].ravel()))
    for _ in range(DRAWS):
        weights = np.zeros(len(correct))
        for rows, index in members:
            n = int(index.max()) + 1
            weights[rows] = np.bincount(rng.integers(0, n, n), minlength=n)[index]
        share, _, posterior = known(correct, chance, weights)
        drawn[None].append(share)
        for number, (rows, _) in zip(numbers.tolist(), members, strict=True):
            drawn[number].append(np.average(posterior[rows], weights=weights[rows]))
    ends = {key: np.quantile(values, (0.025, 0.975)) for key, values in drawn.items()}
    return {key: (float(low), float(high)) for key, (low, high) in ends.items()}


def kappa(one: Floats, other: Floats) -> float:
    """Cohen's κ of two columns of 0 and 1 where both are known; nan if one is constant."""
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[both], other[both]
    if len(one) == 0 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    by_chance = one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean())
    return float(((one == other).mean() - by_chance) / (1 - by_chance))
