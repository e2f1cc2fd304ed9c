"""Tokenise on other cores, ahead of the model. Knows prompts and an encoder, nothing of models.

Each worker is a Python process of its own; `python -m sonde.engine.tokenise` is one. A process, not
a thread, because most of the time goes into making Python objects. Texts and columns of numbers lie
in memory that both processes see; only how many there are goes through a pipe.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock
from typing import BinaryIO, cast

import numpy as np
from tokenizers import Tokenizer

from sonde.core.prompts import TEXTS, Prompts
from sonde.engine.masked_batch import MaskedEncoder, MaskedTexts, joined

log = logging.getLogger("sonde")

TASK = 512  # texts from which on a worker is asked
SHARES = 4  # parts of a chunk for each worker
AHEAD = 2**18  # texts that are under way at once
ROOM = 2**20  # bytes of memory that a worker begins with

COLUMNS = (np.int32, np.int64, np.int32)
"""Of what kind the numbers of `MaskedTexts` are: ids, offsets, places."""

SIDES = (np.int64, np.uint8, np.int64, np.uint8)
"""Of texts: where those before the mask begin, their bytes, and the same of those after it."""


class Tokenisers:
    """Turns texts with one mask each into columns, on `workers` processes; 0: here."""

    def __init__(self, encoder: MaskedEncoder, workers: int) -> None:
        self.encoder = encoder
        self.workers = workers
        self._idle: SimpleQueue[_Worker] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._starting = Lock()  # several threads may be the first to need them

    def columns(self, chunks: Iterable[Prompts]) -> Iterator[MaskedTexts]:
        """The columns of each chunk of prompts, those that follow under way while one is used."""
        coming: deque[tuple[int, list[Future[MaskedTexts]]]] = deque()
        for chunk in chunks:
            asked = len(chunk) if self.workers and len(chunk) >= TASK else 0
            # a chunk that is made here waits for those before it, and so do many texts
            while coming and (not asked or asked + sum(size for size, _ in coming) > AHEAD):
                yield _collected(coming.popleft()[1])
            if asked:
                coming.append((asked, [self._submit(part) for part in self._tasks(chunk)]))
            else:
                yield self._here(chunk)
        while coming:
            yield _collected(coming.popleft()[1])

    def _tasks(self, chunk: Prompts) -> Iterator[Prompts]:
        """A chunk in several parts for each worker, so that none waits for the slowest."""
        size = max(TASK, -(-len(chunk) // (SHARES * self.workers)))
        return (chunk.part(i, i + size) for i in range(0, len(chunk), size))

    def _submit(self, prompts: Prompts) -> Future[MaskedTexts]:
        with self._starting:
            if self._threads is None or self._idle is None:
                self._idle = SimpleQueue()
                for _ in range(self.workers):
                    self._idle.put(_Worker(self.encoder))
                self._threads = ThreadPoolExecutor(self.workers, "tokenise")
            return self._threads.submit(self._ask, prompts)

    def _ask(self, prompts: Prompts) -> MaskedTexts:
        assert self._idle is not None
        worker = self._idle.get()
        try:
            return worker.ask(prompts)
        except (EOFError, BrokenPipeError):
            log.warning("a tokenising process was ended by something else; another is started")
            worker.close()
            worker = _Worker(self.encoder)
            return self._here(prompts)
        finally:
            self._idle.put(worker)

    def _here(self, prompts: Prompts) -> MaskedTexts:
        return self.encoder.columns([text for block in prompts.blocks for text in block.texts()])

    def close(self) -> None:
        """End the workers; they also end by themselves with this process."""
        if self._threads is not None and self._idle is not None:
            self._threads.shutdown(cancel_futures=True)
            while not self._idle.empty():
                self._idle.get().close()
        self._threads = self._idle = None


def _collected(tasks: Sequence[Future[MaskedTexts]]) -> MaskedTexts:
    return joined([task.result() for task in tasks])


class Memory:
    """Memory that several processes see: a file without a name, of which nothing is left behind."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._map = mmap.mmap(file, os.fstat(file).st_size)

    @classmethod
    def new(cls) -> Memory:
        """Some that a process may inherit, by its file's number."""
        try:
            file = os.memfd_create("sonde")
        except (AttributeError, OSError):  # only Linux has it, and not everywhere
            with tempfile.TemporaryFile() as named:
                file = os.dup(named.fileno())
        _take(file, ROOM)
        return cls(file)

    def write(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Put arrays in, from the beginning on; returns how long each is."""
        if (needed := sum(_room(array.nbytes) for array in arrays)) > len(self._map):
            # taken now: writing to memory that turns out not to be there ends the process
            _take(self.file, 1 << (needed - 1).bit_length())
            self._map = mmap.mmap(self.file, os.fstat(self.file).st_size)
        at = 0
        for array in arrays:
            np.frombuffer(self._map, array.dtype, array.size, at)[:] = array
            at += _room(array.nbytes)
        return np.array([array.size for array in arrays], np.int64)

    def read(self, kinds: Sequence[type], sizes: Sequence[int]) -> list[np.ndarray]:
        """The arrays that lie there, as they were written; they are there until others are."""
        if os.fstat(self.file).st_size > len(self._map):
            self._map = mmap.mmap(self.file, os.fstat(self.file).st_size)
        found: list[np.ndarray] = []
        at = 0
        for kind, size in zip(kinds, sizes, strict=True):
            found.append(np.frombuffer(self._map, kind, size, at))
            at += _room(found[-1].nbytes)
        return found

    def close(self) -> None:
        """Give it back, once nobody else has it."""
        os.close(self.file)


def _take(file: int, size: int) -> None:
    """Make a file so large."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def _room(size: int) -> int:
    """Bytes that so many take, so that numbers begin at a multiple of their size."""
    return -(-size // 8) * 8


class _Worker:
    """One process; whoever holds it may ask it."""

    def __init__(self, encoder: MaskedEncoder) -> None:
        # one thread each: there are several of them
        surroundings = {**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "0"}
        surroundings["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.memory = Memory.new()
        self.process = subprocess.Popen(
            # -P: a tokenizers.py in the folder one stands in is not ours
            [sys.executable, "-P", "-m", "sonde.engine.tokenise", str(self.memory.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=surroundings,
            pass_fds=[self.memory.file],
            start_new_session=True,  # an interrupt is for this process to deal with
        )
        self._first = [encoder.tokenizer.to_str(), encoder.mask]

    def ask(self, prompts: Prompts) -> MaskedTexts:
        sink, source = (cast(BinaryIO, pipe) for pipe in (self.process.stdin, self.process.stdout))
        if self._first:  # not before: it waits until the process has started
            written = [np.frombuffer(text.encode(), np.uint8) for text in self._first]
            send(sink, self.memory.write(written))
            receive(source, 1)
            self._first = []
        send(sink, self.memory.write([array for name in TEXTS for array in utf8(prompts, name)]))
        *sizes, failed = receive(source, 4)
        if failed:
            raise pickle.loads(self.memory.read([np.uint8], [failed])[0].tobytes())
        # copied, because the next texts are written over them
        ids, offsets, places = (array.copy() for array in self.memory.read(COLUMNS, sizes))
        return MaskedTexts(ids=ids, offsets=offsets, places=places)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):  # what it was not told is not missed
                cast(BinaryIO, pipe).close()
        self.process.wait()
        self.memory.close()


def utf8(prompts: Prompts, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Where each text of a column begins and the last one ends, and their bytes end to end.

    No text becomes an object.
    """
    import polars

    whole = polars.concat([block.frame[name] for block in prompts.blocks]).to_arrow()
    _, ends, text = whole.buffers()
    offsets = np.frombuffer(ends, np.int64)[whole.offset :][: len(whole) + 1]
    written = np.frombuffer(text or b"", np.uint8)
    return offsets - offsets[0], written[offsets[0] : offsets[-1]]


def serve(memory: Memory) -> None:
    """Answer texts until there are none: with three columns, or with one error."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    try:
        written = memory.read([np.uint8] * 2, receive(source, 2))
    except EOFError:
        return  # it was never needed
    tokenizer, mask = (part.tobytes().decode() for part in written)
    encoder = MaskedEncoder(Tokenizer.from_str(tokenizer), mask)
    send(sink, np.zeros(1, np.int64))
    while True:
        try:
            starts, before, ends, after = memory.read(SIDES, receive(source, 4))
        except EOFError:
            return
        try:
            sides = split(starts, before), split(ends, after)
            found = encoder.columns(list(zip(*sides, strict=True)))
        except Exception as error:
            told = memory.write([np.frombuffer(pickle.dumps(error), np.uint8)])
            send(sink, np.append([0, 0, 0], told))
        else:
            columns = (found.ids, found.offsets, found.places)
            kinds = zip(columns, COLUMNS, strict=True)
            sizes = memory.write([column.astype(kind, copy=False) for column, kind in kinds])
            send(sink, np.append(sizes, 0))


def split(offsets: np.ndarray, written: np.ndarray) -> list[str]:
    """Texts that lie end to end as UTF-8, given where each begins and the last one ends.

    >>> split(np.array([0, 2, 2, 3]), np.frombuffer("éa".encode(), np.uint8))
    ['é', '', 'a']
    """
    text = written.tobytes().decode()
    if len(text) < len(written):  # characters, not bytes, are counted in it
        begun = np.cumsum((written & 0xC0) != 0x80)
        offsets = np.append(0, begun)[offsets]
    bounds = offsets.tolist()
    return [text[start:end] for start, end in pairwise(bounds)]


def send(sink: BinaryIO, numbers: np.ndarray) -> None:
    """Tell the other side how much lies in memory."""
    sink.write(numbers.astype(np.int64).tobytes())
    sink.flush()


def receive(source: BinaryIO, count: int) -> list[int]:
    """So many numbers from the other side; `EOFError` where it has gone."""
    told = source.read(8 * count)
    if len(told) < 8 * count:
        raise EOFError
    return cast(list[int], np.frombuffer(told, np.int64).tolist())


if __name__ == "__main__":
    serve(Memory(int(sys.argv[1])))
