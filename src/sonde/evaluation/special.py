"""Numbers that are no ratios of sums over facts, on the same draws as those that are.

How far the accuracy moves with the prompts, how far templates are biased before they name a
subject, how hand-written templates rank, and how overconfidence differs between templates.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import nan, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import Expr, col

from sonde.core.texts import folded
from sonde.evaluation import stats
from sonde.evaluation.estimate import Clusters, Group, Line, Metric, Special, estimate
from sonde.evaluation.stats import DRAWS, FLAT, LEVEL, Floats, Ints, generator, resampled_sums

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

Draw = Literal["relation", "pair"]
NOTHING = 1e-300


def _line(
    id: str, relation: str, value: float, ends: tuple[float, float], n: float, clusters: float
) -> Line:
    """A number with its interval, which holds the value."""
    low, high = min(ends[0], value), max(ends[1], value)
    by, group = (["relation"], [relation]) if relation else ([], [])
    return id, by, group, value, *((low, high) if high - low > FLAT else (nan, nan)), n, clusters


def _ends(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, (LEVEL / 2, 1 - LEVEL / 2))
    return float(low), float(high)


class Part(NamedTuple):
    """What a relation adds to the fluctuation."""

    distribution: Floats  # of the number of correct facts
    variances: Floats  # of this number; as it is, and under resampling
    choices: int  # prompts that a fact can be drawn from, at most
    n_clusters: int


class Cells:
    """The answers of one relation: facts × templates, each prompted at least once."""

    def __init__(self, name: str, rows: pl.DataFrame, clusters: Clusters) -> None:
        self.name = name
        facts, row = np.unique(rows["fact_no"], return_inverse=True)
        self.templates, column = np.unique(rows["template_no"], return_inverse=True)
        shape = len(facts), len(self.templates)
        cell, size = row * shape[1] + column, shape[0] * shape[1]
        self.prompts = np.bincount(cell, minlength=size).reshape(shape)
        correct = np.bincount(cell, rows["correct"], size).reshape(shape)
        self.of_facts = correct.sum(axis=1) / self.prompts.sum(axis=1)
        prompted = self.prompts > 0
        rates = correct / np.maximum(self.prompts, 1)
        self.of_templates = rates.sum(axis=0) / prompted.sum(axis=0)
        # a fact that was not prompted with a template answers with any of its prompts
        self.rates = np.where(prompted, rates, self.of_facts[:, None])
        self.place, relation = clusters.place[facts], clusters.relation[facts[0]]
        self.n_clusters = int(clusters.sizes[relation])

    def resample(self, columns: Floats, seed: int) -> Floats:
        """Sums of columns [facts, k] when clusters are drawn again; [draws, k]."""
        sums = np.zeros((self.n_clusters, columns.shape[1]))
        np.add.at(sums, self.place, columns)
        return resampled_sums(sums, generator(seed, self.name))


def relation_cells(results: "Results") -> Iterator[Cells]:
    """The answers of every relation that has any."""
    clusters = Clusters(results.facts, results.rows)
    rows = results.rows.select("relation", "fact_no", "template_no", "correct")
    for relation in clusters.names:
        part = rows.filter(col("relation") == relation)
        if not part.is_empty():
            yield Cells(relation, part, clusters)


def fluctuation(draw: Draw, draws: int = 50_000) -> Special:
    """Range and standard deviation of the accuracy over draws of prompts.

    "relation": each draw takes one template per relation, and for each fact one of its names.
    "pair": each draw takes one of a fact's prompts for every fact. The distribution of the number
    of correct facts is computed exactly, and the draws are taken from it.

    The interval of the range is its Monte-Carlo error, worked out exactly; the range grows with the
    number of draws. That of the standard deviation is the bootstrap of the closed form over
    clusters of facts, shifted to have the value as its mean, because resampled facts make templates
    differ more. The closed form has none.
    """
    what = {"relation": "a template per relation", "pair": "a prompt per fact"}[draw]
    metrics = tuple(
        Metric(f"fluctuation.{draw}.{id}", label=f"fluctuation, {label}", better="lower", help=help)
        for id, label, help in (
            ("range", "range", f"best minus worst accuracy over draws of {what}"),
            ("stdev", "SD", f"standard deviation of the accuracy over draws of {what}"),
            ("closed_form", "closed form", f"exact standard deviation over draws of {what}"),
        )
    )

    def lines(relation: str, parts: Sequence[Part], seed: int) -> Iterator[Line]:
        if max((part.choices for part in parts), default=0) < 2:
            return  # there is nothing to draw
        distribution = stats.sum_distribution([part.distribution for part in parts])
        n, below = len(distribution) - 1, np.cumsum(distribution)
        numbers = generator(seed, f"fluctuation:{draw}").random(draws)
        accuracies = np.searchsorted(below / below[-1], numbers, side="right") / n
        variance, *moved = np.sum([part.variances for part in parts], axis=0)
        moved = np.sqrt(np.maximum(moved - np.mean(moved) + variance, 0.0)) / n
        clusters = sum(part.n_clusters for part in parts)
        widths = np.array(range_interval(distribution, draws)) / n
        values = (
            (float(np.ptp(accuracies)), tuple(widths.tolist())),
            (float(accuracies.std()), _ends(moved)),
            (sqrt(variance) / n, (nan, nan)),
        )
        for metric, (value, ends) in zip(metrics, values, strict=True):
            yield _line(metric.id, relation, value, ends, n, clusters)

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        parts = []
        for cells in relation_cells(results):
            rates = cells.rates if draw == "relation" else cells.of_facts[:, None]
            inner, ones = (rates * (1 - rates)).mean(axis=1), np.ones(len(rates))
            columns = np.column_stack([rates, inner, ones])
            sums = np.vstack([columns.sum(axis=0), cells.resample(columns, seed)])
            # scaled to the number of facts, in which draws of clusters differ
            sums *= len(rates) / np.where(sums[:, -1:] > 0, sums[:, -1:], np.inf)
            prompts = cells.prompts > 0 if draw == "relation" else cells.prompts
            parts.append(
                Part(
                    stats.success_distribution(rates),
                    sums[:, :-2].var(axis=1) + sums[:, -2],
                    int(prompts.sum(axis=1).max()),
                    len(np.unique(cells.place)),
                )
            )
            yield from lines(cells.name, parts[-1:], seed)
        yield from lines("", parts, seed)

    return Special(metrics, compute)


def range_interval(distribution: Floats, n: int) -> tuple[int, int]:
    """The middle 95% of what max − min of n draws can be; exact.

    >>> range_interval(np.array([0.5, 0.5]), 50)
    (1, 1)
    """
    within = np.flatnonzero(distribution)
    known = distribution[within[0] : within[-1] + 1]
    below = np.concatenate([[0.0], np.cumsum(known) / known.sum()])

    def at_most(width: int) -> float:
        # the smallest is exactly a, the largest no more than a + width
        top = below[np.minimum(np.arange(len(known)) + width + 1, len(known))]
        every, none_at = top - below[:-1], np.maximum(top - below[1:], 0.0)
        near = every > NOTHING ** (1 / n)
        return float((every[near] ** n - none_at[near] ** n).sum())

    widths = range(len(known))
    low, high = (bisect_left(widths, share, key=at_most) for share in (LEVEL / 2, 1 - LEVEL / 2))
    return min(low, len(known) - 1), min(high, len(known) - 1)


def bias_level(shares: Floats) -> Floats:
    """1 − H/H_max of each row of shares: 0 favors no candidate, 1 states a single one."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    level = 1 + (shares * logs).sum(axis=-1) / np.log(shares.shape[-1])
    return np.asarray(level.clip(0.0, 1.0))


