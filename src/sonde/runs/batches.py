"""How a run's model computes: tokens that go through it at once, and threads of a CPU.

Both move last digits, so that they are settled before the first shard and kept in the manifest,
beside what decides the answers: a measurement may come out otherwise another time, and other
workers may have other threads, but shards must not differ.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sonde.core.abilities import WANTED, Batching, Model
from sonde.core.costs import Batches
from sonde.core.prompts import Prompts
from sonde.core.words import counted
from sonde.store.runs import Writer

log = logging.getLogger(__name__)

LARGE = 2**22
"""Work, as shards are weighed, from which a second of measuring pays; of texts, times tokens."""


def settled(writer: Writer, model: Model, work: int) -> Batches:
    """How the model of a run computes, kept in the manifest before there are shards."""
    folder = writer.folder
    found, begun = Batches(**folder.manifest().batches), bool(folder.shards())
    batches = settle(model, found, begun=begun, work=work)
    if batches != found and not begun:
        writer.fix(batches)
    return batches


def settle(model: Model, found: Batches, *, begun: bool, work: int) -> Batches:
    """What goes through the model at once in a run, and how many threads are to compute it.

    `found`: what the manifest says, which holds if it says anything. `begun`: whether there are
    shards; a version that kept nothing in the manifest has made them as it always did. A number
    that the user gave wins, and is the run's own while there are none; another kind of device has
    its own, but shards stay as large as they are.
    """
    if not isinstance(model, Batching):
        return found
    budgets = model.budgets
    if found.tokens and (begun or not budgets.given):
        batches = found
    elif begun:
        batches = Batches(tokens=dict(budgets.former), device=budgets.device)
    else:
        batches = budgets.choose(measure=work >= LARGE)
    if not budgets.given:
        elsewhere = batches.tokens and batches.device != budgets.device
        budgets.fix(budgets.choose(measure=False).tokens if elsewhere else batches.now, 0)
    return batches


@contextmanager
def computing(model: Model, batches: Batches) -> Iterator[None]:
    """Compute with the threads of a run, if it was begun on a CPU; then as before."""
    if not isinstance(model, Batching):
        yield
        return
    budgets, own = model.budgets, model.budgets.threads
    threads = batches.threads if batches.device == budgets.device else 0
    if 0 < threads < own:
        log.warning(
            "the run was begun with %s on a CPU and goes on so, though there could be %d: other "
            "threads would change last digits",
            counted(threads, "thread", "threads"),
            own,
        )
    budgets.fix({}, threads)
    try:
        yield
    finally:
        budgets.fix({}, own)


@dataclass(slots=True, kw_only=True)
class Watch:
    """Keeps an eye on the budgets of a model while a run is made."""

    writer: Writer
    model: Model
    batches: Batches
    before: dict[str, int] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def enter(self, shard: Prompts) -> None:
        """Note with how much a session begins, and say where that is not what the run began with.

        Of each kind of work that the session's shards ask for, once.
        """
        if not isinstance(self.model, Batching):
            return
        self.before = self.before or dict(self.model.budgets.tokens)
        begun = self.batches.now
        for kind in {WANTED[type(block.want)]: None for block in shard.blocks}:
            count, here = begun.get(kind), self.before.get(kind)
            if kind not in self.asked and count and here and count != here:
                log.warning(
                    "%s was begun with %s tokens at once to %s; from here on it is %s, and the "
                    "last digits of answers may differ",
                    self.writer.folder.path,
                    f"{count:,}",
                    kind,
                    f"{here:,}",
                )
            self.asked.add(kind)

    def look(self) -> None:
        """Say what memory that ran out has left, and keep it before the next shard is written."""
        if not isinstance(self.model, Batching):
            return
        now = dict(self.model.budgets.tokens)
        less = {kind: count for kind, count in now.items() if count < self.before[kind]}
        for kind, count in less.items():
            log.warning(
                "memory ran out: to %s, %s tokens go through the model at once from here on "
                "(before: %s)",
                kind,
                f"{count:,}",
                f"{self.before[kind]:,}",
            )
        if less:
            self.batches = replace(self.batches, halved={**self.batches.halved, **less})
            self.writer.fix(self.batches)
        self.before = now
