"""The figure of probes with a confidence for each answer."""

from typing import TYPE_CHECKING

import polars as pl
from polars import col

from sonde.evaluation.layout import Exhibit

if TYPE_CHECKING:
    from sonde.evaluation.tables import Results


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
