"""Tables and figures of `framing`: numbers, and what can be browsed. Knows nothing of prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sonde.core.facts import Relation
from sonde.core.reports import Cell, Estimates, Figure, Metric, Table
from sonde.probes.framing import metrics
from sonde.probes.framing.ask import TASKS, Task
from sonde.probes.framing.judge import RIGHT, Codes, Outcomes, Said
from sonde.probes.framing.numbers import LINES, READINGS, Line, by_template, over
from sonde.reporting.build.figures import dots_by_relation, strip
from sonde.reporting.build.tables import (
    Field,
    browse,
    by_relation,
    measured,
    side_by_side,
    table,
    titled,
)
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


TASK_NAMES: Mapping[Task, str] = {"wp": "sentence", "qa": "question", "fc": "statement"}
ANSWERS = 3
LONG = 60
"""So many different answers of a fact are shown, and so many characters of each."""

ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""


DRAWN = ("wp", "qa", "fc_pos", "fc_neg")
BY_TASK: Mapping[str, Metric] = {
    "sentence": metrics.ACCURACY.of(task="wp"),
    "question": metrics.ACCURACY.of(task="qa"),
    "statement, balanced": metrics.BALANCED.of(read=""),
}
IN_FRONT: Mapping[str, Metric] = {
    "nothing in front": metrics.TOLD.of(name="none"),
    "right name": metrics.TOLD.of(name="right"),
    "wrong name": metrics.TOLD.of(name="wrong"),
}


def tables(estimates: Estimates, outcomes: Outcomes) -> Iterator[Table]:
    """Every task, both readings of verdicts, names in front, every relation; then to browse."""
    yield _task_table(estimates, outcomes)
    yield _check_table(estimates)
    yield _told_table(estimates)
    yield _relation_table(estimates, outcomes)
    yield _template_table(outcomes)
    yield _prompt_table(outcomes)
    yield _fact_table(outcomes)


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
    sizes = {len(templates[task]) for templates in outcomes.templates} - {0}
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
    numbers = {relation.id: number for number, relation in enumerate(outcomes.relations)}

    def paraphrases(relation: Relation) -> str:
        templates = outcomes.templates[numbers[relation.id]]
        return "/".join(str(len(templates[task])) for task in TASKS)

    return by_relation(
        estimates,
        outcomes.relations,
        [
            *(metric for metric in BY_RELATION if metrics.was_measured(estimates, metric)),
            Field("commonest object", lambda r: outcomes.majority[numbers[r.id]], detail=True),
            Field("paraphrases", paraphrases, help="sentences/questions/statements", detail=True),
        ],
    )


def _rates(outcomes: Outcomes, line: Line) -> Iterator[tuple[Relation, str, float, int]]:
    """Every template of a line: its relation, its text, its accuracy, and of how many facts."""
    judged = line.table(outcomes.cells)
    for number, relation in enumerate(outcomes.relations):
        own = judged[outcomes.relation == number]
        facts = (~np.isnan(own)).sum(axis=0).tolist()
        texts = [template.text for template in outcomes.templates[number][line.task]]
        rates = by_template(own).tolist()
        yield from zip([relation] * len(texts), texts, rates, facts, strict=False)


def _template_table(outcomes: Outcomes) -> Table:
    rows = [(line, *row) for line in LINES for row in _rates(outcomes, line)]
    order = {relation.id: number for number, relation in enumerate(outcomes.relations)}
    fields: list[Field[tuple[Line, Relation, str, float, int]]] = [
        Field("relation", lambda row: titled(row[1])),
        Field("task", lambda row: row[0].words),
        Field("judged by", lambda row: row[0].judged),
        Field("template", lambda row: row[2]),
        Field("accuracy", lambda row: measured(row[3]), "percent"),
        Field("facts", lambda row: row[4], "count"),
    ]
    rows.sort(key=lambda row: order[row[1].id])
    return browse(rows, fields, id="paraphrases", title="Every paraphrase")


def _prompt_table(outcomes: Outcomes) -> Table:
    asked = [(relation, task) for relation in outcomes.relations for task in TASKS]
    fields: list[Field[tuple[Relation, Task]]] = [
        Field("relation", lambda row: titled(row[0])),
        Field("task", lambda row: TASK_NAMES[row[1]]),
        Field(
            "prompt",
            lambda row: f"{_shortened(outcomes.prompts[row[0].id, row[1]])}___",
            help="its beginning and its end; ⏎ ends a line, the answer belongs at ___",
        ),
    ]
    rows = [row for row in asked if (row[0].id, row[1]) in outcomes.prompts]
    return browse(rows, fields, id="prompts", title="A prompt of each task")


def _shortened(text: str) -> str:
    line = text.replace("\n", " ⏎ ")
    return line if len(line) <= 2 * ENDS else f"{line[:ENDS].rstrip()} … {line[-ENDS:].lstrip()}"


def _fact_table(outcomes: Outcomes) -> Table:
    means = {line.id: over(line.table(outcomes.cells), 1) for line in LINES}
    items, said, copied = outcomes.items, outcomes.said, outcomes.cells.copied

    def share(title: str, line: str, help: str) -> Field[int]:
        return Field(title, lambda row: measured(means[line][row]), "percent", help)

    fields: list[Field[int]] = [
        Field("relation", lambda row: titled(outcomes.relations[outcomes.relation[row]])),
        Field("subject", lambda row: items[row].fact.subject.name),
        Field("right", lambda row: items[row].gold, help="the fact's own object"),
        Field("sentences", lambda row: _commonest(said[row], "wp"), help="how they were completed"),
        share("right by lemmas", "wp", "share of its sentences"),
        Field("questions", lambda row: _commonest(said[row], "qa"), help="how they were answered"),
        share("right by name", "qa", "share of its questions"),
        Field(
            "after the right name",
            lambda row: _short(said[row]["told", 0]) if ("told", 0) in said[row] else "",
            help="the answer to the base question",
        ),
        Field(
            "after wrong names",
            lambda row: _after_names(said[row], copied[row]),
            help="the answers; copied: the name in front",
        ),
        share("true", "fc_pos", "true statements called True, by option"),
        share("false", "fc_neg", "false statements called False, by option"),
    ]
    return browse(
        sorted(said),
        fields,
        id="facts",
        title="Facts",
        total=len(items),
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


def figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    """Every paraphrase, and every relation by task and by the name in front."""
    drawn = [line for line in LINES if line.id in DRAWN]
    several = " Relations differ, too, not only wordings." if len(outcomes.relations) > 1 else ""
    yield strip(
        [(f"{line.words}, by {line.judged}", _dots(line, outcomes)) for line in drawn],
        id="accuracy-by-paraphrase",
        title="Accuracy with every paraphrase",
        axis="accuracy with one template",
        note=f"A dot is a template of a relation.{several}",
    )
    for id, title, series, note in (
        (
            "accuracy-by-relation",
            "Accuracy of every relation in three tasks",
            BY_TASK,
            "Statements: the mean of true and false ones, read by the likelier option; always "
            "saying the same gives 50 %. Whiskers are 95 % intervals.",
        ),
        (
            "interference-by-relation",
            "What a name in front of the question does in every relation",
            IN_FRONT,
            "The base question, judged by equal names. Whiskers are 95 % intervals.",
        ),
    ):
        kept = {name: m for name, m in series.items() if metrics.was_measured(estimates, m)}
        if kept:
            words = {"id": id, "title": title, "axis": "accuracy", "note": note}
            yield dots_by_relation(estimates, outcomes.relations, kept, **words)


def _dots(line: Line, outcomes: Outcomes) -> list[tuple[float, str]]:
    rates = _rates(outcomes, line)
    return [(rate, f"{r.id}: {text}") for r, text, rate, _ in rates if not np.isnan(rate)]
