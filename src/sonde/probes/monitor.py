"""MONITOR: how far the probability of a correct answer moves with the question and with a cue.

A prompt is a question after a cue: no cue, the fact's object (the anchor) or an object that is
wrong for it. The object is scored in each prompt, and each prompt is answered in text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, OptionScores, to_arrow
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Group, Metric
from sonde.evaluation.judge import judge_text
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import Probe
from sonde.prompting.abstaining import ALL, abstaining, check_abstaining
from sonde.prompting.abstaining import HELP as ABSTAINING_HELP
from sonde.prompting.cues import Form, question_examples, question_prompt, questions, with_cues
from sonde.prompting.languages import (
    MARKERS_HELP,
    STOP_HELP,
    Phrasing,
    check_markers,
    phrasing,
)
from sonde.prompting.matching import begins, cleaned
from sonde.prompts import Generate, PromptBatch, Score

Rule = Literal["exact", "prefix", "any"]

BATCH = 64  # facts that are scored, then answered, so that equal prompts meet in a shard
SOLID = 0.8
POINTS = 2_000  # dots in a figure

SCORED = col("answer_mode") == "score"
ANCHOR, UNCUED, MISLED = (col("cue") == cue for cue in ("right", "none", "wrong"))
BASE = col("template_no") == 1
# the prompts that accuracies are over: never one whose cue is the correct answer
ANSWERED = ~SCORED & (UNCUED | MISLED & BASE)

COUNTED, VALID = col("counted").first(), col("valid").first()
IRD = col("distance").filter(SCORED & MISLED).mean()
ANCHOR_PROBABILITY = col("probability").filter(SCORED & ANCHOR).first()


def pfd(limit: int | None = None) -> pl.Expr:
    """The mean distance of questions without a cue, or of the first of them."""
    chosen = SCORED & UNCUED if limit is None else SCORED & UNCUED & (col("template_no") <= limit)
    return col("distance").filter(chosen).mean()


def over_prompts(id: str, where: pl.Expr) -> Iterator[Metric]:
    """Accuracy over the prompts of each relation: mean, base question, best, worst and spread."""
    common: dict[str, Any] = {"baseline": None, "where": where}
    each = common | {"by": "prompt_no", "within": True, "centered": True}
    best, worst = (lambda x, _: np.nanmax(x, axis=-1)), (lambda x, _: np.nanmin(x, axis=-1))
    yield m.accuracy(f"{id}.avg", where=where, label="accuracy over prompts")
    yield m.accuracy(f"{id}.base", **common | {"where": where & UNCUED & BASE}, label="base question")
    yield m.accuracy(f"{id}.max", stat=best, **each, label="best prompt")
    yield m.accuracy(f"{id}.min", stat=worst, **each, label="worst prompt")
    yield m.accuracy(f"{id}.stdev", stat=m.spread, **each, label="SD over prompts", better="lower")


@dataclass(frozen=True, kw_only=True)
class Monitor(Probe):
    """Reliability of answers under other forms of the question and misleading cues."""

    frame: Form = setting("plain", "write questions as they are, or as 'Q: …' and 'A:' (qa)")
    shots: int = setting(
        0, "answered questions of the relation before each; small models need some", min=0
    )
    anchor: Rule = setting(
        "exact",
        "facts that count: the answer after the correct cue is the object (exact) or begins with "
        "it (prefix), or the answer to any prompt is the object (any)",
        analysis_only=True,
    )
    alphas: tuple[float, ...] = setting(
        (1 / 3, 1 / 3, 1 / 3), "weights of PFD², IRD² and PFD·IRD in MONITOR", analysis_only=True
    )
    frames: int = setting(0, "the most questions of a relation; 0 for all that it has", min=0)
    first_frames: int = setting(
        4, "MONITOR is also computed from so many questions", min=1, analysis_only=True
    )
    negatives: int = setting(5, "the most wrong objects for a fact", min=1)
    max_tokens: int = setting(15, "the most tokens of an answer", min=1)
    markers: tuple[str, ...] = setting((), MARKERS_HELP)
    stop: str = setting("", STOP_HELP)
    abstaining: tuple[str, ...] = setting((ALL,), ABSTAINING_HELP, analysis_only=True)
    full: bool = setting(False, "also answer every question after every wrong cue")

    name = "monitor"
    requires = (frozenset({"score", "generate"}),)
    axes = ("cue", "object")
    separate = ("answer_mode", "cue")
    length_setting = "shots"
    lost = "the object's tokens differ between prompts"
    groups = ("relation", Group(("relation", "template_no"), ("accuracy.uncued", "pfd"), fine=True))

    def __post_init__(self) -> None:
        if len(self.alphas) != 3:
            raise UsageError(f"setting alphas takes three numbers, not {len(self.alphas)}")
        if min(self.alphas) < 0 or max(self.alphas) <= 0:
            values = ", ".join(f"{alpha:g}" for alpha in self.alphas)
            raise UsageError(f"setting alphas: none below 0 and one above it, not {values}")
        check_markers(self.markers)
        check_abstaining(self.abstaining)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return questions(relation, self.frames or None)

    def facts(self, data: Dataset) -> pl.DataFrame:
        facts = with_cues(fact_table(data), data, self.shots, self.negatives)
        silent = [r.id for r in data.asked_relations() if not self.templates(r)]
        without = col("relation").is_in(silent)
        return facts.with_columns(
            excluded=when(without).then(lit("its relation has no question")).otherwise("excluded")
        )

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, some facts at a time: scores, then answers."""
        facts = self.facts(data).filter(col("excluded").is_null())
        if facts.is_empty():
            raise DataError(
                f"dataset {data.name!r} has no question to ask: monitor needs templates of style "
                "'question', such as --template 'Where was [X] born? [Y].', and facts that are "
                "not all examples; 'sonde data build fktc' makes questions"
            )
        for relation in data.asked_relations():
            templates = self.templates(relation)
            around = phrasing(relation.language, markers=self.markers, stop=self.stop)
            for part in facts.filter(relation=relation.id).iter_slices(BATCH):
                rows = enumerate(part.iter_rows(named=True))
                prompts = (p for i, fact in rows for p in self._of(i, fact, templates, around))
                frame = pl.DataFrame(prompts, infer_schema_length=None)
                scored = frame.filter((col("cue") != "wrong") | (col("template") == templates[0].id))
                options = [names[0][:1] for names in part["gold_names"].to_list()]
                yield PromptBatch(frame=scored, request=Score(), options=list(map(tuple, options)))
                answered = frame.drop("options_id")
                yield PromptBatch(frame=answered, request=Generate(max_tokens=self.max_tokens))

    def _of(
        self, number: int, fact: Mapping[str, Any], templates: Sequence[Template], around: Phrasing
    ) -> Iterator[dict[str, Any]]:
        """The anchor, the questions, the wrong cues; with `full` these before every question."""
        misled = templates if self.full else templates[:1]
        cues = [(templates[0], "right", fact["gold_names"][0][0]), *((t, "none", "") for t in templates)]
        cues += [(template, "wrong", name) for template, name in product(misled, fact["wrong"])]
        before, spans = question_examples(templates[0], fact["examples"], self.frame, around)
        common = {name: fact[name] for name in ("relation", "fact", "subject")}
        for template, cue, object in cues:
            text = question_prompt(template, fact["subject"], self.frame, object, around)
            prompt = {"template": template.id, "cue": cue, "object": object, "options_id": number}
            texts = {"prefix": before + text, "suffix": ""}
            yield common | prompt | texts | ({"example_spans": spans} if self.shots else {})
