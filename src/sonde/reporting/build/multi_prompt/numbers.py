"""Every number of probes that ask about a pair of subject and relation in many prompts: over all
judged prompts and in each relation.

Knows judged prompts as a grid, nothing of how they were put or answered. Pairs are resampled within
their relation, the same draws for every number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sonde.core.facts import Template
from sonde.core.reports import Estimate, Metric
from sonde.core.threads import side_by_side
from sonde.metrics.accuracy import (
    Fluctuation,
    RelationSpread,
    covered,
    manual_rank,
    manual_rank_by_chance,
    right_shares,
    spread_columns,
    spread_of,
    worst_best_mean,
)
from sonde.metrics.accuracy import fluctuation as fluctuates
from sonde.metrics.calibration import Bin, Calibration, Cut, cut, in_size
from sonde.metrics.consistency import (
    Agreeing,
    agreement,
    names_only,
    paraphrase_groups,
    templates_only,
    within_groups,
)
from sonde.metrics.estimates import resampled_together
from sonde.metrics.judged import Block, Bools, Floats, Grid, grid_samples, resampled_in

Draw = Literal["relation", "pair"]
DRAWN: Mapping[Draw, str] = {"relation": "a template per relation", "pair": "a prompt per pair"}
"""What is drawn anew to see how far the accuracy fluctuates."""

ACC = Metric(
    "acc_at_1", "Acc@1", "percent", "mean over pairs of the share of their prompts answered right"
)
MAJORITY, ABOVE = ACC.controlled(paired="pair by pair; from −1 to 1")
WORST, BEST, MEAN = (
    Metric(f"template_accuracy.{id}", label, "percent", sentence)
    for id, label, sentence in (
        ("min", "worst templates", "accuracy with each relation's worst template"),
        ("max", "best templates", "accuracy with each relation's best template"),
        ("mean", "mean of templates", "mean accuracy of the templates"),
    )
)
RANGE, STDEV, CLOSED_FORM = (
    Metric(f"fluctuation.{{draw}}.{id}", label, "percent", sentence, better="lower")
    for id, label, sentence in (
        ("range", "fluctuation, range", "best minus worst accuracy over draws of {what}"),
        ("stdev", "fluctuation, stdev", "standard deviation of the accuracy over these draws"),
        ("closed_form", "fluctuation, closed form", "the same standard deviation without drawing"),
    )
)
CONSIST = Metric(
    "consist",
    "Consist",
    "percent",
    "share of prompt pairs of a pair that have the same answer, right or wrong",
)
OVERCONF = Metric(
    "overconf",
    "Overconf",
    "percent",
    "mean confidence minus accuracy; above 0: too sure",
    better="nearer 0",
)
ECE = Metric(
    "ece",
    "ECE",
    "percent",
    "mean distance of confidence and accuracy over ten bins",
    better="lower",
)
COVERAGE = tuple(
    Metric(f"coverage.{id}", id.replace("_", " "), "percent", sentence)
    for id, sentence in (
        ("average", "share of prompts that are right, per pair: Acc@1 again"),
        ("average_best_name", "right under some name of the subject, averaged over templates"),
        ("maximum", "right under some name with each relation's best template"),
        ("oracle", "right under some prompt"),
    )
)
AVERAGE, _, MAXIMUM, ORACLE = COVERAGE


def fluctuation(draw: Draw) -> tuple[Metric, Metric, Metric]:
    """Range, standard deviation and its closed form, over what is drawn."""
    a, b, c = (metric.of(draw=draw, what=DRAWN[draw]) for metric in (RANGE, STDEV, CLOSED_FORM))
    return a, b, c


METRICS = (
    *(ACC, MAJORITY, ABOVE, WORST, BEST, MEAN),
    *(metric for draw in DRAWN for metric in fluctuation(draw)),
    *(CONSIST, OVERCONF, ECE),
    *COVERAGE,
)
"""What `sections` measures, over everything and in each relation."""

DRIVERS = {"names of the subject": "names_only", "templates": "templates_only"}
"""What moves the answers: by what alone differs between prompts, the id of its numbers."""

DRIVER = tuple(
    Metric(f"{{only}}.{id}", label, "percent", sentence)
    for id, label, sentence in (
        ("consist", "Consist", "share of prompt pairs that agree, where only {what} differ"),
        ("min", "worst", "right under every name; with each relation's worst template"),
        ("max", "best", "right under some name; with each relation's best template"),
    )
)


def driver(what: str) -> tuple[Metric, ...]:
    """Agreement, the worst and the best case, where only this differs."""
    return tuple(metric.of(only=DRIVERS[what], what=what) for metric in DRIVER)


SUBJECT_NAMES = Metric(
    "names_help.subject",
    "added subject names that help",
    "percent",
    "share under which the correct answer is likelier than under the usual name",
    better="",
)
OBJECT_NAMES = Metric(
    "names_help.object",
    "added object names that help",
    "percent",
    "share that are likelier than the object's usual name in the same prompt",
    better="",
)
MANUAL_RANK = Metric(
    "manual.rank",
    "mean rank of manual templates",
    "number",
    "by accuracy in their relation; 1 is best",
    better="",
)
CHANCE_RANK = Metric(
    "manual.rank_by_chance",
    "… if it were chance",
    "number",
    "(number of templates + 1) / 2",
    better="",
)
INNER_CONSIST = Metric(
    "groups.inner_consist",
    "Consist inside a paraphrase group",
    "percent",
    "templates made from the same hand-written one",
)
INTER_CONSIST = Metric(
    "groups.inter_consist",
    "Consist between groups",
    "percent",
    "templates made from different hand-written ones",
)
BY_TEMPLATE = (
    Metric(
        "overconf_by_template.mean",
        "Overconf of a template, mean",
        "percent",
        "over templates with enough prompts, which n counts",
        better="nearer 0",
    ),
    Metric(
        "overconf_by_template.stdev",
        "… standard deviation",
        "percent",
        "over these templates",
        better="lower",
    ),
    Metric("overconf_by_template.min", "… lowest", "percent", "of a template", better=""),
    Metric("overconf_by_template.max", "… highest", "percent", "of a template", better=""),
)
ONE_WORD = Metric(
    "one_word_rate", "One-word rate", "percent", "share of answers of exactly one word"
)

WORDINGS = (
    *(SUBJECT_NAMES, OBJECT_NAMES, MANUAL_RANK, CHANCE_RANK, INNER_CONSIST, INTER_CONSIST),
    *BY_TEMPLATE,
)
OVERALL = (*(metric for what in DRIVERS for metric in driver(what)), *WORDINGS)
"""What templates and names do to the answers, over everything only."""


Consist = Callable[[Grid], Estimate]
Named = dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers by the ids of their metrics: of everything, and of each relation that was asked.

    `sizes` of a relation: its pairs, templates and prompts.
    """

    overall: Named
    relations: Mapping[int, Named]
    fluctuations: Mapping[Draw, Fluctuation]
    bins: Sequence[Bin]
    sizes: Mapping[int, tuple[int, int, int]]


