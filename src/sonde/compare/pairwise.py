"""Pairs of conditions: which is better, on which facts, what could have been found; how alike.

Differences are paired by fact and follow the engine's test: p alone decides. Knows no run folder
and no report.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import col

from sonde.compare.conditions import Aligned, Condition, caveats, shared_rows
from sonde.core.errors import UsageError
from sonde.evaluation.estimate import (
    FEWEST,
    FLIPS,
    Metric,
    bootstrap_draws,
    estimate,
    paired_differences,
)
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import (
    FLAT,
    LEVEL,
    Z,
    flipped_sums,
    holm_corrected,
    interval_widening,
    kendall_tau_b,
    max_t_test,
    pearson,
    random_generator,
)
from sonde.evaluation.tables import Results
from sonde.reports.cells import Estimate, format_number

CORRECT = Metric(
    "correct",
    num=col("correct").cast(pl.Float64).mean(),
    label="accuracy",
    help="share of a fact's prompts that are answered correctly",
)
KNOWN = 0.5  # a condition knows a fact if more than this share of its prompts is correct
POWER = 0.841621  # standard errors above the limit of the test, for 80% of samples


class Difference(NamedTuple):
    """A paired difference on shared facts. `smallest`: what 80% of such samples would find."""

    first: str
    reference: str
    estimate: Estimate
    p_adjusted: float | None
    smallest: float | None
    unit: str

    @property
    def significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


class Leaderboard(NamedTuple):
    """Conditions from the best: values whose intervals hold together, ranges of ranks that do, and
    the difference between the first two."""

    values: dict[str, Estimate]
    ranks: dict[str, tuple[int, int]]
    lead: Difference


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of a comparison.

    Args:
        word: "better" or "worse" if the second of two runs is; of several, "best" if one is; else
            "none", or "not concluded".
        best: the runs that may be best.
        difference: second minus first; of several, the best minus the next.
        ranks: the range of ranks of each run.
        metric: what was compared.
    """

    sentence: str
    word: str
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
        difference = self.difference._asdict()
        estimate = difference.pop("estimate")._asdict()
        values = {name: e._asdict() for name, e in self.values.items()}
        difference |= estimate
        return vars(self) | {"metric": self.metric.id, "difference": difference, "values": values}


def verdict_metric(aligned: Aligned) -> Metric:
    """The metric that decides: the probe's own, or the share of correct prompts between probes."""
    every = aligned.every
    probe = every[0].results.probe
    if len({c.probe for c in every}) > 1:
        for c in every:
            rows = c.results.rows
            for name in c.results.probe.separate:
                if name in rows.columns and rows[name].n_unique() > 1:
                    raise UsageError(
                        f"{c.name} has several values of {name!r}, which are never pooled; compare "
                        f"runs of {c.probe!r} with each other"
                    )
        return CORRECT
    layout = probe.layout
    metrics = {m.id: m for m in probe.metrics if isinstance(m, Metric) and not (m.stat or m.parts)}
    wanted = (layout.verdict, *layout.headlines, *metrics)
    return next((metrics[id] for id in wanted if id in metrics), CORRECT)


def fact_values(every: Iterable[Condition], metric: Metric) -> tuple[dict[str, Results], Metric]:
    """The results of conditions with a row per fact, what it adds to the metric as columns num and
    den, and the metric on these."""
    parts = {}
    den = pl.lit(1.0) if metric.den is None else metric.den
    for c in every:
        table = c.results.table()
        table = table if metric.where is None else table.filter(metric.where)
        table = metric.view(table) if metric.view else table
        assert metric.num is not None
        values = table.group_by("fact_no").agg(num=metric.num.cast(pl.Float64), den=den).collect()
        values = values.drop_nulls().filter(col("den") > 0).sort("fact_no")
        relation = c.results.facts["relation"].gather(values["fact_no"])
        rows = values.with_columns(relation=relation, template_no=pl.lit(0, pl.UInt16))
        parts[c.name] = replace(c.results, rows=rows)
    num, den = col("num").sum(), col("den").sum()
    return parts, replace(
        metric, num=num, den=den, where=None, view=None, baseline=None, counts="facts"
    )


