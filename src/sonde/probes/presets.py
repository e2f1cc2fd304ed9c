"""Studies of in-context estimation: ic-lke with several sizes or contexts in a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl
from polars import col

from sonde.core.components import setting
from sonde.core.errors import UsageError
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Layout
from sonde.evaluation.stats import FLAT, Floats
from sonde.probes.ic_lke import LISTED, SEEDS_HELP, SEPARATOR_HELP, Context, IcLke

BASE = f"examples.{LISTED}"
ENOUGH = 0.95  # of the accuracy with the most examples, as in the paper
SOURCES = ("manual", "paraphrase", "mined")


@dataclass(frozen=True, kw_only=True)
class LkeShots(IcLke):
    """Accuracy by number of examples, and how many are enough."""

    shots: tuple[int, ...] = setting(  # type: ignore[assignment]
        (1, 2, 5, 10, 20, 50), "the numbers of facts that precede the subject"
    )
    seeds: int = setting(5, SEEDS_HELP, min=1)
    pair_separator: str = setting("space", SEPARATOR_HELP)
    example_separator: str = setting("space", SEPARATOR_HELP)

    name, length_setting = "lke-shots", ""
    groups = ("relation", "n_shots", ("relation", "n_shots"))
    contrasts = (m.Contrast("n_shots", "last", ("accuracy",)),)
    layout = Layout(headlines=("accuracy.full", "enough"), columns=("accuracy",))

    @property
    def shot_counts(self) -> Sequence[int]:
        if min(self.shots, default=0) < 1:
            raise UsageError(f"setting shots takes numbers from 1 on, not {self.shots}")
        return self.shots

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """A relation with fewer examples shows all that it has in place of more."""
        sizes = np.unique(np.minimum(self.shots, rows["n_shots"].to_numpy().max()))
        rows = rows.join(pl.DataFrame({"size": sizes}), how="cross")
        shown = pl.min_horizontal(col("n_shots").max().over("relation"), "size")
        return rows.filter(col("n_shots") == shown).drop("n_shots").rename({"size": "n_shots"})

    @property
    def metrics(self) -> Sequence[m.Metric]:
        accuracy, *further = super().metrics
        most = col("n_shots") == col("n_shots").max()
        full = replace(
            accuracy, id="accuracy.full", where=most, label="accuracy with the most examples"
        )
        enough = m.Metric(
            "enough",
            num=accuracy.num,
            by="n_shots",
            stat=self.smallest_sufficient_count,
            label=f"examples for {ENOUGH:.0%} of the accuracy with the most",
            unit="count",
            better="",
        )
        return (full, enough, accuracy, *further)

    def smallest_sufficient_count(self, curves: Floats, shot_counts: Sequence[int]) -> Floats:
        """The smallest size whose accuracy is the share of the last; nan if that is 0."""
        # rounding must not exclude an accuracy that is exactly the share
        reached = curves >= ENOUGH * curves[..., -1:] - FLAT
        first = np.array(shot_counts, float)[reached.argmax(axis=-1)]
        return np.where(curves[..., -1] > 0, first, np.nan)


@dataclass(frozen=True, kw_only=True)
class LkeBaselines(IcLke):
    """In-context estimation next to templates and generated answers, on the same options."""

    context: tuple[Context, ...] = setting(  # type: ignore[assignment]
        get_args(Context), f"the contexts to compare: {', '.join(get_args(Context))}"
    )
    pair_separator: str = setting("space", SEPARATOR_HELP)
    example_separator: str = setting("space", SEPARATOR_HELP)

    name = "lke-baselines"
    groups = ("relation",)
    layout = Layout(
        headlines=(f"accuracy.{BASE}", *(f"accuracy.template.{source}" for source in SOURCES)),
        notes=(
            "Accuracies are compared with that of in-context estimation fact by fact; those of "
            "generated answers with answers that are generated after examples.",
        ),
    )

    @property
    def prompt_forms(self) -> Sequence[str]:
        return self.context

    @property
    def metrics(self) -> Sequence[m.Metric]:
        """The accuracy in each context with templates of each source."""

        def share(context: str, source: str) -> pl.Expr:
            chosen = (col("context").cast(pl.String) == context) & (col("source") == source)
            return col("correct").filter(chosen).mean()

        metrics: list[m.Metric] = []
        sources = {"examples": (LISTED,), "generate": (LISTED, *SOURCES)}
        for context, source in ((c, s) for c in self.context for s in sources.get(c, SOURCES)):
            name, compared = f"{context}.{source}", {}
            if name != BASE:
                # generated answers with templates are compared with generated ones after examples
                like = "generate" if context == "generate" and source != LISTED else "examples"
                other = share(like, LISTED)
                compared = {"baseline": other, "baseline_label": "in-context estimation"}
                compared["label"] = f"accuracy, {context} {source}"
            num = share(context, source)
            accuracy = m.accuracy(f"accuracy.{name}", num=num, **compared)
            between = m.sd_between(accuracy, by="relation", id=f"deviation.{name}", counts="groups")
            metrics += accuracy, between
        return (*metrics, *m.ABSTENTION)
