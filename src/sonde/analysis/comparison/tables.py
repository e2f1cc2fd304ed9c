"""Tables that set runs side by side. Knows what was found, nothing of how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sonde.analysis.comparison.compare import MEAN, ONLY, STDEV, Comparison
from sonde.analysis.comparison.couples import Couples, Ranked
from sonde.analysis.comparison.numbers import extremes
from sonde.analysis.runs import Kin, relation_name
from sonde.core.reports import Cell, Estimate, Estimates, Metric, Table
from sonde.reporting.build.multi_prompt import metrics as multi_prompt
from sonde.reporting.build.tables import Field, across, browse, side_by_side, table

BASE = "base or fine-tuned"
MOST_TEMPLATES = 20
"""How many templates the table of ranks has at most."""


def tables(of: Comparison, estimates: Estimates) -> Iterator[Table]:
    """All of them; those without content are named in the notes."""
    at = {name: i for i, name in enumerate(of.names)}
    runs = {name: of.aligned.runs[i] for name, i in at.items()}
    leaders = [of.names[i] for i in of.relations.leaders]

    def look(name: str, metric: Metric) -> Estimate:
        return estimates[metric.at(f"run.{name}")]

    yield _comparison(of, look)
    if of.alone:
        yield _comparison(of, lambda n, metric: of.alone[at[n]].estimates[metric.id], alone=True)
    places = {name: place for place, name in enumerate(leaders, 1)}
    yield table(
        leaders,
        [
            Field("", lambda n: places[n], "count", "place"),
            Field("run", lambda n: n),
            Field("family", lambda n: runs[n].lineage.family, help="as the table of models says"),
            Field("parameters", lambda n: runs[n].lineage.size, "count", "", True),
            Field("stage", lambda n: runs[n].lineage.stage or None, "text", BASE, True),
            MEAN,
            STDEV.without_interval(),
            Field("pairs", lambda n: look(n, MEAN).n, "count", "", True),
        ],
        look,
        id="leaderboard",
        title="Leaderboard",
        note="Accuracy: of a pair the share of right prompts, averaged over the pairs of a "
        "relation, then over relations.",
    )
    yield _extremes(of, leaders)
    yield from _kin_tables(of)
    yield from _group_tables(of)
    known = "pairs right under a template, all together"
    yield side_by_side(
        of.names,
        [Field("known", lambda n: of.sharing.rates.runs[at[n]][at[n]].n, "count", known), ONLY],
        look,
        id="known-alone",
        title="Known in one run only",
    )
    yield _ranks(of)
    yield _drivers(of, look)
    yield from _sides(of, look)
    yield _relations(of)


Look = Callable[[str, Metric], Cell]


def _comparison(of: Comparison, look: Look, *, alone: bool = False) -> Table:
    """The papers' table: a row per run, on the shared prompts or on all it was asked."""
    runs = {run.name: run for run in (of.asked if alone else of.aligned.runs)}
    first, *others = runs
    against = f"Acc@1 less that of {first}, the first run, on the same pairs"
    less: dict[str, Cell] = {first: None, **dict(zip(others, of.over_pairs.values(), strict=True))}
    spread, stdev, _ = multi_prompt.fluctuation(of.reading.draw)
    numbers = of.alone if alone else of.numbers
    wordless = all(run.estimates[multi_prompt.ONE_WORD.id].n == 0 for run in numbers)
    return side_by_side(
        runs,
        [
            Field("group", lambda name: runs[name].group, detail=True),
            Field("prompts", lambda n: len(runs[n].judged.grid), "count", "judged prompts", True),
            multi_prompt.ACC,
            *([] if alone else [Field[str]("less first", less.get, "percent", against)]),
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
        else "On the prompts that all runs were asked. A dash means not measured. "
        f"Less first: {against}.",
    )


def _extremes(of: Comparison, leaders: Sequence[str]) -> Table:
    """The relations that each run knows best and least."""
    relations, values = of.aligned.first.relations, of.relations.values
    ids = [relation.id for relation in relations]

    def named(name: str, end: int) -> str | None:
        of_run = values[of.names.index(name)]
        chosen = extremes(of_run, ids)[end].tolist()
        return ", ".join(f"{relation_name(relations[r])} {of_run[r]:.1%}" for r in chosen) or None

    return side_by_side(
        leaders,
        [
            Field("best relations", lambda name: named(name, 0), help="the best first"),
            Field("worst relations", lambda name: named(name, 1), help="the worst last"),
        ],
        id="extremes",
        title="What each run knows best and least",
        note="" if len(ids) > 1 else "Not measured: there is one relation.",
    )


def _relations(of: Comparison) -> Table:
    """All relations, those that the runs know best first."""
    relations, values = of.aligned.first.relations, of.relations.values
    best, worst = values.argmax(axis=0).tolist(), values.argmin(axis=0).tolist()
    places = {r: place for place, r in enumerate(of.relations.best_first, 1)}
    fields: list[Field[int]] = [
        Field("", lambda r: places[r], "count", "place"),
        Field("relation", lambda r: relations[r].id),
        Field("label", lambda r: relations[r].label),
        Field("accuracy", lambda r: of.relations.relations[r], "percent", "mean over runs"),
        Field("pairs", lambda r: of.relations.relations[r].n, "count"),
        Field("best run", lambda r: of.names[best[r]]),
        Field("its accuracy", lambda r: float(values[best[r], r]), "percent"),
        Field("worst run", lambda r: of.names[worst[r]]),
        Field("its own", lambda r: float(values[worst[r], r]), "percent"),
    ]
    title = "Relations, the best known first"
    return browse(of.relations.best_first, fields, id="relations", title=title)


Row = tuple[Kin, int, int]
"""Two kin, and the runs in the order of the table's columns."""


def _kin_tables(of: Comparison) -> Iterator[Table]:
    """The smallest and the largest model of each family; base models and fine-tuned ones."""
    yield _kin_table(
        of,
        [(kin, kin.lesser, kin.other) for kin in of.sizes],
        ("smallest", "largest"),
        lesser="smallest",
        id="sizes",
        title="Smallest and largest model of a family",
        none="Not measured: no family has runs of two sizes, asked in the same way.",
    )
    yield _kin_table(
        of,
        [(kin, kin.other, kin.lesser) for kin in of.tuned],
        ("base", "fine-tuned"),
        lesser="fine-tuned",
        id="tuned",
        title="Base and fine-tuned models",
        none="Not measured: no fine-tuned model stands here with its base, asked in the same way.",
    )


def _kin_table(
    of: Comparison,
    rows: Sequence[Row],
    titles: tuple[str, str],
    *,
    lesser: str,
    id: str,
    title: str,
    none: str,
) -> Table:
    """A row per two kin: name, size and accuracy of both, the second less the first, and η."""
    runs, accuracy = of.aligned.runs, of.relations.mean

    def side(title: str, k: int) -> list[Field[Row]]:
        return [
            Field(title, lambda row: runs[row[1:][k]].name),
            Field("parameters", lambda row: runs[row[1:][k]].lineage.size, "count", "", True),
            Field("accuracy", lambda row: accuracy[row[1:][k]], "percent", "mean over relations"),
        ]

    def eta(row: Row) -> Estimate:
        return of.subsumption.runs[row[0].lesser][row[0].other]

    one, two = titles
    knows = f"share of what the {lesser} knows that the other knows too"
    paired = f"{two} less {one}, paired by pairs"
    fields: list[Field[Row]] = [
        Field("family", lambda row: row[0].family),
        *side(one, 0),
        *side(two, 1),
        Field("difference", lambda row: of.over_relations[row[2], row[1]], "percent", paired),
        Field("η", eta, "percent", f"{knows}; mean over relations"),
    ]
    note = f"η: {knows}, per relation, then averaged." if rows else none
    return table(rows, fields, id=id, title=title, note=note)


def _group_tables(of: Comparison) -> Iterator[Table]:
    """What runs of the same and of other groups have in common, on average."""
    help = "mean over pairs of different runs"
    yield _group_table(
        of.correlation,
        ("group", "with", "pairs"),
        Metric("correlation", "Pearson's r", "number", help),
        id="correlations",
        title="Correlation over relations, within and between groups of runs",
        note="Of the accuracies in each relation. A dash: not measured, because there are fewer "
        "than three relations, or a run is equally good at all.",
    )
    yield _group_table(
        of.sharing.rates,
        ("known by", "also known by", "rates"),
        Metric("sharing", "sharing rate", "percent", help),
        id="groups",
        title="Sharing within and between groups of runs",
    )


def _group_table(
    of: Couples, heads: tuple[str, str, str], metric: Metric, *, id: str, title: str, note: str = ""
) -> Table:
    rows = [
        *((first, second, estimate) for (first, second), estimate in of.groups.items()),
        ("all", "the same group", of.within),
        ("all", "another group", of.between),
    ]
    fields: list[Metric | Field[tuple[str, str, Estimate]]] = [
        Field(heads[0], lambda row: row[0]),
        Field(heads[1], lambda row: row[1]),
        metric,
        Field(heads[2], lambda row: row[2].n, "count", "how many are averaged"),
    ]
    return table(rows, fields, lambda row, _: row[2], id=id, title=title, note=note)


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
    rows = [ranked for ranked in of.agreement.templates if ranked.spread > 0][:MOST_TEMPLATES]
    one_each = len(first.templates) == len(first.relations)
    none = (
        "Not measured: every relation was asked in one template."
        if one_each
        else "Not measured: every template has the same rank in all runs."
    )
    title = "Templates whose rank differs most"
    return table(rows, fields, id="ranks", title=title, note="" if rows else none)


def _drivers(of: Comparison, look: Look) -> Table:
    """What moves the answers of each run more: another name, or another template."""
    drivers = {"names": "names_only", "templates": "templates_only"}
    return table(
        [(name, what) for name in of.names for what in drivers],
        [
            Field("run", lambda row: row[0]),
            Field("only these differ", lambda row: row[1]),
            *multi_prompt.DRIVER,
        ],
        lambda row, metric: look(row[0], metric.of(only=drivers[row[1]], what="")),
        id="drivers",
        title="What moves the answers: names or templates",
        note="The further apart worst and best, and the lower Consist, the more it matters.",
    )


def _sides(of: Comparison, look: Look) -> Iterator[Table]:
    """Names that help, manual templates, Overconf by template."""
    yield side_by_side(
        of.names,
        [
            multi_prompt.SUBJECT_NAMES.named("subject names"),
            multi_prompt.OBJECT_NAMES.named("object names"),
        ],
        look,
        id="names-help",
        title="Added names that help",
        note="Not measured where no name was added, and for written answers.",
    )
    yield side_by_side(
        of.names,
        [
            multi_prompt.MANUAL_RANK.named("rank of manual"),
            multi_prompt.CHANCE_RANK.named("by chance"),
            multi_prompt.INNER_CONSIST.named("inner Consist"),
            multi_prompt.INTER_CONSIST.named("inter Consist"),
        ],
        look,
        id="manual",
        title="Hand-written templates and paraphrases",
        note="Not measured where a relation has only one kind, or no paraphrase has a parent.",
    )
    mean, stdev, low, high = multi_prompt.BY_TEMPLATE
    columns = {"mean": mean, "stdev": stdev, "max": high, "min": low}
    counts = {
        name: numbers.estimates[mean.id].n
        for name, numbers in zip(of.names, of.numbers, strict=True)
    }
    yield side_by_side(
        of.names,
        [
            *(metric.named(label, "over templates") for label, metric in columns.items()),
            Field("templates", counts.__getitem__, "count", "that have enough"),
        ],
        look,
        id="overconf-by-template",
        title="Overconf of the templates",
        note=f"Templates with at least {of.reading.floor:,} answers of one token; others are left "
        "out.",
    )
