"""BELIEF's report: what every multi-prompt probe has, and what masked and scored answers add.

Knows outcomes, no prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Cell, Column, Estimate, Headline, Report, Table
from sonde.core.words import told_apart
from sonde.metrics.accuracy import manual_rank, manual_rank_by_chance
from sonde.metrics.calibration import overconf_by_template
from sonde.metrics.consistency import (
    names_only,
    over_names,
    over_templates,
    paraphrase_groups,
    templates_only,
    within_groups,
)
from sonde.metrics.estimates import Resampled, Sample, p_value
from sonde.metrics.grid import Grid
from sonde.metrics.naming import object_names_help, subject_names_help
from sonde.probes.belief.bias import Bias, measure_bias
from sonde.probes.belief.browse import pair_table, template_table
from sonde.probes.belief.names import single_prompt
from sonde.probes.belief.tally import Outcomes, World
from sonde.reporting.build.multi_prompt.sections import Draw, Sections, sections

Estimates = Mapping[str, Estimate]

SINGLE = "single_prompt.acc_at_1"


def build_report(
    dataset: Dataset,
    known: World,
    outcomes: Outcomes,
    *,
    draw: Draw,
    draws: int,
    floor: int,
    filled: bool,
) -> Report:
    """Everything BELIEF reports about some outcomes."""
    seed, grid = dataset.selection.seed, outcomes.grid
    common = sections(
        grid,
        relations=known.relations,
        templates=known.templates,
        draw=draw,
        draws=draws,
        seed=seed,
        majority=known.majority,
    )
    bias = measure_bias(known, outcomes, seed)
    estimates = {
        **common.estimates,
        **bias.estimates,
        **_own(known, outcomes, seed),
        **overconf_by_template(grid, grid.confidence, floor, seed),
    }
    return Report(
        title=f"BELIEF on {dataset.name}",
        summary=_summary(estimates, common),
        estimates=estimates,
        counts={**dataset.notes, **common.counts, **_counts(known, outcomes)},
        headlines=(*common.headlines, *_headlines(estimates)),
        tables=_tables(common, estimates, known, outcomes, bias, floor, seed),
        figures=common.figures,
        findings=(*common.findings, *_findings(estimates, known, grid, seed)),
        notes=_notes(filled, outcomes),
    )


def _own(known: World, outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    grid = outcomes.grid
    manual = np.array([t.source == "manual" for t in known.templates], dtype=np.bool_)
    groups = within_groups(grid, paraphrase_groups(known.templates, known.template_relations), seed)
    return {
        **single_prompt(SINGLE, known, grid, seed),
        **_drivers(grid, seed),
        "names_help.subject": subject_names_help(grid, outcomes.gold, seed),
        "names_help.object": object_names_help(grid, outcomes.helped, outcomes.compared, seed),
        "manual.rank": manual_rank(grid, manual, seed),
        "manual.rank_by_chance": manual_rank_by_chance(grid, manual),
        "groups.inner_consist": groups.inner,
        "groups.inter_consist": groups.inter,
    }


def _drivers(grid: Grid, seed: int) -> dict[str, Estimate]:
    found = {}
    for name, driver in (
        ("names_only", names_only(grid, seed)),
        ("templates_only", templates_only(grid, seed)),
    ):
        found[f"{name}.consist"] = driver.consist
        found[f"{name}.min"] = driver.min
        found[f"{name}.max"] = driver.max
    return found


def _summary(estimates: Estimates, common: Sections) -> str:
    value = estimates["acc_at_1"].value
    if value is None:
        return "No pair could be asked: no correct name is one token of this model's vocabulary."
    counts = common.counts
    control = estimates["control.majority.acc_at_1"].value or 0.0
    return (
        f"{counts['pairs']:,} pairs of subject and relation were asked in {counts['prompts']:,} "
        f"prompts; {value:.1%} of a pair's prompts are answered right on average, and always "
        f"answering the commonest object would give {control:.1%}."
    )


def _counts(known: World, outcomes: Outcomes) -> dict[str, int]:
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
    bias = Headline(label="Bias level of a single prompt", estimate="bias.single", kind="number")
    if estimates[SINGLE].value is None:
        return (bias,)
    return (bias, Headline(label="LAMA: its own template, on UHN facts", estimate=SINGLE))


def _tables(
    common: Sections,
    estimates: Estimates,
    known: World,
    outcomes: Outcomes,
    bias: Bias,
    floor: int,
    seed: int,
) -> tuple[Table, ...]:
    summary, *others = common.tables
    lama: tuple[Cell, ...] = (
        "LAMA",
        estimates[SINGLE],
        "accuracy with LAMA's own template and the usual name, on UHN facts",
    )
    beside = () if estimates[SINGLE].value is None else (lama,)
    return (
        replace(summary, rows=(summary.rows[0], *beside, *summary.rows[1:])),
        *others,
        _driver_table(estimates),
        _other_table(estimates, floor),
        template_table(known, outcomes, bias, seed),
        pair_table(known, outcomes, seed),
    )


def _driver_table(estimates: Estimates) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *(estimates[f"{name}.{kind}"] for kind in ("consist", "min", "max")))
        for label, name in (
            ("names of the subject", "names_only"),
            ("templates", "templates_only"),
        )
    )
    return Table(
        id="drivers",
        title="What moves the answers",
        columns=(
            Column(title="only this differs"),
            Column(title="Consist", kind="percent", help="share of prompt pairs that agree"),
            Column(title="worst", kind="percent", help="right under every name; worst template"),
            Column(title="best", kind="percent", help="right under some name; best template"),
        ),
        rows=rows,
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )


def _other_table(estimates: Estimates, floor: int) -> Table:
    by_template = "overconf_by_template"
    lines = (
        ("bias level, single prompt", "bias.single", "0: even over the candidates, 1: one only"),
        ("bias level, all prompts", "bias.multi", "the same, of the templates' average"),
        (
            "added subject names that help",
            "names_help.subject",
            "share under which the correct answer is likelier than under the usual name",
        ),
        (
            "added object names that help",
            "names_help.object",
            "share that are likelier than the object's usual name in the same prompt",
        ),
        (
            "mean rank of manual templates",
            "manual.rank",
            "by accuracy in their relation; 1 is best",
        ),
        ("… if it were chance", "manual.rank_by_chance", "(number of templates + 1) / 2"),
        (
            "Consist inside a paraphrase group",
            "groups.inner_consist",
            "templates made from the same hand-written one",
        ),
        (
            "Consist between groups",
            "groups.inter_consist",
            "templates made from different hand-written ones",
        ),
        ("Overconf of a template, mean", f"{by_template}.mean", "over templates"),
        ("… standard deviation", f"{by_template}.stdev", "over templates"),
        ("… lowest", f"{by_template}.min", ""),
        ("… highest", f"{by_template}.max", ""),
    )
    return Table(
        id="wordings",
        title="Templates and names",
        columns=(
            Column(title="number"),
            Column(title="value", kind="number"),
            Column(title="meaning"),
        ),
        rows=tuple((label, estimates[name], meaning) for label, name, meaning in lines),
        note=f"A dash means not measured. Overconf: of templates with at least {floor:,} prompts.",
    )


def _findings(estimates: Estimates, known: World, grid: Grid, seed: int) -> tuple[str, ...]:
    found = []
    single, mean = estimates[SINGLE].value, estimates["acc_at_1"].value
    if single is not None and mean is not None:
        found.append(
            f"LAMA's own template alone, as LAMA asks, gives {single:.1%} on UHN facts; all "
            f"prompts together {mean:.1%}."
        )
    one, many = estimates["bias.single"].value, estimates["bias.multi"].value
    if one is not None and many is not None:
        found.append(
            "Asked about nothing, a single template leans towards some answers with bias level "
            f"{one:.3f}, the average of a relation's templates with {many:.3f}."
        )
    found += _driver(grid, seed)
    owners = np.bincount(known.template_relations, minlength=len(known.relations))
    alone = [known.relations[r].id for r in np.flatnonzero(owners == 1)]
    if alone:
        found.append(f"With one template only, wording was not varied: {', '.join(alone)}.")
    return tuple(found)


def _driver(grid: Grid, seed: int) -> Iterator[str]:
    """Whether another name or another template changes answers more often, in the same pairs."""
    names, templates = over_names(grid), over_templates(grid)
    both = ~np.isnan(names) & ~np.isnan(templates)
    if not both.any():
        return
    sample = Sample(values=names[both], clusters=np.flatnonzero(both), minus=templates[both])
    apart = Resampled({"pairs": sample}, seed).mean_over_facts()
    if not told_apart(apart, p_value({"pairs": sample}, seed, "names and templates")):
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
        "Intervals are 95 %: a bootstrap over pairs within relations; for the bias level "
        "over templates. A closed form has no sampling error and so no interval."
        " Nor has a number of which nothing varies, unless it is a share.",
    )
