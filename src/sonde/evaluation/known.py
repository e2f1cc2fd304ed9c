"""How much a model knows, from several instruments that each miss some of it.

An instrument is one way to ask about a fact: a template, a list of examples, a question. Three
things follow from the answers alone:

- Chance: how often an answer fits a fact if the answers of a relation are dealt to its other facts.
- Evidence: whether the answers fit their own facts better than dealt ones do. Without it no share
  of known facts is estimated, since the model below finds 6 to 32% in answers that know nothing.
- The share known: a known fact is answered correctly with a sensitivity of the instrument, an
  unknown one by chance. The overlap between instruments shows how many facts all of them miss, as
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
AT_ONCE = 40  # of them in one fit, which is limited by memory


class Dealt(NamedTuple):
    """What the answers of one relation get if they are dealt to its other facts."""

    chance: Floats  # [facts, instruments]: expected accuracy; nan if it was not asked
    hits: Bools  # [deals, facts, instruments]


def deal_answers(
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
        donors = _draw_donors(len(block), rng)
        for k, (answer, gold, fit) in enumerate(zip(answers, golds, fits, strict=True)):
            facts = block[answer[block] > -2]
            if (m := len(facts)) < 2:
                continue
            # a further column for answers that fit nobody
            table = np.hstack([fit, np.zeros((len(fit), 1), dtype=bool)])
            pairs = table[gold[facts][:, None], answer[facts][None, :]]
            chance[facts, k] = (pairs.sum(axis=1) - np.diagonal(pairs)) / (m - 1)
            # where an instrument was asked about some facts only, no other answer can be dealt
            others = donors if m == len(block) else _draw_donors(m, rng)
            hits[:, facts, k] = pairs[np.arange(m), others]
    return Dealt(chance, hits)


def _draw_donors(n: int, rng: np.random.Generator) -> Ints:
    """For each of n facts another one, each once: [deals, facts]. One fact has no other one."""
    deals: list[Ints] = []
    while len(deals) < DEALS:
        order = rng.permutation(n)
        if n < 2 or not (order == np.arange(n)).any():
            deals.append(order)
    return np.array(deals)


def evidence_threshold(dealt_accuracies: Floats) -> float:
    """What the mean accuracy must exceed to be evidence: the 95th percentile of the deals."""
    # answers that are all the same tie with every deal
    return float(np.quantile(dealt_accuracies, 0.95)) + 1e-9


class ShareKnown(NamedTuple):
    share: float
    sensitivity: Floats  # [instruments]
    posterior: Floats  # [facts]: the probability that the fact is known


def estimate_share_known(correct: Floats, chance: Floats) -> ShareKnown:
    """The share of facts known by two classes and EM, behind evidence only.

    Args:
        correct: [facts, instruments], 1 or 0, nan if it was not asked.
        chance: [facts, instruments], as dealt in the relation of the fact.
    """
    answers, row = _merge_equal_rows(correct, chance)
    share, sensitivity, posterior = _fit_two_classes(answers, np.bincount(row).astype(float)[None])
    return ShareKnown(float(share[0]), sensitivity[0], posterior[0, row])


def _merge_equal_rows(correct: Floats, chance: Floats) -> tuple[Floats, Ints]:
    """Facts with the same answers and the same chance are one row; and the row of each fact."""
    both = np.hstack([correct, chance])
    _, first, row = np.unique(
        np.nan_to_num(both, nan=-1.0), axis=0, return_index=True, return_inverse=True
    )
    return both[first], row.ravel()


def _fit_two_classes(answers: Floats, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Shares known [draws], sensitivities [draws, instruments], posteriors [draws, rows].

    Args:
        answers: [rows, correct and chance of each instrument].
        counts: how often each draw has each row: [draws, rows].
    """
    correct, chance = np.hsplit(answers, 2)
    measured, hit = ~np.isnan(correct), np.nan_to_num(correct)
    miss = measured - hit
    by_chance = np.clip(np.nan_to_num(chance), LIMIT, 1 - LIMIT)
    unknown = (hit * np.log(by_chance) + miss * np.log1p(-by_chance)).sum(axis=1)
    total = np.maximum(counts @ measured, 1e-9)
    # nothing is known less often than it is guessed
    floor = np.minimum(counts @ (measured * by_chance) / total + LIMIT, 1 - LIMIT)
    share = np.full(len(counts), 0.5)
    sensitivity = np.maximum(np.clip(counts @ hit / total + 0.2, 0.3, 0.95), floor)
    posterior = np.zeros(counts.shape)
    for _ in range(STEPS):
        odds = np.log(sensitivity) @ hit.T + np.log1p(-sensitivity) @ miss.T - unknown
        posterior = 1 / (1 + np.exp(-odds - np.log(share / (1 - share))[:, None]))
        weight = posterior * counts
        before, share = share, weight.sum(axis=1) / counts.sum(axis=1)
        share = np.clip(share, LIMIT, 1 - LIMIT)
        sensitivity = (weight @ hit) / np.maximum(weight @ measured, 1e-9)
        sensitivity = np.clip(sensitivity, floor, 1 - LIMIT)
        if np.abs(share - before).max() < TOLERANCE:
            break
    return share, sensitivity, posterior


def share_known_intervals(
    correct: Floats, chance: Floats, relation: Ints, cluster: Ints, rng: np.random.Generator
) -> Mapping[Any, tuple[float, float]]:
    """95% intervals of the share known: of all facts (None), and of each relation.

    Subjects are drawn within their relation; chance stays as it is, and EM runs in each draw.
    """
    numbers = np.unique(relation)
    drawn: dict[Any, list[float]] = {None: [], **{r: [] for r in numbers.tolist()}}
    answers, row = _merge_equal_rows(correct, chance)
    for _ in range(0, DRAWS, AT_ONCE):
        weights = np.zeros((AT_ONCE, len(correct)))
        for number in numbers:
            rows = np.flatnonzero(relation == number)
            index = np.unique(cluster[rows], return_inverse=True)[1].ravel()
            n = int(index.max()) + 1
            weights[:, rows] = rng.multinomial(n, np.full(n, 1 / n), AT_ONCE)[:, index]
        counts = np.stack([np.bincount(row, each, len(answers)).astype(float) for each in weights])
        share, _, posterior = _fit_two_classes(answers, counts)
        drawn[None].extend(share)
        for number in numbers.tolist():
            here = relation == number
            weighted = (posterior[:, row[here]] * weights[:, here]).sum(axis=1)
            drawn[number].extend(weighted / weights[:, here].sum(axis=1))
    ends = {key: np.quantile(values, (0.025, 0.975)) for key, values in drawn.items()}
    return {key: (float(low), float(high)) for key, (low, high) in ends.items()}


def cohens_kappa(one: Floats, other: Floats) -> float:
    """Cohen's κ of two columns of 0 and 1 where both are known; nan if one is constant."""
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[both], other[both]
    if len(one) == 0 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    by_chance = one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean())
    return float(((one == other).mean() - by_chance) / (1 - by_chance))
