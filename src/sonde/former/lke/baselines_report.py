"""The report of `lke-baselines`: ways of asking side by side, in groups. Knows choices, no prompts.

Kinds of wording: no words at all (examples alone), templates written by hand, and mined ones;
paraphrases where a dataset has none of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sonde.core.facts import Relation, Source, Template
from sonde.core.reports import DotPlot, Estimate, Figure, Headline, Metric, Report, Series, Table
from sonde.core.words import clearly, listed
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.estimates import RELATIONS, Sample, spread_of
from sonde.former.lke.choices import Choices
from sonde.former.lke.metrics import (
    ABOVE,
    ACCURACY,
    COMMONEST,
    DEVIATION,
    MAJORITY,
    Kept,
    Mean,
    accuracy_headline,
    beside_control,
)
from sonde.reporting.build.figures import WHISKERS, dots, dots_by_relation, strip
from sonde.reporting.build.parts import (
    Abstentions,
    Written,
    abstentions,
    headline,
    nothing_said,
    shown,
)
from sonde.reporting.build.tables import Field, across, by_relation, side_by_side, table, titled
from sonde.reporting.catalogue import shares
from sonde.stats.paired import holm

if TYPE_CHECKING:
    from polars import DataFrame

AHEAD, SHARE_AHEAD = shares(
    (
        "ahead",
        "in-context ahead",
        "in-context minus this, fact by fact; written answers are held against written",
        "",
    ),
    ("share_ahead", "relations ahead", "share of relations in which in-context is ahead", ""),
    differences=("ahead",),
)
BETWEEN = DEVIATION.named("deviation", "standard deviation between relations")
METRICS = (ACCURACY, AHEAD, SHARE_AHEAD, BETWEEN, MAJORITY, ABOVE, *ABSTENTION)

KINDS: tuple[Source, ...] = ("manual", "paraphrase", "mined")
IN_CONTEXT = "in_context"
NO_WORDS = "in-context"
"""What stands in the place of a template where there is none."""

GROUPS = {"scored": "{}", "separator": "{}_separator", "written": "written_{}"}
"""By how something is asked: what the names of estimates call it, with the kind of wording."""

WORDS = {"scored": "{}", "separator": "{} as separators", "written": "written, {}"}
SERIES = {"scored": "sentence alone", "separator": "behind examples", "written": "written on"}
PLAIN = {"scored": "options scored", "written": "written"}


class Wording(NamedTuple):
    """A template of a relation that a study takes, with its place among those of its kind."""

    relation: str
    place: int
    template: Template


def kinds_of(taken: Sequence[Wording]) -> list[Source]:
    """The kinds of templates that some relation has."""
    return [kind for kind in KINDS if any(wording.template.source == kind for wording in taken)]


def grouped(choices: DataFrame, taken: Sequence[Wording]) -> DataFrame:
    """Choices with the `kind` of their wording, its `place` among those, and their `group`."""
    from polars import DataFrame, Series

    rows = [(id, template.id, template.source, place) for id, place, template in taken]
    columns = ["relation", "template", "kind", "place"]
    words = DataFrame(rows, schema=columns, orient="row")
    frame = choices.join(words, on=columns[:2], how="left", maintain_order="left")
    kinds = frame["kind"].fill_null(IN_CONTEXT)
    ids = [GROUPS[how].format(kind) for how, kind in zip(frame["how"], kinds, strict=True)]
    return frame.with_columns(kinds, group=Series(ids))


class Group(NamedTuple):
    """Ways of asking that are averaged: in words, and the group that they are held against."""

    words: str
    against: str


def groups(kinds: Sequence[str], hows: Sequence[str]) -> dict[str, Group]:
    """Every group by its id, those that are compared with each other behind what they are held to.

    >>> groups(["manual"], ["scored"])["manual"]
    Group(words='manual templates', against='in_context')
    """
    every, written = {}, GROUPS["written"].format(IN_CONTEXT)
    for how in hows:
        if how != "separator":
            first = Group(WORDS[how].format(NO_WORDS), IN_CONTEXT if how == "written" else "")
            every[GROUPS[how].format(IN_CONTEXT)] = first
        for kind in kinds:
            against = written if how == "written" else IN_CONTEXT
            every[GROUPS[how].format(kind)] = Group(WORDS[how].format(f"{kind} templates"), against)
    return every


def build_report(
    choices: Choices, taken: Sequence[Wording], hows: Sequence[str], most: int
) -> Report:
    """Everything that is reported about some ways of asking."""
    asked, frame, kinds = choices.asked, choices.frame, kinds_of(taken)
    compared, worded = groups(kinds, hows), {wording.relation for wording in taken}
    _measure(choices, compared)
    without = [id for id in asked.examples if id not in worded]
    several, chosen = len(asked.examples) > 1, (frame["how"] == "written").to_numpy()
    silent, answers = _abstentions(choices, chosen), _written(frame)
    choices.estimates.update(silent.estimates)
    return Report(
        title=f"In-context estimation and its baselines on {asked.dataset.name}",
        summary=_summary(choices, kinds),
        metrics=METRICS,
        estimates=choices.estimates,
        counts={
            **choices.counts(),
            "relations_without_templates": len(without),
            "written_right_and_in_subject": int(frame["given"].sum()) if "given" in frame else 0,
            "written_empty": answers.empty,
            **silent.counts,
        },
        headlines=(*_headlines(kinds), *silent.headlines),
        tables=shown(
            _group_table(choices, compared, written=bool(most)),
            _relation_table(choices, kinds) if several else None,
            _template_table(choices, taken, hows),
            *silent.tables,
        ),
        figures=shown(
            _way_figure(choices, compared),
            _wording_figure(choices, taken, hows),
            *(_figures(choices, compared, kinds) if several else ()),
        ),
        findings=shown(
            nothing_said([answers], [f"--set n={2 * asked.n}"]),
            *_findings(choices, kinds, without),
            *silent.findings,
            *asked.sentences(),
        ),
        notes=tuple(_notes(asked.n, most)),
        judged=choices.judged,
    )


def _written(frame: DataFrame) -> Written:
    said = frame.filter(frame["how"] == "written")["answer"].str.strip_chars()
    return Written(what="written answers", empty=int((said == "").sum()), total=len(said))


def _abstentions(choices: Choices, written: np.ndarray) -> Abstentions:
    if not written.any():
        return Abstentions(estimates={}, counts={})
    return abstentions(choices.judged, choices.asked.dataset.selection.seed, written=written)


def _kept(choices: Choices, group: str) -> Kept:
    return choices.frame["group"] == group


def _values(choices: Choices, metric: Metric, group: str) -> dict[Relation, float]:
    """The numbers of a group in every relation that has one."""
    name = metric.under(group)
    every = {r: choices.estimates[name.at(f"relation.{r.id}")] for r in choices.asked.relations}
    return {r: estimate.value for r, estimate in every.items() if estimate.value is not None}


def _measure(choices: Choices, compared: Mapping[str, Group]) -> None:
    """Add every number: of each group, and how far what it is held against is ahead of it."""
    for id, group in compared.items():
        kept = _kept(choices, id)
        choices.put(Mean(ACCURACY.under(id), kept=kept))
        accuracies = _values(choices, ACCURACY, id)
        choices.estimates[BETWEEN.at(id)] = spread_of(list(accuracies.values()))
        if group.against:
            choices.put(Mean(AHEAD.under(id), kept=_kept(choices, group.against), less=kept))
            choices.estimates[SHARE_AHEAD.at(id)] = _share(_values(choices, AHEAD, id))
    choices.put(*beside_control(_kept(choices, IN_CONTEXT)))


def _share(differences: Mapping[Relation, float]) -> Estimate:
    """In what share of relations a difference is above 0."""
    if not differences:
        return Estimate.not_measured()
    ahead = np.array([float(value > 0) for value in differences.values()])
    sample = Sample(values=ahead)
    return sample.estimate(sample.draws(0))


def _summary(choices: Choices, kinds: Sequence[str]) -> str:
    def share(group: str) -> str:
        value = choices.value(ACCURACY, group)
        return "not measured" if np.isnan(value) else f"{value:.1%}"

    others = ", ".join(f"{share(kind)} in {kind} templates" for kind in kinds)
    return f"Behind examples the right option is chosen for {share(IN_CONTEXT)} of facts; {others}."


def _headlines(kinds: Sequence[str]) -> Iterator[Headline]:
    yield accuracy_headline(IN_CONTEXT, "In-context accuracy")
    for kind in kinds:
        yield headline(
            ACCURACY.under(IN_CONTEXT),
            RELATIONS,
            label=f"In-context against {kind} templates",
            control=ACCURACY.under(kind),
            above=AHEAD.under(kind),
            control_label=f"{kind} templates with the answer last",
        )


def _group_table(choices: Choices, compared: Mapping[str, Group], *, written: bool) -> Table:
    ids = {group.words: id for id, group in compared.items()}

    def look(words: str, metric: Metric) -> Estimate | None:
        if words in ids:
            return choices.at(metric, ids[words])
        return choices.estimates[MAJORITY.at(RELATIONS)] if metric.id == ACCURACY.id else None

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


def _relation_table(choices: Choices, kinds: Sequence[str]) -> Table:
    fields = [
        ACCURACY.under(IN_CONTEXT).named(NO_WORDS),
        *(ACCURACY.under(kind).named(kind, f"mean of {kind} templates") for kind in kinds),
        *(AHEAD.under(kind).named(f"ahead of {kind}").detail() for kind in kinds),
    ]
    return by_relation(choices.estimates, choices.asked.relations, fields)


def _template_table(choices: Choices, taken: Sequence[Wording], hows: Sequence[str]) -> Table:
    from polars import mean

    frame = choices.frame.group_by("relation", "template", "how").agg(mean("right"))
    means = {tuple(key): share for *key, share in frame.iter_rows()}
    names, asked = {SERIES[how]: how for how in hows}, choices.asked
    titles = {r.id: titled(r) for r in asked.relations}
    fields: list[Field[Wording]] = [
        Field("relation", lambda wording: titles[wording.relation]),
        Field("kind", lambda wording: wording.template.source),
        Field("template", lambda wording: wording.template.text),
        *across(names, lambda w, name: means[w.relation, w.template.id, names[name]]),
    ]
    return table(
        [wording for wording in taken if wording.relation in asked.examples],
        fields,
        id="templates",
        title="Templates",
        browsable=len(asked.examples) > 1,
    )


def _figures(
    choices: Choices, compared: Mapping[str, Group], kinds: Sequence[str]
) -> Iterator[Figure]:
    rows = ((group.words, _values(choices, ACCURACY, id)) for id, group in compared.items())
    yield strip(
        ((words, [(value, titled(r)) for r, value in values.items()]) for words, values in rows),
        id="spread-over-relations",
        title="Every relation under each way of asking",
        axis="accuracy",
        note="A dot is a relation.",
    )
    yield dots_by_relation(
        choices.estimates,
        choices.asked.relations,
        {compared[id].words: ACCURACY.under(id) for id in (IN_CONTEXT, *kinds)},
        id="in-context-and-templates",
        title="In-context estimation and templates in every relation",
        axis="accuracy",
    )


def _way_figure(choices: Choices, compared: Mapping[str, Group]) -> DotPlot:
    """The accuracy of every way of asking."""
    return dots(
        choices.estimates,
        {group.words: f"{id}.{RELATIONS}" for id, group in compared.items()},
        {"accuracy": ACCURACY},
        id="accuracy-by-way",
        title="Accuracy of each way of asking",
        axis="accuracy, mean over relations and templates",
    )


def _wording_figure(choices: Choices, taken: Sequence[Wording], hows: Sequence[str]) -> DotPlot:
    """One row per wording: none at all, then the first template of a kind, the second, …"""
    rows: list[tuple[str, str, Kept]] = [(NO_WORDS, IN_CONTEXT, choices.frame["place"].is_null())]
    for kind in kinds_of(taken):
        for k in sorted({w.place for w in taken if w.template.source == kind}):
            kept = (choices.frame["place"] == k).fill_null(value=False)
            rows.append((f"{kind} {k + 1}", kind, kept))

    def estimate(how: str, kind: str, kept: Kept) -> Estimate:
        if kind == IN_CONTEXT and how == "scored" and "separator" in hows:
            return Estimate.not_measured()  # a dot with those behind examples instead
        if kind == IN_CONTEXT and how == "separator":
            how = "scored"
        kept = kept & _kept(choices, GROUPS[how].format(kind))
        return choices.by_fact.resampled(Mean(ACCURACY, kept=kept)).mean_over_relations()

    names = SERIES if "separator" in hows else PLAIN
    return DotPlot(
        id="accuracy-by-wording",
        title="Accuracy with each wording, scored and written",
        axis="accuracy",
        labels=tuple(label for label, _, _ in rows),
        series=tuple(
            Series(name=names[how], values=tuple(estimate(how, *row[1:]) for row in rows))
            for how in hows
        ),
        note="In-context has no words: its examples are written without any, and the model writes "
        f"on from them. {WHISKERS}",
    )


def _findings(choices: Choices, kinds: Sequence[str], without: Sequence[str]) -> Iterator[str]:
    first = _kept(choices, IN_CONTEXT)
    ps = holm([choices.p(first, _kept(choices, kind), f"ahead:{kind}") for kind in kinds])
    for kind, p in zip(kinds, ps, strict=True):
        ahead = choices.estimates[AHEAD.at(f"{kind}.{RELATIONS}")]
        if ahead.value is None:
            continue
        values = _values(choices, AHEAD, kind).values()
        yield (
            f"In-context estimation against {kind} templates: "
            f"{clearly(ahead, 'ahead', 'behind', 'not distinguishable', p)}; ahead in "
            f"{sum(value > 0 for value in values)} of {len(values)} relations."
        )
    standing = "; paraphrases stand in their place."
    if "mined" not in kinds and "paraphrase" in kinds:
        yield f"The dataset has no mined templates{standing}"
    elif "mined" not in kinds:
        yield "The dataset has neither mined templates nor paraphrases with the answer last."
    if "manual" not in kinds:
        instead = standing if {"paraphrase", "mined"} <= {*kinds} else " with the answer last."
        yield f"The dataset has no hand-written templates{instead}"
    if without:
        yield f"Without a template that has the answer last: {listed(without)}."


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
