"""The tables of `lke-sequence`. Knows outcomes and estimates, nothing of prompts or models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan

from sonde.core.facts import Dataset
from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.probes.lke.studies.sequence_outcomes import FALSE, PARTS, Place, Shape, group_words
from sonde.prompting.sequences import Line

WINDOW = 3


def relation_table(
    dataset: Dataset, found: Sequence[Place], estimates: Mapping[str, Estimate], changed: bool
) -> Iterator[Table]:
    """Each relation, where there are several."""
    lengths = {place.told.relation: len(place.told.clean) for place in found}
    if len(lengths) < 2:
        return
    names = ("probability.clean", *(("effect.after_1", "effect.neighbours") if changed else ()))
    titles = ("probability", "effect 1 after", "effect on all that follow")
    columns = (
        Column(title="relation"),
        Column(title="label"),
        Column(title="facts", kind="count", help="in a sequence"),
        *(Column(title=title, kind="percent") for _, title in zip(names, titles, strict=False)),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            id,
            dataset.relation(id).label,
            length,
            *(estimates[f"{name}.relation.{id}"] for name in names),
        )
        for id, length in lengths.items()
    )
    yield Table(id="by-relation", title="By relation", columns=columns, rows=rows)


def group_table(estimates: Mapping[str, Estimate], kinds: Sequence[str], shape: Shape) -> Table:
    """What replaced facts do to each kind of place."""
    columns = (
        Column(title="place", help="what a place is to the replaced facts"),
        Column(title="as it is", kind="percent", help="mean probability in the clean sequence"),
        Column(title="changed", kind="percent", help="mean probability in the changed sequence"),
        Column(title="effect", kind="percent", help="changed minus clean, paired by place"),
        Column(
            title="log effect",
            kind="number",
            help="the same of log-probabilities, in nats: it also counts facts that are unlikely",
            detail=True,
        ),
    )
    names = {kind: group_words(kind) for kind in kinds} | {"neighbours": "all that follow"}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            words,
            *(estimates[f"{what}.{kind}"] for what in ("probability.clean", "probability.changed")),
            *(estimates.get(f"{what}.{kind}") for what in ("effect", "log_effect")),
        )
        for kind, words in names.items()
    )
    return Table(
        id="by-group",
        title=f"What {FALSE[shape.replace]} do to their neighbours",
        columns=columns,
        rows=rows,
        note="'Replaced' compares another fact at the same place. 'Before all' the model has read "
        "the same text, so that nothing moves.",
    )


def part_table(estimates: Mapping[str, Estimate], changed: bool) -> Table:
    """Probability along the sequence, a tenth at a time."""
    shown = ("clean", "changed") if changed else ("clean",)
    columns = (
        Column(title="tenth of the sequence"),
        *(Column(title=how, kind="percent", help=f"mean probability, {how}") for how in shown),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(k), *(estimates[f"probability.{how}.part.{k}"] for how in shown))
        for k in range(1, PARTS + 1)
    )
    return Table(
        id="along",
        title="Along the sequence",
        columns=columns,
        rows=rows,
        note="In the changed sequence the facts that were not replaced." if changed else "",
    )


def example_of(found: Sequence[Place]) -> Place:
    """The fact to trace: of the first sequence's, right after a replaced one, the best known."""
    first = [p for p in found if p.told is found[0].told and not isnan(p.clean)]
    right_after = [p for p in first if p.group == "after_1"]
    later = first[len(first) // 2 :]
    return max(right_after or later or [found[0]], key=lambda place: (place.clean, -place.place))


def example_table(found: Sequence[Place], changed: bool) -> Table:
    """One sequence around one place, as an example."""
    star = example_of(found)
    around = [p for p in found if p.told is star.told and -WINDOW <= p.place - star.place <= WINDOW]
    columns = [
        Column(title="place", kind="count"),
        Column(title="fact"),
        Column(title="probability", kind="percent", help="of the object in the clean sequence"),
    ]
    if changed:
        columns += [
            Column(title="changed to"),
            Column(title="probability then", kind="percent", help="in the changed sequence"),
        ]
    return Table(
        id="example",
        title=f"One fact traced: {_text(star.line)}",
        columns=tuple(columns),
        rows=tuple(_example_row(place, changed) for place in around),
        note="The best-known fact right after a replaced one in the first sequence."
        if changed
        else "The best-known fact in the second half of the first sequence.",
    )


def _example_row(place: Place, changed: bool) -> tuple[Cell, ...]:
    own: tuple[Cell, ...] = (place.place, _text(place.line), _known(place.clean))
    if not changed:
        return own
    line = place.changed_line
    words = "" if line is None or line == place.line else _text(line)
    return (*own, words, _known(place.changed))


def _text(line: Line) -> str:
    return f"{line.subject} → {line.object}"


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def place_table(dataset: Dataset, found: Sequence[Place], changed: bool) -> Table:
    """Every place of every sequence."""
    labels = {r.id: r.label for r in dataset.asked_relations()}
    columns = [
        Column(title="relation"),
        Column(title="sequence", kind="count"),
        Column(title="place", kind="count"),
        Column(title="fact"),
        Column(title="probability", kind="percent", help="of the object in the clean sequence"),
    ]
    if changed:
        columns += [
            Column(title="changed to"),
            Column(title="probability then", kind="percent", help="in the changed sequence"),
            Column(title="what it is", help="to the replaced facts"),
        ]
    rows = []
    for p in found:
        head: tuple[Cell, ...] = (f"{p.told.relation} {labels[p.told.relation]}", p.told.number + 1)
        tail = (group_words(p.group),) if changed else ()
        rows.append((*head, *_example_row(p, changed), *tail))
    return Table(
        id="places", title="Every place", columns=tuple(columns), rows=tuple(rows), browsable=True
    )
