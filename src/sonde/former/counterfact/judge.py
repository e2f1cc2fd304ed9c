"""Judge what was scored: which of two objects is the likelier one, a row for each prompt.

Knows facts and answers, nothing of estimates or tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.facts import Dataset, Relation, commonest_objects, facts_of
from sonde.core.scores import Normalise, sound
from sonde.metrics.judged import Grid, Judged
from sonde.metrics.verdicts import Floats, Objects, correct_options
from sonde.prompting.options import correct_for, correct_names, negatives
from sonde.prompting.sentences import stand_in

if TYPE_CHECKING:
    from polars import DataFrame

Role = Literal["efficacy", "paraphrase", "neighbourhood"]
"""A case's own prompt, one of its paraphrases, the prompt of a neighbour."""

ROLES: tuple[Role, ...] = get_args(Role)
NEIGHBOURHOOD: Role = "neighbourhood"


class Cases:
    """The cases of a relation that are asked about, and their neighbours.

    Frames of facts with further columns: `case`, the id of the case; `true` and `new`, the usual
    names of the two objects; `commoner`, whether what is true is the one that more facts of the
    relation have. The new one is the first that the fact names as wrong; where it names none, it is
    drawn by the seed from the relation's objects (`drawn` of the cases). Facts without any
    (`without`) are no cases.
    """

    def __init__(self, dataset: Dataset, relation: str) -> None:
        from polars import col, element

        asked = dataset.asked_frame(relation)
        given = element().struct.field("value").filter(element().struct.field("name") == "case")
        beside = dataset.frame(relation).filter(col("split") == NEIGHBOURHOOD)
        own = _with_objects(asked.with_columns(case="fact"), dataset, relation)
        linked = beside.with_columns(case=col("details").list.eval(given).list.first())
        of_asked = linked.filter(col("case").is_in(own["case"].to_list()))
        counts = dict(commonest_objects(dataset.split_frame(relation)))
        beside = _with_objects(of_asked, dataset, relation)
        self.own, self.neighbours = (_with_commoner(facts, counts) for facts in (own, beside))
        self.without = asked.height - own.height
        self.drawn = int((own["wrong_names"].list.len() == 0).sum())

    @property
    def every(self) -> DataFrame:
        """Cases first, then neighbours."""
        return self.own.vstack(self.neighbours)


def _with_objects(facts: DataFrame, dataset: Dataset, relation: str) -> DataFrame:
    """The facts that have two objects to compare, with these."""
    from polars import Series, String, col

    drawn = _drawn(facts.filter(col("wrong_names").list.len() == 0), dataset, relation)
    true, new = [], []
    for id, objects, wrong in facts.select("fact", "object_names", "wrong_names").iter_rows():
        right = {name for names in objects for name in names}
        named = (names[0] for names in wrong if names[0] not in right)
        true.append(objects[0][0])
        new.append(next(named, drawn.get(id)))
    both = Series("true", true, String), Series("new", new, String)
    return facts.with_columns(both).drop_nulls("new")


def _with_commoner(facts: DataFrame, counts: Mapping[str, int]) -> DataFrame:
    """The facts with whether what is true is the commoner object; of two equal ones the first by
    name."""
    from polars import Boolean, Series

    order = [
        (-counts.get(true, 0), true) < (-counts.get(new, 0), new)
        for true, new in facts.select("true", "new").iter_rows()
    ]
    return facts.with_columns(Series("commoner", order, Boolean))


