"""Pairs of conditions: which is better, on which facts, and what could have been found.

Differences are paired by fact and follow the engine's test: p alone decides. Knows no run folder
and no report.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, sqrt
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned, Condition, describe_differences
from sonde.core.errors import UsageError
from sonde.evaluation.estimate import Metric, contrast, estimate
from sonde.evaluation.stats import LEVEL, Z, holm
from sonde.evaluation.tables import Results
from sonde.reports.cells import Estimate, number

CORRECT = Metric(
    "correct",
    num=col("correct").cast(pl.Float64).mean(),
    label="accuracy",
    help="share of a fact's prompts that are answered correctly",
)
KNOWN = 0.5  # a condition knows a fact if more than this share of its prompts is correct
POWER = 0.841621  # standard errors above the limit of the test, for 80% of samples
Word = Literal["better", "worse", "none", "best", "not concluded"]


class Difference(NamedTuple):
    """A paired difference on shared facts. `smallest`: what 80% of such samples would find."""

    first: str
    reference: str
    estimate: Estimate
    p_adjusted: float | None
    smallest: float | None
    unit: str = "points"

    @property
    def significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of a comparison.

    Args:
        word: the second of two runs relative to the first; of several, whether one is best.
        best: the runs that may be best.
        difference: second minus first; of several, the best minus the next.
        ranks: the range of ranks of each run.
        metric: what was compared.
    """

    sentence: str
    word: Word
    best: tuple[str, ...]
    difference: Difference
    facts: int
    ranks: dict[str, tuple[int, int]]
    values: dict[str, Estimate]
    metric: Metric

    def __str__(self) -> str:
        return self.sentence

    def described(self) -> dict[str, object]:
        """It as plain data."""
        difference = self.difference
        return {
            "sentence": self.sentence,
            "word": self.word,
            "best": list(self.best),
            "facts": self.facts,
            "metric": self.metric.id,
            "difference": difference.estimate._asdict()
            | {"first": difference.first, "reference": difference.reference}
            | {"p_adjusted": difference.p_adjusted, "smallest": difference.smallest},
            "ranks": {name: list(ranks) for name, ranks in self.ranks.items()},
        }


def verdict_metric(aligned: Aligned) -> Metric:
    """The metric that decides: the probe's own, or the share of correct prompts between probes."""
    every = list(aligned.conditions.values())
    probe = every[0].results.probe
    if len({c.probe for c in every}) > 1:
        for c in every:
            if mixed := [n for n in c.results.probe.separate if _several(c.results, n)]:
                raise UsageError(
                    f"{c.name} has several values of {mixed[0]!r}, which are never pooled; compare "
                    f"runs of {c.probe!r} with each other"
                )
        return CORRECT
    layout = probe.layout
    wanted = layout.verdict or layout.headlines[0]
    metric = next(m for m in probe.metrics if isinstance(m, Metric) and m.id == wanted)
    return replace(metric, baseline=None, chance=None)


def _several(results: Results, column: str) -> bool:
    return column in results.rows.columns and results.rows[column].n_unique() > 1


def fact_values(results: Results, metric: Metric) -> Results:
    """The same with a row per fact: what it adds to the metric, as columns num and den."""
    table = results.table()
    if metric.where is not None:
        table = table.filter(metric.where)
    if metric.view is not None:
        table = metric.view(table)
    assert metric.num is not None
    den = pl.lit(1.0) if metric.den is None else metric.den
    values = table.group_by("fact_no").agg(num=metric.num.cast(pl.Float64), den=den).collect()
    values = values.drop_nulls().filter(col("den") > 0).sort("fact_no")
    relation = results.facts["relation"].gather(values["fact_no"])
    rows = values.with_columns(relation=relation, template_no=pl.lit(0, pl.UInt16))
    return replace(results, rows=rows)


