"""LAMA: one cloze sentence per fact, answered by one token or by scoring the relation's objects.

If facts name options of their own, these are chosen from. UHN excludes facts whose answer can be
guessed from the subject's name: the name contains it or, for persons, a part of the name suggests
it to the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl
from polars import col, element

from sonde.answers import Answers
from sonde.core.components import setting
from sonde.core.facts import NAME_PARTS, Dataset, Relation, Template, commonest_objects
from sonde.evaluation import judge as judging
from sonde.evaluation import metrics as m
from sonde.evaluation.layout import Layout
from sonde.probes.base import MaskProbe
from sonde.prompting.templates import fill_templates, name_parts, template_by_number, usual_names
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
        "what to choose from: the options that facts name, if all facts of a relation do (own), "
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

    def templates(self, relation: Relation) -> tuple[Template, ...]:
        return (template_by_number(relation, self.template_no),)

    def prompts(self, data: Dataset) -> Iterator[PromptBatch]:
        """One prompt per fact. With uhn="names" also one per part of a person's name."""
        for relation in data.asked_relations():
            facts = data.asked_frame(relation.id)
            subjects, objects = usual_names(facts), data.object_names(relation.id)
            own = own_options(facts) if self.options == "own" else None
            options: Sequence[Names] = [objects]
            request = self._request(data, relation, own)
            if own is not None and self.answer == "score":
                numbers: dict[Names, int] = {}
                ids = [numbers.setdefault(tuple(names), len(numbers)) for names in own]
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
            if self.uhn == "names" and (parts := name_parts(relation, facts)):
                template, subjects = parts
                for batch in fill_templates(
                    relation, [template], subjects, request, options=[objects]
                ):
                    yield replace(batch, cloze=False)

    def _request(
        self, data: Dataset, relation: Relation, own: pl.Series | None
    ) -> Score | FillMask:
        if self.answer == "score":
            return Score(capitalize=self.capitalize, punctuation=self.punctuation)
        targets = data.object_names(relation.id, aliases=True)
        if own is not None:
            targets = tuple(dict.fromkeys((*targets, *own.explode())))
        return FillMask(
            top_k=self.top_k,
            targets=targets,
            vocabulary=data.vocabulary if self.vocabulary == "dataset" else None,
            capitalize=self.capitalize,
        )


def own_options(facts: pl.DataFrame) -> pl.Series | None:
    """The usual names of each fact's objects and of its wrong options, sorted, so that their order
    does not show which is correct. None if a fact names no wrong options."""
    if not facts["wrong_ids"].list.len().min():
        return None
    usual = pl.concat_list("object_names", "wrong_names").list.eval(element().list.first())
    return facts.select(options=usual.list.unique().list.sort())["options"]
