"""lke-sequence: how probable each object is along a list of facts, and next to false facts.

One prompt is a whole list, in which each fact follows the others. With `replace` the same list is
prompted again with some facts made up or wrong; what these do to the facts around them is the
difference between two probabilities of one object at one place.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, SpanLogprobs
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, facts_of
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import with_other_facts
from sonde.probes.ic_lke import LISTED, ListProbe
from sonde.prompting.examples import TRAIN
from sonde.prompting.options import names_correct_for, names_correct_for_repeated_subjects
from sonde.prompting.sequences import (
    Line,
    build_draws_and_lines,
    choose_replaced_places,
    replace_objects_with_wrong,
    replace_subjects_with_invented,
)
from sonde.prompts import PromptBatch, TokenLogprobs

LIST = ("sequence", "version")
LEAST, LIKELY, PARTS = 3, 0.5, 10
AFTER = 3  # places after a replaced fact that are separate groups

CLEAN, CHANGED, USUAL, GROUP = (col(c) for c in ("clean", "changed", "usual", "place_group"))
STAYED = GROUP != "replaced"


@dataclass(frozen=True, kw_only=True)
class LkeSequence(ListProbe):
    """Probability of each object along a list of facts, and what false facts do to it."""

    length: int = setting(200, "how many facts a list has", min=3)
    replace: Literal["none", "unknown", "incorrect"] = setting(
        "none", "also prompt lists with unknown (made-up) or incorrect facts in place of some"
    )
    replaced: int = setting(40, "how many facts of a full list to replace", min=1)
    sequence_layout: Literal["spread", "block"] = setting(
        "spread", "replace facts here and there, or in one block"
    )
    seeds: int = setting(5, "how many lists of a relation, in different orders", min=1)

    name = "lke-sequence"
    requires = (frozenset({"trace"}),)
    axes = ("sequence", "place", "version")
    length_setting = "length"
    groups = (
        "relation",
        m.Group("part", ("probability.clean", "probability.changed")),
        m.Group("place_group", ("probability.clean", "probability.changed", "effect")),
    )

    def facts(self, data: Dataset) -> pl.DataFrame:
        """Training facts are listed, too."""
        listed = (
            batch.frame["facts"].explode() for batch in replace(self, replace="none").prompts(data)
        )
        unlisted = ~col("fact").is_in(pl.concat(listed).implode())
        facts = fact_table(with_training_facts(data))
        return facts.with_columns(excluded=when(unlisted).then(lit("in no list")))

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, each list as it is and then changed."""
        data, empty = with_training_facts(data), True
        real = {
            name.casefold()
            for relation in (data.relations if self.replace == "unknown" else ())
            for fact in data.facts(relation.id)
            for thing in (fact.subject, *fact.objects)
            for name in thing.names
        }
        for relation in data.asked_relations():
            if lists := list(self._write_lists(data, relation, real)):
                empty = False
                yield PromptBatch.of(lists, TokenLogprobs())
        if empty:
            raise DataError(
                f"dataset {data.name!r} has no relation with {LEAST} facts to list; raise --limit, "
                "or name other relations"
            )

    def _write_lists(
        self, data: Dataset, relation: Relation, real: Collection[str]
    ) -> Iterator[dict[str, Any]]:
        id, seed, layout = relation.id, data.selection.seed, self.list_layout_for(relation.language)
        frame, objects, several = (
            data.asked_frame(id),
            data.object_names(id),
            names_correct_for_repeated_subjects(data, id),
        )
        right = {fact.id: names_correct_for(fact, several) for fact in facts_of(frame)}
        draws, lines = build_draws_and_lines(frame, range(seed, seed + self.seeds))
        for number, draw in enumerate(draws):
            clean = [lines[row] for row in draw.take_rows(self.length)]
            if (length := len(clean)) < LEAST:
                return
            # of a short list the same share; the same places in all lists, to average them
            count = max(1, min(length - 2, round(self.replaced * length / self.length)))
            at = choose_replaced_places(count, length, self.sequence_layout, seed)
            versions: dict[str, Sequence[Line]] = {"clean": clean}
            draw_seed, changed = seed + number, "changed"
            if self.replace == "unknown":
                versions[changed] = replace_subjects_with_invented(
                    clean, at, draw_seed, real, relation.language
                )
            elif self.replace == "incorrect":
                versions[changed] = replace_objects_with_wrong(
                    clean, at, lambda x: right[x.fact], objects, draw_seed
                )
            for version, listed in versions.items():
                text, spans = layout.write(listed)
                yield {
                    "relation": id,
                    "fact": clean[0].fact,
                    "template": LISTED,
                    "subject": "",
                    "facts": [line.fact for line in clean],
                    "replaced": [len(versions) > 1 and place in at for place in range(length)],
                    "sequence": number,
                    "version": version,
                    "prefix": text[: spans[-1][1]],
                    "spans": spans,
                }

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per place of a list."""
        frame, result = answers.frame, answers.result
        assert isinstance(result, SpanLogprobs)
        spans = zip(frame["prefix"], frame["spans"].to_list(), strict=True)
        objects = [text[start:stop] for text, places in spans for start, stop in places]
        tokens = result.logprobs.values
        # an object that shares its only token with the one before it was not measured
        logprobs = pl.Series(np.where(tokens.counts > 0, tokens.sums(), np.nan))
        rows = frame.select("relation", "template", "subject", *LIST, "replaced", fact="facts")
        return rows.explode("fact", "replaced").with_columns(
            object=pl.Series(objects),
            logprob=logprobs.fill_nan(None),
            place=pl.int_range(1, pl.len() + 1).over("relation", *LIST),
        )

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per place, with the probabilities of its object in both lists."""
        one, place = ("relation", "sequence"), col("place")
        key = (*one, "place")
        changed = rows.filter(version="changed").select(*key, changed_logprob="logprob")
        rows = rows.filter(version="clean").drop("version").rename({"logprob": "gold_logprob"})
        rows = rows.join(changed, on=key, how="left", maintain_order="left").sort(key)
        since = place - when("replaced").then(place).forward_fill().over(one)
        group = (
            when(since.is_null()).then(lit("before"))
            .when(since == 0).then(lit("replaced"))
            .when(since <= AFTER).then(pl.format("after_{}", since))
            .otherwise(lit("other"))
        )  # fmt: skip
        rows = rows.with_columns(
            part=1 + (place - 1) * PARTS // pl.len().over(one),
            place_group=group,
            usual=pl.len().over(*one, "object") / pl.len().over(one),
            clean=col("gold_logprob").exp(),
            changed=col("changed_logprob").exp(),
        )
        return rows.with_columns(correct=CLEAN > LIKELY).sort("fact_no", maintain_order=True)

    @property
    def metrics(self) -> Sequence[m.Metric]:
        share = "the share of the list with the same object"
        metrics = (
            mean_over_places(
                "likely", "likely objects", CLEAN > LIKELY, USUAL > LIKELY, control=share
            ),
            mean_over_places("probability.clean", "probability", CLEAN, USUAL, control=share),
        )
        if self.replace == "none":
            return metrics
        following = STAYED & (GROUP != "before")
        return (
            *metrics,
            mean_over_places("probability.changed", "in the changed list", CHANGED, None, STAYED),
            mean_over_places("effect", "in the changed list", CHANGED, CLEAN),
            mean_over_places(
                "effect.neighbors", "facts after replaced ones", CHANGED, CLEAN, following
            ),
            mean_over_places(
                "effect.after_1", "the first after each", CHANGED, CLEAN, GROUP == "after_1"
            ),
        )

    @property
    def layout(self) -> Layout:
        changed = self.replace != "none"
        return Layout(
            title=f"{self.length} facts, {self.replace} replaced",
            headlines=(
                "likely",
                "probability.clean",
                *(("effect.neighbors", "effect.after_1") * changed),
            ),
            browse=("relation", "subject", "gold", "clean", "changed", "usual"),
            notes=(
                "Probabilities are of the whole object at its place, not among options. A token of "
                "nothing but the space before it does not count.",
                "Intervals are over facts; they do not cover other orders of the facts.",
            ),
            extra=probability_by_place,
        )


