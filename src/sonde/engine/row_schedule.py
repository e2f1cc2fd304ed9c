"""Which prompts go through a model together as rows of trees, behind which prefixes.

For models that take rows behind prefixes that others share; `schedule` has the other ways. Knows
token ids and a budget; nothing of tensors or prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sonde.core.rated import taken
from sonde.engine.batching import Budget
from sonde.engine.encode import Branches
from sonde.engine.prefixes import shared_prefixes
from sonde.engine.schedule import Ids, Pass, Passes, Root, Shape, halved, score_passes
from sonde.engine.token_tree import options_tree
from sonde.engine.tree_rows import Forest, grown, laid

LIKE = 7 / 8
"""A pass that is large enough takes no row that would be filled up by more than the rest."""


def tree_row_passes(
    budget: Budget,
    prompts: Sequence[Branches],
    *,
    trees: Budget | None = None,
    enough: int = 0,
    farthest: int | None = None,
) -> Passes:
    """Options of prompts as rows of trees, each row behind the prefix that it shares with others.

    The work of a pass is `TreeRows`. A pass of `enough` tokens takes only rows of like size. One
    prompt that is over budget or memory goes in parts, and a text of more than `farthest` tokens
    with others like it, as `score_passes` has them within the budget of `trees`: the work is then
    a tree.
    """
    if not prompts:
        return
    forest = grown(prompts)
    far = np.zeros(len(forest.heads), dtype=bool)
    if farthest is not None:
        far = forest.deepest > farthest
    if far.any():
        yield from _numbered(trees or budget, prompts, np.flatnonzero(far[forest.own]).tolist())
    order, prefixes = _order(forest, np.flatnonzero(~far))
    sizes = _sizes(forest, order, prefixes)
    at = 0
    while at < len(order):
        filled = np.maximum.accumulate(sizes[at:]) * np.arange(1, len(order) - at + 1)
        stop = at + _count(sizes[at:], filled <= budget.tokens, enough)
        rows = np.array(order[at:stop])
        size = len(rows) * int(sizes[at:stop].max())
        failed = size > budget.tokens and _divisible(forest, rows)
        if not failed:
            failed = bool((yield _pass(forest, rows, prefixes)))
            if failed:
                budget.halve(size)
        if failed and len(rows) == 1:
            for i in forest.prompts(rows).tolist():
                ids = prefixes[order[at]]
                yield from halved(budget, i, ids, (prompts[i].head[len(ids) :], prompts[i].spans))
        if not failed or len(rows) == 1:
            at = stop


def write_row_passes(budget: Budget, roots: Sequence[Root], *, enough: int = 0) -> Passes:
    """What is read before anything is written, as rows of trees behind prefixes.

    Rows keep what they have read and what they may write, each for the texts that go on from it.
    The budget holds as much again, so that rows may come while others go on.
    """
    if not roots:
        return
    forest = grown([Branches(head=root.ids, spans=root.options) for root in roots])
    order, prefixes = _order(forest, np.arange(len(roots)))
    sizes = _sizes(forest, order, prefixes)
    most = np.array([roots[row].most for row in order])
    texts = np.array([roots[row].texts for row in order])
    at = 0
    while at < len(order):
        held = np.maximum.accumulate((sizes + most)[at:]) * np.cumsum(texts[at:])
        count = _count(sizes[at:], 2 * held <= budget.tokens, enough)
        if (yield _write_pass(roots, forest, np.array(order[at : at + count]), prefixes)):
            budget.halve(2 * int(held[count - 1]))
        else:
            at += count


def _write_pass(
    roots: Sequence[Root], forest: Forest, rows: np.ndarray, prefixes: Mapping[int, Ids]
) -> Pass:
    members = rows.tolist()
    work = laid(forest, rows, [prefixes[row] for row in members])
    count, width = work.ids.shape
    new = [len(roots[row].ids) - len(prefixes[row]) for row in members]
    beside = [options_tree(roots[row].options).new if roots[row].options else () for row in members]
    kept = sum(map(len, work.prefixes))
    return Pass(
        members=members,
        new=new,
        padding=[width - own - sum(more) for own, more in zip(new, beside, strict=True)],
        beside=[tokens for more in beside for tokens in more],
        shapes=(Shape(rows=count, width=width, behind=kept, reads=count + len(work.reads)),),
        prefixes=[prefixes[row] for row in members],
        work=work,
        divisible=count > 1,
    )


def _sizes(forest: Forest, order: list[int], prefixes: Mapping[int, Ids]) -> np.ndarray:
    """Tokens of each row behind its prefix."""
    chains = np.array([len(forest.heads[row]) - len(prefixes[row]) for row in order])
    return np.asarray(chains + np.diff(forest.bounds)[order])


def _order(forest: Forest, rows: np.ndarray) -> tuple[list[int], dict[int, Ids]]:
    """Rows with those of a prefix together, the longest first; and the prefix of each."""
    beginnings = [forest.heads[row][:-1] for row in rows.tolist()]
    sizes = np.diff(forest.bounds) + np.array([len(head) for head in forest.heads])
    prefixes: dict[int, Ids] = {}
    groups: list[list[int]] = []
    for prefix in shared_prefixes(beginnings, again=True):
        members = rows[list(prefix.members)]
        groups.append(members[np.argsort(-sizes[members], kind="stable")].tolist())
        prefixes |= dict.fromkeys(groups[-1], prefix.ids)
    groups.sort(key=lambda group: len(prefixes[group[0]]) - int(sizes[group[0]]))
    return [row for group in groups for row in group], prefixes


def _count(sizes: np.ndarray, fits: np.ndarray, enough: int) -> int:
    """How many of the first rows of some sizes make a pass, of those that fit; at least one."""
    widest = np.maximum.accumulate(sizes)
    if enough:
        filled = widest * np.arange(len(sizes))
        unlike = (sizes < LIKE * widest) | (widest > widest[0])
        fits = fits & ~(unlike & (filled >= enough))
    return max(int(np.argmin(fits)) if not fits.all() else len(sizes), 1)


def _divisible(forest: Forest, rows: np.ndarray) -> bool:
    """Whether there is something smaller than these rows: fewer of them, or fewer options."""
    prompts = forest.prompts(rows)
    return len(rows) > 1 or int(np.diff(forest.first)[prompts].sum()) > 1


def _pass(forest: Forest, rows: np.ndarray, prefixes: Mapping[int, Ids]) -> Pass:
    members = forest.prompts(rows)
    behind = [prefixes[row] for row in rows.tolist()]
    work = laid(forest, rows, behind)
    count, width = work.ids.shape
    new = forest.new(rows, np.array([len(ids) for ids in behind]))
    # what fills a row up is paid for by its first prompt
    leading = np.diff(forest.own[members], prepend=-1) != 0
    padding = np.zeros_like(new)
    padding[leading] = width - np.add.reduceat(new, np.flatnonzero(leading))
    kept = sum(map(len, work.prefixes))
    shape = Shape(rows=count, width=width, behind=kept, reads=len(work.reads))
    return Pass(
        members=members.tolist(),
        new=new.tolist(),
        padding=padding.tolist(),
        shapes=(shape,),
        prefixes=[prefixes[row] for row in forest.own[members].tolist()],
        work=work,
        texts=taken(forest.first, members)[1],
        divisible=_divisible(forest, rows),
    )


def _numbered(budget: Budget, prompts: Sequence[Branches], members: list[int]) -> Passes:
    """How some of the prompts go as trees in one row."""
    passes = score_passes(budget, [prompts[i] for i in members])
    step = next(passes, None)
    while step is not None:
        failed = yield replace(step, members=[members[i] for i in step.members])
        try:
            step = passes.send(failed)
        except StopIteration:
            step = None
