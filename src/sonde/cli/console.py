"""Where the command line writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from sonde.runner import Progress as Tick


def output() -> Console:
    """Results. Wide enough to be read where there is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 100, soft_wrap=False)


def errors() -> Console:
    """Messages and progress."""
    return Console(stderr=True, soft_wrap=True)


class Messages(logging.Handler):
    """What sonde and its libraries have to say, above the progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        errors().print(level + record.getMessage(), markup=False, highlight=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something is going on; nothing without a terminal."""
    console = errors()
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def progress(what: str) -> Iterator[Tick]:
    """A bar with the time left; nothing without a terminal."""
    console = errors()
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None)

        def tick(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tick


@contextmanager
def training(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar that also says how training goes; nothing without a terminal."""
    console = errors()
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[how]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None, how="")

        def tick(done: int, total: int, how: str) -> None:
            bar.update(task, completed=done, total=total, how=how)

        yield tick
