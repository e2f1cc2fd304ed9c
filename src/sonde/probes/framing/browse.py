"""Tables of `framing` to browse: every template, a prompt of each task, facts with their answers.

Knows judgements and answers, nothing of estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from sonde.core.reports import Table
from sonde.probes.framing.ask import TASKS, Task
from sonde.probes.framing.numbers import LINES, Line, by_template, over
from sonde.probes.framing.tally import RIGHT, Codes, Measured, Outcomes, Said
from sonde.reporting.build.tables import Field, browse, measured, titled

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
    rows = [
        (one, line, template.text, accuracy, facts)
        for one in outcomes.relations
        for line in LINES
        for template, (accuracy, facts) in zip(
            one.templates[line.task], _by_template(one, line), strict=True
        )
    ]
    fields: list[Field[tuple[Measured, Line, str, float, int]]] = [
        Field("relation", lambda row: titled(row[0].relation)),
        Field("task", lambda row: row[1].words),
        Field("judged by", lambda row: row[1].judged),
        Field("template", lambda row: row[2]),
        Field("accuracy", lambda row: measured(row[3]), "percent"),
        Field("facts", lambda row: row[4], "count"),
    ]
    return browse(rows, fields, id="paraphrases", title="Every paraphrase")


def _by_template(one: Measured, line: Line) -> Iterator[tuple[float, int]]:
    """The accuracy of each template of a relation, and how many facts were asked with it."""
    judged = line.table(one.cells)
    facts = (~np.isnan(judged)).sum(axis=0)
    return zip(by_template(judged).tolist(), facts.tolist(), strict=True)


def _prompt_table(outcomes: Outcomes) -> Table:
    prompts = outcomes.prompts
    asked = [(one, task) for one in outcomes.relations for task in TASKS]
    fields: list[Field[tuple[Measured, Task]]] = [
        Field("relation", lambda row: titled(row[0].relation)),
        Field("task", lambda row: TASK_NAMES[row[1]]),
        Field(
            "prompt",
            lambda row: f"{_shortened(prompts[row[0].relation.id, row[1]])}___",
            help="its beginning and its end; ⏎ ends a line, the answer belongs at ___",
        ),
    ]
    rows = [row for row in asked if (row[0].relation.id, row[1]) in prompts]
    return browse(rows, fields, id="prompts", title="A prompt of each task")


def _shortened(text: str) -> str:
    line = text.replace("\n", " ⏎ ")
    return line if len(line) <= 2 * ENDS else f"{line[:ENDS].rstrip()} … {line[-ENDS:].lstrip()}"


def _fact_table(outcomes: Outcomes) -> Table:
    means = {
        (one.relation.id, line.id): over(line.table(one.cells), 1)
        for one in outcomes.relations
        for line in LINES
    }

    def share(title: str, line: str, help: str) -> Field[tuple[Measured, int]]:
        def cell(fact: tuple[Measured, int]) -> float | None:
            return measured(means[fact[0].relation.id, line][fact[1]])

        return Field(title, cell, "percent", help)

    def said(fact: tuple[Measured, int]) -> Said:
        return fact[0].said[fact[1]]

    fields: list[Field[tuple[Measured, int]]] = [
        Field("relation", lambda fact: titled(fact[0].relation)),
        Field("subject", lambda fact: fact[0].items[fact[1]].fact.subject.name),
        Field("right", lambda fact: fact[0].items[fact[1]].gold, help="the fact's own object"),
        Field(
            "sentences", lambda fact: _commonest(said(fact), "wp"), help="how they were completed"
        ),
        share("right by lemmas", "wp", "share of its sentences"),
        Field(
            "questions", lambda fact: _commonest(said(fact), "qa"), help="how they were answered"
        ),
        share("right by name", "qa", "share of its questions"),
        Field(
            "after the right name",
            lambda fact: _short(said(fact)["told", 0]) if ("told", 0) in said(fact) else "",
            help="the answer to the base question",
        ),
        Field(
            "after wrong names",
            lambda fact: _after_names(said(fact), fact[0].cells.copied[fact[1]]),
            help="the answers; copied: the name in front",
        ),
        share("true", "fc_pos", "true statements called True, by option"),
        share("false", "fc_neg", "false statements called False, by option"),
    ]
    return browse(
        [(one, row) for one in outcomes.relations for row in sorted(one.said)],
        fields,
        id="facts",
        title="Facts",
        total=sum(len(one.items) for one in outcomes.relations),
        note=f"The {ANSWERS} commonest answers are shown, with how often each was given.",
    )


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
