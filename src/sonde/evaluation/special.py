"""Numbers that are no ratios of sums over facts, on the same draws as those that are.

How far the accuracy moves with the prompts, how far templates are biased before they name a
subject, how hand-written templates rank, and how overconfidence differs between templates.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from polars import col

from sonde.core.texts import folded
from sonde.evaluation import stats
from sonde.evaluation.estimate import Clusters, Line, Metric, Special
from sonde.evaluation.stats import DRAWS, Floats, Ints, random_generator, resampled_sums

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

Draw = Literal["relation", "pair"]
DRAWN: dict[Draw, str] = {"relation": "a template per relation", "pair": "a prompt per fact"}


def _line(
    id: str, relation: str, value: float, n: float, clusters: float, ends: Any = (np.nan, np.nan)
) -> Line:
    low, high = ends
    place = (["relation"], [relation]) if relation else ([], [])
    return id, *place, value, min(low, value), max(high, value), n, clusters


def prompt_sensitivity(draws: int = 50_000) -> Special:
    """How far the accuracy depends on which prompts are sent.

    Fluctuation: range and standard deviation of the accuracy over draws of prompts. "relation":
    each draw takes one template per relation, and for each fact one of its names. "pair": each draw
    takes one of a fact's prompts for every fact. The distribution of the number of correct facts is
    computed exactly, and the draws are taken from it. The range grows with the number of draws, and
    has no interval. That of the standard deviation is the bootstrap of the closed form over
    clusters of facts, shifted to have the value as its mean, because resampled facts make templates
    differ more.

    Rank: the mean rank of hand-written templates among all of their relation by accuracy, 1 is
    best. Templates of equal accuracy share their mean rank. n counts hand-written templates;
    relations without them, or without others, do not count.
    """
    numbers = (
        ("range", "range", "best minus worst accuracy"),
        ("stdev", "SD", "standard deviation of the accuracy"),
        ("closed_form", "closed form", "exact standard deviation"),
    )
    fluctuations = [
        Metric(
            f"fluctuation.{draw}.{id}", label=f"fluctuation, {label}", better="lower",
            help=f"{help} over draws of {what}",
        )
        for draw, what in DRAWN.items() for id, label, help in numbers
    ]  # fmt: skip
    rank = Metric(
        "manual.rank", label="rank of manual templates", unit="number", better="",
        help="mean rank by accuracy in the relation; 1 is best",
    )  # fmt: skip
    chance = Metric(
        "manual.rank_by_chance", label="… by chance", unit="number", better="",
        help="mean of (number of templates + 1) / 2",
    )  # fmt: skip

    def fluctuation(
        draw: Draw, parts: Sequence[Any], numbers: Floats, relation: str
    ) -> Iterator[Line]:
        if max((choices for *_, choices in parts), default=0) < 2:
            return  # there is nothing to draw
        distribution = stats.sum_distribution([part[0] for part in parts])
        n, below = len(distribution) - 1, np.cumsum(distribution)
        # looking up 50,000 numbers one by one takes ten times as long (LAMA: 0.6 ms)
        counts = np.diff(np.searchsorted(numbers, below / below[-1]), prepend=0)
        accuracies = np.repeat(np.arange(n + 1) / n, counts)
        variances = np.sum([part[1] for part in parts], axis=0)
        variances[1:] += variances[0] - variances[1:].mean()
        deviations = np.sqrt(np.maximum(variances, 0.0)) / n
        clusters = sum(part[2] for part in parts)
        for id, value in (("range", np.ptp(accuracies)), ("closed_form", deviations[0])):
            yield _line(f"fluctuation.{draw}.{id}", relation, value, n, clusters)
        ends = stats.bootstrap_interval(deviations, clusters, len(parts)).clip(0.0)
        yield _line(f"fluctuation.{draw}.stdev", relation, accuracies.std(), n, clusters, ends)

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        # of each relation the distribution of the number of correct facts, its variance with draws,
        # clusters, and the most prompts that a fact can be drawn from
        parts: dict[Draw, list[Any]] = {draw: [] for draw in DRAWN}
        sources = results.templates.filter(source="manual").select("relation", "template_no")
        ranks: list[tuple[Floats, float, int, int]] = []
        clusters = Clusters(results)
        numbers = {
            draw: np.sort(random_generator(seed, f"fluctuation:{draw}").random(draws))
            for draw in DRAWN
        }
        rows = results.rows.select("relation", "fact_no", "template_no", "correct")
        for part in rows.sort("relation").partition_by("relation", maintain_order=True):
            relation = part["relation"][0]
            facts, row = np.unique(part["fact_no"], return_inverse=True)
            templates, column = np.unique(part["template_no"], return_inverse=True)
            prompts, correct = np.zeros((2, len(facts), len(templates)))
            np.add.at(prompts, (row, column), 1)
            np.add.at(correct, (row, column), part["correct"].to_numpy())
            rates = correct / np.maximum(prompts, 1)
            of_templates = rates.sum(axis=0) / (prompts > 0).sum(axis=0)
            of_facts = correct.sum(axis=1, keepdims=True) / prompts.sum(axis=1, keepdims=True)
            # a fact that was not prompted with a template answers with any of its prompts
            answers = np.where(prompts > 0, rates, of_facts), of_facts
            inner = [(rates * (1 - rates)).mean(axis=1) for rates in answers]
            columns = np.column_stack([np.ones(len(facts)), *inner, answers[0]])
            place = clusters.place[facts]
            sums = np.zeros((clusters.sizes[clusters.relation[facts[0]]], columns.shape[1]))
            np.add.at(sums, place, columns)
            drawn = resampled_sums(sums, random_generator(seed, relation))
            # scaled to the number of facts, in which draws of clusters differ
            drawn *= len(facts) / np.where(drawn[:, :1] > 0, drawn[:, :1], np.inf)
            table = np.vstack([columns.sum(axis=0), drawn])
            variances = table[:, 3:].var(axis=1) + table[:, 1], table[:, 2]
            choices, n_clusters = (len(templates), prompts.sum(axis=1).max()), len(np.unique(place))
            for i, draw in enumerate(DRAWN):
                distribution = stats.success_distribution(answers[i])
                parts[draw].append((distribution, variances[i], n_clusters, choices[i]))
                yield from fluctuation(draw, parts[draw][-1:], numbers[draw], relation)
            by_hand = sources.filter(col("relation") == relation)["template_no"]
            manual = np.isin(templates, by_hand)
            if 0 < (count := int(manual.sum())) < len(manual):
                accuracies = np.vstack([of_templates, drawn[:, 3:]])
                chosen, others = accuracies[:, manual, None], accuracies[:, None]
                better = ((others > chosen) + (others == chosen) / 2).sum(axis=(1, 2))
                by_chance = count * (len(manual) + 1) / 2
                ranks.append((better + count / 2, by_chance, count, n_clusters))
        for draw in DRAWN:
            yield from fluctuation(draw, parts[draw], numbers[draw], "")
        if ranks:
            totals: Any = map(sum, zip(*ranks, strict=True))
            means, by_chance, n, n_clusters = totals
            ends = stats.bootstrap_interval(means / n, n_clusters, len(ranks), centered=True)
            yield _line("manual.rank", "", means[0] / n, n, n_clusters, ends)
            yield _line("manual.rank_by_chance", "", by_chance / n, n, n_clusters)

    return Special((*fluctuations, rank, chance), compute)


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
    table = table.cast({"relation": results.facts.schema["relation"]})
    table = table.sort("relation", "template_no", "subject")
    for part in table.partition_by("relation", maintain_order=True):
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
        yield part["relation"][0], templates, [names[i] for i in chosen.tolist()], shares


def template_bias() -> Special:
    """Bias level of templates with subjects that state nothing, and of the average of a relation's.

    The interval is over templates within their relation: how the numbers would move with other
    wordings. Resampling can only raise that of the average, so its draws are shifted.
    """
    single = Metric(
        "bias.single", label="bias level, one template", unit="number", better="lower",
        help="of a template without a subject; 0: even, 1: one candidate",
    )  # fmt: skip
    multi = Metric(
        "bias.multi", label="bias level, all templates", unit="number", better="lower",
        help="of the average of a relation's templates",
    )  # fmt: skip

    def lines(relation: str, parts: Sequence[tuple[int, Floats, Floats]]) -> Iterator[Line]:
        counts, levels, averages = zip(*parts, strict=True)
        n, strata = sum(counts), len(parts)
        one, average = np.average(levels, axis=0, weights=counts), np.mean(averages, axis=0)
        for metric, draws in ((single, one), (multi, average)):
            # with one template in each relation there is none to compare it with
            ends = stats.bootstrap_interval(draws, n, strata, metric is multi).clip(0.0, 1.0)
            yield _line(metric.id, relation, draws[0], n, n, ends)

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        names, parts = Clusters(results).names, []
        for relation, templates, _, shares in candidate_shares(results):
            n, rng = len(templates), random_generator(seed, f"bias:{names.index(relation)}")
            drawn = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
            weights = np.vstack([np.ones(n), drawn]) / n
            parts.append((n, weights @ bias_level(shares), bias_level(weights @ shares)))
            yield from lines(relation, parts[-1:])
        if parts:
            yield from lines("", parts)

    return Special((single, multi), compute)


def template_overconfidence(
    min_prompts: int, probability: str = "confidence", where: Any = True
) -> Special:
    """Overconfidence of the templates with at least some number of graded prompts.

    The intervals of mean and standard deviation are over templates, and n is their number. The
    lowest and the highest have none, and their n is the number of prompts.
    """
    mean, stdev, lowest, highest = metrics = tuple(
        Metric(
            f"template_overconfidence.{id}", label=f"overconfidence of templates, {label}",
            unit="points", better="zero" if id == "mean" else "",
            help=f"of templates with {min_prompts:,} prompts or more",
        )
        for id, label in (("mean", "mean"), ("stdev", "SD"), ("min", "lowest"), ("max", "highest"))
    )  # fmt: skip

    def compute(results: "Results", seed: int) -> Iterator[Line]:
        key = ("relation", "template_no")
        rows = results.table().filter(col(probability).is_not_null() & where)
        gap = (col(probability).cast(pl.Float64) - col("correct")).mean()
        templates = rows.group_by(key).agg(gap=gap, n=pl.len(), clusters=col("cluster").n_unique())
        table = templates.filter(col("n") >= min_prompts).sort(key).collect()
        if table.is_empty():
            return
        value, n = table["gap"].to_numpy(), table.height
        columns = np.column_stack([value, value**2])
        drawn = resampled_sums(columns, random_generator(seed, "by template"))
        average, square = np.vstack([columns.sum(axis=0), drawn]).T / n
        yield _line(mean.id, "", average[0], n, n, stats.bootstrap_interval(average, n))
        if n > 1:
            deviations = np.sqrt(np.maximum(square - average**2, 0) * n / (n - 1))
            ends = stats.bootstrap_interval(deviations, n, centered=True).clip(0.0)
            yield _line(stdev.id, "", value.round(12).std(ddof=1), n, n, ends)
        for metric, at in ((lowest, value.argmin()), (highest, value.argmax())):
            yield _line(metric.id, "", *table.row(int(at))[2:])

    return Special(metrics, compute)