def differences(
    aligned: Aligned, metric: Metric, pairs: Iterable[tuple[str, str]], seed: int = 0
) -> list[Difference]:
    """First minus reference of each pair, every fact counting the same; p by Holm over pairs."""
    pairs = list(pairs)
    # facts are aggregated once, because the pairs of 49 models are 1,176
    parts, one = fact_values(aligned.every, metric)
    estimates = []
    for a, b in pairs:
        lines = paired_differences(parts[a], parts[b], [one], over=("facts",), seed=seed)
        line = lines.filter(col("group_by").list.len() == 0).row(0, named=True)
        estimates.append(Estimate(*(line[name] for name in Estimate._fields)))
    p_values = [e.p for e in estimates if e.p is not None]
    corrected: dict[float | None, float] = dict(
        zip(p_values, holm_corrected(p_values), strict=True)
    )
    unit = "points" if metric.unit == "percent" else metric.unit
    return [
        Difference(a, b, e, corrected.get(e.p), _smallest(parts[a], parts[b]), unit)
        for (a, b), e in zip(pairs, estimates, strict=True)
    ]


def _cluster_sums(results: Results, values: pl.Series) -> np.ndarray:
    """Values of facts summed by cluster."""
    facts = results.facts[results.rows["fact_no"]].select("relation", "cluster", value=values)
    sums = facts.group_by("relation", "cluster", maintain_order=True).agg(col("value").sum())
    return sums["value"].to_numpy()


def _smallest(first: Results, reference: Results, reach: float = Z) -> float | None:
    """The smallest difference that this test finds in 80% of samples of as many clusters.

    As many clusters change as here, or as many as the difference needs; for 0/1 outcomes the test
    is McNemar's, computed exactly up to 400 clusters. None if no difference is found so often.
    """
    both = first.rows.join(reference.rows, on="fact_no", suffix="_reference")
    gap = both["num"] / both["den"] - both["num_reference"] / both["den_reference"]
    gaps = _cluster_sums(replace(first, rows=both), gap)
    n, size = len(gaps), both.height / len(gaps)
    square = float((gaps**2).mean())
    whole = bool((gaps % 1 == 0).all())  # 0/1 outcomes: then a square is at least the difference
    exact = reach == Z and n <= 400 and size == 1 and whole
    for difference in np.linspace(0.005, 1, 200):
        mean = difference * size  # of a cluster
        spread = max(square, mean if whole else mean**2)
        if exact:
            enough = _mcnemar_power(n, difference, spread) >= 0.8
        else:
            errors = sqrt(spread / n), sqrt(max(spread - mean**2, 0.0) / n)
            enough = mean >= reach * errors[0] + POWER * errors[1]
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


