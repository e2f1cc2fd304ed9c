"""The report of `lke-baselines`: ways of asking side by side. Knows choices, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sonde.core.facts import Dataset, Source
from sonde.core.reports import (
    Cell,
    Column,
    DotPlot,
    Estimate,
    Figure,
    Headline,
    Report,
    Series,
    Strip,
    Table,
)
from sonde.core.words import clearly
from sonde.metrics.estimates import Sample, p_value
from sonde.probes.lke.items import Census
from sonde.probes.lke.studies.ask import ABOVE, CONTROL, Asked, census_findings, counts, put_control
from sonde.probes.lke.studies.baselines_ask import Group, How, Wordings, way
from sonde.probes.lke.studies.fact_scores import FactScores, put, spread
from sonde.stats.paired import holm

OVER = "mean_over_relations"
SERIES: Mapping[How, str] = {
    "scored": "sentence alone",
    "separator": "behind examples",
    "written": "written on",
}
PLAIN: Mapping[How, str] = {"scored": "options scored", "written": "written"}

Estimates = Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was asked, in groups, and what was counted while judging."""

    groups: tuple[Group, ...]
    known: Wordings
    n: int
    options: int
    most: int
    prompts: int
    ties: int
    given: int

    def group(self, id: str) -> Group:
        """The group of that id."""
        return next(group for group in self.groups if group.id == id)

    def held(self) -> Iterator[tuple[Group, Group]]:
        """Every group that is held against another, with the other."""
        for group in self.groups:
            if group.against:
                yield group, self.group(group.against)


def build_report(
    dataset: Dataset, found: list[Asked], census: Census, right: FactScores, reading: Reading
) -> Report:
    """Everything that is reported about some ways of asking."""
    seed = dataset.selection.seed
    estimates = _estimates(dataset, found, right, reading, seed)
    return Report(
        title=f"In-context estimation and its baselines on {dataset.name}",
        summary=_summary(estimates, reading),
        estimates=estimates,
        counts={
            **counts(found, census, reading.prompts, reading.ties),
            "relations_without_templates": len(_without(found, reading)),
            "written_right_and_in_subject": reading.given,
        },
        headlines=tuple(_headlines(reading)),
        tables=(
            _group_table(estimates, reading),
            *_relation_table(dataset, found, estimates, reading),
            _template_table(dataset, found, right, reading),
        ),
        figures=tuple(_figures(dataset, found, right, estimates, reading)),
        findings=(
            *_findings(estimates, right, reading, found, seed),
            *census_findings(census, found, reading.n, reading.options),
        ),
        notes=tuple(_notes(reading)),
    )


def _estimates(
    dataset: Dataset, found: list[Asked], right: FactScores, reading: Reading, seed: int
) -> dict[str, Estimate]:
    made: dict[str, Estimate] = {}
    for group in reading.groups:
        put(made, f"accuracy.{group.id}", right.samples(group.ways), seed)
        known = _by_relation(made, f"accuracy.{group.id}", found)
        made[f"deviation.{group.id}"] = spread(list(known.values()))
    for group, other in reading.held():
        put(made, f"ahead.{group.id}", right.samples(other.ways, minus=group.ways), seed)
        made[f"share_ahead.{group.id}"] = _share(_by_relation(made, f"ahead.{group.id}", found))
    put_control(made, dataset, found, right, reading.group("in_context").ways)
    return made


def _by_relation(made: Estimates, name: str, found: list[Asked]) -> dict[str, float]:
    got = {one.relation: made[f"{name}.relation.{one.relation}"].value for one in found}
    return {relation: value for relation, value in got.items() if value is not None}


def _share(differences: Mapping[str, float]) -> Estimate:
    """In what share of relations a difference is above 0."""
    if not differences:
        return Estimate.not_measured()
    ahead = np.array([float(value > 0) for value in differences.values()])
    sample = Sample(values=ahead, clusters=tuple(differences))
    return sample.estimate(sample.draws(0))


def _without(found: list[Asked], reading: Reading) -> list[str]:
    return [one.relation for one in found if not list(reading.known.of(one.relation))]


def _value(estimates: Estimates, name: str) -> str:
    value = estimates[f"{name}.{OVER}"].value
    return "not measured" if value is None else f"{value:.1%}"


