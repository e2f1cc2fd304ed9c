"""Estimate metrics from graded prompts: one clustered bootstrap with common draws, one paired test.

Nearly every number is a sum of numerators over a sum of denominators, taken over the facts of a
relation, or a function of such ratios. A `Metric` states both as polars expressions that aggregate
the rows of one fact. Clusters of facts are resampled within their relation, by a random stream
named after the relation, so metrics, groups and runs share draws and can be subtracted draw by
draw. Relations are strata of one pass over the rows. Knows no probe and no report.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
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
LABELS = 2**32  # a column of sums is numbered group × LABELS + label
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

    `compute(results, seed)` gives (metric, over, group_by, group, value, low, high, n, n_clusters).
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


class Pass(NamedTuple):
    """Columns whose groups are aggregated together."""

    keys: Keys = ()
    fine: bool = False


class Stratum(NamedTuple):
    """Sums of each cluster of one relation; a column for each group and value of `by`.

    Of two numerators the second is what the metric is compared with.
    """

    relation: int
    cells: Ints  # group × LABELS + label
    num: Floats  # [numerators, clusters, columns]
    den: Floats
    total: Floats  # [columns]: the sum of denominators
    facts: Ints  # [columns]: of the group
    clusters: Ints
    binary: Bools  # [numerators, columns]: facts are independent and 0 or 1
    share: Bools  # facts are shares
    ratios: Floats  # [numerators, columns, 1 + draws], the estimate first


class Sample(NamedTuple):
    """A metric in the groups of a pass."""

    labels: dict[Any, int]  # values of `by`
    strata: list[Stratum]


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


def _explode(table: LazyFrame, keys: Keys) -> LazyFrame:
    schema = table.collect_schema()
    for name in keys:
        if name not in schema:
            raise UsageError(f"no column {name!r} to group by; there are {', '.join(schema)}")
        table = table.explode(name) if schema[name] == pl.List else table
    return table


def _groups(results: "Results", keys: Keys) -> pl.DataFrame:
    """The values of some columns, with a number for each combination."""
    if not keys:
        return pl.DataFrame({"pool": [0]})
    values = _explode(results.table(), keys).select(keys).drop_nulls().unique().sort(keys)
    return values.with_row_index("pool").collect()


def _units(
    results: "Results",
    wanted: Mapping[Pass, Iterable[Metric]],
    groups: Mapping[Keys, pl.DataFrame],
) -> Iterator[tuple[Pass, list[Metric], pl.DataFrame]]:
    """Numerators and denominators of each fact in each group, some relations at a time.

    Metrics that look at the same rows are aggregated together.
    """
    plans: list[tuple[Pass, list[Metric]]] = []
    for kind, metrics in wanted.items():
        for metric in metrics:
            alike = (p[1] for p in plans if p[0] == kind and _same_rows(metric, p[1][0]))
            if (members := next(alike, None)) is None:
                plans.append((kind, members := []))
            members.append(metric)
    rows = results.rows
    if not rows["relation"].to_physical().is_sorted():
        rows = rows.sort("relation")
    ends = np.flatnonzero(np.diff(rows["relation"].to_physical().to_numpy())) + 1
    cuts = [0]
    for end in [*ends.tolist(), rows.height]:
        if end - cuts[-1] >= CHUNK or end == rows.height:
            cuts.append(end)
    pooled = [plan for plan in plans if plan[1][0].pooled]
    others = [plan for plan in plans if not plan[1][0].pooled]
    for block, some in ((rows, pooled), *((rows[a:b], others) for a, b in pairwise(cuts))):
        table = replace(results, rows=block).table()
        queries = [_aggregate(table, groups[kind.keys], members) for kind, members in some]
        try:
            frames = pl.collect_all(queries)
        except pl.exceptions.ColumnNotFoundError as error:
            ids = ", ".join(metric.id for _, members in some for metric in members)
            missing = str(error).splitlines()[0]
            raise UsageError(
                f"a metric names a column that is missing: {missing} ({ids})"
            ) from None
        for (kind, members), frame in zip(some, frames, strict=True):
            yield kind, members, frame


def _same_rows(a: Metric, b: Metric) -> bool:
    if (a.view, a.by, a.where is None) != (b.view, b.by, b.where is None):
        return False
    return a.where is None or b.where is None or a.where.meta.eq(b.where)


def _aggregate(table: LazyFrame, groups: pl.DataFrame, metrics: Sequence[Metric]) -> LazyFrame:
    first, keys, size = metrics[0], tuple(groups.columns[1:]), groups.height
    table = _explode(table, keys)
    table = table.join(groups.lazy(), on=keys) if keys else table.with_columns(pool=pl.lit(0))
    if first.where is not None:
        table = table.filter(first.where)
    if keys:
        # each group has facts and relations of its own, so that views need not know of groups
        numbers = (col(name).to_physical().cast(pl.Int64) for name in ("fact_no", "relation"))
        table = table.with_columns(number * size + col("pool") for number in numbers)
    if first.view:
        table = first.view(table)
    columns = {}
    for metric in metrics:
        assert metric.num is not None
        den = pl.lit(1.0) if metric.den is None else metric.den
        baseline = metric.baseline if metric.chance is None else den * metric.chance
        parts = {"num": metric.num, "baseline": baseline, "den": den}
        for name, part in parts.items():
            if part is not None:
                columns[f"{metric.id}/{name}"] = part.cast(pl.Float64)
    by = [first.by] if first.by not in ("", "relation") else []
    units = table.group_by("fact_no", *by).agg(**columns)
    return (units.drop_nulls(by) if by else units).sort("fact_no")


def _strata(
    metric: Metric, frame: pl.DataFrame, clusters: Clusters, size: int, labels: dict[Any, int]
) -> Iterator[Stratum]:
    """Cluster sums by relation, of units in `size` groups.

    A second numerator may have a denominator of its own.
    """
    names = (f"{metric.id}/{part}" for part in ("num", "baseline", "den", "reference"))
    num, baseline, den, reference = (
        frame[name].to_numpy() if name in frame.columns else None for name in names
    )
    values = np.stack([num] if baseline is None else [num, baseline])
    weights = np.stack([den, den if reference is None else reference])[: len(values)]
    valid = ~np.isnan(values).any(axis=0) & (weights > 0).all(axis=0)
    values, weights = values[:, valid], weights[:, valid]
    fact, group = np.divmod(frame["fact_no"].to_numpy()[valid].astype(np.int64), size)
    relation, place, cell = clusters.relation[fact], clusters.place[fact], group * LABELS
    if metric.by == "relation":
        labels |= {name: number for number, name in enumerate(clusters.names)}
        cell = cell + relation
    elif metric.by:
        known = frame[metric.by].filter(pl.Series(valid)).to_list()
        cell = cell + np.array([labels.setdefault(k, len(labels)) for k in known], dtype=np.int64)
    ends = np.searchsorted(relation, np.arange(len(clusters.names) + 1))
    for number in np.unique(relation).tolist():
        rows = slice(ends[number], ends[number + 1])
        v, w = values[:, rows], weights[:, rows]
        cells, index, count = np.unique(cell[rows], return_inverse=True, return_counts=True)
        shape = int(clusters.sizes[number]), len(cells)
        flat = place[rows] * len(cells) + index
        nums, dens = (
            np.stack([np.bincount(flat, x, shape[0] * shape[1]).reshape(shape) for x in table])
            for table in (v, w)
        )
        _, first, column = np.unique(cells // LABELS, return_index=True, return_inverse=True)
        in_group = np.unique(column[index] * LABELS + fact[rows]) // LABELS
        sizes = (np.add.reduceat(dens[0], first, axis=1) > 0).sum(axis=0)
        total, squares = np.bincount(index, w[0]), np.bincount(index, w[0] ** 2)
        # alike and independent: equal weights, a fact for each cluster
        alike = (squares * count - total**2 <= FLAT * total**2) & (count == sizes[column])
        odd, beyond = ~np.isin((v / w).round(12), (0, 1)), (v < 0) | (v > w + FLAT)
        binary, share = (
            np.stack([np.bincount(index, x) == 0 for x in table]) for table in (odd, beyond)
        )
        facts = np.bincount(in_group)[column]
        yield Stratum(
            *(number, cells, nums, dens, total, facts, sizes[column], binary & alike, share),
            ratios=np.empty(0),
        )


def _linear(s: Stratum) -> tuple[Floats, Floats]:
    """What each cluster adds to the difference of two ratios, and its weight.

    Exact if the denominators agree; other ratios are linearized.
    """
    total = s.den.sum(axis=1, keepdims=True)
    share, ratio = s.den / total, s.num.sum(axis=1, keepdims=True) / total
    residual, weight = s.num / total - ratio * share, share.mean(axis=0)
    return residual[0] - residual[1] + (ratio[0] - ratio[1]) * weight, weight


def _closed_form(s: Stratum) -> Stratum:
    """Ratios with their variance between clusters, of the difference too, in place of draws."""
    total = s.den.sum(axis=1)
    value = s.num.sum(axis=1) / total
    errors = (s.num - value[:, None] * s.den) / total[:, None]
    if len(errors) > 1:
        value = np.vstack([value, value[0] - value[1]])
        errors = np.concatenate([errors, errors[:1] - errors[1:]])
    variance = (errors**2).sum(axis=1) * s.clusters / np.maximum(s.clusters - 1, 1)
    nothing = np.empty((0, 0, 0))
    return s._replace(num=nothing, den=nothing, ratios=np.stack([value, variance], axis=-1))


def _resample(samples: Iterable[Sample], names: Sequence[str], seed: int) -> None:
    """Add ratios under resampling of the clusters; all metrics of a relation share its draws."""
    places: dict[int, list[tuple[Sample, int]]] = {}
    for sample in samples:
        for place, stratum in enumerate(sample.strata):
            places.setdefault(stratum.relation, []).append((sample, place))
    for relation, members in places.items():
        strata = [sample.strata[place] for sample, place in members]
        columns = np.hstack([block for s in strata for block in (*s.num, *s.den)])
        drawn = stats.resampled_sums(columns, stats.generator(seed, names[relation]))
        sums, start = np.vstack([columns.sum(axis=0), drawn]).T, 0
        for (sample, place), s in zip(members, strata, strict=True):
            stop = start + 2 * len(s.num) * len(s.cells)
            num, den = sums[start:stop].reshape(2, len(s.num), len(s.cells), -1)
            start = stop
            # a draw without any denominator tells nothing
            whole = np.broadcast_to(num[..., :1] / den[..., :1], num.shape).copy()
            ratios = np.divide(num, den, out=whole, where=den > 0)
            sample.strata[place] = s._replace(ratios=ratios)


def _sorted(sample: Sample) -> Sample:
    """The same with labels numbered in their order."""
    labels = sorted(sample.labels)
    rank = np.argsort([sample.labels[label] for label in labels])
    strata = []
    for s in sample.strata:
        group, label = np.divmod(s.cells, LABELS)
        cells = group * LABELS + rank[label]
        order = np.argsort(cells)
        columns = (x[..., order] for x in (cells, *s[2:9]))
        strata.append(Stratum(s.relation, *columns, ratios=s.ratios))
    return Sample({label: number for number, label in enumerate(labels)}, strata)


def _collect(
    results: "Results", wanted: Mapping[Pass, Iterable[Metric]], seed: int
) -> tuple[dict[Pass, dict[str, Sample]], Mapping[Keys, pl.DataFrame], list[str]]:
    """Every metric in the groups of each pass, the groups, and the names of relations."""
    clusters = Clusters(results.facts, results.rows)
    groups = {kind.keys: _groups(results, kind.keys) for kind in wanted}
    samples = {kind: {m.id: Sample({}, []) for m in metrics} for kind, metrics in wanted.items()}
    for kind, metrics, frame in _units(results, wanted, groups):
        for metric in metrics:
            labels, strata = samples[kind][metric.id]
            found = _strata(metric, frame, clusters, groups[kind.keys].height, labels)
            strata += map(_closed_form, found) if kind.fine else found
    for members in samples.values():
        members |= {id: _sorted(sample) for id, sample in members.items() if sample.labels}
    drawn = [s for kind, members in samples.items() if not kind.fine for s in members.values()]
    _resample(drawn, clusters.names, seed)
    return samples, groups, clusters.names


class Outputs(NamedTuple):
    """What is reported of a pass: its groups over all relations, or `split` by relation."""

    samples: Mapping[str, Sample]
    names: Sequence[str]
    size: int
    split: bool = False
    over: Over = "relations"
    paired: bool = False

    def code(self, s: Stratum) -> Ints:
        """The output that each column of a stratum belongs to."""
        return s.cells // LABELS + (s.relation * self.size if self.split else 0)

    def weight(self, s: Stratum) -> Floats:
        return s.total if self.over == "facts" else np.ones(len(s.cells))

    def draws(self, metric: Metric, codes: Ints, role: int = 0) -> Floats:
        """The estimate and its draws for each output; nan where it is not measured."""
        stat = metric.stat
        if metric.parts:
            assert stat is not None
            each = np.broadcast_arrays(*(self.draws(part, codes, role) for part in metric.parts))
            parts = np.stack(each, axis=-1)
            draws = stat(parts, [part.id for part in metric.parts])
            return np.where(np.isnan(parts).any(axis=-1), np.nan, draws)
        names, strata = list(self.samples[metric.id].labels), self.samples[metric.id].strata
        means = stat is not None and not metric.within
        width = strata[0].ratios.shape[-1] if strata else 1
        sums = np.zeros((len(codes), len(names) if means else 1, width))
        weights = np.zeros(sums.shape[:2])
        for s in strata:
            at, label = np.searchsorted(codes, self.code(s)), s.cells % LABELS
            ratios, weight = s.ratios[role], self.weight(s)
            if stat is not None and metric.within:
                starts = np.unique(at, return_index=True)[1]
                columns = np.split(np.arange(len(at)), starts[1:])
                known = [[names[i] for i in label[own]] for own in columns]
                ratios = np.stack(
                    [stat(ratios[c].T, k) for c, k in zip(columns, known, strict=True)]
                )
                measured = ~np.isnan(ratios[:, 0])
                at, ratios, facts = (
                    at[starts][measured],
                    ratios[measured],
                    s.facts[starts][measured],
                )
                weight = facts if self.over == "facts" else np.ones(len(at))
            label = label if means else np.zeros_like(at)
            sums[at, label] += ratios * weight[:, None]
            weights[at, label] += weight
        sums /= np.where(weights > 0, weights, np.nan)[..., None]
        if stat is None or metric.within:
            return sums[:, 0]
        draws = np.full((len(codes), width), np.nan)
        for at, measured in enumerate(weights > 0):
            if measured.any():
                draws[at] = stat(sums[at, measured].T, [names[i] for i in np.flatnonzero(measured)])
        return draws

    def lines(self, metric: Metric, seed: int) -> Iterator[tuple[str, Ints, Floats]]:
        """Of value, baseline and difference: the outputs, and [outputs, 6] of their value, low,
        high, p, n and number of clusters."""
        labels, strata = self.samples[next(metric.plain()).id]
        codes = np.unique(np.concatenate([np.empty(0, np.int64), *map(self.code, strata)]))
        facts, prompts, clusters, relations, total, squares = np.zeros((6, len(codes)))
        variance, known = np.zeros((3, len(codes))), np.zeros((len(codes), len(labels)), dtype=bool)
        binary, share = np.ones((2, 2, len(codes)), dtype=bool)
        fine = any(s.ratios.shape[-1] == 2 for s in strata)
        for s in strata:
            columns = np.searchsorted(codes, self.code(s))
            at, starts = np.unique(columns, return_index=True)
            weight = self.weight(s)[starts]
            facts[at] += s.facts[starts]
            prompts[at] += np.maximum.reduceat(s.total, starts)
            clusters[at] += s.clusters[starts]
            relations[at] += 1
            total[at] += weight
            squares[at] += weight**2 / s.clusters[starts]
            for role in range(len(s.binary)):
                binary[role, at] &= s.binary[role, starts]
                share[role, at] &= np.logical_and.reduceat(s.share[role], starts)
            if labels:
                known[columns, s.cells % LABELS] = True
            if fine:
                variance[: len(s.ratios), at] += weight**2 * s.ratios[:, starts, 1]
        trials = total**2 / squares
        n = {"facts": facts, "prompts": prompts.round(), "groups": known.sum(axis=1)}[metric.counts]
        nothing = np.full(len(codes), np.nan)
        alone = binary & (relations == 1) & (metric.stat is None)
        compared = self.paired or metric.baseline is not None or metric.chance is not None
        for role in range(3 if fine and compared else 1 + compared):
            draws = self.draws(metric, codes, role)
            value, moved = draws[:, 0], draws[:, 1:]
            low, high = nothing.copy(), nothing.copy()
            if fine:
                free = (clusters - relations).astype(int).tolist()
                reach = np.array([stats.student_reach(f) if f else np.nan for f in free])
                reach = reach * np.sqrt(variance[role]) / total
                low, high = value - reach, value + reach
            elif moved.size:
                if metric.centered:
                    moved = moved - moved.mean(axis=1, keepdims=True) + value[:, None]
                low, high = np.quantile(moved, (LEVEL / 2, 1 - LEVEL / 2), axis=1)
            # where nothing varies, other facts still may differ
            flat = ~(high - low > FLAT)
            low[flat] = high[flat] = np.nan
            if metric.unit == "percent" and role < 2:
                some = alone[role] | (flat & share[role] & (metric.stat is not spread))
                size = np.where(alone[role], facts, trials)[some]
                low[some], high[some] = stats.wilson(value[some] * size, size)
            if role == 1 and metric.chance is not None:
                low, high = nothing, nothing
            ends = _limit(metric, value, low, high, signed=role == 2)
            yield OF[role], codes, np.stack([value, *ends, nothing, n, clusters], axis=-1)
        if fine or not compared:
            return
        tests = np.full((len(codes), 4), np.nan)
        for at, gap in enumerate(self.draws(metric, codes) - self.draws(metric, codes, 1)):
            tests[at, 0] = gap[0]
            if metric.stat:
                reach, p = stats.max_t(gap[:, None])
                tests[at, 1:] = gap[0] - reach[0], gap[0] + reach[0], p[0]
        if not metric.stat:
            exact = binary.all(axis=0) if metric.chance is None else binary[0]
            for some in [[s] for s in strata] if self.split else [strata] * bool(strata):
                for at, *test in self.tests(
                    metric, some, codes, np.stack([trials, exact], 1), seed
                ):
                    tests[at, 1:] = test
        ends = _limit(metric, tests[:, 0], tests[:, 1], tests[:, 2], signed=True)
        yield OF[2], codes, np.column_stack([tests[:, 0], *ends, tests[:, 3], n, clusters])

    def tests(
        self, metric: Metric, strata: Sequence[Stratum], codes: Ints, trials: Floats, seed: int
    ) -> Iterator[tuple[int, float, float, float]]:
        """The output, low, high and p of each paired difference of sums.

        trials [outputs, 2]: how many independent facts there are, and whether they are 0 or 1. If
        few 0/1 outcomes differ, the inverted test is too narrow: with 20 facts of which about one
        differs its interval covers 57 times in 100. So the interval also spans Newcombe's, cut at
        0 where the test says so: p alone decides.
        """
        columns = [np.searchsorted(codes, self.code(s)) for s in strata]
        outputs, places = np.unique(np.concatenate(columns), return_inverse=True)
        places = np.split(places, np.cumsum([len(at) for at in columns])[:-1])
        weights, squares, won, clusters = np.zeros((4, len(outputs)))
        totals, flipped = np.zeros((len(outputs), 2)), np.zeros((len(outputs), 2, FLIPS))
        flips = np.full(len(outputs), FLIPS)
        for s, at in zip(strata, places, strict=True):
            weights[at] += self.weight(s)
        for s, at in zip(strata, places, strict=True):
            d, m = (x * (self.weight(s) / weights[at]) for x in _linear(s))
            count = FLIPS if len(d) <= MANY else FEWER_FLIPS
            rng = stats.generator(seed, f"p:{self.names[s.relation]}")
            sums = stats.flipped_sums(np.hstack([d, m]), rng, count).reshape(count, 2, -1)
            flipped[at, :, :count] += sums.T
            flips[at] = np.minimum(flips[at], count)
            totals[at] += np.stack([d.sum(axis=0), m.sum(axis=0)], axis=-1)
            squares[at] += (d**2).sum(axis=0)
            won[at] += np.maximum(d, 0).sum(axis=0)
            clusters[at] += s.clusters
        for i, output in enumerate(outputs.tolist()):
            if clusters[i] < FEWEST:
                continue
            value, (n, exact) = totals[i, 0], trials[output]
            size = int(clusters[i])
            low, high, p = stats.invert(flipped[i, :, : flips[i]], totals[i], squares[i], size)
            if metric.unit == "percent" and (exact or high - low <= FLAT):
                ends = stats.newcombe(won[i], won[i] - value, n)
                if metric.chance is not None:
                    successes = (value + metric.chance) * n
                    ends = tuple(end - metric.chance for end in stats.wilson(successes, n))
                low, high = min(low, ends[0]), max(high, ends[1])
            if p >= LEVEL:
                low, high = min(low, 0.0), max(high, 0.0)
            elif value > 0:
                low = max(low, 0.0)
            else:
                high = min(high, 0.0)
            yield output, low, high, p


def _limit(
    metric: Metric, value: Floats, low: Floats, high: Floats, signed: bool
) -> tuple[Floats, Floats]:
    """Ends that hold the value and are possible; nan where there is none."""
    if metric.unit in ("percent", "points"):
        least = -1.0 if signed or metric.unit == "points" else 0.0
        low, high = np.clip(low, least, 1.0), np.clip(high, least, 1.0)
    low, high = np.minimum(low, value), np.maximum(high, value)
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)


def _frame(lines: Sequence[Line]) -> pl.DataFrame:
    """Estimates with p values corrected within their family: the groups of the same columns."""
    families: dict[tuple[Any, ...], list[int]] = {}
    for place, (metric, of, over, _, reference, by, *_, p, _, _, _) in enumerate(lines):
        if p is not None and not np.isnan(p):
            key = metric, of, over, reference if by else None, tuple(by)
            families.setdefault(key, []).append(place)
    adjusted = np.full(len(lines), np.nan)
    for places in families.values():
        adjusted[places] = stats.holm([lines[place][10] for place in places])
    frame = pl.DataFrame(lines, schema=ESTIMATES, orient="row")
    return frame.with_columns(p_adjusted=pl.Series(adjusted)).with_columns(
        col(pl.Float64).fill_nan(None)
    )


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
    requests: dict[tuple[Keys, Pass, bool], list[Metric]] = {((), Pass(), False): plain}
    for group in groups:
        by, ids, fine = group if isinstance(group, Group) else Group(group)
        by = (by,) if isinstance(by, str) else tuple(by)
        for metric in plain:
            parts = list(metric.plain())
            split = "relation" in by and not any(part.pooled for part in parts)
            if (
                (ids and metric.id not in ids)
                or (fine and metric.stat)
                or {p.by for p in parts} & {*by}
            ):
                continue
            keys = tuple(name for name in by if not (split and name == "relation"))
            requests.setdefault((by, Pass(keys, fine), split), []).append(metric)
    wanted: dict[Pass, dict[str, Metric]] = {}
    for (_, kind, _), members in requests.items():
        parts = (part for metric in members for part in metric.plain())
        wanted.setdefault(kind, {}).update({part.id: part for part in parts})
    samples, values, names = _collect(results, {k: m.values() for k, m in wanted.items()}, seed)
    lines: list[Line] = []
    for (by, kind, split), members in requests.items():
        rows = values[kind.keys].drop("pool").rows()
        for metric in members:
            # within a relation one number has both names
            for ways in [over] if "relation" in by else [[way] for way in over]:
                outputs = Outputs(samples[kind], names, len(rows), split, ways[0])
                lines += _lines(outputs, metric, by, kind.keys, rows, ways, seed)
    for special in metrics:
        if isinstance(special, Special):
            for id, way, by, group, value, low, high, n, size in special.compute(results, seed):
                numbers = (value, low, high, np.nan, np.nan, n, size)
                lines.append((id, "value", way, None, None, by, group, *numbers))
    split = any("relation" in _keys(group) for group in groups)
    for one in contrasts:
        axis = _keys(one.axis)
        cells = results.table().select(axis).collect()
        known = cells.drop_nulls().unique().sort(axis).rows()
        reference = one.reference if isinstance(one.reference, tuple) else (one.reference,)
        if reference in (("first",), ("last",)) and reference not in known:
            reference = known[0 if reference == ("first",) else -1][:1]
        chosen = [
            metric
            for metric in plain
            if (not one.metrics or metric.id in one.metrics)
            and not {part.by for part in metric.plain()} & {*axis}
        ]
        parts = {
            value: replace(results, rows=results.rows.filter(_equal(cells, value)))
            for value in known
        }
        base = replace(results, rows=results.rows.filter(_equal(cells, reference)))
        for value, part in parts.items():
            if value[: len(reference)] != reference:
                labels = list(axis), list(map(str, value)), ", ".join(map(str, reference))
                lines += _differences(part, base, chosen, over, seed, split, *labels)
    return _frame(lines)


def _keys(group: str | Keys | Group) -> Keys:
    by = group.by if isinstance(group, Group) else group
    return (by,) if isinstance(by, str) else tuple(by)


def _equal(cells: pl.DataFrame, values: tuple[Any, ...]) -> pl.Series:
    pairs = zip(cells.columns, values, strict=False)
    return cells.select(pl.all_horizontal(col(name) == value for name, value in pairs)).to_series()


def _lines(
    outputs: Outputs,
    metric: Metric,
    by: Keys,
    keys: Keys,
    rows: Sequence[tuple[Any, ...]],
    ways: Sequence[Over],
    seed: int,
) -> Iterator[Line]:
    for of, codes, numbers in outputs.lines(metric, seed):
        for code, (value, low, high, p, n, size) in zip(
            codes.tolist(), numbers.tolist(), strict=True
        ):
            named = dict(zip(keys, rows[code % len(rows)], strict=True))
            if outputs.split:
                named["relation"] = outputs.names[code // len(rows)]
            if not np.isnan(value):
                group = [str(named[name]) for name in by]
                numbers_of = (value, low, high, p, np.nan, n, size)
                yield from (
                    (metric.id, of, way, None, None, list(by), group, *numbers_of) for way in ways
                )
        if not by and np.isnan(numbers[:, 0]).all():
            yield (metric.id, of, ways[0], None, None, [], [], *[np.nan] * 5, 0, 0)


def _differences(
    first: "Results",
    reference: "Results",
    metrics: Sequence[Metric],
    over: Sequence[Over],
    seed: int,
    split: bool,
    axis: Sequence[str] = (),
    group: Sequence[str] = (),
    name: str | None = None,
) -> Iterator[Line]:
    """Paired differences between two sets of rows, on the facts that both measure."""
    clusters = Clusters(first.facts, first.rows)
    plain = {part.id: part for metric in metrics for part in metric.plain()}
    plain = {id: replace(part, baseline=None, chance=None) for id, part in plain.items()}
    units: list[dict[str, list[pl.DataFrame]]] = [{id: [] for id in plain} for _ in range(2)]
    for results, tables in zip((first, reference), units, strict=True):
        for _, members, frame in _units(
            results, {Pass(): plain.values()}, {(): _groups(results, ())}
        ):
            for metric in members:
                tables[metric.id].append(frame)
    here, there = (
        results.facts.select(col("relation").cast(pl.String), "fact", col("fact_no").cast(pl.Int64))
        for results in (first, reference)
    )
    places = here.join(there, on=("relation", "fact"), suffix="_there").select(pl.exclude(FACT))
    samples = {}
    for id, metric in plain.items():
        by = [metric.by] if metric.by not in ("", "relation") else []
        columns = {f"{id}/num": f"{id}/baseline", f"{id}/den": f"{id}/reference"}
        left, right = (
            pl.concat(tables[id])
            .select(col("fact_no").cast(pl.Int64), *by, *columns)
            .with_columns(col(pl.Enum).cast(pl.String))
            for tables in units
        )
        right = right.rename({**columns, "fact_no": "fact_no_there"}).join(
            places, on="fact_no_there"
        )
        both = left.join(right, on=["fact_no", *by]).sort("fact_no")
        labels: dict[Any, int] = {}
        sample = Sample(labels, list(_strata(metric, both, clusters, 1, labels)))
        samples[id] = _sorted(sample) if labels else sample
    _resample(samples.values(), clusters.names, seed)
    lines: list[Line] = []
    for metric in metrics:
        for ways, apart in (*(([way], False) for way in over), *([(over, True)] if split else [])):
            outputs = Outputs(samples, clusters.names, 1, apart, ways[0], paired=True)
            columns = ["relation"] if apart else []
            lines += _lines(outputs, metric, (*columns,), (), [()], ways, seed)
    for id, of, way, _, _, inner, place, *numbers in lines:
        if of == "difference":
            yield (id, of, way, None, name, [*axis, *inner], [*group, *place], *numbers)


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
    lines = _differences(first, reference, plain, over, seed, True)
    return _frame(list(lines)).with_columns((col("p_adjusted") * looks).clip(0.0, 1.0))


def draws(results: "Results", metric: Metric, over: Over = "relations", seed: int = 0) -> Floats:
    """An estimate and its bootstrap draws, [1 + draws]; nan if it is not measured."""
    samples, _, names = _collect(results, {Pass(): list(metric.plain())}, seed)
    return Outputs(samples[Pass()], names, 1, over=over).draws(metric, np.zeros(1, np.int64))[0]


def estimate_results(results: "Results", seed: int = 0) -> pl.DataFrame:
    """What the probe of some results declares: its metrics, groups and contrasts."""
    probe = results.probe
    settings = {"groups": probe.groups, "contrasts": probe.contrasts, "seed": seed}
    return estimate(results, probe.metrics, **settings)
