"""Answers of MONITOR put in their places, whatever order they come in. Knows no estimates.

The places of a fact are its prompts in a row: the anchor, the frames with nothing told, the wrong
names in front of the base frame and, in a full grid, in front of the other frames one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Generated
from sonde.core.columns import Answers, Given
from sonde.core.facts import Template
from sonde.metrics.distance import Alphas, Monitored, Rule
from sonde.metrics.judged import Bools, Floats, Ints
from sonde.prompting.frames import Asked, Columns, LeftOut
from sonde.prompting.matching import begins, cleaned

if TYPE_CHECKING:
    from polars import DataFrame, Series

Texts = NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What a run measured, and what else is told of it, a row for each fact.

    `right` [facts, places]: whether each prompt was answered rightly, nan where it was not asked;
    `full`: the places go on through the full grid. `copied`: the share of wrong names in front of
    the base frame that are the answer, nan without any. `by_majority`: whether the relation's
    commonest object is right. `subjects`: facts with the same number have the same subject.
    `uneven` facts were left out: their object is cut into other tokens in some prompt.
    `cost`: characters read and tokens written for MONITOR itself, for the accuracies beside it
    (`accuracy`) and for the rest of the grid (`grid`).
    """

    monitored: Monitored
    left_out: LeftOut
    uneven: int
    full: bool
    right: Floats
    copied: Floats
    by_majority: Bools
    subjects: Ints
    cost: Mapping[str, tuple[int, int]]


def judge(
    asked: Asked,
    frames: Sequence[tuple[Template, ...]],
    answers: Given,
    *,
    full: bool,
    rule: Rule,
    alphas: Alphas,
    abstains: Callable[[str], bool],
    seed: int,
) -> Outcomes:
    """Take answers in any order; of two to the same prompt the later one counts.

    `frames` of each relation, the base frame first.
    """
    counts = np.array([len(frames[number]) for number in asked.relation.tolist()], dtype=np.int64)
    wrong = np.array([len(item.wrong) for item in asked.items], dtype=np.int64)
    prompts, logps = _prompts(asked, frames, answers)
    prompts = prompts.with_columns(place=_places(prompts, counts, wrong))
    stops = 1 + counts + wrong
    likely = _likely(prompts.filter(way="scored"), logps, stops)
    lengths = (~np.isnan(likely)).sum(axis=2)
    even = [len(set(own[:stop].tolist())) == 1 for own, stop in zip(lengths, stops, strict=True)]
    answered = lengths.any(axis=1)
    kept = np.flatnonzero(even & answered)
    written = prompts.filter(way="generated")
    said, right = _answers(written, 1 + counts + wrong * (counts if full else 1))
    monitored = Monitored(
        relations=asked.relations,
        frames=tuple(
            own if np.isin(number, asked.relation[kept]) else ()
            for number, own in enumerate(frames)
        ),
        facts=tuple(asked.items[c].fact for c in kept),
        relation=asked.relation[kept],
        anchor=tuple(likely[c, 0, : lengths[c, 0]] for c in kept),
        framed=tuple(likely[c, 1 : 1 + counts[c], : lengths[c, 0]] for c in kept),
        misled=tuple(likely[c, 1 + counts[c] : stops[c], : lengths[c, 0]] for c in kept),
        wrong=tuple(asked.items[c].wrong for c in kept),
        said=tuple(tuple(said[c, : stops[c]]) for c in kept),
        right=tuple(right[c, : stops[c]] == 1 for c in kept),
        abstained=tuple(np.array([*map(abstains, said[c, : stops[c]])], np.bool_) for c in kept),
        valid=_valid(asked, kept, said, stops),
        rule=rule,
        alphas=alphas,
        seed=seed,
    )
    return Outcomes(
        monitored=monitored,
        left_out=asked.left_out,
        uneven=int(answered.sum()) - len(kept),
        full=full,
        right=right[kept],
        copied=_copied(written, len(stops))[kept],
        by_majority=asked.majority_right(asked.is_right)[kept],
        subjects=asked.subject[kept],
        cost=_cost(prompts),
    )


