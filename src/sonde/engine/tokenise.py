"""Tokenise on other cores, ahead of the model. Knows texts and an encoder, nothing of models.

Each worker is a Python process of its own; `python -m sonde.engine.tokenise` is one. A process, not
a thread, because most of the time goes into making Python objects. Texts go to it as one buffer and
their lengths, columns of numbers come back as they stand in memory.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from queue import SimpleQueue
from typing import BinaryIO, cast

import numpy as np
from tokenizers import Tokenizer

from sonde.engine.masked_batch import MaskedEncoder, MaskedTexts, joined

Texts = Sequence[tuple[str, str]]
"""What stands before the mask and what stands after it, for each text."""

TASK = 512  # texts from which on a worker is asked
HALVES = "surrogatepass"  # half a character is for the tokenizer to refuse


class Tokenisers:
    """Turns texts with one mask each into columns, on `workers` processes; 0: here."""

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
                yield self.encoder.columns(chunk)
                continue
            size = max(TASK, -(-len(chunk) // self.workers))
            tasks = (chunk[i : i + size] for i in range(0, len(chunk), size))
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
        self._first = [encoder.tokenizer.to_str().encode(), encoder.mask.encode()]

    @property
    def _sink(self) -> BinaryIO:
        assert self.process.stdin is not None
        return cast(BinaryIO, self.process.stdin)

    def ask(self, texts: Texts) -> MaskedTexts:
        if self._first:  # not before: it waits until the process has started
            send(self._sink, *self._first)
            self._first = []
        sides = list(chain.from_iterable(texts))
        lengths = np.fromiter(map(len, sides), np.int64, len(sides))
        send(self._sink, lengths.tobytes(), "".join(sides).encode(errors=HALVES))
        answer = receive(cast(BinaryIO, self.process.stdout))
        if len(answer) == 1:
            raise pickle.loads(answer[0])
        ids, offsets, places = answer
        return MaskedTexts(
            ids=np.frombuffer(ids, np.int32),
            offsets=np.frombuffer(offsets, np.int64),
            places=np.frombuffer(places, np.int32),
        )

    def close(self) -> None:
        self._sink.close()
        self.process.wait()


def serve() -> None:
    """Answer texts until there are none: with three columns, or with one error."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    if not (first := receive(source)):
        return  # it was never needed
    tokenizer, mask = (part.decode() for part in first)
    encoder = MaskedEncoder(Tokenizer.from_str(tokenizer), mask)
    while asked := receive(source):
        lengths, text = np.frombuffer(asked[0], np.int64), asked[1].decode(errors=HALVES)
        try:
            found = encoder.columns(pairs(lengths, text))
        except Exception as error:
            send(sink, pickle.dumps(error))
        else:
            send(sink, *(part.tobytes() for part in (found.ids, found.offsets, found.places)))


def pairs(lengths: np.ndarray, text: str) -> list[tuple[str, str]]:
    """The texts that were put together, two by two."""
    ends = [0, *np.cumsum(lengths).tolist()]
    bounds = zip(ends[:-1:2], ends[1::2], ends[2::2], strict=True)
    return [(text[start:middle], text[middle:end]) for start, middle, end in bounds]


def send(sink: BinaryIO, *parts: bytes) -> None:
    """Write a message: how many parts it has, how many bytes each, and these."""
    sink.write(np.array([len(parts), *map(len, parts)], np.int64).tobytes())
    sink.writelines(parts)
    sink.flush()


def receive(source: BinaryIO) -> list[bytearray]:
    """The parts of the next message; none where the other side has gone."""
    if not (count := source.read(8)):
        return []
    sizes = np.frombuffer(source.read(8 * int(np.frombuffer(count, np.int64)[0])), np.int64)
    return [bytearray(source.read(size)) for size in sizes.tolist()]


if __name__ == "__main__":
    serve()
