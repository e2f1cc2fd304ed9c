"""Long tables to look things up in: every template, and pairs with what was answered."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.core.fingerprints import draw_key
from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.metrics.accuracy import template_accuracies
from sonde.metrics.calibration import overconf_by
from sonde.metrics.grid import Grid
from sonde.probes.belief.bias import Bias
from sonde.probes.belief.tally import Outcomes, World

SHOWN = 20_000


def template_table(known: World, outcomes: Outcomes, bias: Bias, seed: int) -> Table:
    """Accuracy, overconfidence and leaning of each template."""
    grid = outcomes.grid
    accuracies = template_accuracies(grid)
    over = {t: e for t, e, _ in overconf_by(grid.template, grid.confidence, grid.right, grid.pair)}
    rows: list[tuple[Cell, ...]] = []
    for number, template in enumerate(known.templates):
        relation = known.relations[known.template_relations[number]]
        accuracy, lean = float(accuracies[number]), bias.leans.get(number)
        rows.append(
            (
                f"{relation.id} {relation.label}",
                template.text,
                template.source,
                None if np.isnan(accuracy) else accuracy,
                over.get(number, Estimate.not_measured()).value,
                None if lean is None else lean.level,
                "" if lean is None else lean.candidate,
                None if lean is None else lean.share,
                None if lean is None else lean.average,
            )
        )
    return Table(
        id="every-template",
        title="Templates",
        columns=_template_columns(),
        rows=tuple(rows),
        browsable=True,
    )


def _template_columns() -> tuple[Column, ...]:
    return (
        Column(title="relation"),
        Column(title="template"),
        Column(title="source"),
        Column(title="accuracy", kind="percent", help="mean over pairs of the share of names"),
        Column(title="Overconf", kind="percent", help="mean confidence minus accuracy"),
        Column(title="bias level", kind="number", help="asked about nothing; 0 is even"),
        Column(title="inflates", help="the candidate furthest above the templates' average"),
        Column(title="share", kind="percent", help="of that candidate under this template"),
        Column(title="average", kind="percent", help="of that candidate over all templates"),
    )


def pair_table(known: World, outcomes: Outcomes, seed: int) -> Table:
    """What was answered about each pair; a draw by the seed where there are too many."""
    grid = outcomes.grid
    pairs, starts = np.unique(grid.pair, return_index=True)
    stops = np.append(starts[1:], len(grid))
    keys = [draw_key(seed, known.pairs[p].fact) for p in pairs]
    kept = np.sort(np.argsort(np.array(keys, dtype=np.uint64), kind="stable")[:SHOWN])
    rows = _pair_rows(known, outcomes, [(int(pairs[i]), starts[i], stops[i]) for i in kept])
    note = f"{len(kept):,} of the {len(pairs):,} pairs, drawn by the seed; every number counts all."
    return Table(
        id="pairs",
        title="Pairs",
        columns=(
            Column(title="relation"),
            Column(title="subject"),
            Column(title="correct", help="every object that counts as correct"),
            Column(title="prompts", kind="count"),
            Column(title="right", kind="percent", help="share of the prompts answered right"),
            Column(title="different answers", kind="count"),
            Column(title="commonest answers", help="with the number of prompts"),
            Column(title="confidence", kind="percent", help="mean over the prompts"),
        ),
        rows=tuple(rows),
        note="" if len(kept) == len(pairs) else note,
        browsable=True,
    )


def _pair_rows(
    known: World, outcomes: Outcomes, places: list[tuple[int, int, int]]
) -> Iterator[tuple[Cell, ...]]:
    grid: Grid = outcomes.grid
    for number, start, stop in places:
        pair = known.pairs[number]
        relation = known.relations[known.pair_relations[number]]
        answers, counts = np.unique(grid.answer[start:stop], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:3]
        yield (
            f"{relation.id} {relation.label}",
            pair.names[0],
            ", ".join(names[0] for names in pair.objects),
            int(stop - start),
            float(grid.right[start:stop].mean()),
            len(answers),
            ", ".join(f"{outcomes.answers[answers[i]]} ({counts[i]})" for i in order),
            float(grid.confidence[start:stop].mean()),
        )
