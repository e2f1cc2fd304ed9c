"""LAMA: one cloze sentence per fact, answered by one token or by scoring the relation's objects.

If options are scored and facts name theirs, the answer is one of these. UHN excludes facts whose
answer can be guessed from the subject's name: the name contains it or, for persons, a part of the
name suggests it to the model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl
from polars import col

from sonde.core.components import setting
from sonde.core.facts import Dataset, Relation, Template, commonest_objects
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Layout
from sonde.probes.base import MaskProbe
from sonde.prompting.options import options_in_facts
from sonde.prompting.templates import (
    build_name_part_prompts,
    fill_templates,
    template_by_number,
    usual_names,
)
from sonde.prompts import FillMask, Names, PromptBatch, Score

UHN = ~col("guessable")
GUESS_RANK = 3  # a part of a name suggests an object among the first three answers


@dataclass(frozen=True, kw_only=True)
class Lama(MaskProbe):
    """Accuracy on cloze sentences, one per fact."""

    template_no: int = setting(1, "which template of each relation to use, from 1", min=1)
    k: int = setting(
        10, "P@k: the answer is among the k most likely ones", min=2, analysis_only=True
    )
    top_k: int = setting(10, "how many of the most likely answers to store", min=2)
    vocabulary: Literal["dataset", "full"] = setting(
        "dataset", "answers allowed when filling: the dataset's list if it has one, or any token"
    )
    options: Literal["own", "relation"] = setting(
        "own",
        "which options to score: those that facts name, if all facts of a relation do (own), "
        "or the relation's objects",
    )
    normalize: Literal["none", "tokens"] = setting(
        "none",
        "compare options by summed log-probability (none) or per token (tokens)",
        analysis_only=True,
    )
    uhn: Literal["string", "names"] = setting(
        "string", "UHN drops answers found in the subject's name; 'names' also prompts the model"
    )
    capitalize: bool = setting(
        False, "begin every sentence with a capital, also if a name or the answer opens it"
    )
    punctuation: bool = setting(
        False, "score the punctuation that closes a sentence, too, not only words"
    )

    name = "lama"
    answerable_only = True
    groups = ("relation", "kind")

    @property
    def metrics(self) -> Sequence[m.Metric]:
        uhn = "UHN, string and names" if self.uhn == "names" else "UHN, string match"
        first = (col("control_rank") == 1).mean()
        first_k = col("control_rank").is_between(1, self.k).mean()
        return (
            m.accuracy("p_at_1", label="P@1", baseline=first),
            m.accuracy("uhn.p_at_1", where=UHN, baseline=None, label=f"P@1 ({uhn})"),
            m.p_at(self.k, baseline=first_k, baseline_label=f"the {self.k} most common objects"),
            m.mrr(),
            m.mrr("uhn.mrr", where=UHN, label=f"MRR ({uhn})"),
            *m.RANKING,
        )

    @property
    def layout(self) -> Layout:
        guessed = " or a part of the name suggests it to the model" if self.uhn == "names" else ""
        choice = (
            "If all facts of a relation name options, each is answered by one of those it names."
        )
        return Layout(
            headlines=("p_at_1", "uhn.p_at_1", f"p_at_{self.k}", "mrr"),
            notes=(
                f"UHN excludes facts whose subject's name contains the object{guessed}.",
                *([choice] if self.options == "own" else []),
                *self.notes,
            ),
        )

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return (template_by_number(relation, self.template_no),)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """One prompt per fact. With uhn="names" also one per part of a person's name."""
        for relation in data.asked_relations():
            facts = data.asked_frame(relation.id)
            subjects, objects = usual_names(facts), data.object_names(relation.id)
            named = self._options_of_facts(facts)
            options: Sequence[Names] = [objects]
            request: Score | FillMask = Score(
                capitalize=self.capitalize, punctuation=self.punctuation
            )
            if self.answer == "fill":
                request = FillMask(
                    top_k=self.top_k,
                    targets=data.object_names(relation.id, aliases=True),
                    vocabulary=data.vocabulary if self.vocabulary == "dataset" else None,
                    capitalize=self.capitalize,
                )
            if named is not None:
                numbers: dict[Names, int] = {}
                ids = [numbers.setdefault(tuple(names), len(numbers)) for names in named]
                subjects = subjects.with_columns(options_id=pl.Series(ids, dtype=pl.UInt32))
                options = tuple(numbers)
            yield from fill_templates(
                relation,
                self.templates(relation),
                subjects,
                request,
                options=options,
                capitalize=self.capitalize,
                close=self.close,
            )
            if self.uhn == "names" and (parts := build_name_part_prompts(relation, facts)):
                template, subjects = parts
                for batch in fill_templates(
                    relation, [template], subjects, request, options=[objects]
                ):
                    yield replace(batch, cloze=False)

    def _options_of_facts(self, facts: pl.DataFrame) -> pl.Series | None:
        """The options that each fact names.

        None by settings, which use the relation's objects, or if some fact names none.
        """
        own = self.options == "own" and self.answer == "score"
        return options_in_facts(facts) if own and facts["wrong_ids"].list.len().min() else None

    def facts(self, data: Dataset) -> pl.DataFrame:
        """Also the rank of the best correct object if a control answers with the most common
        options first; 0 if none is there."""
        facts = super().facts(data)
        ranks, gold = [], iter(facts["gold_names"])
        for relation in data.asked_relations():
            prompted = data.asked_frame(relation.id)
            named = self._options_of_facts(prompted)
            order = rank_by_name(
                name for name, _ in commonest_objects(data.split_frame(relation.id))
            )
            for names in [[]] * prompted.height if named is None else named.to_list():
                options = sorted(names, key=lambda name: order.get(name, len(order) + 1))
                ranks.append(rank_of_first_correct(rank_by_name(options) or order, next(gold)))
        return facts.with_columns(control_rank=pl.Series(ranks, dtype=pl.UInt32))

    def combine(self, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
        """Whether the subject's name suggests the object, by the prompts with parts of it."""
        parts = col("template_no") == 0  # their template is none of the relation's
        suggested = rows.filter(parts & (col("rank") <= GUESS_RANK))["fact_no"]
        rows = rows.filter(~parts)
        contained = facts["guessable"].gather(rows["fact_no"])
        guessable = contained | rows["fact_no"].is_in(suggested.implode())
        return rows.with_columns(guessable=guessable)


def rank_by_name(names: Iterable[str]) -> dict[str, int]:
    return {name: rank for rank, name in enumerate(names, 1)}


def rank_of_first_correct(order: Mapping[str, int], gold: Iterable[Names]) -> int:
    """The rank of the first correct object if objects are answered in an order; 0 for none."""
    return min((order[names[0]] for names in gold if names[0] in order), default=0)
