"""The driver of workers, which a run takes for a model: it deals out shards and gathers answers.

A worker that is lost is replaced, and its shards go to whoever is free. Only errors that any worker
would have met, shards at which worker after worker is lost, and workers that never start end a run.
Knows nothing of where workers are.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from sonde.core.abilities import Identity, Named
from sonde.core.certificates import Recheck
from sonde.core.costs import Batches
from sonde.core.errors import AbilityError, WorkerError
from sonde.core.prompts import Prompts, called
from sonde.core.words import counted
from sonde.runs.shards import Effort, Made, Numbered, shard_work
from sonde.runs.workers.channels import Channel, Lost, Place
from sonde.runs.workers.dealing import Dealing
from sonde.runs.workers.messages import (
    Answered,
    Choose,
    Chosen,
    Failed,
    Going,
    Order,
    Ready,
    Said,
    Standing,
    Task,
    pack,
    unpack,
)
from sonde.runs.workers.spec import Workers, tell_idle

IN_FLIGHT = 2
"""Shards that a worker has at once: the one it answers, and the one that it answers next."""

DEATHS = 3
"""Workers that may be lost at one shard, or one after the other before they are ready."""

MOMENT = 60.0
"""Seconds after which who waits looks again."""

log = logging.getLogger(__name__)

Event = tuple["Hand", Any]
"""A worker, and what it said or how it was lost."""


@dataclass(slots=True, kw_only=True, eq=False)
class Hand:
    """One worker, as the driver sees it.

    `tasks`: the shards that it has. `failures`: how many before it in this place were lost while
    they loaded the model.
    """

    number: int
    channel: Channel
    ready: Ready | None = None
    tasks: dict[int, Prompts] = field(default_factory=dict)
    failures: int = 0

    def has_room(self, deaths: Container[int]) -> bool:
        """Whether it may be given one more shard."""
        return len(self.tasks) < IN_FLIGHT and not any(number in deaths for number in self.tasks)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"worker {self.number + 1} ({self.channel.told})"


class Crew(Named):
    """Workers with the same model each. Has the abilities of that model, for whole shards."""

    identity: Identity
    budgets: CrewBudgets  # there only where the model has some

    def __init__(self, workers: Workers, place: Place, order: Order) -> None:
        self.workers, self._place = workers, place
        self._order, self._model = pack(order), order.reference
        self._hands: list[Hand] = []
        self._first: Ready | None = None
        self._said: set[str] = set()
        self._again: Recheck | None = None
        try:
            for number in range(workers.count):
                self._hands.append(self._start(number))
            first = self._gather()
        except BaseException:
            self.close()
            raise
        self.identity = first.identity
        for name in first.abilities:
            setattr(self, name, _refuse)  # by its methods it is told what a model can do
        if (lacks := first.lacks) is not None:
            self.lacks = lambda: lacks
        if first.fillable is not None:
            self.fillable = first.fillable
        if first.chat is not None:
            self.in_turns = first.chat.in_turns
        if first.batching is not None:
            self.budgets = CrewBudgets(first.batching, self._choose)
            tell_idle(workers, first.batching.threads, place.cores)

    @property
    def count(self) -> int:
        """How many workers there are to be."""
        return self.workers.count

    @property
    def standing(self) -> str:
        """How many workers are at work, in words."""
        able = sum(hand.ready is not None for hand in self._hands)
        whole = counted(self.count, "worker", "workers")
        return whole if able == self.count else f"{able} of {whole}"

    def recheck(self, known: Recheck | None) -> None:
        """Have each worker ask its model this again, where that is behind a server."""
        self._again = known

    def close(self) -> None:
        """End all workers."""
        hands, self._hands = self._hands, []
        for hand in hands:
            hand.channel.close()
        self._place.close()

    def answer_shards(self, shards: Iterator[Numbered], effort: Effort) -> Made:
        """Yield each shard once some worker has answered it."""
        dealing, deaths, whole = Dealing(shards), Counter[int](), False
        try:
            while self._hand_out(dealing, deaths):
                for hand, message in self._events():
                    if isinstance(message, Going):
                        done = message.share * shard_work(hand.tasks[message.number])
                        effort.elsewhere[message.number] = done
                        effort.tell()
                    elif isinstance(message, Answered):
                        self._take(hand, message, effort)
                        yield message.number, partial(_bytes, message)
                    elif isinstance(message, Lost):
                        self._take_back(hand, message, dealing, deaths)
            whole = True
        finally:
            # prompts of unfinished shards, as far as workers report
            effort.received += effort.prompts * sum(effort.elsewhere.values()) / effort.work
            effort.elsewhere.clear()
            if not whole:  # workers are at shards that nobody waits for
                self.close()

    def _hand_out(self, dealing: Dealing[Numbered], deaths: Counter[int]) -> bool:
        """Give each worker what it has room for; whether there is anything left to wait for.

        What was with a worker that was lost is given alone: who is lost then was lost at that.
        """
        tokens = self.budgets.tokens if hasattr(self, "budgets") else {}
        threads = self.budgets.threads if hasattr(self, "budgets") else 0
        for hand in self._hands:
            while hand.ready and hand.has_room(deaths) and (found := dealing.next(hand)):
                number, shard = found
                if hand.tasks and number in deaths:
                    dealing.give_back(found)
                    break
                hand.tasks[number] = shard
                task = Task(
                    number=number,
                    blocks=shard.blocks,
                    tokens=tokens,
                    threads=threads,
                    again=self._again,
                )
                self._tell(hand, task)
        return dealing.held > 0 or any(hand.tasks for hand in self._hands)

    def _take(self, hand: Hand, message: Answered, effort: Effort) -> None:
        """A worker has answered a shard."""
        effort.elsewhere.pop(message.number, None)
        shard = hand.tasks.pop(message.number)
        effort.received += len(shard)
        effort.leave(shard)
        if hasattr(self, "budgets"):
            self.budgets.lower(message.tokens)
        effort.tell()

    def _take_back(
        self, hand: Hand, lost: Lost, dealing: Dealing[Numbered], deaths: Counter[int]
    ) -> None:
        """A worker is lost: its shards go to others, unless one of them has ended too many."""
        for number, shard in hand.tasks.items():
            deaths[number] += 1
            if deaths[number] == DEATHS:
                raise WorkerError(_deadly(number, shard, lost))
            dealing.give_back((number, shard))
        at = " or ".join(map(str, hand.tasks))
        self._replace(hand, lost, at and f" while it answered shard {at}")

    def _start(self, number: int, failures: int = 0) -> Hand:
        hand = Hand(number=number, channel=self._place.start(number), failures=failures)
        with suppress(Lost):  # which is heard as soon as it is listened to
            hand.channel.send(self._order)
        return hand

    def _gather(self) -> Ready:
        """Wait until every worker has loaded the model."""
        while any(hand.ready is None for hand in self._hands):
            for hand, message in self._events():
                if isinstance(message, Lost):
                    self._replace(hand, message)
        assert self._first is not None
        return self._first

    def _choose(self, measure: bool) -> Batches:
        """Let one worker choose for all."""
        asked: Hand | None = None
        while True:
            if asked not in self._hands:
                asked = next((hand for hand in self._hands if hand.ready), None)
                if asked is not None:
                    self._tell(asked, Choose(measure=measure))
            for hand, message in self._events():
                if isinstance(message, Chosen):
                    return message.batches
                if isinstance(message, Lost):
                    self._replace(hand, message)

    def _tell(self, hand: Hand, message: Choose | Task) -> None:
        with suppress(Lost):  # which is heard as soon as it is listened to
            hand.channel.send(pack(message))

    def _events(self) -> Iterator[Event]:
        """What workers say next of what they were told to do, and which of them are lost."""
        hands = {id(hand.channel): hand for hand in self._hands}
        for channel in self._place.wait([hand.channel for hand in self._hands], MOMENT):
            hand = hands[id(channel)]
            try:
                message = unpack(channel.receive())
            except Lost as lost:
                yield hand, lost
                continue
            if isinstance(message, Said):
                self._log(message)
            elif isinstance(message, Failed):
                raise message.error()
            elif isinstance(message, Ready):
                self._admit(hand, message)
            else:
                yield hand, message

    def _log(self, said: Said) -> None:
        """Log what a worker has to say; others say the same."""
        if said.text not in self._said:
            self._said.add(said.text)
            logging.getLogger(said.name).log(said.level, "%s", said.text)

    def _admit(self, hand: Hand, ready: Ready) -> None:
        """A worker has loaded its model, which must be the one that the first has."""
        self._first = self._first or ready
        ours, theirs = ({**asdict(each.identity), **each.versions} for each in (self._first, ready))
        unlike = [name for name in ours if ours[name] != theirs.get(name)]
        if unlike:
            name = unlike[0]
            raise WorkerError(
                f"{hand.name} has another model than the first that was ready: {name} is "
                f"{theirs.get(name)!r}, not {ours[name]!r}; let {self._model} be the same, with "
                "the same versions of all libraries, wherever a worker runs"
            )
        hand.ready, hand.failures = ready, 0

    def _replace(self, hand: Hand, lost: Lost, when: str = "") -> None:
        """Start another worker in the place of one that is lost; not where none gets ready."""
        hand.channel.close()
        self._hands.remove(hand)
        failures = hand.failures + (hand.ready is None)
        when = when or (" before it was ready" if hand.ready is None else "")
        if failures < DEATHS:
            log.warning("%s was lost%s (%s); another takes its place", hand.name, when, lost)
            self._hands.append(self._start(hand.number, failures))
        elif any(other.ready for other in self._hands):
            log.warning("%s was lost%s (%s), as others before it", hand.name, when, lost)
        else:
            raise WorkerError(
                f"no worker got {self._model} ready: {DEATHS} were lost one after the other, the "
                f"last {lost}; try one worker, or none, to see whether the model can be loaded"
            )


class CrewBudgets:
    """How much goes through the model at once, with every worker the same."""

    def __init__(self, first: Standing, choose: Callable[[bool], Batches]) -> None:
        self._first, self._choose = first, choose
        self.tokens: Mapping[str, int] = dict(first.tokens)
        self.device, self.former, self.given = first.device, first.former, first.given
        self.threads = first.threads

    def choose(self, *, measure: bool) -> Batches:
        """What fits the chip and the model, as one worker finds it."""
        return self._choose(measure)

    def fix(self, tokens: Mapping[str, int], threads: int) -> None:
        """Go on with these, kinds that are not named as they are; 0 leaves the threads."""
        self.tokens = {kind: tokens.get(kind, count) for kind, count in self.tokens.items()}
        self.threads = threads or self.threads

    def lower(self, tokens: Mapping[str, int]) -> None:
        """Go on with fewer where a worker's memory ran out."""
        less = {kind: min(count, tokens[kind]) for kind, count in self.tokens.items()}
        self.tokens = less


def _bytes(answered: Answered) -> memoryview:
    return memoryview(answered.data)


def _refuse(*_: object) -> Any:
    raise AbilityError(
        "workers answer whole shards of runs; to ask a model yourself, load it without workers"
    )


def _deadly(number: int, shard: Prompts, lost: Lost) -> str:
    """What to say of a shard at which worker after worker was lost."""
    first = shard[:1][0]
    return (
        f"{DEATHS} workers were lost while they answered shard {number}, the last {lost}; it "
        f"begins with {called(first.key, first.prefix, first.suffix)}. What is finished is kept: "
        "run the same command again, with fewer workers or a smaller --batch-tokens if memory is "
        "short"
    )
