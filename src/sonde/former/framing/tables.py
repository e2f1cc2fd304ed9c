"""Tables and figures of `framing`: numbers, and what can be browsed. Knows judged prompts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sonde.core.facts import Relation
from sonde.core.reports import Cell, Estimates, Figure, Metric, Table
from sonde.metrics.estimates import RELATIONS
from sonde.former.framing import numbers
from sonde.former.framing.judge import TASKS, Outcomes, Task
from sonde.former.framing.numbers import LINES, READINGS, Line, accuracies, averaged, was_measured
from sonde.reporting.build.figures import dots_by_relation, strip
from sonde.reporting.build.tables import (
    Field,
    browse,
    by_relation,
    drawn,
    side_by_side,
    table,
    titled,
)

TRUE_ONES = Metric("accuracy.fc_pos{read}", "true ones", "percent", "that are called True")
FALSE_ONES = Metric("accuracy.fc_neg{read}", "false ones", "percent", "that are called False")

SENTENCE, BY_LEMMAS, QUESTION, TRUE, FALSE = (
    numbers.ACCURACY.of(task=task) for task in ("wp", "qa_lemma", "qa", "fc_pos", "fc_neg")
)
NOTHING, RIGHT_NAME, WRONG_NAME = (numbers.TOLD.of(name=name) for name in ("none", *numbers.NAMES))
BALANCED = numbers.BALANCED.of(read="")
BY_RELATION = (
    SENTENCE.named("sentence", "by lemmas"),
    BY_LEMMAS.named("question, lemmas", "by lemmas").detail(),
    QUESTION.named("question", "by equal names"),
    numbers.MAJORITY.of(task="qa").detail(),
    TRUE.named("true", "statements called True, by option"),
    FALSE.named("false", "statements called False, by option"),
    BALANCED.detail(),
    RIGHT_NAME.named("right name", "in front of a question").detail(),
    WRONG_NAME.named("wrong name", "in front of a question").detail(),
    numbers.COPIED.of(name="wrong").named("copied", "answers that are the wrong name").detail(),
    numbers.STDEV.of(task="wp").named("stdev sentences", "over paraphrases").detail(),
    numbers.STDEV.of(task="qa").named("stdev questions", "over paraphrases").detail(),
)
"""What the table of relations shows, where it was measured."""

TASK_NAMES: Mapping[Task, str] = {"wp": "sentence", "qa": "question", "fc": "statement"}
SHOWN = 5_000
ANSWERS = 3
LONG = 60
"""So many facts are shown, so many different answers of each, and so many characters of these."""

ENDS = 90
"""How many characters of a prompt are shown at its beginning and at its end."""

DRAWN = ("wp", "qa", "fc_pos", "fc_neg")
BY_TASK = {"sentence": SENTENCE, "question": QUESTION, "statement, balanced": BALANCED}
IN_FRONT = {"nothing in front": NOTHING, "right name": RIGHT_NAME, "wrong name": WRONG_NAME}


def tables(estimates: Estimates, outcomes: Outcomes, seed: int) -> Iterator[Table]:
    """Every task, both readings of verdicts, names in front, every relation; then to browse."""
    yield _task_table(estimates, outcomes)
    yield _check_table(estimates)
    yield _told_table(estimates)
    yield _relation_table(estimates, outcomes)
    yield _template_table(outcomes)
    yield _prompt_table(outcomes)
    yield _fact_table(outcomes, seed)


def _task_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    def look(line: Line, metric: Metric) -> Cell:
        return estimates.get(metric.of(task=line.id).at(RELATIONS))

    def paraphrases(line: Line) -> str:
        sizes = {len(templates[line.task]) for templates in outcomes.templates} - {0}
        return " to ".join(map(str, sorted({min(sizes), max(sizes)})))

    values = (numbers.MAJORITY, numbers.WORST, numbers.BEST, numbers.STDEV)
    return table(
        [ln for ln in LINES if was_measured(estimates, numbers.ACCURACY.of(task=ln.id))],
        [
            Field("task", lambda line: line.words),
            Field("judged by", lambda line: line.judged),
            numbers.ACCURACY,
            *(metric.without_interval() for metric in values),
            Field("paraphrases", paraphrases, "text", "of a relation", True),
        ],
        look,
        id="tasks",
        title="The same facts in several tasks",
        note="Worst, best and stdev are taken within each relation, then averaged. Sentences and "
        "questions are compared by lemmas.",
    )


def _check_table(estimates: Estimates) -> Table:
    readings = {
        words: read
        for _, read, words in READINGS
        if was_measured(estimates, TRUE_ONES.of(read=read))
    }
    by_reading = side_by_side(
        readings,
        [
            *(TRUE_ONES, FALSE_ONES, numbers.BALANCED, numbers.ABOVE_HALF.detail()),
            *(numbers.SAID_TRUE.without_interval(), numbers.SAID_NEITHER.without_interval()),
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
    return replace(by_reading, rows=(*by_reading.rows, *always)) if readings else by_reading


def _told_table(estimates: Estimates) -> Table:
    names = {"nothing": "none", "the right name": "right", "a wrong name": "wrong"}
    return side_by_side(
        [w for w, name in names.items() if was_measured(estimates, numbers.TOLD.of(name=name))],
        [numbers.TOLD, numbers.MOVED, numbers.COPIED],
        lambda words, metric: estimates.get(metric.of(name=names[words]).at(RELATIONS)),
        head="in front",
        id="interference",
        title="A name in front of the base question",
        note="Wrong names are averaged within each fact.",
    )


def _relation_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    asked = outcomes.asked
    majority = {r.id: name for r, name in zip(asked.relations, asked.majority, strict=True)}
    paraphrases = {
        relation.id: "/".join(str(len(templates[task])) for task in TASKS)
        for relation, templates in zip(asked.relations, outcomes.templates, strict=True)
    }
    return by_relation(
        estimates,
        asked.relations,
        [
            *(metric for metric in BY_RELATION if was_measured(estimates, metric)),
            Field("commonest object", lambda r: majority[r.id], detail=True),
            Field(
                "paraphrases",
                lambda r: paraphrases[r.id],
                help="sentences/questions/statements",
                detail=True,
            ),
        ],
    )


def _rates(outcomes: Outcomes, line: Line) -> Iterator[tuple[Relation, str, float, int]]:
    """Every template of a line: its relation, its text, its accuracy, and of how many facts."""
    values = accuracies(outcomes, line)
    for number, relation in enumerate(outcomes.asked.relations):
        of_relation = values[outcomes.asked.relation == number]
        facts, rates = (~np.isnan(of_relation)).sum(axis=0), averaged(of_relation, 0)
        for place, template in enumerate(outcomes.templates[number][line.task]):
            yield relation, template.text, float(rates[place]), int(facts[place])


def _template_table(outcomes: Outcomes) -> Table:
    rows = [(line, *row) for line in LINES for row in _rates(outcomes, line)]
    order = {relation.id: number for number, relation in enumerate(outcomes.asked.relations)}
    rows.sort(key=lambda row: order[row[1].id])
    fields: list[Field[int]] = [
        Field("relation", [titled(relation) for _, relation, *_ in rows]),
        Field("task", [line.words for line, *_ in rows]),
        Field("judged by", [line.judged for line, *_ in rows]),
        Field("template", [text for *_, text, _, _ in rows]),
        Field("accuracy", [rate for *_, rate, _ in rows], "percent"),
        Field("facts", [facts for *_, facts in rows], "count"),
    ]
    return browse(range(len(rows)), fields, id="paraphrases", title="Every paraphrase")


def _prompt_table(outcomes: Outcomes) -> Table:
    """A prompt of each relation and task, with no name in it where that can be."""
    asked = outcomes.asked
    # what is told sorts as none, then right; tasks are shown in their own order
    texts = outcomes.prompts.drop_nulls("text").sort("told").select("fact", "task", "text")
    firsts = texts.unique(["fact", "task"], keep="first", maintain_order=True).rows()
    rows = sorted(firsts, key=lambda row: (row[0], TASKS.index(row[1])))
    fields: list[Field[int]] = [
        Field("relation", [titled(asked.relations[asked.relation[row[0]]]) for row in rows]),
        Field("task", [TASK_NAMES[row[1]] for row in rows]),
        Field(
            "prompt",
            [f"{_shortened(row[2])}___" for row in rows],
            help="its beginning and its end; ⏎ ends a line, the answer belongs at ___",
        ),
    ]
    return browse(range(len(rows)), fields, id="prompts", title="A prompt of each task")


def _shortened(text: str) -> str:
    line = text.replace("\n", " ⏎ ")
    return line if len(line) <= 2 * ENDS else f"{line[:ENDS].rstrip()} … {line[-ENDS:].lstrip()}"


def _fact_table(outcomes: Outcomes, seed: int) -> Table:
    asked, items = outcomes.asked, outcomes.asked.items
    means = {line.id: averaged(accuracies(outcomes, line), 1) for line in LINES}
    ids = [f"shown:{item.fact.relation}:{item.fact.id}" for item in items]
    chosen = drawn(ids, seed, SHOWN)
    said = _answers(outcomes, chosen)

    def share(title: str, line: str, help: str) -> Field[int]:
        return Field(title, means[line], "percent", help)

    def answers(title: str, task: Task, told: str, help: str) -> Field[int]:
        return Field(title, lambda row: _listed(said[row, task, told]), help=help)

    fields: list[Field[int]] = [
        Field("relation", [titled(asked.relations[number]) for number in asked.relation]),
        Field("subject", [item.fact.subject.name for item in items]),
        Field("right", [item.gold for item in items], help="the fact's own object"),
        answers("sentences", "wp", "none", "how they were completed"),
        share("right by lemmas", "wp", "share of its sentences"),
        answers("questions", "qa", "none", "how they were answered"),
        share("right by name", "qa", "share of its questions"),
        answers("after the right name", "qa", "right", "the answer to the base question"),
        answers("after wrong names", "qa", "wrong", "the answers; copied: the name in front"),
        share("true", "fc_pos", "true statements called True, by option"),
        share("false", "fc_neg", "false statements called False, by option"),
    ]
    return browse(
        chosen,
        fields,
        id="facts",
        title="Facts",
        total=len(items),
        note=f"The {ANSWERS} commonest answers are shown, with how often each was given.",
    )


Said = Mapping[tuple[int, str, str], Counter[str]]
"""How often each answer was given, by fact, task and what was told."""


def _answers(outcomes: Outcomes, facts: list[int]) -> Said:
    from polars import col

    said: defaultdict[tuple[int, str, str], Counter[str]] = defaultdict(Counter)
    rows = outcomes.prompts.filter(col("fact").is_in(facts), col("task") != "fc")
    for fact, task, told, text, copied in rows.select(
        "fact", "task", "told", "said", "copied"
    ).rows():
        short = text if len(text) <= LONG else f"{text[:LONG].rstrip()}…"
        mark = " (copied)" if copied and told == "wrong" else ""
        said[fact, task, told][f"{short or '(nothing)'}{mark}"] += 1
    return said


def _listed(counts: Counter[str]) -> str:
    """The commonest first; equally common ones by name."""
    order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    parts = [f"{text}{f' ×{n}' if n > 1 else ''}" for text, n in order[:ANSWERS]]
    more = [f"{len(order) - ANSWERS} more"] if len(order) > ANSWERS else []
    return "; ".join([*parts, *more])


def figures(estimates: Estimates, outcomes: Outcomes) -> Iterator[Figure]:
    """Every paraphrase, and every relation by task and by the name in front."""
    several = (
        " Relations differ, too, not only wordings." if len(outcomes.asked.relations) > 1 else ""
    )
    yield strip(
        [
            (f"{line.words}, by {line.judged}", _dots(line, outcomes))
            for line in LINES
            if line.id in DRAWN
        ],
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
        kept = {name: m for name, m in series.items() if was_measured(estimates, m)}
        if kept:
            words = {"id": id, "title": title, "axis": "accuracy", "note": note}
            yield dots_by_relation(estimates, outcomes.asked.relations, kept, **words)


def _dots(line: Line, outcomes: Outcomes) -> list[tuple[float, str]]:
    rates = _rates(outcomes, line)
    return [(rate, f"{r.id}: {text}") for r, text, rate, _ in rates if not np.isnan(rate)]
