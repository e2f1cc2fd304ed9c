"""MONITOR: how far the probability of a correct answer moves with the question and with a cue.

A prompt is a question after a cue: no cue, the fact's object (the anchor) or an object that is
wrong for it. The object is scored in each prompt, and each prompt is answered in text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl
from polars import col, lit, when

from sonde.answers import Answers, OptionScores, to_arrow
from sonde.core.components import setting
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation, Template
from sonde.evaluation import metrics as m
from sonde.evaluation.estimate import Group, Metric, spread
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
    check_markers,
    phrasing,
)
from sonde.prompting.matching import begins, cleaned
from sonde.prompts import KEY, TEXTS, Generate, PromptBatch, Score

Rule = Literal["exact", "prefix", "any"]

VALID_IF: Mapping[Rule, str] = {
    "exact": "the answer after the correct cue is the cue",
    "prefix": "the answer after the correct cue begins with it",
    "any": "the answer to some prompt is the object",
}
PROMPT = dict.fromkeys((*KEY, "cue", "object", *TEXTS), pl.String)
PROMPT |= {"example_spans": pl.List(pl.Int64), "options_id": pl.UInt32}
BATCH = 64  # facts that are scored, then answered, so that equal prompts meet in a shard
SOLID = 0.8
POINTS = 2_000  # dots in a figure

SCORED = col("answer_mode") == "score"
ANCHOR, UNCUED, MISLED = (col("cue") == cue for cue in ("right", "none", "wrong"))
BASE = col("template_no") == 1
# the prompts that accuracies are over: never one whose cue is the correct answer
ANSWERED = ~SCORED & (UNCUED | MISLED & BASE)

DISTANCE, CORRECT = col("distance"), col("correct").mean()
COUNTED, VALID = (when(col(name).first()) for name in ("counted", "valid"))
PFD = DISTANCE.filter(SCORED & UNCUED).mean()
IRD = DISTANCE.filter(SCORED & MISLED).mean()
ANCHOR_PROB = col("probability").filter(SCORED & ANCHOR).first()
GROUPS = {"all": lit(True), "valid": col("valid")}  # of facts
TOLD = ("fact_no", "template_no", "cue", "object", "answer")


def distance_metric(id: str, num: pl.Expr, label: str, help: str, **more: Any) -> Metric:
    common = {"label": label, "help": help, "unit": "number", "better": "lower"}
    return Metric(id, num=num, **common | more)


DISTANCES = (
    distance_metric("pfd", COUNTED.then(PFD), "PFD", "mean distance of other questions"),
    distance_metric(
        "ird",
        COUNTED.then(IRD),
        "IRD",
        "mean distance after wrong cues",
        baseline=COUNTED.then(PFD),
        baseline_label="PFD",
    ),
    Metric("anchor_probability", num=VALID.then(ANCHOR_PROB), label="valid anchors", unit="number"),
    Metric(
        "solid_anchors", num=VALID.then(ANCHOR_PROB > SOLID), label=f"valid anchors above {SOLID:g}"
    ),
)


def even_prompts(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Every prompt of a relation weighs the same, however few facts have so many wrong cues."""
    n_facts, n_prompts = (col(n).n_unique().over("relation") for n in ("fact_no", "prompt_no"))
    n = pl.len().over("relation", "prompt_no")
    return rows.with_columns(weighted=col("correct") * n_facts / (n * n_prompts))


