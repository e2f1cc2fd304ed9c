"""Estimate metrics from graded prompts: one clustered bootstrap with common draws, one paired test.

Nearly every number is a sum of numerators over a sum of denominators, taken over the facts of a
relation, or a function of such ratios. A `Metric` states both as polars expressions that aggregate
the rows of one fact. Clusters of facts are resampled within their relation, by a random stream
named after the relation, so metrics, groups and runs share draws and can be subtracted draw by
draw. Relations are strata of one pass over the rows. Knows no probe and no report.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from polars import Expr, LazyFrame, col

from sonde.core.errors import UsageError
from sonde.evaluation import stats
from sonde.evaluation.stats import FLAT, LEVEL, Bools, Floats, Ints
from sonde.evaluation.tables import ESTIMATES, FACT

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

View = Callable[[LazyFrame], LazyFrame]
Over = Literal["relations", "facts"]
Keys = tuple[str, ...]
Line = tuple[Any, ...]  # a row of ESTIMATES

CHUNK = 500_000  # rows aggregated at once
LABELS = 2**20  # a cell is numbered (relation × groups + group) × LABELS + label
FEWEST = 6  # clusters that a paired test needs to reach 5%
FLIPS, FEWER_FLIPS, MANY = 9999, 1999, 1000  # fewer where a relation has many clusters
OF = ("value", "baseline", "difference")


def spread(x: Floats, labels: Sequence[Any] = ()) -> Floats:
    """Standard deviation over the last axis; rounding is no spread."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    deviation = np.std(x, axis=-1, ddof=1)
    return np.where(deviation < FLAT, 0.0, deviation)


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    """A number and how it is computed from the rows of each fact.

    Args:
        num: aggregates the rows of a fact to its numerator; null if the fact does not count.
        den: aggregates them to its denominator. The default, 1, makes the metric a mean over facts.
        where: the rows that count.
        view: a step before aggregation, such as one row per (fact, template). It keeps `fact_no`.
            What it compares within a relation it takes over `relation`.
        pooled: the view compares rows of several relations, over the column `pool`.
        baseline: the numerator of a control on the same facts. It adds an estimate of the control
            and one of the paired difference.
        chance: a constant to compare with, in place of a baseline.
        by: compute the ratio for each value of this column (or "relation"), then `stat`.
        stat: makes one number of several: `stat(values [..., n], labels)` to [...].
        within: apply `stat` within each relation, not to averages over relations.
        parts: other metrics of which `stat` makes one number.
        centered: resampling moves the statistic to one side (maxima, spreads, absolute values), so
            the draws are shifted to have the estimate as their mean.
        counts: what n counts: facts, the denominator (prompts) or values of `by` (groups).

    Example:
        >>> Metric("accuracy", num=col("correct").mean(), baseline=col("baseline").mean()).unit
        'percent'
    """

    id: str = field(kw_only=False)
    num: Expr | None = None
    den: Expr | None = None
    where: Expr | None = None
    view: View | None = None
    pooled: bool = False
    baseline: Expr | None = None
    baseline_label: str = "the majority baseline"
    chance: float | None = None
    by: str = ""
    stat: Callable[[Floats, list[Any]], Floats] | None = None
    within: bool = False
    parts: tuple["Metric", ...] = ()
    centered: bool = False
    counts: Literal["facts", "prompts", "groups"] = "facts"
    label: str = ""
    unit: Literal["percent", "points", "number", "count"] = "percent"
    better: Literal["higher", "lower", "zero", ""] = "higher"
    help: str = ""

    def plain(self) -> Iterator["Metric"]:
        """The metrics that this one is made of, which are summed over rows."""
        yield from (
            (metric for part in self.parts for metric in part.plain()) if self.parts else [self]
        )


class Special(NamedTuple):
    """Several numbers that are no ratios.

    `compute(results, seed)` gives (metric, group_by, group, value, low, high, n, n_clusters).
    """

    metrics: tuple[Metric, ...]
    compute: "Callable[[Results, int], Iterable[Line]]"


class Contrast(NamedTuple):
    """Each value of an axis column (or several) minus its value `reference`.

    The reference may be "first" or "last".
    """

    axis: str | Keys
    reference: Any
    metrics: Keys = ()


