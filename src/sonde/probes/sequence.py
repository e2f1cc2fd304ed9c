"""lke-sequence: how probable each object is along a list of facts, and next to false facts.

One prompt is a whole list, in which each fact follows the others. With `replace` the same list is
prompted again with some facts made up or wrong; what these do to the facts around them is the
difference between two probabilities of one object at one place.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, SpanLogprobs
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template, facts_of
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import Probe
from sonde.probes.ic_lke import LISTED, as_template
from sonde.prompting.examples import TRAIN
from sonde.prompting.options import correct_for, correct_names
from sonde.prompting.sequences import (
    ListLayout,
    draw_lines,
    list_layout,
    places,
    with_unknown,
    with_wrong,
)
from sonde.prompts import PromptBatch, TokenLogprobs

LEAST, LIKELY, PARTS = 3, 0.5, 10
WINDOW = 3  # places shown before and after a traced fact

CLEAN, CHANGED, USUAL, GROUP = (col(c) for c in ("clean", "changed", "usual", "place_group"))
STAYED = GROUP != "replaced"


@dataclass(frozen=True, kw_only=True)
class LkeSequence(Probe):
    """Probability of each object along a list of facts, and what false facts do to it."""

    length: int = setting(200, "how many facts a list has", min=3)
    replace: Literal["none", "unknown", "incorrect"] = setting(
        "none", "also prompt lists with unknown (made-up) or incorrect facts in place of some"
    )
    replaced: int = setting(40, "how many facts of a full list to replace", min=1)
    sequence_layout: Literal["spread", "block"] = setting(
        "spread", "replace facts here and there, or in one block"
    )
    seeds: int = setting(5, "how many lists of a relation, each in another order", min=1)
    pair_separator: str = setting("space", "as of ic-lke")
    example_separator: str = setting("space", "as of ic-lke")
    after: int = setting(
        3,
        "how many places after a replaced fact are groups of their own",
        min=1,
        analysis_only=True,
    )

    name = "lke-sequence"
    requires = (frozenset({"trace"}),)
    axes = ("sequence", "place", "version")
    length_setting = "length"
    lost = "in no list"

    def __post_init__(self) -> None:
        list_layout(self.pair_separator, self.example_separator)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return (as_template(self._layout(relation)),)

    def _layout(self, relation: Relation) -> ListLayout:
        return list_layout(self.pair_separator, self.example_separator, relation.language)

    def facts(self, data: Dataset) -> pl.DataFrame:
        """Training facts are listed, too."""
        return fact_table(with_training(data))

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, each list as it is and then changed."""
        data, empty = with_training(data), True
        real = frozenset[str]()
        if self.replace == "unknown":
            facts = (fact for each in data.relations for fact in data.facts(each.id))
            things = (thing for fact in facts for thing in (fact.subject, *fact.objects))
            real = frozenset(name.casefold() for thing in things for name in thing.names)
        for relation in data.asked_relations():
            if lists := list(self._lists(data, relation, real)):
                empty = False
                yield PromptBatch.of(lists, TokenLogprobs())
        if empty:
            raise DataError(
                f"dataset {data.name!r} has no relation with {LEAST} facts to list; raise --limit, "
                "or name other relations"
            )

    def _lists(
        self, data: Dataset, relation: Relation, real: Collection[str]
    ) -> Iterator[dict[str, Any]]:
        id, seed, layout = relation.id, data.selection.seed, self._layout(relation)
        frame, objects, several = (
            data.asked_frame(id),
            data.object_names(id),
            correct_names(data, id),
        )
        right = {fact.id: correct_for(fact, several) for fact in facts_of(frame)}
        draws, lines = draw_lines(frame, range(seed, seed + self.seeds))
        for number, draw in enumerate(draws):
            clean = [lines[row] for row in draw.take(self.length)]
            if (length := len(clean)) < LEAST:
                return
            # of a short list the same share; the same places in all lists, to average them
            count = max(1, min(length - 2, round(self.replaced * length / self.length)))
            at = places(count, length, self.sequence_layout, seed)
            versions = {"clean": clean}
            if self.replace == "unknown":
                made_up = with_unknown(clean, at, seed + number, real, relation.language)
                versions["changed"] = list(made_up)
            elif self.replace == "incorrect":
                wrong = with_wrong(clean, at, lambda x: right[x.fact], objects, seed + number)
                versions["changed"] = list(wrong)
            for version, listed in versions.items():
                text, spans = layout.write(listed)
                yield {
                    **{"relation": id, "fact": clean[0].fact, "template": LISTED, "subject": ""},
                    **{"sequence": number, "version": version},
                    "replaced": "" if self.replace == "none" else " ".join(map(str, at)),
                    "facts": [line.fact for line in clean],
                    "prefix": text[: spans[-1][1]],
                    "spans": [list(span) for span in spans],
                }

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per place of a list."""
        frame, result = answers.frame, answers.result
        assert isinstance(result, SpanLogprobs)
        tokens = result.logprobs.values
        places = []
        for text, spans, replaced in frame.select("prefix", "spans", "replaced").iter_rows():
            objects = [text[start:stop] for start, stop in spans]
            counts, length = Counter(objects), len(objects)
            groups = place_groups({*map(int, replaced.split())}, length, self.after)
            for place, (name, group) in enumerate(zip(objects, groups, strict=True)):
                places.append(
                    (place + 1, 1 + place * PARTS // length, group, counts[name] / length)
                )
        rows = frame.select("relation", "template", "subject", "sequence", "version", fact="facts")
        columns = pl.DataFrame(places, ("place", "part", "place_group", "usual"), orient="row")
        # an object that shares its only token with the one before it was not measured
        logprobs = pl.Series("logprob", np.where(tokens.counts > 0, tokens.sums(), np.nan))
        return rows.explode("fact").hstack(columns).hstack([logprobs.fill_nan(None)])

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """One row per place, with the probabilities of its object in both lists."""
        key = ("fact_no", "sequence", "place")
        changed = rows.filter(version="changed").select(*key, changed_logprob="logprob")
        rows = rows.filter(version="clean").drop("version").rename({"logprob": "gold_logprob"})
        rows = rows.join(changed, on=key, how="left", maintain_order="left")
        rows = rows.with_columns(
            clean=col("gold_logprob").exp(), changed=col("changed_logprob").exp()
        )
        return rows.with_columns(correct=CLEAN > LIKELY)

    @property
    def metrics(self) -> Sequence[m.Metric]:
        frequency = {"baseline_label": "the share of the list with the same object"}
        metrics = (
            place_mean("likely", CLEAN > LIKELY, USUAL > LIKELY, **frequency),
            place_mean("probability.clean", CLEAN, USUAL, **frequency),
        )
        if self.replace == "none":
            return metrics
        logprobs = (col("changed_logprob"), col("gold_logprob"))
        following = STAYED & (GROUP != "before")
        return (
            *metrics,
            place_mean("probability.changed", CHANGED, where=STAYED),
            place_mean("effect", CHANGED, CLEAN),
            place_mean("log_effect", *logprobs, unit="number"),
            place_mean("effect.neighbors", CHANGED, CLEAN, where=following),
            place_mean("log_effect.neighbors", *logprobs, where=following, unit="number"),
            place_mean("effect.after_1", CHANGED, CLEAN, where=GROUP == "after_1"),
        )

    @property
    def groups(self) -> Sequence[str | tuple[str, ...] | m.Group]:
        parts = m.Group("part", ("probability.clean", "probability.changed"))
        return (
            "relation",
            parts,
            m.Group("place_group", ("probability.clean", "effect", "log_effect")),
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
            extra=exhibits,
        )


def place_mean(
    id: str,
    value: pl.Expr,
    baseline: pl.Expr | None = None,
    where: pl.Expr | None = None,
    **changes: Any,
) -> m.Metric:
    """A mean over places; a baseline is measured at the same places."""
    needed = [each.is_not_null() for each in (value, baseline) if each is not None]
    metric = m.Metric(
        id,
        num=value.sum(),
        den=pl.len(),
        where=pl.all_horizontal(*needed, *([] if where is None else [where])),
        baseline=None if baseline is None else baseline.sum(),
        baseline_label="the same facts in the clean list",
        counts="prompts",
        better="",
    )
    return replace(metric, **changes)


def place_groups(replaced: Collection[int], length: int, after: int) -> list[str]:
    """What each place is to the replaced ones.

    >>> place_groups([1], 5, 2)
    ['before', 'replaced', 'after_1', 'after_2', 'other']
    """
    groups, last = [], None
    for place in range(length):
        last = place if place in replaced else last
        distance = -1 if last is None else place - last
        near = f"after_{distance}" if distance <= after else "other"
        groups.append({-1: "before", 0: "replaced"}.get(distance, near))
    return groups


@dataclass(frozen=True, kw_only=True, repr=False)
class WithTraining(Dataset):
    """A dataset that prompts training facts, too."""

    selected: Dataset

    def asked_frame(self, relation: str) -> pl.DataFrame:
        ids = self.selected.asked_frame(relation)["fact"].implode()
        return self.frame(relation).filter(col("fact").is_in(ids) | (col("split") == TRAIN))


def with_training(data: Dataset) -> Dataset:
    return WithTraining(**{f.name: getattr(data, f.name) for f in fields(data)}, selected=data)


def exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """Every place of the first relation, and one fact with those around it."""
    columns = (
        "relation",
        "sequence",
        "place",
        "subject",
        "gold",
        "place_group",
        "clean",
        "changed",
    )
    rows = results.table(columns).collect()
    rows = rows.filter(col("relation") == rows["relation"][0])
    shown = CLEAN if rows["changed"].is_null().all() else CHANGED
    kind = when(GROUP.is_in(["replaced", "after_1"])).then(GROUP).otherwise(lit("others"))
    dots = rows.group_by(x="place", color=kind, label=lit("")).agg(y=shown.mean()).sort("x")
    yield Exhibit(
        "every-place",
        f"Probability of the object at every place: {rows['relation'][0]}",
        dots,
        {"x": "count", "y": "percent"},
        "lines",
        "A dot is the mean over the lists.",
    )
    first = rows.filter(sequence=0).sort("place")
    near = first.filter(GROUP == "after_1")
    star = (near if len(near) else first).drop_nulls("clean").sort("clean")["place"][-1]
    around = first.filter((col("place") - star).abs() <= WINDOW)
    units = {"place": "count", "clean": "percent", "changed": "percent"}
    yield Exhibit(
        "traced", "One fact and those around it", around.drop("relation", "sequence"), units
    )