def differences(
    aligned: Aligned, metric: Metric, pairs: Iterable[tuple[str, str]], seed: int = 0
) -> list[Difference]:
    """First minus reference of each pair, every fact counting the same; p by Holm over pairs."""
    conditions, pairs = aligned.conditions, list(pairs)
    simple = metric.stat is None and not metric.parts
    # facts are aggregated once, because the pairs of 49 models are 1,176
    parts = {
        n: fact_values(c.results, metric) if simple else c.results for n, c in conditions.items()
    }
    one = metric
    if simple:
        one = replace(
            metric,
            num=col("num").sum(),
            den=col("den").sum(),
            where=None,
            view=None,
            counts="facts",
        )
    found = []
    for first, reference in pairs:
        lines = contrast(parts[first], parts[reference], [one], over=("facts",), seed=seed)
        line = lines.filter(col("group_by").list.len() == 0).row(0, named=True)
        estimate = Estimate(*(line[name] for name in ("value", "low", "high", "n", "p")))
        smallest = _smallest(parts[first], parts[reference]) if simple else None
        found.append((first, reference, estimate, smallest))
    known = [f[2].p for f in found if f[2].p is not None]
    adjusted = iter(holm(known))
    unit = {"percent": "points"}.get(metric.unit, metric.unit)
    return [
        Difference(first, reference, e, None if e.p is None else next(adjusted), smallest, unit)
        for first, reference, e, smallest in found
    ]


def _smallest(first: Results, reference: Results) -> float | None:
    """The smallest difference that this test finds in 80% of samples of as many clusters.

    As many clusters change as here, or as many as the difference needs; for 0/1 outcomes the test
    is McNemar's, computed exactly up to 400 clusters. None if no difference is found so often.
    """
    both = first.rows.join(reference.rows, on="fact_no", suffix="_there")
    gap = both["num"] / both["den"] - both["num_there"] / both["den_there"]
    cluster = first.facts["cluster"].gather(both["fact_no"])
    sums = pl.DataFrame({"cluster": cluster, "gap": gap}).group_by("cluster").agg(col("gap").sum())
    gaps = sums["gap"].to_numpy() * (sums.height / max(both.height, 1))
    n, square = len(gaps), float((gaps**2).mean())
    exact = n <= 400 and bool(np.isin(gaps, (-1, 0, 1)).all())
    for difference in np.linspace(0.005, 1, 200):
        spread = max(square, difference**2, difference if exact else 0.0)
        if exact:
            enough = _mcnemar_power(n, difference, spread) >= 0.8
        else:
            error = sqrt(spread / n), sqrt(max(spread - difference**2, 0.0) / n)
            enough = difference >= Z * error[0] + POWER * error[1]
        if enough:
            return float(difference)
    return None


def _mcnemar_power(n: int, difference: float, changed: float) -> float:
    """The probability of p < 0.05 if each of n clusters changes, the better way more often."""
    from scipy.stats import binom

    m = np.arange(6, n + 1)  # fewer changes never reach 5%
    losses = binom.ppf(LEVEL / 2, m, 0.5) - 1  # the most that still give p below 5%
    worse = (1 - difference / changed) / 2
    return float((binom.pmf(m, n, changed) * binom.cdf(losses, m, worse)).sum())


def verdict(aligned: Aligned, seed: int = 0) -> Verdict:
    """Which condition is better. Nothing is concluded if most answers of one are empty."""
    metric, names = verdict_metric(aligned), aligned.names
    values = {n: _value(c, metric, seed) for n, c in aligned.conditions.items()}
    sign = -1.0 if metric.better == "lower" else 1.0
    order = sorted(names, key=lambda n: (-sign * (values[n].value or 0.0), names.index(n)))
    pairs = [(names[1], names[0])] if len(names) == 2 else list(combinations(order, 2))
    found = differences(aligned, metric, pairs, seed)
    ranks = _ranks(names, found, sign)
    best = tuple(name for name, (rank, _) in ranks.items() if rank == 1)
    lead = found[0]
    n, total = lead.estimate.n, len(names)
    shares = {name: f"{name} ({number(values[name].value, metric.unit)})" for name in order}
    if total == 2:
        second, first = pairs[0]
        better = sign * (lead.estimate.value or 0.0) > 0
        word: Word = ("better" if better else "worse") if lead.significant else "none"
        sentence = (
            f"{second} is {word} than {first}"
            if word != "none"
            else f"No significant difference between {first} and {second}"
        )
        sentence += f": {change(lead)}"
    elif best == (order[0],):
        word = "best"
        sentence = f"{shares[order[0]]} is best of {total}, ahead of {shares[order[1]]}"
        sentence += f": {change(lead)}"
    else:
        word = "none"
        some = "No significant difference among" if len(best) == total else "Best is one of"
        sentence = f"{some} {', '.join(shares[name] for name in order if name in best)}"
    if empty := [text for c in aligned.conditions.values() if (text := _emptiness(c))]:
        word, best = "not concluded", ()
        sentence = f"No conclusion is drawn: most answers of {' and '.join(empty)}"
    apart = describe_differences(aligned)
    more = f"{n:,} shared fact{'s' * (n != 1)}" + (f"; {apart}" if apart else "")
    return Verdict(
        sentence=f"{sentence} ({more})",
        word=word,
        best=best,
        difference=lead,
        facts=n,
        ranks=ranks,
        values=values,
        metric=metric,
    )


