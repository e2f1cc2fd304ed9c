"""Judge BEAR's answers in columns: a row for each fact in each template.

Only a fact's own objects are right, so facts of one subject are judged apart. Knows nothing of
estimates or tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Given, in_blocks
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, commonest_objects
from sonde.core.scores import Normalise
from sonde.metrics.judged import Judged, Rows, judge_facts
from sonde.metrics.verdicts import Bools, Ints, judge_block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Every judged sentence, by fact and template.

    Of each fact: the number of its `subjects`, and whether the relation's commonest object is right
    (`by_majority`). `places`: the place of each template among those of its relation, from 0.
    """

    judged: Judged
    subjects: Ints
    by_majority: Bools
    places: Ints
    ties: int


def judge(dataset: Dataset, answers: Given, normalise: Normalise = "none") -> Outcomes:
    """Judge every answer, in whatever order they come; of two for a sentence the later counts."""
    import polars

    relations = dataset.asked_relations()
    frames = [dataset.asked_frame(relation.id) for relation in relations]
    facts = polars.concat(
        frame.select("fact", "relation", "subject", "subject_id", "object_names")
        for frame in frames
    )
    numbers = {key: n for n, key in enumerate(facts.select("relation", "fact").iter_rows())}
    if len(numbers) < facts.height:
        again = facts.filter(facts.select("relation", "fact").is_duplicated())["fact"][0]
        raise DataError(f"two facts have the id {again!r}; give each fact an id of its own")
    worded = [(relation, template) for relation in relations for template in relation.templates]
    templates = {(relation.id, t.id): n for n, (relation, t) in enumerate(worded)}
    objects: list[list[list[str]]] = facts["object_names"].to_list()
    columns, said = _columns(answers, numbers, templates, objects, normalise)
    owners = np.repeat(np.arange(len(relations)), [frame.height for frame in frames])
    judged = judge_facts(
        columns,
        facts,
        relations=relations,
        owners=owners,
        templates=[relation.templates for relation in relations],
        answers=said,
        way="scored",
    )
    return Outcomes(
        judged=judged,
        subjects=facts["subject_id"].rank("dense").to_numpy().astype(np.int64),
        by_majority=_by_majority(dataset, facts["relation"].to_list(), objects),
        places=np.concatenate([np.arange(0), *(np.arange(len(r.templates)) for r in relations)]),
        ties=int(columns["tied"].sum()),
    )


def _columns(
    answers: Given,
    facts: Mapping[Any, int],
    templates: Mapping[Any, int],
    objects: list[list[list[str]]],
    normalise: Normalise,
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """How each sentence did, in the order of facts and templates, and all that was answered."""
    correct, said = dict(enumerate(objects)), dict[str, int]()
    rows = Rows("pair", "template")
    for block in in_blocks(answers):
        pair = block.numbers(("relation", "fact"), facts)
        template = block.numbers(("relation", "template"), templates)
        verdicts = judge_block(block, pair, correct, normalise)
        rows.add({"pair": pair, "template": template, **verdicts.columns(said)})
    return rows.whole(), tuple(said)


def _by_majority(dataset: Dataset, owners: list[str], objects: list[list[list[str]]]) -> Bools:
    """Of each fact, whether the commonest object of its relation is right."""
    ranked = ((id, commonest_objects(dataset.split_frame(id))) for id in dict.fromkeys(owners))
    common = {id: counts[0][0] for id, counts in ranked if counts}
    pairs = zip(owners, objects, strict=True)
    right = [any(names[0] == common[owner] for names in own) for owner, own in pairs]
    return np.array(right, dtype=np.bool_)
