"""BELIEF's numbers and report: those of every multi-prompt probe, and what answers add.

Knows outcomes, no prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sonde.core.fact_frames import text_frame
from sonde.core.facts import LAMA, Dataset
from sonde.core.reports import Cell, Estimate, Estimates, Headline, Metric, Report, Table
from sonde.core.words import counted, told_apart
from sonde.metrics.accuracy import names_help, right_shares, template_accuracies
from sonde.metrics.calibration import overconf_by_each, overconf_by_template
from sonde.metrics.estimates import Resampled, samples_of
from sonde.metrics.judged import Floats, Grid, Ints
from sonde.former.belief.judge import (
    BIAS_MULTI,
    BIAS_SINGLE,
    Bias,
    Outcomes,
    bias_table,
    measure_bias,
)
from sonde.prompting.pairs import AskedPairs
from sonde.prompting.sentences import stand_in
from sonde.reporting.build.multi_prompt import numbers as multi_prompt
from sonde.reporting.build.multi_prompt.numbers import (
    ACC,
    DRIVER,
    DRIVERS,
    MAJORITY,
    WORDINGS,
    manual_ranks,
    moved,
)
from sonde.reporting.build.multi_prompt.sections import Draw, Sections, sections
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import (
    Field,
    browse,
    drawn,
    listing,
    measured,
    side_by_side,
    titled,
)

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame


SINGLE = Metric(
    "single_prompt.acc_at_1",
    "LAMA",
    "percent",
    "accuracy with LAMA's own template and the usual name, on UHN facts",
)
BY_RELATION = (*multi_prompt.METRICS, SINGLE, BIAS_SINGLE, BIAS_MULTI)
"""Over everything and in each relation."""

METRICS = (*BY_RELATION, *multi_prompt.OVERALL)


SHOWN = 20_000
TOGETHER = 2**20
"""Prompts that are summed up at once, about."""


def build_report(
    dataset: Dataset,
    known: AskedPairs,
    outcomes: Outcomes,
    *,
    draw: Draw,
    draws: int,
    floor: int,
    filled: bool,
) -> Report:
    """Everything BELIEF reports about some outcomes."""
    seed, grid = dataset.selection.seed, outcomes.judged.grid
    further = {SINGLE.id: _single_prompt(known, grid), **moved(grid, known.templates)}
    with ThreadPoolExecutor(1, "beside") as thread:
        leaning = thread.submit(measure_bias, known, outcomes, seed)
        over = thread.submit(overconf_by_template, grid, grid.confidence, floor, seed)
        common = sections(
            grid,
            relations=known.relations,
            templates=known.templates,
            draw=draw,
            draws=draws,
            seed=seed,
            majority=known.majority,
            further=further,
        )
    bias = leaning.result()
    own = _own(known, outcomes, common, seed) | over.result()
    estimates = {**common.estimates, **bias.estimates, **own}
    return Report(
        title=f"BELIEF on {dataset.name}",
        summary=_summary(estimates, common, outcomes.pairs_unanswerable),
        metrics=METRICS,
        estimates=estimates,
        counts={**common.counts, **_counts(known, outcomes)},
        headlines=(*common.headlines, *_headlines(estimates)),
        tables=_tables(common, estimates, known, outcomes, bias, floor, seed),
        figures=common.figures,
        findings=(*common.findings, *_findings(estimates, known, further, seed)),
        notes=_notes(filled, outcomes),
        judged=outcomes.judged,
    )


def _single_prompt(known: AskedPairs, grid: Grid) -> Floats:
    """Whether each UHN pair is right with LAMA's own template and its subject's usual name.

    A relation whose first template is another one has none.
    """
    firsts = np.unique(known.template_relations, return_index=True)[1]
    own = [first for first in firsts.tolist() if known.templates[first].origin == LAMA]
    guessable = [stand_in((names[0] for names in p.objects), p.names[0]) for p in known.pairs]
    asked = np.isin(np.arange(len(known.templates)), own)
    rows = (grid.name == 0) & asked[grid.template] & ~np.array(guessable, bool)[grid.pair]
    right = np.full(len(known.pairs), np.nan)
    right[grid.pair[rows]] = grid.right[rows]
    return right


def _own(known: AskedPairs, outcomes: Outcomes, common: Sections, seed: int) -> dict[str, Estimate]:
    grid, missing = outcomes.judged.grid, Estimate.not_measured()
    by_relation = common.numbers.relations
    return {
        **{
            SINGLE.at(f"relation.{relation.id}"): by_relation.get(r, {}).get(SINGLE.id, missing)
            for r, relation in enumerate(known.relations)
        },
        **names_help(outcomes.judged, seed),
        **manual_ranks(grid, known.templates, seed),
    }


def _summary(estimates: Estimates, common: Sections, skipped: int) -> str:
    value = estimates[ACC.id].value
    if value is None:
        return "No pair could be asked: no correct name is one token of this model's vocabulary."
    counts, control = common.counts, estimates[MAJORITY.id].value or 0.0
    missing = (
        f"{skipped:,} of {counted(skipped + counts['pairs'], 'pair is', 'pairs are')} not scored, "
        "because no correct object is one token of the model (--answer score includes them). "
    )
    return (missing if skipped else "") + (
        f"{counts['pairs']:,} pairs of subject and relation were asked in {counts['prompts']:,} "
        f"prompts; {value:.1%} of a pair's prompts are answered right on average, and always "
        f"answering the commonest object would give {control:.1%}."
    )


def _counts(known: AskedPairs, outcomes: Outcomes) -> dict[str, int]:
    templates = np.bincount(known.template_relations, minlength=len(known.relations))
    return {
        "pairs_left_out_not_one_token": outcomes.pairs_unanswerable,
        "prompts_left_out_not_one_token": outcomes.prompts_unanswerable,
        "relations_without_template": int((templates == 0).sum()),
        "relations_with_one_template": int((templates == 1).sum()),
        "content_free_prompts": sum(map(len, outcomes.contents.values())),
        "ties": outcomes.ties,
    }


def _headlines(estimates: Estimates) -> tuple[Headline, ...]:
    bias = headline(BIAS_SINGLE.named("Bias level of a single prompt"))
    if estimates[SINGLE.id].value is None:
        return (bias,)
    return (bias, headline(SINGLE.named("LAMA: its own template, on UHN facts")))


def _tables(
    common: Sections,
    estimates: Estimates,
    known: AskedPairs,
    outcomes: Outcomes,
    bias: Bias,
    floor: int,
    seed: int,
) -> tuple[Table, ...]:
    others = (
        _driver_table(estimates),
        bias_table(estimates),
        listing(
            estimates,
            WORDINGS,
            id="wordings",
            title="Templates and names",
            note="A dash means not measured. Overconf: of templates with at least "
            f"{floor:,} prompts.",
        ),
        _template_table(known, outcomes, bias),
        _pair_table(known, outcomes, seed),
    )
    return shown(*_with_lama(common.tables, estimates), *others)


def _with_lama(tables: tuple[Table, ...], estimates: Estimates) -> Iterator[Table]:
    """The shared tables; what LAMA would say stands second in the one of headline numbers."""
    for table in tables:
        if table.id == "summary" and estimates[SINGLE.id].value is not None:
            lama = (SINGLE.label, estimates[SINGLE.id], SINGLE.sentence)
            yield replace(table, rows=(table.rows[0], lama, *table.rows[1:]))
        else:
            yield table


def _driver_table(estimates: Estimates) -> Table:
    def look(what: str, metric: Metric) -> Estimate:
        return estimates[metric.of(only=DRIVERS[what], what=what).id]

    return side_by_side(
        DRIVERS,
        [metric.named(metric.label, metric.sentence.partition(",")[0]) for metric in DRIVER],
        look,
        head="only this differs",
        id="drivers",
        title="What moves the answers",
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )


def _template_table(known: AskedPairs, outcomes: Outcomes, bias: Bias) -> Table:
    """Accuracy, overconfidence and leaning of each template."""
    grid = outcomes.judged.grid
    accuracies = template_accuracies(grid)
    over = {t: e for t, e, _ in overconf_by_each(grid, grid.confidence)}
    rows: list[dict[str, Cell]] = []
    for number, template in enumerate(known.templates):
        lean = bias.leans.get(number)
        rows.append(
            {
                "relation": titled(known.relations[known.template_relations[number]]),
                "template": template.text,
                "source": template.source,
                "accuracy": measured(accuracies[number]),
                "Overconf": over[number].value if number in over else None,
                "bias level": lean.level if lean else None,
                "inflates": lean.candidate if lean else "",
                "share": lean.share if lean else None,
                "average": lean.average if lean else None,
            }
        )
    fields: list[Field[dict[str, Cell]] | str] = [
        "relation",
        "template",
        "source",
        Field("accuracy", kind="percent", help="mean over pairs of the share of names"),
        Field("Overconf", kind="percent", help="mean confidence minus accuracy"),
        Field("bias level", kind="number", help="asked about nothing; 0 is even"),
        Field("inflates", help="the candidate furthest above the templates' average"),
        Field("share", kind="percent", help="of that candidate under this template"),
        Field("average", kind="percent", help="of that candidate over all templates"),
    ]
    return browse(rows, fields, id="every-template", title="Templates")


def _pair_table(known: AskedPairs, outcomes: Outcomes, seed: int) -> Table:
    """What was answered about each pair; a draw by the seed where there are too many."""
    pairs = np.flatnonzero(~np.isnan(right_shares(outcomes.judged.grid)))
    fields: list[Field[DataFrame] | str] = [
        "relation",
        "subject",
        Field("correct", help="every object that counts as correct"),
        Field("prompts", kind="count"),
        Field("right", kind="percent", help="share of the prompts answered right"),
        Field("different answers", kind="count"),
        Field("commonest answers", help="with the number of prompts"),
        Field("confidence", kind="percent", help="mean over the prompts"),
    ]
    return browse(
        lambda: _pair_rows(known, outcomes, pairs, seed), fields, id="pairs", title="Pairs",
        count=min(len(pairs), SHOWN), total=len(pairs), what="pairs",
    )  # fmt: skip


def _pair_rows(known: AskedPairs, outcomes: Outcomes, pairs: Ints, seed: int) -> DataFrame:
    kept = pairs[drawn([known.pairs[p].fact for p in pairs], seed, SHOWN)]
    chosen = [known.pairs[p] for p in kept]
    texts = {
        "relation": [titled(known.relations[r]) for r in known.pair_relations[kept]],
        "subject": [pair.names[0] for pair in chosen],
        "correct": [", ".join(names[0] for names in pair.objects) for pair in chosen],
    }
    return _answers_of(outcomes, kept).hstack(text_frame(texts, {}))


def _answers_of(outcomes: Outcomes, pairs: Ints) -> DataFrame:
    """Of each of some pairs, in order: how many prompts it has, and what was answered."""
    import polars

    grid = outcomes.judged.grid
    said = polars.lit(polars.Series(outcomes.judged.answers, dtype=polars.String))
    found = []
    for some in np.array_split(pairs, len(grid) // TOGETHER + 1):
        own = grid.rows(np.isin(np.arange(len(grid.relations)), some)[grid.pair])
        columns = {n: getattr(own, n) for n in ("pair", "answer", "right", "confidence")}
        found.append(_summed_up(polars.LazyFrame(columns), said))
    return polars.concat(found)


def _summed_up(prompts: LazyFrame, said: Expr) -> DataFrame:
    import polars
    from polars import col

    counts = (
        prompts.group_by("pair", "answer")
        .len()
        .sort("pair", "len", "answer", descending=[False, True, False])
        .with_columns(told=polars.format("{} ({})", said.gather(col("answer")), "len"))
        .group_by("pair", maintain_order=True)
        .agg(
            col("answer").len().alias("different answers"),
            col("told").head(3).str.join(", ").alias("commonest answers"),
        )
    )
    means = prompts.group_by("pair", maintain_order=True).agg(
        col("right").len().alias("prompts"), col("right", "confidence").mean()
    )
    return means.join(counts, on="pair", how="left", maintain_order="left").collect()


def _findings(
    estimates: Estimates, known: AskedPairs, further: Mapping[str, Floats], seed: int
) -> tuple[str, ...]:
    found = []
    single, mean = estimates[SINGLE.id].value, estimates[ACC.id].value
    if single is not None and mean is not None:
        found.append(
            f"LAMA's own template alone, as LAMA asks, gives {single:.1%} on UHN facts; all "
            f"prompts together {mean:.1%}."
        )
    alone, together = estimates[BIAS_SINGLE.id].value, estimates[BIAS_MULTI.id].value
    if alone is not None and together is not None:
        found.append(
            "Asked about nothing, a single template leans towards some answers with bias level "
            f"{alone:.3f}, the average of a relation's templates with {together:.3f}."
        )
    found += more_moving(further, known.pair_relations, seed)
    owners = np.bincount(known.template_relations, minlength=len(known.relations))
    fixed = [known.relations[r].id for r in np.flatnonzero(owners == 1)]
    if fixed:
        found.append(f"With one template only, wording was not varied: {', '.join(fixed)}.")
    return tuple(found)


def more_moving(further: Mapping[str, Floats], relations: Ints, seed: int) -> Iterator[str]:
    """Whether another name or another template changes answers more often, in the same pairs."""
    names, templates = (further[DRIVER[0].of(only=only, what="").id] for only in DRIVERS.values())
    both = ~np.isnan(names) & ~np.isnan(templates)
    if not both.any():
        return
    samples = samples_of(names[both], relations[both], templates[both])
    apart = Resampled(samples, seed).mean_over_facts()
    if not told_apart(apart):
        first = (
            "Whether another name or another template changes the answer more often cannot be told"
        )
    elif (apart.value or 0.0) > 0:
        first = "Another template changes the answer more often than another name of the subject"
    else:
        first = "Another name of the subject changes the answer more often than another template"
    shares = (f"{column[both].mean():.1%}" for column in (names, templates))
    yield f"{first}: answers agree {' over names, '.join(shares)} over templates."


def _notes(filled: bool, outcomes: Outcomes) -> tuple[str, ...]:
    way = (
        "The model filled a single mask from its whole vocabulary; its confidence is the "
        "probability of the likeliest token. Pairs whose correct names are all longer than one "
        "token are left out and counted."
        if filled
        else "The model scored every object of the relation as an option; its confidence is the "
        "best option's share of all options. Only usual names of objects are options, so added "
        "object names were not measured."
    )
    bias = (
        ()
        if outcomes.contents
        else ("The bias level was not measured: no content-free subject was asked about.",)
    )
    return (
        way,
        "Any name of any correct object counts as right. Ties count as wrong.",
        *bias,
        "Intervals are 95 %: a bootstrap over subjects within relations; for the bias level "
        "over templates. A closed form has no sampling error and so no interval."
        " Nor has a number of which nothing varies, unless it is a share.",
    )
