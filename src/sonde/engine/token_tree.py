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

Reading = tuple[tuple[int, ...], Sequence[int]]
"""Token ids of a text, and the places in it that are read, in order."""


@dataclass(frozen=True, kw_only=True)
class TokenTree:
    """Distinct beginnings of some texts as a tree, each node fed to the model once.

    Node i holds token ids[i] at depth depths[i] below parents[i] (-1 for the root). The k-th of all
    reads wants token tokens[k] after node nodes[k], -1 for what stands before the tree; text t has
    sizes[t] reads. `new[t]`: nodes that no text, or where they come by prompts no prompt, before t
    has. A text's last token predicts nothing that is read, so it becomes no node unless another
    text goes on from it.
    """

    ids: np.ndarray
    depths: np.ndarray
    parents: np.ndarray
    nodes: np.ndarray
    tokens: np.ndarray
    sizes: tuple[int, ...]
    new: tuple[int, ...]

    @cached_property
    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct nodes that are read, and for every read which of them it is."""
        return np.unique(self.nodes, return_inverse=True)

    @cached_property
    def seen(self) -> np.ndarray:
        """Which nodes (columns) each node (rows) is or descends from."""
        seen = np.eye(len(self.parents), dtype=bool)
        nodes, above = np.arange(len(seen)), self.parents
        while (below := above >= 0).any():
            nodes, above = nodes[below], above[below]
            seen[nodes, above] = True
            above = self.parents[above]
        return seen


def merge_texts(texts: Sequence[Reading]) -> TokenTree:
    """One tree of some texts that are each read in some places."""
    children: dict[tuple[int, int], int] = {}
    nodes: list[tuple[int, int, int]] = []
    reads: list[tuple[int, int]] = []
    counts = [0]
    for ids, places in texts:
        path = [-1]
        for depth, token in enumerate(ids[: places[-1]]):
            step = path[-1], token
            if step not in children:
                children[step] = len(nodes)
                nodes.append((token, depth, path[-1]))
            path.append(children[step])
        counts.append(len(nodes))
        reads += [(path[place], ids[place]) for place in places]
    fed, depths, parents = np.array(nodes, dtype=np.int64).reshape(-1, 3).T
    read, tokens = np.array(reads, dtype=np.int64).reshape(-1, 2).T
    return TokenTree(
        ids=fed,
        depths=depths,
        parents=parents,
        nodes=read,
        tokens=tokens,
        sizes=tuple(len(places) for _, places in texts),
        new=tuple(after - before for before, after in pairwise(counts)),
    )


def merge(spans: Sequence[Span]) -> TokenTree:
    """One tree of some texts that are read from the answer on."""
    return merge_texts([(span.ids, range(span.start, span.end)) for span in spans])


@lru_cache(maxsize=256)
def options_tree(spans: tuple[Span, ...]) -> TokenTree:
    """The tree of a prompt's options behind the last token before them."""
    return merge(spans)


def merge_prompts(prompts: Sequence[PromptTexts]) -> TokenTree:
    """The trees of some prompts, nodes that they share made once."""
    chains = merge_texts([tip(chain) for chain, _ in prompts])
    trees = [options_tree(spans) for _, spans in prompts]
    ends = chains.nodes.tolist()
    distinct = dict(zip(ends, trees, strict=True))
    apart = all(distinct[end] is tree for end, tree in zip(ends, trees, strict=True))
    if not apart or not distinct.keys().isdisjoint(chains.parents.tolist()):
        return _whole(prompts)
    return _set_behind(chains, ends, trees)


def tip(ids: tuple[int, ...]) -> Reading:
    """A text that is read at its end: a token that is not fed stands for whatever will follow."""
    return (*ids, 0), (len(ids),)


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


def _set_behind(chains: TokenTree, ends: Sequence[int], trees: Sequence[TokenTree]) -> TokenTree:
    """Each tree behind the end of its chain, once where prompts are the same."""
    behind = dict(zip(ends, trees, strict=True))
    sizes = [len(tree.ids) for tree in behind.values()]
    first = dict(zip(behind, accumulate(sizes, initial=len(chains.ids)), strict=False))

    def moved(nodes: np.ndarray, end: int) -> np.ndarray:
        return np.where(nodes < 0, end, nodes + first[end])

    unpaid = dict(zip(behind, sizes, strict=True))
    options = [unpaid.pop(end, 0) for end in ends]  # the first prompt there adds them
    own = behind.items()
    return TokenTree(
        ids=np.concatenate([chains.ids, *(tree.ids for tree in behind.values())]),
        depths=np.concatenate([chains.depths, *(t.depths + chains.depths[e] + 1 for e, t in own)]),
        parents=np.concatenate([chains.parents, *(moved(t.parents, end) for end, t in own)]),
        nodes=np.concatenate([moved(t.nodes, end) for end, t in zip(ends, trees, strict=True)]),
        tokens=np.concatenate([tree.tokens for tree in trees]),
        sizes=tuple(size for tree in trees for size in tree.sizes),
        new=tuple(a + b for a, b in zip(chains.new, options, strict=True)),
    )


def _whole(prompts: Sequence[PromptTexts]) -> TokenTree:
    """One tree of all texts, for prompts of which one goes on where another ends."""
    tree = merge([lengthened(span, chain) for chain, spans in prompts for span in spans])
    ends = accumulate((len(spans) for _, spans in prompts), initial=0)
    return replace(tree, new=tuple(sum(tree.new[a:b]) for a, b in pairwise(ends)))