def candidate_shares(results: "Results") -> Iterator[tuple[str, Ints, list[str], Floats]]:
    """Of each relation: templates, candidates, and each one's share under each template.

    Averaged over the content-free subjects. A candidate can be answered with every template; names
    of one spelling that are always equally likely are one token, and so one candidate. Relations
    with fewer than two have none.
    """
    table = results.side.get("bias")
    if table is None:
        return
    numbers = results.templates.select(col("relation").cast(pl.String), "template", "template_no")
    table = table.join(numbers, on=("relation", "template"))
    table = table.unique(("relation", "template_no", "subject"), keep="last", maintain_order=True)
    for relation in results.facts["relation"].cast(pl.String).unique(maintain_order=True):
        part = table.filter(relation=relation).sort("template_no", "subject")
        if part.is_empty():
            continue
        logprobs = np.array(part["logprobs"].to_list(), dtype=np.float64)
        known = np.flatnonzero(~np.isnan(logprobs).any(axis=0))
        names = part["candidates"][0].gather(known).to_list()
        spelling = np.unique([folded(name) for name in names], return_inverse=True)[1]
        alike = np.vstack([logprobs[:, known], spelling])
        chosen = np.sort(np.unique(alike, axis=1, return_index=True)[1])
        if len(chosen) < 2:
            continue
        weights = np.exp(logprobs[:, known[chosen]])
        weights /= weights.sum(axis=1, keepdims=True)
        templates, owners = np.unique(part["template_no"], return_inverse=True)
        shares = np.stack([weights[owners == i].mean(axis=0) for i in range(len(templates))])
        yield relation, templates, [names[i] for i in chosen.tolist()], shares


