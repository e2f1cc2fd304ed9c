r"""Framing: the same facts as sentences to complete, as questions, and as statements to check.

Examples, if there are any, are the same before all prompts of a task and relation, in its first
template:

    Statement: The capital of Chile is Santiago. The statement is True or False? True
    Statement: The capital of Peru is Tokyo. The statement is True or False? False
    Statement: The capital of Austria is Vienna. The statement is True or False?

A fact's accuracy in a task is its mean over the task's templates, with false statements first
averaged over their objects.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, OptionScores
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.evaluation.estimate import Group, Metric
from sonde.evaluation.judge import SENT
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.metrics import ABSTENTION, cell_means_view
from sonde.evaluation.tables import Results
from sonde.probes.base import LemmaProbe
from sonde.probes.monitor import CuedProbe
from sonde.prompting.cues import (
    VERDICTS,
    Task,
    answer_last_templates,
    parse_leading_verdict,
    question_templates,
    statement_templates,
    task_prompt,
    write_task_examples,
)
from sonde.prompting.matching import clean_answer
from sonde.prompts import KEY, TEXTS, Generate, PromptBatch, Score

TASKS: Mapping[Task, Any] = {
    "wp": answer_last_templates,
    "qa": question_templates,
    "fc": statement_templates,
}
TRUE, FALSE, NEITHER = "True", "False", ""
ANSWER_TOKENS, VERDICT_TOKENS = 15, 5
BLOCK = 1024  # facts for which a template comes after the other, so that texts share a shard
PART = 64  # facts whose statements are scored, then generated after
PROMPT = dict.fromkeys((*KEY, "task", "cue", "object", *TEXTS), pl.String) | {
    "example_spans": pl.List(pl.Int64)
}
SENTENCE, QUESTION, STATEMENT = (col("task") == task for task in ("wp", "qa", "fc"))
NONE, RIGHT, WRONG = (col("cue") == cue for cue in ("none", "right", "wrong"))
SAID = {"said_true": TRUE, "said_neither": NEITHER}
# a row for each fact and template: means over the objects of its prompts
CELLS = cell_means_view("task", "cue", "template_no")
TEMPLATE_METRICS = ("accuracy.wp", "accuracy.qa", "accuracy.fc_pos", "accuracy.fc_neg")
EXHIBITS = (
    ("accuracy", "Tasks", ("accuracy",)),
    ("cue", "Cues before the base question", ("cue", "copied")),
)
LEMMAS = col("correct_lemmas")
DUE = when(RIGHT).then(lit(TRUE)).otherwise(lit(FALSE))


def is_one_of_names(text: str, names: Sequence[str], language: str = "") -> bool:
    """Whether a text is one of the names, apart from final punctuation."""
    return bool(clean_answer(text)) and clean_answer(text) in map(clean_answer, names)


def task_accuracy(
    id: str, label: str, where: pl.Expr, column: str = "correct", baseline: pl.Expr | None = None
) -> Metric:
    """Accuracy over the templates of a task."""
    num = col(column).mean()
    return Metric(
        f"accuracy.{id}", num=num, where=where, view=CELLS, baseline=baseline, label=label
    )


def verdict_metrics(mode: str, suffix: str, label: str) -> Iterator[Metric]:
    """True and false statements count the same, so that always stating the same scores 50%."""
    where = STATEMENT & (col("answer_mode") == mode)
    for kind, cue, truth in (("pos", RIGHT, "true"), ("neg", WRONG, "false")):
        yield task_accuracy(f"fc_{kind}{suffix}", f"{truth} statements, {label}", where & cue)
    for column in ("correct", *SAID):
        id = "accuracy" if column == "correct" else column
        num = (col(column).filter(RIGHT).mean() + col(column).filter(WRONG).mean()) / 2
        yield Metric(
            f"{id}.fc{suffix}", num=num, where=where, view=CELLS,
            label=f"statements, {label}: {id.replace('_', ' ')}",
        )  # fmt: skip


def cue_metrics() -> Iterator[Metric]:
    """The base question without a cue and after the correct or a wrong name."""
    base = QUESTION & (col("template_no") == 1)
    none = col("correct").filter(NONE).mean()
    yield Metric("cue.none", num=none, where=base, label="base question")
    for name, cue in (("right", RIGHT), ("wrong", WRONG)):
        correct, copied = (col(column).filter(cue).mean() for column in ("correct", "copied"))
        yield Metric(
            f"cue.{name}", num=correct, where=base, baseline=none, baseline_label="no cue",
            label=f"base question after a {name} name",
        )  # fmt: skip
        yield Metric(
            f"copied.{name}", num=copied, where=base, label=f"{name} names repeated", better=""
        )


@dataclass(frozen=True, kw_only=True)
class Framing(CuedProbe, LemmaProbe):
    """The same facts as sentences, questions, statements to check, and after other names."""

    name, requires = "framing", (frozenset({"generate", "score"}),)
    axes, separate = ("task", "cue", "object"), ("task", "answer_mode", "cue")

    paraphrases: int = setting(7, "templates of a relation for each task, at most", min=1)

    def templates_by_task(self, relation: Relation) -> Mapping[Task, tuple[Template, ...]]:
        """The templates of each task, the one of its examples first."""
        return {task: select(relation, self.paraphrases) for task, select in TASKS.items()}

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """Questions, then sentences and statements: the base question has number 1."""
        tasks = self.templates_by_task(relation)
        return tuple({t.id: t for task in ("qa", "wp", "fc") for t in tasks[task]}.values())

    def facts(self, data: Dataset) -> pl.DataFrame:
        """Also `baseline` and `baseline_lemmas`: whether the most common object is correct."""
        facts = super().facts(data)
        columns = facts.select("majority", "correct_names", "language").rows()
        equal = pl.Series([is_one_of_names(*row) for row in columns])
        lemmas = pl.Series([self.accepts(*row) for row in columns])
        return facts.with_columns(baseline=equal, baseline_lemmas=lemmas)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, task by task, template by template."""
        relations = [relation for relation in data.asked_relations() if self.templates(relation)]
        facts, form = self.facts(data).filter(col("excluded").is_null()), self.frame
        if not relations:
            raise DataError(
                f"dataset {data.name!r} has no templates to prompt with: neither statements, such "
                "as '[X] was born in [Y].', nor questions, such as 'Where was [X] born? [Y].'; add "
                "some, or name other relations"
            )
        if not facts["relation"].is_in([relation.id for relation in relations]).any():
            raise DataError(
                f"dataset {data.name!r}: every fact is needed as an example, so none is left to "
                "prompt; set shots lower, or give other facts the split 'train'"
            )
        self.check_languages(data)
        for relation in relations:
            around = self.phrasing_of(relation)
            first = draw_key(data.selection.seed, f"verdict:{relation.id}") % 2
            blocks = facts.filter(relation=relation.id).iter_slices(BLOCK)
            written: dict[tuple[str, ...], tuple[str, list[int]]] = {}
            for block, (task, templates) in product(
                blocks, self.templates_by_task(relation).items()
            ):
                for template, part in product(
                    templates, block.iter_slices(PART if task == "fc" else BLOCK)
                ):
                    prompts = []
                    for fact in part.iter_rows(named=True):
                        named = [] if task == "fc" else [("none", "")]
                        if task == "fc" or (task == "qa" and template == templates[0]):
                            named += [("right", fact["gold_names"][0][0])]
                            named += [("wrong", name) for name in fact["wrong"]]
                        known = (task, *(example["subject"] for example in fact["examples"]))
                        if known not in written:  # nearly all facts have the same examples
                            written[known] = write_task_examples(
                                task, templates[0], fact["examples"], form, around, first
                            )
                        shown, spans = written[known]
                        for cue, name in named:
                            subject = fact["subject"]
                            text = shown + task_prompt(task, template, subject, name, form, around)
                            key = (relation.id, fact["fact"], template.id, subject)
                            prompts.append((*key, task, cue, name, text, "", spans))
                    frame = pl.DataFrame(prompts, PROMPT, orient="row")
                    frame = frame if self.shots else frame.drop("example_spans")
                    if task == "fc":
                        yield PromptBatch(frame=frame, request=Score(), options=(around.verdicts,))
                    tokens = VERDICT_TOKENS if task == "fc" else ANSWER_TOKENS
                    yield PromptBatch(frame=frame, request=Generate(max_tokens=tokens))

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """`correct` by the rule of the task, `correct_lemmas` without cues, `verdict`, `copied`."""
        if isinstance(answers.result, OptionScores):
            sums = answers.result.sums().reshape(-1, 2)
            stated = np.array(
                [[VERDICTS[name] for name in names] for names in answers.batch.options]
            )
            likely = stated[answers.batch.options_ids(), sums.argmax(axis=1)]
            verdict = pl.Series(
                np.where(sums[:, 0] == sums[:, 1], NEITHER, likely), dtype=pl.String
            )
            rows = answers.frame.drop(SENT, strict=False)
            return rows.with_columns(
                verdict=verdict,
                answer=verdict,
                answer_mode=lit("score"),
                correct=verdict == rows.select(DUE).to_series(),
            )
        nested = col("correct_names").list.eval(pl.element().implode())
        facts = facts.with_columns(gold_names=nested)
        rows = self.judge_text(answers, facts, accepts=is_one_of_names)
        lemmas = self.judge_text(answers, facts)["correct"]
        pairs = rows["answer", "object"].rows()
        verdicts = pl.Series(
            [parse_leading_verdict(answer) for answer, _ in pairs], dtype=pl.String
        )
        rows = rows.with_columns(
            correct_lemmas=when(NONE).then(lemmas),
            verdict=when(STATEMENT).then(verdicts),
            copied=pl.Series([answer == clean_answer(name) != "" for answer, name in pairs]),
        )
        sentence = when(SENTENCE).then("correct_lemmas").otherwise("correct")
        correct = when(STATEMENT).then(col("verdict") == DUE).otherwise(sentence)
        return rows.with_columns(correct=correct)

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """Which verdict is stated, of each; `gold` is the verdict that is due, or the objects."""
        golds = facts["gold"].gather(rows["fact_no"])
        names = pl.Enum([*dict.fromkeys((TRUE, FALSE, *golds))])
        gold = when(STATEMENT).then(DUE).otherwise(golds).cast(names)
        stated = {name: col("verdict") == verdict for name, verdict in SAID.items()}
        return rows.with_columns(gold=gold, **stated)

    groups = ("relation", Group(("relation", "template_no"), TEMPLATE_METRICS, fine=True))
    metrics = (
        task_accuracy("wp", "sentences", SENTENCE, baseline=col("baseline_lemmas").first()),
        task_accuracy(
            "qa_lemma",
            "questions, lemmas",
            QUESTION & NONE,
            "correct_lemmas",
            col("baseline_lemmas").first(),
        ),
        task_accuracy("qa", "questions", QUESTION & NONE, baseline=col("baseline").first()),
        *verdict_metrics("score", "", "by option"),
        *verdict_metrics("generate", "_generated", "by first word"),
        Metric(
            "question_minus_sentence",
            num=LEMMAS.filter(QUESTION).mean(),
            where=NONE,
            view=CELLS,
            baseline=LEMMAS.filter(SENTENCE).mean(),
            baseline_label="sentences",
        ),
        *cue_metrics(),
        *(replace(metric, where=metric.where & NONE) for metric in ABSTENTION),  # type: ignore[operator]
    )

    @property
    def layout(self) -> Layout:
        """Each task next to its control, then what a cue before the question changes."""
        return Layout(
            title=self.title,
            headlines=(
                "accuracy.wp",
                "accuracy.qa",
                "accuracy.fc",
                "accuracy.fc_generated",
                "cue.right",
                "cue.wrong",
            ),
            notes=(
                "Sentences are graded by lemmas, questions by equal names. Every name of every "
                "object that is correct for the subject counts. A statement is graded by the more "
                "likely of True and False, a tie being wrong, and by the first word generated.",
                "A fact has one value per task, the mean over its templates. True and false "
                "statements count the same, so that always stating the same scores 50%.",
            ),
            extra=task_and_cue_exhibits,
        )


def task_and_cue_exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """What is measured of each task and of each cue, over all relations."""
    overall = estimates.filter(col("group_by").list.len() == 0, over="relations")
    values = {(id, of): value for id, of, value in overall["metric", "of", "value"].iter_rows()}
    for first, title, names in EXHIBITS:
        rows = []
        for metric in Framing.metrics:
            if isinstance(metric, Metric) and metric.id.startswith(first):
                ids = {name: metric.id.replace(first, name) for name in names}
                row = {name: values.get((id, "value")) for name, id in ids.items()}
                row |= {of: values.get((metric.id, of)) for of in ("baseline", "difference")}
                rows.append({"prompts": metric.label, **row})
        frame = pl.DataFrame(rows, infer_schema_length=None).drop_nulls(first)
        yield Exhibit(first, title, frame, dict.fromkeys(frame.columns[1:], "percent"))
