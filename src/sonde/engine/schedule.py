"""Which texts go through a model in one pass, behind which prefix, in which order.

A scheduler yields passes. Whoever runs one (a model, with tensors) sends back True where memory ran
out, and smaller passes follow; `dry_run` counts the same passes without running them. Knows token
ids and a budget; nothing of tensors or prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from sonde.engine.batching import Budget, Scheduled, packing
from sonde.engine.encode import Branches, Span, lengthened
from sonde.engine.prefixes import shared, shared_prefixes
from sonde.engine.spans import SpanTokens
from sonde.engine.token_tree import (
    PromptTexts,
    Reading,
    TokenTree,
    merge,
    merge_prompts,
    merge_texts,
    options_tree,
    tip,
)

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One forward pass: `rows` of `width` tokens `behind` so many kept, read at `reads` places."""

    rows: int
    width: int
    behind: int
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Texts that go through a model together.

    `members`: the positions of what they are scheduled for, as given to the scheduler; `new[k]` and
    `padding[k]` are the tokens that the k-th of them adds, and those that only make rows equally
    long. `beside`: tokens that each option beside a written text adds. `prefix`: tokens whose keys
    and values come before; `prefixes`: those of each member, where they differ. `work`: what an
    executor needs beside the positions. `first`: which option comes first here, where those of one
    prompt come in parts. `texts`: the numbers of the members' texts among those of all prompts,
    where they do not follow from the members. `divisible`: whether there is something smaller to
    try where memory runs out.
    """

    members: list[int]
    new: Sequence[int]
    shapes: tuple[Shape, ...]
    padding: Sequence[int] = ()
    beside: Sequence[int] = ()
    prefix: Ids = ()
    prefixes: Sequence[Ids] = ()
    work: Any = None
    first: int = 0
    texts: Sequence[int] | np.ndarray = ()
    divisible: bool = True

    @property
    def size(self) -> int:
        """Tokens that go through at once, at most."""
        return max((shape.rows * shape.width for shape in self.shapes), default=0)


Passes = Scheduled[Pass]


def row_passes(
    budget: Budget,
    lengths: Sequence[int] | Mapping[int, int],
    *,
    owners: Sequence[int] | None = None,
    enough: int | None = None,
    packed: int = 0,
) -> Passes:
    """Texts as padded rows; the work of a pass is their positions, its members are `owners`.

    `enough` as for `batches`. Short ones of equal length are laid end to end in rows of `packed`
    tokens, where that is not 0, and the last row is filled up.
    """

    def build(batch: list[int]) -> Pass:
        width = lengths[batch[0]]
        padding = [width - lengths[i] for i in batch]
        each = packing(len(batch), width, packed) if padding[-1] == 0 else 1
        missing = -len(batch) % each
        padding[-1] += missing * width
        return Pass(
            members=batch if owners is None else [owners[i] for i in batch],
            new=[lengths[i] for i in batch],
            padding=padding,
            shapes=(Shape(rows=len(batch) + missing, width=width, behind=0, reads=len(batch)),),
            work=batch,
            divisible=len(batch) > 1,
        )

    return budget.schedule(lengths, build, enough=enough)


def _behind_prefixes(
    budget: Budget,
    beginnings: Sequence[Ids],
    length: Callable[[Ids, int], int],
    build: Callable[[Ids, list[int]], Pass],
    alone: Callable[[Ids, int], Passes] | None = None,
) -> Passes:
    """Texts in passes behind the prefix that they share; none is padded.

    Behind a prefix, `length` tells how many tokens a text has, `build` makes a pass of some, and
    `alone` schedules one that is a pass by itself.
    """
    for prefix in shared_prefixes(beginnings):
        yield from budget.schedule(
            {i: length(prefix.ids, i) for i in prefix.members},
            partial(build, prefix.ids),
            padded=False,
            alone=alone and partial(alone, prefix.ids),
        )


def score_passes(budget: Budget, prompts: Sequence[Branches]) -> Passes:
    """Options of prompts as trees; those of prompts that begin alike go behind their prefix.

    The work of a pass is its tree. The options of one prompt may come in several passes, in order.
    """

    def rest(prefix: Ids, i: int) -> PromptTexts:
        return prompts[i].head[len(prefix) :], prompts[i].spans

    def length(prefix: Ids, i: int) -> int:
        return len(prompts[i].head) - len(prefix) + len(options_tree(prompts[i].spans).ids)

    def build(prefix: Ids, members: list[int]) -> Pass:
        return _tree_pass(members, prefix, merge_prompts([rest(prefix, i) for i in members]))

    def alone(prefix: Ids, i: int) -> Passes:
        return halved(budget, i, prefix, rest(prefix, i))

    beginnings = [texts.head[:-1] for texts in prompts]
    return _behind_prefixes(budget, beginnings, length, build, alone)


def text_passes(budget: Budget, prompts: Sequence[Branches]) -> Passes:
    """Options of prompts as trees, each text by itself, in the order of their tokens.

    Texts that begin alike follow each other so, whichever prompts and options they are of; only
    what those on either side of a cut share goes through the model twice.
    """
    owners = [i for i, texts in enumerate(prompts) for _ in texts.spans]
    texts = [lengthened(span, own.head) for own in prompts for span in own.spans]
    order = sorted(range(len(texts)), key=lambda i: texts[i].ids)
    fed = [texts[i].ids[: texts[i].end - 1] for i in order]
    new = [len(ids) - shared(before, ids) for before, ids in pairwise([(), *fed])]
    at = 0
    while at < len(order):
        stop, size = at + 1, len(fed[at])
        while stop < len(order) and size + new[stop] <= budget.tokens:
            size += new[stop]
            stop += 1
        tree = merge([texts[i] for i in order[at:stop]])
        step = _tree_pass([owners[i] for i in order[at:stop]], (), tree)
        if (yield replace(step, texts=order[at:stop], divisible=stop - at > 1)):
            budget.halve(size)
        else:
            at = stop


def halved(budget: Budget, member: int, prefix: Ids, texts: PromptTexts, first: int = 0) -> Passes:
    """One prompt, in halves of its options where its tree is over budget or memory."""
    tree, (chain, spans) = merge_prompts([texts]), texts
    several = len(spans) > 1
    if not several or len(tree.ids) <= budget.tokens:
        step = _tree_pass([member], prefix, tree)
        failed = yield replace(step, first=first, divisible=several)
        if not failed:
            return
        budget.halve(len(tree.ids))
    half = len(spans) // 2
    yield from halved(budget, member, prefix, (chain, spans[:half]), first)
    yield from halved(budget, member, prefix, (chain, spans[half:]), first + half)


def _tree_pass(members: list[int], prefix: Ids, tree: TokenTree, reads: int | None = None) -> Pass:
    """One tree behind a prefix, read at every node that predicts something, or at `reads`."""
    reads = len(tree.read[0]) if reads is None else reads
    shape = Shape(rows=1, width=len(tree.ids), behind=len(prefix), reads=reads)
    return Pass(members=members, new=tree.new, shapes=(shape,), prefix=prefix, work=tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """A text that goes through alone, piece by piece, each behind those before it."""

    text: Reading
    bounds: tuple[tuple[int, int], ...]


def trace_passes(budget: Budget, texts: Sequence[SpanTokens]) -> Passes:
    """Texts that are read in several places: trees behind prefixes, or one text in `Pieces`."""

    def length(prefix: Ids, i: int) -> int:
        return texts[i].reads[-1] - len(prefix)

    def build(prefix: Ids, members: list[int]) -> Pass:
        tree = merge_texts([texts[i].after(len(prefix)) for i in members])
        return _tree_pass(members, prefix, tree, len(tree.nodes))

    def alone(prefix: Ids, i: int) -> Passes:
        return _pieces(budget, i, prefix, texts[i].after(len(prefix)))

    return _behind_prefixes(budget, [text.unread for text in texts], length, build, alone)


def _pieces(budget: Budget, member: int, prefix: Ids, text: Reading) -> Passes:
    """One text, in pieces within the budget; smaller ones where memory runs out."""
    ids, reads = text
    total, size = reads[-1], budget.tokens
    bounds = tuple((start, min(start + size, total)) for start in range(0, total, size))
    shapes = [
        Shape(
            rows=1,
            width=stop - start,
            behind=len(prefix) + start,  # what was fed before is kept, and seen
            reads=max(sum(start < i <= stop for i in reads), 1),
        )
        for start, stop in bounds
    ]
    failed = yield Pass(
        members=[member],
        new=[total],
        shapes=tuple(shapes),
        prefix=prefix,
        work=Pieces(text=text, bounds=bounds),
        divisible=size > 1,
    )
    if failed:
        budget.halve(total)
        # the prefix too in pieces, in case that was what did not fit
        whole = (prefix + ids, tuple(i + len(prefix) for i in reads))
        yield from _pieces(budget, member, (), whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Token ids that are written on from, with `room` for the tokens that may come at a time.

    `options` are scored after the same ids. `most`: tokens that a text may have; `texts`: how many
    distinct ones may be expected to go on at a time.
    """

    ids: Ids
    room: int
    options: tuple[Span, ...] = ()
    most: int = 0
    texts: int = 1


