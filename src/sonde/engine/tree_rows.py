"""Options of many prompts as rows of trees: each prompt's tokens and options are a row of its own.

The trees of all prompts are grown level by level at once, in arrays; a pass takes some of them as
padded rows, each behind its prefix. Knows token ids, nothing of text, models or memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from sonde.core.rated import ends_of, taken
from sonde.engine.encode import Branches, span_arrays

Ids = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Forest:
    """A tree for each distinct head: the options of its prompts, as they go on behind it.

    Node n holds token tokens[n], levels[n] tokens behind the head of row rows[n], below parents[n],
    or -1 for the head's last token; the nodes of a row follow each other, level by level.
    `payers[n]`: the first prompt that needs it. Text t, of all options of all prompts, reads
    wanted[k] after node nodes[k], or -1, for every k from ends[t] up to ends[t+1]. Prompt i has
    the texts first[i] to first[i+1] and stands in row own[i].
    """

    heads: Sequence[Ids]
    own: np.ndarray
    first: np.ndarray
    tokens: np.ndarray
    levels: np.ndarray
    parents: np.ndarray
    rows: np.ndarray
    payers: np.ndarray
    nodes: np.ndarray
    wanted: np.ndarray
    ends: np.ndarray

    @cached_property
    def bounds(self) -> np.ndarray:
        """Where the nodes of each row begin, and where the last ones end."""
        return ends_of(np.bincount(self.rows, minlength=len(self.heads)))

    @cached_property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """The prompts in the order of their rows, and where those of each row begin."""
        counts = np.bincount(self.own, minlength=len(self.heads))
        return np.argsort(self.own, kind="stable"), ends_of(counts)

    @cached_property
    def deepest(self) -> np.ndarray:
        """How many tokens the longest way down each row has, with its head."""
        deepest = np.array([len(head) for head in self.heads])
        np.maximum.at(deepest, self.rows, deepest[self.rows] + self.levels + 1)
        return deepest

    def prompts(self, rows: np.ndarray) -> np.ndarray:
        """The prompts that stand in some rows, row by row."""
        order, bounds = self.members
        return np.asarray(order[taken(bounds, rows)[1]])

    def new(self, rows: np.ndarray, prefixes: np.ndarray) -> np.ndarray:
        """Tokens that each prompt of some rows adds, behind prefixes of so many tokens.

        What prompts share is added by the first of them.
        """
        counts = np.bincount(self.payers, minlength=len(self.own))
        order, bounds = self.members
        heads = np.array([len(self.heads[row]) for row in rows.tolist()], dtype=np.int64)
        counts[order[bounds[rows]]] += heads - prefixes
        return np.asarray(counts[self.prompts(rows)])


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeRows:
    """Some trees as padded rows [rows, width], each behind prefix owners[r] of `prefixes`.

    `depths` count the tokens of a row before each; `seen[r, i, j]`: whether token i of row r is or
    follows token j. `reads` are the places, counted through all rows, that something is read after;
    read k of all texts wants tokens[k] after place number which[k].
    """

    ids: np.ndarray
    depths: np.ndarray
    seen: np.ndarray
    prefixes: tuple[Ids, ...]
    owners: np.ndarray
    reads: np.ndarray
    which: np.ndarray
    tokens: np.ndarray


def grown(prompts: Sequence[Branches]) -> Forest:
    """The trees of some prompts."""
    numbers: dict[Ids, int] = {}
    rows = [numbers.setdefault(texts.head, len(numbers)) for texts in prompts]
    own = np.array(rows, dtype=np.int64)
    counts = np.array([len(texts.spans) for texts in prompts], dtype=np.int64)
    places, ids = span_arrays(prompts)
    start, stop, begins = places[:, 0], places[:, 2], ends_of(places[:, 3])[:-1]
    ends = ends_of(stop - start)
    texts = np.repeat(np.arange(len(prompts)), counts)
    nodes = np.full(ends[-1], -1)
    where = -1 - own[texts]  # the node that each text has come to; below 0, the head of a row
    levels: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    size = 0
    for level in range(int((stop - 1).max(initial=0))):
        going = np.flatnonzero(stop - 1 > level)
        step = (where[going] + len(numbers)) * (1 + int(ids.max())) + ids[begins[going] + level]
        _, leading, inverse = np.unique(step, return_index=True, return_inverse=True)
        first = going[leading]
        levels.append((ids[begins[first] + level], where[first], texts[first]))
        where[going] = size + inverse
        size += len(first)
        read = going[(start[going] <= level + 1)]
        nodes[ends[read] + level + 1 - start[read]] = where[read]
    return _ordered(
        Forest(
            heads=list(numbers),
            own=own,
            first=ends_of(counts),
            tokens=_joined([tokens for tokens, _, _ in levels]),
            levels=np.repeat(np.arange(len(levels)), [len(tokens) for tokens, _, _ in levels]),
            parents=_joined([parents for _, parents, _ in levels]),
            rows=own[_joined([payers for _, _, payers in levels])],
            payers=_joined([payers for _, _, payers in levels]),
            nodes=nodes,
            wanted=ids[np.repeat(begins + start - ends[:-1], stop - start) + np.arange(ends[-1])],
            ends=ends,
        )
    )


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _ordered(forest: Forest) -> Forest:
    """The same with the nodes of a row behind each other; what was below a head is below -1."""
    order = np.argsort(forest.rows, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1

    def moved(nodes: np.ndarray) -> np.ndarray:
        return np.asarray(place[np.maximum(nodes, -1)])

    return replace(
        forest,
        tokens=forest.tokens[order],
        levels=forest.levels[order],
        parents=moved(forest.parents[order]),
        rows=forest.rows[order],
        payers=forest.payers[order],
        nodes=moved(forest.nodes),
    )


def laid(forest: Forest, rows: np.ndarray, prefixes: Sequence[Ids]) -> TreeRows:
    """Some rows of a forest behind their prefixes, one for each; texts in the order of prompts."""
    pairs = zip((forest.heads[row] for row in rows.tolist()), prefixes, strict=True)
    chains = [head[len(ids) :] for head, ids in pairs]
    lengths = np.array([len(ids) for ids in chains])
    bounds, nodes = taken(forest.bounds, rows)
    counts = np.diff(bounds)
    owner = np.repeat(np.arange(len(rows)), counts)
    column = np.repeat(lengths - bounds[:-1], counts) + np.arange(len(nodes))
    width = int((lengths + counts).max())
    ids = np.zeros((len(rows), width), dtype=np.int64)
    heads = np.arange(width) < lengths[:, None]
    ids[heads] = np.fromiter(chain.from_iterable(chains), np.int64)
    ids[owner, column] = forest.tokens[nodes]
    # what fills up stands at the first place: a model may have no places beyond its longest text
    depths = np.where(heads, np.arange(width), 0)
    depths[owner, column] = lengths[owner] + forest.levels[nodes]
    columns = np.empty(len(forest.tokens) + 1, dtype=np.int64)
    columns[nodes] = column
    read, of, tokens = _read(forest, rows)
    after = np.where(read < 0, lengths[of] - 1, columns[read])
    reads, which = np.unique(of * width + after, return_inverse=True)
    numbers = {ids: number for number, ids in enumerate(dict.fromkeys(prefixes))}
    return TreeRows(
        ids=ids,
        depths=depths,
        seen=_seen(forest.parents, nodes, owner, columns, lengths, width),
        prefixes=tuple(numbers),
        owners=np.array([numbers[ids] for ids in prefixes]),
        reads=reads,
        which=which,
        tokens=tokens,
    )


def _read(forest: Forest, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is read in some rows: after which node, in the how-manieth row, which token."""
    prompts = forest.prompts(rows)
    texts = taken(forest.first, prompts)[1]
    ends, reads = taken(forest.ends, texts)
    place = np.empty(len(forest.heads), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    own = np.repeat(place[forest.own[prompts]], np.diff(forest.first)[prompts])
    return forest.nodes[reads], np.repeat(own, np.diff(ends)), forest.wanted[reads]


def _seen(
    parents: np.ndarray,
    nodes: np.ndarray,
    owner: np.ndarray,
    columns: np.ndarray,
    lengths: np.ndarray,
    width: int,
) -> np.ndarray:
    """What each token of some rows sees of its row: its own way back. What fills up sees heads."""
    places = np.arange(width)
    seen = np.asarray((places <= places[:, None]) & (places < lengths[:, None, None]))
    above = nodes
    while len(above):
        seen[owner, columns[nodes], columns[above]] = True
        above = parents[above]
        going = above >= 0
        above, nodes, owner = above[going], nodes[going], owner[going]
    return seen
