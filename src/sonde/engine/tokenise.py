"""Tokenise on other cores, ahead of the model. Knows texts and an encoder, nothing of models.

Each worker is a Python process of its own that reads lists of texts from a pipe and answers with
columns of numbers; `python -m sonde.engine.tokenise` is one. A process, not a thread, because most
of the time goes into making Python objects.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from tokenizers import Tokenizer

from sonde.engine.encode import MaskedEncoder
from sonde.engine.masked_batch import MaskedTexts, columns, joined

Texts = Sequence[tuple[str, str]]
"""What stands before the hole and what stands after it, for each text."""

TASK = 2048  # texts that a worker takes at once


class Tokenisers:
    """Turns texts with holes into columns, on `workers` processes; 0: here."""

    def __init__(self, encoder: MaskedEncoder, workers: int) -> None:
        self.encoder = encoder
        self.workers = workers
        self._idle: SimpleQueue[_Worker] | None = None
        self._threads: ThreadPoolExecutor | None = None

    def columns(self, chunks: Iterable[Texts]) -> Iterator[MaskedTexts]:
        """The columns of each chunk of texts, the next one under way while one is used."""
        ahead: deque[list[Future[MaskedTexts]]] = deque()
        for chunk in chunks:
            if not self.workers or len(chunk) < TASK:
                yield from (joined([task.result() for task in tasks]) for tasks in ahead)
                ahead.clear()
                yield encode(self.encoder, chunk)
                continue
            tasks = (chunk[i : i + TASK] for i in range(0, len(chunk), TASK))
            ahead.append([self._submit(task) for task in tasks])
            if len(ahead) > 1:
                yield joined([task.result() for task in ahead.popleft()])
        yield from (joined([task.result() for task in tasks]) for tasks in ahead)

    def _submit(self, texts: Texts) -> Future[MaskedTexts]:
        if self._threads is None or self._idle is None:
            self._idle = SimpleQueue()
            for _ in range(self.workers):
                self._idle.put(_Worker(self.encoder))
            self._threads = ThreadPoolExecutor(self.workers, "tokenise")
        return self._threads.submit(self._ask, texts)

    def _ask(self, texts: Texts) -> MaskedTexts:
        assert self._idle is not None
        worker = self._idle.get()
        try:
            return worker.ask(texts)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the workers; they also end by themselves with this process."""
        if self._threads is not None and self._idle is not None:
            self._threads.shutdown(cancel_futures=True)
            while not self._idle.empty():
                self._idle.get().close()
        self._threads = self._idle = None


class _Worker:
    """One process; whoever holds it may ask it."""

    def __init__(self, encoder: MaskedEncoder) -> None:
        # one thread each: there are several of them
        surroundings = {**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "0"}
        surroundings["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            # -P: a tokenizers.py in the folder one stands in is not ours
            [sys.executable, "-P", "-m", "sonde.engine.tokenise"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=surroundings,
            start_new_session=True,  # an interrupt is for this process to deal with
        )
        self._send((encoder.tokenizer.to_str(), encoder.mask))

    def ask(self, texts: Texts) -> MaskedTexts:
        self._send(texts)
        assert self.process.stdout is not None
        answer = pickle.load(self.process.stdout)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, MaskedTexts)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _send(self, what: Any) -> None:
        assert self.process.stdin is not None
        pickle.dump(what, self.process.stdin, protocol=5)
        self.process.stdin.flush()


def encode(encoder: MaskedEncoder, texts: Texts) -> MaskedTexts:
    """The columns of some texts."""
    return columns([(span.ids, span.start) for span in encoder.holes(texts)])


def serve() -> None:
    """Answer lists of texts until there are none."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    tokenizer, mask = pickle.load(source)
    encoder = MaskedEncoder(Tokenizer.from_str(tokenizer), mask)
    while True:
        try:
            texts = pickle.load(source)
        except EOFError:
            return
        try:
            answer: MaskedTexts | Exception = encode(encoder, texts)
        except Exception as error:
            answer = error
        pickle.dump(answer, sink, protocol=5)
        sink.flush()


if __name__ == "__main__":
    serve()
