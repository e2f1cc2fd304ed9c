"""How often answers are right over many prompts, how far that depends on the prompts drawn, and how
much a model can be brought to tell: by any prompt, by the best one, by further names.

Intervals are over pairs, resampled within their relation: how the numbers would move with other
facts of the same relations under the same templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from sonde.core.reports import Estimate
from sonde.metrics.estimates import Resampled, Sample
from sonde.metrics.judged import (
    Block,
    Bools,
    Floats,
    Grid,
    Ints,
    Judged,
    around,
    by_subject,
    resampled_in,
    stream,
)
from sonde.stats.distributions import drawn, independent, range_interval, successes, summed
from sonde.stats.intervals import DRAWS, resampled_sums

Draw = Literal["relation", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fluctuation:
    """How far the dataset's accuracy moves when other prompts are drawn.

    range: largest less smallest accuracy over the draws. Its interval is the Monte-Carlo error: the
    ranges that 95 of 100 other sets of as many draws would give, worked out exactly. It grows with
    the number of draws.
    stdev: standard deviation over the draws. Its interval is over pairs (see `fluctuation`).
    closed_form: the standard deviation without any draws. draws: the accuracies, [n].
    """

    range: Estimate
    stdev: Estimate
    closed_form: float
    draws: Floats


def right_shares(grid: Grid) -> Floats:
    """Share of each pair's prompts that are answered correctly; nan where it has none."""
    shares = np.full(len(grid.relations), np.nan)
    for block in grid.blocks:
        shares[block.pairs] = block.of_pairs
    return shares


def template_accuracies(grid: Grid) -> Floats:
    """Accuracy of each template: mean over its pairs of the share of names right; [templates].

    nan where a template was never asked.
    """
    found = np.full(len(grid.template_relations), np.nan)
    for block in grid.blocks:
        found[block.templates] = block.of_templates
    return found


def worst_best_mean(grid: Grid) -> tuple[Floats, Floats, Floats]:
    """What each pair adds to the accuracy of its relation's worst, best and average template."""
    worst, best, mean = np.full((3, len(grid.relations)), np.nan)
    for block in grid.blocks:
        counting = block.counting()
        worst[block.pairs] = counting[:, block.of_templates.argmin()]
        best[block.pairs] = counting[:, block.of_templates.argmax()]
        mean[block.pairs] = counting.mean(axis=1)
    return worst, best, mean


def one_word_rate(words: Floats | None, seed: int = 0, clusters: Ints | None = None) -> Estimate:
    """Share of answers that are exactly one word, given the number of words of each.

    Answers whose words cannot be counted (nan) are left out. `clusters`: which answers are
    resampled together, such as those about one pair; without it each is resampled alone.
    """
    if words is None or np.isnan(words).all():
        return Estimate.not_measured()
    counted = ~np.isnan(words)
    values = (words[counted] == 1).astype(np.float64)
    sample = Sample(values=values, clusters=None if clusters is None else clusters[counted])
    return sample.estimate(sample.draws(seed))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelationSpread:
    """What one relation adds to the fluctuation.

    choices: how many prompts a pair can be drawn from, at most. distribution of the number of pairs
    right. variance of that number, and under resampling of the pairs; [draws].
    """

    choices: int
    distribution: Floats
    variance: float
    variances: Floats


def relation_spread(block: Block, draw: Draw, seed: int = 0) -> RelationSpread:
    """How far the number of right pairs of a relation moves."""
    subjects = None if block.subjects is None else [block.subjects]
    (sums,) = resampled_in(block.stream, [spread_columns(block, draw)], seed, subjects)
    return spread_of(block, draw, sums)


def spread_columns(block: Block, draw: Draw) -> Floats:
    """What is summed of each pair to see how far their number moves; [pairs, k]."""
    rates = _rates(block, draw)
    return np.hstack([rates, (rates * (1 - rates)).mean(axis=1, keepdims=True)])


def spread_of(block: Block, draw: Draw, sums: Floats) -> RelationSpread:
    """How far it moves; sums [draws, k] of the columns when pairs are resampled."""
    rates = _rates(block, draw)
    within = rates * (1 - rates)
    return RelationSpread(
        choices=int(_choices(block, draw).max()),
        distribution=successes(rates) if draw == "relation" else independent(rates[:, 0]),
        variance=float(rates.sum(axis=0).var() + within.sum(axis=0).mean()),
        variances=sums[:, :-1].var(axis=1) + sums[:, -1],
    )


