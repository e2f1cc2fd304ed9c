"""Judge answers against the names that count as correct: one answer, or a block a column at a time.

`judge` takes one, and is what `judge_block` is held against. Knows answers and names, nothing of
what was asked or of files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from math import exp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.answers import Answer, Filled, Scored
from sonde.core.columns import Answers, FilledColumns
from sonde.core.errors import AbilityError
from sonde.core.rated import RatedColumns
from sonde.core.scores import Normalise, option_logps, sound
from sonde.core.scores import shares as option_shares
from sonde.core.texts import folded

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max

Objects = Sequence[Sequence[str]]
"""The names of each correct object, the usual one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How an answer did.

    `rank` of the best correct name, 1 is best, ties count against it; None where no correct name
    could be answered. `probability` of all correct names together. `top` answers with theirs.
    """

    rank: int | None
    probability: float | None
    top: tuple[tuple[str, float], ...]
    tied: bool


def judge(answer: Answer, correct: Collection[str], normalise: Normalise = "none") -> Judgement:
    """Rank the correct names among what was answered."""
    if isinstance(answer, Filled):
        return _judge_one(answer, correct)
    if not isinstance(answer, Scored):
        raise AbilityError("only scored options and filled positions have ranks, not written texts")
    return _judge_scored(answer, correct, normalise)


def _judge_scored(answer: Scored, correct: Collection[str], normalise: Normalise) -> Judgement:
    logps = option_logps(answer, normalise)
    among = option_shares(logps)
    right = np.array([option in correct for option in answer.options])
    order = np.argsort(-logps, kind="stable")
    top = tuple((answer.options[i], float(among[i])) for i in order[:5])
    tied = bool((logps == logps.max()).sum() > 1)
    if not right.any():
        return Judgement(rank=None, probability=None, top=top, tied=tied)
    rank = 1 + int((logps[~right] >= logps[right].max()).sum())
    return Judgement(rank=rank, probability=float(among[right].sum()), top=top, tied=tied)


def _judge_one(answer: Filled, correct: Collection[str]) -> Judgement:
    found = [
        (rank, logp, folded(name))
        for name, rank, logp in zip(
            answer.watched, answer.watched_ranks, answer.watched_logps, strict=True
        )
        if name in correct and rank is not None and logp is not None
    ]
    sound([*answer.top_logps, *(logp for _, logp, _ in found)])
    top = tuple((w, exp(p)) for w, p in zip(answer.top[:5], answer.top_logps[:5], strict=True))
    tied = len(answer.top_logps) > 1 and answer.top_logps[0] == answer.top_logps[1]
    if not found:
        return Judgement(rank=None, probability=None, top=top, tied=tied)
    # two names that are the same token are the same answer
    mass = sum(exp(logp) for _, logp, _ in set(found))
    return Judgement(rank=min(rank for rank, _, _ in found), probability=mass, top=top, tied=tied)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """How the answers of a block did, an entry each.

    `names[answer]` is the likeliest answer (-1: none was allowed), `confidence` its probability, or
    its share among the options. `rank` of the best correct name, 1 is best, ties count against it;
    0 where no correct name could be answered. `gold_logprob` of all correct names
    together, nan where there is none. `helped` of `compared` further names of an object were
    likelier than its usual one.
    """

    names: Sequence[str]
    answer: Ints
    confidence: Floats
    rank: Ints
    gold_logprob: Floats
    tied: Bools
    helped: Ints
    compared: Ints

    def columns(self, said: dict[str, int]) -> dict[str, NDArray[Any]]:
        """The same by name; answers get the numbers that `said` has for them, or new ones."""
        distinct, index = np.unique(self.answer, return_inverse=True)
        names = (self.names[i] if i >= 0 else "" for i in distinct.tolist())
        numbers = np.array([said.setdefault(name, len(said)) for name in names], dtype=np.int64)
        return {
            "answer": numbers[index],
            **{f.name: getattr(self, f.name) for f in fields(self)[2:]},
        }


def judge_block(
    answers: Answers, owners: Ints, correct: Mapping[int, Objects], normalise: Normalise = "none"
) -> Verdicts:
    """Judge every answer; `correct[owners[i]]` are the objects that prompt i asks for."""
    if answers.kind == "filled":
        return _judge_filled(answers.filled, owners, correct)
    if answers.kind == "scored":
        return judge_options(answers.rated, owners, correct, normalise)
    raise AbilityError("only scored options and filled positions have ranks, not written texts")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """Which watched names are correct for which owner, an entry for each that is.

    `start[i]` to `start[i] + count[i]` are those of prompt i: the `place` of the name among the
    watched, the `object` of the owner's it belongs to, and whether it is the object's `usual` one.
    Two names of one `spelling` that are equally likely are one token (decision 051).
    """

    start: Ints
    count: Ints
    place: Ints
    object: Ints
    usual: Bools
    spelling: Ints

    @classmethod
    def of(cls, names: Sequence[str], owners: Ints, correct: Mapping[int, Objects]) -> Names:
        """Look the names of every owner up among some."""
        places = {name: i for i, name in enumerate(names)}
        distinct, index = np.unique(owners, return_inverse=True)
        entries: list[tuple[int, int, bool, int]] = []
        spellings: dict[str, int] = {}
        ends = [0]
        for owner in distinct.tolist():
            for number, own in enumerate(correct[owner]):
                entries += [
                    (
                        places[n],
                        number,
                        n == own[0],
                        spellings.setdefault(folded(n), len(spellings)),
                    )
                    for n in own
                    if n in places
                ]
            ends.append(len(entries))
        table = np.array(entries, dtype=np.int64).reshape(-1, 4)
        bounds = np.array(ends)
        return cls(
            start=bounds[:-1][index],
            count=np.diff(bounds)[index],
            place=table[:, 0],
            object=table[:, 1],
            usual=table[:, 2] > 0,
            spelling=table[:, 3],
        )

    def spread(self) -> tuple[Ints, Ints]:
        """For every name of every prompt: the prompt, and which entry it is."""
        rows = np.repeat(np.arange(len(self.count)), self.count)
        first = np.repeat(self.start - np.cumsum(self.count) + self.count, self.count)
        return rows, first + np.arange(len(rows))


def _judge_filled(answers: FilledColumns, owners: Ints, correct: Mapping[int, Objects]) -> Verdicts:
    count = len(answers)
    answer, best, second = _first_two(answers)
    names = Names.of(answers.watched, owners, correct)
    rows, entries = names.spread()
    ranks = answers.watched_ranks[rows, names.place[entries]].astype(np.int64)
    may = ranks > 0
    rows, entries, ranks = rows[may], entries[may], ranks[may]
    logps = answers.watched_logps[rows, names.place[entries]].astype(np.float64)
    sound([best[answer >= 0].max(initial=0.0), logps.max(initial=0.0)])
    rank = np.full(count, NEVER)
    np.minimum.at(rank, rows, ranks)
    gold, helped, compared = _names_together(rows, entries, ranks, logps, names, count)
    return Verdicts(
        names=answers.names,
        answer=answer,
        confidence=np.exp(best),
        rank=np.where(rank == NEVER, 0, rank),
        gold_logprob=gold,
        tied=best == second,
        helped=helped,
        compared=compared,
    )


def _names_together(
    rows: Ints, entries: Ints, ranks: Ints, logps: Floats, names: Names, count: int
) -> tuple[Floats, Ints, Ints]:
    """The log-probability of each prompt's correct names together, and `_further_names`."""
    if (rows[1:] > rows[:-1]).all():  # no prompt has two names
        gold, none = np.full(count, np.nan), np.zeros(count, dtype=np.int64)
        gold[rows] = logps
        return gold, none, none
    objects, usual = names.object[entries], names.usual[entries]
    tokens = np.column_stack([ranks, names.spelling[entries]])
    # by prompt, object and token: two names that are the same token are the same answer
    order = _order(objects + rows * (1 + objects.max(initial=0)), tokens, logps)
    rows, objects, usual = rows[order], objects[order], usual[order]
    tokens, logps = tokens[order], logps[order]
    distinct = _changes(rows, objects, *tokens.T, logps)
    helped, compared = _further_names(rows, objects, usual, logps, distinct, count)
    return _pooled(rows[distinct], tokens[distinct], logps[distinct], count), helped, compared