def _value(condition: Condition, metric: Metric, seed: int) -> Estimate:
    lines = estimate(condition.results, [metric], over=("facts",), seed=seed)
    line = lines.filter(col("of") == "value").row(0, named=True)
    return Estimate(*(line[name] for name in ("value", "low", "high", "n")))


def _ranks(
    names: Sequence[str], found: Sequence[Difference], sign: float
) -> dict[str, tuple[int, int]]:
    """From and to of each: after every one that is significantly better, before every worse one."""
    better = dict.fromkeys(names, 0)
    worse = dict.fromkeys(names, 0)
    for d in found:
        if d.significant:
            ahead = sign * (d.estimate.value or 0.0) > 0
            winner, loser = (d.first, d.reference) if ahead else (d.reference, d.first)
            better[loser] += 1
            worse[winner] += 1
    return {name: (1 + better[name], len(names) - worse[name]) for name in names}


def change(d: Difference) -> str:
    """A difference with its interval and p."""
    e, points = d.estimate, " points" if d.unit == "points" else ""
    inside = []
    if e.low is not None and e.high is not None:
        inside.append(f"95% CI {number(e.low, d.unit)} to {number(e.high, d.unit)}")
    if d.p_adjusted is not None:
        inside.append(f"p = {number(d.p_adjusted, 'p')}".replace("= <", "< "))
    return f"{number(e.value, d.unit)}{points}" + (f" ({', '.join(inside)})" if inside else "")


def _emptiness(condition: Condition) -> str:
    rows = condition.results.rows
    if "answer" not in rows.columns or "generate" not in condition.task:
        return ""
    written = rows.filter(col("answer_mode").cast(pl.String) == "generate")
    empty = int((written["answer"].cast(pl.String) == "").sum())
    if 2 * empty <= written.height:
        return ""
    return f"{condition.name} are empty ({empty:,} of {written.height:,})"


def changed_facts(aligned: Aligned) -> pl.DataFrame:
    """Every shared fact with the answer of each condition, its most frequent one, the share of
    correct prompts and the mean confidence: columns `answer NAME`, `correct NAME`, `confidence
    NAME`. Of two conditions also `change`: gained, lost, more or less often correct.
    """
    frame = aligned.facts.select(
        "fact_no", col("relation").cast(pl.String), "fact", "subject", "gold"
    )
    for name, condition in aligned.conditions.items():
        rows = condition.results.rows
        means = [
            col(column).cast(pl.Float64).mean().alias(f"{column} {name}")
            for column in ("correct", "confidence")
            if column in rows.columns
        ]
        values = rows.group_by("fact_no").agg(means)
        if "answer" in rows.columns:
            texts = rows.select("fact_no", col("answer").cast(pl.String)).drop_nulls()
            counts = texts.group_by("fact_no", "answer").len()
            counts = counts.sort("len", "answer", descending=[True, False])
            top = counts.unique("fact_no", keep="first").select(
                "fact_no", col("answer").alias(f"answer {name}")
            )
            frame = frame.join(top, on="fact_no", how="left", maintain_order="left")
        frame = frame.join(values, on="fact_no", how="left", maintain_order="left")
    frame = frame.drop("fact_no")
    names = aligned.names
    if len(names) != 2 or not {f"correct {name}" for name in names} <= set(frame.columns):
        return frame
    before, after = (col(f"correct {name}") for name in names)
    return frame.with_columns(
        change=pl.when((before <= KNOWN) & (after > KNOWN))
        .then(pl.lit("gained"))
        .when((before > KNOWN) & (after <= KNOWN))
        .then(pl.lit("lost"))
        .when(after > before)
        .then(pl.lit("more often correct"))
        .when(after < before)
        .then(pl.lit("less often correct"))
    )


