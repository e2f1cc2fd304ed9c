"""How often two prompts of one pair get the same answer.

Every number is a mean over pairs, with the bootstrap over pairs as its interval. A pair without two
prompts to compare is left out, and n does not count it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from sonde.core.facts import Template
from sonde.core.reports import Estimate
from sonde.metrics.accuracy import worst_best_mean
from sonde.metrics.grid import Floats, Grid, Ints, Part
from sonde.metrics.judged import mean_over_pairs

Agreeing = Callable[[Ints, Ints, int], tuple[Ints, Ints]]
"""Given the group and the answer of each row and the number of groups: per group, how many pairs
of its rows agree, and how many pairs there are."""


def agreement(grid: Grid, agreeing: Agreeing | None = None) -> Floats:
    """Share of each pair's unordered prompt pairs with equal answers; nan where it has one."""

    def share(part: Part) -> Floats:
        own, agree = part.grid, agreeing or equal_answers
        return _share(*agree(own.pair, own.answer, len(part.pairs)))

    return grid.of_pairs(share)


def consist_of_texts(
    grid: Grid, texts: Sequence[str], matches: Callable[[str, str], bool], seed: int = 0
) -> Estimate:
    """The same where answers match without being equal; `texts[a]` is what answer a says.

    `matches` must not depend on the order of the two; it need not be transitive. It is asked about
    answers that differ; equal ones agree. The empty answer "" agrees with itself alone.
    """
    agreeing = matching_answers(texts, matches)
    same, possible = agreeing(grid.pair, grid.answer, len(grid.relations))
    return mean_over_pairs(_share(same, possible), grid, seed)


def names_only(grid: Grid, agreeing: Agreeing | None = None) -> tuple[Floats, Floats, Floats]:
    """What subject names alone do, under one template (BELIEF's table 12, "Subject").

    consist: agreement over names, averaged over a pair's templates; pairs with two names or more.
    min, max: share of a pair's templates under which every name, or some name, is right, averaged
    over all pairs. Not measured where no pair has two names.

    A value for each pair, nan where it has none.
    """
    agreement = over_names(grid, agreeing)
    every, some = np.full((2, len(grid.relations)), np.nan)
    for block in grid.blocks if not np.isnan(agreement).all() else ():
        asked = (block.asked > 0).sum(axis=1)
        all_right = (block.asked > 0) & (block.right == block.asked)
        every[block.pairs] = all_right.sum(axis=1) / asked
        some[block.pairs] = block.known.sum(axis=1) / asked
    return agreement, every, some


def templates_only(grid: Grid, agreeing: Agreeing | None = None) -> tuple[Floats, Floats, Floats]:
    """What templates alone do, under one subject name (BELIEF's table 12, "Relation").

    consist: agreement over templates, averaged over a pair's names. min, max: accuracy of the worst
    and of the best template of each relation, weighted by pairs; the intervals are those of the
    templates found. Not measured where no name is asked under two templates.

    A value for each pair, nan where it has none.
    """
    agreement = over_templates(grid, agreeing)
    if np.isnan(agreement).all():
        return agreement, agreement, agreement
    worst, best, _ = worst_best_mean(grid)
    return agreement, worst, best


def over_names(grid: Grid, agreeing: Agreeing | None = None) -> Floats:
    """Agreement of each pair over names, averaged over its templates; nan where it has one name."""

    def share(part: Part) -> Floats:
        shape, agree = (len(part.pairs), len(part.templates)), agreeing or equal_answers
        return _mean_share(agree(part.cells, part.grid.answer, shape[0] * shape[1]), shape)

    return grid.of_pairs(share)


def over_templates(grid: Grid, agreeing: Agreeing | None = None) -> Floats:
    """Agreement of each pair over templates, averaged over its names; nan where it has one."""

    def share(part: Part) -> Floats:
        own, agree = part.grid, agreeing or equal_answers
        shape = (len(part.pairs), int(own.name.max(initial=0)) + 1)
        keys = _keys(own.pair, shape[1]) + own.name
        return _mean_share(agree(keys, own.answer, shape[0] * shape[1]), shape)

    return grid.of_pairs(share)


