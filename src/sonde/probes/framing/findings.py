"""What the numbers of `framing` mean, in sentences. Knows estimates and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.core.reports import Estimate
from sonde.core.words import against_control, in_points, listed, sided, told_apart
from sonde.probes.framing.ask import Census, Shape, Task
from sonde.probes.framing.numbers import LINES, OVER, READINGS

Estimates = Mapping[str, Estimate]

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
    estimates: Estimates, census: Census, counts: Mapping[str, int], shape: Shape
) -> Iterator[str]:
    """One sentence for each thing that was measured, and for each that had to be left out."""
    found = _sentences(estimates, census, counts, shape)
    return (sentence for sentence in found if sentence)


def _sentences(
    estimates: Estimates, census: Census, counts: Mapping[str, int], shape: Shape
) -> Iterator[str]:
    yield against_control("Accuracy on sentences", estimates[f"above_control.wp.{OVER}"])
    yield against_control("Accuracy on questions", estimates[f"above_control.qa.{OVER}"])
    yield _question_and_sentence(estimates)
    yield _paraphrases(estimates)
    yield from _verdicts(estimates)
    yield from _told(estimates)
    yield from _unusable(counts)
    yield from _relations(census, shape)
    yield from _facts(census, shape)


def share(estimates: Estimates, name: str) -> str:
    """A share averaged over relations, in words."""
    value = estimates[f"{name}.{OVER}"].value
    return "not measured" if value is None else f"{value:.1%}"


def _question_and_sentence(estimates: Estimates) -> str:
    found = estimates[f"question_minus_sentence.{OVER}"]
    if found.value is None:
        return ""
    if not told_apart(found):
        return (
            "Judged by the same rule, questions and sentences cannot be told apart: "
            f"{in_points(found)}."
        )
    return (
        f"The same facts do {sided(found, 'better', 'worse', '')} as questions than as sentences, "
        f"both judged by lemmas: {in_points(found)}."
    )


def _paraphrases(estimates: Estimates) -> str:
    parts = []
    for line in LINES:
        shown = line.id in ("wp", "qa", "fc_pos", "fc_neg")
        if shown and estimates[f"stdev.{line.id}.{OVER}"].value is not None:
            ends = (share(estimates, f"{end}.{line.id}") for end in ("worst", "best"))
            parts.append(f"{line.words}s {' to '.join(ends)}")
    if not parts:
        return ""
    return f"From a relation's worst to its best paraphrase, on average: {'; '.join(parts)}."


def _verdicts(estimates: Estimates) -> Iterator[str]:
    """Both readings of verdicts, or one where the other is the same."""
    agree = estimates[f"readings_agree.fc.{OVER}"].value
    for _, after, _ in READINGS[: 1 if agree == 1 else None]:
        yield from _checks(estimates, after, VERDICT[after])
    if agree is not None:
        yield (
            f"The likelier option and the first word written are the same verdict for {agree:.1%} "
            "of statements, true and false ones counting the same."
        )


def _checks(estimates: Estimates, after: str, words: str) -> Iterator[str]:
    above = estimates[f"above_half.fc{after}.{OVER}"]
    if above.value is None:
        return
    yield (
        f"By the {words}, {share(estimates, f'accuracy.fc_pos{after}')} of true statements are "
        f"called True and {share(estimates, f'accuracy.fc_neg{after}')} of false ones False; "
        f"together that is {sided(above, 'above', 'below', 'not told from')} the 50 % of always "
        f"saying the same: {in_points(above)}."
    )
    for name, verdict in (("said_true", "True"), ("said_false", "False")):
        said = estimates[f"{name}.fc{after}.{OVER}"]
        if _most(said):
            yield (
                f"By the {words} the model leans to {verdict}: it says so of "
                f"{said.value or 0:.1%} of statements, where half are {verdict.lower()}."
            )
    relations = [n for n in estimates if n.startswith(f"said_true.fc{after}.relation.")]
    true = sum(_most(estimates[name]) for name in relations)
    false = sum(_most(estimates[name.replace("said_true", "said_false")]) for name in relations)
    if true and false:
        yield (
            f"By the {words} the model leans to True in {true} and to False in {false} of "
            f"{len(relations)} relations."
        )


def _most(share: Estimate) -> bool:
    """Whether a share is clearly more than half."""
    return share.low is not None and share.low > 0.5


def _told(estimates: Estimates) -> Iterator[str]:
    for kind, words in (("right", "The right name"), ("wrong", "A wrong name")):
        moved = estimates[f"told_minus_none.{kind}.{OVER}"]
        if moved.value is not None:
            verb = sided(moved, "raises", "lowers", "does not clearly change")
            yield f"{words} in front of the question {verb} its accuracy: {in_points(moved)}."
    if estimates[f"copied.wrong.{OVER}"].value is not None:
        copied = share(estimates, "copied.wrong")
        yield f"After a wrong name, {copied} of the answers are that name."


def _unusable(counts: Mapping[str, int]) -> Iterator[str]:
    if counts["empty_answers"]:
        yield f"{_some(counts['empty_answers'], 'answer is', 'answers are')} empty, and wrong."
    if counts["verdicts_tied"]:
        verdicts = _some(counts["verdicts_tied"], "verdict is", "verdicts are")
        yield f"{verdicts} tied between True and False, and wrong."
    if counts["verdicts_neither"]:
        verdicts = _some(counts["verdicts_neither"], "verdict begins", "verdicts begin")
        yield f"{verdicts}, as written, with neither True nor False: wrong."


def _relations(census: Census, shape: Shape) -> Iterator[str]:
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
                f"{have} fewer {TEMPLATES[task]} than the {shape.paraphrases} asked for: "
                f"{listed(relations)}."
            )


def _facts(census: Census, shape: Shape) -> Iterator[str]:
    if census.held:
        facts = _some(census.held, "fact is", "facts are")
        yield f"{facts} shown as examples and not asked about."
    if census.few_shots:
        facts = _some(census.few_shots, "fact has", "facts have")
        yield f"{facts} fewer than {shape.shots} examples before the prompt."
    if census.without_wrong:
        facts = _some(census.without_wrong, "fact has", "facts have")
        yield f"{facts} no wrong object left: no false statement, and no wrong name in front."
    if census.few_wrong:
        facts = _some(census.few_wrong, "fact has", "facts have")
        yield f"{facts} fewer wrong objects than the {shape.negatives} asked for."
    if census.correct_after_all:
        objects = _some(census.correct_after_all, "object", "objects")
        yield f"{objects} that the dataset calls wrong, but that are right, were dropped."


def _some(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
