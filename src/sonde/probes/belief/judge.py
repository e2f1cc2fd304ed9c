"""Judge BELIEF's answers in columns: some bytes per prompt, so that millions fit in memory.

Knows how an answer is judged, nothing of estimates or tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, Given, in_blocks
from sonde.metrics.judged import Floats, Grid, Judged, Way, in_words
from sonde.metrics.verdicts import Verdicts, judge_block
from sonde.prompting.pairs import Keys, World


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
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
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
    # each column's parts go as it is joined, so that few of them are there twice
    none = [np.zeros(0, dtype=np.int32)]
    whole = {name: np.concatenate(columns.pop(name) or none) for name in COLUMNS}
    return _outcomes(known, whole, said, contents, candidates, way)


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
    columns = _ordered(columns)
    asked = np.unique(columns["pair"])
    answerable = ~np.isnan(columns["gold"])
    prompts = len(answerable)
    columns = {name: columns.pop(name)[answerable] for name in COLUMNS}
    left = np.unique(columns["pair"])
    answers = sorted(said)
    places = np.empty(len(answers), dtype=np.int32)
    places[[said[answer] for answer in answers]] = np.arange(len(answers))
    rank, confidence = columns["rank"], columns["confidence"].astype(np.float64)
    grid = Grid(
        pair=columns["pair"],
        template=columns["template"],
        name=columns["name"],
        right=rank == 1,
        answer=places[columns["answer"]],
        confidence=confidence,
        relations=known.pair_relations,
        template_relations=known.template_relations,
    )
    judged = Judged(
        grid=grid,
        relations=known.relations,
        pairs=tuple(pair.fact for pair in known.pairs),
        names=tuple(pair.names for pair in known.pairs),
        objects=tuple(in_words(names[0] for names in pair.objects) for pair in known.pairs),
        templates=known.templates,
        answers=tuple(answers),
        way=way,
        sure=confidence,
        rank=rank,
        gold=columns["gold"].astype(np.float64),
        helped=columns["helped"],
        compared=columns["compared"],
    )
    return Outcomes(
        judged=judged,
        contents=contents,
        candidates=candidates,
        pairs_unanswerable=len(asked) - len(left),
        prompts_unanswerable=prompts - len(rank),
        ties=int(columns["tied"].sum()),
    )


def _ordered(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Rows by pair, template and name; of those that are equal the last. They may be so already."""
    key = columns["pair"].astype(np.int64)
    for name in ("template", "name"):
        key = key * (int(columns[name].max(initial=0)) + 1) + columns[name]
    if (key[1:] > key[:-1]).all():
        return columns
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    last = np.append(ordered[1:] != ordered[:-1], True)[: len(order)]
    return {name: columns.pop(name)[order[last]] for name in COLUMNS}


def _candidates(block: Answers, row: int) -> tuple[tuple[str, ...], Floats]:
    """The candidates of a content-free prompt with their log-probabilities."""
    if block.kind == "filled":
        filled = block.filled
        logps = np.where(filled.watched_ranks[row] > 0, filled.watched_logps[row], np.nan)
        return filled.watched, logps.astype(np.float64)
    rated = block.rated.rows(slice(row, row + 1))
    assert rated.options is not None
    return tuple(rated.names[i] for i in rated.options.tolist()), rated.sums()
