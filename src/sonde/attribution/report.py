"""Attributions as a report: strips of coloured tokens, and the share that each part has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp
from statistics import fmean

from sonde.attribution.asking import Kind, Parted, PartName
from sonde.core.examinations import Attribution
from sonde.core.reports import Cell, Estimate, HeatRow, HeatStrip, Metric, Report, Table
from sonde.reports.legacy import Field, headline, table

TITLES: Mapping[Kind, str] = {
    "prompt": "The prompt",
    "anchor": "Anchor: the right object in front",
    "framing": "Framing: other wordings, nothing in front",
    "interference": "Interference: wrong objects in front",
}
PARTS: Mapping[PartName, str] = {
    "context": "name in front",
    "subject": "subject",
    "rest": "rest of question",
    "examples": "examples",
}
LOOSE = 0.1
"""Of what is shared out: an error above which a strip is not to be read closely."""
NOTHING = 0.05
"""Nats: an error that matters in no strip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """A prompt, the model it was put to, what the model itself answers, and what came of it."""

    prompt: Parted
    model: str
    own: str
    found: Attribution


SHARE = Metric(
    "share",
    "share of the weights",
    sentence="share of a prompt's absolute weights on a part of it",
    better="",
)
SCORES: tuple[Field[Attributed], ...] = (
    Field("model", lambda row: row.model),
    Field("prompt", lambda row: row.prompt.label),
    Field("answer", lambda row: row.found.answer),
    Field("log p", lambda row: row.found.score, "number",
          "of the answer after the prompt, in nats"),
    Field("baseline", lambda row: row.found.baseline, "number",
          "the same after a prompt that says nothing"),
    Field("error", lambda row: row.found.error, "number",
          "at most so many nats do the weights miss of the difference between the two"),
    Field("gradients", lambda row: row.found.steps, "count"),
    Field("it answers", lambda row: row.own, detail=True),
)  # fmt: skip


def report(rows: Sequence[Attributed], title: str) -> Report:
    """Everything to be shown about some prompts and models."""
    kinds = list(dict.fromkeys(row.prompt.kind for row in rows))
    # examples are shown as one, and the sum of so many would leave the others without colour
    weights = (w for row in rows for w in row.found.weights[folded_tokens(row) :])
    limit = max(map(abs, weights), default=0.0) or 1.0
    with_parts = [row for row in rows if row.prompt.parts]
    estimates = as_estimates(with_parts)
    scores = table(rows, SCORES, id="scores", title="Scores", note="Log-probabilities in nats.")
    return Report(
        title=title,
        summary=summary(rows),
        estimates=estimates,
        metrics=(SHARE,) if estimates else (),
        headlines=tuple(
            headline(SHARE, over, label=f"{model}: weight on a wrong name in front")
            for model in dict.fromkeys(row.model for row in with_parts)
            if SHARE.at(over := f"{model}.interference.context") in estimates
        ),
        counts={"prompts": len({row.prompt.text for row in rows}),
                "models": len({row.model for row in rows}),
                "gradients": sum(row.found.steps for row in rows)},
        tables=(shares_table(with_parts), scores) if with_parts else (scores,),
        figures=tuple(
            figure(kind, [r for r in rows if r.prompt.kind == kind], limit) for kind in kinds
        ),
        findings=tuple(findings(rows)),
        notes=NOTES,
    )  # fmt: skip


NOTES = (
    "Integrated gradients: the prompt's embeddings go in a straight line from a token that says "
    "nothing (padding, or the end of a text) to the prompt's own, and each token is given what the "
    "answer's log-probability changes along the way because of it.",
    "A weight says what the model's arithmetic used, not what it understood.",
)


def summary(rows: Sequence[Attributed]) -> str:
    """What the strips show, in a sentence."""
    answers = dict.fromkeys(row.found.answer for row in rows)
    named = f"“{next(iter(answers))}”" if len(answers) == 1 else "the answer"
    return (
        f"Each token's share, in nats, in the log-probability of {named}, against a prompt that "
        "says nothing. The weights of a strip sum to the difference between the two."
    )


def figure(kind: Kind, rows: Sequence[Attributed], limit: float) -> HeatStrip:
    """The strips of one kind of prompt, models below one another for each prompt."""
    several = len({row.model for row in rows}) > 1
    places = {text: i for i, text in enumerate(dict.fromkeys(row.prompt.text for row in rows))}
    ordered = sorted(rows, key=lambda row: places[row.prompt.text])
    return HeatStrip(
        id=f"strips-{kind}",
        title=TITLES[kind],
        kind="number",
        rows=tuple(strip(row, several) for row in ordered),
        limit=limit,
        unit="nats",
        towards="towards the answer",
        away="away from it",
    )