def write_passes(budget: Budget, roots: Sequence[Root]) -> Passes:
    """What is read before anything is written, as trees behind prefixes; the work is the tree.

    Options go in the same tree, after the ids of all roots.
    """

    def length(prefix: Ids, i: int) -> int:
        options = options_tree(roots[i].options)
        return len(roots[i].ids) - len(prefix) + roots[i].room + len(options.ids)

    def build(prefix: Ids, members: list[int]) -> Pass:
        rest = [(roots[i].ids[len(prefix) :], roots[i].options) for i in members]
        options = [lengthened(option, ids) for ids, own in rest for option in own]
        reads = [(option.ids, range(option.start, option.end)) for option in options]
        tree = merge_texts([*(tip(ids) for ids, _ in rest), *reads])
        return replace(
            _tree_pass(members, prefix, tree),
            new=tree.new[: len(members)],
            beside=tree.new[len(members) :],
            divisible=len(members) > 1,
        )

    return _behind_prefixes(budget, [root.ids[:-1] for root in roots], length, build)


def source_passes(
    budget: Budget,
    sources: Sequence[Ids],
    opening: int,
    *,
    rows: Sequence[int] | None = None,
    enough: int | None = None,
) -> Passes:
    """Texts that an encoder reads, and `opening` tokens that the decoder is fed after each.

    `rows`: how many texts may then be written after each, all looking at what was read.
    """

    def build(batch: list[int]) -> Pass:
        width, size = max(len(sources[i]) for i in batch), len(batch)
        shapes = [Shape(rows=size, width=opening, behind=width, reads=size * opening)]
        if rows is not None:
            count = sum(rows[i] for i in batch)
            shapes.append(Shape(rows=count, width=1, behind=width, reads=count))
        return Pass(
            members=batch,
            new=[opening] * size,
            shapes=tuple(shapes),
            work=[sources[i] for i in batch],
            divisible=size > 1,
        )

    if rows is None:
        return budget.schedule([len(ids) for ids in sources], build, enough=enough)
    crowds = [len(ids) * count for ids, count in zip(sources, rows, strict=True)]
    return budget.schedule(crowds, build, padded=False)


def answer_passes(budget: Budget, width: int, lengths: Sequence[int], enough: int) -> Passes:
    """What the decoder is fed of answers after their openings, in rows that see `width` tokens."""

    def build(batch: list[int]) -> Pass:
        widest, size = max(lengths[i] for i in batch), len(batch)
        return Pass(
            members=batch,
            new=[lengths[i] for i in batch],
            padding=[widest - lengths[i] for i in batch],
            shapes=(Shape(rows=size, width=widest, behind=width, reads=size * widest),),
            divisible=size > 1,
        )

    return budget.schedule([width + length for length in lengths], build, enough=enough)