def bias() -> Special:
    """Bias level of templates with subjects that state nothing, and of the average of a relation's.

    The interval is over templates within their relation: how the numbers would move with other
    wordings. Resampling can only raise that of the average, so its draws are shifted.
    """
    single, multi = (
        Metric(f"bias.{id}", label=f"bias level, {label}", unit="number", better="lower", help=help)
        for id, label, help in (
            (
                "single",
                "one template",
                "of a template without a subject; 0: even, 1: one candidate",
            ),
            ("multi", "all templates", "of the average of a relation's templates"),
        )
    )

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        names = Clusters(results.facts, results.rows).names
        parts = []
        for relation, templates, _, shares in candidate_shares(results):
            n, rng = len(templates), generator(seed, f"bias:{names.index(relation)}")
            drawn = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
            times = np.vstack([np.ones(n), drawn]) / n
            parts.append((times @ bias_level(shares) * n, bias_level(times @ shares), n))
            yield from lines(relation, parts[-1:])
        if parts:
            yield from lines("", parts)

    def lines(relation: str, parts: Sequence[tuple[Floats, Floats, int]]) -> Iterator[Line]:
        n = sum(part[2] for part in parts)
        one = np.sum([part[0] for part in parts], axis=0) / n
        average = np.mean([part[1] for part in parts], axis=0)
        moved = np.clip(average[1:] - average[1:].mean() + average[0], 0.0, 1.0)
        for metric, value, draws in ((single, one[0], one[1:]), (multi, average[0], moved)):
            # with one template in each relation there is none to compare it with
            ends = (nan, nan) if n == len(parts) else _ends(draws)
            yield _line(metric.id, relation, float(value), ends, n, n)

    return Special((single, multi), compute)


def manual_rank() -> Special:
    """Mean rank of hand-written templates among all of their relation by accuracy, 1 is best.

    Templates of equal accuracy share their mean rank. n counts hand-written templates; relations
    without them, or without others, are left out.
    """
    rank, chance = (
        Metric(f"manual.{id}", label=label, unit="number", better="", help=help)
        for id, label, help in (
            (
                "rank",
                "rank of manual templates",
                "mean rank by accuracy in the relation; 1 is best",
            ),
            ("rank_by_chance", "… by chance", "mean of (number of templates + 1) / 2"),
        )
    )

    def rank_sums(accuracies: Floats, manual: NDArray[np.bool_]) -> Floats:
        chosen = accuracies[:, manual]
        better = (accuracies[:, None] > chosen[..., None]).sum(axis=(1, 2))
        equal = (accuracies[:, None] == chosen[..., None]).sum(axis=(1, 2)) - manual.sum()
        return np.asarray(manual.sum() + better + equal / 2)

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        chosen = results.templates.filter(source="manual").select("relation", "template_no")
        draws, by_chance, count, clusters = np.zeros(1 + DRAWS), 0.0, 0, 0
        for cells in relation_cells(results):
            numbers = chosen.filter(col("relation") == cells.name)["template_no"].to_numpy()
            manual = np.isin(cells.templates, numbers)
            n = int(manual.sum())
            if 0 < n < len(manual):
                sums = cells.resample(cells.rates, seed)
                draws[0] += rank_sums(cells.of_templates[None], manual)[0]
                draws[1:] += rank_sums(sums, manual)
                by_chance += n * (len(manual) + 1) / 2
                count, clusters = count + n, clusters + len(np.unique(cells.place))
        if count:
            draws /= count
            ends = _ends(draws[1:] - draws[1:].mean() + draws[0])
            yield _line(rank.id, "", float(draws[0]), ends, count, clusters)
            yield _line(chance.id, "", by_chance / count, (nan, nan), count, clusters)

    return Special((rank, chance), compute)


def template_overconfidence(
    min_prompts: int, probability: str = "confidence", where: Expr | None = None
) -> Special:
    """Overconfidence of the templates with at least some number of graded prompts.

    n of mean and standard deviation is the number of templates, and their intervals are over
    templates. Those of the lowest and the highest are Student's over clusters of facts, and their
    n the number of prompts.
    """
    metrics = tuple(
        Metric(
            f"template_overconfidence.{id}", label=f"overconfidence of templates, {label}",
            unit="points", better="zero" if id == "mean" else "",
            help=f"of templates with {min_prompts:,} prompts or more",
        )
        for id, label in (("mean", "mean"), ("stdev", "SD"), ("min", "lowest"), ("max", "highest"))
    )  # fmt: skip
    gap = col(probability).cast(pl.Float64) - col("correct")
    known = col(probability).is_not_null()
    overconfidence = Metric(
        "overconfidence", num=gap.sum(), den=pl.len(), unit="points", counts="prompts",
        where=known if where is None else known & where,
    )  # fmt: skip

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        groups = [Group(("relation", "template_no"), fine=True)]
        table = estimate(results, [overconfidence], groups=groups, over=["facts"])
        table = table.filter(col("n") >= min_prompts, col("group").list.len() == 2)
        if table.is_empty():
            return
        value, n = table["value"].to_numpy(), table.height
        drawn = resampled_sums(np.column_stack([value, value**2]), generator(seed, "by template"))
        average, square = drawn.T / n
        yield _line(metrics[0].id, "", float(value.mean()), _ends(average), n, n)
        if n > 1:
            deviation = float(value.round(12).std(ddof=1))
            drawn = np.sqrt(np.maximum(square - average**2, 0) * n / (n - 1))
            ends = _ends(np.maximum(drawn - drawn.mean() + deviation, 0.0))
            yield _line(metrics[1].id, "", deviation, ends, n, n)
        for metric, at in zip(metrics[2:], (value.argmin(), value.argmax()), strict=True):
            line = table.row(int(at), named=True)
            numbers = (line[name] for name in ("value", "low", "high", "n", "n_clusters"))
            yield metric.id, [], [], *numbers

    return Special(metrics, compute)
