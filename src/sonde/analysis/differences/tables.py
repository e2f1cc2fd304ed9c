"""Tables and figures of what tells runs apart. Knows what was found, not how it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from polars import DataFrame, col

from sonde.analysis.differences.facts import flipped, with_change
from sonde.analysis.differences.numbers import LESS, RIGHT, Couple, Differences, Place, minus
from sonde.analysis.runs import Compared
from sonde.core.facts import Relation
from sonde.core.reports import DotPlot, Estimate, Estimates, Figure, Metric, Series, Table
from sonde.core.words import shown_p, told_apart
from sonde.metrics.distance import MONITOR
from sonde.reporting.build.figures import heat
from sonde.reporting.build.multi_prompt.numbers import CONSIST, OVERCONF
from sonde.reporting.build.tables import Field, browse, drawn, side_by_side, table, titled

MOST_FACTS = 2000
"""Rows of the table of facts that flipped; more are drawn."""

Found = Mapping[tuple[Any, Couple], Estimate]
"""Differences by where they were found, a relation or a group, and of which two runs."""

MEASURES = (CONSIST, OVERCONF, MONITOR)
TEST = (
    "McNemar's exact test where all facts are of one relation, right or wrong, and of different "
    "subjects, else a permutation of signs, of all facts of a subject in a relation together"
)


def tables(
    of: Differences, estimates: Estimates, facts: DataFrame, *, concluded: bool
) -> Iterator[Table]:
    """Who stands where, what else differs, what it cost, where the difference lies, which facts.

    Unless something is `concluded`, no run is ranked or called better.
    """
    if len(of.names) > 2 and concluded:
        yield _standing(of)
        yield _pairwise(of)
    yield from _measures(of, estimates)
    if len(of.by_fact.ids) > 1 and concluded:
        yield _by_relation(of)
    if concluded:
        yield _by_group(of)
    yield _cost(of)
    yield _flipped(of, facts)


def figures(of: Differences) -> Iterator[Figure]:
    """The differences by relation and by group; of several runs how often each is right."""
    if len(of.names) > 2:
        yield _leaders(of)
        names = of.leaders
        cells = [[0.0 if a == b else of.of(a, b).value for b in names] for a in names]
        furthest = max((abs(value or 0.0) for row in cells for value in row), default=0.0)
        yield heat(
            names,
            names,
            cells,
            id="pairwise",
            title="How much more often the run of the row is right than that of the column",
            low=-(furthest or 1.0),
            high=furthest or 1.0,
        )
    relations = {id: titled(relation) for id, relation in _relations(of).items()}
    if len(relations) > 1:
        yield _dots(of, "relation", relations, of.relations)
    places = {place: f"{place[0]}: {place[1]}" for place, _ in of.groups}
    yield _dots(of, "group", places, of.groups)


def less(couple: Couple) -> str:
    """A difference, as tables and figures call it."""
    return f"{couple[0]} minus {couple[1]}"


def _relations(of: Differences) -> dict[str, Relation]:
    return {relation.id: relation for relation in of.aligned.first.relations}


def _standing(of: Differences) -> Table:
    best = of.leaders[0]

    def rank(name: str) -> str:
        low, high = of.ranks[name]
        return str(low) if low == high else f"{low}–{high}"

    def behind(name: str) -> Estimate | None:
        return None if name == best else of.of(name, best)

    made = table(
        of.leaders,
        [
            Field("rank", rank, help="runs that cannot be told apart share a range of ranks"),
            Field("run", lambda name: name),
            Field("right", lambda name: of.accuracies[name], "percent", RIGHT.sentence),
            Field(f"minus {best}", behind, "points", "paired by fact; all hold together"),
            Field("p", lambda name: "" if name == best else shown_p(of.of(name, best).p)),
        ],
        id="standing",
        title="Leaderboard",
        note="Rank: behind every run that is clearly better, before every run that is clearly "
        "worse. Intervals of differences hold for every two runs together (bootstrap, max-|t|), "
        "and p is corrected for their number (Holm).",
    )
    return replace(made, leads=True)


def _pairwise(of: Differences) -> Table:
    fields: list[Field[Couple]] = [
        Field("run", lambda couple: couple[0]),
        Field("minus", lambda couple: couple[1]),
        Field("difference", lambda couple: of.of(*couple), "points", LESS.sentence),
        Field("p", lambda couple: shown_p(of.of(*couple).p), help="corrected for every two runs"),
    ]
    couples = [(a, b) for i, a in enumerate(of.leaders) for b in of.leaders[i + 1 :]]
    return table(couples, fields, id="pairwise", title="Every two runs")


def _measures(of: Differences, estimates: Estimates) -> Iterator[Table]:
    """How often right, how consistent, how sure: each run, then every other one minus the first."""
    missing = Estimate.not_measured()
    runs = {name: f"run.{name}" for name in of.names}
    couples = {less(couple): minus(couple) for couple in of.others}

    def of_run(name: str, metric: Metric) -> Estimate:
        return estimates.get(metric.at(runs[name]), missing)

    def of_couple(name: str, metric: Metric) -> Estimate:
        id = LESS.id if metric.id == RIGHT.id else metric.id
        return estimates.get(f"{id}.{couples[name]}", missing)

    kept = [RIGHT, *(m for m in MEASURES if any(of_run(n, m).value is not None for n in runs))]
    yield side_by_side(
        runs,
        kept,
        of_run,
        id="measures",
        title="Right, consistent, sure",
        note="On what all runs were asked; a dash: not measured.",
    )
    yield side_by_side(
        couples,
        [replace(m, unit="points") if m.unit == "percent" else m for m in kept],
        of_couple,
        id="measures-differences",
        title="Right, consistent, sure: differences",
        note="Paired by fact; a dash: not measured.",
        head="difference",
    )


def _by_relation(of: Differences) -> Table:
    labels, accuracies = _relations(of), _accuracies(of)
    first = of.others[0]
    ids = sorted(labels, key=lambda id: -(of.relations[id, first].value or 0.0))
    fields: list[Field[str]] = [
        Field("relation", lambda id: id),
        Field("label", lambda id: labels[id].label),
        Field("facts", lambda id: of.relations[id, first].n, "count"),
    ]
    for name in of.names if len(of.names) == 2 else ():
        fields.append(_of_run(name, accuracies))
    for couple in of.others:
        fields += _tested(of.relations, couple)
    return table(
        ids,
        fields,
        id="differences",
        title="Differences by relation",
        note=f"Intervals hold for all {len(of.relations)} differences together (Bonferroni) and "
        f"agree with the test, whose p is corrected for them (Holm): {TEST}.",
    )


def _of_run(name: str, accuracies: dict[tuple[str, str], float]) -> Field[str]:
    return Field(name, lambda id: accuracies[id, name], "percent", RIGHT.sentence)


def _accuracies(of: Differences) -> dict[tuple[str, str], float]:
    """By relation and run, how often it is right."""
    owners = of.by_fact.relation
    return {
        (id, name): float(shares[owners == number].mean())
        for number, id in enumerate(of.by_fact.ids)
        for name, shares in of.shares.items()
    }


def _tested(found: Found, couple: Couple) -> list[Field[Any]]:
    """The columns of a difference: itself, its p, and whether it holds."""
    return [
        Field(less(couple), lambda key: found[key, couple], "points", "holds with all others"),
        Field("p", lambda key: shown_p(found[key, couple].p), help="corrected for all"),
        Field("", lambda key: _word(found[key, couple]), help="where it holds after correction"),
    ]


def _word(difference: Estimate) -> str:
    if not told_apart(difference):
        return ""
    return "better" if (difference.value or 0.0) > 0 else "worse"


def _by_group(of: Differences) -> Table:
    places = list(dict.fromkeys(place for place, _ in of.groups))
    fields: list[Field[Place]] = [
        Field("by", lambda place: place[0]),
        Field("group", lambda place: place[1]),
        Field("facts", lambda place: of.groups[place, of.others[0]].n, "count"),
    ]
    for couple in of.others:
        fields += _tested(of.groups, couple)
    return table(
        places,
        fields,
        id="groups-of-facts",
        title="Differences by type and other groups",
        note=f"Each on the prompts of its group. Intervals hold for all {len(of.groups)} together "
        "(Bonferroni) and agree with the test, whose p is corrected for them (Holm).",
    )


def _cost(of: Differences) -> Table:
    runs = {run.name: run for run in of.aligned.runs}
    left = of.aligned.left_out

    def pace(run: Compared) -> float | None:
        prompts, seconds = run.made.prompts, run.made.seconds
        return prompts / seconds if prompts and seconds else None

    return side_by_side(
        runs,
        [
            Field("prompts", lambda n: runs[n].made.prompts, "count", "that the whole run asked"),
            Field("judged", lambda n: len(runs[n].judged.grid) + left[n], "count", "of these"),
            Field("compared", lambda n: len(runs[n].judged.grid), "count", "asked of all runs"),
            Field("seconds", lambda n: runs[n].made.seconds, "number", "that the model took"),
            Field("prompts a second", lambda n: pace(runs[n]), "number"),
            Field("device", lambda n: runs[n].made.device or None),
            Field("parameters", lambda n: runs[n].made.parameters or None),
            Field("dtype", lambda n: runs[n].made.dtype or None, detail=True),
        ],
        id="cost",
        title="What was asked, and what it took",
        note="Seconds are those of the whole run, on the machine it was made on.",
    )


def _flipped(of: Differences, facts: DataFrame) -> Table:
    """Facts that some runs know and others do not, with what each answers."""
    kept = flipped(facts, of.names)
    if len(of.names) == 2:
        kept = with_change(kept, *of.names)
    total = len(kept)
    kept = kept[drawn(kept["fact"].to_list(), of.seed, MOST_FACTS)]
    labels = {id: relation.label or id for id, relation in _relations(of).items()}
    kept = kept.with_columns(col("relation").replace(labels))
    change = Field[str]("change", kind="verdict", help="what became of it in the second run")
    columns: list[Field[str] | str] = [change] if len(of.names) == 2 else []
    columns += ["relation", "subject", Field("gold", help="what is right")]
    for name in of.names:
        columns.append(Field(f"answer {name}", help="the commonest over its prompts"))
        columns.append(Field(f"right {name}", kind="percent", help="of its prompts"))
        columns.append(Field(f"confidence {name}", kind="percent", help="mean over its prompts"))
    return browse(
        kept,
        columns,
        id="flipped",
        title="Facts that flipped" if len(of.names) == 2 else "Facts that only some runs know",
        total=total,
        note="Facts of which more than half the prompts are right in one run and not in another.",
    )


def _leaders(of: Differences) -> DotPlot:
    values = tuple(of.accuracies[name] for name in of.leaders)
    return DotPlot(
        id="standing",
        title="How often each run is right",
        axis="share of a fact's prompts right, over facts",
        labels=tuple(of.leaders),
        series=(Series(name="right", values=values),),
        note="Whiskers are 95 % intervals of each run alone; which runs differ is in the table.",
    )


def _dots(of: Differences, what: str, labels: Mapping[Any, str], found: Found) -> DotPlot:
    """A row for each relation or group, a colour for each other run; the best difference on top."""
    first = of.others[0]
    keys = list(labels)
    if what == "relation":
        keys.sort(key=lambda key: -(found[key, first].value or 0.0))
    return DotPlot(
        id=f"differences-by-{what}",
        title=f"Differences by {what}",
        axis="points more often right" if len(of.others) > 1 else f"{less(first)}, share right",
        labels=tuple(labels[key] for key in keys),
        series=tuple(
            Series(name=less(couple), values=tuple(found[key, couple] for key in keys))
            for couple in of.others
        ),
        note="Whiskers are intervals that hold for all of them together, 95 times in 100 "
        "(Bonferroni); where one does not reach 0 the difference holds.",
    )
