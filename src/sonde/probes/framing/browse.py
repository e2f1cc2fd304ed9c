"""Tables of `framing` to browse: every template, a prompt of each task, facts with their answers.

Knows judgements and answers, nothing of estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.reports import Cell, Column, Table
from sonde.probes.framing.ask import TASKS, Task
from sonde.probes.framing.figures import label
from sonde.probes.framing.numbers import LINES, by_template, over
from sonde.probes.framing.tally import RIGHT, Codes, Measured, Outcomes, Said

TASK_NAMES: Mapping[Task, str] = {"wp": "sentence", "qa": "question", "fc": "statement"}
ANSWERS = 3
LONG = 60
"""So many different answers of a fact are shown, and so many characters of each."""

ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""


def browsed_tables(outcomes: Outcomes) -> tuple[Table, ...]:
    """Everything that is searched, not printed."""
    return _template_table(outcomes), _prompt_table(outcomes), _fact_table(outcomes)


def _template_table(outcomes: Outcomes) -> Table:
    return Table(
        id="paraphrases",
        title="Every paraphrase",
        columns=(
            Column(title="relation"),
            Column(title="task"),
            Column(title="judged by"),
            Column(title="template"),
            Column(title="accuracy", kind="percent"),
            Column(title="facts", kind="count"),
        ),
        rows=tuple(row for one in outcomes.relations for row in _template_rows(one)),
        browsable=True,
    )


def _template_rows(one: Measured) -> Iterator[tuple[Cell, ...]]:
    for line in LINES:
        table = line.table(one.cells)
        found, facts = by_template(table), (~np.isnan(table)).sum(axis=0)
        for number, template in enumerate(one.templates[line.task]):
            named = (label(one), line.words, line.judged, template.text)
            yield (*named, _known(found[number]), int(facts[number]))


def _prompt_table(outcomes: Outcomes) -> Table:
    shown = (
        (one, task, outcomes.prompts[one.relation.id, task])
        for one in outcomes.relations
        for task in TASKS
        if (one.relation.id, task) in outcomes.prompts
    )
    return Table(
        id="prompts",
        title="A prompt of each task",
        columns=(
            Column(title="relation"),
            Column(title="task"),
            Column(
                title="prompt",
                help="its beginning and its end; ⏎ ends a line, the answer belongs at ___",
            ),
        ),
        rows=tuple(
            (label(one), TASK_NAMES[task], f"{_shortened(text)}___") for one, task, text in shown
        ),
        browsable=True,
    )


def _shortened(text: str) -> str:
    line = text.replace("\n", " ⏎ ")
    return line if len(line) <= 2 * ENDS else f"{line[:ENDS].rstrip()} … {line[-ENDS:].lstrip()}"


def _fact_table(outcomes: Outcomes) -> Table:
    total = sum(len(one.items) for one in outcomes.relations)
    rows = tuple(row for one in outcomes.relations for row in _fact_rows(one))
    some = f"{len(rows):,} of the {total:,} facts, drawn by the seed; every number counts all. "
    return Table(
        id="facts",
        title="Facts",
        columns=(
            Column(title="relation"),
            Column(title="subject"),
            Column(title="right", help="the fact's own object"),
            Column(title="sentences", help="how they were completed"),
            Column(title="right by lemmas", kind="percent", help="share of its sentences"),
            Column(title="questions", help="how they were answered"),
            Column(title="right by name", kind="percent", help="share of its questions"),
            Column(title="after the right name", help="the answer to the base question"),
            Column(title="after wrong names", help="the answers; copied: the name in front"),
            Column(title="true", kind="percent", help="true statements called True, by option"),
            Column(title="false", kind="percent", help="false statements called False, by option"),
        ),
        rows=rows,
        note=f"{some if len(rows) < total else ''}The {ANSWERS} commonest answers are shown, with "
        "how often each was given.",
        browsable=True,
    )


def _fact_rows(one: Measured) -> Iterator[tuple[Cell, ...]]:
    means = {line.id: over(line.table(one.cells), 1) for line in LINES}
    for row in sorted(one.said):
        item, said = one.items[row], one.said[row]
        told = said.get(("told", 0))
        yield (
            label(one),
            item.fact.subject.name,
            item.gold,
            _commonest(said, "wp"),
            _known(means["wp"][row]),
            _commonest(said, "qa"),
            _known(means["qa"][row]),
            "" if told is None else _short(told),
            _after_names(said, one.cells.copied[row]),
            _known(means["fc_pos"][row]),
            _known(means["fc_neg"][row]),
        )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _commonest(said: Said, task: Task) -> str:
    """The answers to paraphrases, the commonest first; equally common ones by name."""
    return _listed(Counter(_short(text) for (own, _), text in said.items() if own == task))


def _after_names(said: Said, copied: Codes) -> str:
    told = ((number, text) for (own, number), text in said.items() if own == "told" and number)
    return _listed(
        Counter(
            f"{_short(text)}{' (copied)' if copied[number] == RIGHT else ''}"
            for number, text in told
        )
    )


def _listed(counts: Counter[str]) -> str:
    order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    parts = [f"{text}{f' ×{n}' if n > 1 else ''}" for text, n in order[:ANSWERS]]
    more = [f"{len(order) - ANSWERS} more"] if len(order) > ANSWERS else []
    return "; ".join([*parts, *more])


def _short(text: str) -> str:
    if not text:
        return "(nothing)"
    return text if len(text) <= LONG else f"{text[:LONG].rstrip()}…"
