"""Estimate metrics from graded prompts: one clustered bootstrap with common draws, one paired test.

Nearly every number is a sum of numerators over a sum of denominators, taken over the facts of a
relation, or a function of such ratios. A `Metric` states both as polars expressions that aggregate
the rows of one fact. Clusters of facts are resampled within their relation, by a random stream
named after the relation, so metrics, groups and runs share draws and can be subtracted draw by
draw. Relations are strata of one pass over the rows. Knows no probe and no report.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, product
from math import nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
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


def standard_deviation(x: Floats, labels: Sequence[Any] = ()) -> Floats:
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
            It compares within a relation by `over("relation")`.
        pooled: the view compares rows of several relations, over the column `pool`.
        baseline: the numerator of a control on the same facts. It adds an estimate of the control
            and one of the paired difference.
        by: compute the ratio for each value of this column (or "relation"), then `stat`.
        stat: makes one number of several: `stat(values [..., n], labels)` to [...].
        within: apply `stat` within each relation, not to averages over relations.
        parts: other metrics, which `stat` makes one number of.
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

    `fine`: for thousands of groups, which are not resampled. Shares have Wilson's interval with a
    trial for each cluster of facts, which is too wide for means over many prompts of a fact. Other
    numbers have none.
    """

    by: str | Keys
    metrics: Keys = ()
    fine: bool = False


class Clusters:
    """The clusters of each relation: those of all facts that are prompted, in order.

    So a subset of the rows, or a metric of few facts, shares the draws of its relation.
    """

    def __init__(self, results: "Results") -> None:
        prompted = col("fact_no").is_in(results.rows["fact_no"].unique().implode())
        rank = pl.when(col("excluded").is_null() | prompted).then("cluster").rank("dense")
        relation = col("relation").to_physical()
        table = results.facts.select(relation, place=rank.over("relation").fill_null(1) - 1)
        dtype: Any = results.facts.schema["relation"]
        self.names: list[str] = dtype.categories.to_list()
        self.relation, self.place = table.cast(pl.Int64).to_numpy().T.copy()
        self.sizes = np.zeros(len(self.names), np.int64)
        np.maximum.at(self.sizes, self.relation, self.place + 1)


