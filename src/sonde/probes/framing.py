r"""Framing: the same facts as sentences to complete, as questions, and as statements to check.

Examples, if there are any, are the same before all prompts of a task and relation, in its first
template:

    Statement: The capital of Chile is Santiago. The statement is True or False? True
    Statement: The capital of Peru is Tokyo. The statement is True or False? False
    Statement: The capital of Austria is Vienna. The statement is True or False?

A fact's accuracy in a task is its mean over the task's templates, with false statements first
averaged over their objects.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import polars as pl
from polars import col, when

from sonde.answers import Answers, OptionScores
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.core.fingerprints import draw_key
from sonde.evaluation.judge import SENT, judge_text
from sonde.evaluation.tables import FACT, fact_table
from sonde.probes.base import Probe
from sonde.prompting import cues
from sonde.prompting.abstaining import ALL, HELP, abstaining, check_abstaining
from sonde.prompting.examples import write_examples
from sonde.prompting.languages import (
    MARKERS_HELP,
    PHRASINGS,
    STOP_HELP,
    Phrasing,
    check_markers,
    phrasing,
)
from sonde.prompting.matching import LANGUAGE_HELP, OWN, check_language, cleaned, correct, language_of, word_count
from sonde.prompts import KEY, TEXTS, Generate, PromptBatch, Score

Task = Literal["wp", "qa", "fc"]  # word prediction, questions, fact checking
TRUE, FALSE, NEITHER = "True", "False", ""
ANSWER_TOKENS, VERDICT_TOKENS = 15, 5
BLOCK = 1024  # facts for which a template comes after the other, so that texts share a shard
PART = 64  # facts whose statements are scored, then generated after
PROMPT = dict.fromkeys((*KEY, "task", "cue", "object", *TEXTS), pl.String) | {"example_spans": pl.List(pl.Int64)}
Examples = tuple[tuple[str, ...], ...]  # of each fact subject, object, and a wrong object
VERDICTS = {
    word: verdict
    for around in PHRASINGS.values()
    for word, verdict in zip(around.verdicts, (TRUE, FALSE), strict=True)
}
UNSPACED = tuple(word for word in VERDICTS if word_count(word) is None)
DUE = when(col("cue") == "right").then(pl.lit(TRUE)).otherwise(pl.lit(FALSE))


def first_verdict(text: str) -> str:
    """The verdict that a text begins with, in any language.

    >>> first_verdict("true, it is"), first_verdict("It is true"), first_verdict("誤りです。")
    ('True', '', 'False')
    """
    word = re.search(r"[^\W\d_]+", text)
    if word is None:
        return NEITHER
    unspaced = filter(text[word.start() :].startswith, UNSPACED)
    return VERDICTS.get(next(unspaced, word[0].capitalize()), NEITHER)


def is_name(text: str, names: Sequence[str], language: str = "") -> bool:
    """Whether a text is one of the names, apart from final punctuation."""
    return bool(cleaned(text)) and cleaned(text) in map(cleaned, names)


@dataclass(frozen=True, kw_only=True)
class Framing(Probe):
    """The same facts as sentences, questions, statements to check, and after other names."""

    name, requires = "framing", (frozenset({"generate", "score"}),)
    axes, separate = ("task", "cue", "object"), ("task", "answer_mode", "cue")
    length_setting = "shots"

    frame: cues.Form = setting("plain", "questions as they are, or between Q: and A: (qa)")
    shots: int = setting(0, "examples of the relation before a prompt", min=0)
    paraphrases: int = setting(7, "templates of a relation for each task, at most", min=1)
    negatives: int = setting(5, "wrong objects for each fact, at most", min=1)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    language: str = setting(OWN, LANGUAGE_HELP, analysis_only=True)
    abstaining: tuple[str, ...] = setting((ALL,), HELP, analysis_only=True)

    def __post_init__(self) -> None:
        check_markers(self.markers)
        check_language(self.language)
        check_abstaining(self.abstaining)

    def tasks(self, relation: Relation) -> Mapping[Task, tuple[Template, ...]]:
        """The templates of each task, the one of its examples first."""
        n = self.paraphrases
        return {
            "wp": cues.sentences(relation, n),
            "qa": cues.questions(relation, n),
            "fc": cues.statements(relation, n),
        }

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """Questions, then sentences and statements: the base question has number 1."""
        tasks = self.tasks(relation)
        return tuple({t.id: t for task in ("qa", "wp", "fc") for t in tasks[task]}.values())

    def facts(self, data: Dataset) -> pl.DataFrame:
        """As `with_cues`; `baseline` and `baseline_lemmas`: the most common object is correct."""
        facts = cues.with_cues(fact_table(data), data, self.shots, self.negatives)
        common = {
            relation.id: next(iter(commonest_objects(data.split_frame(relation.id))), ("", 0))[0]
            for relation in data.asked_relations()
        }
        columns = facts.select("relation", "correct_names", "language").iter_rows()
        rows = [
            (is_name(common[id], names), self.accepts(common[id], names, language))
            for id, names, language in columns
        ]
        guesses = pl.DataFrame(rows, dict.fromkeys(("baseline", "baseline_lemmas"), pl.Boolean), orient="row")
        return facts.hstack(guesses)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, task by task, template by template."""
        empty, facts = True, self.facts(data).filter(col("excluded").is_null())
        for relation in data.asked_relations():
            check_language(language_of(self.language, relation.language))
            first = draw_key(data.selection.seed, f"verdict:{relation.id}") % 2
            for batch in self._prompts(relation, facts.filter(col("relation") == relation.id), first):
                empty = False
                yield batch
        if empty and facts.is_empty():
            raise DataError(
                f"dataset {data.name!r}: every fact is needed as an example, so none is left to "
                "prompt; set shots lower, or give other facts the split 'train'"
            )
        if empty:
            raise DataError(
                f"dataset {data.name!r} has no templates to prompt with: neither statements, such "
                "as '[X] was born in [Y].', nor questions, such as 'Where was [X] born? [Y].'; add "
                "some, or name other relations"
            )

    def _prompts(self, relation: Relation, facts: pl.DataFrame, first: int) -> Iterator[PromptBatch]:
        """The prompts of a relation; the verdict number `first` is that of the first example."""
        tasks, form = self.tasks(relation), self.frame
        around = phrasing(relation.language, markers=self.markers, stop=self.stop)

        def write(task: Task, template: Template, subject: str, name: str) -> str:
            if task == "wp":
                return template.fill(subject)[0]
            if task == "fc":
                return cues.statement_prompt(template, subject, name, form, around)
            return cues.question_prompt(template, subject, form, name, around)

        def answered(task: Task, facts: Examples) -> Iterator[tuple[str, str]]:
            base = tasks[task][0]
            for number, (subject, object, wrong) in enumerate(facts):
                name, answer = "", object
                if task == "fc":  # true and false statements in turn
                    verdict = (number + first) % 2
                    name, answer = (object, wrong)[verdict], around.verdicts[verdict]
                    if not name:
                        continue
                elif task == "wp":
                    answer += base.fill(subject)[1]
                yield write(task, base, subject, name), f"{answer}\n"

        @cache
        def examples(task: Task, facts: Examples) -> tuple[str, list[int]]:
            return write_examples(answered(task, facts))

        for block, (task, templates) in product(facts.iter_slices(BLOCK), tasks.items()):
            for template, part in product(templates, block.iter_slices(PART if task == "fc" else BLOCK)):
                prompts = []
                for fact in part.iter_rows(named=True):
                    named = [] if task == "fc" else [("none", "")]
                    if task == "fc" or task == "qa" and template == templates[0]:
                        named += [("right", fact["gold_names"][0][0])]
                        named += [("wrong", name) for name in fact["wrong"]]
                    shown, spans = examples(task, tuple(tuple(e.values()) for e in fact["examples"]))
                    for cue, name in named:
                        text = shown + write(task, template, fact["subject"], name)
                        key = (relation.id, fact["fact"], template.id, fact["subject"])
                        prompts.append((*key, task, cue, name, text, "", spans))
                frame = pl.DataFrame(prompts, PROMPT, orient="row")
                frame = frame if self.shots else frame.drop("example_spans")
                if task == "fc":
                    yield PromptBatch(frame=frame, request=Score(), options=(around.verdicts,))
                tokens = VERDICT_TOKENS if task == "fc" else ANSWER_TOKENS
                yield PromptBatch(frame=frame, request=Generate(max_tokens=tokens))

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether an answer contains one of the names, by lemmas."""
        return correct(answer, names, language_of(self.language, language))

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """`correct` by the rule of the task, `correct_lemmas` without cues, `verdict`, `copied`."""
        if isinstance(answers.result, OptionScores):
            sums = answers.result.sums().reshape(-1, 2)
            verdicts = np.array([[VERDICTS[name] for name in names] for names in answers.batch.options])
            likely = verdicts[answers.batch.options_ids(), sums.argmax(axis=1)]
            verdict = pl.Series(np.where(sums[:, 0] == sums[:, 1], NEITHER, likely), dtype=pl.String)
            rows = answers.frame.drop(SENT, strict=False)
            return rows.with_columns(
                verdict=verdict,
                answer=verdict,
                answer_mode=pl.lit("score"),
                correct=verdict == rows.select(DUE).to_series(),
            )
        nested = col("correct_names").list.eval(pl.element().implode())
        abstains = abstaining(self.abstaining)
        named = facts.with_columns(gold_names=nested)
        rows = judge_text(answers, named, is_name, cleaned, abstains)
        about = facts.select(col("relation").cast(pl.String), "fact", "correct_names", "language")
        about = rows.join(about, on=FACT, how="left", maintain_order="left")
        columns = about.select("task", "cue", "object", "answer", "correct_names", "language")
        graded = []
        for task, cue, object, answer, names, language in columns.iter_rows():
            lemmas = self.accepts(answer, names, language) if cue == "none" else None
            verdict = first_verdict(answer) if task == "fc" else None
            graded.append((lemmas, verdict, answer == cleaned(object) != ""))
        schema = {"correct_lemmas": pl.Boolean, "verdict": pl.String, "copied": pl.Boolean}
        rows = rows.hstack(pl.DataFrame(graded, schema, orient="row"))
        sentence = when(col("task") == "wp").then("correct_lemmas").otherwise("correct")
        rows = rows.with_columns(correct=when(col("task") == "fc").then(col("verdict") == DUE).otherwise(sentence))
        return rows.with_columns(abstained=col("abstained") & ~col("correct"))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """`agree`: a scored verdict is the one that was generated."""
        key = ["fact_no", "template_no", "cue", "object"]
        generated = rows.filter(col("task") == "fc", col("answer_mode") == "generate")
        generated = generated.select(*key, generated="verdict")
        rows = rows.join(generated, on=key, how="left", maintain_order="left")
        same = (col("verdict") == col("generated")) & (col("verdict") != NEITHER)
        return rows.with_columns(agree=when(answer_mode="score").then(same)).drop("generated")
