"""Questions answered from memory with lists, which are graded as sets. The default is KAMEL's way.

Each fact is asked once, after examples of how other questions are answered. An answer in the list
that names an object which another one has named counts neither for nor against.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl
from polars import col, when

from sonde.answers import Answers
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.evaluation.estimate import Metric
from sonde.evaluation.layout import Layout
from sonde.evaluation.metrics import ABSTENTION, accuracy, harmonic_mean
from sonde.evaluation.tables import FACT, fact_table
from sonde.probes.base import LemmaProbe
from sonde.prompting.examples import Context, FewShot, PromptLayout, ShotsPer
from sonde.prompting.matching import (
    clean_answer,
    is_contained,
    is_same_number_or_date,
    lemmatize,
    parse_date,
    parse_number,
)
from sonde.prompts import Generate, PromptBatch

LAYOUTS = {"kamel": "[Q] [A]%\n", "popqa": "Q: [Q] A: [A]\n\n", "lines": "Q: [Q]\nA: [A]\n"}
BATCH = 4096
OBJECTS = {
    "answer_type": pl.String,  # literal: every object is a number or a date
    "n_objects_bin": pl.String,
    "n_objects": pl.Int64,
    "baseline": pl.Float64,
}
SIZES = {"1": 1, "2": 2, "3": 3, "4-5": 5, "6+": 10**9}  # numbers of correct objects, up to

N_CORRECT, N_NAMED = col("n_correct"), col("n_correct") + col("n_wrong")
F1 = 2 * N_CORRECT / (N_NAMED + col("n_objects"))
PRECISION = Metric(
    "precision",
    num=when(N_NAMED > 0).then(N_CORRECT / N_NAMED).otherwise(0.0).mean(),
    help="mean share of the named things that are correct",
)
RECALL = Metric(
    "recall",
    num=(N_CORRECT / col("n_objects")).mean(),
    help="mean share of the correct objects that are named",
)


@dataclass(frozen=True, kw_only=True)
class Qa(LemmaProbe):
    """Questions answered with lists of objects, which are graded as sets."""

    name, requires = "qa", (frozenset({"generate"}),)
    length_setting = "shots"
    groups = ("relation", "answer_type", "n_objects_bin")
    metrics = (
        Metric("f1", num=F1.mean(), baseline=col("baseline").first(), label="F1"),
        PRECISION,
        RECALL,
        harmonic_mean("f1_of_means", PRECISION, RECALL),
        Metric("exact_set", num=(F1 == 1).mean(), help="every correct object and no other thing"),
        accuracy("any_right", baseline=None, label="any", help="a correct object is in the list"),
        *ABSTENTION,
    )

    context: Context = setting(
        "template",
        "examples before the question: none (zero-shot), of any relation (random), of the same "
        "relation, or in the same words (template)",
    )
    shots: int = setting(5, "how many examples precede a question", min=1)
    shots_per: ShotsPer = setting(
        "template", "draw examples once for each question template, or again for each fact"
    )
    prompt_layout: str = setting(
        "kamel",
        "how question and answers are written: kamel, popqa, lines, or a text with [Q], [A]",
    )
    separator: str = setting(
        "; ", "the text between two answers; empty: one answer is shown, and one is read"
    )
    instruction: str = setting("", "a line before everything")
    template_no: int = setting(1, "which question of each relation to ask, from 1", min=1)
    max_tokens: int = setting(100, "the most tokens of an answer", min=1)
    match: Literal["equal", "within"] = setting(
        "equal",
        "an answer is correct if it is a name of the object, or contains one (within)",
        analysis_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator and not self.separator.strip():
            raise UsageError(
                "setting separator must have more than spaces, such as '; ', not "
                f"{self.separator!r}"
            )
        self._prompt_layout()

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        """The question that is asked; none if the relation has too few."""
        questions = [t for t in relation.templates if t.style == "question"]
        return tuple(questions[self.template_no - 1 : self.template_no])

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """One question per fact."""
        layout = self._prompt_layout()
        request = Generate(max_tokens=self.max_tokens, stop=layout.stop_text)
        few_shot = FewShot(
            data,
            self.templates,
            lambda relation: layout,
            style="qa",
            context=self.context,
            shots=self.shots,
            shots_per=self.shots_per,
        )
        if not any(self.templates(relation) for relation in data.asked_relations()):
            number = f" {self.template_no}" if self.template_no > 1 else ""
            raise DataError(
                f"dataset {data.name!r} has no question template{number} to prompt with, such as "
                "'Where was [X] born?' with style 'question': give one with --template, or name "
                "other relations"
            )
        self.check_languages(data)
        for relation in data.asked_relations():
            for template in self.templates(relation):
                facts = data.asked_frame(relation.id).with_columns(names="subject_names")
                for part in facts.iter_slices(BATCH):
                    frame = few_shot.prompts(relation, template, part)
                    yield PromptBatch(frame=frame, request=request)

    def facts(self, data: Dataset) -> pl.DataFrame:
        """With the type and number of correct objects; `baseline`: F1 of the most common object."""
        facts = fact_table(data)
        rows = []
        for common, objects, language in facts.select(
            "majority", "gold_names", "language"
        ).iter_rows():
            correct, wrong = self._count_correct_and_wrong(common, objects, language)
            literal = all(
                parse_date(name) or parse_number(name) is not None for name, *_ in objects
            )
            size = next(name for name, most in SIZES.items() if len(objects) <= most)
            f1 = 2 * correct / (correct + wrong + len(objects))
            rows.append(("literal" if literal else "entity", size, len(objects), f1))
        silent = [r.id for r in data.asked_relations() if not self.templates(r)]
        missing = when(col("relation").is_in(silent)).then(pl.lit("no question template"))
        return facts.hstack(pl.DataFrame(rows, OBJECTS, orient="row")).with_columns(
            excluded=missing
        )

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """With the numbers of correct objects and of wrong things in each list."""
        rows = self.judge_text(answers, facts)
        about = facts.select(col("relation").cast(pl.String), "fact", "gold_names", "language")
        about = rows.select("answer", *FACT).join(about, on=FACT, how="left", maintain_order="left")
        lists = about.select("answer", "gold_names", "language").iter_rows()
        counts = [self._count_correct_and_wrong(*row) for row in lists]
        schema = {"n_correct": pl.UInt32, "n_wrong": pl.UInt32}
        return rows.hstack(pl.DataFrame(counts, schema, orient="row"))

    @property
    def layout(self) -> Layout:
        """F1 next to the most common object as the answer, then its parts."""
        between = f" between {self.separator.strip()!r}" if self.separator else ""
        rule = "is a name of the object" if self.match == "equal" else "contains a name of it"
        return Layout(
            headlines=("f1", "precision", "recall", "f1_of_means", "exact_set", "any_right"),
            browse=("relation", "subject", "gold", "answer", "correct", "n_correct", "n_wrong"),
            notes=(
                f"What is generated in the first line{between} is an answer. It is correct if it "
                f"{rule}. Words are compared by their lemmas, numbers and dates by meaning, and "
                "each object counts once. An empty list has precision 0.",
            ),
        )

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether one of the listed answers is one of the names."""
        return self._count_correct_and_wrong(answer, [names], language)[0] > 0

    def _prompt_layout(self) -> PromptLayout:
        return PromptLayout(
            text=LAYOUTS.get(self.prompt_layout, self.prompt_layout.replace("\\n", "\n")),
            head=f"{self.instruction}\n" if self.instruction else "",
            separator=self.separator,
        )

    def _count_correct_and_wrong(
        self, text: str, objects: Sequence[Sequence[str]], language: str
    ) -> tuple[int, int]:
        """How many of the objects a list names, and how many other things."""
        language = self.comparison_language(language)
        line = text.strip().partition("\n")[0]
        parts = line.split(self.separator.strip()) if self.separator else [line]
        answers = {
            lemmatize(part, language) or part: part for part in map(clean_answer, parts) if part
        }

        def equals_name(answer: str, name: str) -> bool:
            # dates and numbers are compared by meaning
            literal = is_same_number_or_date(answer, name)
            if literal is not None:
                return literal
            stated, wanted = lemmatize(answer, language), lemmatize(name, language)
            equal = is_contained(wanted, stated) if self.match == "within" else stated == wanted
            return bool(wanted) and equal

        fits = [
            [
                i
                for i, names in enumerate(objects)
                if any(equals_name(answer, name) for name in names)
            ]
            for answer in answers.values()
        ]
        owner: dict[int, int] = {}  # of each object the answer that counts for it

        def assign(answer: int, tried: set[int]) -> bool:
            for object in fits[answer]:
                if object not in tried:
                    tried.add(object)
                    if object not in owner or assign(owner[object], tried):
                        owner[object] = answer
                        return True
            return False

        right = sum(assign(answer, set()) for answer in range(len(fits)))
        return right, sum(not objects for objects in fits)
