"""Tables of numbers of `framing`. Knows estimates, nothing of prompts or answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.core.reports import Cell, Column, Estimate, Table
from sonde.probes.framing.ask import TASKS, Task
from sonde.probes.framing.numbers import LINES, OVER, READINGS
from sonde.probes.framing.tally import Outcomes

Estimates = Mapping[str, Estimate]

TASK_COLUMNS = (
    Column(title="task"),
    Column(title="judged by"),
    Column(title="accuracy", kind="percent", help="mean over paraphrases, facts and relations"),
    Column(title="majority", kind="percent", help="of always answering the commonest object"),
    Column(title="worst", kind="percent", help="paraphrase of each relation"),
    Column(title="best", kind="percent", help="paraphrase of each relation"),
    Column(title="stdev", kind="percent", help="between the paraphrases of a relation"),
    Column(title="paraphrases", help="of a relation", detail=True),
)
CHECK_COLUMNS = (
    Column(title="verdict"),
    Column(title="true ones", kind="percent", help="that are called True"),
    Column(title="false ones", kind="percent", help="that are called False"),
    Column(title="balanced", kind="percent", help="mean of both"),
    Column(title="above 50 %", kind="percent", help="balanced, less one half", detail=True),
    Column(
        title="says True",
        kind="percent",
        help="true and false statements count the same: 50 % where all is right",
    ),
    Column(title="neither", kind="percent", help="a tie, or another word"),
)
CHECKED = (
    "accuracy.fc_pos",
    "accuracy.fc_neg",
    "accuracy.fc",
    "above_half.fc",
    "said_true.fc",
    "said_neither.fc",
)
TOLD_COLUMNS = (
    Column(title="in front"),
    Column(title="accuracy", kind="percent", help="by equal names"),
    Column(title="moved", kind="percent", help="against nothing in front, fact by fact"),
    Column(title="copied", kind="percent", help="answers that are the name in front"),
)
BY_RELATION = (
    ("accuracy.wp", Column(title="sentence", kind="percent", help="by lemmas")),
    (
        "accuracy.qa_lemma",
        Column(title="question, lemmas", kind="percent", help="by lemmas", detail=True),
    ),
    ("accuracy.qa", Column(title="question", kind="percent", help="by equal names")),
    (
        "control.majority.qa",
        Column(
            title="majority",
            kind="percent",
            help="of always answering the commonest object, by equal names",
            detail=True,
        ),
    ),
    (
        "accuracy.fc_pos",
        Column(title="true", kind="percent", help="statements called True, by option"),
    ),
    (
        "accuracy.fc_neg",
        Column(title="false", kind="percent", help="statements called False, by option"),
    ),
    (
        "accuracy.fc",
        Column(title="balanced", kind="percent", help="mean of true and false", detail=True),
    ),
    (
        "told.right",
        Column(title="right name", kind="percent", help="in front of a question", detail=True),
    ),
    (
        "told.wrong",
        Column(title="wrong name", kind="percent", help="in front of a question", detail=True),
    ),
    (
        "copied.wrong",
        Column(title="copied", kind="percent", help="answers that are the wrong name", detail=True),
    ),
    (
        "stdev.wp",
        Column(title="stdev sentences", kind="percent", help="over paraphrases", detail=True),
    ),
    (
        "stdev.qa",
        Column(title="stdev questions", kind="percent", help="over paraphrases", detail=True),
    ),
)
"""What the table of relations shows, by the name of the estimate."""


def number_tables(estimates: Estimates, outcomes: Outcomes) -> Iterator[Table]:
    """Those tables that have something to show."""
    made = (
        _task_table(estimates, outcomes),
        _check_table(estimates),
        _told_table(estimates),
        _relation_table(estimates, outcomes),
    )
    return (table for table in made if table.rows)


def _measured(estimates: Estimates, name: str) -> bool:
    return estimates[f"{name}.{OVER}"].value is not None


def _task_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for line in LINES:
        if not _measured(estimates, f"accuracy.{line.id}"):
            continue
        control = estimates.get(f"control.majority.{line.id}.{OVER}")
        ends = (estimates[f"{end}.{line.id}.{OVER}"].value for end in ("worst", "best", "stdev"))
        rows.append(
            (
                line.words,
                line.judged,
                estimates[f"accuracy.{line.id}.{OVER}"],
                None if control is None else control.value,
                *ends,
                _numbers(outcomes, line.task),
            )
        )
    return Table(
        id="tasks",
        title="The same facts in several tasks",
        columns=TASK_COLUMNS,
        rows=tuple(rows),
        note="Worst, best and stdev are taken within each relation, then averaged. Sentences and "
        "questions are compared by lemmas.",
    )


def _numbers(outcomes: Outcomes, task: Task) -> str:
    sizes = {len(one.templates[task]) for one in outcomes.relations} - {0}
    low, high = min(sizes), max(sizes)
    return f"{high}" if low == high else f"{low} to {high}"


def _check_table(estimates: Estimates) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for _, after, words in READINGS:
        if _measured(estimates, f"accuracy.fc_pos{after}"):
            found = [estimates[f"{name}{after}.{OVER}"] for name in CHECKED]
            rows.append((words, *found[:4], *(one.value for one in found[4:])))
    if rows:
        rows.append(("always True", 1.0, 0.0, 0.5, 0.0, 1.0, 0.0))
        rows.append(("always False", 0.0, 1.0, 0.5, 0.0, 0.0, 0.0))
    return Table(
        id="fact-checking",
        title="Statements: true or false?",
        columns=CHECK_COLUMNS,
        rows=tuple(rows),
        note="A fact without a wrong object has no false statement and is not in the balance.",
    )


def _told_table(estimates: Estimates) -> Table:
    rows: list[tuple[Cell, ...]] = []
    if _measured(estimates, "told.none"):
        rows.append(("nothing", estimates[f"told.none.{OVER}"], None, None))
    for kind, words in (("right", "the right name"), ("wrong", "a wrong name")):
        if _measured(estimates, f"told.{kind}"):
            names = (f"told.{kind}", f"told_minus_none.{kind}", f"copied.{kind}")
            rows.append((words, *(estimates[f"{name}.{OVER}"] for name in names)))
    return Table(
        id="interference",
        title="A name in front of the base question",
        columns=TOLD_COLUMNS,
        rows=tuple(rows),
        note="Wrong names are averaged within each fact.",
    )


def _relation_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    kept = [entry for entry in BY_RELATION if _measured(estimates, entry[0])]
    rows: list[tuple[Cell, ...]] = []
    for one in outcomes.relations:
        cells = [estimates[f"{name}.relation.{one.relation.id}"] for name, _ in kept]
        sizes = "/".join(str(len(one.templates[task])) for task in TASKS)
        rows.append((one.relation.id, one.relation.label, *cells, one.majority, sizes))
    return Table(
        id="by-relation",
        title="By relation",
        columns=(
            Column(title="relation"),
            Column(title="label"),
            *(column for _, column in kept),
            Column(title="commonest object", detail=True),
            Column(title="paraphrases", help="sentences/questions/statements", detail=True),
        ),
        rows=tuple(rows),
    )
