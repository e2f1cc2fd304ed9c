"""The report of `lke-sequence`: means by place and by what stands before, tables and figures.

Knows places of sequences, nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sonde.core.facts import Dataset, Relation
from sonde.core.reports import Curve, Curves, Estimates, Headline, Metric, Report, Table
from sonde.core.words import clearly, listed, points
from sonde.metrics.judged import Judged
from sonde.former.lke.choices import Rows
from sonde.former.lke.metrics import Kept, Mean
from sonde.reporting.build.figures import curve
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import (
    Field,
    browse,
    by_place,
    by_relation,
    measured,
    table,
    titled,
)
from sonde.reporting.catalogue import shares

if TYPE_CHECKING:
    from polars import DataFrame

SHARES = LIKELY, USUALLY, ABOVE_USUALLY, CLEAN, USUAL, ABOVE_USUAL, CHANGED, EFFECT = shares(
    ("likely", "likely", "share of objects with a probability above one half", "higher"),
    (
        "control.frequency.likely",
        "usual",
        "share of objects that fill more than half of the sequence",
        "",
    ),
    ("above_control.likely", "above", "the difference of the two", "higher"),
    ("probability.clean", "as it is", "mean probability in the clean sequence", "higher"),
    (
        "control.frequency.probability",
        "usual",
        "mean share of the sequence that has the same object",
        "",
    ),
    ("above_control.probability", "above", "probability minus that share", "higher"),
    ("probability.changed", "changed", "mean probability in the changed sequence", "higher"),
    ("effect", "effect", "changed minus clean, place by place", ""),
    differences=("above_control.likely", "above_control.probability", "effect"),
)
LOG_EFFECT = Metric(
    "log_effect",
    "log effect",
    "number",
    "the same of log-probabilities, in nats: it also counts facts that are unlikely",
    better="",
)
METRICS = (*SHARES, LOG_EFFECT)
AFTER_1 = EFFECT.under("after_1").named("effect 1 after")
NEIGHBOURS = EFFECT.under("neighbours").named("effect on all that follow")

FALSE = {"unknown": "made-up facts", "incorrect": "incorrect facts"}
"""What stands in the place of some facts, in words."""

PARTS = 10
TENTHS = {f"part.{k}": k for k in range(1, PARTS + 1)}
WINDOW = 3

Row = Mapping[str, Any]


class Shape(NamedTuple):
    """How sequences were made; `replaced` counts in a sequence of full length."""

    length: int
    replace: str
    replaced: int
    seeds: int
    after: int

    @property
    def changed(self) -> bool:
        """Whether some facts were replaced."""
        return self.replace != "none"

    @property
    def groups(self) -> dict[str, str]:
        """What places are to the replaced ones, in words, in the order of the tables."""
        after = {f"after_{k}": f"{k} after" for k in range(1, self.after + 1)}
        return {"replaced": "replaced", **after, "other": "further after", "before": "before all"}


def build_report(dataset: Dataset, places: DataFrame, shape: Shape, judged: Judged) -> Report:
    """Everything that is reported about some sequences."""
    from polars import max as most

    relations, changed = judged.relations, shape.changed
    means = (*_clean(places), *(_changed(places, [*shape.groups]) if changed else ()))
    rows = Rows(frame=places, relations=relations, seed=dataset.selection.seed, over="")
    estimates = dict(rows.estimates(means))
    lengths = dict(places.group_by("relation", maintain_order=True).agg(most("place")).rows())
    return Report(
        title=f"Facts in a sequence on {dataset.name}",
        summary=_summary(estimates, max(lengths.values()), shape),
        metrics=METRICS,
        estimates=estimates,
        counts=_counts(dataset, places, changed),
        headlines=tuple(_headlines(shape)),
        tables=shown(
            _group_table(estimates, shape) if changed else None,
            _part_table(estimates, changed),
            _relation_table(estimates, relations, lengths, changed),
            _example_table(places, changed),
            _place_table(places, relations, shape),
        ),
        figures=shown(
            _along(estimates, max(lengths.values()), changed),
            _every_place(places, relations[0], changed),
        ),
        findings=shown(*_findings(estimates, places, lengths, shape)),
        notes=_notes(shape),
        judged=judged,
    )


def _clean(places: DataFrame) -> Iterator[Mean]:
    yield Mean(LIKELY, "likely")
    yield Mean(USUALLY, "usually", each=False)
    yield Mean(ABOVE_USUALLY, "likely", minus="usually", each=False)
    yield Mean(CLEAN, "clean")
    yield Mean(USUAL, "usual", each=False)
    yield Mean(ABOVE_USUAL, "clean", minus="usual", each=False)
    for tenth, k in TENTHS.items():
        yield Mean(CLEAN.under(tenth), "clean", places["part"] == k, each=False)


def _changed(places: DataFrame, kinds: Sequence[str]) -> Iterator[Mean]:
    """Of the facts that stayed: the replaced ones would only say how many they are."""
    group = places["group"]
    stayed = group != "replaced"
    yield Mean(CHANGED, "changed", stayed, each=False)
    for tenth, k in TENTHS.items():
        kept = stayed & (places["part"] == k)
        yield Mean(CHANGED.under(tenth), "changed", kept, each=False)
    groups = {kind: group == kind for kind in kinds} | {"neighbours": _following(places)}
    for kind, kept in groups.items():
        each = kind in ("after_1", "neighbours")
        yield Mean(CLEAN.under(kind), "clean", kept, each=False)
        yield Mean(CHANGED.under(kind), "changed", kept, each=False)
        if kind != "before":  # the same text: nothing can move
            yield Mean(EFFECT.under(kind), "changed", kept, "clean", each=each)
            yield Mean(LOG_EFFECT.under(kind), "changed_log", kept, "clean_log", each=False)


def _following(places: DataFrame) -> Kept:
    """Which places are not replaced themselves and have a replaced one somewhere before them."""
    return ~places["group"].is_in(["before", "replaced"])


def _summary(estimates: Estimates, facts: int, shape: Shape) -> str:
    value = estimates[CLEAN.at()].value
    if value is None:
        return "Nothing was measured: no object has a token of its own."
    last = estimates[CLEAN.at([*TENTHS][-1])].value or 0.0
    first = (
        f"Along {facts} facts the model gives the right object a probability of {value:.1%} on "
        f"average, {last:.1%} in the last tenth."
    )
    effect = estimates.get(NEIGHBOURS.at())
    if effect is None or effect.value is None:
        return first
    return f"{first} After {FALSE[shape.replace]} the others move by {points(effect.value)} points."


def _counts(dataset: Dataset, places: DataFrame, changed: bool) -> dict[str, int]:
    relations = places["relation"].n_unique()
    counts = {
        "relations": relations,
        "sequences": places.select("relation", "sequence").n_unique(),
        "facts": places["fact"].n_unique(),
        "places": places.height,
        "relations_with_too_few_facts": len(dataset.asked_relations()) - relations,
    }
    if changed:
        counts["replaced"] = int((places["group"] == "replaced").sum())
        counts["following"] = int(_following(places).sum())
    return counts


def _headlines(shape: Shape) -> Iterator[Headline]:
    label = "how often the object stands in the sequence"
    for metric, words, control, above in (
        (LIKELY, "Objects that are likelier than not", USUALLY, ABOVE_USUALLY),
        (CLEAN, "Probability of the object", USUAL, ABOVE_USUAL),
    ):
        yield headline(metric, label=words, control=control, above=above, control_label=label)
    if not shape.changed:
        return
    label, false = "the same facts in the clean sequence", FALSE[shape.replace]
    for group, words in (
        ("neighbours", f"The others, among {false}"),
        ("after_1", f"The fact right after one of the {false}"),
    ):
        yield headline(
            CHANGED, group, label=words, control=CLEAN, above=EFFECT, control_label=label
        )


def _group_table(estimates: Estimates, shape: Shape) -> Table:
    """What replaced facts do to each kind of place."""
    words = shape.groups | {"neighbours": "all that follow"}
    head = Field[str](
        "place", lambda kind: words[kind], help="what a place is to the replaced facts"
    )
    return table(
        words,
        [head, CLEAN, CHANGED, EFFECT, LOG_EFFECT.detail()],
        lambda kind, metric: estimates.get(metric.at(kind)),
        id="by-group",
        title=f"What {FALSE[shape.replace]} do to their neighbours",
        note="'Replaced' compares another fact at the same place. 'Before all' the model has read "
        "the same text, so that nothing moves.",
    )


def _part_table(estimates: Estimates, changed: bool) -> Table:
    """Probability along the sequence, a tenth at a time."""
    return by_place(
        estimates,
        {str(k): tenth for tenth, k in TENTHS.items()},
        [CLEAN.named("clean"), *([CHANGED] if changed else [])],
        head="tenth of the sequence",
        id="along",
        title="Along the sequence",
        note="In the changed sequence the facts that were not replaced." if changed else "",
    )


def _relation_table(
    estimates: Estimates, relations: Sequence[Relation], lengths: Mapping[str, int], changed: bool
) -> Table | None:
    fields: list[Metric | Field[Relation]] = [
        Field("facts", lambda r: lengths[r.id], "count", "in a sequence"),
        CLEAN.named("probability"),
        *([AFTER_1, NEIGHBOURS] if changed else []),
    ]
    return by_relation(estimates, relations, fields) if len(relations) > 1 else None


def _example_table(places: DataFrame, changed: bool) -> Table:
    """One sequence around one place: of the first, right after a replaced fact, the best known."""
    first = places.filter(
        (places["relation"] == places["relation"][0])
        & (places["sequence"] == places["sequence"][0])
    )
    known = first.filter(first["clean"].is_not_nan())
    after = known.filter(known["group"] == "after_1")
    among = next(frame for frame in (after, known[known.height // 2 :], places[:1]) if frame.height)
    star = among.sort("clean", "place", descending=[True, False]).row(0, named=True)
    near = first.filter((first["place"] - star["place"]).abs() <= WINDOW)
    return table(
        near.iter_rows(named=True),
        _columns(changed),
        id="example",
        title=f"One fact traced: {star['line']}",
        note="The best-known fact right after a replaced one in the first sequence."
        if changed
        else "The best-known fact in the second half of the first sequence.",
    )


def _columns(changed: bool) -> list[Field[Row]]:
    """What is told of a place."""

    def probability(title: str, name: str, sequence: str) -> Field[Row]:
        return Field(title, lambda row: measured(row[name]), "percent", sequence)

    fields: list[Field[Row]] = [
        Field("place", kind="count"),
        Field("fact", lambda row: row["line"]),
        probability("probability", "clean", "of the object in the clean sequence"),
    ]
    if changed:
        fields += [
            Field("changed to", lambda row: row["changed_line"]),
            probability("probability then", "changed", "in the changed sequence"),
        ]
    return fields


def _place_table(places: DataFrame, relations: Sequence[Relation], shape: Shape) -> Table:
    titles, words = {r.id: titled(r) for r in relations}, shape.groups
    what = Field[Row]("what it is", lambda row: words[row["group"]], help="to the replaced facts")
    fields: list[Field[Row]] = [
        Field("relation", lambda row: titles[row["relation"]]),
        Field("sequence", lambda row: row["sequence"] + 1, "count"),
        *_columns(shape.changed),
        *([what] if shape.changed else []),
    ]
    return browse(places.iter_rows(named=True), fields, id="places", title="Every place")


def _along(estimates: Estimates, longest: int, changed: bool) -> Curves:
    """Means of tenths, drawn at the middle of each tenth of the longest sequence."""

    def means(name: str, metric: Metric) -> Curve:
        at = (((k - 0.5) * longest / PARTS + 0.5, t) for t, k in TENTHS.items())
        return curve(name, ((place, estimates[metric.at(tenth)]) for place, tenth in at))

    clean = means("as it is", CLEAN)
    return Curves(
        id="along-the-sequence",
        title="Probability of the object along the sequence",
        x_axis="place in the sequence",
        y_axis="mean probability of the object",
        curves=(clean, means("changed", CHANGED)) if changed else (clean,),
        x_kind="number",
        note="Each point averages a tenth of the sequence, less the replaced facts where it is "
        "changed; whiskers are 95 % intervals.",
    )


def _every_place(places: DataFrame, relation: Relation, changed: bool) -> Curves:
    """Each place of the first relation, averaged over its sequences; by group where changed."""
    from polars import mean

    value = "changed" if changed else "clean"
    kept = places.filter((places["relation"] == relation.id) & places[value].is_not_nan())
    kinds = {"replaced": "replaced", "after_1": "1 after"} if changed else {}
    rest = "all others" if changed else "all"
    kind = kept["group"].replace_strict(kinds, default=rest, return_dtype=kept["group"].dtype)
    means = kept.group_by(kind.alias("kind"), "place").agg(mean(value)).sort("place")
    dots = {name: means.filter(means["kind"] == name) for name in (*kinds.values(), rest)}
    return Curves(
        id="every-place",
        title=f"Every place of the sequence: {titled(relation)}",
        x_axis="place in the sequence",
        y_axis="probability of the object",
        curves=tuple(
            Curve(name=name, x=tuple(map(float, d["place"])), y=tuple(d[value]), joined=False)
            for name, d in dots.items()
        ),
        x_kind="number",
        note="A dot is the mean over the sequences of one relation"
        + (", in the changed sequence." if changed else "."),
    )


def _findings(
    estimates: Estimates, places: DataFrame, lengths: Mapping[str, int], shape: Shape
) -> Iterator[str]:
    short = [f"{id} {count}" for id, count in lengths.items() if count < shape.length]
    if short:
        yield f"Sequences of fewer than {shape.length} facts, for want of more: {listed(short)}."
    if not shape.changed:
        return
    replaced = places.unique("relation", maintain_order=True).select("relation", "replaced").rows()
    fewer = [f"{id} {count}" for id, count in replaced if count != shape.replaced]
    if fewer:
        share = f"{shape.replaced} of {shape.length}"
        yield f"Replaced in a sequence, for the same share as {share}: {listed(fewer)}."
    for metric, words in (
        (AFTER_1, "the fact right after one"),
        (NEIGHBOURS, "all that follow"),
    ):
        effect = estimates[metric.at()]
        if effect.value is not None:
            moved = clearly(effect, "raised", "lowered", "not clearly moved")
            yield f"Among {FALSE[shape.replace]} the probability of {words} is {moved}."


def _notes(shape: Shape) -> tuple[str, ...]:
    sequences = "one sequence" if shape.seeds == 1 else f"{shape.seeds} sequences"
    return (
        "Probabilities are of the whole object where it stands, not among options. A token that "
        "holds nothing but the space before it is not counted.",
        f"Each relation has {sequences} of its facts, asked about and for training alike.",
        "Intervals are 95 %: a bootstrap over facts within relations. They do not cover other "
        "ways of ordering the facts.",
    )
