"""Where the command line writes: results to stdout, everything else to stderr.

Most of what is written comes from others: datasets, models, paths, servers. So no text is read as
markup or emoji here, and nothing in it steers the terminal; colours come from styles alone.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import typer
from rich import progress as bars
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from sonde.cli.main import Stopped
from sonde.core.errors import StoreError
from sonde.core.plain import json_text
from sonde.core.progress import heard
from sonde.core.words import legible

PLAIN: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}

EVERY = 30.0
"""Seconds between two lines of progress where there is no terminal."""

LONG = 600.0
"""Seconds from which work is long enough to say so before it is done."""

MEASURED, LATE = 8.0, 120.0
"""Seconds that something goes on before that is judged, and after which it is not said any more."""

Tick = Callable[..., None]
"""Told how much is done, of how much, and how it goes where there is something to say of that."""

Warn = Callable[[float, float], str]
"""Given the seconds that are left, and those of the whole, says what to do about it."""


def output() -> Console:
    """Results. Wide enough to be read where there is no terminal."""
    return _guarded(Console(width=None if sys.stdout.isatty() else 100, **PLAIN))


_with_bars: list[Console] = []
"""Consoles that show a bar now; what others write would break it."""


def errors() -> Console:
    """Messages and progress; messages go above the bar where there is one."""
    if _with_bars:
        return _with_bars[-1]
    return _guarded(Console(stderr=True, soft_wrap=True, **PLAIN))


def line(text: str, style: str = "") -> Text:
    """Text as it is: no markup is read in it, and control characters are shown escaped."""
    return Text(legible(text), style)


def say(text: str, *, soft_wrap: bool = False) -> None:
    """Print a result; whoever wrote the text, it is shown as it is."""
    output().print(line(text), soft_wrap=soft_wrap)


def tell(text: str, style: str = "") -> None:
    """Print a message; whoever wrote the text, it is shown as it is."""
    errors().print(line(text, style))


def print_json(value: Mapping[str, Any]) -> None:
    """Print a result for other programs."""
    typer.echo(json_text(value))


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Container[int] = (),
    title: str | None = None,
    padding: tuple[int, ...] = (0, 2, 0, 0),
) -> None:
    """Print rows under their titles, cells shown as they are; `right` columns end on the right."""
    table = Table(title=title, title_justify="left", box=None, padding=padding)  # type: ignore[arg-type]
    for i, name in enumerate(titles):
        table.add_column(line(name), justify="right" if i in right else "left")
    for row in rows:
        table.add_row(*(line(str(cell)) for cell in row))
    output().print(table)


class Guard(RenderHook):
    """Lets no character through that a terminal obeys, whatever is printed and however."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap what is about to be printed."""
        return [Guarded(inner=each) for each in renderables]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Something to print, with the characters of its texts spelt out; the styles are rich's own."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(legible(segment.text), segment.style)


def _guarded(console: Console) -> Console:
    console.push_render_hook(Guard())
    return console


class Messages(logging.Handler):
    """What sonde and its libraries have to say, above the progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        tell(level + record.getMessage())


class Bar:
    """How far some work is: a spinner and the seconds, and a bar once it is known how much it is.

    Without a terminal a line is printed every 30 seconds; nothing is shown within another bar. One
    that `stays` is left there at the end. Where the work will take more than `LONG`, `long` is told
    once the seconds that are left and those of the whole, and gives the line that is then printed.
    """

    def __init__(
        self, what: str, unit: str = "", long: Warn | None = None, *, stays: bool = True
    ) -> None:
        self._console = errors()
        self._shown = bars.Progress(
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}", markup=False, table_column=_cut()),
            Filled(table_column=_cut(ratio=1)),
            Reckoned(table_column=Column(no_wrap=True)),
            console=self._console,
            disable=bool(_with_bars) or not self._console.is_terminal,
            expand=True,
            transient=not stays,
        )
        self._ended = Event()
        logs = not _with_bars and not self._console.is_terminal
        self._logging = Thread(target=self._log, daemon=True) if logs else None
        self._task = self._shown.add_task(legible(what), total=None, how="", unit=unit)
        self._done, self._long = 0.0, long
        self._set(None, Pace())

    def __enter__(self) -> Self:
        self._shown.start()
        _with_bars.append(self._console)
        if self._logging is not None:
            self._logging.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        _with_bars.remove(self._console)
        if self._shown.tasks[0].total is None:  # there is nothing to tell of it
            self._shown.live.transient = True
        self._shown.stop()

    def tick(self, done: float, total: float, how: str = "") -> None:
        """So much is done, of so much."""
        self._done = done
        self._pace.tick(done)
        self._shown.update(self._task, completed=done, total=total, how=legible(how))
        if self._long is None or not MEASURED <= self._pace.elapsed <= LATE:
            return
        left, rate = self._pace.left(total), self._pace.rate
        if left is not None and rate is not None and left > LONG:
            warn, self._long = self._long, None
            tell(warn(left, total / rate))

    def begin(self, what: str, total: float) -> None:
        """Something else begins."""
        self._done = 0.0
        self._set(total or None, Pace())
        self._shown.update(self._task, description=legible(what), completed=0)

    def advance(self, count: float) -> None:
        """So much more is done of it."""
        total = self._shown.tasks[0].total
        if total is not None:
            self.tick(self._done + count, total)

    def _log(self) -> None:
        """Print how far the work is, again and again until it ends."""
        while not self._ended.wait(EVERY):
            task = self._shown.tasks[0]
            tell(f"{task.description}: {reckoned(task) or roughly(self._pace.elapsed)}")

    def _set(self, total: float | None, pace: Pace) -> None:
        self._pace = pace
        self._shown.tasks[0].total = total
        self._shown.update(self._task, pace=pace)


class Filled(bars.ProgressColumn):
    """The bar itself, where there is a total."""

    def render(self, task: bars.Task) -> RenderableType:
        """A bar as wide as there is room."""
        if task.total is None:
            return Text()
        return ProgressBar(total=max(task.total, 1e-9), completed=task.completed)


class Reckoned(bars.ProgressColumn):
    """What is done in numbers, how fast it goes, and what is left."""

    def render(self, task: bars.Task) -> RenderableType:
        """In words."""
        return Text(reckoned(task))


def reckoned(task: bars.Task) -> str:
    """How much of a task is done, how fast it goes, and what is left."""
    pace: Pace = task.fields["pace"]
    if task.total is None:
        return roughly(pace.elapsed) if pace.elapsed >= 2 else ""
    done, total = int(task.completed + 1e-6), int(task.total)
    share = int(100 * task.completed / max(task.total, 1e-9))
    words = [f"{share}%", f"{done:,}/{total:,} {task.fields['unit']}".rstrip()]
    left, rate = pace.left(task.total), pace.rate
    if task.completed >= task.total:
        words.append(f"in {duration(pace.elapsed)}")
    elif rate is None:
        words.append(roughly(pace.elapsed) if pace.elapsed >= 1 else "")
    else:
        words += [frequency(rate), "" if left is None else f"{roughly(left)} left"]
    return "  ".join(filter(None, [*words, task.fields["how"]]))


def _cut(ratio: int | None = None) -> Column:
    return Column(no_wrap=True, overflow="ellipsis", ratio=ratio)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something is going on, and how far it is where it says so."""
    with Bar(what, stays=False) as bar, heard(bar):
        yield