def leaderboard(aligned: Aligned, metric: Metric, seed: int = 0) -> Leaderboard:
    """The values of conditions on the facts that all of them measure, and their ranks.

    Bootstrap draws of all conditions give the intervals (max-t). For the ranks, the signs of whole
    clusters are flipped, in all conditions alike; the largest |t| of any pair in each flip decides
    how large a significant difference is. So it holds for all pairs together, and a rank range
    follows every condition that is significantly better and precedes every one that is worse.
    """
    parts, one = fact_values(aligned.every, metric)
    shared = shared_rows([part.rows for part in parts.values()], ["fact_no"])
    measured = col("fact_no").is_in(shared["fact_no"].implode())
    parts = {n: replace(p, rows=p.rows.filter(measured)) for n, p in parts.items()}
    sign = -1.0 if metric.better == "lower" else 1.0
    drawn = np.column_stack([bootstrap_draws(part, one, "facts", seed) for part in parts.values()])
    values: dict[str, Estimate] = {}
    for (name, part), half in zip(parts.items(), max_t_test(drawn)[0].tolist(), strict=True):
        line = estimate(part, [one], over=("facts",), seed=seed).row(0, named=True)
        value, low, high = line["value"], line["low"], line["high"]
        half *= float(interval_widening(line["n_clusters"], part.rows["relation"].n_unique()))
        if low is not None and len(parts) > 2:
            # no draw of an accuracy of 0 or 1 differs, but its own interval has a width
            low, high = min(low, value - half), max(high, value + half)
            if metric.unit == "percent":
                low, high = max(low, 0.0), min(high, 1.0)
        values[name] = Estimate(value, low, high, line["n"])
    order = sorted(parts, key=lambda name: -sign * (values[name].value or 0.0))
    values, n = {name: values[name] for name in order}, shared.height
    sums = np.column_stack([
        _cluster_sums(p, (p.rows["num"] - v * p.rows["den"]) / p.rows["den"].mean() + v)
        for p, v in ((parts[name], values[name].value or 0.0) for name in order)
    ])  # fmt: skip
    totals, products = sums.sum(axis=0), sums.T @ sums
    squares = np.add.outer(products.diagonal(), products.diagonal()) - 2 * products
    errors = np.sqrt(np.where(squares > FLAT * n, squares, np.inf))
    t = sign * np.subtract.outer(totals, totals) / errors
    critical = np.inf
    if len(order) == 2:
        base, other = aligned.names
        [lead] = differences(aligned, metric, [(other, base)], seed)
        critical = 0.0 if lead.significant else np.inf
    else:
        first, second, *_ = order
        unit = "points" if metric.unit == "percent" else metric.unit
        value, smallest = float(totals[0] - totals[1]) / n, None
        e = Estimate(value, n=n)
        if len(sums) >= FEWEST:
            flips = 2 * flipped_sums(sums, random_generator(seed, "leaderboard"), FLIPS) - totals
            gaps = (np.abs((flips[:, [i]] - flips) / e).max(axis=1) for i, e in enumerate(errors))
            largest = np.sort(reduce(np.maximum, gaps))
            critical = float(largest[-(ceil(LEVEL * (1 + FLIPS)) - 1)]) + FLAT
            p = (1 + int((largest >= abs(t[0, 1]) - FLAT).sum())) / (1 + FLIPS)
            half = critical * float(errors[0, 1]) / n
            e = Estimate(value, value - half, value + half, n, p)
            smallest = _smallest(parts[first], parts[second], critical)
        lead = Difference(first, second, e, e.p, smallest, unit)
    better = t > critical
    ranks = {
        name: (1 + int(better[:, i].sum()), len(order) - int(better[i].sum()))
        for i, name in enumerate(order)
    }
    return Leaderboard(values, ranks, lead)


def verdict(aligned: Aligned, seed: int = 0) -> Verdict:
    """Which condition is better. Nothing is concluded if most answers of one are empty."""
    metric, names = verdict_metric(aligned), aligned.names
    board = leaderboard(aligned, metric, seed)
    values, lead, order = board.values, board.lead, list(board.values)
    best = tuple(name for name in order if board.ranks[name][0] == 1)
    n, total = lead.estimate.n, len(names)
    shares = {name: f"{name} ({format_number(values[name].value, metric.unit)})" for name in order}
    word = "none"
    if total == 2:
        first, second = names
        sentence = f"No significant difference between {first} and {second}"
        if lead.significant:
            word = "better" if best == (second,) else "worse"
            sentence = f"{second} is {word} than {first}"
        elif not lead.estimate.value:
            sentence = f"{first} and {second} are tied"
        sentence += f": {change(lead)}"
    elif best == (order[0],):
        word = "best"
        sentence = f"{shares[order[0]]} is best of {total}, ahead of {shares[order[1]]}"
        sentence += f": {change(lead)}"
    else:
        some = "No significant difference among" if len(best) == total else "Best is one of"
        sentence = f"{some} {', '.join(shares[name] for name in best)}"
    if empty := [text for c in aligned.every if (text := _emptiness(c))]:
        word, best = "not concluded", ()
        sentence = f"No conclusion is drawn: most answers of {' and '.join(empty)}"
    about = [f"{n:,} shared fact{'s' * (n != 1)}"]
    if differs := [f"different {word}" for word, _ in caveats(aligned) if word]:
        same = ["same model"] * (len({c.model for c in aligned.every}) == 1)
        about.append(", ".join([*same, *differs]))
    return Verdict(
        sentence=f"{sentence} ({'; '.join(about)})",
        word=word,
        best=best,
        difference=lead,
        facts=n,
        ranks=board.ranks,
        values=values,
        metric=metric,
    )


