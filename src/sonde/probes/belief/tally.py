"""Judge BELIEF's answers in columns: some bytes per prompt, so that millions fit in memory.

Knows how an answer is judged, nothing of estimates or tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.facts import Dataset, Relation, Template
from sonde.metrics.grid import Bools, Floats, Grid, Ints
from sonde.metrics.judged import Judged, Way
from sonde.metrics.verdicts import Verdicts, judge_block
from sonde.prompting.pairs import Pair, asked_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that is asked about, counted from 0: relations, their templates, their pairs."""

    relations: tuple[Relation, ...]
    templates: tuple[Template, ...]
    template_relations: Ints
    pairs: tuple[Pair, ...]
    pair_relations: Ints

    @property
    def majority(self) -> Bools:
        """For each pair, whether the relation's commonest object is correct."""
        return np.array([pair.majority for pair in self.pairs], dtype=np.bool_)


def world(dataset: Dataset, asked: Mapping[str, Sequence[Template]]) -> World:
    """Count what is asked about; `asked` are the templates of each relation."""
    relations = dataset.asked_relations()
    templates = [(r, t) for r, relation in enumerate(relations) for t in asked[relation.id]]
    pairs = [
        (r, pair)
        for r, relation in enumerate(relations)
        if asked[relation.id]
        for pair in asked_pairs(dataset, relation.id)
    ]
    return World(
        relations=relations,
        templates=tuple(t for _, t in templates),
        template_relations=np.array([r for r, _ in templates], dtype=np.int64),
        pairs=tuple(pair for _, pair in pairs),
        pair_relations=np.array([r for r, _ in pairs], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Every judged prompt, in the order of pair, template and name.

    `contents`: the log-probability of each of a relation's `candidates`, a row per template and
    content-free subject, nan where a candidate cannot be answered. `unanswerable` counts prompts
    for which no correct name is one token.
    """

    judged: Judged
    contents: Mapping[int, Mapping[tuple[int, str], Floats]]
    candidates: Mapping[int, tuple[str, ...]]
    pairs_unanswerable: int
    prompts_unanswerable: int
    ties: int


JUDGED = ("answer", "rank", "tied", "confidence", "gold", "helped", "compared")
COLUMNS = ("pair", "template", "name", *JUDGED)


def judge(known: World, answers: Given, way: Way = "filled") -> Outcomes:
    """Judge every answer, in whatever order they come; of two for a prompt the later one counts."""
    keys = Keys(known)
    columns: dict[str, list[NDArray[Any]]] = {name: [np.zeros(0, int)] for name in COLUMNS}
    said: dict[str, int] = {}
    contents: dict[int, dict[tuple[int, str], Floats]] = {}
    candidates: dict[int, tuple[str, ...]] = {}
    correct = {number: pair.objects for number, pair in enumerate(known.pairs)}
    for block in in_blocks(answers):
        place = keys.places(block)
        empty = place["pair"] < 0
        for row in np.flatnonzero(empty).tolist():
            relation, template, subject = keys.content_free(block, row)
            candidates[relation], logps = _candidates(block, row)
            contents.setdefault(relation, {})[template, subject] = logps
        owners = np.where(empty, 0, place["pair"])
        verdicts = judge_block(block, owners, correct if correct else {0: ()})
        place |= _columns(verdicts, said)
        for name in COLUMNS:
            columns[name].append(place[name][~empty])
    whole = {name: np.concatenate(parts[1:] or parts) for name, parts in columns.items()}
    return _outcomes(known, whole, said, contents, candidates, way)


class Keys:
    """Finds out which pair, template and name a prompt asks about, by the columns of its key."""

    def __init__(self, known: World) -> None:
        relations = [relation.id for relation in known.relations]
        self.relations = {id: r for r, id in enumerate(relations)}
        owners = known.template_relations.tolist()
        self.templates = {
            (relations[owners[t]], template.id): t for t, template in enumerate(known.templates)
        }
        owners = known.pair_relations.tolist()
        pairs = [(relations[owners[p]], p, pair) for p, pair in enumerate(known.pairs)]
        self.pairs = {(relation, pair.fact): p for relation, p, pair in pairs}
        self.names = {
            (relation, pair.fact, name): number
            for relation, _, pair in pairs
            for number, name in reversed(list(enumerate(pair.names)))
        }

    def places(self, block: Answers) -> dict[str, NDArray[Any]]:
        """The numbers of every prompt's pair, template and name; pair -1 for a content-free one."""
        return {
            "pair": block.numbers(("relation", "fact"), self.pairs, _none),
            "template": block.numbers(("relation", "template"), self.templates),
            "name": block.numbers(("relation", "fact", "subject"), self.names, _none),
        }

    def content_free(self, block: Answers, row: int) -> tuple[int, int, str]:
        """The relation, the template and the subject of a prompt about nothing."""
        relation, template, subject = block.names_at(row, ("relation", "template", "subject"))
        return self.relations[relation], self.templates[relation, template], subject


def _none(key: tuple[str, ...]) -> int:
    """The number of what asks about no fact; anything else must be known."""
    if key[1]:
        raise KeyError(key)
    return -1


def _columns(verdicts: Verdicts, said: dict[str, int]) -> dict[str, NDArray[Any]]:
    """What is kept of some verdicts, in few bytes."""
    columns = verdicts.columns(said)
    small: dict[str, Any] = {
        "answer": np.int32,
        "rank": np.int32,
        "confidence": np.float32,
        "gold": np.float32,
    }
    small |= dict.fromkeys(("helped", "compared"), np.int16)
    return {
        **{name: columns[name].astype(kind) for name, kind in small.items()},
        "tied": verdicts.tied,
    }


def _outcomes(
    known: World,
    columns: dict[str, NDArray[Any]],
    said: dict[str, int],
    contents: Mapping[int, Mapping[tuple[int, str], Floats]],
    candidates: Mapping[int, tuple[str, ...]],
    way: Way,
) -> Outcomes:
    order = _order(columns["pair"], columns["template"], columns["name"])
    kept = order[~np.isnan(columns["gold"][order])]
    answers = sorted(said)
    places = np.empty(len(answers), dtype=np.int64)
    places[[said[answer] for answer in answers]] = np.arange(len(answers))
    asked, left = np.unique(columns["pair"][order]), np.unique(columns["pair"][kept])
    whole = {n: columns[n][kept].astype(np.int64) for n in ("pair", "template", "name", "rank")}
    rank = whole.pop("rank")
    confidence = columns["confidence"][kept].astype(np.float64)
    grid = Grid(
        **whole,
        right=rank == 1,
        answer=places[columns["answer"][kept]],
        confidence=confidence,
        relations=known.pair_relations,
        template_relations=known.template_relations,
    )
    judged = Judged(
        grid=grid,
        relations=known.relations,
        pairs=tuple(pair.fact for pair in known.pairs),
        names=tuple(pair.names for pair in known.pairs),
        templates=known.templates,
        answers=tuple(answers),
        way=way,
        sure=confidence,
        rank=rank,
        gold=columns["gold"][kept].astype(np.float64),
        helped=columns["helped"][kept].astype(np.int64),
        compared=columns["compared"][kept].astype(np.int64),
    )
    return Outcomes(
        judged=judged,
        contents=contents,
        candidates=candidates,
        pairs_unanswerable=len(asked) - len(left),
        prompts_unanswerable=len(order) - len(kept),
        ties=int(columns["tied"][kept].sum()),
    )


def _order(pair: Ints, template: Ints, name: Ints) -> Ints:
    """Rows by pair, template and name; the last of those that are equal."""
    order = np.lexsort((name, template, pair))
    keys = np.stack([pair, template, name])[:, order]
    last = np.append((keys[:, 1:] != keys[:, :-1]).any(axis=0), True)[: len(order)]
    return np.asarray(order[last], dtype=np.int64)


def _candidates(block: Answers, row: int) -> tuple[tuple[str, ...], Floats]:
    """The candidates of a content-free prompt with their log-probabilities."""
    if block.kind == "filled":
        filled = block.filled
        logps = np.where(filled.watched_ranks[row] > 0, filled.watched_logps[row], np.nan)
        return filled.watched, logps.astype(np.float64)
    rated = block.rated.rows(row, row + 1)
    assert rated.options is not None
    return tuple(rated.names[i] for i in rated.options.tolist()), rated.sums()