def strip(row: Attributed, several: bool) -> HeatRow:
    """One strip, labelled by its prompt and, where there are several, its model."""
    found, folded = row.found, folded_tokens(row)
    label = row.prompt.label if row.prompt.kind != "prompt" else row.model
    if several and row.prompt.kind != "prompt":
        label = f"{row.model}: {label}"
    said = f"p(“{found.answer}”) = {exp(found.score):.3g}"
    if row.own != found.answer:
        said += f"; it answers “{row.own}”" if row.own else "; it answers nothing"
    return HeatRow(
        label=label,
        tokens=tuple(token.text for token in found.tokens),
        weights=found.weights,
        note=said,
        folded=folded,
        folded_name=f"{row.prompt.shots} example" + ("" if row.prompt.shots == 1 else "s"),
    )


def folded_tokens(row: Attributed) -> int:
    """How many tokens at the beginning are examples."""
    names = [row.prompt.part_of(token.start, token.stop) for token in row.found.tokens]
    return next((i for i, name in enumerate(names) if name != "examples"), len(names))


def shares(row: Attributed) -> dict[PartName, float]:
    """The share of each part of the prompt in the sum of absolute weights; none if all are zero."""
    there = {"rest", *(part.name for part in row.prompt.parts)}
    sums = {name: 0.0 for name in PARTS if name in there}
    for token, weight in zip(row.found.tokens, row.found.weights, strict=True):
        sums[row.prompt.part_of(token.start, token.stop)] += abs(weight)
    total = sum(sums.values())
    return {name: value / total for name, value in sums.items()} if total else {}


def mean_shares(rows: Sequence[Attributed]) -> dict[PartName, float]:
    """The mean of every part over the prompts that have it."""
    each = [shares(row) for row in rows]
    columns = {name: [parts[name] for parts in each if name in parts] for name in PARTS}
    return {name: fmean(values) for name, values in columns.items() if values}


def by_kind(rows: Sequence[Attributed]) -> Iterator[tuple[str, Kind, list[Attributed]]]:
    """The rows of each model and kind of prompt."""
    for (model, kind), group in groupby(rows, key=lambda row: (row.model, row.prompt.kind)):
        yield model, kind, list(group)


def shares_table(rows: Sequence[Attributed]) -> Table:
    """What part of each prompt the answer comes from, and the mean of each kind of prompt."""
    there = {"rest", *(part.name for row in rows for part in row.prompt.parts)}
    names = [name for name in PARTS if name in there]
    several = ["model"] if len({row.model for row in rows}) > 1 else []
    lines: list[Mapping[str, Cell]] = []
    for model, kind, group in by_kind(rows):
        parts = [(row.prompt.label, shares(row)) for row in group]
        if len(group) > 1:
            parts.append((f"mean of {kind}", mean_shares(group)))
        for label, of_part in parts:
            values = {PARTS[name]: of_part.get(name) for name in names}
            lines.append({"model": model, "prompt": label, **values})
    columns = [Field[Mapping[str, Cell]](PARTS[name], kind="percent") for name in names]
    return table(
        lines,
        [*several, "prompt", *columns],
        id="shares",
        title="Where the answer comes from",
        note="Share of a prompt's absolute weights on each part of it; tokens count whole, with "
        "the part they share most characters with.",
    )


def loose(row: Attributed) -> bool:
    """Whether the weights may miss much of what they should sum to."""
    return row.found.error > max(LOOSE * abs(row.found.gap), NOTHING)


def findings(rows: Sequence[Attributed]) -> Iterator[str]:
    """What to know before reading the strips."""
    inexact = [row for row in rows if loose(row)]
    if inexact:
        worst = max(row.found.error for row in inexact)
        yield (
            f"In {len(inexact)} of {len(rows)} strips the weights may miss more than {LOOSE:.0%} "
            f"of what they should sum to (up to {worst:.3g} nats): read them with care, or raise "
            "--most."
        )


def as_estimates(rows: Sequence[Attributed]) -> dict[str, Estimate]:
    """The mean shares by name, without intervals: they are of one fact."""
    return {
        SHARE.at(f"{model}.{kind}.{name}"): Estimate(value=mean, low=None, high=None, n=len(group))
        for model, kind, group in by_kind(rows)
        for name, mean in mean_shares(group).items()
    }
