"""Attributions as a report: strips of coloured tokens, and the share that each part has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from sonde.attribution.asking import Kind, Parted, PartName
from sonde.core.attributions import Attribution
from sonde.core.reports import Cell, Column, Estimate, Headline, HeatRow, HeatStrip, Report, Table

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


def report(rows: Sequence[Attributed], title: str) -> Report:
    """Everything to be shown about some prompts and models."""
    kinds = list(dict.fromkeys(row.prompt.kind for row in rows))
    # examples are shown as one, and the sum of so many would leave the others without colour
    weights = (w for row in rows for w in row.found.weights[folded_tokens(row) :])
    limit = max(map(abs, weights), default=0.0) or 1.0
    figures = tuple(
        figure(kind, [r for r in rows if r.prompt.kind == kind], limit) for kind in kinds
    )
    known = [row for row in rows if row.prompt.parts]
    estimates = as_estimates(known)
    tables = (*([shares_table(known)] if known else []), scores_table(rows))
    return Report(
        title=title,
        summary=summary(rows),
        estimates=estimates,
        headlines=tuple(headlines(estimates)),
        counts={"prompts": len({row.prompt.text for row in rows}),
                "models": len({row.model for row in rows}),
                "gradients": sum(row.found.steps for row in rows)},
        tables=tables,
        figures=figures,
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


def shares(row: Attributed) -> dict[PartName, float] | None:
    """The share of every part in the sum of absolute weights; None where all are zero."""
    sums: dict[PartName, float] = dict.fromkeys(PARTS, 0.0)
    for token, weight in zip(row.found.tokens, row.found.weights, strict=True):
        sums[row.prompt.part_of(token.start, token.stop)] += abs(weight)
    total = sum(sums.values())
    return {name: value / total for name, value in sums.items()} if total else None


def shares_table(rows: Sequence[Attributed]) -> Table:
    """What part of each prompt the answer comes from, and the mean of each kind of prompt."""
    names = [name for name in PARTS if any(p.name == name for r in rows for p in r.prompt.parts)]
    names = [name for name in PARTS if name in names or name == "rest"]
    several = len({row.model for row in rows}) > 1
    columns = [*([Column(title="model")] if several else []), Column(title="prompt"),
               *(Column(title=PARTS[name], kind="percent") for name in names)]  # fmt: skip
    lines: list[tuple[Cell, ...]] = []
    for model in dict.fromkeys(row.model for row in rows):
        for kind in dict.fromkeys(row.prompt.kind for row in rows):
            some = [r for r in rows if (r.model, r.prompt.kind) == (model, kind)]
            head: tuple[Cell, ...] = (model,) if several else ()
            found = [(r.prompt.label, r.prompt, shares(r)) for r in some]
            lines += [(*head, label, *cells(own, p, names)) for label, p, own in found]
            if len(some) > 1:
                lines.append((*head, f"mean of {kind}", *means(found, names)))
    return Table(
        id="shares", title="Where the answer comes from", columns=tuple(columns), rows=tuple(lines),
        note="Share of a prompt's absolute weights on each part of it; tokens count whole, with "
        "the part they share most characters with.",
    )  # fmt: skip


def cells(
    own: Mapping[PartName, float] | None, prompt: Parted, names: Sequence[PartName]
) -> list[float | None]:
    """A row of shares; a part that the prompt does not have is not measured."""
    there = {part.name for part in prompt.parts} | {"rest"}
    return [None if own is None or name not in there else own[name] for name in names]


def means(
    found: Sequence[tuple[str, Parted, Mapping[PartName, float] | None]],
    names: Sequence[PartName],
) -> list[float | None]:
    """The mean of every part over the prompts that have it."""
    columns = zip(*(cells(own, prompt, names) for _, prompt, own in found), strict=True)
    kept = ([value for value in column if value is not None] for column in columns)
    return [sum(values) / len(values) if values else None for values in kept]


def scores_table(rows: Sequence[Attributed]) -> Table:
    """What was shared out, and how exactly."""
    columns = (
        Column(title="model"), Column(title="prompt"), Column(title="answer"),
        Column(title="log p", kind="number", help="of the answer after the prompt, in nats"),
        Column(title="baseline", kind="number", help="the same after a prompt that says nothing"),
        Column(title="error", kind="number",
               help="at most so many nats do the weights miss of the difference between the two"),
        Column(title="gradients", kind="count"),
        Column(title="it answers", detail=True),
    )  # fmt: skip
    lines = [
        (r.model, r.prompt.label, r.found.answer, r.found.score, r.found.baseline,
         r.found.error, r.found.steps, r.own)
        for r in rows
    ]  # fmt: skip
    return Table(id="scores", title="Scores", columns=columns, rows=tuple(lines),
                 note="Log-probabilities in nats.")  # fmt: skip


def loose(row: Attributed) -> bool:
    """Whether the weights may miss much of what they should sum to."""
    return row.found.error > max(LOOSE * abs(row.found.gap), NOTHING)


def findings(rows: Sequence[Attributed]) -> Iterator[str]:
    """What to know before reading the strips."""
    found = [row for row in rows if loose(row)]
    if found:
        worst = max(row.found.error for row in found)
        yield (
            f"In {len(found)} of {len(rows)} strips the weights may miss more than {LOOSE:.0%} of "
            f"what they should sum to (up to {worst:.3g} nats): read them with care, or raise "
            "--most."
        )


def headlines(estimates: Mapping[str, Estimate]) -> Iterator[Headline]:
    """For each model, how much of the weight lies on a wrong name in front."""
    for name in estimates:
        if name.endswith(".interference.context"):
            model = name.removeprefix("share.").removesuffix(".interference.context")
            yield Headline(label=f"{model}: weight on a wrong name in front", estimate=name)


def as_estimates(rows: Sequence[Attributed]) -> dict[str, Estimate]:
    """The mean shares by name, without intervals: they are of one fact."""
    found: dict[str, Estimate] = {}
    for model in dict.fromkeys(row.model for row in rows):
        for kind in dict.fromkeys(row.prompt.kind for row in rows if row.prompt.parts):
            some = [r for r in rows if (r.model, r.prompt.kind) == (model, kind)]
            triples = [(r.prompt.label, r.prompt, shares(r)) for r in some]
            for name, value in zip(PARTS, means(triples, list(PARTS)), strict=True):
                if value is not None:
                    found[f"share.{model}.{kind}.{name}"] = Estimate(
                        value=value, low=None, high=None, n=len(some)
                    )
    return found
