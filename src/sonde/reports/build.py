"""The report of a run, of any probe. The order is fixed: the answer comes first.

1. title, summary, warnings, headline figure
2. what was prompted   3. what the model answered   4. facts   5. breakdowns
6. method, settings, provenance

Everything is data: sentences are ids with values, tables and figures are frames.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import col

from sonde.evaluation.groups import TRENDS
from sonde.evaluation.languages import ACCURACY, COUPLES
from sonde.evaluation.layout import Exhibit
from sonde.evaluation.tables import Results
from sonde.evaluation.timeline import METRICS
from sonde.models import ELSEWHERE
from sonde.models.load import scheme_of
from sonde.reports import sections
from sonde.reports.cells import format_interval, format_number
from sonde.reports.further import estimate_trends_years_and_languages
from sonde.reports.model import Report, Section
from sonde.reports.sentences import Sentence, say
from sonde.reports.view import View, above_or_below, column_name, exhibit

if TYPE_CHECKING:
    from sonde.runs.run import Run

NOTABLE = 0.01  # share of excluded facts that is worth a warning
CUT = 0.1  # share of answers that were cut
LEVELS = 4  # of varied settings, named in the title
CATALOG = (*TRENDS, *METRICS, ACCURACY, *COUPLES)


def build(
    results: Results,
    estimates: pl.DataFrame,
    *,
    run: "Run | None" = None,
    exhibits: Iterable[Exhibit] = (),
) -> Report:
    """The report of the results of a run.

    Args:
        estimates: as `evaluation.estimate_results` gives them.
        run: where prompts and settings are read from.
        exhibits: further tables and figures.
    """
    more, figures = estimate_trends_years_and_languages(results, run)
    estimates = pl.concat([estimates, more])
    view = View(results, estimates, run)
    plain = estimates.filter(col("run").is_null())
    extra = view.layout.extra(results, plain) if view.layout.extra else ()
    exhibits = [item for item in (*extra, *figures, *exhibits) if len(item.frame)]
    first = [item for item in exhibits if item.id in view.layout.lead]
    exhibits = [item for item in exhibits if item not in first]
    finding = view.layout.finding
    sentences = finding(results, plain, view.model, view.dataset) if finding else ()
    stated = [Sentence(*sentence) for sentence in sentences]
    named = " · ".join(filter(None, (view.model, view.dataset, view.layout.title)))
    shown = {item.id for item in (*first, *exhibits)}  # a probe may draw a breakdown itself
    groups = (item for item in sections.breakdown_exhibits(view) if item.id not in shown)
    broken_down = [*groups, *exhibits]
    varied = [f"by-{column_name(axis)}" for axis in getattr(results.probe, "varied_columns", ())]
    levels = [item for item in broken_down if item.id in varied]
    parts = [
        Section("varied", "Varied settings", levels),
        Section("prompts", "What was prompted", list(sections.prompt_items(view))),
        Section("answers", "What the model answered", list(sections.answer_items(view))),
        Section("facts", "Facts", list(sections.fact_table_items(view))),
        Section("breakdowns", "Breakdowns", [i for i in broken_down if i not in levels]),
        Section(
            "method",
            "Method, settings and provenance",
            list(sections.method_items(view)),
            folded=True,
        ),
    ]
    return Report(
        title=stated[0] if stated else title_sentence(view),
        kicker=f"{results.probe.name.upper()} · {named}",
        summary=stated[1:] or list(summary_sentences(view)),
        lead=first or list(headline_exhibits(view)),
        warnings=[(heading, lines) for heading, lines in warning_sentences(view).items() if lines],
        sections=[section for section in parts if section.items],
        estimates=estimates,
        over=view.layout.over,
        metrics=[*view.metrics.values(), *CATALOG],
        counts=view.counts,
        provenance=run.provenance() if run else {},
    )


def list_scores_of_levels(view: View) -> str:
    """The first headline at each value of the settings that are varied, which are not pooled."""
    probe = view.results.probe
    scores = [
        f"{format_number(e.value, view.first.unit)} ({setting} {level})"
        for setting, axis in zip(
            getattr(probe, "vary", ()), getattr(probe, "varied_columns", ()), strict=True
        )
        for level in view.results.rows[axis].unique(maintain_order=True)
        if (e := view.get(view.first, "value", (axis,), (str(level),)))
    ]
    return ", ".join(scores[:LEVELS]) + ", …" * (len(scores) > LEVELS)


def title_sentence(view: View) -> Sentence:
    """The finding: answers that collapse or the score, then the verdict against the control."""
    value, n = view.get(view.first), view.counts["prompts"]
    if view.empty:
        return say("title.empty", model=view.model, k=view.counts["empty"], n=n)
    score = {"model": view.model, "label": view.first.label}
    if scores := list_scores_of_levels(view):
        return say("title.varied", **score, scores=scores)
    score["value"] = format_number(value.value if value else None, view.first.unit)
    if view.collapsed and view.one_relation and view.one_prompt:
        c = view.collapsed[0]
        first = say("title.collapsed", **(c._asdict() | score), k=round(c.share * c.n))
    elif view.hits is not None:
        first = say("title.facts", model=view.model, k=view.hits, n=view.scored)
    else:
        first = say("title.score", **score, over=view.over())
    difference = view.get(view.first, "difference")
    if difference is None:
        return first
    values = {"points": difference.value, "baseline": view.first.baseline_label}
    return say(f"title.{above_or_below(difference)}", first=first, **values)


def summary_sentences(view: View) -> Iterator[Sentence]:
    """Facts sent and excluded, the score, the control, the verdict."""
    used = col("template_no").is_in(view.results.rows["template_no"].unique().implode())
    texts = view.results.templates.filter(used)["text"].unique()
    about = {"model": view.model, "dataset": view.dataset, "n": view.facts.height}
    about |= {"left": view.reasons, "relations": len(view.labels)}
    about["relation"] = next(iter(view.labels.values()))
    if not view.one_relation:
        yield say("prompted.many", **about)
    elif len(texts) == 1:
        yield say("prompted.one", template=texts[0], **about)
    else:
        most = view.results.rows["fact_no"].value_counts()["count"].max()
        yield say("prompted.several", prompts=most, **about)
    if view.empty:
        return  # as the title states, no conclusion is drawn
    if scores := list_scores_of_levels(view):
        yield say("score.varied", label=view.first.label, scores=scores)
        return
    for metric in dict.fromkeys((view.first, view.compared)):
        if e := view.get(metric):
            values = {"e": (e, metric.unit), "label": metric.label, "over": view.over()}
            facts = metric is view.first and view.hits is not None
            yield say(
                "score.facts" if facts else "score.mean", k=view.hits, n=view.scored, **values
            )
    metric = view.compared
    difference, control = view.get(metric, "difference"), view.get(metric, "baseline")
    if difference is None or control is None:
        return
    values = {"b": format_number(control.value, metric.unit), "d": (difference, metric.unit)}
    yield say(f"baseline.{above_or_below(difference)}", baseline=metric.baseline_label, **values)
    relations = [
        (view.get(metric, "difference", ["relation"], [id]), name)
        for id, name in view.labels.items()
    ]
    tested = [(above_or_below(e), name) for e, name in relations if e and e.p is not None]
    if len(tested) > 1:
        over, under = ([name for s, name in tested if s == wanted] for wanted in ("above", "below"))
        id = "relations.some" if over or under else "relations.none"
        counts = {"n": len(tested), "above": len(over), "below": len(under)}
        yield say(id, over=over, under=under, per=round(view.scored / len(tested)), **counts)


def headline_exhibits(view: View) -> Iterator[Exhibit]:
    """The headline metrics of the first one's unit with their controls; then the others."""
    rows, others, seen = [], [], set()
    for metric in view.headlines:
        e = view.get(metric)
        if e is None or (e.value, e.n) in seen:
            continue  # the same share of the same facts
        seen.add((e.value, e.n))
        if metric.unit != view.first.unit:
            others.append((metric.label, format_interval(e, metric.unit)))
            continue
        rows.append((metric.label, "model", *e[:4]))
        control = view.get(metric, "baseline")
        if control and metric in (view.first, view.compared):
            rows.append((metric.baseline_label, "control", *control[:4]))
    runs = view.estimates.filter(col("run").is_not_null(), col("group_by").list.len() == 0)
    runs = runs.filter(metric=view.first.id, of="value", over=view.layout.over)
    rows += runs.select("run", pl.lit("control"), "value", "low", "high", "n").rows()
    if rows:
        heads = ("label", "color", "x", "low", "high", "n")
        units = {"x": view.first.unit, "color": "control", "n": "count"}
        yield exhibit("headlines", "Headline numbers", rows, heads, units=units, kind="intervals")
    if others:
        yield exhibit("further", "Further numbers", others, ("number", "value [95% CI]"))