def _summary(estimates: Estimates, reading: Reading) -> str:
    others = ", ".join(
        f"{_value(estimates, f'accuracy.{kind}')} in {kind} templates"
        for kind in reading.known.kinds
    )
    own = _value(estimates, "accuracy.in_context")
    return f"Behind examples the right option is chosen for {own} of facts; {others}."


def _headlines(reading: Reading) -> Iterator[Headline]:
    own = f"accuracy.in_context.{OVER}"
    yield Headline(
        label="In-context accuracy, mean over relations",
        estimate=own,
        control=f"{CONTROL}.{OVER}",
        control_label="always the commonest option",
        difference=f"{ABOVE}.{OVER}",
    )
    for kind in reading.known.kinds:
        yield Headline(
            label=f"In-context against {kind} templates",
            estimate=own,
            control=f"accuracy.{kind}.{OVER}",
            control_label=f"{kind} templates with the answer last",
            difference=f"ahead.{kind}.{OVER}",
        )


def _group_table(estimates: Estimates, reading: Reading) -> Table:
    columns = (
        Column(title="way of asking"),
        Column(title="accuracy", kind="percent", help="mean over relations and templates"),
        Column(
            title="in-context ahead",
            kind="percent",
            help="in-context minus this, paired by fact; written answers are held against written",
        ),
        Column(
            title="relations ahead",
            kind="percent",
            help="share of relations in which in-context is ahead",
        ),
        Column(title="deviation", kind="percent", help="between relations", detail=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for group in reading.groups:
        ahead = (estimates[f"ahead.{group.id}.{OVER}"] if group.against else None,
                 estimates[f"share_ahead.{group.id}"].value if group.against else None)  # fmt: skip
        accuracy = estimates[f"accuracy.{group.id}.{OVER}"]
        rows.append((group.words, accuracy, *ahead, estimates[f"deviation.{group.id}"].value))
    rows.append(("always the commonest option", estimates[f"{CONTROL}.{OVER}"], None, None, None))
    return Table(
        id="by-way",
        title="Ways of asking",
        columns=columns,
        rows=tuple(rows),
        note="Written answers are right if a right name occurs anywhere; they are held against "
        "'written, in-context', that one against 'in-context'."
        if reading.most
        else "",
    )


def _relation_table(
    dataset: Dataset, found: list[Asked], estimates: Estimates, reading: Reading
) -> Iterator[Table]:
    if len(found) < 2:
        return
    kinds = reading.known.kinds
    columns = (
        Column(title="relation"),
        Column(title="label"),
        Column(title="in-context", kind="percent"),
        *(Column(title=kind, kind="percent", help=f"mean of {kind} templates") for kind in kinds),
        *(Column(title=f"ahead of {kind}", kind="percent", detail=True) for kind in kinds),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.relation,
            dataset.relation(one.relation).label,
            estimates[f"accuracy.in_context.relation.{one.relation}"],
            *(estimates[f"accuracy.{kind}.relation.{one.relation}"] for kind in kinds),
            *(estimates[f"ahead.{kind}.relation.{one.relation}"] for kind in kinds),
        )
        for one in found
    )
    yield Table(id="by-relation", title="By relation", columns=columns, rows=rows)


def _template_table(
    dataset: Dataset, found: list[Asked], right: FactScores, reading: Reading
) -> Table:
    hows: tuple[How, ...] = tuple(dict.fromkeys(group.how for group in reading.groups))
    columns = (
        Column(title="relation"),
        Column(title="kind"),
        Column(title="template"),
        *(Column(title=SERIES[how], kind="percent") for how in hows),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        name = f"{one.relation} {dataset.relation(one.relation).label}"
        for template in reading.known.of(one.relation):
            means = [right.mean(one.relation, (way(how, template.id),)).mean() for how in hows]
            rows.append((name, template.source, template.text, *map(float, means)))
    few = len(found) == 1
    return Table(
        id="templates", title="Templates", columns=columns, rows=tuple(rows), browsable=not few
    )


def _figures(
    dataset: Dataset, found: list[Asked], right: FactScores, estimates: Estimates, reading: Reading
) -> Iterator[Figure]:
    labels = {
        one.relation: f"{one.relation} {dataset.relation(one.relation).label}" for one in found
    }
    yield _wording_figure(right, reading, dataset.selection.seed)
    if len(found) < 2:
        return
    known = {g.id: _by_relation(estimates, f"accuracy.{g.id}", found) for g in reading.groups}
    yield Strip(
        id="spread-over-relations",
        title="Every relation under each way of asking",
        axis="accuracy",
        labels=tuple(group.words for group in reading.groups),
        values=tuple(tuple(known[group.id].values()) for group in reading.groups),
        names=tuple(tuple(labels[r] for r in known[group.id]) for group in reading.groups),
        note="A dot is a relation.",
    )
    order = sorted(labels, key=lambda r: (-known["in_context"].get(r, 0.0), r))
    yield DotPlot(
        id="in-context-and-templates",
        title="In-context estimation and templates in every relation",
        axis="accuracy",
        labels=tuple(labels[r] for r in order),
        series=tuple(
            Series(
                name=reading.group(id).words,
                values=tuple(estimates[f"accuracy.{id}.relation.{r}"] for r in order),
            )
            for id in ("in_context", *reading.known.kinds)
        ),
        note="Whiskers are 95 % intervals.",
    )


def _wording_figure(right: FactScores, reading: Reading, seed: int) -> DotPlot:
    """One row per wording: none at all, then the first template of a kind, the second, …"""
    hows: tuple[How, ...] = tuple(dict.fromkeys(group.how for group in reading.groups))
    rows: list[tuple[str, str, int | None]] = [("in-context", "in_context", None)]
    for kind in reading.known.kinds:
        most = reading.known.most(kind)
        rows += [(f"{kind} {k + 1}", kind, k) for k in range(most)]
    series = [
        Series(
            name=SERIES[how] if "separator" in hows else PLAIN[how],
            values=tuple(_of(right, reading, how, row, seed) for row in rows),
        )
        for how in hows
    ]
    return DotPlot(
        id="accuracy-by-wording",
        title="Accuracy with each wording, scored and written",
        axis="accuracy",
        labels=tuple(words for words, _, _ in rows),
        series=tuple(series),
        note="In-context has no words: its examples are written without any, and the model writes "
        "on from them. Whiskers are 95 % intervals.",
    )


def _of(
    right: FactScores, reading: Reading, how: How, row: tuple[str, str, int | None], seed: int
) -> Estimate:
    _, kind, k = row
    if k is None:
        separating = any(group.how == "separator" for group in reading.groups)
        if how == "scored" and separating:  # a dot with those behind examples instead
            return Estimate.not_measured()
        ways = reading.group("written_in_context" if how == "written" else "in_context").ways
    else:
        id = {"scored": kind, "separator": f"{kind}_separator", "written": f"written_{kind}"}[how]
        if id not in {group.id for group in reading.groups}:
            return Estimate.not_measured()
        ways = {r: own[k : k + 1] for r, own in reading.group(id).ways.items()}
    made: dict[str, Estimate] = {}
    put(made, "one", right.samples(ways), seed)
    return made[f"one.{OVER}"]


def _findings(
    estimates: Estimates, right: FactScores, reading: Reading, found: list[Asked], seed: int
) -> Iterator[str]:
    kinds, own = reading.known.kinds, reading.group("in_context").ways
    less = {kind: right.samples(own, minus=reading.group(kind).ways) for kind in kinds}
    chances = holm([p_value(samples, seed, f"ahead:{kind}") for kind, samples in less.items()])
    for kind, p in zip(kinds, chances, strict=True):
        ahead = estimates[f"ahead.{kind}.{OVER}"]
        if ahead.value is None:
            continue
        known = _by_relation(estimates, f"ahead.{kind}", found)
        some = sum(value > 0 for value in known.values())
        yield (
            f"In-context estimation against {kind} templates: "
            f"{clearly(ahead, 'ahead', 'behind', 'not told apart', p)}; ahead in {some} of "
            f"{len(known)} relations."
        )
    yield from _lacking(reading.known.kinds)
    without = _without(found, reading)
    if without:
        yield f"Without a template that has the answer last: {', '.join(without[:8])}."


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


def _notes(reading: Reading) -> Iterator[str]:
    yield (
        f"Every way is asked with the same facts and options; up to {reading.n} examples, drawn "
        "once. Ties count as wrong."
    )
    yield (
        "Where a relation has more templates of a kind than are asked, the seed draws among them, "
        "statements before questions."
    )
    if reading.most:
        yield (
            f"Written answers are {reading.most} tokens, greedily, past the end of the line: a "
            "right name may also occur in what is written about something else."
        )
    yield (
        "Intervals are 95 %. Within one relation: Wilson's for a share, Newcombe's for a paired "
        "difference, a bootstrap over subjects for means over templates and over relations."
    )
