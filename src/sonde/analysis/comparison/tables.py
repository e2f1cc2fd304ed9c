"""Tables that set runs side by side. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sonde.analysis.comparison.couples import Ranked, Word, couples_by_group, groups_of
from sonde.analysis.comparison.numbers import MEAN, ONLY, STDEV, Comparison
from sonde.analysis.runs import Kin, relation_name
from sonde.core.reports import Estimate, Metric, Table
from sonde.reporting.build.multi_prompt import numbers as multi_prompt
from sonde.reporting.build.tables import Field, across, browse, side_by_side, table

MOST_TEMPLATES = 20
"""How many templates the table of ranks has at most."""

MOST_RELATIONS = 3
"""Relations that are named as a run's best, and as its worst."""


def tables(of: Comparison) -> Iterator[Table]:
    """All of them; those without content are named in the notes."""
    yield _comparison(of)
    if any(of.aligned.left_out.values()):
        yield _comparison(of, alone=True)
    yield _leaderboard(of)
    yield _extremes(of)
    yield from _kin_tables(of)
    if len(set(groups_of(of.aligned).values())) < len(of.names):  # else no two runs share one
        yield from _group_tables(of)
    yield _ranks(of)
    yield from _wordings(of)
    yield _relations(of)


def _comparison(of: Comparison, *, alone: bool = False) -> Table:
    """The papers' table: a row per run, on the shared prompts or on all it was asked."""
    runs = {run.name: run for run in (of.aligned.asked if alone else of.aligned.runs)}
    prefix = "own." if alone else ""
    spread, stdev, _ = multi_prompt.fluctuation(of.reading.draw)

    def look(name: str, metric: Metric) -> Estimate:
        return of.estimates[f"{prefix}{metric.id}.run.{name}"]

    wordless = all(look(name, multi_prompt.ONE_WORD).n == 0 for name in runs)
    return side_by_side(
        runs,
        [
            Field("group", lambda name: runs[name].group, detail=True),
            Field("prompts", lambda n: len(runs[n].judged.grid), "count", "judged prompts", True),
            multi_prompt.ACC,
            spread.named("range"),
            stdev.named("stdev").detail(),
            multi_prompt.CONSIST,
            multi_prompt.OVERCONF,
            multi_prompt.ONE_WORD.named("one word").detail(wordless),
            Field("seconds", lambda n: runs[n].seconds, "number", "what the whole run took", True),
        ],
        look,
        id="comparison-own" if alone else "comparison",
        title="The runs on all prompts of their own" if alone else "The runs side by side",
        note="As each run's own report has them; prompts differ between the rows."
        if alone
        else "On the prompts that all runs were asked. A dash means not measured."
        if of.aligned.same_prompts
        else "On the facts that all runs were asked about. A dash means not measured.",
    )


def _leaderboard(of: Comparison) -> Table:
    lineages = {run.name: run.lineage for run in of.aligned.runs}
    places = {name: place for place, name in enumerate(of.leaders, 1)}

    def known(name: str) -> int:
        return of.estimates[f"sharing.runs.{name}.in.{name}"].n

    return table(
        places,
        [
            Field("", lambda n: places[n], "count", "place"),
            Field("run", lambda n: n),
            Field("family", lambda n: lineages[n].family, help="as the table of models says"),
            Field("parameters", lambda n: lineages[n].size, "count", "", True),
            Field("stage", lambda n: lineages[n].stage or None, "text", "base or fine-tuned", True),
            MEAN,
            STDEV.without_interval(),
            Field("pairs", lambda n: of.of_run(n, MEAN).n, "count", "", True),
            Field("known", known, "count", "pairs right under a template, all together"),
            ONLY.named("it alone"),
        ],
        of.of_run,
        id="leaderboard",
        title="Accuracy over relations, and what a run alone knows",
        note="Accuracy: of a pair the share of right prompts, averaged over the pairs of a "
        "relation, then over relations. It alone: of what a run knows, what no other knows.",
    )


def _extremes(of: Comparison) -> Table:
    """The relations that each run knows best and least."""
    labels = {r.id: relation_name(r) for r in of.aligned.first.relations}

    def named(name: str, end: int) -> str | None:
        values = {id: of.of_relation(id, name).value or 0.0 for id in labels}
        return ", ".join(f"{labels[id]} {values[id]:.1%}" for id in extremes(values)[end]) or None

    return side_by_side(
        of.leaders,
        [
            Field("best relations", lambda name: named(name, 0), help="the best first"),
            Field("worst relations", lambda name: named(name, 1), help="the worst last"),
        ],
        id="extremes",
        title="What each run knows best and least",
        note="" if len(labels) > 1 else "Not measured: there is one relation.",
    )