def warning_sentences(view: View) -> dict[str, list[Sentence]]:
    """What to know before the numbers are read, under headings."""
    k, excluded = sum(view.reasons.values()), []
    if k >= NOTABLE * view.facts.height and "fill" in view.modes:  # there is a way to avoid it
        command = f"sonde run {view.results.probe.name} … --answer score"
        if hasattr(view.results.probe, "answer"):
            excluded = [say("excluded", k=k, n=view.facts.height, command=command)]
    return {
        "Excluded facts": excluded,
        "Dominating answers": list(dominating_answer_warnings(view)),
        "Answers": list(meaningless_answer_warnings(view)),
        "Certificate": list(certificate_warnings(view)),
    }


def dominating_answer_warnings(view: View) -> Iterator[Sentence]:
    if view.collapsed and not view.one_relation:
        k = len({c.relation for c in view.collapsed})
        yield say("collapse.relations", k=k, n=len(view.labels))
    elif view.collapsed:
        c = view.collapsed[0]
        yield say("collapse", **c._asdict())
        if c.hits > 0.5 * c.correct:
            yield say("collapse.hits", **c._asdict())


def meaningless_answer_warnings(view: View) -> Iterator[Sentence]:
    """Answers that state nothing, and what to do about it."""
    n, model = view.counts["prompts"], view.run.manifest.model if view.run else {}
    chat, empty = model.get("chat") or {}, view.counts.get("empty", 0)
    if 2 * empty > n:
        yield say("empty", k=empty, n=n)
        if not chat and model.get("details", {}).get("chat template"):
            yield say("chat", command="--chat always")
    if (cut := view.counts.get("unfinished", 0)) > CUT * n:
        flag = "--chat-thinking" if int(chat.get("thinking", 0)) else "--set max_tokens=N"
        yield say("unfinished", k=cut, n=n, flag=flag)


def certificate_warnings(view: View) -> Iterator[Sentence]:
    """Whether the numbers of another program are known to be those of the model."""
    if view.run is None:
        return
    certified: Mapping[str, Any] = view.run.manifest.certificate
    if certified and certified["verdict"] != "equal":
        yield say("certificate.differs", **certified)
    elif not certified and scheme_of(view.run.manifest.model["name"])[0] in ELSEWHERE:
        yield say("certificate.none", command="sonde doctor -m MODEL --against hf:FOLDER")
    if "later" in certified:
        yield say("certificate.later")
