"""Count the tokens of models that read one text and write another, without feeding them.

As in `plan`, each function mirrors one way such a model is fed, and tests hold it to what is fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.engine.batching import batches
from sonde.engine.counting import Ledger, Pass
from sonde.engine.seq2seq_encode import Ids


class Heard:
    """Which texts would be kept once they are read, as `rows.Reader` keeps them; lengths alone."""

    def __init__(self, room: int, token: int) -> None:
        self.room = room
        self.token = token
        self.held = 0
        self.kept: set[Ids] = set()

    def new(self, texts: Sequence[tuple[int, Ids]]) -> list[tuple[int, Ids]]:
        """Those that have to be read, each with who pays; they are kept where there is room."""
        first: dict[Ids, int] = {}
        for payer, ids in texts:
            if ids not in self.kept:
                first.setdefault(ids, payer)
        for ids in first:
            if self.held + len(ids) * self.token <= self.room:
                self.kept.add(ids)
                self.held += len(ids) * self.token
        return [(payer, ids) for ids, payer in first.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text to read, who pays for it, and what is fed after the opening, each with who pays."""

    payer: int
    ids: Ids
    fed: tuple[tuple[int, Ids], ...] = ()


def count_opened(
    ledger: Ledger, texts: Sequence[tuple[int, Ids]], opening: int, heard: Heard
) -> None:
    """One batch: texts that are read unless they are kept, then what opens their answers."""
    new = heard.new(texts)
    width = max((len(ids) for _, ids in new), default=0)
    for payer, ids in new:
        ledger.charge(payer, computed=len(ids), padding=width - len(ids))
    ledger.passes.append(Pass(rows=len(new), width=width, behind=0, reads=0))
    for payer, _ in texts:
        ledger.charge(payer, computed=opening)
    behind, reads = max(len(ids) for _, ids in texts), len(texts) * opening
    ledger.passes.append(Pass(rows=len(texts), width=opening, behind=behind, reads=reads))


def count_answers(
    ledger: Ledger,
    readings: Sequence[Reading],
    opening: int,
    budget: int,
    enough: int,
    heard: Heard,
) -> None:
    """Texts whose answers are scored: read in batches, and their answers in rows behind them."""
    for batch in batches([len(reading.ids) for reading in readings], budget, enough=enough):
        chosen = [readings[i] for i in batch]
        count_opened(ledger, [(each.payer, each.ids) for each in chosen], opening, heard)
        behind = max(len(each.ids) for each in chosen)
        rows = [row for each in chosen for row in each.fed]
        for part in batches([behind + len(ids) for _, ids in rows], budget, enough=enough):
            width = max(len(rows[i][1]) for i in part)
            for payer, ids in (rows[i] for i in part):
                ledger.charge(payer, computed=len(ids), padding=width - len(ids))
            size = len(part)
            ledger.passes.append(Pass(rows=size, width=width, behind=behind, reads=size * width))