def measure(
    grid: Grid,
    majority: Bools | None,
    *,
    draws: int,
    seed: int,
    consist: Consist | None,
    further: Mapping[str, Floats],
) -> Numbers:
    """Every number of a grid; `consist` instead of the agreement of equal answers.

    `further` numbers by their ids: a value for each pair, nan where it has none.
    """
    made = grid.blocks
    columns = {**dict(_columns(grid)), **further}
    overall, relations = _means(grid, made, columns, majority, seed)
    rows = {part.relation: part.rows for part in grid.parts() if part.relation in relations}
    whole = cut(grid.confidence, grid.right, grid.pair)

    def move(block: Block) -> Moved:
        return _moved(block, grid.rows(rows[block.relation]), whole, draws, seed)

    found = side_by_side(move, made)
    for block, moves in zip(made, found, strict=True):
        relations[block.relation] |= moves.named
    together, fluctuations = _together(found, whole, draws, seed)
    overall |= together
    if consist is not None:
        overall[CONSIST.id] = consist(grid)
        for id, own in rows.items():
            relations[id][CONSIST.id] = consist(grid.rows(own))
    return Numbers(
        overall=overall,
        relations=relations,
        fluctuations=fluctuations,
        bins=() if whole is None else whole.bins,
        sizes={b.relation: (*b.asked.shape, int(b.asked.sum())) for b in made},
    )


def _means(
    grid: Grid,
    made: Sequence[Block],
    columns: Mapping[str, Floats],
    majority: Bools | None,
    seed: int,
) -> tuple[Named, dict[int, Named]]:
    """What is a mean over pairs, of all and of each relation."""
    samples = {id: grid_samples(grid, values) for id, values in columns.items()}
    if majority is not None:
        control = np.where(np.isnan(columns[ACC.id]), np.nan, majority)
        samples[MAJORITY.id] = grid_samples(grid, control)
        samples[ABOVE.id] = grid_samples(grid, columns[ACC.id], control)
    resampled = resampled_together(samples, seed)
    overall = {id: of.mean_over_facts() for id, of in resampled.items()}
    weights = {block.stream: float(len(block.templates)) for block in made}
    overall[MEAN.id] = resampled[MEAN.id].weighted_mean(weights)
    relations = {
        block.relation: {id: of.relation(block.stream) for id, of in resampled.items()}
        for block in made
    }
    return overall, relations


