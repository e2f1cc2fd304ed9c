"""The metrics of many prompts at MyriadLAMA's size: 24,643 pairs, 6.5 million prompts.

Made-up answers; no model and no files are needed. Draws from the exact distribution are compared
with draws made one by one as the definition reads, and Consist from counts with Consist pair by
pair, both on a part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, get_args

import numpy as np

from benchmarks.common import Result, memory_now, memory_peak, parser, seconds, tell
from sonde.metrics.accuracy import (
    Draw,
    Fluctuation,
    covered,
    fluctuation,
    relation_spread,
    right_shares,
    worst_best_mean,
)
from sonde.metrics.calibration import calibration
from sonde.metrics.consistency import agreement, names_only, templates_only
from sonde.metrics.judged import Block, Floats, Grid, mean_over_pairs
from sonde.stats.distributions import drawn, independent, successes, summed

NAME = "belief_metrics"
RELATIONS = 41
TEMPLATES = 100
ANSWERS = 3000


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=24_643)
    options.add_argument("--draws", type=int, default=50_000)
    options.add_argument("--one-by-one", type=int, default=200, help="draws of the plain way")
    given = options.parse_args()
    grid = world(given.pairs, np.random.default_rng(0))
    before = memory_now()
    rows = [*draws(grid, given.draws, given.one_by_one), *metrics(grid), part(grid)]
    peak = (memory_peak() - before) / 2**20
    tell(
        Result(
            name=NAME,
            title=f"{given.pairs:,} pairs, {len(grid):,} prompts, {given.draws:,} draws",
            columns=("what", "seconds", "found"),
            rows=tuple((what, f"{took:.2f}", found) for what, took, found in rows),
            findings=(f"Peak memory beyond the prompts themselves: {peak:,.0f} MiB.",),
        ),
        write=given.write,
    )


def world(pairs: int, rng: np.random.Generator) -> Grid:
    """Pairs with 2.6 names on average, asked under every template of their relation."""
    relations = np.sort(rng.integers(0, RELATIONS, pairs))
    names = 1 + rng.poisson(1.63, pairs)
    pair = np.repeat(np.arange(pairs), names * TEMPLATES)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(names * TEMPLATES), names * TEMPLATES)
    within += names[pair] * TEMPLATES
    template = relations[pair] * TEMPLATES + within % TEMPLATES
    hard, ease = rng.normal(-2, 1.5, pairs), rng.normal(0, 1.2, RELATIONS * TEMPLATES)
    chance = 1 / (1 + np.exp(-hard[pair] - ease[template]))
    right = rng.random(len(pair)) < chance
    wrong = rng.geometric(0.01, len(pair)) % ANSWERS + 1
    return Grid(
        pair=pair,
        template=template,
        name=within // TEMPLATES,
        right=right,
        answer=np.where(right, 0, wrong),
        confidence=np.clip(chance + rng.normal(0.1, 0.1, len(pair)), 0, 1),
        relations=relations,
        template_relations=np.repeat(np.arange(RELATIONS), TEMPLATES),
    )


def draws(grid: Grid, n: int, few: int) -> list[tuple[str, float, str]]:
    """Both kinds of draw: the bare draws, the whole metric, and the definition draw by draw."""
    made = grid.blocks
    rows = []
    for kind in get_args(Draw):
        took, found = timed(partial(of_kind, made, kind, n))
        rows.append((f"draws by {kind}", took, f"stdev {found.std():.5f}"))
        took, whole = timed(partial(fluctuates, grid, kind, n))
        rows.append((f"fluctuation by {kind}, intervals too", took, told(whole)))
        took, plain = timed(partial(one_by_one, made, kind, few))
        rows.append((f"{few} draws by {kind}, one by one", took, f"stdev {plain.std():.5f}"))
    return rows


def fluctuates(grid: Grid, kind: Draw, n: int) -> Fluctuation | None:
    """The whole metric, from prompts to intervals."""
    return fluctuation([relation_spread(block, kind) for block in grid.blocks], kind, n)


def told(found: Fluctuation) -> str:
    """Range, standard deviation and closed form."""
    return f"range {found.range.value:.4f}, closed form {found.closed_form:.5f}"


def of_kind(made: list[Block], kind: Draw, n: int) -> Floats:
    """Accuracies of n draws, from cells to numbers."""
    if kind == "relation":
        distribution = summed([successes(block.rates) for block in made])
    else:
        distribution = independent(np.concatenate([block.of_pairs for block in made]))
    return drawn(distribution, n, np.random.default_rng(0)) / (len(distribution) - 1)


def one_by_one(made: list[Block], kind: Draw, n: int) -> Floats:
    """The same as the definition reads: draw, look at every pair, average."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(n):
        right = 0
        for block in made:
            way = rng.integers(len(block.templates))
            rates = block.rates[:, way] if kind == "relation" else block.of_pairs
            right += int((rng.random(len(rates)) < rates).sum())
        found.append(right / sum(len(block.pairs) for block in made))
    return np.array(found)


def metrics(grid: Grid) -> list[tuple[str, float, str]]:
    """The other metrics over all prompts."""
    columns: dict[str, Callable[[], tuple[Floats, ...]]] = {
        "Acc@1": lambda: (right_shares(grid),),
        "Consist": lambda: (agreement(grid),),
        "template accuracies": lambda: worst_best_mean(grid),
        "coverage": lambda: covered(grid),
        "names only": lambda: names_only(grid),
        "templates only": lambda: templates_only(grid),
    }
    rows = []
    for what, made in columns.items():
        took, found = timed(partial(estimated, grid, made))
        rows.append((what, took, ", ".join(f"{mean.value:.4f}" for mean in found)))
    took, gap = timed(lambda: calibration(grid.confidence, grid.right, grid.pair))
    rows.append(("calibration", took, f"Overconf {gap.overconf.value:.4f}" if gap else ""))
    return rows


def estimated(grid: Grid, made: Callable[[], tuple[Floats, ...]]) -> list[Any]:
    """The means of some columns over pairs, with their intervals."""
    return [mean_over_pairs(column, grid.relations, 0) for column in made()]


def part(grid: Grid, pairs: int = 10) -> tuple[str, float, str]:
    """Consist of a few pairs, prompt pair by prompt pair."""
    few = grid.rows(grid.pair < pairs)
    lists = [few.answer[few.pair == i].tolist() for i in range(pairs)]
    took, shares = timed(lambda: [pairwise(answers) for answers in lists])
    same = abs(float(np.mean(shares)) - float(np.nanmean(agreement(few)))) < 1e-12
    verdict = "equal to the count" if same else "NOT equal to the count"
    return f"Consist of {pairs} pairs, pairwise", took, verdict


def pairwise(answers: list[int]) -> float:
    """Share of equal answers among all pairs of one list."""
    return float(np.mean([a == b for a, b in combinations(answers, 2)]))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How long something takes, and what it gives."""
    found: list[Any] = []
    took = seconds(lambda: found.append(work()))
    return took, found[0]


if __name__ == "__main__":
    main()