def _rates(block: Block, draw: Draw) -> Floats:
    """How likely each pair is right with what is drawn: [pairs, templates], or [pairs, 1]."""
    return _filled(block) if draw == "relation" else block.of_pairs[:, None]


def fluctuation(
    made: Sequence[RelationSpread], draw: Draw, n: int = 50_000, seed: int = 0
) -> Fluctuation | None:
    """Range and standard deviation of the dataset's accuracy over n draws of prompts.

    "relation": each draw takes one template per relation, and for each pair one of its names. A
    pair that was not asked under the template drawn answers with any of its prompts. "pair": each
    draw takes one of a pair's prompts for every pair, independently. The distribution of the number
    of pairs right is worked out exactly and the draws are taken from it.

    The interval of the standard deviation is the bootstrap of the closed form over pairs within
    relations, moved so that its mean is the value: resampled pairs make templates differ more.
    None where there is nothing to draw: no pair was asked under two templates ("relation"), or
    with two prompts ("pair").
    """
    if not any(of.choices > 1 for of in made):
        return None
    distribution = summed([of.distribution for of in made])
    pairs = len(distribution) - 1
    draws = drawn(distribution, n, stream(seed, f"fluctuation:{draw}")) / pairs
    variance = sum(of.variance for of in made)
    variances = np.sum([of.variances for of in made], axis=0)
    stdevs = np.sqrt(np.maximum(variances - variances.mean() + variance, 0.0)) / pairs
    return Fluctuation(
        range=_range(draws, distribution),
        stdev=around(float(draws.std()), stdevs, n=pairs),
        closed_form=sqrt(variance) / pairs,
        draws=draws,
    )


def manual_rank(grid: Grid, manual: Bools, seed: int = 0) -> Estimate:
    """Mean rank of the hand-written templates among all of their relation by accuracy, 1 is best.

    manual [templates]. Templates of equal accuracy share the mean of their ranks. Relations without
    hand-written or without other templates are left out; n counts the hand-written ones ranked. The
    interval is over pairs within relations, moved as that of `fluctuation`.
    """
    mixed = [b for b in grid.blocks if 0 < manual[b.templates].sum() < len(b.templates)]
    count = sum(int(manual[b.templates].sum()) for b in mixed)
    if not mixed:
        return Estimate.not_measured()
    value = sum(_rank_sums(b.of_templates[None], manual[b.templates])[0] for b in mixed) / count
    draws = np.zeros(DRAWS)
    for block in mixed:
        columns = _filled(block)
        if block.subjects is not None:
            columns = by_subject(columns, block.subjects)
        sums = resampled_sums(columns, stream(seed, block.stream))
        draws += _rank_sums(sums, manual[block.templates])
    draws /= count
    return around(float(value), draws - draws.mean() + value, n=count)


