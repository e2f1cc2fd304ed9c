"""Count the tokens the engine would feed, without feeding them. Knows token ids, no model.

Each function mirrors one way a model is fed, batch by batch; tests with a forward hook hold them to
what is really fed. A token that several prompts share is paid for by the first that needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sonde.core.costs import Cost
from sonde.engine.batching import batches
from sonde.engine.encode import Span, lengthened
from sonde.engine.token_tree import Reading

Row = tuple[tuple[int, ...], int]
"""Token ids of one input, and the position that is read."""

Paid = tuple[int, Sequence[Span]]
"""The position of the prompt that pays, and its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One batch: `rows` of `width` tokens `behind` so many kept ones, read at `reads` places."""

    rows: int
    width: int
    behind: int
    reads: int


class Kept:
    """Which stems would still be in memory, as `trees.StemCache` keeps them; lengths alone."""

    def __init__(self, budget: int, size: int) -> None:
        self.budget = budget
        self.size = size
        self.held = 0
        self.most = 0
        self.stems: OrderedDict[tuple[int, ...], None] = OrderedDict()

    def pay(self, ids: tuple[int, ...]) -> int:
        """Tokens to compute for a stem: none if it is kept."""
        missing = 0 if ids in self.stems else len(ids)
        self.stems[ids] = None
        self.held += missing * self.size
        self.most = max(self.most, self.held)
        while self.held > self.budget and len(self.stems) > 1:
            self.held -= len(self.stems.popitem(last=False)[0]) * self.size
        self.stems.move_to_end(ids)
        return missing


class Ledger:
    """Who pays for what, while a shard is being counted."""

    def __init__(self, costs: Sequence[Cost]) -> None:
        self.costs = list(costs)
        self.passes: list[Pass] = []

    def charge(self, position: int, **more: int) -> None:
        """Put something on a prompt's bill."""
        self.costs[position] += Cost(**more)


