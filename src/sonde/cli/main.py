"""`sonde`: gather the verbs, run one, and turn every failure into one clear message."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, Any

import typer

from sonde import __version__
from sonde.cli import data, demo, models, probes, report, run
from sonde.cli.console import errors
from sonde.core.errors import SondeError, UsageError

app = typer.Typer(
    name="sonde",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What does this language model actually know, and how far can you trust it?",
    epilog="Start with: sonde demo. Exit codes are listed in docs/exit-codes.md.",
)
app.add_typer(run.app, name="run")
app.command("report")(report.report)
app.add_typer(data.app, name="data")
app.command("models")(models.models)
app.command("probes")(probes.probes)
app.command("demo")(demo.demo)

INTERRUPTED = 130
INTERNAL = 70

# typer carries a copy of click or uses the real one, by version; its public error has the base
ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """What holds for every verb."""
    if debug:
        os.environ["SONDE_DEBUG"] = "1"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and give back its exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--debug" in arguments:  # it may stand anywhere
        arguments = ["--debug", *(a for a in arguments if a != "--debug")]
    try:
        result = app(arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        errors().print("interrupted; finished work is kept: run the same command again to go on")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ClickException as error:
        error.show()
        return UsageError.exit_code
    except SondeError as error:
        _show(error, str(error))
        return error.exit_code
    except Exception as error:
        _show(error, f"internal error: {type(error).__name__}: {error} (--debug shows where)")
        return INTERNAL


def _show(error: BaseException, message: str) -> None:
    if os.environ.get("SONDE_DEBUG"):
        errors().print_exception()
    errors().print(f"error: {message}", style="bold red", markup=False, highlight=False)


def entry() -> None:
    """The console script."""
    sys.exit(main())
