"""A worker: loads a model, says what it is, and answers shards. Knows nothing of who else does.

`receive` and `send` carry bytes, whatever is between driver and worker.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from sonde.core.abilities import Batching, FillsWords, Lacks, Model, Prefetches, abilities
from sonde.core.certificates import Recheck, Rechecks
from sonde.core.errors import WorkerError
from sonde.core.prompts import Prompts
from sonde.core.threads import Behind
from sonde.models.load import load
from sonde.runs.shards import Effort, answer_shard, shard_work
from sonde.runs.workers.messages import (
    Answered,
    Choose,
    Chosen,
    Failed,
    FromWorker,
    Going,
    Order,
    Ready,
    Said,
    Standing,
    Task,
    pack,
    unpack,
)
from sonde.store.manifest import versions
from sonde.store.rows import Answering
from sonde.store.runs import encoded

OFTEN = 0.25
"""Seconds between two words on how far a shard is."""


def serve(receive: Callable[[], bytes], send: Callable[[bytes], None]) -> None:
    """Do what the driver says until it says no more: `receive` then raises EOFError."""
    inbox: SimpleQueue[Any] = SimpleQueue()
    worker = Worker(inbox, send)
    worker.listen()
    Thread(target=worker.work, daemon=True).start()
    while True:
        try:
            data = receive()
        except EOFError:
            return
        try:
            inbox.put(unpack(data))
        except Exception as error:  # a worker that ends tells nobody
            worker.say(Failed.of(_unread(error)))


class Worker:
    """Does one thing after the other, in the order in which it is told."""

    def __init__(self, inbox: SimpleQueue[Any], send: Callable[[bytes], None]) -> None:
        self._inbox, self._send, self._lock = inbox, send, Lock()
        self._coming: deque[Any] = deque()
        self._model: Model | None = None
        self._fixed: tuple[Mapping[str, int], int] = ({}, 0)
        self._again: Recheck | None = None
        self._told = 0.0

    @property
    def model(self) -> Model:
        """The model, which was loaded first."""
        assert self._model is not None
        return self._model

    def say(self, message: FromWorker) -> None:
        """Tell the driver."""
        data = pack(message)
        with self._lock:
            self._send(data)

    def listen(self) -> None:
        """Let the driver have what is logged here."""
        logging.basicConfig(handlers=[Telling(self.say)], level=logging.WARNING, force=True)
        logging.captureWarnings(True)
        logging.getLogger("sonde").setLevel(logging.INFO)

    def work(self) -> None:
        """Do what comes, for ever."""
        with Behind() as behind:
            while True:
                self.do_next(behind)

    def do_next(self, behind: Behind) -> None:
        """Do what came first, once something has."""
        message = self._coming.popleft() if self._coming else self._inbox.get()
        try:
            self._do(message, behind)
        except BaseException as error:  # a thread that ends tells nobody
            self.say(Failed.of(error))

    def _do(self, message: Any, behind: Behind) -> None:
        if isinstance(message, Order):
            self._model = load(message.reference, message.options, message.dataset)
            self.say(_ready(self._model))
        elif isinstance(message, Choose):
            assert isinstance(self.model, Batching)
            self.say(Chosen(batches=self.model.budgets.choose(measure=message.measure)))
        elif isinstance(message, Task):
            answers = self._answer(message)
            kept = partial(self._keep, message.number, answers, _tokens(self.model))
            behind.do(kept, lambda _: None)  # while the next one is answered

    def _answer(self, task: Task) -> Answering:
        fixed = task.tokens, task.threads
        if isinstance(self.model, Batching) and fixed != self._fixed:
            self.model.budgets.fix(*fixed)
            self._fixed = fixed
        if isinstance(self.model, Rechecks) and task.again != self._again:
            self.model.recheck(task.again)
            self._again = task.again
        shard = Prompts(blocks=task.blocks)
        effort = Effort(prompts=1, work=shard_work(shard), told=partial(self._going, task.number))
        effort.enter(shard)
        self.say(Going(number=task.number, share=0.0))
        return answer_shard(self.model, shard, self._look(), effort)

    def _going(self, number: int, share: float, _: int) -> None:
        """A little more is done: now and then see what came, and tell the driver."""
        now = time.monotonic()
        if now - self._told < OFTEN:
            return
        self._told = now
        self.say(Going(number=number, share=share))
        for following in self._look():
            if isinstance(self.model, Prefetches):
                self.model.prefetch(following)

    def _look(self) -> list[Prompts]:
        """Shards that came since this was called last, which are answered after this one."""
        found: list[Prompts] = []
        while True:
            try:
                message = self._inbox.get_nowait()
            except Empty:
                return found
            if isinstance(message, Task):
                found.append(Prompts(blocks=message.blocks))
            self._coming.append(message)

    def _keep(self, number: int, answers: Answering, tokens: Mapping[str, int]) -> None:
        """Send the answers as they are written."""
        try:
            data = bytes(encoded(answers, self.model.identity))
        except Exception as error:
            self.say(Failed.of(error))
        else:
            self.say(Answered(number=number, data=data, tokens=tokens))


class Telling(logging.Handler):
    """Gives what is logged to the driver."""

    def __init__(self, say: Callable[[Said], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Send one line."""
        self._say(Said(level=record.levelno, name=record.name, text=record.getMessage()))


def _unread(error: Exception) -> WorkerError:
    return WorkerError(
        f"a worker cannot read what it is sent ({type(error).__name__}: {error}); install the same "
        "version of sonde on every machine"
    )


def _ready(model: Model) -> Ready:
    batching = None
    if isinstance(model, Batching):
        found = model.budgets
        batching = Standing(
            tokens=dict(found.tokens),
            device=found.device,
            former=dict(found.former),
            given=found.given,
            threads=found.threads,
        )
    return Ready(
        identity=model.identity,
        abilities=abilities(model),
        batching=batching,
        versions=versions(),
        chat=getattr(model, "chat", None),
        lacks=dict(model.lacks()) if isinstance(model, Lacks) else None,
        fillable=model.fillable if isinstance(model, FillsWords) else None,
    )


def _tokens(model: Model) -> Mapping[str, int]:
    return dict(model.budgets.tokens) if isinstance(model, Batching) else {}