def count_rows(
    ledger: Ledger,
    rows: Sequence[tuple[int, Row]],
    budget: int,
    *,
    enough: int | None = None,
    packed: int = 0,
) -> None:
    """Inputs that go as padded rows, each (the prompt that pays, the input).

    `enough` as for `batches`. Short ones of equal length are laid end to end in rows of `packed`
    tokens, where that is not 0, and the last row is filled up.
    """
    lengths = [len(ids) for _, (ids, _) in rows]
    for batch in batches(lengths, budget, enough=enough):
        width, missing = lengths[batch[0]], 0
        for i in batch:
            ledger.charge(rows[i][0], computed=lengths[i], padding=width - lengths[i])
        if width == lengths[batch[-1]] and 2 * width <= packed:
            missing = -len(batch) % min(packed // width, len(batch))
            ledger.charge(rows[batch[-1]][0], padding=missing * width)
        size = len(batch) + missing
        ledger.passes.append(Pass(rows=size, width=width, behind=0, reads=len(batch)))


def distinct_rows(prompts: Sequence[tuple[int, Sequence[Row]]]) -> list[tuple[int, Row]]:
    """The distinct inputs of some prompts in order, each with the first prompt that has it.

    >>> distinct_rows([(0, [((5, 6), 1)]), (1, [((5, 6), 1), ((7,), 0)])])
    [(0, ((5, 6), 1)), (1, ((7,), 0))]
    """
    found: dict[Row, int] = {}
    for position, rows in prompts:
        for row in rows:
            found.setdefault(row, position)
    return [(position, row) for row, position in found.items()]


class Tree:
    """The distinct beginnings of some texts, each a node that is fed once."""

    def __init__(self) -> None:
        self.roots: dict[int, Any] = {}
        self.nodes = 0
        self.read: set[int] = set()

    def add(self, span: Span) -> int:
        """Nodes that a text adds; its last token is never fed."""
        before, level = self.nodes, self.roots
        for depth, token in enumerate(span.ids[: span.end - 1]):
            if token not in level:
                level[token] = {}
                self.nodes += 1
            level = level[token]
            if depth >= span.start - 1:
                self.read.add(id(level))
        return self.nodes - before


def tree_size(spans: Sequence[Span]) -> int:
    """Nodes of a tree of texts."""
    tree = Tree()
    return sum(tree.add(span) for span in spans)


def count_trees(
    ledger: Ledger, stem: tuple[int, ...], prompts: Sequence[Paid], budget: int, kept: Kept
) -> None:
    """Prompts that go as trees behind one stem, each (who pays, its texts after the stem)."""
    for batch in batches([tree_size(spans) for _, spans in prompts], budget, padded=False):
        if stem:
            paid = kept.pay(stem)
            ledger.charge(prompts[batch[0]][0], computed=paid, stems=paid)
        if len(batch) == 1:
            _count_alone(ledger, *prompts[batch[0]], budget, len(stem))
        else:
            _count_tree(ledger, [prompts[i] for i in batch], len(stem))


def count_readings(
    ledger: Ledger,
    stem: tuple[int, ...],
    texts: Sequence[tuple[int, Reading]],
    budget: int,
    kept: Kept,
) -> None:
    """Texts that are read in several places, behind one stem, each (who pays, the rest of it)."""
    for batch in batches([reads[-1] for _, (_, reads) in texts], budget, padded=False):
        if stem:
            paid = kept.pay(stem)
            ledger.charge(texts[batch[0]][0], computed=paid, stems=paid)
        if len(batch) == 1:
            _count_chain(ledger, *texts[batch[0]], budget, len(stem))
        else:
            chosen = [texts[i] for i in batch]
            fed = [(payer, (_fed(ids, reads),)) for payer, (ids, reads) in chosen]
            most = sum(len(reads) for _, (_, reads) in chosen)
            _count_tree(ledger, fed, len(stem), reads=most)


def _fed(ids: tuple[int, ...], reads: tuple[int, ...]) -> Span:
    return Span(ids=ids, start=reads[0], stop=reads[0], end=reads[-1] + 1)


def _count_chain(ledger: Ledger, payer: int, text: Reading, budget: int, behind: int) -> None:
    """One text, in pieces within the budget."""
    total = text[1][-1]
    ledger.charge(payer, computed=total)
    for start in range(0, total, budget):
        stop = min(start + budget, total)
        reads = sum(start < i <= stop for i in text[1])
        # what was fed before is kept, and seen
        ledger.passes.append(
            Pass(rows=1, width=stop - start, behind=behind + start, reads=max(reads, 1))
        )


def count_openings(
    ledger: Ledger,
    stem: tuple[int, ...],
    openings: Sequence[tuple[int, tuple[int, ...]]],
    room: Sequence[int],
    budget: int,
    kept: Kept,
    guests: Mapping[int, Sequence[Paid]] = MappingProxyType({}),
) -> None:
    """Prompts that are written on from, behind one stem; `room` is kept for what they may add.

    `guests` are the options that are scored beside some, by who pays for the opening.
    """
    beside = [
        tree_size([span for _, spans in guests.get(payer, ()) for span in spans])
        for payer, _ in openings
    ]
    sizes = [len(ids) + a + b for (_, ids), a, b in zip(openings, room, beside, strict=True)]
    for batch in batches(sizes, budget, padded=False):
        if stem:
            paid = kept.pay(stem)
            ledger.charge(openings[batch[0]][0], computed=paid, stems=paid)
        # what follows is read and not fed, so any token stands for it
        tips: list[Paid] = [(payer, _opening(ids)) for payer, ids in (openings[i] for i in batch)]
        for payer, ids in (openings[i] for i in batch):
            for guest, spans in guests.get(payer, ()):
                tips.append((guest, [lengthened(span, ids) for span in spans]))
        _count_tree(ledger, tips, len(stem))


def _opening(ids: tuple[int, ...]) -> Sequence[Span]:
    end = len(ids) + 1
    return (Span(ids=(*ids, 0), start=end - 1, stop=end, end=end),)


def _count_alone(
    ledger: Ledger, payer: int, spans: Sequence[Span], budget: int, behind: int
) -> None:
    """One prompt, in halves of its options where its tree is over budget."""
    if len(spans) == 1 or tree_size(spans) <= budget:
        _count_tree(ledger, [(payer, spans)], behind)
        return
    half = len(spans) // 2
    _count_alone(ledger, payer, spans[:half], budget, behind)
    _count_alone(ledger, payer, spans[half:], budget, behind)


def _count_tree(
    ledger: Ledger, prompts: Sequence[Paid], behind: int, reads: int | None = None
) -> None:
    """One pass: the texts of some prompts as one tree; read at the answers, or at `reads` nodes."""
    tree = Tree()
    for payer, spans in prompts:
        ledger.charge(payer, computed=sum(tree.add(span) for span in spans))
    reads = len(tree.read) if reads is None else reads
    ledger.passes.append(Pass(rows=1, width=tree.nodes, behind=behind, reads=reads))