class Sample:
    """A metric in the groups of a pass, summed over rows by relation, group and label.

    Of two numerators the second is what the metric is compared with.
    """

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}  # values of `by`
        self.owners: list[pl.DataFrame] = []  # relations × groups + group, and what they count
        self.keys: list[Array] = []  # of cells
        self.totals: list[Array] = []  # their sums of denominators
        self.ratios: dict[int, Array] = {}  # by relation: [numerators, cells, estimate and draws]
        self.flips: dict[int, Array] = {}  # by relation: sums over random sets of clusters
        self.sums: dict[int, Array] = {}  # by relation: [num and den, numerators, clusters, cells]


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
        self,
        results: "Results",
        clusters: Clusters,
        seed: int = 0,
        keys: Keys = (),
        fine: bool = False,
    ) -> None:
        self.clusters, self.seed, self.keys, self.fine = clusters, seed, keys, fine
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
        table = table if first.where is None else table.filter(first.where)
        if self.keys:
            table = _explode(table, self.keys).join(self.groups.lazy(), on=self.keys)
            # facts and relations are numbered per group, so that views need not know of groups
            numbers = (col(n).to_physical().cast(pl.Int64) for n in ("fact_no", "relation"))
            table = table.with_columns(number * self.size + col("pool") for number in numbers)
        elif first.pooled:
            table = table.with_columns(pool=pl.lit(0))
        table = first.view(table) if first.view else table
        columns: dict[str, Expr] = {}
        for metric in metrics:
            assert metric.num is not None
            den = pl.lit(1.0) if metric.den is None else metric.den
            parts = {"num": metric.num, "den": den}
            if metric.baseline is not None:
                parts |= {"num_right": metric.baseline, "den_right": den}
            columns |= {f"{metric.id}/{n}": part.cast(pl.Float64) for n, part in parts.items()}
        by = [first.by] if first.by else []
        units = table.group_by("fact_no", *by).agg(**columns)
        return (units.drop_nulls(by) if by else units).sort("fact_no")

    def sum(self, metric: Metric, units: pl.DataFrame) -> None:
        """Add units of some relations; the columns on the right are compared with."""
        sample, clusters = self.samples[metric.id], self.clusters
        names = [f"{metric.id}/{name}" for name in ("num", "num_right", "den", "den_right")]
        names = [name for name in names if name in units.columns]
        table = np.stack([units[name].to_numpy() for name in names])
        table = table.reshape(2, len(names) // 2, -1)
        valid = ~np.isnan(table[0]).any(axis=0) & (table[1] > 0).all(axis=0)
        if not valid.any():
            return
        table, units = table[..., valid], units.filter(valid)
        fact, group = np.divmod(units["fact_no"].to_numpy().astype(np.int64), self.size)
        relation, label = clusters.relation[fact], np.zeros_like(fact)
        if metric.by:
            labels = units[metric.by]
            values = labels.unique()
            codes = [sample.labels.setdefault(value, len(sample.labels)) for value in values]
            label = labels.replace_strict(values, codes, return_dtype=pl.Int64).to_numpy()
        keys = (relation * self.size + group) * LABELS + label
        odd = ~np.isin((table[0] / table[1]).round(12), (0, 1)) | (table[1] != table[1, :1])
        columns = {"fact": fact, "cluster": clusters.place[fact], "label": label}
        columns |= {"owner": keys // LABELS, "den": table[1, 0], "binary0": odd[0]}
        den, one = col("den"), col("label") == col("label").first()
        independent = (pl.len() == col("cluster").n_unique()) & (den.min() == den.max())
        owners = pl.DataFrame({**columns, "binary1": odd[-1]}).group_by("owner")
        sample.owners.append(
            owners.agg(
                col("label").unique(),
                ~col("binary0", "binary1").any() & independent,
                facts=col("fact").n_unique(),
                clusters=col("cluster").n_unique(),
                prompts=den.filter(one).sum(),
            )
        )
        for number in np.unique(relation).tolist():
            rows = slice(*np.searchsorted(relation, (number, number + 1)))
            cells, index = np.unique(keys[rows], return_inverse=True)
            at = clusters.place[fact[rows]] * len(cells) + index
            shape = 2, len(names) // 2, int(clusters.sizes[number]), len(cells)
            part = table[..., rows].reshape(len(names), -1)
            sums = np.stack([np.bincount(at, row, shape[2] * shape[3]) for row in part])
            num, den = sums.reshape(shape).sum(axis=2)
            sample.keys.append(cells)
            sample.totals.append(den[0])
            sample.ratios[number] = (num / den)[..., None]
            if not self.fine:
                sample.sums[number] = sums.reshape(shape)

    def draws(self, metric: Metric, codes: Array, split: bool, over: Over, role: int = 0) -> Array:
        """The estimate of each output and its draws; nan where it is not measured."""
        stat = metric.stat
        if metric.parts:
            assert stat is not None
            each = (self.draws(part, codes, split, over, role) for part in metric.parts)
            parts = np.stack(np.broadcast_arrays(*each), axis=-1)
            draws = stat(parts, [part.id for part in metric.parts])
            return np.where(np.isnan(parts).any(axis=-1), nan, draws)
        sample = self.samples[metric.id]
        if not sample.ratios:
            return np.full((len(codes), 1), nan)
        owner, label = np.divmod(np.concatenate(sample.keys), LABELS)
        weights = np.concatenate(sample.totals)
        every = [ratios[role] for ratios in sample.ratios.values()]
        rows: Iterable[Array] = chain.from_iterable(every)
        labels = sorted(sample.labels) if stat else [0]
        if metric.within and not split:
            owners = pl.concat(sample.owners).sort("owner")
            values = self.draws(metric, owners["owner"].to_numpy(), True, over, role)
            measured, labels = ~np.isnan(values[:, 0]), [0]
            owner, weights = (owners[n].to_numpy()[measured] for n in ("owner", "facts"))
            rows, stat = values[measured], None
        at = np.searchsorted(codes, owner if split else owner % self.size)
        weights = weights if over == "facts" else np.ones(len(at))
        if stat:
            rank = np.argsort([sample.labels[label] for label in labels])
            at = at * len(labels) + rank[label]
        sums = np.zeros((len(codes) * len(labels), every[0].shape[1]))
        for place, row, weight in zip(at.tolist(), rows, weights, strict=True):
            sums[place] += row * weight
        total = np.bincount(at, weights, len(sums))
        means = sums / np.where(total > 0, total, nan)[:, None]
        if stat is None:
            return means
        draws = np.full((len(codes), means.shape[1]), nan)
        for row, values in zip(draws, means.reshape(len(codes), len(labels), -1), strict=True):
            known = np.flatnonzero(~np.isnan(values[:, 0]))
            if len(known):
                row[:] = stat(values[known].T, [labels[i] for i in known])
        return draws

    def lines(
        self, metric: Metric, by: Keys, over: Sequence[Over], paired: bool = False
    ) -> Iterator[Line]:
        """Rows of ESTIMATES: the groups, in each relation if `by` has it.

        Within a relation one number has both names of `over`.
        """
        sample, stat = self.samples[next(metric.plain()).id], metric.stat
        if not sample.ratios:
            return
        split = "relation" in by and "relation" not in self.keys
        owner, prompts, sizes = col("owner"), col("prompts"), col("clusters")
        outputs = (
            pl.concat(sample.owners)
            .group_by(code=owner if split else owner % self.size)
            .agg(
                pl.sum("facts", "clusters", "prompts"),
                pl.all("binary0", "binary1"),
                strata=pl.len(),
                groups=col("label").explode().n_unique(),
                # independent trials with the variance of the average
                **{
                    "trials/relations": pl.len() ** 2 / (1 / sizes).sum(),
                    "trials/facts": prompts.sum() ** 2 / (prompts**2 / sizes).sum(),
                },
            )
        )
        table = {column.name: column.to_numpy() for column in outputs.sort("code")}
        codes, clusters, strata = table["code"], table["clusters"], table["strata"]
        # other shares than means and extremes of shares have no interval if nothing varies
        share = metric.unit == "percent" and not metric.pooled and stat != standard_deviation
        share = metric.unit in ("percent", "number") if stat is None else share
        compared = paired or metric.baseline is not None
        numbers: list[tuple[str, Over, Array]] = []
        tests = {}
        ways = over[:1] if "relation" in by else over
        if compared and not (stat or self.fine):
            tests = self.test(metric, table, split, ways)
        for way in ways:
            gap: Any = 0.0
            for role in range(1 + compared):
                draws = self.draws(metric, codes, split, way, role)
                gap, value = draws - gap, draws[:, 0]
                ends = np.full((3, len(codes)), nan)
                if not self.fine:
                    ends[:2] = stats.bootstrap_interval(draws, clusters, strata, metric.centered)
                # where nothing varies, other facts still may differ
                alone = table[f"binary{role}"] & (strata == 1) & (stat is None)
                flat = np.isnan(ends[0]) & share & (value >= 0) & (value <= 1)
                some = alone | flat
                size = np.where(alone, table["facts"], table[f"trials/{way}"])[some]
                ends[:2, some] = stats.wilson_interval(value[some] * size, size)
                numbers.append((OF[role], way, np.vstack([value, ends])))
            if compared and not self.fine:
                value = -gap[:, 0]
                test = tests.get(way, np.full((3, len(codes)), nan))
                wider = stats.interval_widening(clusters, strata)
                for k in np.flatnonzero(np.isfinite(wider)).tolist() if stat else ():
                    draws = np.append(value[k], -gap[k, 1:] * wider[k])
                    (reach,), (p,) = stats.max_t_test(draws[:, None])
                    test[:, k] = value[k] - reach, value[k] + reach, p
                numbers.append((OF[2], way, np.vstack([value, test])))
        groups, names = self.groups.drop("pool").rows(), self.clusters.names
        sizes_of = np.stack([table[metric.counts].round(), clusters], axis=1).tolist()
        for of, way, columns in numbers:
            if metric.unit in ("percent", "points"):
                least = 0.0 if metric.unit == "percent" and of != "difference" else -1.0
                columns[1:3] = columns[1:3].clip(least, 1.0)
            for code, count, line in zip(codes.tolist(), sizes_of, columns.T.tolist(), strict=True):
                value, low, high, p = line
                if not np.isnan(value):
                    named = dict(zip(self.keys, groups[code % self.size], strict=True))
                    group = [str(named.get(name, names[code // self.size])) for name in by]
                    low, high = min(low, value), max(high, value)  # in this order nan stays nan
                    for name in over if "relation" in by else [way]:
                        yield (
                            metric.id, of, name, None, None, by, group, value, low, high, p, *count
                        )  # fmt: skip

    def test(
        self,
        metric: Metric,
        table: Mapping[str, Array],
        split: bool,
        ways: Sequence[Over],
    ) -> dict[Over, Array]:
        """Low, high and p of paired differences, by sign flips of the clusters.

        If few 0/1 outcomes differ, the inverted test is too narrow: with 20 facts, about one of
        which differs, its interval covers 57 times in 100. So the interval also spans Newcombe's,
        cut at 0 where the test rejects: p alone decides.
        """
        sample, codes = self.samples[metric.id], table["code"]
        exact = table["binary0"] & table["binary1"]
        owner, totals = np.concatenate(sample.keys) // LABELS, np.concatenate(sample.totals)
        relations = owner // self.size
        at = np.searchsorted(codes, owner if split else owner % self.size)
        weights = np.stack([totals if way == "facts" else np.ones(len(at)) for way in ways])
        weights /= np.stack([np.bincount(at, w)[at] for w in weights])
        tests = {way: np.full((3, len(codes)), nan) for way in ways}
        flipped = np.zeros((len(ways), 2, len(codes), FLIPS))
        sums = np.zeros((len(ways), 4, len(codes)))
        for number, (num, den) in sample.sums.items():
            here = np.flatnonzero(relations == number)
            to, weight = at[here], weights[:, None, here]
            # what each cluster adds to the difference of two ratios, and its weight; exact if
            # the denominators agree, other ratios are linearized
            total = den.sum(axis=1, keepdims=True)
            part, ratio = den / total, num.sum(axis=1, keepdims=True) / total
            residual, m = num / total - ratio * part, part.mean(axis=0)
            d = residual[0] - residual[1] + (ratio[0] - ratio[1]) * m
            # facts of equal weight have the same in every group
            shared = m[:, :1] if (m == m[:, :1]).all() else m
            halves = sample.flips.get(number)
            if halves is None:
                rng = stats.random_generator(self.seed, f"p:{self.clusters.names[number]}")
                halves = stats.flipped_sums(np.hstack([d, shared]), rng, FLIPS).T
            if not self.keys:  # of all rows and by relation they are the same
                sample.flips[number] = halves
            flipped[:, 0, to] += halves[: len(to)] * weight[:, 0, :, None]
            flipped[:, 1, to] += halves[len(to) :] * weight[:, 0, :, None]
            parts = np.stack([d, m, d**2, np.maximum(d, 0)])
            sums[..., to] += parts.sum(axis=1) * weight ** np.array([[1], [1], [2], [1]])
        for (i, way), k in product(enumerate(ways), np.flatnonzero(table["clusters"] >= FEWEST)):
            n, (value, _, squares, won) = table[f"trials/{way}"][k], sums[i, :, k].tolist()
            size = int(table["clusters"][k])
            low, high, p = stats.sign_flip_test_from_sums(
                flipped[i, :, k], sums[i, :2, k], squares, size
            )
            if metric.unit == "percent" and (exact[k] or high - low <= FLAT):
                ends = stats.newcombe_interval(won, won - value, n)
                low, high = min(low, ends[0]), max(high, ends[1])
            if p >= LEVEL:
                low, high = min(low, 0.0), max(high, 0.0)
            elif value > 0:
                low = max(low, 0.0)
            else:
                high = min(high, 0.0)
            tests[way][:, k] = low, high, p
        return tests


def _units_of_passes(
    results: "Results", passes: Iterable[Pass]
) -> Iterator[tuple[Pass, list[Metric], pl.DataFrame]]:
    """Units of every pass, some relations at a time; those of a pooled metric together."""
    rows = results.rows
    if not rows["relation"].to_physical().is_sorted():
        rows = rows.sort("relation")
    cuts = [0]
    for end in rows["relation"].rle().struct.field("len").cum_sum():
        if end - cuts[-1] >= CHUNK or end == rows.height:
            cuts.append(end)
    every = [(one, query) for one in passes for query in one.queries.values()]
    pooled = [pair for pair in every if pair[1][0].pooled and "relation" not in pair[0].keys]
    apart = [pair for pair in every if pair not in pooled]
    # the largest first, so that its memory is used again
    for block, queries in ((rows, pooled), *((rows[a:b], apart) for a, b in pairwise(cuts))):
        table = replace(results, rows=block).table()
        try:
            units = [one.units(table, metrics) for one, metrics in queries]
            # looking for what they share takes three times as long as computing it again
            frames = pl.collect_all(units, optimizations=pl.QueryOptFlags(comm_subplan_elim=False))
        except pl.exceptions.ColumnNotFoundError as error:
            raise UsageError(f"a metric names a missing column: {error}") from None
        for (one, metrics), frame in zip(queries, frames, strict=True):
            yield one, metrics, frame


def _add_and_resample(passes: Sequence[Pass], results: "Results | None" = None) -> None:
    """Add the units of results, and resample the clusters.

    All metrics of a relation share its draws.
    """
    for one, query, frame in _units_of_passes(results, passes) if results else ():
        for metric in query:
            one.sum(metric, frame)
    samples = [sample for one in passes for sample in one.samples.values()]
    for relation, name in enumerate(passes[0].clusters.names if passes else ()):
        members = [sample for sample in samples if relation in sample.sums]
        if not members:
            continue
        tables = [np.moveaxis(sample.sums[relation], 2, 0) for sample in members]
        every = np.hstack([table.reshape(len(table), -1) for table in tables]).T
        # many denominators are the same: one is drawn for all
        places: dict[bytes, int] = {}
        index = np.array([places.setdefault(row.tobytes(), len(places)) for row in every])
        columns = every[np.unique(index, return_index=True)[1]].T
        drawn = stats.resampled_sums(columns, stats.random_generator(passes[0].seed, name)).T
        rows, start = np.column_stack([columns.sum(axis=0), drawn]), 0
        for sample, table in zip(members, tables, strict=True):
            stop = start + table[0].size
            num, den = rows[index[start:stop]].reshape(*table.shape[1:], -1)
            # a draw without any denominator repeats the estimate
            ratios = np.repeat(num[..., :1] / den[..., :1], num.shape[-1], axis=-1)
            sample.ratios[relation] = np.divide(num, den, out=ratios, where=den > 0)
            start = stop


def _estimates_of_lines(lines: Iterable[Line]) -> pl.DataFrame:
    """Estimates with p values corrected within their family: the groups of the same columns."""
    schema = {name: dtype for name, dtype in ESTIMATES.items() if name != "p_adjusted"}
    columns: dict[str, Any] = dict(zip(schema, zip(*lines, strict=True), strict=False))
    for name in ("group_by", "group"):  # polars takes thirty times as long for lists
        columns[name] = pl.Series(pa.array(columns.get(name, ()), pa.list_(pa.string())))
    frame = pl.DataFrame(columns, schema, strict=False).with_columns(
        pl.when(col(name).is_finite()).then(name) for name in ("value", "low", "high", "p")
    )
    family = "metric", "of", "over", "reference", col("group_by").list.join("/"), col("p").is_null()
    corrected = (
        col("p")
        .fill_null(nan)
        .map_batches(lambda p: pl.Series(stats.holm_corrected(p)), pl.Float64)
    )
    frame = frame.with_columns(p_adjusted=corrected.over(family).fill_nan(None))
    return frame.select(*ESTIMATES)


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
    metrics, clusters = list(metrics), Clusters(results)
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    passes: dict[tuple[Keys, bool], Pass] = {}
    requests: list[tuple[Keys, Pass, Metric]] = []
    for group in [*([()] if whole else []), *groups]:
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
                passes[keys, fine] = Pass(results, clusters, seed, keys, fine)
            passes[keys, fine].add(metric)
            requests.append((by, passes[keys, fine], metric))
    _add_and_resample([*passes.values()], results)
    lines: list[Line] = []
    for by, one, metric in requests:
        lines += one.lines(metric, by, over)
    for special in metrics:
        if isinstance(special, Special):
            for id, *place, value, low, high, n, n_clusters in special.compute(results, seed):
                numbers = value, low, high, nan, n, n_clusters
                lines += [(id, "value", way, None, None, *place, *numbers) for way in over]
    if whole:
        measured = {line[0] for line in lines if not line[5]}
        every = [
            special.metrics if isinstance(special, Special) else [special] for special in metrics
        ]
        lines += [
            (metric.id, "value", way, None, None, [], [], *[nan] * 4, 0, 0)
            for metric, way in product(chain.from_iterable(every), over)
            if metric.id not in measured
        ]
    by_relation = any("relation" in by for by, _, _ in requests)
    for axis, reference, ids in contrasts:
        chosen = [metric for metric in plain if not ids or metric.id in ids]
        chosen = [metric for metric in chosen if axis not in {m.by for m in metric.plain()}]
        values = Pass(results, clusters, keys=(axis,)).groups[axis].to_list()
        if reference in ("first", "last") and reference not in values:
            reference = values[0 if reference == "first" else -1]
        base = results.select(where=col(axis) == reference)
        for value in values:
            if value != reference:
                rows = results.select(where=col(axis) == value)
                for line in _paired_difference_lines(rows, base, chosen, over, seed, by_relation):
                    cell = [axis, *line[5]], [str(value), *line[6]]
                    lines.append((*line[:4], str(reference), *cell, *line[7:]))
    return _estimates_of_lines(lines)


def _paired_difference_lines(
    first: "Results",
    reference: "Results",
    metrics: Iterable[Metric | Special],
    over: Sequence[Over],
    seed: int,
    by_relation: bool,
) -> Iterator[Line]:
    """Paired differences between two sets of rows, on the facts that both measure."""
    plain = [metric for metric in metrics if isinstance(metric, Metric)]
    one, tables = Pass(first, Clusters(first), seed), defaultdict[str, list[pl.DataFrame]](list)
    for metric in plain:
        one.add(metric)
    for results in (first, reference):
        frames = defaultdict[str, list[pl.DataFrame]](list)
        for _, query, frame in _units_of_passes(results, [one]):
            # categories of two results differ
            units = frame.with_columns(col(pl.Enum).cast(pl.String))
            for metric in query:
                numbers = f"{metric.id}/num", f"{metric.id}/den"
                frames[metric.id].append(units.select(pl.exclude("^.*/.*$"), *numbers))
        for id, parts in frames.items():
            tables[id].append(pl.concat(parts))
    for metric in chain.from_iterable(one.queries.values()):
        table, other = tables[metric.id]
        one.sum(metric, table.join(other, on=table.columns[:-2]).sort("fact_no"))
    _add_and_resample([one])
    for metric, by in product(plain, [(), ("relation",)] if by_relation else [()]):
        lines = one.lines(metric, by, over, paired=True)
        yield from (line for line in lines if line[1] == "difference")


def paired_differences(
    first: "Results",
    reference: "Results",
    metrics: Iterable[Metric | Special],
    *,
    over: Sequence[Over] = ("relations", "facts"),
    seed: int = 0,
) -> pl.DataFrame:
    """Paired differences between two results about one table of facts, by relation too.

    Facts that one of them does not measure do not count.
    """
    return _estimates_of_lines(
        _paired_difference_lines(first, reference, metrics, over, seed, by_relation=True)
    )


def bootstrap_draws(
    results: "Results", metric: Metric, over: Over = "relations", seed: int = 0
) -> Array:
    """An estimate and its bootstrap draws, [1 + draws]; nan if it is not measured."""
    one = Pass(results, Clusters(results), seed)
    one.add(metric)
    _add_and_resample([one], results)
    return np.asarray(one.draws(metric, np.zeros(1, np.int64), False, over)[0])


def estimate_results(results: "Results", seed: int = 0) -> pl.DataFrame:
    """What the probe of some results declares: its metrics, groups and contrasts."""
    probe = results.probe
    return estimate(
        results, probe.metrics, groups=probe.groups, contrasts=probe.contrasts, seed=seed
    )