def _first_two(answers: FilledColumns) -> tuple[Ints, Floats, Floats]:
    """The likeliest answer of each prompt, and the log-probabilities of the first two."""
    short = 2 - answers.top.shape[1]
    top = np.pad(answers.top, ((0, 0), (0, max(short, 0))), constant_values=-1)
    padding = ((0, 0), (0, max(short, 0)))
    logps = np.pad(answers.top_logps.astype(np.float64), padding, constant_values=np.nan)
    return top[:, 0].astype(np.int64), logps[:, 0], logps[:, 1]


def _further_names(
    rows: Ints, objects: Ints, usual: Bools, logps: Floats, distinct: Bools, count: int
) -> tuple[Ints, Ints]:
    """Of each prompt, how many further names of its objects beat the usual one, of how many.

    Entries are in order of prompt and object; only objects whose usual name may be answered count.
    """
    group = np.cumsum(_changes(rows, objects)) - 1
    first = np.full(group[-1] + 1 if len(group) else 0, np.nan)
    first[group[usual]] = logps[usual]
    able = ~np.isnan(first)
    better = np.bincount(rows[distinct & (logps > first[group])], minlength=count)
    owner = rows[_changes(rows, objects)]
    sizes = np.bincount(group[distinct], minlength=len(first))
    compared = np.bincount(owner[able], weights=sizes[able] - 1, minlength=count)
    return better, compared.astype(np.int64)


