"""Write with an encoder-decoder model: each distinct text of a prompt is a row, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from sonde.core.prompts import Prompt
from sonde.engine.batching import Budget
from sonde.engine.seq2seq_encode import Seq2SeqEncoder
from sonde.models.torch.decode.choose import Leaf
from sonde.models.torch.decode.endings import Endings, end_tokens
from sonde.models.torch.decode.tree_decoder import Step, Writer, Written
from sonde.models.torch.loading.limits import check_room, check_text
from sonde.models.torch.loading.weights import Loaded
from sonde.models.torch.seq2seq.state import Reader, feed


class Seq2SeqDecoder(Writer):
    """Writes texts and draws samples with an encoder-decoder model."""

    def __init__(
        self, loaded: Loaded, encoder: Seq2SeqEncoder, reader: Reader, budget: Budget, start: int
    ) -> None:
        super().__init__(Endings(loaded.backend, end_tokens(loaded)))
        self.loaded = loaded
        self.encoder = encoder
        self.reader = reader
        self.budget = budget
        self.opening = (start, *encoder.opens)

    def ids(self, prompt: Prompt, most: int) -> tuple[int, ...]:
        """What is read."""
        ids = self.encoder.source(prompt.prefix).ids
        check_text(len(ids), max(ids), self.loaded)
        check_room(self.opening, most, self.loaded)
        return ids

    def tail(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """What is written follows what opens every answer."""
        return self.opening

    def texts(
        self, roots: list[Leaf], room: list[int], step: Step
    ) -> Iterator[tuple[list[Leaf], list[Written]]]:
        """Some prompts at a time; a prompt needs as many rows as it may have texts."""
        lengths = [crowd(len(leaf.ids), leaf.shares.values()) for leaf in roots]
        forward = partial(self._grown, roots, step)
        for batch, written in self.budget.run(lengths, forward, padded=False):
            yield [roots[i] for i in batch], written

    def _grown(self, roots: Sequence[Leaf], step: Step, batch: list[int]) -> list[Written]:
        leaves = [roots[i] for i in batch]
        logits, rows = self.reader.open([leaf.ids for leaf in leaves], self.opening)
        found: list[Written] = []
        while leaves:
            written, children = step(logits, leaves)
            found += written
            leaves = [leaf for _, leaf in children]
            if leaves:
                rows = rows.going_on([row for row, _ in children])
                last = [[leaf.path[-1]] for leaf in leaves]
                logits = feed(self.loaded.model, rows, last)[:, -1]
        return found


def crowd(length: int, shares: Iterable[int]) -> int:
    """Tokens read times the rows that may come to look at them.

    >>> crowd(10, [3, 2])
    50
    """
    return length * sum(shares)
