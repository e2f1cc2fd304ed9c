"""Trees of token ids: texts that begin alike share their nodes, each fed to a model once.

Prompts of a relation mostly have the same options behind different subjects, so the tree of their
options is made once and set behind each; `merge` of all their texts gives the same nodes. Knows
token ids, nothing of text or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np

from sonde.engine.encode import Branches, Span, lengthened

PromptTexts = tuple[tuple[int, ...], tuple[Span, ...]]
"""Token ids that open every text of a prompt, at least one, and each text as it goes on."""

Reading = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of a text, and the places in it that are read, in order; never the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trie:
    """Distinct prefixes of some token sequences as a tree, each node fed to the model once.

    Node i holds token ids[i] at depth depths[i] below parents[i] (-1 for the root). `reads[s]`
    lists, for sequence s, the (node whose output predicts it, token) of every scored position; -1
    is what stands before the tree. `new[s]`: nodes that no sequence before s has.
    A sequence's last token predicts nothing that is read, so it becomes no node unless another
    sequence goes on from it.
    """

    ids: tuple[int, ...]
    depths: tuple[int, ...]
    parents: tuple[int, ...]
    reads: tuple[tuple[tuple[int, int], ...], ...]
    new: tuple[int, ...]


def merge(spans: Sequence[Span]) -> Trie:
    """Build the tree of some spans."""
    children: list[dict[int, int]] = []
    ids: list[int] = []
    depths: list[int] = []
    parents: list[int] = []
    roots: dict[int, int] = {}
    reads, sizes = [], [0]
    for span in spans:
        node, level, path = -1, roots, []
        for depth, token in enumerate(span.ids[: span.end - 1]):
            if token not in level:
                level[token] = len(ids)
                ids.append(token)
                depths.append(depth)
                parents.append(node)
                children.append({})
            node = level[token]
            level = children[node]
            path.append(node)
        sizes.append(len(ids))
        reads.append(
            tuple((path[i - 1] if i else -1, span.ids[i]) for i in range(span.start, span.end))
        )
    return Trie(
        ids=tuple(ids),
        depths=tuple(depths),
        parents=tuple(parents),
        reads=tuple(reads),
        new=_steps(sizes),
    )


@dataclass(frozen=True, kw_only=True)
class TokenTree:
    """Trees as arrays, a node for each token that is fed.

    `seen[i, j]`: node i is or descends from node j. The k-th of all reads wants token tokens[k]
    after node nodes[k]; sequence s has sizes[s] reads. In the tree of options alone, node -1 is
    the token before them. `new[p]`: nodes that no prompt before p has.
    """

    ids: np.ndarray
    depths: np.ndarray
    seen: np.ndarray
    nodes: np.ndarray
    tokens: np.ndarray
    sizes: tuple[int, ...]
    new: tuple[int, ...]

    @cached_property
    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct nodes that are read, and for every read which of them it is."""
        return np.unique(self.nodes, return_inverse=True)


def merge_prompts(prompts: Sequence[PromptTexts]) -> TokenTree:
    """The trees of some prompts, nodes that they share made once."""
    chains = merge([tip(chain) for chain, _ in prompts])
    trees = [options_tree(spans) for _, spans in prompts]
    ends = [reads[0][0] for reads in chains.reads]
    distinct = dict(zip(ends, trees, strict=True))
    apart = all(distinct[end] is tree for end, tree in zip(ends, trees, strict=True))
    if not apart or not distinct.keys().isdisjoint(chains.parents):
        return _whole(prompts)
    return _set_behind(chains, ends, trees)


def tip(ids: tuple[int, ...]) -> Span:
    """A text that is read at its end: a token that is not fed stands for whatever will follow."""
    end = len(ids) + 1
    return Span(ids=(*ids, 0), start=end - 1, stop=end, end=end)


def merge_texts(texts: Sequence[Reading]) -> TokenTree:
    """One tree of some texts that are each read in several places."""
    spans = [Span(ids=ids, start=0, stop=0, end=reads[-1] + 1) for ids, reads in texts]
    trie = merge(spans)
    chosen = zip(trie.reads, texts, strict=True)
    kept = tuple(tuple(steps[i] for i in reads) for steps, (_, reads) in chosen)
    return _arrays(replace(trie, reads=kept), trie.new)