def _columns(grid: Grid) -> Iterator[tuple[str, Floats]]:
    """Numbers that have a value for each pair; nan where it has none."""
    shares = right_shares(grid)
    templates = zip((WORST, BEST, MEAN), worst_best_mean(grid), strict=True)
    reached = zip(COVERAGE, (shares, *covered(grid)), strict=True)
    for metric, values in ((ACC, shares), *templates, (CONSIST, agreement(grid)), *reached):
        yield metric.id, values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """What resampling a relation's pairs gives beside means: its own numbers, how far its number of
    right pairs moves, and what it adds to the gaps of all bins; None without confidence."""

    named: Named
    spreads: Mapping[Draw, RelationSpread]
    gaps: Floats | None


def _moved(block: Block, grid: Grid, whole: Cut | None, draws: int, seed: int) -> Moved:
    """Resample a relation; `grid` has its prompts alone, `whole` the bins of all."""
    first = block.pairs[0]  # pairs are counted from the relation's first, or columns are long
    own = cut(grid.confidence, grid.right, grid.pair - first)
    columns, pairs = [spread_columns(block, draw) for draw in DRAWN], [block.pairs] * len(DRAWN)
    if own is not None and whole is not None:
        asked = own.asked + first
        columns += [own.columns[own.asked], whole.columns[asked]]
        pairs += [asked, asked]
    subjects = None if grid.subjects is None else [grid.subjects[of] for of in pairs]
    sums = resampled_in(block.stream, columns, seed, subjects)
    spreads = {draw: spread_of(block, draw, sums[i]) for i, draw in enumerate(DRAWN)}
    named: Named = {}
    for draw, spread in spreads.items():
        named |= _fluctuation(fluctuates([spread], draw, draws, seed), draw)
    if own is None:
        return Moved(named=named, spreads=spreads, gaps=None)
    named |= _calibrated(own.calibration(sums[-2]))
    return Moved(named=named, spreads=spreads, gaps=in_size(sums[-1], own.prompts))


def _together(
    found: Sequence[Moved], whole: Cut | None, draws: int, seed: int
) -> tuple[Named, dict[Draw, Fluctuation]]:
    """The numbers of all relations together, and how far their accuracy fluctuates."""
    named: Named = {}
    fluctuations: dict[Draw, Fluctuation] = {}
    for draw in DRAWN:
        if moves := fluctuates([own.spreads[draw] for own in found], draw, draws, seed):
            named |= _fluctuation(moves, draw)
            fluctuations[draw] = moves
    if whole is not None:
        gaps = np.sum([own.gaps for own in found if own.gaps is not None], axis=0)
        named |= _calibrated(whole.calibration(gaps))
    return named, fluctuations


def _fluctuation(moved: Fluctuation | None, draw: Draw) -> Named:
    if moved is None:
        return {}
    exact = Estimate(value=moved.closed_form, low=None, high=None, n=moved.range.n)
    values = (moved.range, moved.stdev, exact)
    return {m.id: e for m, e in zip(fluctuation(draw), values, strict=True)}


def _calibrated(found: Calibration) -> Named:
    return {OVERCONF.id: found.overconf, ECE.id: found.ece}


def moved(
    grid: Grid, templates: Sequence[Template], agreeing: Agreeing | None = None
) -> dict[str, Floats]:
    """What each pair adds to the agreement of answers inside and across paraphrase groups, and to
    agreement, worst and best case where only names or only templates differ."""
    groups = paraphrase_groups(templates, grid.template_relations)
    inner, inter = within_groups(grid, groups, agreeing)
    only = {
        "names_only": names_only(grid, agreeing),
        "templates_only": templates_only(grid, agreeing),
    }
    return {INNER_CONSIST.id: inner, INTER_CONSIST.id: inter} | {
        metric.of(only=what, what="").id: column
        for what, columns in only.items()
        for metric, column in zip(DRIVER, columns, strict=True)
    }


def manual_ranks(grid: Grid, templates: Sequence[Template], seed: int) -> Named:
    """How hand-written templates rank by accuracy, and how they would by chance."""
    manual = np.array([template.source == "manual" for template in templates], dtype=np.bool_)
    return {
        MANUAL_RANK.id: manual_rank(grid, manual, seed),
        CHANCE_RANK.id: manual_rank_by_chance(grid, manual),
    }
