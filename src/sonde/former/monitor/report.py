"""The report of MONITOR: headlines, and what the numbers mean. Knows outcomes, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Estimates, Headline, Report
from sonde.core.words import against_control, counted, listed, sided
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.distance import ANCHOR, IRD, MONITOR, PFD, RULES
from sonde.metrics.estimates import RELATIONS
from sonde.former.monitor.judge import Outcomes
from sonde.former.monitor.numbers import (
    ABOVE,
    AVG,
    BASE,
    BY_FACT,
    COPIED,
    DIFFERENCE,
    GROUPS,
    MAJORITY,
    MAX,
    MIN,
    OVER_PROMPTS,
    STDEV,
    measure,
    of_all,
)
from sonde.former.monitor.tables import VALID_WHERE, figures, tables
from sonde.prompting.matching import begins, cleaned
from sonde.reporting.build.parts import (
    Written,
    abstentions,
    headline,
    nothing_said,
    shown,
    unconcluded,
)
from sonde.reporting.build.tables import titled

FEW = 10


def build_report(
    dataset: Dataset,
    outcomes: Outcomes,
    *,
    without_frames: Sequence[str],
    one_frame: Sequence[str],
    bare: bool,
    most: int,
    attempts: Sequence[str],
) -> Report:
    """Everything that is reported about some answers.

    Relations may have no frame, or one. `bare`: questions were put as they are, or without
    examples; `most`: the tokens that an answer may have; `attempts`: settings to try where most
    answers are empty.
    """
    estimates = measure(outcomes)
    parts = ("accuracy", "full") if outcomes.full else ("accuracy",)
    accuracies = (
        metric.of(part=part, group=group)
        for part, group, metric in product(parts, GROUPS, OVER_PROMPTS)
    )
    answers = _written(outcomes)
    silent = abstentions(outcomes.monitored.judged(), outcomes.monitored.seed)
    estimates |= silent.estimates
    findings = (
        nothing_said([answers], attempts),
        *_findings(estimates, answers),
        *silent.findings,
        *_anchors(outcomes, bare),
        *_left_out(outcomes, without_frames, one_frame),
    )
    return Report(
        title=f"MONITOR on {dataset.name}",
        summary=_summary(estimates, outcomes),
        metrics=(*BY_FACT, *accuracies, *ABSTENTION),
        estimates=estimates,
        counts={
            **_counts(outcomes),
            "empty_answers": answers.empty,
            **silent.counts,
            "relations_without_frames": len(without_frames),
            "relations_with_one_frame": len(one_frame),
            **outcomes.left_out.counts(),
            "facts_cut_into_other_tokens": outcomes.uneven,
        },
        headlines=(*_headlines(answers), *silent.headlines),
        tables=shown(*tables(estimates, outcomes), *silent.tables),
        figures=shown(*figures(estimates, outcomes)),
        findings=shown(*findings),
        notes=_notes(outcomes, most),
        judged=outcomes.monitored.judged(),
    )


def _summary(estimates: Estimates, outcomes: Outcomes) -> str:
    known = outcomes.monitored
    valid, asked = int(known.valid[known.rule].sum()), len(known.facts)
    value = estimates[MONITOR.at(RELATIONS)].value
    if value is None:
        return f"None of {asked:,} facts has a valid anchor: MONITOR is not measured."
    measured = len(np.unique(known.relation[known.counted()]))
    return (
        f"MONITOR is {value:.3f} over {measured} of {len(known.relations)} relations, from "
        f"{valid:,} valid anchors of {asked:,} facts; 0 is an answer that nothing moves, and a "
        "model that only repeats the name in front of the question has "
        f"{sum(known.alphas) ** 0.5:.3f}."
    )


def _written(outcomes: Outcomes) -> Written:
    """The answers that accuracies are of, not those after the right name."""
    said = [text for each in outcomes.monitored.said for text in each[1:]]
    return Written(what="answers", empty=said.count(""), total=len(said))


def _headlines(answers: Written) -> tuple[Headline, ...]:
    named = of_all(AVG).named("Accuracy over prompts")
    accuracy = headline(named, RELATIONS, control=of_all(MAJORITY), above=of_all(ABOVE))
    return (
        headline(MONITOR.named("MONITOR, smaller is more reliable"), RELATIONS),
        headline(PFD.named("PFD: how far other frames move the answer"), RELATIONS),
        headline(IRD.named("IRD: how far wrong names move the answer"), RELATIONS),
        unconcluded(accuracy) if answers.mostly_empty else accuracy,
        headline(of_all(BASE).named("Accuracy of the base frame"), RELATIONS),
        headline(of_all(STDEV).named("Standard deviation of the accuracy over prompts"), RELATIONS),
        headline(ANCHOR.named("Probability of valid anchors"), RELATIONS),
    )


def _counts(outcomes: Outcomes) -> dict[str, int]:
    """What was asked, and why facts were dropped."""
    known = outcomes.monitored
    valid = known.valid[known.rule]
    dropped = {"answer_empty": 0, "answer_goes_on": 0, "another_answer": 0}
    for c in np.flatnonzero(~valid).tolist():
        said, gold = known.said[c][0], cleaned(known.facts[c].objects[0].name)
        empty, longer = not said, begins(said, gold)
        reason = "answer_empty" if empty else "answer_goes_on" if longer else "another_answer"
        dropped[reason] += 1
    counted = known.counted()
    return {
        "relations": len(known.relations),
        "relations_without_anchors": len(known.relations) - len(np.unique(known.relation[counted])),
        "facts": len(known.facts),
        "facts_counted": int(counted.sum()),
        **{f"anchors_{rule}": int(known.valid[rule].sum()) for rule in RULES},
        **{f"dropped_{reason}": count for reason, count in dropped.items()},
        "dropped_without_wrong_names": int((valid & ~counted).sum()),
    }


def _notes(outcomes: Outcomes, most: int) -> tuple[str, ...]:
    known = outcomes.monitored
    weights = ", ".join(f"{alpha:.3g}" for alpha in known.alphas)
    return (
        f"An anchor is valid where {VALID_WHERE[known.rule]}. Answers are written greedily, at "
        f"most {most} tokens, and compared by their first line without closing punctuation.",
        f"MONITOR is the sum of √(α₁PFD² + α₂IRD² + α₃PFD·IRD) over the sum of the anchors' "
        f"probabilities, with α = {weights}; one score a relation, then the mean. Probabilities "
        "are of the object's own tokens, one by one.",
        "Accuracies are over the frames with nothing told and the base frame after each wrong "
        "name; the right name never stands in front there. Any name of any correct object counts.",
        "Intervals are 95 %: a bootstrap over subjects within relations. Where nothing varies, "
        "they are those of a share of as many trials; a relation with the anchors of one subject "
        "adds nothing to the width of the mean's.",
    )


def _findings(estimates: Estimates, answers: Written) -> Iterator[str]:
    """A sentence for each thing that was measured; one may be empty."""
    pfd, ird, copied, low, high, base = (
        estimates[metric.at(RELATIONS)].value
        for metric in (PFD, IRD, COPIED, *map(of_all, (MIN, MAX, BASE)))
    )
    if pfd is not None and ird is not None:
        which = sided(
            estimates[DIFFERENCE.at(RELATIONS)],
            "more by wrong names",
            "more by other frames",
            "about as much by either",
        )
        yield (
            f"The probability of a right answer moves by {pfd:.3f} in other frames and by "
            f"{ird:.3f} after wrong names: {which}."
        )
    if answers.mostly_empty:
        return
    if low is not None and high is not None and base is not None:
        yield (
            f"Accuracy is {low:.1%} with the worst prompt of each relation and {high:.1%} with the "
            f"best; the base frame gives {base:.1%}."
        )
    yield against_control("Accuracy over prompts", estimates[of_all(ABOVE).at(RELATIONS)])
    if copied:
        yield f"After a wrong name the model repeats it in {copied:.1%} of its answers."


def _anchors(outcomes: Outcomes, bare: bool) -> Iterator[str]:
    """Whether there are enough anchors, and the relations with few."""
    known = outcomes.monitored
    valid = known.valid[known.rule]
    if not len(valid) or valid.mean() < 0.5:
        hint = " Small models give more with frame=qa and a few shots." if bare else ""
        yield (
            f"Only {int(valid.sum()):,} of {len(valid):,} facts have a valid anchor, so MONITOR "
            f"speaks of these alone.{hint}"
            if valid.any()
            else f"None of {len(valid):,} facts has a valid anchor.{hint}"
        )
    anchors = np.bincount(known.relation[known.counted()], minlength=len(known.relations))
    counts = {titled(r): n for r, n in zip(known.relations, anchors.tolist(), strict=True)}
    none = [name for name, count in counts.items() if not count]
    few = [f"{name} ({count})" for name, count in counts.items() if 0 < count < FEW]
    if none:
        yield f"Without a valid anchor, and not measured: {listed(none)}."
    if few:
        yield f"Fewer than {FEW} anchors, so little can be said of: {listed(few)}."


def _left_out(
    outcomes: Outcomes, without_frames: Sequence[str], one_frame: Sequence[str]
) -> Iterator[str]:
    known = outcomes.monitored
    if without_frames:
        yield f"No question to ask, left out: {listed(without_frames)}."
    if one_frame:
        yield (
            "A single frame, so PFD there is the effect of the right name alone: "
            f"{listed(one_frame)}."
        )
    yield from outcomes.left_out.sentences()
    if outcomes.left_out.without_wrong:
        valid = int((known.valid[known.rule] & ~known.counted()).sum())
        yield f"MONITOR leaves out {valid:,} of them that have a valid anchor."
    if outcomes.uneven:
        facts = counted(outcomes.uneven, "fact was", "facts were")
        yield f"{facts} left out: their object is cut into tokens differently."
    sizes = {len(frames) for frames in known.frames}
    if len(sizes) > 1:
        yield f"Relations have {min(sizes)} to {max(sizes)} frames; each counts its own."