def _drawn(facts: DataFrame, dataset: Dataset, relation: str) -> dict[str, str]:
    """An object of the relation for each fact that is wrong for it, where there is one."""
    if not facts.height:
        return {}
    right, pool = correct_names(dataset, relation), dataset.object_names(relation)
    seed = dataset.selection.seed
    found = (
        (fact.id, negatives(fact, correct_for(fact, right), pool, seed, most=1)[0])
        for fact in facts_of(facts.drop("case"))
    )
    return {id: names[0] for id, names in found if names}


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """Everything that was judged.

    `facts` has cases and neighbours, a row each, with the `expected` object. `prompts` has a row
    for each prompt: `fact` and `case`, the rows of the fact and of its case; `relation` and
    `template` (within the relation) by number; its `role`; `text`; `true` and `new`, the
    log-probabilities of the two objects; whether it is `right`; whether it is `guessed` by who
    always chooses the commoner object; `difference`, how much more probable what should be the
    likelier one is; and whether what is true is `named` in the text.
    `drawn`: cases whose new object was drawn; `without`: facts without any.
    """

    relations: tuple[Relation, ...]
    facts: DataFrame
    prompts: DataFrame
    drawn: int
    without: int

    def by_case(self, role: Role, column: str) -> Floats:
        """Of each fact the mean of a column over its prompts of a role; nan where it has none."""
        own = self.prompts.filter(self.prompts["role"] == role)
        case, values = own["case"].to_numpy(), own[column].cast(float).to_numpy()
        count = np.bincount(case, minlength=self.facts.height)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.bincount(case, values, self.facts.height) / count)

    def owners(self) -> NDArray[np.int64]:
        """The number of each fact's relation."""
        numbers = {relation.id: number for number, relation in enumerate(self.relations)}
        return np.array([numbers[id] for id in self.facts["relation"]], dtype=np.int64)

    def judged(self) -> Judged:
        """The prompts as other analyses take them."""
        facts, owners = self.facts, self.owners()
        fact, right = (self.prompts[name].to_numpy() for name in ("fact", "right"))
        ahead = self.prompts["ahead"].to_numpy()
        sizes = np.array([len(relation.templates) for relation in self.relations])
        names = [*facts["true"], *facts["new"]]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        said = np.array([numbers[name] for name in names], dtype=np.int64)
        sure = 1 / (1 + np.exp(-np.abs(ahead)))
        first = (np.cumsum(sizes) - sizes)[owners[fact]]
        return Judged(
            grid=Grid(
                pair=fact,
                template=first + self.prompts["template"].to_numpy(),
                name=np.zeros(len(fact), dtype=np.int64),
                right=right,
                answer=said[np.where(ahead >= 0, fact, fact + facts.height)],
                confidence=sure,
                relations=owners,
                template_relations=np.repeat(np.arange(len(sizes)), sizes),
            ),
            relations=self.relations,
            pairs=tuple(facts["fact"]),
            names=tuple((name,) for name in facts["subject"]),
            objects=tuple(facts["expected"]),
            templates=tuple(t for relation in self.relations for t in relation.templates),
            answers=tuple(numbers),
            way="scored",
            sure=sure,
            rank=np.where(right, 1, 2),
            gold_logprob=np.log(np.where(right | (ahead == 0), sure, 1 - sure)),
        )


def judge(
    dataset: Dataset, answers: Given, normalise: Normalise = "none", *, edited: bool = False
) -> Outcomes:
    """Judge every answer; of two to one prompt the later counts. Ties are wrong."""
    import polars

    relations = dataset.asked_relations()
    cases = [Cases(dataset, relation.id) for relation in relations]
    facts = polars.concat([each.every for each in cases])
    new = polars.lit(edited) & (polars.col("case") == polars.col("fact"))
    facts = facts.with_columns(expected=polars.when(new).then("new").otherwise("true"))
    keys = {
        column: zip(facts["relation"], facts[column], strict=True) for column in ("fact", "case")
    }
    places = {key: row for row, key in enumerate(keys["fact"])}
    owners = np.array([places[key] for key in keys["case"]], dtype=np.int64)
    numbers = {
        (relation.id, template.id): number
        for relation in relations
        for number, template in enumerate(relation.templates)
    }
    true = {row: [[name]] for row, name in enumerate(facts["true"])}
    parts = [_scored(block, places, numbers, true, normalise) for block in in_blocks(answers)]
    prompts = (
        polars.concat(parts).unique(("fact", "template"), keep="last").sort("fact", "template")
    )
    of = prompts["fact"].to_numpy()
    commoner = facts["commoner"].gather(of)
    return Outcomes(
        relations=relations,
        facts=facts,
        prompts=_judged(prompts.with_columns(case=owners[of], commoner=commoner), edited),
        drawn=sum(each.drawn for each in cases),
        without=sum(each.without for each in cases),
    )


def _scored(
    block: Answers,
    places: Mapping[tuple[str, str], int],
    templates: Mapping[tuple[str, str], int],
    true: Mapping[int, Objects],
    normalise: Normalise,
) -> DataFrame:
    """The log-probabilities of both objects after each prompt of a block."""
    import polars

    fact = block.numbers(("relation", "fact"), places)
    values = block.rated.compared(normalise)
    sound(values)
    is_true = correct_options(block.rated, fact, true)
    codes, roles = block.codes("role")
    return polars.DataFrame(
        {
            "fact": fact,
            "template": block.numbers(("relation", "template"), templates),
            "role": polars.Series(roles, dtype=polars.String).gather(codes),
            "text": (texts := block.texts()),
            "named": [
                stand_in(true[i][0], text) for i, text in zip(fact.tolist(), texts, strict=True)
            ],
            "true": values[is_true],
            "new": values[~is_true],
        }
    )


def _judged(prompts: DataFrame, edited: bool) -> DataFrame:
    """The prompts with whether what should be the likelier object is, and by how much."""
    from polars import col, lit, when

    expects_new = (col("role") != NEIGHBOURHOOD) & lit(edited)
    ahead, more = col("true") - col("new"), col("true").exp() - col("new").exp()
    sign = when(expects_new).then(-1.0).otherwise(1.0)
    return prompts.with_columns(
        ahead=ahead,
        right=ahead * sign > 0,
        guessed=col("commoner") != expects_new,
        difference=more * sign,
    )