@lru_cache(maxsize=256)
def options_tree(spans: tuple[Span, ...]) -> TokenTree:
    """The tree of a prompt's options behind the last token before them."""
    trie = merge(spans)
    return _arrays(trie, (len(trie.ids),))


def shared_prefill(
    texts: Mapping[int, Branches], openings: Mapping[int, tuple[tuple[int, ...], int]]
) -> dict[int, tuple[int, ...]]:
    """The prompts whose options are scored where a text is written on from, by its position.

    Openings are (token ids, most tokens that may be written). A prompt goes to the first that has
    the tokens of its own head. All options there feed no more tokens than may be written, or else
    they would crowd other openings out of a batch; a prompt over that bound goes nowhere.

    >>> one = Branches(head=(5, 6), spans=(Span(ids=(7,), start=0, stop=1, end=1),))
    >>> shared_prefill({0: one}, {1: ((5,), 3), 2: ((5, 6), 3)})
    {2: (0,)}
    """
    hosts: dict[tuple[int, ...], int] = {}
    room: dict[int, int] = {}
    for position, (ids, most) in openings.items():
        host = hosts.setdefault(ids, position)
        room[host] = max(room.get(host, 0), most)
    guests: dict[int, tuple[int, ...]] = {}
    for position, branches in texts.items():
        if (at := hosts.get(branches.head)) is None:
            continue
        size = len(options_tree(branches.spans).ids)
        if size <= room[at]:
            room[at] -= size
            guests[at] = (*guests.get(at, ()), position)
    return guests


def _set_behind(chains: Trie, places: Sequence[int], trees: Sequence[TokenTree]) -> TokenTree:
    """Each tree behind the end of its chain, once where prompts are the same."""
    count, ends = len(chains.ids), dict(zip(places, trees, strict=True))
    base = {}
    total = count
    for end, tree in ends.items():
        base[end] = total
        total += len(tree.ids)
    seen = np.zeros((total, total), dtype=bool)
    seen[:count, :count] = ancestors(chains.parents)
    for end, tree in ends.items():
        own = slice(base[end], base[end] + len(tree.ids))
        seen[own, own] = tree.seen
        seen[own, :count] = seen[end, :count]
    nodes = [
        np.where(tree.nodes < 0, end, tree.nodes + base[end])
        for end, tree in zip(places, trees, strict=True)
    ]
    depths = [tree.depths + chains.depths[end] + 1 for end, tree in ends.items()]
    unpaid = {end: len(tree.ids) for end, tree in ends.items()}
    options = [unpaid.pop(end, 0) for end in places]  # the first prompt there adds them
    return TokenTree(
        ids=np.concatenate([chains.ids, *(tree.ids for tree in ends.values())]),
        depths=np.concatenate([chains.depths, *depths]),
        seen=seen,
        nodes=np.concatenate(nodes),
        tokens=np.concatenate([tree.tokens for tree in trees]),
        sizes=tuple(size for tree in trees for size in tree.sizes),
        new=tuple(a + b for a, b in zip(chains.new, options, strict=True)),
    )


def ancestors(parents: Sequence[int]) -> np.ndarray:
    """Which nodes each node is or descends from; parents come before their children."""
    seen = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node, :node] = seen[parent, :node]
    return seen


def _whole(prompts: Sequence[PromptTexts]) -> TokenTree:
    """One tree of all texts, for prompts of which one goes on where another ends."""
    trie = merge([lengthened(span, chain) for chain, spans in prompts for span in spans])
    ends = accumulate((len(spans) for _, spans in prompts), initial=0)
    return _arrays(trie, tuple(sum(trie.new[a:b]) for a, b in pairwise(ends)))


def _steps(counts: Sequence[int]) -> tuple[int, ...]:
    """How much a rising count grows each time."""
    return tuple(after - before for before, after in pairwise(counts))


def _arrays(trie: Trie, new: tuple[int, ...]) -> TokenTree:
    reads = [step for sequence in trie.reads for step in sequence]
    return TokenTree(
        ids=np.array(trie.ids, dtype=np.int64),
        depths=np.array(trie.depths, dtype=np.int64),
        seen=ancestors(trie.parents),
        nodes=np.array([node for node, _ in reads], dtype=np.int64),
        tokens=np.array([token for _, token in reads], dtype=np.int64),
        sizes=tuple(len(sequence) for sequence in trie.reads),
        new=new,
    )