def within_groups(
    grid: Grid, groups: Ints, agreeing: Agreeing | None = None
) -> tuple[Floats, Floats]:
    """Agreement of a pair's prompts in a paraphrase group and across groups (BELIEF's table 13).

    groups [templates]: the group of each, -1 where the data name none; those prompts are left out.

    A value for each pair, nan where it has none.
    """
    agree = agreeing or equal_answers

    def shares(part: Part) -> Floats:
        of_template, pairs = groups[part.templates], len(part.pairs)
        kept = part.grid.rows(of_template[part.grid.template] >= 0)
        if not len(kept):
            return np.full((2, pairs), np.nan)
        numbers, own = np.unique(of_template, return_inverse=True)
        keys = _keys(kept.pair, len(numbers)) + own[kept.template]
        inside = agree(keys, kept.answer, pairs * len(numbers))
        inner, inner_pairs = (of.reshape(pairs, -1).sum(axis=1) for of in inside)
        every, all_pairs = agree(kept.pair, kept.answer, pairs)
        across = every - inner, all_pairs - inner_pairs
        return np.stack([_share(inner, inner_pairs), _share(*across)])

    inner, inter = grid.of_pairs(shares)
    return inner, inter


def paraphrase_groups(templates: Sequence[Template], owners: Ints) -> Ints:
    """The paraphrase group of each template; -1 where its relation has no group of two.

    owners [templates]: the relation of each.
    """
    keys = [(owner, t.group) for owner, t in zip(owners.tolist(), templates, strict=True)]
    sizes = Counter(key for key in keys if key[1])
    grouped = {owner for (owner, _), size in sizes.items() if size > 1}
    numbers = {key: i for i, key in enumerate(key for key in sizes if key[0] in grouped)}
    return np.array([numbers.get(key, -1) for key in keys], dtype=np.int64)


def equal_answers(group: Ints, answer: Ints, groups: int) -> tuple[Ints, Ints]:
    """Per group, how many pairs of its rows have equal answers, and how many pairs there are."""
    sizes = np.bincount(group, minlength=groups)
    answers = int(answer.max(initial=0)) + 1
    ordered = np.sort(_keys(group, answers) + answer)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    runs = np.diff(first, append=len(ordered))
    same = np.bincount(ordered[first] // answers, weights=_couples(runs), minlength=groups)
    return same.astype(np.int64), _couples(sizes)


def matching_answers(texts: Sequence[str], matches: Callable[[str, str], bool]) -> Agreeing:
    """Agreement of answers that match without being equal, as `consist_of_texts` has it."""

    @lru_cache(maxsize=1 << 16)
    def agree(a: int, b: int) -> bool:
        return bool(texts[a] and texts[b]) and matches(texts[a], texts[b])

    def agreeing(group: Ints, answer: Ints, groups: int) -> tuple[Ints, Ints]:
        same, possible = equal_answers(group, answer, groups)
        codes, counts = np.unique(_keys(group, len(texts)) + answer, return_counts=True)
        owners, said = np.divmod(codes, len(texts))
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(owners)]):
            own = list(zip(said[start:stop].tolist(), counts[start:stop].tolist(), strict=True))
            alike = sum(n * m for (a, n), (b, m) in combinations(own, 2) if agree(a, b))
            same[owners[start]] += alike
        return same, possible

    return agreeing


def _keys(numbers: Ints, many: int) -> Ints:
    """Numbers with room for `many` others beside each."""
    return numbers.astype(np.int64) * many


def _couples(n: Ints) -> Ints:
    return n * (n - 1) // 2


def _share(same: Ints, possible: Ints) -> Floats:
    """Share of pairs that agree; nan where there are none."""
    return np.where(possible > 0, same / np.maximum(possible, 1), np.nan)


def _mean_share(agreed: tuple[Ints, Ints], shape: tuple[int, int]) -> Floats:
    """Mean share of agreement over the groups of each pair, nan where none can be compared.

    shape: pairs, and how many groups each has.
    """
    shares = _share(*agreed).reshape(shape)
    number = (~np.isnan(shares)).sum(axis=1)
    return np.where(number > 0, np.nansum(shares, axis=1) / np.maximum(number, 1), np.nan)
