"""Put the trees of several prompts side by side, to be fed in one pass. Knows token ids alone.

Prompts of a relation mostly have the same options behind different subjects, so the tree of their
options is made once and set behind each. `merge` of all their texts gives the same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sonde.engine.encode import Span, lengthened
from sonde.engine.trie import Trie, merge

Planted = tuple[tuple[int, ...], tuple[Span, ...]]
"""Token ids that open every text of a prompt, at least one, and each text as it goes on."""

Reading = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of a text, and the places in it that are read, in order; never the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTree:
    """Trees as arrays, a node for each token that is fed.

    `seen[i, j]`: node i is or descends from node j. The k-th of all reads wants token tokens[k]
    after node nodes[k]; sequence s has sizes[s] reads. In the tree of options alone, node -1 is
    the token before them.
    """

    ids: np.ndarray
    depths: np.ndarray
    seen: np.ndarray
    nodes: np.ndarray
    tokens: np.ndarray
    sizes: tuple[int, ...]


def forest(prompts: Sequence[Planted]) -> TokenTree:
    """The trees of some prompts, nodes that they share made once."""
    chains = _Chains([chain for chain, _ in prompts])
    trees = [options_tree(spans) for _, spans in prompts]
    ends = dict(zip(chains.ends, trees, strict=True))
    apart = all(ends[end] is tree for end, tree in zip(chains.ends, trees, strict=True))
    if not apart or any(end in chains.inner for end in ends):
        return _whole(prompts)
    return _set_behind(chains, trees, ends)


def merge_texts(texts: Sequence[Reading]) -> TokenTree:
    """One tree of some texts that are each read in several places."""
    spans = [Span(ids=ids, start=0, stop=0, end=reads[-1] + 1) for ids, reads in texts]
    trie = merge(spans)
    chosen = zip(trie.reads, texts, strict=True)
    kept = tuple(tuple(steps[i] for i in reads) for steps, (_, reads) in chosen)
    return _arrays(replace(trie, reads=kept))


@lru_cache(maxsize=256)
def options_tree(spans: tuple[Span, ...]) -> TokenTree:
    """The tree of a prompt's options behind the last token before them."""
    return _arrays(merge(spans))


def _set_behind(
    chains: _Chains, trees: Sequence[TokenTree], ends: dict[int, TokenTree]
) -> TokenTree:
    """Each tree behind the end of its chain, once where prompts are the same."""
    count = len(chains.ids)
    base = {}
    total = count
    for end, tree in ends.items():
        base[end] = total
        total += len(tree.ids)
    seen = np.zeros((total, total), dtype=bool)
    seen[:count, :count] = chains.seen()
    for end, tree in ends.items():
        own = slice(base[end], base[end] + len(tree.ids))
        seen[own, own] = tree.seen
        seen[own, :count] = seen[end, :count]
    nodes = [
        np.where(tree.nodes < 0, end, tree.nodes + base[end])
        for end, tree in zip(chains.ends, trees, strict=True)
    ]
    depths = [tree.depths + chains.depths[end] + 1 for end, tree in ends.items()]
    return TokenTree(
        ids=np.concatenate([chains.ids, *(tree.ids for tree in ends.values())]),
        depths=np.concatenate([chains.depths, *depths]),
        seen=seen,
        nodes=np.concatenate(nodes),
        tokens=np.concatenate([tree.tokens for tree in trees]),
        sizes=tuple(size for tree in trees for size in tree.sizes),
    )


class _Chains:
    """The tokens before the options of some prompts, as a tree of their own."""

    def __init__(self, chains: Sequence[tuple[int, ...]]) -> None:
        levels: dict[tuple[int, int], int] = {}
        self.ids: list[int] = []
        self.depths: list[int] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        for chain in chains:
            node = -1
            for depth, token in enumerate(chain):
                child = levels.get((node, token))
                if child is None:
                    child = levels[node, token] = len(self.ids)
                    self.ids.append(token)
                    self.depths.append(depth)
                    self.parents.append(node)
                node = child
            self.ends.append(node)
        self.inner = set(self.parents)

    def seen(self) -> np.ndarray:
        return ancestors(self.parents)


def ancestors(parents: Sequence[int]) -> np.ndarray:
    """Which nodes each node is or descends from; parents come before their children."""
    seen = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            seen[node, :node] = seen[parent, :node]
    return seen


def _whole(prompts: Sequence[Planted]) -> TokenTree:
    """One tree of all texts, for prompts of which one goes on where another ends."""
    return _arrays(merge([lengthened(span, chain) for chain, spans in prompts for span in spans]))


def _arrays(trie: Trie) -> TokenTree:
    reads = [step for sequence in trie.reads for step in sequence]
    return TokenTree(
        ids=np.array(trie.ids, dtype=np.int64),
        depths=np.array(trie.depths, dtype=np.int64),
        seen=ancestors(trie.parents),
        nodes=np.array([node for node, _ in reads], dtype=np.int64),
        tokens=np.array([token for _, token in reads], dtype=np.int64),
        sizes=tuple(len(sequence) for sequence in trie.reads),
    )
