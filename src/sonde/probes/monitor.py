"""MONITOR: how far the probability of a correct answer moves with the question and with a cue.

A prompt is a question after a cue: no cue, the fact's object (the anchor) or an object that is
wrong for it. The object is scored in each prompt, and each prompt is answered in text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import polars as pl
from polars import col, lit

from sonde.answers import Answers, OptionScores, to_arrow
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.evaluation.layout import Exhibit, Layout
from sonde.evaluation.metrics import ABSTENTION, Group, Metric, accuracy, mean, standard_deviation
from sonde.evaluation.tables import Results, fact_table
from sonde.probes.base import MarkedProbe
from sonde.prompting.cues import (
    Form,
    add_cue_columns,
    question_prompt,
    question_templates,
    write_question_examples,
)
from sonde.prompting.matching import begins_with_name, clean_answer
from sonde.prompts import KEY, TEXTS, Generate, PromptBatch, Score

Rule = Literal["exact", "prefix", "any"]

VALID_IF: Mapping[Rule, str] = {
    "exact": "the answer after the correct cue is the cue",
    "prefix": "the answer after the correct cue begins with it",
    "any": "the answer to some prompt is the object",
}
PROMPT: dict[str, Any] = dict.fromkeys((*KEY, "cue", "object", *TEXTS), pl.String)
PROMPT |= {"prompt_no": pl.UInt16, "example_spans": pl.List(pl.Int64), "options_id": pl.UInt32}
BATCH = 64  # facts that are scored, then answered, so that equal prompts meet in a shard
SOLID = 0.8

ANCHOR, UNCUED, MISLED = (col("cue") == cue for cue in ("right", "none", "wrong"))
BASE = col("template_no") == 1
# the prompts that accuracies are over: never one whose cue is the correct answer
ANSWERED = UNCUED | MISLED & BASE
GROUPS = {"all": lit(True), "valid": col("valid")}  # of facts
PFD, IRD = (col("distance").filter(cue).mean() for cue in (UNCUED, MISLED))


def weigh_prompts_equally(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Every prompt of a relation weighs the same, though facts differ in their wrong cues."""
    n_facts, n_prompts = (col(n).n_unique().over("relation") for n in ("fact_no", "prompt_no"))
    n = pl.len().over("relation", "prompt_no")
    return rows.with_columns(weighted=col("correct") * n_facts / (n * n_prompts))


def accuracy_over_prompts_metrics(id: str, where: pl.Expr) -> Iterator[Metric]:
    """Accuracy over the prompts of each relation: mean, base question, best, worst and spread."""
    yield accuracy(
        f"{id}.avg",
        num=col("weighted").sum(),
        view=weigh_prompts_equally,
        where=where,
        label="accuracy over prompts",
    )
    yield mean(f"{id}.base", "correct", where=where & UNCUED & BASE, label="base question")
    best, worst = (lambda x, _: x.max(axis=-1)), (lambda x, _: x.min(axis=-1))
    by: dict[str, Any] = {"by": "prompt_no", "within": True, "centered": True, "where": where}
    yield mean(f"{id}.max", "correct", stat=best, label="best prompt", **by)
    yield mean(f"{id}.min", "correct", stat=worst, label="worst prompt", **by)
    by |= {"stat": standard_deviation, "better": "lower"}
    yield mean(f"{id}.stdev", "correct", label="SD over prompts", **by)


@dataclass(frozen=True, kw_only=True)
class CuedProbe(MarkedProbe):
    """Base of probes that prompt with questions after examples and cues."""

    frame: Form = setting("plain", "write questions as they are, or as 'Q: …' and 'A:' (qa)")
    shots: int = setting(
        0, "examples of the relation before each prompt; small models need some", min=0
    )
    negatives: int = setting(5, "the most wrong objects for a fact", min=1)

    length_setting = "shots"

    def facts(self, data: Dataset) -> pl.DataFrame:
        """As `add_cue_columns`."""
        return add_cue_columns(fact_table(data), data, self.shots, self.negatives)

    @property
    def title(self) -> str:
        return f"{self.frame} questions, {self.shots} examples"


