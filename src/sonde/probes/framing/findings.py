"""What the numbers of `framing` mean, in sentences. Knows estimates and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.core.reports import Estimate, Estimates, Metric
from sonde.core.words import against_control, in_points, listed, sided, told_apart
from sonde.probes.framing import metrics
from sonde.probes.framing.ask import Census, Settings, Task
from sonde.probes.framing.numbers import LINES, READINGS

TEMPLATES: Mapping[Task, str] = {
    "wp": "statements that end with their object",
    "qa": "questions",
    "fc": "statements",
}
ASKED: Mapping[Task, str] = {
    "wp": "completed as sentences",
    "qa": "asked as questions",
    "fc": "checked as statements",
}

VERDICT: Mapping[str, str] = {"": "likelier option", "_written": "first word written"}


def findings(
    estimates: Estimates, census: Census, counts: Mapping[str, int], settings: Settings
) -> Iterator[str]:
    """A sentence for each thing that was measured, or that had to be left out; some are empty."""
    yield against_control(
        "Accuracy on sentences", metrics.mean(estimates, metrics.ABOVE.of(task="wp"))
    )
    yield against_control(
        "Accuracy on questions", metrics.mean(estimates, metrics.ABOVE.of(task="qa"))
    )
    yield _question_and_sentence(estimates)
    yield _paraphrases(estimates)
    yield from _verdicts(estimates)
    yield from _told(estimates)
    yield from _unusable(counts)
    yield from _relations(census, settings)
    yield from _facts(census, settings)


def share(estimates: Estimates, metric: Metric) -> str:
    """A share averaged over relations, in words."""
    value = metrics.mean(estimates, metric).value
    return "not measured" if value is None else f"{value:.1%}"


def _question_and_sentence(estimates: Estimates) -> str:
    apart = metrics.mean(estimates, metrics.QUESTION_MINUS_SENTENCE)
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


def _paraphrases(estimates: Estimates) -> str:
    parts = []
    for line in LINES:
        shown = line.id in ("wp", "qa", "fc_pos", "fc_neg")
        if shown and metrics.was_measured(estimates, metrics.STDEV.of(task=line.id)):
            ends = (share(estimates, end.of(task=line.id)) for end in (metrics.WORST, metrics.BEST))
            parts.append(f"{line.words}s {' to '.join(ends)}")
    if not parts:
        return ""
    return f"From a relation's worst to its best paraphrase, on average: {'; '.join(parts)}."


def _verdicts(estimates: Estimates) -> Iterator[str]:
    """Both readings of verdicts, or one where the other is the same."""
    agree = metrics.mean(estimates, metrics.AGREE).value
    for _, after, _ in READINGS[: 1 if agree == 1 else None]:
        yield from _checks(estimates, after, VERDICT[after])
    if agree is not None:
        yield (
            f"The likelier option and the first word written are the same verdict for {agree:.1%} "
            "of statements, true and false ones counting the same."
        )


def _checks(estimates: Estimates, after: str, words: str) -> Iterator[str]:
    above = metrics.mean(estimates, metrics.ABOVE_HALF.of(read=after))
    if above.value is None:
        return
    true, false = (
        share(estimates, metrics.ACCURACY.of(task=f"{task}{after}"))
        for task in ("fc_pos", "fc_neg")
    )
    yield (
        f"By the {words}, {true} of true statements are called True and {false} of false ones "
        f"False; together that is {sided(above, 'above', 'below', 'not told from')} the 50 % of "
        f"always saying the same: {in_points(above)}."
    )
    for metric, verdict in ((metrics.SAID_TRUE, "True"), (metrics.SAID_FALSE, "False")):
        said = metrics.mean(estimates, metric.of(read=after))
        if _most(said):
            yield (
                f"By the {words} the model leans to {verdict}: it says so of "
                f"{said.value or 0:.1%} of statements, where half are {verdict.lower()}."
            )
    by_relation = [
        [_most(e) for name, e in estimates.items() if name.startswith(metric.at("relation."))]
        for metric in (metrics.SAID_TRUE.of(read=after), metrics.SAID_FALSE.of(read=after))
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


def _told(estimates: Estimates) -> Iterator[str]:
    for kind, words in (("right", "The right name"), ("wrong", "A wrong name")):
        moved = metrics.mean(estimates, metrics.MOVED.of(name=kind))
        if moved.value is not None:
            verb = sided(moved, "raises", "lowers", "does not clearly change")
            yield f"{words} in front of the question {verb} its accuracy: {in_points(moved)}."
    copied = metrics.COPIED.of(name="wrong")
    if metrics.was_measured(estimates, copied):
        yield f"After a wrong name, {share(estimates, copied)} of the answers are that name."


def _unusable(counts: Mapping[str, int]) -> Iterator[str]:
    if counts["empty_answers"]:
        yield f"{_some(counts['empty_answers'], 'answer is', 'answers are')} empty, and wrong."
    if counts["verdicts_tied"]:
        verdicts = _some(counts["verdicts_tied"], "verdict is", "verdicts are")
        yield f"{verdicts} tied between True and False, and wrong."
    if counts["verdicts_neither"]:
        verdicts = _some(counts["verdicts_neither"], "verdict begins", "verdicts begin")
        yield f"{verdicts}, as written, with neither True nor False: wrong."


def _relations(census: Census, settings: Settings) -> Iterator[str]:
    for task, relations in census.without.items():
        if relations:
            have = _some(len(relations), "relation has", "relations have")
            yield (
                f"{have} no {TEMPLATES[task]}, so nothing was {ASKED[task]} there: "
                f"{listed(relations)}."
            )
    for task, relations in census.fewer.items():
        if relations:
            have = _some(len(relations), "relation has", "relations have")
            yield (
                f"{have} fewer {TEMPLATES[task]} than the {settings.paraphrases} asked for: "
                f"{listed(relations)}."
            )


def _facts(census: Census, settings: Settings) -> Iterator[str]:
    if census.held:
        facts = _some(census.held, "fact is", "facts are")
        yield f"{facts} shown as examples and not asked about."
    if census.few_shots:
        facts = _some(census.few_shots, "fact has", "facts have")
        yield f"{facts} fewer than {settings.shots} examples before the prompt."
    if census.without_wrong:
        facts = _some(census.without_wrong, "fact has", "facts have")
        yield f"{facts} no wrong object left: no false statement, and no wrong name in front."
    if census.few_wrong:
        facts = _some(census.few_wrong, "fact has", "facts have")
        yield f"{facts} fewer wrong objects than the {settings.negatives} asked for."
    if census.correct_after_all:
        objects = _some(census.correct_after_all, "object", "objects")
        yield f"{objects} that the dataset calls wrong, but that are right, were dropped."


def _some(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
