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
from sonde.metrics.grid import Floats, Grid, Ints
from sonde.metrics.judged import Judged, Way
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
    whole = {n: columns[n][kept].astype(np.int64) for n in ("pair", "template", "name")}
    rank = columns["rank"][kept]
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
