"""CounterFact: is the true object of a fact more likely than the one that an edit would write?

A case is a fact with a wrong object: one that it names, or one of its relation. Its first template
tests efficacy, the others are paraphrases. Its neighbors are facts of the split `neighbourhood`
whose detail `case` names it; they are prompted with the first template. A row is about a case, so
that the prompts of a case and of its neighbors are resampled together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import polars as pl
from polars import col, element, when

from sonde.answers import Answers, OptionScores
from sonde.core.components import setting
from sonde.core.errors import DataError
from sonde.core.facts import DATE_SLOT, Dataset, Relation, commonest_objects, facts_of
from sonde.evaluation.judge import judge_options
from sonde.evaluation.layout import Layout
from sonde.evaluation.metrics import accuracy, harmonic_mean, mean
from sonde.evaluation.tables import FACT, FACTS, fact_table
from sonde.probes.base import Probe
from sonde.prompting.options import (
    draw_wrong_names,
    names_correct_for,
    names_correct_for_repeated_subjects,
)
from sonde.prompting.templates import fill_templates, usual_names
from sonde.prompts import PromptBatch, Score

NEIGHBORS = "neighbourhood"  # the split, as files of datasets spell it
ROLES = ("efficacy", "paraphrase", "neighborhood")
HELP = "share of a case's prompts after which the expected object is more likely"
SCORES = [accuracy(role, where=col("role") == role, label=role, help=HELP) for role in ROLES]


def find_cases_and_neighbors(data: Dataset, relation: Relation) -> pl.DataFrame:
    """The cases of a relation, then their neighbors: facts with further columns.

    `case` is the id of the case. `true` and `new` are the objects that are compared: the new one is
    the first that the fact names as wrong or, if it names none, one drawn from the relation's.
    `majority_true`: more facts of the relation have the true one; of equal ones the first by name.
    """
    value, name = (element().struct.field(part) for part in ("value", "name"))
    case = col("details").list.eval(value.filter(name == "case")).list.first()
    prompted = data.asked_frame(relation.id).with_columns(case="fact")
    near = data.frame(relation.id).filter(split=NEIGHBORS).with_columns(case=case)
    facts = pl.concat([prompted, near.filter(col("case").is_in(prompted["fact"].to_list()))])
    counts = dict(commonest_objects(data.split_frame(relation.id)))
    correct, pool = (
        names_correct_for_repeated_subjects(data, relation.id),
        data.object_names(relation.id),
    )
    rows = []
    for fact in facts_of(facts.drop("case")):
        names = {name for entity in fact.objects for name in entity.names}
        wrong = [entity.name for entity in fact.wrong if entity.name not in names]
        if not fact.wrong:
            names_correct = names_correct_for(fact, correct)
            wrong = list(draw_wrong_names(fact, names_correct, pool, data.selection.seed, 1)[0])
        true, new = fact.objects[0].name, next(iter(wrong), None)
        first = min((true, new or true), key=lambda name: (-counts.get(name, 0), name))
        rows.append((true, new, first == true))
    schema = {"true": pl.String, "new": pl.String, "majority_true": pl.Boolean}
    cases = facts.hstack(pl.DataFrame(rows, schema, orient="row")).drop_nulls("new")
    return cases.filter(col("case").is_in(cases["fact"].to_list()))


@dataclass(frozen=True, kw_only=True)
class Counterfact(Probe):
    """Whether a true object is more likely than a false one, also in paraphrases."""

    name, requires = "counterfact", (frozenset({"score"}),)
    axes, separate = ("role", "neighbor"), ("role",)
    metrics = (
        *SCORES,
        harmonic_mean("score", *SCORES),
        *(mean(f"{s.id}_magnitude", "difference", where=s.where, unit="points") for s in SCORES),
    )

    edited: bool = setting(
        False,
        "the model was edited: after a case's own prompts the new object should be more likely",
        analysis_only=True,
    )
    normalize: Literal["none", "tokens"] = setting(
        "none",
        "compare options by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """The cases of each relation, template by template, then their neighbors."""
        empty = True
        for relation in data.asked_relations():
            cases = find_cases_and_neighbors(data, relation)
            options = cases.select("true", "new").unique(maintain_order=True)
            numbers = options.with_row_index("options_id")
            cases = cases.join(numbers, on=("true", "new"), maintain_order="left")
            first, others = relation.templates[:1], relation.templates[1:]
            roles = [
                (role, t)
                for role, ts in zip(ROLES, (first, others, first), strict=True)
                for t in ts
            ]
            for role, template in roles:
                rows = cases.filter((col("case") != col("fact")) == (role == "neighborhood"))
                for slot in template.fact_slots:  # not every fact has every detail
                    names = col("details").list.eval(element().struct.field("name"))
                    detail = names.list.contains(slot.removeprefix("[details.")[:-1])
                    rows = rows.filter(col("date") != "" if slot == DATE_SLOT else detail)
                further = rows.select("case", "options_id", role=pl.lit(role))
                subjects = usual_names(rows).hstack(further)
                for batch in fill_templates(
                    relation, [template], subjects, Score(), options=options.rows()
                ):
                    empty = False
                    yield batch
        if empty:
            raise DataError(
                f"dataset {data.name!r} has no case to prompt: a case is a fact with a wrong "
                "object ('wrong', or another one of its relation) and with templates; those of "
                "CounterFact are read by counterfact:FILE"
            )

    def facts(self, data: Dataset) -> pl.DataFrame:
        """The cases; `prompted` has what is expected after their prompts and their neighbors'."""
        facts = fact_table(data)
        cases = pl.concat(
            [find_cases_and_neighbors(data, relation) for relation in data.asked_relations()]
        )
        is_own = col("case") == col("fact")
        expects_new = is_own & self.edited
        expected = when(expects_new).then("new").otherwise("true")
        cases = cases.with_columns(
            relation=col("relation").cast(facts.schema["relation"]),
            gold=expected,
            gold_names=pl.concat_list(expected).list.eval(element().implode()),
            baseline=col("majority_true") != expects_new,
        )
        prompted = cases.group_by("relation", fact="case").agg(
            prompted=pl.struct("fact", "gold_names", "baseline", "true")
        )
        golds = cases.filter(is_own).select(*FACT, "gold", "gold_names")
        facts = facts.update(golds, on=FACT).join(
            prompted, on=FACT, how="left", maintain_order="left"
        )
        missing = when(col("prompted").is_null()).then(pl.lit("no wrong object"))
        return facts.with_columns(excluded=missing)

    def judge(self, answers: Answers, facts: pl.DataFrame) -> pl.DataFrame:
        """Rows of cases; `neighbor` is the id of a neighbor, empty in a case's own prompts."""
        frame, result = answers.frame, cast(OptionScores, answers.result)
        cases = facts.select(col("relation").cast(pl.String), "fact", "prompted")
        cases = cases.join(frame.select("relation", fact="case"), on=FACT, how="semi")
        expected = cases.select("relation", "prompted").explode("prompted").unnest("prompted")
        none = pl.lit(None, FACTS["question_names"])
        expected = expected.with_row_index("fact_no").with_columns(question_names=none)
        logprobs = result.sums() / (result.counts() if self.normalize == "tokens" else 1)
        gaps = pl.Series(np.abs(np.diff(np.exp(logprobs).reshape(-1, 2))[:, 0]))
        rows = judge_options(answers, expected, self.normalize)
        further = expected.drop("fact_no", "gold_names", "question_names")
        rows = rows.hstack([gaps.alias("gap")])
        rows = rows.join(further, on=FACT, how="left", maintain_order="left")
        return rows.with_columns(
            fact="case",
            neighbor=when(col("case") == col("fact")).then(pl.lit("")).otherwise("fact"),
            difference=when("correct").then("gap").otherwise(-col("gap")),
        ).drop("gap", "true", "case")

    @property
    def layout(self) -> Layout:
        """The three scores and their harmonic mean, over cases."""
        expected = "the new object" if self.edited else "the true object"
        return Layout(
            headlines=(*ROLES, "score"),
            over="facts",
            browse=("relation", "subject", "role", "gold", "answer", "correct"),
            notes=(
                f"After a case's own prompts {expected} should be the more likely of two, after "
                "those of neighbors the neighbor's own. Ties are wrong. The control chooses the "
                "object that more facts of the relation have. If a case names no wrong object, one "
                "of the relation's is drawn.",
            ),
        )