class Group(NamedTuple):
    """Columns by whose values facts or prompts are grouped.

    `fine`: for thousands of groups. The interval is Student's over clusters, not a bootstrap.
    """

    by: str | Keys
    metrics: Keys = ()
    fine: bool = False


class Clusters:
    """The clusters of each relation: those of all facts that are prompted, in order.

    So a subset of the rows, or a metric of few facts, shares the draws of its relation.
    """

    def __init__(self, facts: pl.DataFrame, rows: pl.DataFrame) -> None:
        self.names = pl.Series(facts.schema["relation"].categories).to_list()
        self.relation = facts["relation"].to_physical().to_numpy().astype(np.int64)
        used = facts["excluded"].is_null().to_numpy().copy()
        used[rows["fact_no"].to_numpy()] = True
        key = self.relation << 32 | facts["cluster"].to_numpy()
        numbers, index = np.unique(key[used], return_inverse=True)
        self.sizes = np.bincount(numbers >> 32, minlength=len(self.names))
        self.place = np.zeros(len(key), dtype=np.int64)
        self.place[used] = index - (np.cumsum(self.sizes) - self.sizes)[self.relation[used]]


class Cells(NamedTuple):
    """A metric by relation, group and label (the value of `by`), sorted by these.

    Of two numerators the second is what the metric is compared with.
    """

    owner: Ints  # relation × groups + group
    label: Ints
    total: Floats  # sum of denominators
    facts: Ints  # of the owner, under any label
    clusters: Ints
    binary: Bools  # [cells, numerators]: facts are independent, and 0 or 1
    share: Bools  # facts are shares
    ratios: Floats  # [cells, numerators, 1 + draws]: the estimate, then resampled