def manual_rank_by_chance(grid: Grid, manual: Bools) -> Estimate:
    """The mean rank of hand-written templates if rank had nothing to do with who wrote them.

    Over the same relations as `manual_rank`; there is no chance in it, so it has no interval.
    """
    owners = grid.template_relations
    asked = ~np.isnan(template_accuracies(grid))
    total = count = 0.0
    for relation in np.unique(owners):
        own = (owners == relation) & asked
        by_hand = int((own & manual).sum())
        if 0 < by_hand < own.sum():
            total, count = total + by_hand * (own.sum() + 1) / 2, count + by_hand
    if not count:
        return Estimate.not_measured()
    return Estimate(value=float(total / count), low=None, high=None, n=int(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Accuracy@K: among the choices that a model is at least K sure of, and how many these are.

    `accuracy` is None where none is left.
    """

    level: float
    retained: float
    accuracy: float | None


def accuracy_at(sure: Floats, right: Bools, level: float) -> At:
    """Accuracy among choices whose likeliest option has at least `level` probability.

    >>> accuracy_at(np.array([0.9, 0.4]), np.array([True, False]), 0.5)
    At(level=0.5, retained=0.5, accuracy=1.0)
    """
    kept = sure >= level
    accuracy = float(right[kept].mean()) if kept.any() else None
    return At(level=level, retained=float(kept.mean()), accuracy=accuracy)


def accuracy_at_over(sure: Floats, right: Bools, groups: Ints, level: float) -> At:
    """The same of every group, such as a relation, and then averaged over groups.

    A group of which nothing is left has a share, 0, and no accuracy to average.

    >>> accuracy_at_over(np.array([0.9, 0.4]), np.array([True, False]), np.array([0, 1]), 0.5)
    At(level=0.5, retained=0.5, accuracy=1.0)
    """
    parts = [groups == group for group in np.unique(groups)]
    kept = [accuracy_at(sure[part], right[part], level) for part in parts]
    accuracies = [own.accuracy for own in kept if own.accuracy is not None]
    return At(
        level=level,
        retained=sum(own.retained for own in kept) / len(kept),
        accuracy=sum(accuracies) / len(accuracies) if accuracies else None,
    )


def _range(draws: Floats, distribution: Floats) -> Estimate:
    pairs = len(distribution) - 1
    low, high = (width / pairs for width in range_interval(distribution, len(draws)))
    value = float(np.ptp(draws))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=pairs)


def _choices(block: Block, draw: Draw) -> Ints:
    """How many templates, or prompts, each pair can be asked with."""
    return np.asarray((block.asked > 0 if draw == "relation" else block.asked).sum(axis=1))


def _filled(block: Block) -> Floats:
    """Share of names right in each cell; that of all the pair's prompts where it was not asked."""
    return np.where(block.asked > 0, np.nan_to_num(block.rates), block.of_pairs[:, None])


def _rank_sums(accuracies: Floats, manual: Bools) -> Floats:
    """Sum of the ranks of some templates, the best first; [draws, templates] to [draws].

    A rank is one more than the number of better templates and half the number of equal ones.
    """
    chosen = accuracies[:, manual]
    better = (accuracies[:, None, :] > chosen[:, :, None]).sum(axis=(1, 2))
    equal = (accuracies[:, None, :] == chosen[:, :, None]).sum(axis=(1, 2)) - manual.sum()
    return np.asarray(manual.sum() + better + equal / 2, dtype=np.float64)


def covered(grid: Grid) -> tuple[Floats, Floats, Floats]:
    """Of each pair: the share of templates that know it, whether the best does, and whether any."""
    each, best, some = np.full((3, len(grid.relations)), np.nan)
    for block in grid.blocks:
        each[block.pairs] = block.known.sum(axis=1) / (block.asked > 0).sum(axis=1)
        best[block.pairs] = block.known[:, block.known.sum(axis=0).argmax()]
        some[block.pairs] = block.known.any(axis=1)
    return each, best, some


def known(grid: Grid) -> tuple[Ints, Ints, Bools]:
    """Template and pair of each cell asked, and whether it is known: right under some name."""
    parts = []
    for block in grid.blocks:
        pair, template = np.nonzero(block.asked)
        parts.append((block.templates[template], block.pairs[pair], block.known[pair, template]))
    if not parts:
        return np.array([], np.int64), np.array([], np.int64), np.array([], np.bool_)
    templates, pairs, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    return templates, pairs, right


def names_help(judged: Judged, seed: int = 0) -> dict[str, Estimate]:
    """Whether added names of subjects and of objects help (BELIEF's table 10), by name.

    Rows are sorted by pair, template and name. Not measured where a probe did not look at names.
    """
    subject, object = {}, {}
    for part in judged.grid.parts():
        own, name = part.grid, part.grid.stream(0)
        if judged.gold_logprob is not None:
            subject[name] = _subject_names(own, judged.gold_logprob[part.rows])
        if judged.helped is not None and judged.compared is not None:
            object[name] = _object_names(own, judged.helped[part.rows], judged.compared[part.rows])
    return {
        "names_help.subject": Resampled(subject, seed).mean_over_facts(),
        "names_help.object": Resampled(object, seed).mean_over_facts(),
    }


def _subject_names(grid: Grid, gold: Floats) -> Sample:
    """For each (prompt, added subject name), whether the correct answer is likelier than before."""
    same = (np.diff(grid.pair) == 0) & (np.diff(grid.template) == 0)
    starts = np.flatnonzero(np.append(len(grid) > 0, ~same))
    first: Ints = np.repeat(starts, np.diff(np.append(starts, len(grid))))
    added = (grid.name > 0) & (grid.name[first] == 0)
    helped = gold[added] > gold[first][added]
    return Sample(values=helped.astype(np.float64), clusters=grid.clusters[added])


def _object_names(grid: Grid, helped: Ints, compared: Ints) -> Sample:
    """For each (prompt, added object name), whether the name is likelier than the usual one."""
    rows = np.repeat(np.arange(len(grid)), compared)
    before = np.cumsum(compared) - compared
    turn = np.arange(len(rows)) - before[rows]
    return Sample(values=(turn < helped[rows]).astype(np.float64), clusters=grid.clusters[rows])