def change(d: Difference) -> str:
    """A difference with its interval and p."""
    e, points = d.estimate, " points" if d.unit == "points" else ""
    inside = []
    if e.low is not None and e.high is not None:
        inside.append(f"95% CI {format_number(e.low, d.unit)} to {format_number(e.high, d.unit)}")
    if d.p_adjusted is not None:
        inside.append(f"p = {format_number(d.p_adjusted, 'p')}".replace("= <", "< "))
    return f"{format_number(e.value, d.unit)}{points}" + (
        f" ({', '.join(inside)})" if inside else ""
    )


def needed(d: Difference) -> str:
    """What this comparison could find, in a sentence."""
    if d.smallest is None or d.unit != "points":
        return ""
    half = ceil(4 * d.estimate.n / 10) * 10
    return (
        f"With these {d.estimate.n:,} facts a difference of {100 * d.smallest:.1f} points is found "
        f"in 80% of samples. Half of it takes about {half:,} facts."
    )


def _emptiness(condition: Condition) -> str:
    rows = condition.results.rows
    if "answer" not in rows.columns or "generate" not in condition.task:
        return ""
    generated = rows.filter(col("answer_mode").cast(pl.String) == "generate")
    empty = int((generated["answer"].cast(pl.String) == "").sum())
    if 2 * empty <= generated.height:
        return ""
    return f"{condition.name} are empty ({empty:,} of {generated.height:,})"


def changed_facts(aligned: Aligned) -> pl.DataFrame:
    """Every shared fact with the answer of each condition, its most frequent one, the share of
    correct prompts and the mean confidence: columns `answer NAME`, `correct NAME`, `confidence
    NAME`. `change` is "gained" or "lost" (of several "some") if only some know it, else null.
    """
    frame = aligned.facts.select(
        "fact_no", col("relation").cast(pl.String), "fact", "subject", "gold"
    )
    for c in aligned.every:
        rows = c.results.table(["fact_no", "answer", "correct", "confidence"]).collect()
        answer = col("answer").cast(pl.String).drop_nulls().mode().sort().first()
        means = col("correct", "confidence").cast(pl.Float64).mean()
        values = rows.group_by("fact_no").agg(e.name.suffix(f" {c.name}") for e in (answer, means))
        frame = frame.join(values, on="fact_no", how="left", maintain_order="left")
    known = [col(f"correct {name}") > KNOWN for name in aligned.names]
    change = pl.lit("some")
    if len(known) == 2:
        change = pl.when(known[1]).then(pl.lit("gained")).otherwise(pl.lit("lost"))
    differ = pl.any_horizontal(known) & ~pl.all_horizontal(known)
    return frame.drop("fact_no").with_columns(change=pl.when(differ).then(change))


def _per_key(aligned: Aligned, key: list[str], share: pl.Expr) -> pl.DataFrame:
    """A row per key that all conditions have (with an underscore), a column of `share` for each."""
    frames = (
        c.results.table([*key, "correct"])
        .group_by(col(key).name.prefix("_")).agg(share.alias(c.name)) for c in aligned.every
    )  # fmt: skip
    return reduce(lambda a, b: a.join(b, on=[f"_{name}" for name in key]), frames).collect()


