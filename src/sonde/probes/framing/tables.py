"""Tables of numbers of `framing`. Knows estimates, nothing of prompts or answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sonde.core.reports import Cell, Estimates, Metric, Table
from sonde.probes.framing import metrics
from sonde.probes.framing.ask import TASKS, Task
from sonde.probes.framing.numbers import LINES, READINGS, Line
from sonde.probes.framing.tally import Outcomes
from sonde.reporting.build.tables import Field, by_relation, side_by_side, table
from sonde.reporting.catalogue import RELATIONS

TRUE_ONES = Metric("accuracy.fc_pos{read}", "true ones", "percent", "that are called True")
FALSE_ONES = Metric("accuracy.fc_neg{read}", "false ones", "percent", "that are called False")

SENTENCE, BY_LEMMAS, QUESTION, TRUE, FALSE = (
    metrics.ACCURACY.of(task=task) for task in ("wp", "qa_lemma", "qa", "fc_pos", "fc_neg")
)
BY_RELATION = (
    SENTENCE.named("sentence", "by lemmas"),
    BY_LEMMAS.named("question, lemmas", "by lemmas").detail(),
    QUESTION.named("question", "by equal names"),
    metrics.MAJORITY.of(task="qa").detail(),
    TRUE.named("true", "statements called True, by option"),
    FALSE.named("false", "statements called False, by option"),
    metrics.BALANCED.of(read="").detail(),
    metrics.TOLD.of(name="right").named("right name", "in front of a question").detail(),
    metrics.TOLD.of(name="wrong").named("wrong name", "in front of a question").detail(),
    metrics.COPIED.of(name="wrong").named("copied", "answers that are the wrong name").detail(),
    metrics.STDEV.of(task="wp").named("stdev sentences", "over paraphrases").detail(),
    metrics.STDEV.of(task="qa").named("stdev questions", "over paraphrases").detail(),
)
"""What the table of relations shows, where it was measured."""


def number_tables(estimates: Estimates, outcomes: Outcomes) -> Iterator[Table]:
    """Every task, both readings of verdicts, names in front, every relation."""
    yield _task_table(estimates, outcomes)
    yield _check_table(estimates)
    yield _told_table(estimates)
    yield _relation_table(estimates, outcomes)


def _task_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    def look(line: Line, metric: Metric) -> Cell:
        return estimates.get(metric.of(task=line.id).at(RELATIONS))

    values = (
        metric.without_interval()
        for metric in (metrics.MAJORITY, metrics.WORST, metrics.BEST, metrics.STDEV)
    )
    return table(
        [
            line
            for line in LINES
            if metrics.was_measured(estimates, metrics.ACCURACY.of(task=line.id))
        ],
        [
            Field("task", lambda line: line.words),
            Field("judged by", lambda line: line.judged),
            *(metrics.ACCURACY, *values),
            Field(
                "paraphrases", lambda ln: _numbers(outcomes, ln.task), "text", "of a relation", True
            ),
        ],
        look,
        id="tasks",
        title="The same facts in several tasks",
        note="Worst, best and stdev are taken within each relation, then averaged. Sentences and "
        "questions are compared by lemmas.",
    )


def _numbers(outcomes: Outcomes, task: Task) -> str:
    sizes = {len(one.templates[task]) for one in outcomes.relations} - {0}
    low, high = min(sizes), max(sizes)
    return f"{high}" if low == high else f"{low} to {high}"


def _check_table(estimates: Estimates) -> Table:
    readings = {
        words: read
        for _, read, words in READINGS
        if metrics.was_measured(estimates, TRUE_ONES.of(read=read))
    }
    found = side_by_side(
        readings,
        [
            *(TRUE_ONES, FALSE_ONES, metrics.BALANCED, metrics.ABOVE_HALF.detail()),
            *(metrics.SAID_TRUE.without_interval(), metrics.SAID_NEITHER.without_interval()),
        ],
        lambda words, metric: estimates[metric.of(read=readings[words]).at(RELATIONS)],
        head="verdict",
        id="fact-checking",
        title="Statements: true or false?",
        note="A fact without a wrong object has no false statement and is not in the balance.",
    )
    always: tuple[tuple[Cell, ...], ...] = (
        ("always True", 1.0, 0.0, 0.5, 0.0, 1.0, 0.0),
        ("always False", 0.0, 1.0, 0.5, 0.0, 0.0, 0.0),
    )
    return replace(found, rows=(*found.rows, *always)) if readings else found


def _told_table(estimates: Estimates) -> Table:
    names = {"nothing": "none", "the right name": "right", "a wrong name": "wrong"}
    return side_by_side(
        [
            words
            for words, name in names.items()
            if metrics.was_measured(estimates, metrics.TOLD.of(name=name))
        ],
        [metrics.TOLD, metrics.MOVED, metrics.COPIED],
        lambda words, metric: estimates.get(metric.of(name=names[words]).at(RELATIONS)),
        head="in front",
        id="interference",
        title="A name in front of the base question",
        note="Wrong names are averaged within each fact.",
    )


def _relation_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    asked = {one.relation.id: one for one in outcomes.relations}
    return by_relation(
        estimates,
        [one.relation for one in outcomes.relations],
        [
            *(metric for metric in BY_RELATION if metrics.was_measured(estimates, metric)),
            Field("commonest object", lambda r: asked[r.id].majority, detail=True),
            Field(
                "paraphrases",
                lambda r: "/".join(str(len(asked[r.id].templates[task])) for task in TASKS),
                help="sentences/questions/statements",
                detail=True,
            ),
        ],
    )