def over_prompts(id: str, where: pl.Expr) -> Iterator[Metric]:
    """Accuracy over the prompts of each relation: mean, base question, best, worst and spread."""
    weighted = {"num": col("weighted").sum(), "view": even_prompts}
    yield m.accuracy(f"{id}.avg", where=where, label="accuracy over prompts", **weighted)
    base = where & UNCUED & BASE
    yield Metric(f"{id}.base", num=CORRECT, where=base, label="base question")
    for name, label, stat in (
        ("max", "best prompt", lambda x, _: np.nanmax(x, axis=-1)),
        ("min", "worst prompt", lambda x, _: np.nanmin(x, axis=-1)),
        ("stdev", "SD over prompts", spread),
    ):
        better = "lower" if name == "stdev" else "higher"
        yield Metric(
            f"{id}.{name}",
            num=CORRECT,
            where=where,
            by="prompt_no",
            stat=stat,
            within=True,
            centered=True,
            label=label,
            better=better,
        )


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
        if len(self.alphas) != 3 or min(self.alphas) < 0 or not any(self.alphas):
            values = ", ".join(f"{alpha:g}" for alpha in self.alphas)
            raise UsageError(
                f"setting alphas takes three numbers, none below 0 and one above it, not {values}"
            )
        check_markers(self.markers)
        check_abstaining(self.abstaining)

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return questions(relation, self.frames or None)

    def facts(self, data: Dataset) -> pl.DataFrame:
        """As `with_cues`; correct is also what other facts state about the subject."""
        facts = with_cues(fact_table(data), data, self.shots, self.negatives)
        own, every = col("gold_names").list.eval(pl.element().explode()), col("correct_names")
        further = every.list.set_difference(own).list.sort().list.eval(pl.element().implode())
        pairs = facts["majority", "correct_names"].rows()
        silent = [
            relation.id for relation in data.asked_relations() if not self.templates(relation)
        ]
        reason = when(col("relation").is_in(silent)).then(lit("no question template"))
        return facts.with_columns(
            gold_names=pl.concat_list("gold_names", further),
            majority_correct=pl.Series(
                [self.accepts(cleaned(name), names, "") for name, names in pairs]
            ),
            excluded=reason.otherwise("excluded"),
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
                prompts, options = [], []
                for number, fact in enumerate(part.iter_rows(named=True)):
                    subject, gold = fact["subject"], fact["gold_names"][0][0]
                    shown = fact["examples"]
                    before, spans = question_examples(templates[0], shown, self.frame, around)
                    options.append((gold,))
                    cues = [(templates[0], "right", gold), *((t, "none", "") for t in templates)]
                    cues += product(
                        templates if self.full else templates[:1], ["wrong"], fact["wrong"]
                    )
                    for template, cue, name in cues:
                        text = before + question_prompt(template, subject, self.frame, name, around)
                        key = (relation.id, fact["fact"], template.id, subject)
                        prompts.append((*key, cue, name, text, "", spans, number))
                frame = pl.DataFrame(prompts, PROMPT, orient="row")
                frame = frame if self.shots else frame.drop("example_spans")
                base = col("template") == templates[0].id
                scored = frame.filter(UNCUED | ANCHOR | base)
                yield PromptBatch(frame=scored, request=Score(), options=options)
                request = Generate(max_tokens=self.max_tokens)
                yield PromptBatch(frame=frame.drop("options_id"), request=request)

    def accepts(self, answer: str, names: Sequence[str], language: str) -> bool:
        """Whether an answer is one of the names, apart from final punctuation."""
        return bool(answer) and answer in map(cleaned, names)

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        if not isinstance(answers.result, OptionScores):
            return judge_text(answers, facts, self.accepts, cleaned, abstaining(self.abstaining))
        tokens = pl.Series(to_arrow(answers.result.logprobs.values))  # of the only option
        probs = tokens.cast(pl.List(pl.Float64)).list.eval(pl.element().exp())
        frame = answers.frame.drop("options_id", strict=False)
        return frame.with_columns(token_probs=probs, answer_mode=lit("score"))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """Distances from the anchor, and which facts have a valid one."""
        wrong, lines = facts["wrong"].to_list(), []
        gold = [cleaned(objects[0][0]) for objects in facts["gold_names"].to_list()]
        for fact, template, cue, name, answer in rows.select(TOLD).iter_rows():
            others, text, cue_text = wrong[fact], answer or "", cleaned(name)
            # the place among wrong cues: those before the base question come first
            place = (template - 1) * len(others) + others.index(name) if cue == "wrong" else 0
            copied = answer == cue_text != ""
            lines.append((place, answer == gold[fact], copied, begins(text, cue_text)))
        told = pl.DataFrame(lines, ("place", "named", "copied", "begun"), orient="row")
        anchor, probs = ~SCORED & ANCHOR, col("token_probs")
        rows = rows.hstack(told)
        of_fact = rows.group_by("fact_no").agg(
            anchor_exact=(anchor & col("named")).any(),
            anchor_prefix=(anchor & col("begun")).any(),
            anchor_any=((anchor | ANSWERED) & col("named")).any(),
            anchor_probs=probs.filter(SCORED & ANCHOR).first(),
            n_lengths=probs.list.len().drop_nulls().n_unique(),
            misled=(SCORED & MISLED).any(),
        )
        rows = rows.join(of_fact, on="fact_no", maintain_order="left").filter(n_lengths=1)
        misled = when(MISLED).then(1 + col("template_no").max().over("relation") + col("place"))
        distance = (probs - col("anchor_probs")).list.eval(pl.element().abs()).list.mean()
        valid = col(f"anchor_{self.anchor}")
        return rows.with_columns(
            prompt_no=misled.when(UNCUED).then("template_no").otherwise(0),
            probability=probs.list.mean(),
            distance=distance,
            valid=valid,
            counted=valid & col("misled"),
        ).drop("^(place|named|begun|misled|n_lengths|.*_probs)$")

    @property
    def metrics(self) -> Sequence[Metric]:
        def monitor(id: str, label: str, distance: pl.Expr) -> Metric:
            one, two, three = self.alphas
            moved = (one * distance**2 + two * IRD**2 + three * distance * IRD).sqrt()
            help = "0: nothing moves the answer"
            return distance_metric(id, COUNTED.then(moved), label, help, den=ANCHOR_PROB)

        k, uncued = self.first_frames, ~SCORED & UNCUED
        first = DISTANCE.filter(SCORED & UNCUED & (col("template_no") <= k)).mean()
        copied = col("copied").filter(~SCORED & MISLED & BASE).mean()
        parts = {"accuracy": ANSWERED} | ({"full": ~SCORED & ~ANCHOR} if self.full else {})
        return (
            monitor("monitor", "MONITOR", PFD),
            monitor(f"monitor.frames.{k}", f"MONITOR of {k} questions", first),
            *DISTANCES,
            *(
                Metric(
                    f"anchor_rate.{rule}",
                    num=col(f"anchor_{rule}").first(),
                    label=f"anchors, {rule}",
                    help=help,
                )
                for rule, help in VALID_IF.items()
            ),
            Metric("copied_wrong_name", num=copied, label="wrong cues repeated", better="lower"),
            *(
                metric
                for (part, where), group in product(parts.items(), GROUPS)
                for metric in over_prompts(f"{part}.{group}", where & GROUPS[group])
            ),
            m.accuracy("accuracy.uncued", where=uncued, label="accuracy without cues"),
            *(replace(metric, where=metric.where & UNCUED) for metric in m.ABSTENTION),
        )

    @property
    def layout(self) -> Layout:
        return Layout(
            title=f"{self.frame} questions, {self.shots} examples",
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
                f"probabilities, with α = {self.alphas}. A model that only repeats its cue has "
                f"{sum(self.alphas) ** 0.5:.3f}.",
                "Accuracies are over the questions without a cue and the base question after each "
                "wrong cue. Any name of any correct object counts.",
            ),
            extra=exhibits,
        )


def exhibits(results: Results, estimates: pl.DataFrame) -> Iterator[Exhibit]:
    """What moves each fact, and how probable anchors are."""
    rows = results.table().filter("valid", SCORED)
    facts = rows.filter("counted").group_by("fact_no", label="subject", maintain_order=True)
    moved = facts.agg(x=PFD, y=IRD).drop("fact_no").collect()
    yield Exhibit(
        "framing-against-interference",
        "Distance of other questions and of wrong cues, by fact",
        moved.gather_every(max(1, -(-len(moved) // POINTS))),
        {"x": "number", "y": "number"},
        "lines",
        x_label="PFD",
        y_label="IRD",
    )
    anchors = rows.filter(ANCHOR).select("probability").collect()["probability"]
    counts, edges = np.histogram(anchors, bins=20, range=(0, 1))
    yield Exhibit(
        "anchor-probability",
        "Probability of valid anchors",
        pl.DataFrame({"x": edges[:-1], "y": counts}),
        {"x": "number", "y": "count"},
        "histogram",
        x_label="probability of the object after itself as a cue",
    )