def flipped(facts: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The facts that some conditions know and others do not, the largest differences first."""
    shares = [col(f"correct {name}") for name in names]
    known = [share > KNOWN for share in shares]
    apart = pl.max_horizontal(shares) - pl.min_horizontal(shares)
    some = facts.filter(pl.any_horizontal(known) & ~pl.all_horizontal(known))
    return some.sort(apart, descending=True, maintain_order=True)


def by_group(
    aligned: Aligned, metric: Metric, reference: str, columns: Sequence[str], seed: int = 0
) -> pl.DataFrame:
    """Differences from the reference in each value of some columns, and in each relation.

    p_adjusted is Holm's over the groups of one column and condition; groups under five facts are
    merged into "other". Columns: run, column, group, value, low, high, p, p_adjusted, n.
    """
    lines = []
    base = aligned.conditions[reference].results
    for name, condition in aligned.conditions.items():
        if name == reference:
            continue
        for column in columns:
            texts = condition.results.table(["fact_no", column]).unique().collect()
            texts = texts.explode(column) if texts[column].dtype == pl.List else texts
            texts = texts.drop_nulls().with_columns(col(column).cast(pl.String))
            sizes = texts.group_by(column).agg(n=col("fact_no").n_unique())
            if sizes.height < 2:
                continue
            few = sizes.filter(col("n") < 5)[column].to_list()
            label = pl.when(col(column).is_in(few)).then(pl.lit("other")).otherwise(column)
            groups = texts.select("fact_no", group=label).unique()
            found = []
            if column == "relation" and not few:
                lines_of = contrast(condition.results, base, [metric], over=("facts",), seed=seed)
                for line in lines_of.iter_rows(named=True):
                    if line["group_by"]:
                        numbers = [line[k] for k in ("value", "low", "high", "p", "n")]
                        found.append([name, column, line["group"][0], *numbers])
                sizes = sizes.clear()
            for group in sorted(groups["group"].unique()) if not sizes.is_empty() else ():
                facts = groups.filter(col("group") == group)["fact_no"].implode()
                first, second = (
                    replace(r, rows=r.rows.filter(col("fact_no").is_in(facts)))
                    for r in (condition.results, base)
                )
                table = contrast(first, second, [metric], over=("facts",), seed=seed)
                line = table.filter(col("group_by").list.len() == 0).row(0, named=True)
                numbers = [line[k] for k in ("value", "low", "high", "p", "n")]
                found.append([name, column, group, *numbers])
            adjusted = iter(holm([f[6] for f in found if f[6] is not None]))
            for f in found:
                p = None if f[6] is None else next(adjusted)
                lines.append((*f[:7], p, f[7]))
    names = ("run", "column", "group", "value", "low", "high", "p", "p_adjusted", "n")
    types = (pl.String,) * 3 + (pl.Float64,) * 5 + (pl.UInt32,)
    return pl.DataFrame(lines, dict(zip(names, types, strict=True)), orient="row")


def needed(d: Difference) -> str:
    """What this comparison could find, in a sentence."""
    if d.smallest is None or d.unit != "points":
        return ""
    half = ceil(4 * d.estimate.n / 10) * 10
    return (
        f"With these {d.estimate.n:,} facts a difference of {100 * d.smallest:.1f} points is found "
        f"in 80% of samples. Half of it takes about {half:,} facts."
    )
