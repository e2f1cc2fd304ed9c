"""How often a comparison calls models different: equal ones, and ones that differ by 10 points.

Simulated answers: facts come in clusters (facts of one subject), and the outcomes of two facts of a
cluster are correlated. Of two models that differ on 40% of the facts, each is better on half of
these, or one is better by 10 points overall.
"""

from itertools import combinations
from math import sqrt
from typing import Any, cast

import numpy as np
import polars as pl

from benchmarks.common import Result, parser, tell
from sonde.compare.conditions import Aligned, Condition
from sonde.compare.pairwise import CORRECT, differences, leaderboard
from sonde.evaluation.tables import Results

NAME = "verdict"
CLUSTERS, SIZE, CORRELATION, DISCORDANCE = 500, 2, 0.3, 0.4


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--runs", type=int, default=49)
    given = options.parse_args()
    rows = []
    for gap, target in ((0.0, "at most 7.5%"), (0.1, "at least 80%")):
        share = called_different(given.pairs, gap)
        error = 1.96 * sqrt(share * (1 - share) / given.pairs)
        what = f"two models, {gap:.0%} apart"
        rows.append((what, str(CLUSTERS * SIZE), f"{share:.1%} ± {error:.1%}", target))
    aligned = many_runs(given.runs, 20_000)
    pairs = list(combinations(aligned.names, 2))
    what = f"10 points among {given.runs} models ({len(pairs):,} pairs)"
    better = [d for d in differences(aligned, CORRECT, pairs) if d.significant]
    right = sum("best" in (d.first, d.reference) for d in better)
    holm = f"{right} of {given.runs - 1}, and {len(better) - right} others"
    rows.append((f"{what}, Holm", "20,000", holm, "all"))
    board = leaderboard(aligned, CORRECT)
    ranks = f"rank of the best {board.ranks['best']}"
    rows.append((f"{what}, leaderboard", "20,000", ranks, "(1, 1)"))
    tell(
        Result(
            name=NAME,
            title=f"Verdicts on simulated models ({given.pairs} pairs)",
            columns=("models", "facts", "called different", "target"),
            rows=tuple(rows),
            findings=(
                f"{CLUSTERS} clusters of {SIZE} facts whose outcomes have correlation "
                f"{CORRELATION}; the models differ on {DISCORDANCE:.0%} of the facts.",
            ),
        ),
        write=given.write,
    )


def called_different(pairs: int, gap: float, clusters: int = CLUSTERS) -> float:
    """The share of pairs of models whose difference is significant, of the right sign if any."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(pairs):
        only = (DISCORDANCE + np.array([gap, -gap])) / 2  # of the first, of the second
        rest = (1 - DISCORDANCE) / 2
        kinds = correlated(rng, clusters, [rest, *only, rest])  # both, first, second, neither
        aligned = simulated({"first": kinds <= 1, "second": kinds % 2 == 0}, clusters)
        [d] = differences(aligned, CORRECT, [("first", "second")])
        hits += d.significant and (gap == 0 or (d.estimate.value or 0.0) > 0)
    return hits / pairs


def correlated(rng: np.random.Generator, clusters: int, shares: list[float]) -> np.ndarray:
    """Outcomes of facts, cluster by cluster; some facts repeat that of the first of the cluster."""
    kinds = rng.choice(len(shares), (clusters, SIZE), p=shares)
    # the outcomes of two facts of a cluster have this correlation
    repeated = rng.random((clusters, SIZE)) < CORRELATION
    return np.where(repeated, kinds[:, :1], kinds).ravel()


def many_runs(runs: int, facts: int) -> Aligned:
    """Runs with an accuracy of 40%, but the one called "best" with 50%."""
    rng = np.random.default_rng(0)
    levels = {f"run {n}": 0.4 for n in range(runs - 1)} | {"best": 0.5}
    answers = {name: correlated(rng, facts // SIZE, [1 - p, p]) == 1 for name, p in levels.items()}
    return simulated(answers, facts // SIZE)


def simulated(answers: dict[str, np.ndarray], clusters: int) -> Aligned:
    """Runs of made-up answers on the same facts."""
    frame = pl.DataFrame({"relation": "P1", "cluster": np.arange(clusters).repeat(SIZE)})
    every = {
        name: Condition(
            name=name,
            results=Results.of(frame.with_columns(correct=pl.Series(correct))),
            run=cast(Any, None),
        )
        for name, correct in answers.items()
    }
    return Aligned(
        conditions=every, originals=every, same_prompts=True, same_source=True, numbers={}
    )


if __name__ == "__main__":
    main()
