"""The report of `framing`: headlines, and what the numbers mean. Knows judgements, no prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from sonde.core.facts import Dataset
from sonde.core.reports import Estimate, Estimates, Headline, Metric, Report
from sonde.core.words import against_control, counted, in_points, listed, sided, told_apart
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.estimates import RELATIONS
from sonde.former.framing import numbers
from sonde.former.framing.judge import FEW, MOST, Outcomes, Task, Templates
from sonde.former.framing.numbers import LINES, READINGS, mean, measure, was_measured
from sonde.former.framing.tables import figures, tables
from sonde.reporting.build.parts import (
    Written,
    abstentions,
    headline,
    nothing_said,
    shown,
    unconcluded,
)

KINDS: Mapping[Task, tuple[str, str, str]] = {
    "wp": ("sentences", "statements that end with their object", "completed as sentences"),
    "qa": ("questions", "questions", "asked as questions"),
    "fc": ("statements", "statements", "checked as statements"),
}
"""What the templates of a task are called in counts and in words, and what is done with them."""

VERDICT: Mapping[str, str] = {"": "likelier option", "_written": "first word written"}


def build_report(
    dataset: Dataset,
    outcomes: Outcomes,
    templates: Mapping[str, Templates],
    paraphrases: int,
    attempts: Sequence[str],
) -> Report:
    """Everything that is reported about some answers.

    `templates`: of every relation that was to be asked, by its id; `paraphrases` of each task were
    asked for. `attempts`: settings to try where most answers are empty.
    """
    judged, seed, answers = outcomes.judged(), dataset.selection.seed, written(outcomes)
    silent = abstentions(judged, seed)
    estimates = measure(outcomes, seed) | silent.estimates
    empty = {name for name, each in answers.items() if each.mostly_empty}
    left_out, missing = outcomes.asked.left_out, _missing(templates, paraphrases)
    counts = {
        **outcomes.counts(),
        **{name: len(ids) for name, (ids, _) in missing.items()},
        **left_out.counts(),
        **silent.counts,
    }
    findings = (
        nothing_said(answers.values(), attempts),
        *_findings(estimates, counts, empty),
        *silent.findings,
        *(
            f"{counted(len(ids), 'relation has', 'relations have')} {words}: {listed(ids)}."
            for ids, words in missing.values()
            if ids
        ),
        *left_out.sentences(),
    )
    return Report(
        title=f"Framing on {dataset.name}",
        summary=_summary(estimates, empty),
        metrics=(*numbers.METRICS, *ABSTENTION),
        estimates=estimates,
        counts=counts,
        headlines=(
            *(h for h in _headlines(empty) if estimates[h.estimate].value is not None),
            *silent.headlines,
        ),
        tables=shown(*tables(estimates, outcomes, seed), *silent.tables),
        figures=shown(*figures(estimates, outcomes)),
        findings=shown(*findings),
        notes=tuple(_notes(left_out.shots)),
        judged=judged,
    )


def written(outcomes: Outcomes) -> dict[str, Written]:
    """The answers that conclusions rest on: by task, and by the name in front of a question."""
    from polars import col

    texts = outcomes.prompts.filter(col("way") == "generated")
    question = col("task") == "qa"
    parts = {
        "wp": ("completed sentences", col("task") == "wp"),
        "qa": ("answers to questions", question & (col("told") == "none")),
        "right": ("answers after the right name", question & (col("told") == "right")),
        "wrong": ("answers after a wrong name", question & (col("told") == "wrong")),
        "fc": ("written verdicts", col("task") == "fc"),
    }
    said = {name: texts.filter(kept)["said"] for name, (_, kept) in parts.items()}
    return {
        name: Written(what=what, empty=int((said[name] == "").sum()), total=len(said[name]))
        for name, (what, _) in parts.items()
    }


def _summary(estimates: Estimates, empty: Set[str]) -> str:
    parts = [
        f"{_share(estimates, metric)} of {words}"
        for task, metric, words in (
            ("wp", numbers.ACCURACY.of(task="wp"), "sentences are completed rightly"),
            ("qa", numbers.ACCURACY.of(task="qa"), "questions are answered with just a right name"),
            (
                "",
                numbers.BALANCED.of(read=""),
                "statements are judged rightly (balanced: 50 % is guessing)",
            ),
        )
        if was_measured(estimates, metric) and task not in empty
    ]
    if not parts:
        return "No fact could be asked about."
    return f"About the same facts, {'; '.join(parts)}."


def _headlines(empty: Set[str]) -> Iterator[Headline]:
    """Those that rest on answers which are mostly empty are not held against a control."""
    for rests, line in _every_headline():
        yield unconcluded(line) if empty & {*rests} else line


def _every_headline() -> Iterator[tuple[Sequence[str], Headline]]:
    for task, words in (("wp", "Sentences completed"), ("qa", "Questions answered")):
        yield (
            [task],
            headline(
                numbers.ACCURACY.of(task=task).named(words),
                RELATIONS,
                control=numbers.MAJORITY.of(task=task),
                above=numbers.ABOVE.of(task=task),
            ),
        )
    for _, read, words in READINGS:
        yield (
            ["fc"] if read else [],
            headline(
                numbers.BALANCED.of(read=read),
                RELATIONS,
                label=f"Statements judged by {words}, balanced",
                control=numbers.SAME_VERDICT.of(read=read),
                above=numbers.ABOVE_HALF.of(read=read),
                control_label="always True, or always False",
            ),
        )
    for name, words in (("right", "the right name"), ("wrong", "a wrong name")):
        yield (
            ["qa", name],
            headline(
                numbers.TOLD.of(name=name),
                RELATIONS,
                label=f"Base question after {words}",
                control=numbers.TOLD.of(name="none"),
                above=numbers.MOVED.of(name=name),
                control_label="nothing in front",
            ),
        )


def _notes(shots: int) -> Iterator[str]:
    yield (
        f"Answers are written greedily, at most {MOST} tokens to the end of the line. By lemmas an "
        "answer is right if it holds a right name, by equal names if it is one, without closing "
        "punctuation. Every name of every object that is right for the subject counts."
    )
    yield (
        "A statement is judged by the likelier of True and False, a tie being wrong, and by the "
        f"first word written, of at most {FEW} tokens; any other word is wrong."
    )
    if shots:
        yield (
            f"Before each prompt stand up to {shots} facts of its relation, worded as the "
            "task's first template, without names in front; before statements true and false "
            "ones in turn. A fact about the subject itself is replaced by a spare."
        )
    yield (
        "The majority control answers with the commonest object of the split that is asked about. "
        "Whoever says True to everything, or False, is right on half of the balanced statements."
    )
    yield (
        "Intervals are 95 %: a bootstrap over subjects within relations. Within one relation: "
        "Wilson's for a share and Newcombe's for a paired difference, where each fact is simply "
        "right or wrong. Best and worst are those found, whatever the chance of another being so."
    )


def _findings(estimates: Estimates, counts: Mapping[str, int], empty: Set[str]) -> Iterator[str]:
    """A sentence for each thing that was measured; some are empty.

    `empty`: tasks, and names in front, whose answers are mostly so: they have no say.
    """
    for task, words in (("wp", "sentences"), ("qa", "questions")):
        above = mean(estimates, numbers.ABOVE.of(task=task))
        yield "" if task in empty else against_control(f"Accuracy on {words}", above)
    yield "" if empty & {"wp", "qa"} else _question_and_sentence(estimates)
    yield _paraphrases(estimates, empty)
    yield from _verdicts(estimates, written="fc" not in empty)
    yield from _told(estimates, empty)
    yield from _unusable(counts)


def _share(estimates: Estimates, metric: Metric) -> str:
    """A share averaged over relations, in words."""
    value = mean(estimates, metric).value
    return "not measured" if value is None else f"{value:.1%}"


def _question_and_sentence(estimates: Estimates) -> str:
    apart = mean(estimates, numbers.QUESTION_MINUS_SENTENCE)
    if apart.value is None:
        return ""
    if not told_apart(apart):
        return (
            "Judged by the same rule, questions and sentences cannot be told apart: "
            f"{in_points(apart)}."
        )
    return (
        f"The same facts do {sided(apart, 'better', 'worse', '')} as questions than as sentences, "
        f"both judged by lemmas: {in_points(apart)}."
    )


def _paraphrases(estimates: Estimates, empty: Set[str]) -> str:
    parts = []
    for line in LINES:
        shown = line.id in {"wp", "qa", "fc_pos", "fc_neg"} - empty
        if shown and was_measured(estimates, numbers.STDEV.of(task=line.id)):
            ends = (
                _share(estimates, end.of(task=line.id)) for end in (numbers.WORST, numbers.BEST)
            )
            parts.append(f"{line.words}s {' to '.join(ends)}")
    if not parts:
        return ""
    return f"From a relation's worst to its best paraphrase, on average: {'; '.join(parts)}."


def _verdicts(estimates: Estimates, *, written: bool) -> Iterator[str]:
    """Both readings of verdicts, or one where the other is the same or was not written."""
    agree = mean(estimates, numbers.AGREE).value
    for _, after, _ in READINGS[: 1 if agree == 1 or not written else None]:
        yield from _checks(estimates, after, VERDICT[after])
    if agree is not None and written:
        yield (
            f"The likelier option and the first word written are the same verdict for {agree:.1%} "
            "of statements, true and false ones counting the same."
        )


def _checks(estimates: Estimates, after: str, words: str) -> Iterator[str]:
    above = mean(estimates, numbers.ABOVE_HALF.of(read=after))
    if above.value is None:
        return
    true, false = (
        _share(estimates, numbers.ACCURACY.of(task=f"{task}{after}"))
        for task in ("fc_pos", "fc_neg")
    )
    side = sided(above, "above", "below", "not distinguishable from")
    yield (
        f"By the {words}, {true} of true statements are called True and {false} of false ones "
        f"False; together that is {side} the 50 % of always saying the same: {in_points(above)}."
    )
    for metric, verdict in ((numbers.SAID_TRUE, "True"), (numbers.SAID_FALSE, "False")):
        said = mean(estimates, metric.of(read=after))
        if _most(said):
            yield (
                f"By the {words} the model leans to {verdict}: it says so of "
                f"{said.value or 0:.1%} of statements, where half are {verdict.lower()}."
            )
    by_relation = [
        [_most(e) for name, e in estimates.items() if name.startswith(metric.at("relation."))]
        for metric in (numbers.SAID_TRUE.of(read=after), numbers.SAID_FALSE.of(read=after))
    ]
    yes, no = map(sum, by_relation)
    if yes and no:
        yield (
            f"By the {words} the model leans to True in {yes} and to False in {no} of "
            f"{len(by_relation[0])} relations."
        )


def _most(share: Estimate) -> bool:
    """Whether a share is clearly more than half."""
    return share.low is not None and share.low > 0.5


def _told(estimates: Estimates, empty: Set[str]) -> Iterator[str]:
    for kind, words in (("right", "The right name"), ("wrong", "A wrong name")):
        moved = mean(estimates, numbers.MOVED.of(name=kind))
        if moved.value is not None and not empty & {"qa", kind}:
            verb = sided(moved, "raises", "lowers", "does not clearly change")
            yield f"{words} in front of the question {verb} its accuracy: {in_points(moved)}."
    copied = numbers.COPIED.of(name="wrong")
    if was_measured(estimates, copied) and "wrong" not in empty:
        yield f"After a wrong name, {_share(estimates, copied)} of the answers are that name."


def _unusable(counts: Mapping[str, int]) -> Iterator[str]:
    if counts["empty_answers"]:
        yield f"{counted(counts['empty_answers'], 'answer is', 'answers are')} empty, and wrong."
    if counts["verdicts_tied"]:
        verdicts = counted(counts["verdicts_tied"], "verdict is", "verdicts are")
        yield f"{verdicts} tied between True and False, and wrong."
    if counts["verdicts_neither"]:
        verdicts = counted(counts["verdicts_neither"], "verdict begins", "verdicts begin")
        yield f"{verdicts}, as written, with neither True nor False: wrong."


def _missing(
    templates: Mapping[str, Templates], paraphrases: int
) -> dict[str, tuple[list[str], str]]:
    """Relations with no templates for a task, or few, by the name of their count; and in words."""
    without, fewer = {}, {}
    for task, (kind, words, done) in KINDS.items():
        sizes = {id: len(of_relation[task]) for id, of_relation in templates.items()}
        none = [id for id, size in sizes.items() if not size]
        few = [id for id, size in sizes.items() if 0 < size < paraphrases]
        without[f"relations_without_{kind}"] = none, f"no {words}, so nothing was {done} there"
        fewer[f"relations_fewer_{kind}"] = few, f"fewer {words} than the {paraphrases} asked for"
    return {**without, **fewer}