def _known(aligned: Aligned, by_template: bool = False) -> pl.DataFrame:
    """What each condition knows: a row per fact, or per fact and template (if the answer for some
    alias is correct)."""
    if by_template:
        return _per_key(aligned, ["relation", "fact_no", "text"], col("correct").any())
    return _per_key(aligned, ["relation", "fact_no"], col("correct").mean() > KNOWN)


def known_in_one(aligned: Aligned) -> tuple[float, int]:
    """Of everything that some condition knows, the share that only one does, and how much it is."""
    known = _known(aligned).select(aligned.names).sum_horizontal()
    total = int((known > 0).sum())
    return (int((known == 1).sum()) / total if total else float("nan")), total


def _matrix(aligned: Aligned, value: Callable[[str, str], Any]) -> pl.DataFrame:
    """`value(row, column)` of all pairs; None is not measured."""
    cells = [(a, b, value(a, b)) for a, b in product(aligned.names, repeat=2)]
    schema = {"y": pl.String, "x": pl.String, "color": pl.Float64}
    return pl.DataFrame(cells, schema, orient="row").drop_nulls()


def sharing(aligned: Aligned, by_template: bool = False) -> pl.DataFrame:
    """Of what the row knows, the share that the column knows too."""
    cells = _known(aligned, by_template)
    return _matrix(aligned, lambda a, b: cells.filter(col(a))[b].mean())


def subsumption(aligned: Aligned) -> pl.DataFrame:
    """η: the same per relation, averaged over the relations where the row knows any."""
    cells = _known(aligned)
    share = {
        a: cells.filter(col(a)).group_by("_relation").agg(pl.mean(*aligned.names))
        for a in aligned.names
    }
    return _matrix(aligned, lambda a, b: share[a][b].mean())


def correlation(aligned: Aligned) -> pl.DataFrame:
    """Pearson's r between the conditions' accuracies over relations; needs three relations."""
    facts = _per_key(aligned, ["relation", "fact_no"], col("correct").mean())
    values = facts.group_by("_relation").agg(pl.mean(*aligned.names).round(12))

    def value(a: str, b: str) -> float | None:
        r = pearson(values[a].to_numpy(), values[b].to_numpy())
        return r[0] if r else None

    return _matrix(aligned, value)


def rank_agreement(aligned: Aligned) -> pl.DataFrame:
    """Kendall's τ-b between the conditions' template accuracies, averaged over relations."""
    values = _per_key(aligned, ["relation", "text"], col("correct").mean())
    parts = values.partition_by("_relation")

    def value(a: str, b: str) -> float | None:
        taus = [kendall_tau_b(part[a].to_numpy(), part[b].to_numpy()) for part in parts]
        measured = [tau for tau in taus if tau is not None]
        return float(np.mean(measured)) if measured else None

    return _matrix(aligned, value)


MATRICES: Mapping[str, tuple[str, str, Callable[..., pl.DataFrame]]] = {
    "sharing": ("percent", "Share of the row's known facts that the column's run knows, too",
                sharing),
    "subsumption": ("percent", "The same per relation, averaged over relations (η)", subsumption),
    "correlation": ("number", "Pearson's r between accuracies over relations", correlation),
    "rank_agreement": ("number", "Kendall's τ-b between template accuracies", rank_agreement),
}  # fmt: skip


def heat(aligned: Aligned, kind: str, **options: bool) -> Exhibit:
    """A matrix as a figure; empty if no two conditions can be compared so."""
    unit, title, compute = MATRICES[kind]
    frame = compute(aligned, **options)
    frame = frame if (frame["x"] != frame["y"]).any() else frame.clear()
    return Exhibit(kind, title, frame, {"color": unit}, "heat", limit=1.0)
