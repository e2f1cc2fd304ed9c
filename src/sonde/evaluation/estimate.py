"""Estimate metrics from graded prompts: one clustered bootstrap with common draws, one paired test.

Nearly every number is a sum of numerators over a sum of denominators, taken over the facts of a
relation, or a function of such ratios. A `Metric` states both as polars expressions that aggregate
the rows of one fact. Clusters of facts are resampled within their relation, by a random stream
named after the relation, so metrics, groups and runs share draws and can be subtracted draw by
draw. Relations are strata of one pass over the rows. Knows no probe and no report.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import Expr, LazyFrame, col

from sonde.core.errors import UsageError
from sonde.evaluation import stats
from sonde.evaluation.stats import FLAT, LEVEL, Floats
from sonde.evaluation.tables import ESTIMATES

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

View = Callable[[LazyFrame], LazyFrame]
Over = Literal["relations", "facts"]
Keys = tuple[str, ...]
Line = tuple[Any, ...]  # a row of ESTIMATES
Array = NDArray[Any]

CHUNK = 500_000  # rows aggregated at once
LABELS = 2**20  # a cell is numbered (relation × groups + group) × LABELS + label
FEWEST = 6  # clusters that a paired test needs to reach 5%
FLIPS = 4999  # of a paired test
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
    """Each value of an axis column minus its value `reference`, or its "first" or "last"."""

    axis: str
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
        self.names: list[str] = cast(pl.Enum, facts.schema["relation"]).categories.to_list()
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

    owner: Array  # relation × groups + group
    label: Array
    total: Array  # sum of denominators
    facts: Array  # of the owner, under any label
    clusters: Array
    binary: Array  # [cells, numerators]: facts are independent, and 0 or 1
    ratios: Array  # [cells, numerators, 1 + draws]: the estimate, then resampled (fine: reach)


class Sample:
    """A metric in the groups of a pass."""

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}
        self.parts: list[Cells] = []  # a relation each
        self.sums: dict[int, Array] = {}  # by relation: [num and den, numerators, clusters, cells]

    @cached_property
    def cells(self) -> Cells:
        return Cells(*map(np.concatenate, zip(*self.parts, strict=True)))


def _linear(sums: Array) -> tuple[Array, Array]:
    """What each cluster adds to the difference of two ratios, and its weight.

    Exact if the denominators agree; other ratios are linearized.
    """
    num, den = sums
    total = den.sum(axis=1, keepdims=True)
    share, ratio = den / total, num.sum(axis=1, keepdims=True) / total
    residual, weight = num / total - ratio * share, share.mean(axis=0)
    return residual[0] - residual[1] + (ratio[0] - ratio[1]) * weight, weight


def _resample(passes: Sequence["Pass"]) -> None:
    """Ratios under resampling of the clusters; all metrics of a relation share its draws."""
    samples = [sample for one in passes for sample in one.samples.values() if sample.sums]
    for sample in samples:
        ratios = np.empty((*sample.cells.binary.shape, 1 + stats.DRAWS))
        sample.cells = sample.cells._replace(ratios=ratios)
    filled = dict.fromkeys(samples, 0)
    seed, names = passes[0].seed, passes[0].clusters.names
    for relation, name in enumerate(names):
        members = [sample for sample in samples if relation in sample.sums]
        if not members:
            continue
        tables = [np.moveaxis(sample.sums[relation], 2, 0) for sample in members]
        every = np.hstack([table.reshape(len(table), -1) for table in tables]).T
        # many denominators are the same: one is drawn for all
        places: dict[bytes, int] = {}
        index = np.array([places.setdefault(row.tobytes(), len(places)) for row in every])
        columns = every[np.unique(index, return_index=True)[1]].T
        drawn = stats.resampled_sums(columns, stats.generator(seed, name)).T
        rows, start = np.column_stack([columns.sum(axis=0), drawn]), 0
        for sample, table in zip(members, tables, strict=True):
            stop = start + table[0].size
            num, den = rows[index[start:stop]].reshape(*table.shape[1:], -1)
            start = stop
            # a draw without any denominator tells nothing
            empty, whole = den <= 0, np.broadcast_to(num[..., :1] / den[..., :1], num.shape)
            num[empty], den[empty] = whole[empty], 1.0
            first, filled[sample] = filled[sample], filled[sample] + num.shape[1]
            ratios = sample.cells.ratios[first : filled[sample]].swapaxes(0, 1)
            np.divide(num, den, out=ratios)


def _average(values: Array, weights: Array, at: Array, size: int) -> Array:
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

    def __init__(
        self, results: "Results", seed: int = 0, keys: Keys = (), fine: bool = False
    ) -> None:
        self.seed, self.keys, self.fine = seed, keys, fine
        self.clusters = Clusters(results.facts, results.rows)
        self.groups = pl.DataFrame({"pool": [0]})
        if keys:
            values = _explode(results.table(), keys).select(keys).drop_nulls().unique()
            self.groups = values.sort(keys).with_row_index("pool").collect()
        self.size = self.groups.height
        self.samples: dict[str, Sample] = {}
        self.queries: dict[Any, list[Metric]] = {}  # metrics that look at the same rows

    def add(self, metric: Metric) -> None:
        for part in metric.plain():
            if part.id not in self.samples:
                self.samples[part.id] = Sample()
                where = None if part.where is None else part.where.meta.serialize()
                self.queries.setdefault((part.view, part.by, where), []).append(part)

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

    def sum(self, metric: Metric, units: pl.DataFrame) -> None:
        """Add units of some relations. The second numerator may have a denominator of its own."""
        sample, clusters = self.samples[metric.id], self.clusters
        names = (f"{metric.id}/{part}" for part in ("num", "baseline", "den", "reference"))
        num, baseline, den, reference = (
            [units[name].to_numpy()] if name in units.columns else [] for name in names
        )
        values = np.stack(num + baseline)
        weights = np.stack(den + (reference or den))[: len(values)]
        valid = ~np.isnan(values).any(axis=0) & (weights > 0).all(axis=0)
        values, weights = values[:, valid], weights[:, valid]
        fact, group = np.divmod(units["fact_no"].to_numpy()[valid].astype(np.int64), self.size)
        relation, label = clusters.relation[fact], np.zeros_like(fact)
        if metric.by == "relation":
            sample.labels |= {name: number for number, name in enumerate(clusters.names)}
            label = relation
        elif metric.by:
            known, codes = units[metric.by].filter(pl.Series(valid)).to_list(), sample.labels
            label = np.array([codes.setdefault(value, len(codes)) for value in known], np.int64)
        keys = (relation * self.size + group) * LABELS + label
        for number in np.unique(relation).tolist():
            rows = slice(*np.searchsorted(relation, (number, number + 1)))
            v, w = values[:, rows], weights[:, rows]
            cell, index, count = np.unique(keys[rows], return_inverse=True, return_counts=True)
            shape = 2, len(v), int(clusters.sizes[number]), len(cell)
            flat = clusters.place[fact[rows]] * len(cell) + index
            sums = np.stack([np.bincount(flat, x, shape[2] * shape[3]) for x in (*v, *w)])
            num, den = sums = sums.reshape(shape)
            owner, label = np.divmod(cell, LABELS)
            _, first, column = np.unique(owner, return_index=True, return_inverse=True)
            facts = count
            if metric.by:
                facts = np.bincount(np.unique(column[index] << 32 | fact[rows]) >> 32)[column]
            sizes = (np.add.reduceat(den[0], first, axis=1) > 0).sum(axis=0)[column]
            odd = ~np.isin((v / w).round(12), (0, 1))
            binary = np.stack([np.bincount(index, x, len(cell)) == 0 for x in odd], axis=-1)
            binary &= bool((w == w[0, 0]).all()) & (count == sizes)[:, None]
            ratios = np.empty((len(cell), len(v), 0))
            if self.fine:
                ends = [stats.cluster_t(*role) for role in zip(num, den, strict=True)]
                ratios = np.array(ends).transpose(2, 0, 1)
            else:
                sample.sums[number] = sums
            total = np.bincount(index, w[0])
            sample.parts.append(Cells(owner, label, total, facts, sizes, binary, ratios))

    def draws(self, metric: Metric, codes: Array, split: bool, over: Over, role: int = 0) -> Array:
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
        at = np.searchsorted(codes, cells.owner if split else cells.owner % self.size)
        weights = cells.total if over == "facts" else np.ones(len(at))
        ratios = cells.ratios[:, role]
        if stat is None:
            return _average(ratios, weights, at, len(codes))
        if metric.within and not split:
            owners, first = np.unique(cells.owner, return_index=True)
            draws = self.draws(metric, owners, True, over, role)
            known = ~np.isnan(draws[:, 0])
            weights = (cells.facts if over == "facts" else np.ones(len(at)))[first][known]
            return _average(draws[known], weights, at[first][known], len(codes))
        rank = np.argsort([sample.labels[label] for label in labels])
        place = at * len(labels) + rank[cells.label]
        means = _average(ratios, weights, place, len(codes) * len(labels))
        draws = np.full((len(codes), ratios.shape[1]), np.nan)
        for row, values in zip(draws, means.reshape(len(codes), len(labels), -1), strict=True):
            known = np.flatnonzero(~np.isnan(values[:, 0]))
            if len(known):
                row[:] = stat(values[known].T, [labels[i] for i in known])
        return draws

    def lines(
        self, metric: Metric, split: bool, ways: Sequence[Over], paired: bool
    ) -> Iterator[tuple[Over, str, Array, Array]]:
        """Of value, baseline and difference: the outputs, and [outputs, 6] of their value, low,
        high, p, n and number of clusters. An output is a group, in each relation if `split`."""
        sample, stat = self.samples[next(metric.plain()).id], metric.stat
        if not sample.parts:
            return
        cells = sample.cells
        output = cells.owner if split else cells.owner % self.size
        codes, at = np.unique(output, return_inverse=True)
        first = np.unique(cells.owner, return_index=True)[1]

        def add(values: Array) -> Array:
            """Sums over the relations of each output."""
            return np.bincount(at[first], values, len(codes))

        sizes, nothing = cells.clusters[first], np.full(len(codes), np.nan)
        counted = cells.facts[first]
        if metric.within:  # a relation in which it is not measured does not count
            inner = self.draws(metric, cells.owner[first], True, ways[0])
            counted = np.where(np.isnan(inner[:, 0]), 0, counted)
        relations, facts, clusters = add(np.ones(len(first))), add(counted), add(sizes)
        n = facts
        if metric.counts == "prompts":
            n = add(np.maximum.reduceat(cells.total, first)).round()
        elif metric.counts == "groups":
            n = np.bincount(np.unique(at * LABELS + cells.label) // LABELS)
        binary = np.stack([np.bincount(at, ~x, len(codes)) == 0 for x in cells.binary.T])
        # other shares than means and extremes of shares have no interval if nothing varies
        share = metric.unit == "percent" and not metric.pooled and stat != spread
        share = metric.unit in ("percent", "number") if stat is None else share
        compared = paired or metric.baseline is not None or metric.chance is not None
        weights = [cells.total if way == "facts" else np.ones(len(at)) for way in ways]
        trials = [add(w[first]) ** 2 / add(w[first] ** 2 / sizes) for w in weights]
        gaps = []
        for way, w, independent in zip(ways, weights, trials, strict=True):
            gap = cast(Any, 0.0)
            for role in range(1 + compared):
                draws = self.draws(metric, codes, split, way, role)
                value, moved = draws[:, 0], draws[:, 1:]
                if self.fine:
                    reach = np.sqrt(add((w[first] * cells.ratios[first, role, 1]) ** 2))
                    low, high = value - reach / add(w[first]), value + reach / add(w[first])
                else:
                    gap = draws - gap
                    if metric.centered:
                        moved = moved - moved.mean(axis=1, keepdims=True) + value[:, None]
                    low, high = np.quantile(moved, (LEVEL / 2, 1 - LEVEL / 2), axis=1)
                flat = ~(high - low > FLAT)
                low[flat] = high[flat] = np.nan
                # where nothing varies, other facts still may differ
                alone = binary[role] & (relations == 1) & (stat is None)
                some = alone | (flat & share & (value >= 0) & (value <= 1))
                size = np.where(alone, facts, independent)[some]
                low[some], high[some] = stats.wilson(value[some] * size, size)
                if role == 1 and metric.chance is not None:
                    low, high = nothing, nothing
                numbers = value, low, high, nothing, n, clusters
                yield way, OF[role], codes, np.stack(numbers, axis=-1)
            gaps.append(-gap)
        if self.fine or not compared:
            return
        tests = np.full((len(ways), len(codes), 3), np.nan)
        if stat:
            for k, output in np.ndindex(*tests.shape[:2]):
                gap = gaps[k][output]
                reach, p = stats.max_t(gap[:, None])
                tests[k, output] = gap[0] - reach[0], gap[0] + reach[0], p[0]
        else:
            exact = binary[0] & (binary[1] | (metric.chance is not None))
            shares = np.stack([w / np.bincount(at, w)[at] for w in weights])
            known = [np.stack([clusters, independent, exact], axis=-1) for independent in trials]
            self.test(metric, at, shares, np.stack(known), tests, split)
        for way, gap, test in zip(ways, gaps, tests, strict=True):
            yield way, OF[2], codes, np.column_stack([gap[:, 0], test, n, clusters])

    def test(
        self, metric: Metric, at: Array, weights: Array, sizes: Array, tests: Array, split: bool
    ) -> None:
        """Fill in low, high and p of paired differences, by sign flips of the clusters.

        sizes [ways, outputs, 3]: clusters, independent trials, whether these are 0 or 1. If few 0/1
        outcomes differ, the inverted test is too narrow: with 20 facts of which about one differs
        its interval covers 57 times in 100. So the interval also spans Newcombe's, cut at 0 where
        the test says so: p alone decides.
        """
        sample = self.samples[metric.id]
        relations = sample.cells.owner // self.size
        for batch in [[number] for number in sample.sums] if split else [list(sample.sums)]:
            outputs = np.unique(at[np.isin(relations, batch)])
            flipped = np.zeros((len(weights), 2, len(outputs), FLIPS))
            sums = np.zeros((len(weights), 4, len(outputs)))
            for number in batch:
                here = np.flatnonzero(relations == number)
                to, weight = np.searchsorted(outputs, at[here]), weights[:, None, here]
                d, m = _linear(sample.sums[number])
                # facts of equal weight have the same in every group
                m = m[:, :1] if (m == m[:, :1]).all() else m
                rng = stats.generator(self.seed, f"p:{self.clusters.names[number]}")
                halves = stats.flipped_sums(np.hstack([d, m]), rng, FLIPS).T
                flipped[:, 0, to] += halves[: len(to)] * weight[:, 0, :, None]
                flipped[:, 1, to] += halves[len(to) :] * weight[:, 0, :, None]
                parts = np.stack(np.broadcast_arrays(d, m, d**2, np.maximum(d, 0)))
                sums[..., to] += parts.sum(axis=1) * weight ** np.array([[1], [1], [2], [1]])
            for way, k in np.ndindex(len(weights), len(outputs)):
                size, trials, exact = sizes[way, outputs[k]].tolist()
                value, _, squares, won = sums[way, :, k].tolist()
                if size < FEWEST:
                    continue
                half, totals = flipped[way, :, k], sums[way, :2, k]
                low, high, p = stats.invert(half, totals, squares, int(size))
                if metric.unit == "percent" and (exact or high - low <= FLAT):
                    ends: Any = stats.newcombe(won, won - value, trials)
                    if metric.chance is not None:
                        successes = (value + metric.chance) * trials
                        ends = np.subtract(stats.wilson(successes, trials), metric.chance)
                    low, high = min(low, ends[0]), max(high, ends[1])
                if p >= LEVEL:
                    low, high = min(low, 0.0), max(high, 0.0)
                elif value > 0:
                    low = max(low, 0.0)
                else:
                    high = min(high, 0.0)
                tests[way, outputs[k]] = low, high, p


def _units(
    results: "Results", passes: Iterable[Pass]
) -> Iterator[tuple[Pass, list[Metric], pl.DataFrame]]:
    """Units of every pass, some relations at a time; those of a pooled metric at once."""
    rows = results.rows
    if not rows["relation"].to_physical().is_sorted():
        rows = rows.sort("relation")
    ends = np.flatnonzero(np.diff(rows["relation"].to_physical().to_numpy())) + 1
    cuts = [0]
    for end in [*ends.tolist(), rows.height]:
        if end - cuts[-1] >= CHUNK or end == rows.height:
            cuts.append(end)
    together: list[tuple[Pass, list[Metric]]] = []
    blocks = [(rows[a:b], together) for a, b in pairwise(cuts)]
    queries = [(each, query) for each in passes for query in each.queries.values()]
    for each, query in queries:
        if query[0].pooled and "relation" not in each.keys:
            blocks.append((rows, [(each, query)]))
        else:
            together.append((each, query))
    for block, some in blocks:
        table = replace(results, rows=block).table()
        try:
            frames = pl.collect_all([one.units(table, metrics) for one, metrics in some])
        except pl.exceptions.ColumnNotFoundError as error:
            raise UsageError(f"a metric names a missing column: {error}") from None
        for (one, metrics), frame in zip(some, frames, strict=True):
            yield one, metrics, frame


def _collect(results: "Results", passes: Sequence[Pass]) -> None:
    for one, metrics, frame in _units(results, passes):
        for metric in metrics:
            one.sum(metric, frame)
    _resample(passes)


def _lines(
    one: Pass, metric: Metric, by: Keys, over: Sequence[Over], paired: bool = False
) -> Iterator[Line]:
    """Rows of ESTIMATES. Within a relation one number has both names of `over`."""
    apart, measured, names = "relation" in by, False, one.clusters.names
    split, groups = apart and "relation" not in one.keys, one.groups.drop("pool").rows()
    lines = one.lines(metric, split, over[:1] if apart else over, paired)
    for way, of, codes, numbers in lines:
        if metric.unit in ("percent", "points"):
            least = 0.0 if metric.unit == "percent" and of != "difference" else -1.0
            numbers[:, 1:3] = np.clip(numbers[:, 1:3], least, 1.0)
        for code, (value, low, high, *more) in zip(codes.tolist(), numbers.tolist(), strict=True):
            if np.isnan(value):
                continue
            named = dict(zip(one.keys, groups[code % one.size], strict=True))
            named |= {"relation": names[code // one.size]} if split else {}
            group, measured = [str(named[name]) for name in by], True
            ends = min(low, value), max(high, value)  # in this order nan stays nan
            for name in over if apart else [way]:
                yield metric.id, of, name, None, None, list(by), group, value, *ends, *more
    if not (measured or by):
        for way in over:
            yield metric.id, "value", way, None, None, [], [], *[np.nan] * 4, 0, 0


def _frame(lines: Iterable[Line]) -> pl.DataFrame:
    """Estimates with p values corrected within their family: the groups of the same columns."""
    schema = {name: dtype for name, dtype in ESTIMATES.items() if name != "p_adjusted"}
    frame = pl.DataFrame(list(lines), schema, orient="row")
    finite = [pl.when(col(name).is_finite()).then(name) for name in ("low", "high", "p")]
    frame = frame.with_columns(col("value").fill_nan(None), *finite)
    family = "metric", "of", "over", "reference", col("group_by").list.join("/"), col("p").is_null()
    known = col("p").fill_null(1.0)
    adjusted = known.map_batches(lambda p: pl.Series(stats.holm(p.to_list())), pl.Float64)
    adjusted = pl.when(col("p").is_not_null()).then(adjusted.over(family))
    return frame.with_columns(p_adjusted=adjusted).select(*ESTIMATES)


def estimate(
    results: "Results",
    metrics: Iterable[Metric | Special],
    *,
    groups: Iterable[str | Keys | Group] = (),
    contrasts: Iterable[Contrast] = (),
    over: Sequence[Over] = ("relations", "facts"),
    seed: int = 0,
    whole: bool = True,
) -> pl.DataFrame:
    """Every metric over all rows (`whole`), in each group, and its contrasts.

    A group is a filter: its numbers are those of its rows alone. Within one relation `over` makes
    no difference, so both have the same numbers.
    """
    metrics = list(metrics)
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    passes: dict[tuple[Keys, bool], Pass] = {((), False): Pass(results, seed)}
    requests: list[tuple[Keys, Pass, Metric]] = []
    requests += [((), passes[(), False], metric) for metric in plain if whole]
    for group in groups:
        names, ids, fine = group if isinstance(group, Group) else Group(group)
        by = (names,) if isinstance(names, str) else tuple(names)
        for metric in plain:
            parts = list(metric.plain())
            apart = {part.by for part in parts} & {*by} or (fine and metric.stat)
            if apart or (ids and metric.id not in ids):
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
                numbers = (value, low, high, np.nan, *sizes)
                lines += [(id, "value", way, None, None, columns, place, *numbers) for way in over]
    split = any("relation" in by for by, _, _ in requests)
    for axis, reference, ids in contrasts:
        chosen = [metric for metric in plain if not ids or metric.id in ids]
        chosen = [metric for metric in chosen if axis not in {m.by for m in metric.plain()}]
        one = Pass(results, seed, (axis,))
        tables, values = _tables(results, one, chosen), one.groups[axis].to_list()
        if reference in ("first", "last") and reference not in values:
            reference = values[0 if reference == "first" else -1]
        number, pool = col("fact_no") // one.size, col("fact_no") % one.size
        units = [
            {id: table.filter(pool == k).with_columns(number) for id, table in tables.items()}
            for k in range(one.size)
        ]
        base = units[values.index(reference)]
        for value, unit in zip(values, units, strict=True):
            if value != reference:
                for line in _differences(results, chosen, unit, base, over, seed, split):
                    cell = [axis, *line[5]], [str(value), *line[6]]
                    lines.append((*line[:4], str(reference), *cell, *line[7:]))
    return _frame(lines)


def _tables(results: "Results", one: Pass, metrics: Iterable[Metric]) -> dict[str, pl.DataFrame]:
    """Numerators and denominators of each fact in each group, by metric."""
    for metric in metrics:
        one.add(metric)
    tables: dict[str, list[pl.DataFrame]] = {}
    for _, query, frame in _units(results, [one]):
        frame = frame.with_columns(col("fact_no").cast(pl.Int64), col(pl.Enum).cast(pl.String))
        for metric in query:
            columns = frame.select(pl.exclude("^.*/.*$"), f"{metric.id}/num", f"{metric.id}/den")
            tables.setdefault(metric.id, []).append(columns)
    return {id: pl.concat(parts) for id, parts in tables.items()}


def _differences(
    results: "Results",
    metrics: Iterable[Metric],
    first: Mapping[str, pl.DataFrame],
    reference: Mapping[str, pl.DataFrame],
    over: Sequence[Over],
    seed: int,
    split: bool,
) -> Iterator[Line]:
    """Paired differences between two sets of rows, on the facts that both measure."""
    one = Pass(results, seed)
    for metric in metrics:
        one.add(metric)
    for metric in chain.from_iterable(one.queries.values()):
        names = {
            f"{metric.id}/num": f"{metric.id}/baseline",
            f"{metric.id}/den": f"{metric.id}/reference",
        }
        on = [name for name in first[metric.id].columns if name not in names]
        both = first[metric.id].join(reference[metric.id].rename(names), on=on).sort("fact_no")
        one.sum(metric, both)
    _resample([one])
    for metric, by in product(metrics, [(), ("relation",)] if split else [()]):
        lines = _lines(one, replace(metric, chance=None), by, over, paired=True)
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
    """Paired differences between two results about one table of facts, by relation too.

    Facts that one of them does not measure do not count. `looks`: how many such comparisons are
    made; p_adjusted is corrected for them (Bonferroni).
    """
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    units = _tables(first, Pass(first), plain), _tables(reference, Pass(reference), plain)
    frame = _frame(_differences(first, plain, *units, over, seed, split=True))
    return frame.with_columns((col("p_adjusted") * looks).clip(0.0, 1.0))


def draws(results: "Results", metric: Metric, over: Over = "relations", seed: int = 0) -> Array:
    """An estimate and its bootstrap draws, [1 + draws]; nan if it is not measured."""
    one = Pass(results, seed)
    one.add(metric)
    _collect(results, [one])
    return np.asarray(one.draws(metric, np.zeros(1, np.int64), False, over)[0])


def estimate_results(results: "Results", seed: int = 0) -> pl.DataFrame:
    """What the probe of some results declares: its metrics, groups and contrasts."""
    probe = results.probe
    return estimate(
        results, probe.metrics, groups=probe.groups, contrasts=probe.contrasts, seed=seed
    )
