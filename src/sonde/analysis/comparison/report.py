"""The report of several runs together, with figures that show all of them in one.

Knows what was found, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from sonde.analysis.comparison.compare import MEAN, ONLY, STDEV, Comparison, compare
from sonde.analysis.comparison.couples import Agreement, Sharing
from sonde.analysis.comparison.numbers import paired
from sonde.analysis.comparison.tables import tables
from sonde.analysis.runs import UNKNOWN, Aligned, Compared, Reading, relation_name, with_counts
from sonde.core.reports import Estimates, Figure, Headline, HeatMap, Report
from sonde.core.words import in_points, named, sided
from sonde.metrics.estimates import lead, p_value
from sonde.reporting.build.figures import bars, calibration, heat
from sonde.reporting.build.multi_prompt.metrics import ACC, COVERAGE, METRICS, ONE_WORD, OVERALL
from sonde.reporting.build.parts import left_out, shown
from sonde.reporting.catalogue import used

HEADLINES = (
    Headline(label="Sharing rate, mean over pairs of runs", estimate="sharing.mean"),
    Headline(label="… of runs in the same group", estimate="sharing.within"),
    Headline(label="… of runs in different groups", estimate="sharing.between"),
    Headline(label="Known in one run only, of all known", estimate="known_in_one_run"),
    Headline(
        label="Same relations easy, Pearson's r over relations",
        estimate="correlation.mean",
        kind="number",
    ),
    Headline(
        label="Agreement on templates, Kendall's τ-b", estimate="rank_agreement.mean", kind="number"
    ),
)


def comparison_report(runs: Sequence[Compared], reading: Reading) -> Report:
    """Everything that can be said about runs of one dataset on the prompts they share."""
    of = compare(runs, reading)
    estimates = of.estimates
    built = tuple(tables(of, estimates))
    return Report(
        title=f"{len(runs)} runs on {runs[0].dataset.split(' (')[0]}",
        summary=_summary(of.aligned, of.sharing),
        metrics=used((*METRICS, *OVERALL, ONE_WORD, MEAN, STDEV, ONLY), estimates),
        estimates=estimates,
        counts=_counts(of.aligned),
        headlines=HEADLINES,
        tables=shown(built),
        figures=_figures(of, estimates),
        findings=tuple(_findings(of)),
        notes=(*_notes(of.aligned), *left_out(built)),
    )


def _counts(aligned: Aligned) -> dict[str, int]:
    first = aligned.first
    left = zip(aligned.names, aligned.left_out, strict=True)
    return {
        "runs": len(aligned.runs),
        "relations": len(first.relations),
        "pairs": len(first.pairs),
        "templates": len(first.templates),
        "prompts": len(first.grid),
        **{f"prompts_left_out.run.{name}": count for name, count in left},
    }


def _summary(aligned: Aligned, shared: Sharing) -> str:
    first = aligned.first
    asked = (
        f"{len(aligned.runs)} runs are compared on the {len(first.grid):,} prompts that all of "
        f"them were asked: {len(first.pairs):,} pairs, {len(first.templates):,} templates"
    )
    if shared.one.value is None:
        return f"{asked}. None of them knows anything."
    return f"{asked}. Of what any of them knows, {shared.one.value:.1%} is known in one run only."


def _findings(of: Comparison) -> Iterator[str]:
    yield from _most_often(of)
    yield from _shared(of.names, of.sharing)
    within, between = of.sharing.rates.within.value, of.sharing.rates.between.value
    if within is not None and between is not None:
        yield (
            f"Runs of one group share {within:.1%} on average, runs of different groups "
            f"{between:.1%}."
        )
    yield from _best_and_least(of)
    alike = of.correlation.mean
    if alike.value is not None and alike.n > 1:  # of a single pair of runs it is no finding
        yield f"The runs find the same relations easy with r = {alike.value:.2f} on average."
    yield from _of_kin(of)
    yield from _template_order(of.agreement)


def _most_often(of: Comparison) -> Iterator[str]:
    """Who is right most often, tested pair by pair."""
    places = {name: i for i, name in enumerate(of.names)}
    values = {name: of.numbers[i].estimates[ACC.id].value or 0.0 for name, i in places.items()}

    def test(one: str, other: str) -> float:
        samples = paired(of.aligned, places[one], places[other])
        return p_value(samples, of.reading.seed, f"runs:{one}:{other}", over="facts")

    first = lead(values, test)
    if first is not None and first.value > 0:
        share = f"{first.value:.1%}"
        yield named(
            f"{first.best} is right most often: {share} of a pair's prompts.",
            "Which run is right most often",
            f"{first.best} ({share})",
            first.tied,
        )


def _shared(names: Sequence[str], shared: Sharing) -> Iterator[str]:
    """What two runs share, both ways, or how far that goes between several; none is singled out."""
    rates = {
        (a, b): value
        for a, b in permutations(range(len(names)), 2)
        if (value := shared.rates.runs[a][b].value) is not None
    }
    if len(names) == 2 and rates:
        told = (
            f"of what {names[a]} knows, {names[b]} knows {v:.1%}" for (a, b), v in rates.items()
        )
        said = "; ".join(told)
        yield f"{said[0].upper()}{said[1:]}."
    elif rates:
        low, high = min(rates.values()), max(rates.values())
        yield f"Of what one run knows, another knows {low:.1%} to {high:.1%}, by the two runs."


def _best_and_least(of: Comparison) -> Iterator[str]:
    """The relations that are known best and least, as far as they are told from the others."""
    labels = {r.id: relation_name(r) for r in of.aligned.first.relations}
    best, least = of.relations.best, of.relations.least
    if best is None or least is None or best.value == least.value:
        return
    for word, first in (("best", best), ("least", least)) if len(labels) > 2 else (("best", best),):
        name, share = labels[first.best], f"{first.value:.1%}"
        claim = f"Over all runs {name} is known {word} ({share})."
        question = f"Which relation is known {word} over all runs"
        yield named(claim, question, f"{name} ({share})", [labels[t] for t in first.tied])


def _of_kin(of: Comparison) -> Iterator[str]:
    """What larger models know of what smaller ones do, and what fine-tuning did."""
    for pair in of.sizes:
        eta = of.subsumption.runs[pair.lesser][pair.other].value
        if eta is not None:
            yield (
                f"Of what {of.names[pair.lesser]}, the smallest of family {pair.family}, knows, "
                f"{of.names[pair.other]}, the largest, knows {eta:.1%}."
            )
    for pair in of.tuned:
        difference = of.over_relations[pair.lesser, pair.other]
        word = sided(difference, "better", "worse", "neither clearly better nor worse")
        yield (
            f"{of.names[pair.lesser]} is {word} than {of.names[pair.other]}, its base: "
            f"{in_points(difference)}."
        )


def _template_order(agreed: Agreement) -> Iterator[str]:
    """Which runs agree least on templates, where there are several to choose from."""
    if agreed.tau.mean.value is None:
        yield "The order of templates was not compared: no two runs tell templates apart."
    elif (least := agreed.least) is not None:
        tau = f"τ-b {least.value:.2f}"
        yield named(
            f"{least.best} agree least on which templates are good ({tau}).",
            "Which two runs agree least on which templates are good",
            f"{least.best} ({tau})",
            least.tied,
        )


def _notes(aligned: Aligned) -> Iterator[str]:
    left = with_counts(aligned.names, aligned.left_out)
    yield (
        "Every number is of the prompts that all runs were asked and that could be judged in all: "
        "the same pair, template and name of the subject."
        + (f" Left out: {left} prompts." if left else " Nothing was left out.")
    )
    ways = dict.fromkeys(run.judged.way for run in aligned.runs)
    if len(ways) > 1:
        yield (
            f"The runs answered in different ways ({', '.join(ways)}), which count other things as "
            "right and as sure: compare their numbers with care."
        )
    lineages = [run.lineage for run in aligned.runs]
    unknown = dict.fromkeys(x.model for x in lineages if x.family == UNKNOWN and x.model)
    if unknown:
        yield (
            f"Family unknown, because the table of models does not have them: "
            f"{', '.join(unknown)}. Each counts as a family of its own."
        )
    if len(aligned.first.templates) == len(aligned.first.relations):
        yield (
            "Every relation was asked in one template: what templates do to the answers is not "
            "measured."
        )
    yield (
        "A pair is known under a template if it is answered right under some name of the subject. "
        "Intervals are 95 %: a bootstrap over pairs within relations; for τ-b over relations, for "
        "mean and stdev of templates over these, for Pearson's r over relations."
    )


COUPLES = {
    "correlation": "Which runs find the same relations easy: Pearson's r of their accuracies",
    "subsumption": "Subsumption η: what the run of the row knows that the run of the column knows "
    "too",
    "sharing": "Sharing rate: what the run of the row knows that the run of the column knows too",
    "rank-agreement": "Agreement on the order of templates: Kendall's τ-b, mean over relations",
}
NOTES = {
    "subsumption": "Per relation, then averaged over the relations in which the row's run knows "
    "anything; the sharing rate pools all relations.",
    "sharing": "Of the pairs that the row's run gets right under a template, the share that the "
    "column's run gets right under the same template.",
    "rank-agreement": "1: both runs rank the templates of each relation alike; 0: by chance; -1: "
    "reversed.",
}


def _figures(of: Comparison, estimates: Estimates) -> tuple[Figure, ...]:
    """Those with something to show: relations by run, who is like whom, confidence, reach."""
    by_family = [of.names[i] for i in of.relations.runs]

    def couples(id: str, word: str, names: Sequence[str]) -> HeatMap:
        name = id.replace("-", "_")
        return heat(
            names,
            names,
            (
                (estimates[f"{name}.runs.{row}.{word}.{column}"] for column in names)
                for row in names
            ),
            id=id,
            title=COUPLES[id],
            unit="number" if word == "and" else "percent",
            low=-1.0 if word == "and" else 0.0,
            note=NOTES.get(id, ""),
        )

    return shown(
        (
            _accuracies(of),
            couples("correlation", "and", by_family),
            _group_correlation(of),
            couples("subsumption", "in", by_family),
            couples("sharing", "in", of.names),
            couples("rank-agreement", "and", of.names),
            calibration({n: numbers.bins for n, numbers in zip(of.names, of.numbers, strict=True)}),
            bars(
                estimates,
                {name: f"run.{name}" for name in of.names},
                {metric.label: metric for metric in COVERAGE},
                id="coverage",
                title="Coverage: pairs answered right",
                axis="share of pairs",
                note="Average: a prompt chosen at random. Maximum: each relation's best template. "
                "Oracle: any prompt. Whiskers are 95 % intervals.",
            ),
        )
    )


def _accuracies(of: Comparison) -> HeatMap:
    """Relations from the best known to the least, runs by family and accuracy."""
    best, order = of.relations.best_first, of.relations.runs
    return heat(
        (relation_name(of.aligned.first.relations[r]) for r in best),
        (of.names[i] for i in order),
        ((of.relations.accuracies[i][r] for i in order) for r in best),
        id="accuracy",
        title="Accuracy of each run in each relation",
        note="Relations by their mean over runs, the best known first. Runs of one family stand "
        "together; families by their model of about 7 billion parameters, where sizes are known, "
        "else by their best; the best run of a family first.",
    )


def _group_correlation(of: Comparison) -> HeatMap | None:
    """The correlation of runs averaged over groups, where some group has two runs."""
    groups = [run.group for run in of.aligned.runs]
    order = list(dict.fromkeys(groups[i] for i in of.relations.runs))
    if not 1 < len(order) < len(groups):
        return None
    means = of.correlation.groups
    return heat(
        order,
        order,
        ((means.get((min(a, b), max(a, b))) for b in order) for a in order),
        id="group-correlation",
        title="The same within and between groups: mean over pairs of different runs",
        unit="number",
        low=-1.0,
        note="A group of one run has no correlation within.",
    )
