"""A run beside its controls: how far above each, and whether that could be chance.

Knows judged prompts and numbers, nothing of files or models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.analysis.runs import Aligned, with_counts
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Table
from sonde.core.words import above_zero, by_test, in_points, shown_p, sided
from sonde.metrics.estimates import RELATIONS, Sample, p_value
from sonde.reporting.build.tables import Field, across, side_by_side

TWO_SIDED = "paired test, two-sided"

ACCURACY = Metric("controls.accuracy", "model", "percent", "share of prompts right, over relations")
OF_CONTROL = Metric("controls.{name}.accuracy", "control", "percent", "the same of the control")
ABOVE = Metric("controls.{name}.above", "above", "points", "the difference, paired by fact")
P = Metric("controls.{name}.p_value", "p", "percent", "paired test of the difference, two-sided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the report of a run gains from its controls."""

    estimates: Estimates
    tables: tuple[Table, ...]
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def paired(aligned: Aligned, subjects: Mapping[str, str], seed: int) -> Beside:
    """The first run beside the others, on the prompts that all of them were asked.

    `subjects`: the subject of each fact; pairs of one subject are not independent of each other.
    """
    by_pair = aligned.by_pair(seed, subjects)
    model, *controls = aligned.shares()
    names = aligned.names[1:]
    estimates = by_pair.estimates(ACCURACY.id, model)
    for name, control in zip(names, controls, strict=True):
        above, p = ABOVE.of(name=name).id, P.of(name=name).id
        estimates |= by_pair.estimates(OF_CONTROL.of(name=name).id, control)
        estimates |= _tested(p, by_pair.resampled(model, control).samples, seed)
        for name_above, difference in by_pair.estimates(above, model, control).items():
            tested = estimates[f"{p}{name_above.removeprefix(above)}"].value
            estimates[name_above] = by_test(difference, tested)
    return Beside(
        estimates=estimates,
        tables=(_summary(names, by_pair.ids, estimates), _by_relation(aligned, estimates)),
        findings=tuple(_finding(name, estimates) for name in names),
        notes=(_note(aligned),),
    )


def unpaired(headlines: Sequence[Headline], runs: Mapping[str, Estimates]) -> Beside:
    """The headline numbers of some runs, the first being the model's; nothing is paired."""
    first, *controls = runs
    lines = [line for line in headlines if line.estimate in runs[first]]
    metrics = [Metric(line.estimate, line.label, line.kind) for line in lines]

    def look(name: str, metric: Metric) -> Estimate:
        return runs[name].get(metric.id, Estimate.not_measured())

    return Beside(
        estimates={
            f"controls.{name}.{metric.id}": look(name, metric)
            for name in controls
            for metric in metrics
        },
        tables=(
            _leading(
                side_by_side(
                    runs,
                    metrics,
                    look,
                    id="controls",
                    title="Beside the controls",
                    note="This probe judges no single prompts, so that differences are not tested.",
                )
            ),
        ),
    )


Named = Iterator[tuple[str, Estimate]]


def _tested(name: str, less: Mapping[str, Sample], seed: int) -> Named:
    """The p of the mean over relations and of every relation; n is the number of pairs."""
    parts = {RELATIONS: less, **{f"relation.{id}": {id: sample} for id, sample in less.items()}}
    for over, part in parts.items():
        value = p_value(part, seed, f"{name}.{over}")
        n = sum(len(sample.values) for sample in part.values())
        yield f"{name}.{over}", Estimate(value=value, low=None, high=None, n=n)


def _summary(names: Sequence[str], relations: Sequence[str], estimates: Estimates) -> Table:
    def look(name: str, metric: Metric) -> Estimate:
        return estimates[metric.of(name=name).at(RELATIONS)]

    def clear(name: str) -> str:
        above = sum(_is_above(name, f"relation.{id}", estimates) for id in relations)
        return f"{above} of {len(relations)}"

    summary = side_by_side(
        names,
        [
            *(ACCURACY, OF_CONTROL, ABOVE),
            Field(P.label, lambda name: shown_p(look(name, P).value), help=P.sentence),
            Field("relations", clear, help="on which the model beats the control"),
        ],
        look,
        head="control",
        id="controls",
        title="Beside the controls",
        note="Means over relations, on what the model and all controls were asked.",
    )
    return _leading(summary)


def _leading(beside: Table) -> Table:
    """Whoever asks for controls wants to see them first."""
    return replace(beside, leads=True)


def _is_above(name: str, over: str, estimates: Estimates) -> bool:
    """Whether the model is above a control, by the interval and by the test."""
    above, p = (estimates[metric.of(name=name).at(over)] for metric in (ABOVE, P))
    return above_zero(above, p.value)


def _by_relation(aligned: Aligned, estimates: Estimates) -> Table:
    names = aligned.names[1:]
    labels = {
        **{r.id: (r.label, f"relation.{r.id}") for r in aligned.first.relations},
        "all": ("mean", RELATIONS),
    }

    def of(id: str, metric: Metric, name: str = "") -> Estimate:
        return estimates[metric.of(name=name).at(labels[id][1])]

    def tested(name: str) -> list[Field[str]]:
        return [
            Field(
                f"above {name}", lambda id: of(id, ABOVE, name), "points", "paired by fact", True
            ),
            Field(
                f"p, {name}", lambda id: shown_p(of(id, P, name).value), help=TWO_SIDED, detail=True
            ),
        ]

    asked = "that the model and all controls were asked"
    return side_by_side(
        labels,
        [
            Field("label", lambda id: labels[id][0]),
            Field("model", lambda id: of(id, ACCURACY).value, "percent"),
            *across(names, lambda id, name: of(id, OF_CONTROL, name).value),
            Field("pairs", lambda id: of(id, ACCURACY).n, "count", asked),
            Field("model", lambda id: of(id, ACCURACY), "percent", detail=True),
            *(field for name in names for field in tested(name)),
        ],
        head="relation",
        id="controls-by-relation",
        title="Beside the controls, by relation",
        note="The last row averages over relations. p of a single relation is not corrected for "
        "how many relations there are.",
    )


def against(difference: Estimate, p: Estimate, other: str) -> str:
    """A difference in words: clearly above another, with its interval and its p."""
    if difference.value is None:
        return f"not compared with {other} (not measured)."
    difference = by_test(difference, p.value)
    word = sided(difference, "above", "below", "not distinguishable from")
    said = in_points(difference).replace(" (", ", ").rstrip(")")
    return f"{word} {other} ({said}; p {shown_p(p.value)})."


def _finding(name: str, estimates: Estimates) -> str:
    above, p = (estimates[metric.of(name=name).at(RELATIONS)] for metric in (ABOVE, P))
    return f"The model is {against(above, p, f'the control {name}')}"


def _note(aligned: Aligned) -> str:
    left = with_counts(aligned.left_out)
    return (
        f"The controls were asked the same {len(aligned.first.grid):,} prompts as the model. p: "
        "McNemar's exact test for a relation whose facts are right or wrong and have different "
        "subjects, else a permutation of signs, of all facts of a subject together."
        + (f" Left out, because not all could answer: {left} prompts." if left else "")
    )
