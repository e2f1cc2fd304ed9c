"""Share the work of texts that begin alike. Knows token ids, nothing of text or models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.engine.encode import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Trie:
    """Distinct prefixes of some token sequences as a tree, each node fed to the model once.

    Node i holds token ids[i] at depth depths[i] below parents[i] (-1 for the root). `reads[s]`
    lists, for sequence s, the (node whose output predicts it, token) of every scored position; -1
    is what stands before the tree.
    A sequence's last token predicts nothing that is read, so it becomes no node unless another
    sequence goes on from it.
    """

    ids: tuple[int, ...]
    depths: tuple[int, ...]
    parents: tuple[int, ...]
    reads: tuple[tuple[tuple[int, int], ...], ...]


def merge(spans: Sequence[Span]) -> Trie:
    """Build the tree of some spans."""
    children: list[dict[int, int]] = []
    ids: list[int] = []
    depths: list[int] = []
    parents: list[int] = []
    roots: dict[int, int] = {}
    reads = []
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
        reads.append(
            tuple((path[i - 1] if i else -1, span.ids[i]) for i in range(span.start, span.end))
        )
    return Trie(ids=tuple(ids), depths=tuple(depths), parents=tuple(parents), reads=tuple(reads))
