"""Write on from many prompts at once, each distinct text computed once.

The prompts of a batch are one tree behind their shared prefix. Its leaves get children step by
step: one each where the likeliest text is wanted, one per distinct drawn token where texts are
sampled. All new tokens of a step go through the model in one pass, each seeing the prefix, its
ancestors and itself. Options that are to be scored after the same prompts are fed with them, in the
first pass. Models that cannot be fed a tree read every text anew for each token ("flat").
`reference` is the naive twin.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sonde.core.progress import advance
from sonde.core.prompts import Prompt
from sonde.engine.batching import Budget
from sonde.engine.encode import CausalEncoder
from sonde.engine.endings import Endings
from sonde.engine.limits import check_room
from sonde.engine.prefixes import PrefixCache
from sonde.engine.schedule import Pass, Passes, row_passes, write_passes
from sonde.models.torch.causal.token_tree import KeysAndValues
from sonde.models.torch.decode.steps import (
    DecodeState,
    Leaf,
    NoDistribution,
    compact,
    crowded,
    feed,
    halves,
    likeliest,
    onward,
    prefill_tree,
    read_rows,
    split_leaves,
)
from sonde.models.torch.decode.writer import Draws, Opening, Writer, Written
from sonde.models.torch.loading.weights import Loaded, out_of_memory

Choose = Callable[[Any, Sequence[Leaf]], list[list[Leaf]]]


Grown = tuple[list[Written], list[tuple[int, Leaf]]]
"""Texts that have ended, and leaves that go on, each with the row of its parent."""

Step = Callable[[Any, Sequence[Leaf]], Grown]


class LeafWriter(Writer):
    """Lets leaves grow step by step, each an object of its own."""

    @abstractmethod
    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """Some leaves with all that was written after them, until none is left."""

    def grow(
        self, openings: Sequence[Opening], draws: Draws | None
    ) -> Iterator[tuple[int, list[Written]]]:
        """Yield (position, texts) for every prompt; prompts of the same tokens share a leaf."""
        choose = likeliest if draws is None else partial(drawn, draws)
        step = partial(self._step, openings, choose)
        for roots, written in self.texts(self.leaves(openings), step):
            texts: dict[int, list[Written]] = {i: [] for leaf in roots for i in leaf.shares}
            for text in written:
                texts[text.owner].append(text)
            yield from texts.items()

    def _step(
        self, openings: Sequence[Opening], choose: Choose, logits: Any, leaves: Sequence[Leaf]
    ) -> Grown:
        """Let every leaf go on: the texts that have ended, and the children that go on."""
        written: list[Written] = []
        children: list[tuple[int, Leaf]] = []
        for row, chosen in enumerate(choose(logits, leaves)):
            for leaf in chosen:
                ended, shares = self._settle(openings, leaf)
                written += ended
                if shares:
                    children.append((row, replace(leaf, shares=shares)))
        return written, children

    def _settle(
        self, openings: Sequence[Opening], leaf: Leaf
    ) -> tuple[list[Written], dict[int, int]]:
        """Which prompts' texts have ended at a leaf, and the shares of the others."""
        written, shares = [], {}
        for owner, count in leaf.shares.items():
            end = self.endings.end(leaf.tail, leaf.path, openings[owner].want)
            if end is None:
                shares[owner] = count
            else:
                written.append(Written(owner=owner, leaf=leaf, end=end, count=count))
        return written, shares


class TreeDecoder(LeafWriter):
    """Writes with a causal model, along a tree where it can be fed one."""

    def __init__(
        self,
        loaded: Loaded,
        encoder: CausalEncoder,
        endings: Endings,
        budget: Budget,
        prefixes: PrefixCache[KeysAndValues],
        *,
        tree: bool,
    ) -> None:
        super().__init__(endings, rereads=not tree)
        self.loaded = loaded
        self.model = loaded.model
        self.encoder = encoder
        self.budget = budget
        self.prefixes = prefixes
        self.tree = tree

    def tokenised(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Texts as they are written on from."""
        return self.encoder.to_open(texts)

    def ids(self, prompt: Prompt, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """The prompt's own tokens, which the model writes on from."""
        ids = self.encoder.opened(prompt.prefix, tokens)
        check_room(ids, most, self.loaded)
        return ids

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The last tokens of the prompt."""
        return self.endings.tail(ids)

    def passes(self, leaves: Sequence[Leaf]) -> Passes:
        """Along trees, or text by text."""
        if self.tree:
            return write_passes(self.budget, [leaf.root for leaf in leaves])
        return row_passes(self.budget, [len(leaf.root.ids + leaf.path) for leaf in leaves])

    def texts(self, leaves: list[Leaf], step: Step) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """Along trees, or text by text."""
        if not self.tree:
            yield leaves, self._flat(leaves, step)
            return
        grow = partial(self._tree, leaves, step)
        for each, written in self.budget.execute(self.passes(leaves), grow):
            yield [leaves[i] for i in each.members], written

    def _tree(self, leaves: list[Leaf], step: Step, batch: Pass) -> list[Written]:
        """Grow the texts of some prompts to their ends."""
        try:
            prefix = self.prefixes.get(batch.prefix)
            chosen = [leaves[i] for i in batch.members]
            logits, state = prefill_tree(self.model, chosen, batch.work, prefix)
            written, children = step(logits, state.leaves)
            del logits
            return written + self._on(onward(state, children), step)
        except Exception:
            self.prefixes.clear()  # if memory ran out, they are the first to go
            raise

    def _on(self, state: DecodeState, step: Step) -> list[Written]:
        """Go on from a state that is yet to be fed; in parts, where it outgrows the budget."""
        found: list[Written] = []
        pending = [state]
        while pending:
            if not pending[-1].leaves:
                pending.pop()
                continue
            state = compact(pending.pop())
            if crowded(state, self.budget.tokens):
                pending += halves(state)
            elif (fed := self._feed(state)) is None:
                pending.append(state)  # now over the budget, which has been halved
            else:
                written, children = step(fed[0], state.leaves)
                found += written
                pending.append(onward(fed[1], children))
        return found

    def _feed(self, state: DecodeState) -> tuple[Any, DecodeState] | None:
        """Logits after every leaf; None if memory ran out for several leaves together."""
        try:
            return feed(self.model, state)
        except Exception as error:
            if len(state.leaves) == 1 or not out_of_memory(error):
                raise
        self.budget.halve(len(state.leaves))
        return None

    def _flat(self, leaves: list[Leaf], step: Step) -> list[Written]:
        """All texts a token further at a time, each read anew as a row of its own."""
        ended: list[Written] = []
        while leaves:
            run = self.budget.execute(self.passes(leaves), partial(self._rows, leaves, step))
            grown = [result for _, result in run]
            ended += [text for written, _ in grown for text in written]
            advance(sum(1 / max(leaf.root.room, 1) for leaf in leaves))
            leaves = [leaf for _, children in grown for _, leaf in children]
        return ended

    def _rows(self, leaves: list[Leaf], step: Step, batch: Pass) -> Grown:
        chosen = [leaves[i] for i in batch.members]
        return step(read_rows(self.model, chosen), chosen)


def drawn(draws: Draws, logits: Any, leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Each leaf with the tokens drawn there; says for which prompt nothing can be drawn."""
    try:
        return split_leaves(draws.names, logits, leaves, steady=draws.steady)
    except NoDistribution as error:
        raise draws.refused(min(leaves[error.row].shares)) from None