def _pooled(rows: Ints, tokens: Ints, logps: Floats, count: int) -> Floats:
    """The log of the probabilities of each prompt's names together; nan for none."""
    order = _order(rows, tokens, logps)
    kept = order[_changes(rows[order], *tokens[order].T, logps[order])]  # of two objects, too
    return log_sums(rows[kept], logps[kept], count)


def _order(groups: Ints, tokens: Ints, logps: Floats) -> Ints:
    """Entries by group, then rank and spelling, then value; equal ranks have mostly one value."""
    ranks, spellings = tokens.T
    sizes = [1 + int(column.max(initial=0)) for column in (groups, ranks, spellings)]
    if prod(sizes) <= NEVER:
        keys = (groups * sizes[1] + ranks) * sizes[2] + spellings
        order = np.argsort(keys, kind="stable")
        same = ~_changes(keys[order])
        if not (same[1:] & (logps[order][1:] != logps[order][:-1])).any():
            return order
    return np.lexsort((logps, spellings, ranks, groups))


def log_sums(groups: Ints, logps: Floats, count: int) -> Floats:
    """The log of probabilities added up by group; nan for a group without any."""
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, groups, logps)
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.where(logps == highest[groups], 0.0, logps - highest[groups])
        total = np.bincount(groups, weights=np.exp(rest), minlength=count)
        return np.where(total > 0, highest + np.log(total), np.nan)


def _changes(*columns: NDArray[np.generic]) -> Bools:
    """Where an entry differs from the one before it in some column."""
    new = np.ones(len(columns[0]), dtype=np.bool_)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def judge_options(
    answers: RatedColumns,
    owners: Ints,
    correct: Mapping[int, Objects],
    normalise: Normalise = "none",
) -> Verdicts:
    """Judge scored options; those of several correct names count together."""
    count, prompts = len(answers), answers.owners
    assert answers.options is not None
    values = answers.compared(normalise)
    highest = np.maximum.reduceat(values, answers.bounds[:-1])
    sound(highest)
    is_best = values == highest[prompts]
    first = np.flatnonzero(is_best)[_changes(prompts[is_best])]
    right = correct_options(answers, owners, correct)
    target = np.full(count, np.inf)
    with_right = np.unique(prompts[right])
    target[with_right] = -np.inf
    np.maximum.at(target, prompts[right], values[right])
    ahead = np.bincount(prompts[~right & (values >= target[prompts])], minlength=count)
    total = log_sums(prompts, values, count)
    return Verdicts(
        names=answers.names,
        answer=answers.options[first].astype(np.int64),
        confidence=shares_of(values, answers.bounds)[first],
        rank=np.where(np.isinf(target) & (target > 0), 0, 1 + ahead),
        gold_logprob=log_sums(prompts[right], values[right], count) - total,
        tied=np.bincount(prompts[is_best], minlength=count) > 1,
        helped=np.zeros(count, dtype=np.int64),
        compared=np.zeros(count, dtype=np.int64),
    )


def shares_of(values: Floats, bounds: Ints) -> Floats:
    """The share of each option among those of its prompt, exactly as `core.scores.shares` has it.

    Prompts with as many options go together, since sums of other shapes round otherwise.
    """
    found = np.empty(len(values))
    sizes = np.diff(bounds)
    for size in np.unique(sizes).tolist():
        places = bounds[:-1][sizes == size][:, None] + np.arange(size)
        found[places] = option_shares(values[places])
    return found


def top_answers(
    answers: Answers, rows: Ints, count: int, normalise: Normalise = "none"
) -> list[tuple[tuple[str, float], ...]]:
    """The likeliest answers of some prompts, with their probabilities or shares of the options."""
    if answers.kind == "filled":
        filled = answers.filled.rows(rows)
        names, shares = filled.top[:, :count], np.exp(filled.top_logps[:, :count].astype(float))
        lists = zip(names.tolist(), shares.tolist(), strict=True)
        said = filled.names
        return [tuple((said[i], p) for i, p in zip(*own, strict=True) if i >= 0) for own in lists]
    rated = answers.rated
    values = rated.compared(normalise)
    found = []
    for start, stop in zip(
        rated.bounds[rows].tolist(), rated.bounds[rows + 1].tolist(), strict=True
    ):
        among = option_shares(values[start:stop])
        best = np.argsort(-values[start:stop], kind="stable")[:count]
        options: Any = rated.options
        found.append(tuple((rated.names[options[start + i]], float(among[i])) for i in best))
    return found


def correct_options(answers: RatedColumns, owners: Ints, correct: Mapping[int, Objects]) -> Bools:
    """Whether each option is a name of an object that its prompt asks for."""
    places = {name: i for i, name in enumerate(answers.names)}
    distinct, index = np.unique(owners, return_inverse=True)
    table = np.zeros((len(distinct), len(places)), dtype=np.bool_)
    for row, owner in enumerate(distinct.tolist()):
        own = [places[n] for names in correct[owner] for n in names if n in places]
        table[row, own] = True
    assert answers.options is not None
    return np.asarray(table[index[answers.owners], answers.options])