def mean_over_places(
    id: str,
    label: str,
    value: pl.Expr,
    baseline: pl.Expr | None = None,
    *where: pl.Expr,
    control: str = "the same facts in the clean list",
) -> m.Metric:
    """A mean over places; a baseline is measured at the same places."""
    measured = (part.is_not_null() for part in (value, baseline) if part is not None)
    return m.Metric(
        id,
        num=value.sum(),
        den=pl.len(),
        where=pl.all_horizontal(*measured, *where),
        baseline=None if baseline is None else baseline.sum(),
        baseline_label=control,
        label=label,
        counts="prompts",
        better="",
    )


def with_training_facts(data: Dataset) -> Dataset:
    """The dataset, prompting training facts, too."""

    def select(relation: str) -> pl.DataFrame:
        ids = data.asked_frame(relation)["fact"].implode()
        return data.frame(relation).filter(col("fact").is_in(ids) | (col("split") == TRAIN))

    return with_other_facts(data, select)


def probability_by_place(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """Every place of the lists of the first relation."""
    rows = results.table(("relation", "place", "place_group", "clean", "changed")).collect()
    rows = rows.filter(col("relation") == rows["relation"][0])
    shown = CHANGED if rows["changed"].count() else CLEAN
    kind = when(GROUP.is_in(["replaced", "after_1"])).then(GROUP).otherwise(lit("others"))
    dots = rows.group_by(x="place", color=kind, label=lit("")).agg(y=shown.mean()).sort("x")
    title = f"Probability of the object at every place, mean over lists: {rows['relation'][0]}"
    yield Exhibit("every-place", title, dots, {"x": "count", "y": "percent"}, "lines")