def extremes(values: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """The best and the worst relations of a run, the best first; no relation is in both.

    >>> extremes({"a": 0.2, "b": 0.9, "c": 0.5})
    (['b'], ['a'])
    """
    order = sorted(values, key=lambda id: (-values[id], id))
    shown = min(MOST_RELATIONS, len(order) // 2)
    return order[:shown], order[len(order) - shown :]


def _relations(of: Comparison) -> Table:
    """All relations, those that the runs know best first."""
    labels = {relation.id: relation.label for relation in of.aligned.first.relations}
    places = {id: place for place, id in enumerate(of.relations, 1)}

    def value(id: str, name: str) -> float:
        return of.of_relation(id, name).value or 0.0

    best = {id: max(of.names, key=lambda name: value(id, name)) for id in labels}
    worst = {id: min(of.names, key=lambda name: value(id, name)) for id in labels}
    fields: list[Field[str]] = [
        Field("", lambda id: places[id], "count", "place"),
        Field("relation", lambda id: id),
        Field("label", lambda id: labels[id]),
        Field("accuracy", of.of_relation, "percent", "mean over runs"),
        Field("pairs", lambda id: of.of_relation(id).n, "count"),
        Field("best run", lambda id: best[id]),
        Field("its accuracy", lambda id: value(id, best[id]), "percent"),
        Field("worst run", lambda id: worst[id]),
        Field("its own", lambda id: value(id, worst[id]), "percent"),
    ]
    return browse(places, fields, id="relations", title="Relations, the best known first")


def _kin_tables(of: Comparison) -> Iterator[Table]:
    """The smallest and the largest model of each family; base models and fine-tuned ones."""
    yield _kin_table(
        of,
        of.sizes,
        ("smallest", "largest"),
        lesser=1,
        id="sizes",
        title="Smallest and largest model of a family",
        none="Not measured: no family has runs of two sizes, asked in the same way.",
    )
    yield _kin_table(
        of,
        of.tuned,
        ("base", "fine-tuned"),
        lesser=2,
        id="tuned",
        title="Base and fine-tuned models",
        none="Not measured: no fine-tuned model stands here with its base, asked in the same way.",
    )


def _kin_table(
    of: Comparison,
    rows: Sequence[Kin],
    titles: tuple[str, str],
    *,
    lesser: int,
    id: str,
    title: str,
    none: str,
) -> Table:
    """A row per two kin: name, size and accuracy of both, the second minus the first, and η: what
    the `lesser`, the first or the second, has in common with the other."""
    sizes = {run.name: run.lineage.size for run in of.aligned.runs}

    def less(kin: Kin) -> Estimate:
        return of.estimates[f"accuracy.runs.{kin.second}.minus.{kin.first}"]

    def eta(kin: Kin) -> Estimate:
        return of.estimates[f"subsumption.runs.{kin[lesser]}.in.{kin[3 - lesser]}"]

    def side(k: int) -> list[Field[Kin]]:
        return [
            Field(titles[k - 1], lambda kin: kin[k]),
            Field("parameters", lambda kin: sizes[kin[k]], "count", "", True),
            Field("accuracy", lambda kin: of.of_run(kin[k], MEAN), "percent", MEAN.sentence),
        ]

    knows = f"share of what the {titles[lesser - 1]} knows that the other knows too"
    fields: list[Field[Kin]] = [
        Field("family", lambda kin: kin.family),
        *side(1),
        *side(2),
        Field("difference", less, "percent", f"{titles[1]} minus {titles[0]}, paired by pairs"),
        Field("η", eta, "percent", f"{knows}; mean over relations"),
    ]
    note = f"η: {knows}, per relation, then averaged." if rows else none
    return table(rows, fields, id=id, title=title, note=note)


def _group_tables(of: Comparison) -> Iterator[Table]:
    """What runs of the same and of other groups have in common, on average."""
    help = "mean over pairs of different runs"
    yield _group_table(
        of,
        "and",
        Metric("correlation", "Pearson's r", "number", help),
        ("group", "with", "pairs"),
        id="correlations",
        title="Correlation over relations, within and between groups of runs",
        note="Of the accuracies in each relation. A dash: not measured, because there are fewer "
        "than three relations, or a run is equally good at all.",
    )
    yield _group_table(
        of,
        "in",
        Metric("sharing", "sharing rate", "percent", help),
        ("known by", "also known by", "rates"),
        id="groups",
        title="Sharing within and between groups of runs",
    )


def _group_table(
    of: Comparison,
    word: Word,
    metric: Metric,
    heads: tuple[str, str, str],
    *,
    id: str,
    title: str,
    note: str = "",
) -> Table:
    kinds = couples_by_group([*groups_of(of.aligned).values()], word)
    named = {kind: metric.at(f"groups.{f'.{word}.'.join(kind)}") for kind in kinds}
    named |= {("all", f"{which} group"): metric.at(part) for part, which in PARTS.items()}
    rows = [(*kind, of.estimates[name]) for kind, name in named.items()]
    fields: list[Metric | Field[tuple[str, str, Estimate]]] = [
        Field(heads[0], lambda row: row[0]),
        Field(heads[1], lambda row: row[1]),
        metric,
        Field(heads[2], lambda row: row[2].n, "count", "how many are averaged"),
    ]
    return table(rows, fields, lambda row, _: row[2], id=id, title=title, note=note)


PARTS = {"within": "the same", "between": "another"}


def _ranks(of: Comparison) -> Table:
    """The templates whose rank differs most between runs."""
    first, names = of.aligned.first, of.names
    ranks = {f"rank: {name}": i for i, name in enumerate(names)}
    fields: list[Field[Ranked]] = [
        Field("relation", lambda t: first.relations[first.grid.template_relations[t.template]].id),
        Field("template", lambda t: first.templates[t.template].text),
        Field("of", lambda t: t.of, "count", "templates of the relation"),
        Field("best rank", lambda t: float(t.ranks.min()), "number", "by accuracy; 1 is best"),
        Field("in", lambda t: names[int(t.ranks.argmin())], help="the run that ranks it best"),
        Field("worst rank", lambda t: float(t.ranks.max()), "number"),
        Field("in run", lambda t: names[int(t.ranks.argmax())], help="the run that ranks it worst"),
        *across(ranks, lambda t, title: float(t.ranks[ranks[title]]), "number", detail=True),
    ]
    rows = [ranked for ranked in of.templates.ranked() if np.ptp(ranked.ranks) > 0]
    one_each = len(first.templates) == len(first.relations)
    none = (
        "Not measured: the templates of the runs differ."
        if not of.aligned.same_prompts
        else "Not measured: every relation was asked in one template."
        if one_each
        else "Not measured: every template has the same rank in all runs."
    )
    return table(
        rows[:MOST_TEMPLATES],
        fields,
        id="ranks",
        title="Templates whose rank differs most",
        note="" if rows else none,
    )


def _wordings(of: Comparison) -> Iterator[Table]:
    """What moves the answers, and what single names and templates do."""
    drivers = {"names": "names_only", "templates": "templates_only"}
    yield table(
        [(name, what) for name in of.names for what in drivers],
        [
            Field("run", lambda row: row[0]),
            Field("only these differ", lambda row: row[1]),
            *multi_prompt.DRIVER,
        ],
        lambda row, metric: of.of_run(row[0], metric.of(only=drivers[row[1]], what="")),
        id="drivers",
        title="What moves the answers: names or templates",
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )
    mean, stdev, low, high = multi_prompt.BY_TEMPLATE
    yield side_by_side(
        of.names,
        [
            multi_prompt.SUBJECT_NAMES.named("subject names"),
            multi_prompt.OBJECT_NAMES.named("object names"),
            multi_prompt.MANUAL_RANK.named("rank of manual"),
            multi_prompt.CHANCE_RANK.named("by chance"),
            multi_prompt.INNER_CONSIST.named("inner Consist"),
            multi_prompt.INTER_CONSIST.named("inter Consist"),
            mean.named("Overconf of a template").detail(),
            *(m.named(m.label.removeprefix("… ")).detail() for m in (stdev, high, low)),
            Field("templates", lambda n: of.of_run(n, mean).n, "count", "with an Overconf", True),
        ],
        of.of_run,
        id="wordings",
        title="Added names that help, hand-written templates, Overconf of templates",
        note="Not measured: names where none was added, and for written answers; manual templates "
        "where a relation has only one kind; groups where no paraphrase has a parent; Overconf of "
        f"templates with fewer than {of.reading.floor:,} answers of one token.",
    )
