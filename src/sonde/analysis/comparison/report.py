"""The report of several runs together. Knows judged prompts, nothing of files or probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

from sonde.analysis.comparison import between as models
from sonde.analysis.comparison import tables
from sonde.analysis.comparison.between import Between, between
from sonde.analysis.comparison.figures import figures
from sonde.analysis.comparison.numbers import Numbers, Reading, all_numbers, main_numbers
from sonde.analysis.comparison.ranks import Agreement, rank_agreement
from sonde.analysis.comparison.relations import paired
from sonde.analysis.comparison.sharing import Sharing, sharing
from sonde.analysis.reliability.report import with_reliability
from sonde.analysis.runs import Aligned, Compared, align
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report, Table
from sonde.core.words import named
from sonde.metrics.estimates import p_value
from sonde.metrics.leading import lead
from sonde.reporting.build.multi_prompt.metrics import ACC, METRICS, ONE_WORD, OVERALL
from sonde.reporting.build.parts import left_out, shown
from sonde.reporting.catalogue import metric_of


def analyse(runs: Sequence[Compared], reading: Reading | None = None) -> Report:
    """Everything that can be said about runs of one dataset on the prompts they share."""
    reading = reading or Reading()
    aligned = align(runs)
    found = [all_numbers(run.judged, reading) for run in aligned.runs]
    shared, agreed = sharing(aligned, reading.seed), rank_agreement(aligned, reading.seed)
    compared = between(aligned, reading.seed)
    own = [main_numbers(run.judged, reading) for run in runs] if any(aligned.left_out) else []
    estimates = _estimates(aligned, found, own, shared, agreed) | models.estimates(
        aligned, compared
    )
    made = tuple(_tables(aligned, runs, estimates, found, own, shared, agreed, compared, reading))
    report = Report(
        title=f"{len(runs)} runs on {runs[0].dataset.split(' (')[0]}",
        summary=_summary(aligned, shared),
        metrics=_metrics(estimates),
        estimates=estimates,
        counts=_counts(aligned),
        headlines=_headlines(),
        tables=shown(made),
        figures=figures(aligned, estimates, found, shared, agreed, compared),
        findings=(
            *_findings(aligned, found, shared, reading.seed),
            *models.findings(aligned, compared),
            *_ranks_finding(agreed),
        ),
        notes=(*_notes(aligned), *left_out(made)),
    )
    return with_reliability(report, runs, reading)


def _metrics(estimates: Estimates) -> tuple[Metric, ...]:
    """What the numbers of single runs are; those of comparisons are told where they stand."""
    found = {metric_of(name, (*METRICS, *OVERALL, ONE_WORD)) for name in estimates}
    return tuple(metric for metric in (*METRICS, *OVERALL, ONE_WORD) if metric in found)


def _estimates(
    aligned: Aligned,
    found: Sequence[Numbers],
    own: Sequence[Numbers],
    shared: Sharing,
    agreed: Agreement,
) -> dict[str, Estimate]:
    names = [run.name for run in aligned.runs]
    estimates = {
        "sharing.mean": shared.mean,
        "sharing.within": shared.within,
        "sharing.between": shared.between,
        "known_in_one_run": shared.one,
        "rank_agreement.mean": agreed.mean,
    }
    for (row, column), estimate in shared.groups.items():
        estimates[f"sharing.groups.{row}.in.{column}"] = estimate
    for (a, row), (b, column) in product(enumerate(names), enumerate(names)):
        estimates[f"sharing.runs.{row}.in.{column}"] = shared.rates[a][b]
        estimates[f"rank_agreement.runs.{row}.and.{column}"] = agreed.tau[a][b]
    for i, name in enumerate(names):
        estimates[f"known_alone.run.{name}"] = shared.only[i]
        estimates |= {f"{k}.run.{name}": e for k, e in found[i].estimates.items()}
        if own:
            estimates |= {f"own.{k}.run.{name}": e for k, e in own[i].estimates.items()}
    return estimates


def _counts(aligned: Aligned) -> dict[str, int]:
    first = aligned.first
    return {
        "runs": len(aligned.runs),
        "relations": len(first.relations),
        "pairs": len(first.pairs),
        "templates": len(first.templates),
        "prompts": len(first.grid),
        **{
            f"prompts_left_out.run.{run.name}": left
            for run, left in zip(aligned.runs, aligned.left_out, strict=True)
        },
    }


def _tables(
    aligned: Aligned,
    runs: Sequence[Compared],
    estimates: Estimates,
    found: Sequence[Numbers],
    own: Sequence[Numbers],
    shared: Sharing,
    agreed: Agreement,
    compared: Between,
    reading: Reading,
) -> Iterator[Table]:
    by_run, prompts = [numbers.estimates for numbers in found], len(aligned.first.grid)
    less = [None, *compared.over_pairs.values()]
    each = [prompts] * len(runs)
    yield tables.comparison_table(aligned, by_run, reading.draw, each, less)
    if own:
        alone = [numbers.estimates for numbers in own]
        asked = [len(run.judged.grid) for run in runs]
        yield tables.comparison_table(aligned, alone, reading.draw, asked)
    yield tables.leaderboard(aligned, compared)
    yield tables.extremes_table(aligned, compared)
    yield from tables.kin_tables(aligned, compared)
    yield from tables.group_tables(compared, shared)
    yield tables.only_table(aligned, shared)
    yield tables.rank_table(aligned, agreed.templates)
    yield tables.driver_table(aligned, by_run)
    yield from tables.side_tables([run.name for run in aligned.runs], estimates, reading.floor)
    yield tables.relations_table(aligned, compared)


def _headlines() -> tuple[Headline, ...]:
    return (
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
            label="Agreement on templates, Kendall's τ-b",
            estimate="rank_agreement.mean",
            kind="number",
        ),
    )


def _summary(aligned: Aligned, shared: Sharing) -> str:
    first = aligned.first
    asked = (
        f"{len(aligned.runs)} runs are compared on the {len(first.grid):,} prompts that all of "
        f"them were asked: {len(first.pairs):,} pairs, {len(first.templates):,} templates"
    )
    if shared.one.value is None:
        return f"{asked}. None of them knows anything."
    return f"{asked}. Of what any of them knows, {shared.one.value:.1%} is known in one run only."


def _findings(
    aligned: Aligned, found: Sequence[Numbers], shared: Sharing, seed: int
) -> Iterator[str]:
    yield from _most_often(aligned, found, seed)
    yield from _shared([run.name for run in aligned.runs], shared)
    if shared.within.value is not None and shared.between.value is not None:
        yield (
            f"Runs of one group share {shared.within.value:.1%} on average, runs of different "
            f"groups {shared.between.value:.1%}."
        )


def _most_often(aligned: Aligned, found: Sequence[Numbers], seed: int) -> Iterator[str]:
    """Who is right most often, tested pair by pair."""
    places = {run.name: i for i, run in enumerate(aligned.runs)}
    values = {name: found[i].estimates[ACC.id].value or 0.0 for name, i in places.items()}

    def test(one: str, other: str) -> float:
        samples = paired(aligned, places[one], places[other])
        return p_value(samples, seed, f"runs:{one}:{other}", over="facts")

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
        if (value := shared.rates[a][b].value) is not None
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


def _ranks_finding(agreed: Agreement) -> Iterator[str]:
    """Which runs agree least on templates, where there are several to choose from."""
    if agreed.mean.value is None:
        yield "The order of templates was not compared: no two runs tell templates apart."
    elif (least := agreed.least) is not None:
        tau = f"τ-b {least.value:.2f}"
        yield named(
            f"{least.best} agree least on which templates are good ({tau}).",
            "Which two runs agree least on which templates are good",
            f"{least.best} ({tau})",
            least.tied,
        )


def _notes(aligned: Aligned) -> tuple[str, ...]:
    left = [
        f"{run.name} {count:,}"
        for run, count in zip(aligned.runs, aligned.left_out, strict=True)
        if count
    ]
    ways = dict.fromkeys(run.judged.way for run in aligned.runs)
    unknown = models.unknown(aligned)
    one_template = len(aligned.first.templates) == len(aligned.first.relations)
    return (
        "Every number is of the prompts that all runs were asked and that could be judged in all: "
        "the same pair, template and name of the subject."
        + (f" Left out: {', '.join(left)} prompts." if left else " Nothing was left out."),
        *(
            [
                f"The runs answered in different ways ({', '.join(ways)}), which count other "
                "things as right and as sure: compare their numbers with care."
            ]
            if len(ways) > 1
            else []
        ),
        *(
            [
                f"Family unknown, because the table of models does not have them: "
                f"{', '.join(unknown)}. Each counts as a family of its own."
            ]
            if unknown
            else []
        ),
        *(
            [
                "Every relation was asked in one template: what templates do to the answers is not "
                "measured."
            ]
            if one_template
            else []
        ),
        "A pair is known under a template if it is answered right under some name of the subject. "
        "Intervals are 95 %: a bootstrap over pairs within relations; for τ-b over relations, for "
        "mean and stdev of templates over these, for Pearson's r over relations.",
    )