@dataclass(frozen=True, kw_only=True)
class Monitor(CuedProbe):
    """Reliability of answers under other forms of the question and misleading cues."""

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
        4, "number of questions that MONITOR is also computed from", min=1, analysis_only=True
    )
    max_tokens: int = setting(15, "the most tokens of an answer", min=1)
    full: bool = setting(False, "also answer every question after every wrong cue")

    name = "monitor"
    requires = (frozenset({"score", "generate"}),)
    axes = ("cue", "object")
    separate = ("cue",)
    exclusion_reason = "the object's tokens differ between prompts"
    groups = ("relation", Group(("relation", "template_no"), ("accuracy.uncued", "pfd"), fine=True))

    def __post_init__(self) -> None:
        if len(self.alphas) != 3 or min(self.alphas) < 0 or not any(self.alphas):
            raise UsageError(
                "setting alphas takes three numbers, none below 0 and one above it, not "
                f"{self.alphas}"
            )
        super().__post_init__()

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return question_templates(relation, self.frames or None)

    def facts(self, data: Dataset) -> pl.DataFrame:
        facts = super().facts(data)
        pairs = facts["majority", "correct_names"].rows()
        correct = [self.accepts(clean_answer(name), names, "") for name, names in pairs]
        return facts.with_columns(majority_correct=pl.Series(correct, dtype=pl.Boolean))

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """Relation by relation, some facts at a time: scores, then answers."""
        relations = [relation for relation in data.asked_relations() if self.templates(relation)]
        facts = self.facts(data).filter(
            col("excluded").is_null(), col("relation").is_in([r.id for r in relations])
        )
        if facts.is_empty():
            raise DataError(
                f"dataset {data.name!r} has no question to ask: monitor needs templates of style "
                "'question', such as --template 'Where was [X] born? [Y].', and facts that are "
                "not all examples; 'sonde data build fktc' makes questions"
            )
        for relation in relations:
            templates = self.templates(relation)
            base, misled = templates[0], templates if self.full else templates[:1]
            around = self.phrasing_of(relation)
            for part in facts.filter(relation=relation.id).iter_slices(BATCH):
                prompts, options = [], []
                for number, fact in enumerate(part.iter_rows(named=True)):
                    subject, gold = fact["subject"], fact["gold_names"][0][0]
                    options.append((gold,))
                    cues = [(base, "right", gold), *((t, "none", "") for t in templates)]
                    cues += product(misled, ["wrong"], fact["wrong"])
                    before, spans = write_question_examples(
                        base, fact["examples"], self.frame, around
                    )
                    for prompt_no, (template, cue, name) in enumerate(cues):
                        text = before + question_prompt(template, subject, self.frame, name, around)
                        key = (relation.id, fact["fact"], template.id, subject)
                        prompts.append((*key, cue, name, text, "", prompt_no, spans, number))
                frame = pl.DataFrame(prompts, PROMPT, orient="row")
                frame = frame if self.shots else frame.drop("example_spans")
                scored = frame.filter(~MISLED | (col("template") == base.id))
                yield PromptBatch(frame=scored, request=Score(), options=options)
                request = Generate(max_tokens=self.max_tokens)
                yield PromptBatch(frame=frame.drop("options_id"), request=request)

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether an answer is one of the names, apart from final punctuation."""
        return bool(answer) and answer in map(clean_answer, names)

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        if not isinstance(answers.result, OptionScores):
            # what other facts state about the subject is correct, too
            facts = facts.with_columns(
                gold_names=col("correct_names").list.eval(pl.element().implode())
            )
            return self.judge_text(answers, facts)
        tokens = pl.Series(to_arrow(answers.result.logprobs.values))  # of the only option
        probs = tokens.cast(pl.List(pl.Float64)).list.eval(pl.element().exp())
        return answers.frame.with_columns(token_probs=probs, answer_mode=lit("score"))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """Scores next to answers: distances from the anchor, and which facts have a valid one."""
        scored, rows = (rows.filter(col("answer_mode") == mode) for mode in ("score", "generate"))
        prompt = ("fact_no", "prompt_no")
        rows = rows.drop("token_probs").join(
            scored.select(*prompt, "token_probs"), on=prompt, how="left", maintain_order="left"
        )
        gold = [clean_answer(objects[0][0]) for objects in facts["gold_names"].to_list()]
        lines = []
        for fact, name, answer in rows["fact_no", "object", "answer"].rows():
            cue = clean_answer(name)
            lines.append((answer == gold[fact], answer == cue != "", begins_with_name(answer, cue)))
        rows = rows.hstack(pl.DataFrame(lines, ("named", "copied", "begun"), orient="row"))
        probs = col("token_probs")
        of_fact = rows.group_by("fact_no").agg(
            anchor_exact=(ANCHOR & col("named")).any(),
            anchor_prefix=(ANCHOR & col("begun")).any(),
            anchor_any=((ANCHOR | ANSWERED) & col("named")).any(),
            anchor_probs=probs.filter(ANCHOR).first(),
            n_lengths=probs.list.len().drop_nulls().n_unique(),
            misled=MISLED.any(),
        )
        rows = rows.join(of_fact, on="fact_no", maintain_order="left").filter(n_lengths=1)
        distance = (probs - col("anchor_probs")).list.eval(pl.element().abs()).list.mean()
        valid = col(f"anchor_{self.anchor}")
        return rows.with_columns(
            probability=probs.list.mean(),
            distance=distance,
            valid=valid,
            counted=valid & col("misled"),
        ).drop("^(named|begun|misled|n_lengths|options_id|.*_probs)$")

    @property
    def metrics(self) -> Sequence[Metric]:
        one, two, three = self.alphas
        k, anchors = self.first_frames, ANCHOR & col("valid")
        first = col("distance").filter(UNCUED & (col("template_no") <= k)).mean()
        few = (f"monitor.frames.{k}", f"MONITOR of {k} questions", first)
        number: Any = {"where": col("counted"), "unit": "number", "better": "lower"}
        parts = {"accuracy": ANSWERED} | ({"full": ~ANCHOR} if self.full else {})
        return (
            *(
                Metric(
                    id,
                    num=(one * pfd**2 + two * IRD**2 + three * pfd * IRD).sqrt(),
                    den=col("probability").filter(ANCHOR).first(),
                    label=label,
                    help="0: nothing moves the answer",
                    **number,
                )
                for id, label, pfd in (("monitor", "MONITOR", PFD), few)
            ),
            Metric("pfd", num=PFD, label="PFD", help="mean distance of other questions", **number),
            Metric(
                "ird",
                num=IRD,
                baseline=PFD,
                baseline_label="PFD",
                label="IRD",
                help="mean distance after wrong cues",
                **number,
            ),
            mean("anchor_probability", "probability", where=anchors, unit="number"),
            mean(
                "solid_anchors",
                col("probability") > SOLID,
                where=anchors,
                label=f"anchors above {SOLID:g}",
            ),
            *(
                mean(f"anchor_rate.{rule}", f"anchor_{rule}", label=f"anchors, {rule}", help=help)
                for rule, help in VALID_IF.items()
            ),
            mean(
                "copied_wrong_name",
                "copied",
                where=MISLED & BASE,
                label="wrong cues repeated",
                better="lower",
            ),
            *(
                metric
                for (part, where), group in product(parts.items(), GROUPS)
                for metric in accuracy_over_prompts_metrics(
                    f"{part}.{group}", where & GROUPS[group]
                )
            ),
            accuracy("accuracy.uncued", where=UNCUED, label="accuracy without cues"),
            *(replace(metric, view=lambda rows: rows.filter(UNCUED)) for metric in ABSTENTION),
        )

    @property
    def layout(self) -> Layout:
        return Layout(
            title=self.title,
            headlines=(
                *("monitor", "pfd", "ird", "accuracy.all.avg", "accuracy.all.stdev"),
                "anchor_probability",
            ),
            verdict="accuracy.all.avg",
            columns=("solid_anchors", "accuracy.all.max", "accuracy.all.min", "accuracy.all.base"),
            browse=("relation", "subject", "gold", "answer", "correct", "distance", "valid"),
            notes=(
                f"An anchor is valid if {VALID_IF[self.anchor]}. Answers are compared by their "
                "first line without final punctuation.",
                "MONITOR is the sum of √(α₁PFD² + α₂IRD² + α₃PFD·IRD) over the sum of the anchors' "
                "probabilities. A model that only repeats its cue has "
                f"{sum(self.alphas) ** 0.5:.3f}.",
                "Accuracies are over the questions without a cue and the base question after each "
                "wrong cue. Any name of any correct object counts.",
            ),
            extra=prompt_influence_exhibits,
        )


def prompt_influence_exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """What moves the answer to each fact."""
    rows = results.table().filter("counted")
    facts = rows.group_by("fact_no", label="subject", maintain_order=True)
    moved = facts.agg(x=PFD, y=IRD).drop("fact_no").collect()
    yield Exhibit(
        "framing-against-interference",
        "Distance of other questions and of wrong cues, by fact",
        moved.gather_every(1 + len(moved) // 2000),  # dots that a figure can show
        {"x": "number", "y": "number"},
        "lines",
        x_label="PFD",
        y_label="IRD",
    )