@contextmanager
def progress(what: str, unit: str = "", long: Warn | None = None) -> Iterator[Tick]:
    """A bar with the time left."""
    with Bar(what, unit, long) as bar:
        yield bar.tick


@contextmanager
def resumable() -> Iterator[None]:
    """Say of what is stopped within that it resumes, unless the work itself says what is stored."""
    try:
        yield
    except (Stopped, KeyboardInterrupt) as stop:
        if not getattr(stop, "__notes__", ()):
            stop.add_note("run the same command again to resume from what is stored")
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of a failure of the system that this file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


SETTLED = 3.0
"""Seconds after which a pace is shown."""

TRUSTED, PART = 10.0, 0.1
"""Seconds, or a part of the whole, after which a pace says how much time is left: a model computes
slowly at first, and the longest texts of a shard come before the others."""

WINDOW = 60.0
"""Seconds that a pace is taken over at least; otherwise half of all, as relations differ."""


class Pace:
    """What was done at which second, from the first that was done at all.

    What came before that is no measure: prompts were counted, or found answered already.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()
        self._first = 0.0
        self.began = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self.began

    def tick(self, done: float) -> None:
        """So much is done now."""
        if done <= (self._seen[-1][1] if self._seen else 0):
            return
        now = self._clock()
        self._first = self._first or now
        self._seen.append((now, done))
        window = max(WINDOW, (now - self._first) / 2)
        while now - self._seen[1 if len(self._seen) > 1 else 0][0] > window:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """How much a second, once that can be told."""
        if len(self._seen) < 2:
            return None
        (first, before), (last, done) = self._seen[0], self._seen[-1]
        return (done - before) / (last - first) if last - first >= SETTLED else None

    def left(self, total: float) -> float | None:
        """Seconds until `total` is done, once that can be told."""
        if (rate := self.rate) is None:
            return None
        (first, before), (last, done) = self._seen[0], self._seen[-1]
        if last - first < TRUSTED and done - before < PART * total:
            return None
        return max((total - done) / rate - (self._clock() - last), 0.0)


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> [duration(s) for s in (0.034, 0.31, 7.2, 95, 7260, 300000)]
    ['under 0.1 s', '0.3 s', '7 s', '1 min 35 s', '2 h 1 min', '3 d 11 h']
    """
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 3:
        return f"{seconds:.1f} s"
    for large, small, unit in ((86400, 3600, "d h"), (3600, 60, "h min"), (60, 1, "min s")):
        if seconds >= large:
            whole, rest = divmod(round(seconds / small), large // small)
            big, little = unit.split()
            return f"{whole} {big} {rest} {little}" if rest else f"{whole} {big}"
    return f"{seconds:.0f} s"


def roughly(seconds: float) -> str:
    """Seconds as far as a person wants to know them ahead.

    >>> [roughly(s) for s in (0.2, 7.2, 44, 95, 601, 7260, 300000)]
    ['1 s', '8 s', '44 s', '2 min', '10 min', '2 h', '3 d']
    """
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit or (unit == 60 and seconds >= unit):
            return f"{round(seconds / unit)} {name}"
    return f"{max(int(seconds + 0.99), 1)} s"


def frequency(rate: float) -> str:
    """How often a second, or a minute, or an hour.

    >>> [frequency(rate) for rate in (1234.5, 35.2, 2.34, 0.2, 0.001)]
    ['1,234/s', '35/s', '2.3/s', '12/min', '3.6/h']
    """
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * factor >= 1 or unit == "h":
            break
    each = rate * factor
    return f"{each:,.0f}/{unit}" if each >= 10 else f"{each:.1f}/{unit}"
