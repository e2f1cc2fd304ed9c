"""The report of several runs together, with figures that show all of them in one.

Knows what was found, nothing of files or probes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from sonde.analysis.comparison.numbers import (
    MEAN,
    ONLY,
    STDEV,
    Comparison,
    compare,
    leading_relation,
)
from sonde.analysis.comparison.tables import tables
from sonde.analysis.runs import UNKNOWN, Aligned, Reading, relation_name, with_counts
from sonde.core.reports import Figure, HeatMap, Report
from sonde.core.words import in_points, named, sided
from sonde.reporting.build.figures import bars, calibration, heat
from sonde.reporting.build.multi_prompt.numbers import COVERAGE, METRICS, ONE_WORD, OVERALL
from sonde.reporting.build.parts import left_out, shown
from sonde.reporting.catalogue import used

MOST_NAMED = 3
"""Relations that a sentence names."""


SAME_PROMPTS = (
    "Every number is of the prompts that all runs were asked and that could be judged in all: "
    "the same pair, template and name of the subject."
)
SAME_FACTS = (
    "Every number is of the facts that all runs were prompted about: the same relation, subject "
    "and correct objects. The runs share no prompts about them in at least one relation, so the "
    "prompts of each run are averaged for each fact. Where numbers count what a run knows, it "
    "knows a fact if more than half of the prompts are right."
)
KNOWN_UNDER = (
    "A pair is known under a template if it is answered right under some name of the subject. "
)


def comparison_report(aligned: Aligned, reading: Reading) -> Report:
    """Everything that runs have in common on the prompts they share, and each on its own."""
    of = compare(aligned, reading)
    built = tuple(tables(of))
    return Report(
        title=_title(aligned),
        metrics=used((*METRICS, *OVERALL, ONE_WORD, MEAN, STDEV, ONLY), of.estimates),
        estimates=of.estimates,
        counts=_counts(of.aligned),
        tables=shown(*built),
        figures=shown(*_figures(of)),
        findings=tuple(_findings(of)),
        notes=(*_notes(of.aligned), *left_out(built)),
    )


def _counts(aligned: Aligned) -> dict[str, int]:
    first = aligned.first
    sizes = {"templates": len(first.templates), "prompts": len(first.grid)}
    return {
        "runs": len(aligned.runs),
        "relations": len(first.relations),
        "pairs": len(first.pairs),
        **(sizes if aligned.same_prompts else {}),
        **{f"prompts_left_out.run.{name}": count for name, count in aligned.left_out.items()},
    }


def _title(aligned: Aligned) -> str:
    """How many runs of which probe on which dataset."""
    probes = dict.fromkeys(run.made.probe for run in aligned.runs if run.made.probe)
    datasets = dict.fromkeys(run.dataset.split(" (")[0] for run in aligned.runs)
    of = f" of {' and '.join(probes)}" if probes else ""
    return f"{len(aligned.runs)} runs{of} on {' and '.join(datasets)}"


def _findings(of: Comparison) -> Iterator[str]:
    yield from _shared(of)
    if len({run.judged.way == "written" for run in of.aligned.runs}) == 1:
        yield from _averages(of)
    yield from _of_kin(of)
    if of.aligned.same_prompts:
        yield from _template_order(of)


def _averages(of: Comparison) -> Iterator[str]:
    """Averages over runs, none of them of scored options and generated text together."""
    within, between = (of.estimates[f"sharing.{part}"].value for part in ("within", "between"))
    if within is not None and between is not None:
        yield (
            f"Runs of one group share {within:.1%} on average, runs of different groups "
            f"{between:.1%}."
        )
    yield from _best_and_least(of)
    alike = of.estimates["correlation.mean"]
    if alike.value is not None and alike.n > 1:  # of a single pair of runs it is no finding
        yield f"The runs find the same relations easy with r = {alike.value:.2f} on average."


def _shared(of: Comparison) -> Iterator[str]:
    """What two runs share, both ways, or how far that goes between several; none is singled out."""
    rates = {
        (a, b): value
        for a, b in permutations(of.names, 2)
        if (value := of.estimates[f"sharing.runs.{a}.in.{b}"].value) is not None
    }
    alone = of.estimates["known_in_one_run"].value
    if alone is None:
        yield "None of the runs knows anything."
    if len(of.names) == 2 and rates:
        both = "; ".join(f"of what {a} knows, {b} knows {v:.1%}" for (a, b), v in rates.items())
        yield f"{both[0].upper()}{both[1:]}."
    elif rates:
        low, high = min(rates.values()), max(rates.values())
        yield (
            f"Of what one run knows, another knows {low:.1%} to {high:.1%}, depending on which two."
        )
    if rates:
        yield f"Of what any run knows, {alone:.1%} is known in one run only."


def _best_and_least(of: Comparison) -> Iterator[str]:
    """The relations that are known best and least, as far as they differ from the others."""
    labels = {r.id: relation_name(r) for r in of.aligned.first.relations}
    best, least = leading_relation(of), leading_relation(of, lowest=True)
    if best is None or least is None or best.value == least.value:
        return
    for word, first in (("best", best), ("least", least)) if len(labels) > 2 else (("best", best),):
        name, share = labels[first.best], f"{first.value:.1%}"
        claim = f"Over all runs {name} is known {word} ({share})."
        question = f"Which relation is known {word} over all runs"
        tied = [labels[t] for t in first.tied]
        yield named(claim, question, f"{name} ({share})", tied, MOST_NAMED)


def _of_kin(of: Comparison) -> Iterator[str]:
    """What larger models know of what smaller ones do, and what fine-tuning did."""
    for family, smallest, largest in of.sizes:
        eta = of.estimates[f"subsumption.runs.{smallest}.in.{largest}"].value
        if eta is not None:
            yield (
                f"Of what {smallest}, the smallest of family {family}, knows, {largest}, the "
                f"largest, knows {eta:.1%}."
            )
    for _, base, tuned in of.tuned:
        difference = of.estimates[f"accuracy.runs.{tuned}.minus.{base}"]
        word = sided(difference, "better", "worse", "neither clearly better nor worse")
        yield (
            f"Averaged over relations, {tuned} is {word} than {base}, its base: "
            f"{in_points(difference)}."
        )


def _template_order(of: Comparison) -> Iterator[str]:
    """Which runs agree least on templates, where there are several to choose from."""
    if of.estimates["rank_agreement.mean"].value is None:
        yield "The order of templates was not compared: no two runs tell templates apart."
    elif (least := of.templates.least(of.reading.seed)) is not None:
        tau = f"τ-b {least.value:.2f}"
        yield named(
            f"{least.best} agree least on which templates are good ({tau}).",
            "Which two runs agree least on which templates are good",
            f"{least.best} ({tau})",
            least.tied,
        )


def _notes(aligned: Aligned) -> Iterator[str]:
    left = with_counts(aligned.left_out)
    yield (SAME_PROMPTS if aligned.same_prompts else SAME_FACTS) + (
        f" Left out: {left} prompts." if left else " Nothing was left out."
    )
    lineages = [run.lineage for run in aligned.runs]
    unknown = dict.fromkeys(x.model for x in lineages if x.family == UNKNOWN and x.model)
    if unknown:
        yield (
            f"Family unknown, because the table of models does not have them: "
            f"{', '.join(unknown)}. Each counts as a family of its own."
        )
    if all(len(run.judged.templates) == len(aligned.first.relations) for run in aligned.runs):
        yield (
            "Every relation was asked in one template: what templates do to the answers is not "
            "measured."
        )
    yield (
        KNOWN_UNDER
        * aligned.same_prompts
        + "Intervals are 95 %: a bootstrap over subjects within relations; for τ-b over relations, "
        "for mean and stdev of templates over these, for Pearson's r over relations."
    )


def _figures(of: Comparison) -> Iterator[Figure]:
    """Relations by run, who is like whom, confidence, reach."""
    labels = {r.id: relation_name(r) for r in of.aligned.first.relations}
    yield heat(
        (labels[id] for id in of.relations),
        of.by_family,
        ((of.of_relation(id, name) for name in of.by_family) for id in of.relations),
        id="accuracy",
        title="Accuracy of each run in each relation",
        note="Relations by their mean over runs, the best known first. Runs of one family stand "
        "together; families by their model of about 7 billion parameters, where sizes are known, "
        "else by their best; the best run of a family first.",
    )
    yield _couples(
        of,
        of.by_family,
        "correlation.runs.{}.and.{}",
        title="Which runs find the same relations easy: Pearson's r of their accuracies",
    )
    yield _couples(
        of,
        of.by_family,
        "subsumption.runs.{}.in.{}",
        title="Subsumption η: what the run of the row knows that the run of the column knows too",
        note="Per relation, then averaged over the relations in which the row's run knows "
        "anything; the sharing rate pools all relations.",
    )
    yield _couples(
        of,
        of.names,
        "sharing.runs.{}.in.{}",
        title="Sharing rate: what the run of the row knows that the run of the column knows too",
        note="Of the pairs that the row's run gets right under a template, the share that the "
        "column's run gets right under the same template."
        if of.aligned.same_prompts
        else "Of the facts that the row's run knows, the share that the column's run knows.",
    )
    yield _couples(
        of,
        of.names,
        "rank_agreement.runs.{}.and.{}",
        title="Agreement on the order of templates: Kendall's τ-b, mean over relations",
        note="1: both runs rank the templates of each relation alike; 0: by chance; -1: reversed.",
    )
    yield calibration(of.bins)
    yield bars(
        of.estimates,
        {name: f"run.{name}" for name in of.names},
        {metric.label: metric for metric in COVERAGE},
        id="coverage",
        title="Coverage: pairs answered right",
        axis="share of pairs",
        note="Average: a prompt chosen at random. Maximum: each relation's best template. "
        "Oracle: any prompt. Whiskers are 95 % intervals.",
    )


def _couples(
    of: Comparison, names: Sequence[str], pattern: str, *, title: str, note: str = ""
) -> HeatMap:
    """A number of every two runs."""
    symmetric = ".and." in pattern
    return heat(
        names,
        names,
        ((of.estimates[pattern.format(row, column)] for column in names) for row in names),
        id=pattern.partition(".")[0].replace("_", "-"),
        title=title,
        unit="number" if symmetric else "percent",
        low=-1.0 if symmetric else 0.0,
        note=note,
    )