class Sample:
    """A metric in the groups of a pass."""

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}
        self.parts: list[Cells] = []  # some relations each
        self.sums: dict[int, Floats] = {}  # by relation: [num and den, numerators, clusters, cells]

    @cached_property
    def cells(self) -> Cells:
        return Cells(*map(np.concatenate, zip(*self.parts, strict=True)))

    def add(
        self, metric: Metric, units: pl.DataFrame, clusters: Clusters, size: int, fine: bool = False
    ) -> None:
        """Sum facts in `size` groups. The second numerator may have a denominator of its own."""
        names = (f"{metric.id}/{part}" for part in ("num", "baseline", "den", "reference"))
        num, baseline, den, reference = (
            units[name].to_numpy() if name in units.columns else None for name in names
        )
        values = np.stack([num] if baseline is None else [num, baseline])
        weights = np.stack([den, den if reference is None else reference])[: len(values)]
        valid = ~np.isnan(values).any(axis=0) & (weights > 0).all(axis=0)
        if not valid.any():
            return
        values, weights = values[:, valid], weights[:, valid]
        fact, group = np.divmod(units["fact_no"].to_numpy()[valid].astype(np.int64), size)
        relation, place = clusters.relation[fact], clusters.place[fact]
        owner, label = relation * size + group, np.zeros_like(fact)
        if metric.by == "relation":
            self.labels |= {name: number for number, name in enumerate(clusters.names)}
            label = relation
        elif metric.by:
            known = units[metric.by].filter(pl.Series(valid)).to_list()
            label = np.array([self.labels.setdefault(k, len(self.labels)) for k in known], np.int64)
        for number in np.unique(relation).tolist():
            rows = slice(*np.searchsorted(relation, (number, number + 1)))
            v, w, key = values[:, rows], weights[:, rows], (owner * LABELS + label)[rows]
            cell, index, count = np.unique(key, return_inverse=True, return_counts=True)
            shape = 2, len(v), int(clusters.sizes[number]), len(cell)
            flat = place[rows] * len(cell) + index
            sums = np.stack([np.bincount(flat, x, shape[2] * shape[3]) for x in (*v, *w)])
            sums = sums.reshape(shape)
            _, first, column = np.unique(cell // LABELS, return_index=True, return_inverse=True)
            facts = np.bincount(np.unique(column[index] << 32 | fact[rows]) >> 32)[column]
            sizes = (np.add.reduceat(sums[1, 0], first, axis=1) > 0).sum(axis=0)[column]
            total, squares = np.bincount(index, w[0]), np.bincount(index, w[0] ** 2)
            # equal weights, and a cluster for each fact
            alone = (squares * count - total**2 <= FLAT * total**2) & (count == sizes)
            odd, beyond = ~np.isin((v / w).round(12), (0, 1)), (v < 0) | (v > w + FLAT)
            binary, share = (
                np.stack([np.bincount(index, x, len(cell)) == 0 for x in flags], axis=-1)
                for flags in (odd, beyond)
            )
            if fine:
                ratios = _closed_form(sums)
            else:
                ratios, self.sums[number] = np.empty((len(cell), len(v), 0)), sums
            flags = binary & alone[:, None], share
            part = Cells(cell // LABELS, cell % LABELS, total, facts, sizes, *flags, ratios)
            self.parts.append(part)


def _closed_form(sums: Floats) -> Floats:
    """Ratios of a relation with their variance between clusters, of their difference too."""
    num, den = sums
    total = den.sum(axis=1)
    value, n = num.sum(axis=1) / total, (den[0] > 0).sum(axis=0)
    errors = (num - value[:, None] * den) / total[:, None]
    if len(num) > 1:
        value = np.vstack([value, value[:1] - value[1:]])
        errors = np.concatenate([errors, errors[:1] - errors[1:]])
    variance = (errors**2).sum(axis=1) * n / np.maximum(n - 1, 1)
    return np.stack([value, variance], axis=-1).swapaxes(0, 1)


def _linear(sums: Floats) -> tuple[Floats, Floats]:
    """What each cluster adds to the difference of two ratios, and its weight.

    Exact if the denominators agree; other ratios are linearized.
    """
    num, den = sums
    total = den.sum(axis=1, keepdims=True)
    share, ratio = den / total, num.sum(axis=1, keepdims=True) / total
    residual, weight = num / total - ratio * share, share.mean(axis=0)
    return residual[0] - residual[1] + (ratio[0] - ratio[1]) * weight, weight


def _resample(samples: Sequence[Sample], names: Sequence[str], seed: int) -> None:
    """Ratios under resampling of the clusters; all metrics of a relation share its draws."""
    ratios: list[list[Floats]] = [[] for _ in samples]
    for relation, name in enumerate(names):
        members = [
            (s.sums[relation], r)
            for s, r in zip(samples, ratios, strict=True)
            if relation in s.sums
        ]
        if not members:
            continue
        blocks = [np.moveaxis(sums, 2, 0).reshape(sums.shape[2], -1) for sums, _ in members]
        columns = np.hstack(blocks)
        drawn = stats.resampled_sums(columns, stats.generator(seed, name))
        rows = np.vstack([columns.sum(axis=0), drawn]).T
        stops = np.cumsum([block.shape[1] for block in blocks])
        for (sums, found), part in zip(members, np.split(rows, stops[:-1]), strict=True):
            num, den = part.reshape(2, sums.shape[1], sums.shape[3], -1)
            # a draw without any denominator tells nothing
            whole = np.broadcast_to(num[..., :1] / den[..., :1], num.shape).copy()
            found.append(np.divide(num, den, out=whole, where=den > 0).swapaxes(0, 1))
    for sample, found in zip(samples, ratios, strict=True):
        if found:
            sample.cells = sample.cells._replace(ratios=np.concatenate(found))


def _average(values: Floats, weights: Floats, at: Ints, size: int) -> Floats:
    """Weighted means of the rows at each place; nan where there is none."""
    sums = np.zeros((size, values.shape[1]))
    for place, value, weight in zip(at.tolist(), values, weights, strict=True):
        sums[place] += value * weight
    total = np.bincount(at, weights, size)
    return sums / np.where(total > 0, total, np.nan)[:, None]


def _explode(table: LazyFrame, keys: Keys) -> LazyFrame:
    schema = table.collect_schema()
    for name in keys:
        if name not in schema:
            raise UsageError(f"no column {name!r} to group by; there are {', '.join(schema)}")
        table = table.explode(name) if schema[name] == pl.List else table
    return table


class Pass:
    """Metrics in the groups of some columns."""

    def __init__(self, results: "Results", seed: int, keys: Keys = (), fine: bool = False) -> None:
        self.names: list[str] = pl.Series(results.facts.schema["relation"].categories).to_list()
        self.seed, self.keys, self.fine = seed, keys, fine
        self.groups = pl.DataFrame({"pool": [0]})
        if keys:
            values = _explode(results.table(), keys).select(keys).drop_nulls().unique()
            self.groups = values.sort(keys).with_row_index("pool").collect()
        self.size = self.groups.height
        self.samples: dict[str, Sample] = {}
        self.queries: list[list[Metric]] = []  # each of metrics that look at the same rows

    def add(self, metric: Metric) -> None:
        for part in metric.plain():
            if part.id in self.samples:
                continue
            self.samples[part.id] = Sample()
            alike = (query for query in self.queries if _same_rows(query[0], part))
            if (query := next(alike, None)) is None:
                self.queries.append(query := [])
            query.append(part)

    def units(self, table: LazyFrame, metrics: Sequence[Metric]) -> LazyFrame:
        """Numerators and denominators of each fact in each group."""
        first = metrics[0]
        if self.keys:
            table = _explode(table, self.keys).join(self.groups.lazy(), on=self.keys)
        else:
            table = table.with_columns(pool=pl.lit(0))
        if first.where is not None:
            table = table.filter(first.where)
        if self.keys:
            # each group has facts and relations of its own, so that views need not know of groups
            numbers = (col(n).to_physical().cast(pl.Int64) for n in ("fact_no", "relation"))
            table = table.with_columns(number * self.size + col("pool") for number in numbers)
        table = first.view(table) if first.view else table
        columns = {}
        for metric in metrics:
            assert metric.num is not None
            den = pl.lit(1.0) if metric.den is None else metric.den
            baseline = metric.baseline if metric.chance is None else den * metric.chance
            for name, part in (("num", metric.num), ("baseline", baseline), ("den", den)):
                if part is not None:
                    columns[f"{metric.id}/{name}"] = part.cast(pl.Float64)
        by = [first.by] if first.by not in ("", "relation") else []
        units = table.group_by("fact_no", *by).agg(**columns)
        return (units.drop_nulls(by) if by else units).sort("fact_no")

    def draws(self, metric: Metric, codes: Ints, split: bool, over: Over, role: int = 0) -> Floats:
        """The estimate of each output and its draws; nan where it is not measured."""
        stat = metric.stat
        if metric.parts:
            assert stat is not None
            each = (self.draws(part, codes, split, over, role) for part in metric.parts)
            parts = np.stack(np.broadcast_arrays(*each), axis=-1)
            draws = stat(parts, [part.id for part in metric.parts])
            return np.where(np.isnan(parts).any(axis=-1), np.nan, draws)
        sample = self.samples[metric.id]
        if not sample.parts:
            return np.full((len(codes), 1), np.nan)
        cells, labels = sample.cells, sorted(sample.labels)
        output = cells.owner if split else cells.owner % self.size
        at, ratios = np.searchsorted(codes, output), cells.ratios[:, role]
        weight = cells.total if over == "facts" else np.ones(len(at))
        if stat is None:
            return _average(ratios, weight, at, len(codes))
        rank = np.argsort([sample.labels[label] for label in labels])
        owners, first, inner = np.unique(cells.owner, return_index=True, return_inverse=True)
        rows, size = (inner, len(owners)) if metric.within else (at, len(codes))
        cell = rows * len(labels) + rank[cells.label]
        means = _average(ratios, weight, cell, size * len(labels))
        draws = np.full((size, ratios.shape[1]), np.nan)
        for row, values in enumerate(means.reshape(size, len(labels), -1)):
            known = ~np.isnan(values[:, 0])
            if known.any():
                draws[row] = stat(values[known].T, [labels[i] for i in np.flatnonzero(known)])
        if not metric.within:
            return draws
        known = ~np.isnan(draws[:, 0])
        weight = (cells.facts if over == "facts" else np.ones(len(at)))[first][known]
        return _average(draws[known], weight, at[first][known], len(codes))

    def lines(
        self, metric: Metric, split: bool, ways: Sequence[Over], paired: bool
    ) -> Iterator[tuple[Over, str, Ints, Floats]]:
        """Of value, baseline and difference: the outputs, and [outputs, 6] of their value, low,
        high, p, n and number of clusters. An output is a group, in each relation if `split`."""
        sample, stat = self.samples[next(metric.plain()).id], metric.stat
        if not sample.parts:
            return
        cells = sample.cells
        output = cells.owner if split else cells.owner % self.size
        codes, at = np.unique(output, return_inverse=True)
        first = np.unique(cells.owner, return_index=True)[1]

        def add(values: Floats) -> Floats:
            """Sums over the relations of each output."""
            return np.bincount(at[first], values, len(codes))

        def every(flags: Bools) -> Bools:
            return np.bincount(at, ~flags, len(codes)) == 0

        sizes = cells.clusters[first]
        relations, n, clusters = add(np.ones(len(first))), add(cells.facts[first]), add(sizes)
        facts, nothing = n, np.full(len(codes), np.nan)
        if metric.counts == "prompts":
            n = add(np.maximum.reduceat(cells.total, first)).round()
        elif metric.counts == "groups":
            n = np.bincount(np.unique(at * LABELS + cells.label) // LABELS)
        # best and worst of shares are shares, other statistics are not
        share = not stat or (metric.unit == "percent" and not metric.pooled and stat != spread)
        compared = paired or metric.baseline is not None or metric.chance is not None
        weights = {way: cells.total if way == "facts" else np.ones(len(at)) for way in ways}
        trials, gaps = {}, {}
        for way in ways:
            weight, draws = weights[way][first], []
            trials[way] = add(weight) ** 2 / add(weight**2 / sizes)
            for role in range(3 if self.fine and compared else 1 + compared):
                draws.append(self.draws(metric, codes, split, way, role))
                value, moved = draws[-1][:, 0], draws[-1][:, 1:]
                if self.fine:
                    variance = add(weight**2 * cells.ratios[first, role, 1]) / add(weight) ** 2
                    reach = stats.student_reach(clusters - relations)
                    reach = np.where(np.isfinite(reach), reach, np.nan) * np.sqrt(variance)
                    low, high = value - reach, value + reach
                else:
                    if metric.centered:
                        moved = moved - moved.mean(axis=1, keepdims=True) + value[:, None]
                    low, high = np.quantile(moved, (LEVEL / 2, 1 - LEVEL / 2), axis=1)
                flat = ~(high - low > FLAT)
                low[flat] = high[flat] = np.nan
                if role < 2:
                    # where nothing varies, other facts still may differ
                    alone = every(cells.binary[:, role]) & (relations == 1) & (not stat)
                    some = alone | (flat & every(cells.share[:, role]) & share)
                    size = np.where(alone, facts, trials[way])[some]
                    low[some], high[some] = stats.wilson(value[some] * size, size)
                if role == 1 and metric.chance is not None:
                    low, high = nothing, nothing
                ends = _limit(metric, value, low, high, signed=role == 2)
                yield way, OF[role], codes, np.stack([value, *ends, nothing, n, clusters], axis=-1)
            if compared and not self.fine:
                gaps[way] = draws[0] - draws[1]
        tests = {way: np.full((len(codes), 3), np.nan) for way in gaps}
        if stat:
            for way, place in product(gaps, range(len(codes))):
                gap = gaps[way][place]
                reach, p = stats.max_t(gap[:, None])
                tests[way][place] = gap[0] - reach[0], gap[0] + reach[0], p[0]
        elif gaps:
            exact = every(cells.binary.all(axis=1) if metric.chance is None else cells.binary[:, 0])
            shares = [weights[way] / np.bincount(at, weights[way])[at] for way in ways]
            for place, halves, sums in self.flips(sample, at, np.stack(shares), split):
                for way, half, (value, weight, squares, won) in zip(
                    ways, halves, sums, strict=True
                ):
                    if clusters[place] >= FEWEST:
                        totals, size = np.array([value, weight]), int(clusters[place])
                        test = stats.invert(half, totals, squares, size)
                        ends = (won, won - value, trials[way][place])
                        tests[way][place] = _widen(metric, test, *ends, bool(exact[place]))
        for way, gap in gaps.items():
            low, high, p = tests[way].T
            ends = _limit(metric, gap[:, 0], low, high, signed=True)
            yield way, OF[2], codes, np.stack([gap[:, 0], *ends, p, n, clusters], axis=-1)

    def flips(
        self, sample: Sample, at: Ints, weights: Floats, split: bool
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """Of each output the sums over random halves of the clusters, [ways, 2, flips], and
        [ways, 4]: differences, weights, squares and positive differences of all clusters."""
        relations = sample.cells.owner // self.size
        halves: dict[int, Floats] = {}
        sums = np.zeros((int(at.max()) + 1, len(weights), 4))
        for number, table in sample.sums.items():
            here = np.flatnonzero(relations == number)
            d, m = _linear(table)
            count = FLIPS if len(d) <= MANY else FEWER_FLIPS
            rng = stats.generator(self.seed, f"p:{self.names[number]}")
            # facts of equal weight have one weight in all groups
            same = m[:, :1] if (m == m[:, :1]).all() else m
            flipped = stats.flipped_sums(np.hstack([d, same]), rng, count).T
            once = np.stack([d, m, d**2, np.maximum(d, 0)]).sum(axis=1).T
            for k, (cell, place) in enumerate(zip(here, at[here].tolist(), strict=True)):
                weight = weights[:, cell, None]
                half = weight[..., None] * flipped[[k, len(here) + k % same.shape[1]]]
                known = halves.get(place, np.zeros_like(half))
                halves[place] = known[..., :count] + half[..., : known.shape[-1]]
                sums[place] += once[k] * weight ** np.array([1, 1, 2, 1])
            if split or number == max(sample.sums):
                yield from ((place, half, sums[place]) for place, half in halves.items())
                halves = {}


def _widen(
    metric: Metric,
    test: tuple[float, float, float],
    won: float,
    lost: float,
    trials: float,
    exact: bool,
) -> tuple[float, float, float]:
    """The interval of a test, which never contradicts its p.

    If few 0/1 outcomes differ, the inverted test is too narrow: with 20 facts of which about one
    differs its interval covers 57 times in 100. So the interval also spans Newcombe's, cut at 0
    where the test says so: p alone decides.
    """
    low, high, p = test
    if metric.unit == "percent" and (exact or high - low <= FLAT):
        ends = stats.newcombe(won, lost, trials)
        if metric.chance is not None:
            share = won - lost + metric.chance
            ends = np.subtract(stats.wilson(share * trials, trials), metric.chance)
        low, high = min(low, ends[0]), max(high, ends[1])
    if p >= LEVEL:
        return min(low, 0.0), max(high, 0.0), p
    return (max(low, 0.0), high, p) if won > lost else (low, min(high, 0.0), p)


def _limit(
    metric: Metric, value: Floats, low: Floats, high: Floats, signed: bool
) -> tuple[Floats, Floats]:
    """Ends that hold the value and are possible; nan where there is none."""
    if metric.unit in ("percent", "points"):
        least = -1.0 if signed or metric.unit == "points" else 0.0
        low, high = np.clip(low, least, 1.0), np.clip(high, least, 1.0)
    low, high = np.minimum(low, value), np.maximum(high, value)
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)


def _same_rows(a: Metric, b: Metric) -> bool:
    if (a.view, a.by, a.where is None) != (b.view, b.by, b.where is None):
        return False
    return a.where is None or b.where is None or a.where.meta.eq(b.where)


def _units(
    results: "Results", passes: Iterable[Pass]
) -> Iterator[tuple[Pass, list[Metric], pl.DataFrame]]:
    """Units of every pass, some relations at a time; those of pooled metrics at once."""
    rows = results.rows
    if not rows["relation"].to_physical().is_sorted():
        rows = rows.sort("relation")
    ends = np.flatnonzero(np.diff(rows["relation"].to_physical().to_numpy())) + 1
    cuts = [0]
    for end in [*ends.tolist(), rows.height]:
        if end - cuts[-1] >= CHUNK or end == rows.height:
            cuts.append(end)
    queries = [(one, metrics) for one in passes for metrics in one.queries]
    for pooled, a, b in ((True, 0, rows.height), *((False, *pair) for pair in pairwise(cuts))):
        some = [query for query in queries if query[1][0].pooled == pooled]
        table = replace(results, rows=rows[a:b]).table()
        try:
            frames = pl.collect_all([one.units(table, metrics) for one, metrics in some])
        except pl.exceptions.ColumnNotFoundError as error:
            missing, ids = str(error).splitlines()[0], [m.id for _, query in some for m in query]
            raise UsageError(f"a metric names a missing column: {missing} (of {ids})") from None
        for (one, metrics), frame in zip(some, frames, strict=True):
            yield one, metrics, frame


def _collect(results: "Results", passes: Sequence[Pass]) -> None:
    clusters = Clusters(results.facts, results.rows)
    for one, metrics, frame in _units(results, passes):
        for metric in metrics:
            one.samples[metric.id].add(metric, frame, clusters, one.size, one.fine)
    samples = [sample for one in passes if not one.fine for sample in one.samples.values()]
    _resample(samples, clusters.names, passes[0].seed)


def _lines(
    one: Pass, metric: Metric, by: Keys, over: Sequence[Over], paired: bool = False
) -> Iterator[Line]:
    """Rows of ESTIMATES. Within a relation one number has both names of `over`."""
    apart, measured = "relation" in by, False
    split, groups = apart and "relation" not in one.keys, one.groups.drop("pool").rows()
    for way, of, codes, numbers in one.lines(metric, split, over[:1] if apart else over, paired):
        for code, (value, low, high, p, n, size) in zip(
            codes.tolist(), numbers.tolist(), strict=True
        ):
            if np.isnan(value):
                continue
            named = dict(zip(one.keys, groups[code % one.size], strict=True))
            named |= {"relation": one.names[code // one.size]} if split else {}
            group, measured = [str(named[name]) for name in by], True
            for name in over if apart else [way]:
                key = metric.id, of, name, None, None, list(by), group
                yield *key, value, low, high, p, np.nan, n, size
    if not (measured or by):
        for way in over:
            yield metric.id, "value", way, None, None, [], [], *[np.nan] * 5, 0, 0


def _frame(lines: Sequence[Line]) -> pl.DataFrame:
    """Estimates with p values corrected within their family: the groups of the same columns."""
    families: dict[Line, list[int]] = {}
    for place, (id, of, over, _, reference, by, _, _, _, _, p, *_) in enumerate(lines):
        if not np.isnan(p):
            families.setdefault((id, of, over, reference, *by), []).append(place)
    adjusted = np.full(len(lines), np.nan)
    for places in families.values():
        adjusted[places] = stats.holm([lines[place][10] for place in places])
    frame = pl.DataFrame(lines, schema=ESTIMATES, orient="row")
    return frame.with_columns(p_adjusted=adjusted).with_columns(col(pl.Float64).fill_nan(None))


def _keys(by: str | Keys) -> Keys:
    return (by,) if isinstance(by, str) else tuple(by)


def estimate(
    results: "Results",
    metrics: Iterable[Metric | Special],
    *,
    groups: Iterable[str | Keys | Group] = (),
    contrasts: Iterable[Contrast] = (),
    over: Sequence[Over] = ("relations", "facts"),
    seed: int = 0,
) -> pl.DataFrame:
    """Every metric over all rows, in each group, and its contrasts.

    A group is a filter: its numbers are those of its rows alone. Within one relation `over` makes
    no difference, so both have the same numbers.
    """
    metrics = list(metrics)
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    passes = {((), False): Pass(results, seed)}
    requests = [((), passes[(), False], metric) for metric in plain]
    for group in groups:
        names, ids, fine = group if isinstance(group, Group) else Group(group)
        by = _keys(names)
        for metric in plain:
            parts = list(metric.plain())
            if (
                (ids and metric.id not in ids)
                or {p.by for p in parts} & {*by}
                or (fine and metric.stat)
            ):
                continue
            # a relation is a stratum, unless rows of several are compared
            pooled = any(part.pooled for part in parts)
            keys = tuple(name for name in by if pooled or name != "relation")
            if (keys, fine) not in passes:
                passes[keys, fine] = Pass(results, seed, keys, fine)
            requests.append((by, passes[keys, fine], metric))
    for _, one, metric in requests:
        one.add(metric)
    _collect(results, list(passes.values()))
    lines: list[Line] = []
    for by, one, metric in requests:
        lines += _lines(one, metric, by, over)
    for special in metrics:
        if isinstance(special, Special):
            found = list(special.compute(results, seed))
            overall = {line[0] for line in found if not line[1]}
            missing = [metric.id for metric in special.metrics if metric.id not in overall]
            found += [(id, [], [], np.nan, np.nan, np.nan, 0, 0) for id in missing]
            for id, columns, place, value, low, high, *sizes in found:
                numbers = (value, low, high, np.nan, np.nan, *sizes)
                lines += [(id, "value", way, None, None, columns, place, *numbers) for way in over]
    split = any("relation" in by for by, _, _ in requests)
    for axis, reference, ids in contrasts:
        axis, reference = _keys(axis), reference if isinstance(reference, tuple) else (reference,)
        chosen = [
            metric
            for metric in plain
            if (not ids or metric.id in ids) and not {part.by for part in metric.plain()} & {*axis}
        ]
        cells = results.table().select(axis).collect()
        known = cells.drop_nulls().unique().sort(axis).rows()
        if reference[0] in ("first", "last") and reference not in known:
            reference = known[0 if reference[0] == "first" else -1][:1]

        def part(values: tuple[Any, ...], cells: pl.DataFrame = cells) -> "Results":
            pairs = zip(cells.columns, values, strict=False)
            mask = cells.select(pl.all_horizontal(col(name) == value for name, value in pairs))
            return replace(results, rows=results.rows.filter(mask.to_series()))

        base, label = part(reference), ", ".join(map(str, reference))
        for value in known:
            if value[: len(reference)] != reference:
                texts = list(map(str, value))
                for line in _differences(part(value), base, chosen, over, seed, split):
                    by, group = [*axis, *line[5]], [*texts, *line[6]]
                    lines.append((*line[:4], label, by, group, *line[7:]))
    return _frame(lines)


def _differences(
    first: "Results",
    reference: "Results",
    metrics: Iterable[Metric],
    over: Sequence[Over],
    seed: int,
    split: bool,
) -> Iterator[Line]:
    """Paired differences between two sets of rows, on the facts that both measure."""
    clusters, one, units = Clusters(first.facts, first.rows), Pass(first, seed), []
    metrics = [replace(metric, baseline=None, chance=None) for metric in metrics]
    for metric in metrics:
        one.add(metric)
    texts = col("relation").cast(pl.String)
    for results in (first, reference):
        facts = results.facts.select(texts, "fact", col("fact_no").cast(pl.Int64))
        tables: dict[str, list[pl.DataFrame]] = {}
        for _, query, frame in _units(results, [one]):
            frame = frame.with_columns(col("fact_no").cast(pl.Int64), col(pl.Enum).cast(pl.String))
            for metric in query:
                tables.setdefault(metric.id, []).append(frame.join(facts, on="fact_no"))
        units.append({id: pl.concat(parts) for id, parts in tables.items()})
    for metric in (part for query in one.queries for part in query):
        on = [*FACT, *([metric.by] if metric.by not in ("", "relation") else [])]
        names = {
            f"{metric.id}/num": f"{metric.id}/baseline",
            f"{metric.id}/den": f"{metric.id}/reference",
        }
        right = units[1][metric.id].select(*on, *names).rename(names)
        both = units[0][metric.id].join(right, on=on).sort("fact_no")
        one.samples[metric.id].add(metric, both, clusters, 1)
    _resample(list(one.samples.values()), clusters.names, seed)
    for metric in metrics:
        for by in [(), ("relation",)] if split else [()]:
            lines = _lines(one, metric, by, over, paired=True)
            yield from (line for line in lines if line[1] == "difference")


def contrast(
    first: "Results",
    reference: "Results",
    metrics: Iterable[Metric | Special],
    *,
    over: Sequence[Over] = ("relations", "facts"),
    seed: int = 0,
    looks: int = 1,
) -> pl.DataFrame:
    """Paired differences between two results on the facts that both measure, by relation too.

    `looks`: how many such comparisons are made; p_adjusted is corrected for them (Bonferroni).
    """
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    frame = _frame(list(_differences(first, reference, plain, over, seed, split=True)))
    return frame.with_columns((col("p_adjusted") * looks).clip(0.0, 1.0))


def draws(results: "Results", metric: Metric, over: Over = "relations", seed: int = 0) -> Floats:
    """An estimate and its bootstrap draws, [1 + draws]; nan if it is not measured."""
    one = Pass(results, seed)
    one.add(metric)
    _collect(results, [one])
    return one.draws(metric, np.zeros(1, np.int64), False, over)[0]


def estimate_results(results: "Results", seed: int = 0) -> pl.DataFrame:
    """What the probe of some results declares: its metrics, groups and contrasts."""
    probe = results.probe
    settings = {"groups": probe.groups, "contrasts": probe.contrasts, "seed": seed}
    return estimate(results, probe.metrics, **settings)