def _prompts(
    asked: Asked, frames: Sequence[Sequence[Template]], answers: Given
) -> tuple[DataFrame, Floats]:
    """A row for each prompt, and the log-probabilities of all tokens that were scored, in a row.

    `first` and `tokens` say where those of a prompt are; `read` are the characters of its text,
    `written` the tokens of its answer.
    """
    logps: list[Floats] = [np.zeros(0)]

    def add(block: Answers, columns: Columns) -> Columns:
        read = block.frame["prefix"].str.len_chars()
        if block.kind == "generated":
            texts = cast(list[Generated], block.columns)
            return {"read": read, "written": [len(answer.logps) for answer in texts]}
        ends, before = block.rated.tokens, sum(map(len, logps))
        logps.append(block.rated.logps.astype(np.float64))
        return {"read": read, "first": before + ends[:-1], "tokens": np.diff(ends)}

    numbers = {
        (relation.id, template.id): number
        for relation, own in zip(asked.relations, frames, strict=True)
        for number, template in enumerate(own)
    }
    added = dict.fromkeys(("first", "tokens", "read", "written"), int)
    return asked.prompts(answers, numbers, add, added), np.concatenate(logps)


def _places(prompts: DataFrame, counts: Ints, wrong: Ints) -> Series:
    """Where each prompt stands among those of its fact, counted from the anchor, 0."""
    from polars import Series, col, when

    fact = prompts["fact"].to_numpy()
    misled = Series(counts[fact]) + col("template") * Series(wrong[fact]) + col("name")
    place = when(told="right").then(0).when(told="none").then(1 + col("template"))
    return prompts.select(place=place.otherwise(misled))["place"]


def _likely(scored: DataFrame, logps: Floats, stops: Ints) -> Floats:
    """The probability of every token of a prompt's object; [facts, places, tokens], nan behind."""
    fact, place, first, tokens = (
        scored[name].to_numpy() for name in ("fact", "place", "first", "tokens")
    )
    shape = (len(stops), int(stops.max(initial=1)), int(tokens.max(initial=0)))
    likely = np.full(shape, np.nan)
    row = np.repeat(np.arange(len(tokens)), tokens)
    token = np.arange(len(row)) - (np.cumsum(tokens) - tokens)[row]
    likely[fact[row], place[row], token] = np.exp(logps[first[row] + token])
    return likely


def _answers(written: DataFrame, sizes: Ints) -> tuple[Texts, Floats]:
    """What was said in each place of each fact, and whether that is right; nothing is wrong."""
    shape = (len(sizes), int(sizes.max(initial=1)))
    said = np.full(shape, "", dtype=object)
    right = np.where(np.arange(shape[1]) < sizes[:, None], 0.0, np.nan)
    at = written["fact"].to_numpy(), written["place"].to_numpy()
    said[at], right[at] = written["said"], written["right"]
    return said, right


def _valid(asked: Asked, kept: Ints, said: Texts, stops: Ints) -> dict[Rule, Bools]:
    """Whose anchor counts, by each rule."""
    golds = [cleaned(asked.items[c].gold) for c in kept]
    firsts = list(zip(golds, said[kept, 0].tolist(), strict=True))
    every = [gold in said[c, : stops[c]] for gold, c in zip(golds, kept, strict=True)]
    rules: dict[Rule, list[bool]] = {
        "exact": [text == gold for gold, text in firsts],
        "prefix": [begins(text, gold) for gold, text in firsts],
        "any": every,
    }
    return {rule: np.array(valid, dtype=np.bool_) for rule, valid in rules.items()}


def _copied(written: DataFrame, facts: int) -> Floats:
    from polars import col

    shares = written.filter(told="wrong", template=0).group_by("fact").agg(col("copied").mean())
    copied = np.full(facts, np.nan)
    copied[shares["fact"].to_numpy()] = shares["copied"]
    return copied


def _cost(prompts: DataFrame) -> dict[str, tuple[int, int]]:
    from polars import col, lit, when

    of_grid = (col("told") == "wrong") & (col("template") > 0)
    of_monitor = (col("told") == "right") | (col("way") == "scored")
    part = when(of_grid).then(lit("grid")).when(of_monitor).then(lit("monitor"))
    sums = prompts.group_by(part=part.otherwise(lit("accuracy"))).agg(col("read", "written").sum())
    return {part: (read, written) for part, read, written in sums.rows()}
