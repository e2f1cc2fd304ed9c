"""What the sections of a report look up: estimates by metric and group, names, what is excluded."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

from sonde.answers import Answers
from sonde.bridge import as_answers
from sonde.evaluation.estimate import Metric
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.stats import LEVEL
from sonde.evaluation.tables import Results
from sonde.reports.cells import Estimate, escape_control_characters
from sonde.reports.collapse import find_collapsed_relations
from sonde.reports.sentences import COLUMNS, Sentence, say, text

if TYPE_CHECKING:
    from sonde.runs.run import Run

USER = ("details.", "numbers.")  # columns that a user's table brings


class View:
    """Results and estimates, as a report reads them."""

    def __init__(self, results: Results, estimates: pl.DataFrame, run: "Run | None") -> None:
        self.results, self.facts, self.layout = results, results.facts, results.probe.layout
        self.estimates, self.run, self.counts = estimates, run, results.counts()
        lists = ([m] if isinstance(m, Metric) else m.metrics for m in results.probe.metrics)
        metrics = list(chain.from_iterable(lists))
        first = {metric.label: metric for metric in reversed(metrics) if metric.label}
        self.metrics = {
            m.id: m if first.get(m.label) is m else replace(m, label=_label(m)) for m in metrics
        }
        relations = self.facts.select(col("relation").cast(pl.String), "label").unique(
            maintain_order=True
        )
        self.labels: dict[str, str] = {id: label or id for id, label in relations.iter_rows()}
        self.one_relation = len(self.labels) == 1
        self.scored = self.counts["scored"]
        self.one_prompt = self.scored == self.counts["prompts"]  # per fact
        # of numbers that only count facts, or only relations, those
        ordered = estimates.drop_nulls("value").sort(
            col("over") == self.layout.over, maintain_order=True
        )
        keys = ("run", "reference", "group_by", "group", "metric", "of")
        ordered = ordered.unique(keys, keep="last", maintain_order=True)
        self.plain = ordered.filter(col("run").is_null())
        self.differences = self.plain.filter(col("reference").is_not_null())
        self.plain = self.plain.filter(col("reference").is_null())
        self._found = {
            (e["metric"], e["of"], *e["group_by"], *e["group"]): to_estimate(e)
            for e in self.plain.iter_rows(named=True)
        }
        self.headlines = [m for id in self.layout.headlines if (m := self.metrics.get(id))]
        self.first = self.headlines[0]
        verdict = self.metrics.get(self.layout.verdict, self.first)
        compared = (m for m in (self.first, verdict) if self.get(m, "difference"))
        self.compared = next(compared, self.first)
        name = "The model" if run is None else run.manifest.model["name"]
        self.model = name.removeprefix("hf:").rstrip("/").rsplit("/", 1)[-1]
        self.dataset = "the dataset" if run is None else run.manifest.dataset["name"]
        self.modes = sorted(
            results.table(["answer_mode"]).collect().to_series().drop_nulls().unique()
        )
        # of several ways to answer, only some may give empty answers
        empty = 2 * self.counts.get("empty", 0) > self.counts["prompts"]
        self.empty = empty and len(self.modes) == 1

    def get(
        self, metric: Metric, of: str = "value", by: Sequence[str] = (), group: Sequence[str] = ()
    ) -> Estimate | None:
        """An estimate; None if it is not measured."""
        return self._found.get((metric.id, of, *by, *group))

    @cached_property
    def collapsed(self) -> list[Any]:
        return find_collapsed_relations(self.results)

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Why facts are excluded, and how many."""
        scored = self.results.rows["fact_no"].unique().implode()
        lost = self.facts.filter(~col("fact_no").is_in(scored))["excluded"]
        return dict(lost.fill_null("no answer to grade").value_counts(sort=True).iter_rows())

    @cached_property
    def hits(self) -> int | None:
        """The number of correct facts, if the first headline is their share."""
        correct, value = self.results.rows["correct"], self.get(self.first)
        if not (self.one_relation and self.one_prompt) or value is None:
            return None
        hits = int(correct.sum())
        return hits if abs(hits / len(correct) - (value.value or 0)) < 1e-9 else None

    def over(self) -> Sentence:
        """What a headline averages."""
        relations = self.results.rows["relation"].n_unique()
        values = {"facts": self.scored, "relations": relations}
        return say("over.one" if self.one_relation else f"over.{self.layout.over}", **values)


def stored_answers(run: "Run | None") -> Iterator[Answers]:
    """The answers of a run, from the beginning; none without a run."""
    for block in run.answers() if run else ():
        yield block if isinstance(block, Answers) else as_answers(block)


def _label(metric: Metric) -> str:
    """A label for a metric that has none, or one that another has."""
    id = metric.id.replace("_", " ")
    return f"{metric.label} ({id})" if metric.label else id


def to_estimate(e: dict[str, Any]) -> Estimate:
    """A row of ESTIMATES, with the p that is corrected for its group."""
    p = e["p_adjusted"] if e["p_adjusted"] is not None else e["p"]
    return Estimate(e["value"], e["low"], e["high"], e["n"], p)


def above_or_below(difference: Estimate) -> str:
    """The verdict of a test: above, below or none."""
    if difference.p is None or difference.p >= LEVEL:
        return "none"
    return "above" if (difference.value or 0) > 0 else "below"


def column_name(name: str, several: bool = False) -> str:
    """How a table heads a column."""
    plain = name.removeprefix(USER[0]).removeprefix(USER[1]).replace("_", " ")
    return (COLUMNS.get(f"several.{name}") if several else None) or COLUMNS.get(name, plain)


def english(id: str, **values: Any) -> str:
    """A sentence where only text can be: a note or a title."""
    return text(say(id, **values))


def exhibit(
    id: str, title: str, rows: Sequence[Sequence[Any]], heads: Sequence[str], **more: Any
) -> Exhibit:
    """A table or figure from rows."""
    # names of files need not be Unicode, texts of a frame must be
    rows = [
        [escape_control_characters(value) if isinstance(value, str) else value for value in row]
        for row in rows
    ]
    frame = pl.DataFrame(rows, list(heads), orient="row", infer_schema_length=None)
    return Exhibit(id, title, frame, **more)
