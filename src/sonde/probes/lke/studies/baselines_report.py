"""The report of `lke-baselines`: ways of asking side by side, in groups. Knows choices, no prompts.

Kinds of wording: no words at all (examples alone), templates written by hand, and mined ones;
paraphrases where a dataset has none of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from sonde.core.facts import Relation, Source, Template
from sonde.core.reports import DotPlot, Estimate, Figure, Headline, Metric, Report, Series, Table
from sonde.core.words import clearly
from sonde.metrics.estimates import Resampled, Sample, spread_of
from sonde.probes.lke.choices import Kept
from sonde.probes.lke.metrics import (
    ABOVE,
    ACCURACY,
    AHEAD,
    BASELINES,
    BETWEEN,
    MAJORITY,
    SHARE_AHEAD,
)
from sonde.probes.lke.studies.study import COMMONEST, LISTED, Study
from sonde.reporting.build.figures import WHISKERS, dots_by_relation, strip
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, across, by_relation, side_by_side, table, titled
from sonde.reporting.catalogue import RELATIONS
from sonde.stats.paired import holm

if TYPE_CHECKING:
    from polars import DataFrame

How = Literal["scored", "separator", "written"]

IN_CONTEXT = "in-context"


GROUPS: Mapping[How, tuple[str, str]] = {
    "scored": ("{}", "{} templates"),
    "separator": ("{}_separator", "{} templates as separators"),
    "written": ("written_{}", "written, {} templates"),
}
"""The id and the words of a group of ways, with the kind of its templates in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The ways of asking of a kind that are averaged; `against`: the group it is held to."""

    id: str
    words: str
    kind: str
    how: How
    against: str = ""


def groups(kinds: Sequence[Source], hows: Sequence[How]) -> Iterator[Group]:
    """Every group of ways, those that are compared with each other behind what they are held to."""
    first = against = "in_context"
    for how in hows:
        if how == "scored":
            yield Group(id=first, words=IN_CONTEXT, kind=IN_CONTEXT, how=how)
        elif how == "written":
            against, words = f"written_{first}", f"written, {IN_CONTEXT}"
            yield Group(id=against, words=words, kind=IN_CONTEXT, how=how, against=first)
        for kind in kinds:
            id, words = (text.format(kind) for text in GROUPS[how])
            yield Group(id=id, words=words, kind=kind, how=how, against=against)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordings:
    """The templates of each relation that a study takes, by kind."""

    kinds: tuple[Source, ...]
    templates: Mapping[tuple[str, Source], tuple[Template, ...]]

    def of(self, relation: str) -> Iterator[Template]:
        """Every template of a relation."""
        for kind in self.kinds:
            yield from self.templates.get((relation, kind), ())

    def most(self, kind: Source) -> int:
        """How many templates of a kind a relation has at most."""
        return max((len(t) for (_, k), t in self.templates.items() if k == kind), default=0)

    def frame(self) -> DataFrame:
        """A row per template of a relation: its `kind`, and its `place` among those."""
        from polars import DataFrame, Int64, String

        names = dict.fromkeys(("relation", "template", "kind"), String)
        rows = [
            (relation, template.id, kind, place)
            for (relation, kind), own in self.templates.items()
            for place, template in enumerate(own)
        ]
        return DataFrame(rows, schema=names | {"place": Int64}, orient="row")


SERIES: Mapping[How, str] = {
    "scored": "sentence alone",
    "separator": "behind examples",
    "written": "written on",
}
PLAIN: Mapping[How, str] = {"scored": "options scored", "written": "written"}
OWN = ACCURACY.under("in_context")

Worded = tuple[Relation, Template]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was asked, in groups, and what was chosen and written."""

    study: Study
    known: Wordings
    hows: tuple[How, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """What is compared."""
        return tuple(groups(self.known.kinds, self.hows))

    def kept(self, group: str, place: int | None = None) -> Kept:
        """The choices of a group, or those with its template at one place."""
        own, frame = self.group(group), self.study.choices.frame
        kept = (frame["how"] == own.how) & (frame["kind"] == own.kind)
        return kept if place is None else kept & (frame["place"] == place).fill_null(value=False)

    def group(self, id: str) -> Group:
        """The group of that id."""
        return next(group for group in self.groups if group.id == id)

    def by_relation(self, metric: Metric, group: str) -> dict[str, float]:
        """The numbers of a group in every relation that has one."""
        own = metric.under(group)
        found = (
            (r.id, self.study.estimates[own.at(f"relation.{r.id}")]) for r in self.study.relations
        )
        return {id: estimate.value for id, estimate in found if estimate.value is not None}

    def without(self) -> list[str]:
        """The relations without a template to compare with."""
        return [r.id for r in self.study.relations if not list(self.known.of(r.id))]


def build_report(compared: Compared, n: int, options: int, most: int) -> Report:
    """Everything that is reported about some ways of asking."""
    study, frame = compared.study, compared.study.choices.frame
    _put_numbers(compared)
    several = len(compared.study.relations) > 1
    given = frame["given"].sum() if "given" in frame.columns else 0
    return Report(
        title=f"In-context estimation and its baselines on {study.dataset.name}",
        summary=_summary(compared),
        metrics=BASELINES,
        estimates=study.estimates,
        counts={
            **study.counts(),
            "relations_without_templates": len(compared.without()),
            "written_right_and_in_subject": int(given),
        },
        headlines=tuple(_headlines(compared.known.kinds)),
        tables=shown(
            (
                _group_table(compared, written=bool(most)),
                _relation_table(compared) if several else None,
                _template_table(compared),
            )
        ),
        figures=shown((_wording_figure(compared), *(_figures(compared) if several else ()))),
        findings=shown((*_findings(compared), *study.lacking(n, options))),
        notes=tuple(_notes(n, most)),
    )


def _put_numbers(compared: Compared) -> None:
    study = compared.study
    for group in compared.groups:
        kept = compared.kept(group.id)
        study.put(ACCURACY, group.id, kept)
        values = compared.by_relation(ACCURACY, group.id)
        study.estimates[BETWEEN.at(group.id)] = spread_of(list(values.values()))
        if group.against:
            study.put(AHEAD, group.id, compared.kept(group.against), less=kept)
            ahead = compared.by_relation(AHEAD, group.id)
            study.estimates[SHARE_AHEAD.at(group.id)] = _share(ahead)
    study.put_control(compared.kept("in_context"))


def _share(differences: Mapping[str, float]) -> Estimate:
    """In what share of relations a difference is above 0."""
    if not differences:
        return Estimate.not_measured()
    ahead = np.array([float(value > 0) for value in differences.values()])
    sample = Sample(values=ahead, clusters=tuple(differences))
    return sample.estimate(sample.draws(0))


def _summary(compared: Compared) -> str:
    def share(group: str) -> str:
        value = compared.study.value(ACCURACY, group)
        return "not measured" if value is None else f"{value:.1%}"

    others = ", ".join(f"{share(kind)} in {kind} templates" for kind in compared.known.kinds)
    own = share("in_context")
    return f"Behind examples the right option is chosen for {own} of facts; {others}."


def _headlines(kinds: tuple[Source, ...]) -> Iterator[Headline]:
    yield headline(
        OWN.named("In-context accuracy"),
        RELATIONS,
        control=MAJORITY,
        above=ABOVE,
        control_label=COMMONEST,
    )
    for kind in kinds:
        yield headline(
            OWN,
            RELATIONS,
            label=f"In-context against {kind} templates",
            control=ACCURACY.under(kind),
            above=AHEAD.under(kind),
            control_label=f"{kind} templates with the answer last",
        )


def _group_table(compared: Compared, *, written: bool) -> Table:
    study, ids = compared.study, {group.words: group.id for group in compared.groups}

    def look(words: str, metric: Metric) -> Estimate | None:
        if words in ids:
            return study.at(metric, ids[words])
        return study.estimates[MAJORITY.at(RELATIONS)] if metric.id == ACCURACY.id else None

    return side_by_side(
        [*ids, COMMONEST],
        [
            ACCURACY.named("accuracy", "mean over relations and templates"),
            AHEAD,
            SHARE_AHEAD.without_interval(),
            BETWEEN.without_interval().detail(),
        ],
        look,
        head="way of asking",
        id="by-way",
        title="Ways of asking",
        note="Written answers are right if a right name occurs anywhere; they are held against "
        "'written, in-context', that one against 'in-context'."
        if written
        else "",
    )


def _relation_table(compared: Compared) -> Table:
    kinds = compared.known.kinds
    fields = [
        OWN.named("in-context"),
        *(ACCURACY.under(kind).named(kind, f"mean of {kind} templates") for kind in kinds),
        *(AHEAD.under(kind).named(f"ahead of {kind}").detail() for kind in kinds),
    ]
    return by_relation(compared.study.estimates, compared.study.relations, fields)


def _template_table(compared: Compared) -> Table:
    from polars import mean

    keys = ("relation", "template", "how")
    frame = compared.study.choices.frame.group_by(keys).agg(mean("right"))
    means = {row[:-1]: row[-1] for row in frame.select(*keys, "right").rows()}
    hows: dict[str, How] = {SERIES[how]: how for how in compared.hows}
    fields: list[Field[Worded]] = [
        Field("relation", lambda row: titled(row[0])),
        Field("kind", lambda row: row[1].source),
        Field("template", lambda row: row[1].text),
        *across(hows, lambda row, name: means[row[0].id, row[1].id, hows[name]]),
    ]
    return table(
        [(r, template) for r in compared.study.relations for template in compared.known.of(r.id)],
        fields,
        id="templates",
        title="Templates",
        browsable=len(compared.study.relations) > 1,
    )


def _figures(compared: Compared) -> Iterator[Figure]:
    labels = {r.id: titled(r) for r in compared.study.relations}
    rows = ((g.words, compared.by_relation(ACCURACY, g.id)) for g in compared.groups)
    yield strip(
        ((words, [(value, labels[id]) for id, value in own.items()]) for words, own in rows),
        id="spread-over-relations",
        title="Every relation under each way of asking",
        axis="accuracy",
        note="A dot is a relation.",
    )
    ids = ("in_context", *compared.known.kinds)
    yield dots_by_relation(
        compared.study.estimates,
        compared.study.relations,
        {compared.group(id).words: ACCURACY.under(id) for id in ids},
        id="in-context-and-templates",
        title="In-context estimation and templates in every relation",
        axis="accuracy",
    )


def _wording_figure(compared: Compared) -> DotPlot:
    """One row per wording: none at all, then the first template of a kind, the second, …"""
    known, hows = compared.known, compared.hows
    rows: list[tuple[str, int | None]] = [(IN_CONTEXT, None)]
    rows += [(kind, k) for kind in known.kinds for k in range(known.most(kind))]
    names = SERIES if "separator" in hows else PLAIN
    return DotPlot(
        id="accuracy-by-wording",
        title="Accuracy with each wording, scored and written",
        axis="accuracy",
        labels=tuple(kind if k is None else f"{kind} {k + 1}" for kind, k in rows),
        series=tuple(
            Series(
                name=names[how],
                values=tuple(_with_wording(compared, how, kind, k) for kind, k in rows),
            )
            for how in hows
        ),
        note="In-context has no words: its examples are written without any, and the model writes "
        f"on from them. {WHISKERS}",
    )


def _with_wording(compared: Compared, how: How, kind: str, place: int | None) -> Estimate:
    if place is None and how == "scored" and "separator" in compared.hows:
        return Estimate.not_measured()  # a dot with those behind examples instead
    group = GROUPS[how][0].format(kind)
    if place is None:
        group = "written_in_context" if how == "written" else "in_context"
    samples = compared.study.samples(compared.kept(group, place))
    return Resampled(samples, compared.study.seed).mean_over_relations()


def _findings(compared: Compared) -> Iterator[str]:
    study, kinds, own = compared.study, compared.known.kinds, compared.kept("in_context")
    chances = holm([study.p(own, compared.kept(kind), f"ahead:{kind}") for kind in kinds])
    for kind, p in zip(kinds, chances, strict=True):
        ahead = study.estimates[AHEAD.at(f"{kind}.{RELATIONS}")]
        if ahead.value is None:
            continue
        values = compared.by_relation(AHEAD, kind).values()
        yield (
            f"In-context estimation against {kind} templates: "
            f"{clearly(ahead, 'ahead', 'behind', 'not told apart', p)}; ahead in "
            f"{sum(value > 0 for value in values)} of {len(values)} relations."
        )
    yield from _lacking(kinds)
    if without := compared.without():
        yield f"Without a template that has the answer last: {', '.join(without[:LISTED])}."


def _lacking(kinds: tuple[Source, ...]) -> Iterator[str]:
    """Which kinds of templates the dataset lacks, and what stands in their place."""
    standing = "; paraphrases stand in their place."
    if "mined" not in kinds and "paraphrase" in kinds:
        yield f"The dataset has no mined templates{standing}"
    elif "mined" not in kinds:
        yield "The dataset has neither mined templates nor paraphrases with the answer last."
    if "manual" not in kinds:
        instead = standing if {"paraphrase", "mined"} <= {*kinds} else " with the answer last."
        yield f"The dataset has no hand-written templates{instead}"


def _notes(n: int, most: int) -> Iterator[str]:
    yield (
        f"Every way is asked with the same facts and options; up to {n} examples, drawn once. Ties "
        "count as wrong."
    )
    yield (
        "Where a relation has more templates of a kind than are asked, the seed draws among them, "
        "statements before questions."
    )
    if most:
        yield (
            f"Written answers are {most} tokens, greedily, past the end of the line: a right name "
            "may also occur in what is written about something else."
        )
    yield (
        "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for a paired "
        "difference, a bootstrap over subjects for means over templates and over relations."
    )
