"""Every number of one run that is set beside those of others. Knows judged prompts alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sonde.analysis.runs import Reading
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import (
    acc_at_1,
    fluctuation,
    manual_rank,
    manual_rank_by_chance,
    one_word_rate,
)
from sonde.metrics.calibration import Bin, calibration, overconf_by_template
from sonde.metrics.consistency import (
    Agreeing,
    consist,
    consist_of_texts,
    equal_answers,
    matching_answers,
    names_only,
    paraphrase_groups,
    templates_only,
    within_groups,
)
from sonde.metrics.coverage import coverage, names_help
from sonde.metrics.judged import Judged

Estimates = dict[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The estimates of a run by name, and the bins of its calibration curve."""

    estimates: Estimates
    bins: tuple[Bin, ...]


def main_numbers(judged: Judged, reading: Reading) -> Numbers:
    """Accuracy, fluctuation, Consist, Overconf and one-word rate: the papers' table."""
    grid, seed = judged.grid, reading.seed
    moved = fluctuation(grid, reading.draw, reading.draws, seed)
    sure = calibration(grid.confidence, grid.right, grid.pair, seed=seed)
    missing = Estimate.not_measured()
    estimates = {
        "acc_at_1": acc_at_1(grid, seed),
        f"fluctuation.{reading.draw}.range": moved.range if moved else missing,
        f"fluctuation.{reading.draw}.stdev": moved.stdev if moved else missing,
        "consist": _consist(judged, seed),
        "overconf": sure.overconf if sure else missing,
        "ece": sure.ece if sure else missing,
        "one_word_rate": one_word_rate(judged.words, seed, grid.pair),
    }
    return Numbers(estimates=estimates, bins=sure.bins if sure else ())


def all_numbers(judged: Judged, reading: Reading) -> Numbers:
    """The main numbers, and coverage, drivers, names, manual templates, Overconf by template."""
    main, seed = main_numbers(judged, reading), reading.seed
    reach = coverage(judged.grid, seed)
    names = ("average", "average_best_name", "maximum", "oracle")
    return replace(
        main,
        estimates={
            **main.estimates,
            **{f"coverage.{name}": getattr(reach, name) for name in names},
            **_drivers(judged, seed),
            **names_help(judged, seed),
            **_manual(judged, seed),
            **overconf_by_template(judged.grid, judged.sure, reading.floor, seed),
        },
    )


def _consist(judged: Judged, seed: int) -> Estimate:
    if judged.matches is None:
        return consist(judged.grid, seed)
    return consist_of_texts(judged.grid, judged.answers, judged.matches, seed)


def _agreeing(judged: Judged) -> Agreeing:
    if judged.matches is None:
        return equal_answers
    return matching_answers(judged.answers, judged.matches)


def _drivers(judged: Judged, seed: int) -> Estimates:
    vary = {"names_only": names_only, "templates_only": templates_only}
    agreeing = _agreeing(judged)
    found = {name: measure(judged.grid, seed, agreeing) for name, measure in vary.items()}
    return {
        f"{name}.{kind}": getattr(driver, kind)
        for name, driver in found.items()
        for kind in ("consist", "min", "max")
    }


def _manual(judged: Judged, seed: int) -> Estimates:
    grid = judged.grid
    manual = np.array([t.source == "manual" for t in judged.templates], dtype=np.bool_)
    groups = within_groups(
        grid, paraphrase_groups(judged.templates, grid.template_relations), seed, _agreeing(judged)
    )
    return {
        "manual.rank": manual_rank(grid, manual, seed),
        "manual.rank_by_chance": manual_rank_by_chance(grid, manual),
        "groups.inner_consist": groups.inner,
        "groups.inter_consist": groups.inter,
    }
