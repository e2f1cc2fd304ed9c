"""Tables and figures of probes with many prompts per fact, next to their metrics."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars import col

from sonde.evaluation import stats
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.special import Draw, relation_cells

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results

HISTOGRAM_BINS = 40


def fluctuation_histogram(results: "Results", draw: Draw, draws: int) -> Iterator[Exhibit]:
    """How the accuracy is distributed over draws of prompts, if it moves."""
    parts = [
        stats.success_distribution(cells.rates if draw == "relation" else cells.of_facts[:, None])
        for cells in relation_cells(results)
    ]
    distribution = stats.sum_distribution(parts)
    likely, n = np.flatnonzero(distribution * draws >= 0.5), len(distribution) - 1
    if len(likely) < 2:
        return
    width = -(-(likely[-1] + 1 - likely[0]) // HISTOGRAM_BINS)
    starts = np.arange(likely[0], likely[-1] + 1, width)
    shares = np.add.reduceat(distribution, starts)
    what = {"relation": "a template per relation and a name per pair", "pair": "a prompt per pair"}
    yield Exhibit(
        "fluctuation",
        f"Accuracy over draws of {what[draw]}",
        pl.DataFrame({"x": (starts - 0.5) / n, "y": shares}),
        {"x": "percent", "y": "percent"},
        "histogram",
        x_label="accuracy of a draw",
        y_label="share of draws",
    )


def calibration_curve(results: "Results") -> Exhibit:
    """Accuracy in ten bins of equal size, by confidence; equal confidences share a bin."""
    rows = results.table(("confidence", "correct")).drop_nulls().group_by("confidence")
    counts = rows.agg(n=pl.len(), correct=col("correct").sum()).sort("confidence")
    n, total = col("n"), col("n").sum()
    bin = ((n.cum_sum() - 1) * 10 // total).alias("bin")
    bins = counts.group_by(bin, maintain_order=True).agg(
        x=(col("confidence").cast(pl.Float64) * n).sum() / total,
        y=col("correct").sum() / total,
        n=total,
    )
    return Exhibit(
        "calibration",
        "Accuracy against confidence",
        bins.select("x", "y", "n").collect(),
        {"x": "percent", "y": "percent", "n": "count"},
        "lines",
        note="Ten bins of about equal size, by confidence.",
        x_label="mean confidence of a bin",
        y_label="accuracy of the bin",
    )
