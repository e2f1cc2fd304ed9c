"""Tables that set runs side by side. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.analysis.comparison.between import Between
from sonde.analysis.comparison.kin import Kin
from sonde.analysis.comparison.ranks import Ranked
from sonde.analysis.comparison.relations import extremes
from sonde.analysis.comparison.sharing import Sharing
from sonde.analysis.runs import Aligned
from sonde.core.facts import Relation
from sonde.core.reports import Cell, Estimate, Estimates, Metric, Table
from sonde.reporting.build.multi_prompt import metrics as multi_prompt
from sonde.reporting.build.multi_prompt.metrics import Draw
from sonde.reporting.build.tables import Field, across, browse, by_place, side_by_side, table

MOST_TEMPLATES = 20
"""How many templates the table of ranks has at most."""


def relation_name(relation: Relation) -> str:
    """What a relation is called, its id where it has no label."""
    return relation.label or relation.id


def comparison_table(
    aligned: Aligned,
    found: Sequence[Estimates],
    draw: Draw,
    prompts: Sequence[int],
    less: Sequence[Cell] = (),
) -> Table:
    """The papers' table: a row per run, on the shared prompts or on all it was asked.

    less: how far the Acc@1 of each run lies above that of the first, on the shared prompts.
    """
    runs = aligned.runs
    against = f"Acc@1 less that of {runs[0].name}, the first run, on the same pairs"
    spread, stdev, _ = multi_prompt.fluctuation(draw)
    wordless = all(estimates[multi_prompt.ONE_WORD.id].n == 0 for estimates in found)
    return table(
        range(len(runs)),
        [
            Field("run", lambda i: runs[i].name),
            Field("group", lambda i: runs[i].group, detail=True),
            Field("prompts", lambda i: prompts[i], "count", "judged prompts", True),
            multi_prompt.ACC,
            *([Field[int]("less first", lambda i: less[i], "percent", against)] if less else []),
            spread.named("range"),
            stdev.named("stdev").detail(),
            multi_prompt.CONSIST,
            multi_prompt.OVERCONF,
            multi_prompt.ONE_WORD.named("one word").detail(wordless),
            Field("seconds", lambda i: runs[i].seconds, "number", "what the whole run took", True),
        ],
        lambda i, metric: found[i][metric.id],
        id="comparison" if less else "comparison-own",
        title="The runs side by side" if less else "The runs on all prompts of their own",
        note="On the prompts that all runs were asked. A dash means not measured. "
        f"Less first: {against}."
        if less
        else "As each run's own report has them; prompts differ between the rows.",
    )


def leaderboard(aligned: Aligned, compared: Between) -> Table:
    """The runs, the most accurate first."""
    runs, of = aligned.runs, compared.relations
    places = {i: place for place, i in enumerate(of.leaders, 1)}
    fields: list[Field[int]] = [
        Field("", lambda i: places[i], "count", "place"),
        Field("run", lambda i: runs[i].name),
        Field("family", lambda i: runs[i].lineage.family, help="as the table of models says"),
        Field("parameters", lambda i: runs[i].lineage.size, "count", "", True),
        Field("stage", lambda i: runs[i].lineage.stage or None, "text", "base or fine-tuned", True),
        Field("accuracy", lambda i: of.mean[i], "percent", "mean over relations"),
        Field("stdev", lambda i: of.stdev[i].value, "percent", "of the accuracy over relations"),
        Field("pairs", lambda i: of.mean[i].n, "count", "", True),
    ]
    return table(
        of.leaders,
        fields,
        id="leaderboard",
        title="Leaderboard",
        note="Accuracy: of a pair the share of right prompts, averaged over the pairs of a "
        "relation, then over relations.",
    )


def extremes_table(aligned: Aligned, compared: Between) -> Table:
    """The relations that each run knows best and least."""
    relations, values = aligned.first.relations, compared.relations.values
    ids = [relation.id for relation in relations]

    def named(i: int, end: int) -> str | None:
        chosen = extremes(values[i], ids)[end].tolist()
        return (
            ", ".join(f"{relation_name(relations[r])} {values[i, r]:.1%}" for r in chosen) or None
        )

    fields: list[Field[int]] = [
        Field("run", lambda i: aligned.runs[i].name),
        Field("best relations", lambda i: named(i, 0), help="the best first"),
        Field("worst relations", lambda i: named(i, 1), help="the worst last"),
    ]
    return table(
        compared.relations.leaders,
        fields,
        id="extremes",
        title="What each run knows best and least",
        note="" if len(ids) > 1 else "Not measured: there is one relation.",
    )


def relations_table(aligned: Aligned, compared: Between) -> Table:
    """All relations, those that the runs know best first."""
    relations, values = aligned.first.relations, compared.relations.values
    of, names = compared.relations, [run.name for run in aligned.runs]
    best, worst = values.argmax(axis=0).tolist(), values.argmin(axis=0).tolist()
    places = {r: place for place, r in enumerate(of.best_first, 1)}
    fields: list[Field[int]] = [
        Field("", lambda r: places[r], "count", "place"),
        Field("relation", lambda r: relations[r].id),
        Field("label", lambda r: relations[r].label),
        Field("accuracy", lambda r: of.relations[r], "percent", "mean over runs"),
        Field("pairs", lambda r: of.relations[r].n, "count"),
        Field("best run", lambda r: names[best[r]]),
        Field("its accuracy", lambda r: float(values[best[r], r]), "percent"),
        Field("worst run", lambda r: names[worst[r]]),
        Field("its own", lambda r: float(values[worst[r], r]), "percent"),
    ]
    return browse(of.best_first, fields, id="relations", title="Relations, the best known first")


def kin_tables(aligned: Aligned, compared: Between) -> Iterator[Table]:
    """The smallest and the largest model of each family; base models and fine-tuned ones."""
    yield _kin_table(
        aligned,
        compared,
        [(kin, kin.lesser, kin.other) for kin in compared.sizes],
        titles=("smallest", "largest"),
        knows="share of what the smallest knows that the other knows too",
        id="sizes",
        title="Smallest and largest model of a family",
        none="Not measured: no family has runs of two sizes, asked in the same way.",
    )
    yield _kin_table(
        aligned,
        compared,
        [(kin, kin.other, kin.lesser) for kin in compared.tuned],
        titles=("base", "fine-tuned"),
        knows="share of what the fine-tuned knows that the other knows too",
        id="tuned",
        title="Base and fine-tuned models",
        none="Not measured: no fine-tuned model stands here with its base, asked in the same way.",
    )


def _kin_table(
    aligned: Aligned,
    compared: Between,
    rows: Sequence[tuple[Kin, int, int]],
    *,
    titles: tuple[str, str],
    knows: str,
    id: str,
    title: str,
    none: str,
) -> Table:
    """A row per two kin: the first's name, size and accuracy, the second's, difference and η.

    The difference is the second less the first; η is always that of the lesser of the two.
    """

    def side(title: str, k: int) -> list[Field[tuple[Kin, int, int]]]:
        def run(row: tuple[Kin, int, int]) -> int:
            return row[1:][k]

        return [
            Field(title, lambda row: aligned.runs[run(row)].name),
            Field("parameters", lambda r: aligned.runs[run(r)].lineage.size, "count", "", True),
            Field(
                "accuracy",
                lambda row: compared.relations.mean[run(row)],
                "percent",
                "mean over relations",
            ),
        ]

    one, two = titles
    fields: list[Field[tuple[Kin, int, int]]] = [
        Field("family", lambda row: row[0].family),
        *side(one, 0),
        *side(two, 1),
        Field(
            "difference",
            lambda row: compared.over_relations[row[2], row[1]],
            "percent",
            f"{two} less {one}, paired by pairs",
        ),
        Field(
            "η",
            lambda row: compared.subsumption.rates[row[0].lesser][row[0].other],
            "percent",
            f"{knows}; mean over relations",
        ),
    ]
    note = f"η: {knows}, per relation, then averaged." if rows else none
    return table(rows, fields, id=id, title=title, note=note)


def group_tables(compared: Between, sharing: Sharing) -> Iterator[Table]:
    """What runs of the same and of other groups have in common, on average."""
    found = compared.correlation
    yield _group_table(
        (found.groups, found.within, found.between),
        ("group", "with", "pairs"),
        Metric("correlation", "Pearson's r", "number", "mean over pairs of different runs"),
        id="correlations",
        title="Correlation over relations, within and between groups of runs",
        note="Of the accuracies in each relation. A dash: not measured, because there are fewer "
        "than three relations, or a run is equally good at all.",
    )
    yield _group_table(
        (sharing.groups, sharing.within, sharing.between),
        ("known by", "also known by", "rates"),
        Metric("sharing", "sharing rate", "percent", "mean over pairs of different runs"),
        id="groups",
        title="Sharing within and between groups of runs",
    )


def _group_table(
    means: tuple[Mapping[tuple[str, str], Estimate], Estimate, Estimate],
    heads: tuple[str, str, str],
    metric: Metric,
    *,
    id: str,
    title: str,
    note: str = "",
) -> Table:
    groups, within, between = means
    rows = [
        *((first, second, estimate) for (first, second), estimate in groups.items()),
        ("all", "the same group", within),
        ("all", "another group", between),
    ]
    return table(
        rows,
        [
            Field(heads[0], lambda row: row[0]),
            Field(heads[1], lambda row: row[1]),
            metric,
            Field(heads[2], lambda row: row[2].n, "count", "how many are averaged"),
        ],
        lambda row, _: row[2],
        id=id,
        title=title,
        note=note,
    )


def only_table(aligned: Aligned, sharing: Sharing) -> Table:
    """For each run what it knows, and what of it no other run knows."""
    known = "pairs right under a template, all together"
    fields: list[Field[int]] = [
        Field("run", lambda i: aligned.runs[i].name),
        Field("known", lambda i: sharing.rates[i][i].n, "count", known),
        Field("no other run", lambda i: sharing.only[i], "percent", "share that no other knows"),
    ]
    rows = range(len(aligned.runs))
    return table(rows, fields, id="known-alone", title="Known in one run only")


def rank_table(aligned: Aligned, templates: Sequence[Ranked]) -> Table:
    """The templates whose rank differs most between runs."""
    first, names = aligned.first, [run.name for run in aligned.runs]
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
    rows = [ranked for ranked in templates if ranked.spread > 0][:MOST_TEMPLATES]
    title = "Templates whose rank differs most"
    return table(rows, fields, id="ranks", title=title, note="" if rows else _no_ranks(aligned))


def _no_ranks(aligned: Aligned) -> str:
    if len(aligned.first.templates) == len(aligned.first.relations):
        return "Not measured: every relation was asked in one template."
    return "Not measured: every template has the same rank in all runs."


def driver_table(aligned: Aligned, found: Sequence[Estimates]) -> Table:
    """What moves the answers of each run more: another name, or another template."""
    drivers = {"names": "names_only", "templates": "templates_only"}
    rows = [(i, what) for i in range(len(found)) for what in drivers]
    return table(
        rows,
        [
            Field("run", lambda row: aligned.runs[row[0]].name),
            Field("only these differ", lambda row: row[1]),
            *multi_prompt.DRIVER,
        ],
        lambda row, metric: found[row[0]][metric.of(only=drivers[row[1]], what="").id],
        id="drivers",
        title="What moves the answers: names or templates",
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )


def side_tables(names: Sequence[str], estimates: Estimates, floor: int) -> Iterator[Table]:
    """Names that help, manual templates, Overconf by template."""
    places = {name: f"run.{name}" for name in names}
    yield by_place(
        estimates,
        places,
        [
            multi_prompt.SUBJECT_NAMES.named("subject names"),
            multi_prompt.OBJECT_NAMES.named("object names"),
        ],
        head="run",
        id="names-help",
        title="Added names that help",
        note="Not measured where no name was added, and for written answers.",
    )
    yield by_place(
        estimates,
        places,
        [
            multi_prompt.MANUAL_RANK.named("rank of manual"),
            multi_prompt.CHANCE_RANK.named("by chance"),
            multi_prompt.INNER_CONSIST.named("inner Consist"),
            multi_prompt.INTER_CONSIST.named("inter Consist"),
        ],
        head="run",
        id="manual",
        title="Hand-written templates and paraphrases",
        note="Not measured where a relation has only one kind, or no paraphrase has a parent.",
    )
    mean, stdev, low, high = multi_prompt.BY_TEMPLATE
    columns = {"mean": mean, "stdev": stdev, "max": high, "min": low}
    enough = Field[str](
        "templates", lambda name: estimates[mean.at(places[name])].n, "count", "that have enough"
    )
    yield side_by_side(
        names,
        [*(metric.named(label, "over templates") for label, metric in columns.items()), enough],
        lambda name, metric: estimates[metric.at(places[name])],
        id="overconf-by-template",
        title="Overconf of the templates",
        note=f"Templates with at least {floor:,} answers of one token; others are left out.",
    )
