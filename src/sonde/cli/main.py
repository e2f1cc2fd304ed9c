"""`sonde`: run a verb, and turn every failure and every signal into one clear message.

Light, so that Ctrl-C is understood from the first moment: the verbs are imported by `main`.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from io import StringIO
from types import FrameType
from typing import Any

from sonde.core.errors import SondeError, StoreError, UsageError

INTERRUPTED = 130
INTERNAL = 70


class Stopped(BaseException):
    """The user, or the machine, wants the process to end. No library mistakes it for its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def entry() -> None:
    """The console script."""
    gc.set_threshold(20_000, 20, 20)  # a command makes many objects and is soon over
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as it is under nohup
            signal.signal(number, _stop)
    reads = bool({"report", "compare", "analyse"} & set(sys.argv[1:3]))
    if reads:
        _for_reading()
    code = main()
    if reads:
        _leave(code)
    gc.freeze()  # the end looks through nothing that is still there
    sys.exit(code)


def _for_reading() -> None:
    """Settle, before numpy and pyarrow are imported, how they work in a command that only reads.

    Numbers are worked out on two threads, whose matrix products would wait for each other if they
    had further ones; and what a shard took is given back, where keeping it takes fresh memory.
    What a report is made of stays until the end: looking for garbage in it finds none.
    """
    gc.set_threshold(1_000_000, 20, 20)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _leave(code: int) -> None:
    """End without taking apart what the system frees at once; all files are written and closed."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and give back its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--debug" in arguments:  # it may stand anywhere
        arguments = ["--debug", *(a for a in arguments if a != "--debug")]
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except (Stopped, KeyboardInterrupt) as stop:
        _say(f"interrupted; {'; '.join(getattr(stop, '__notes__', ['nothing was kept']))}")
        return getattr(stop, "exit_code", INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SondeError.exit_code
    except SondeError as error:
        return _fail(error, str(error), error.exit_code)
    except OSError as error:
        return _fail(error, _system_error(error), StoreError.exit_code)
    except Exception as error:
        name = type(error).__name__
        return _fail(error, f"internal error: {name}: {error} (--debug shows where)", INTERNAL)


def _run(arguments: list[str]) -> int:
    import typer

    from sonde.cli.console import Messages
    from sonde.cli.verbs import app

    logging.basicConfig(handlers=[Messages()], level=logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("sonde").setLevel(logging.INFO)
    # typer carries a copy of click or uses the real one, by version; its error has the base
    base = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    click_exception: Any = base
    try:
        result = app(arguments, prog_name="sonde", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except click_exception as error:
        error.show(shown := StringIO())
        _say(shown.getvalue().rstrip())
        return UsageError.exit_code
    return result if isinstance(result, int) else 0


def _stop(number: int, frame: FrameType | None) -> None:
    """The first signal ends the work in good order, a second one at once."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    raise Stopped(number)


def _system_error(error: OSError) -> str:
    where = error.filename or "a read or write failed"
    return f"{where}: {error.strerror or error}"


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get("SONDE_DEBUG"):
        import traceback

        _say("".join(traceback.format_exception(error)).rstrip())
    _say(f"error: {message}", style="bold red")
    return code


def _say(message: str, style: str = "") -> None:
    from sonde.cli.console import tell

    tell(message, style)
