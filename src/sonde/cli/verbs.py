"""The verbs of `sonde`, gathered into one command line; each is imported when it is named.

So are the commands of a verb that has commands of its own.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from sonde import __version__
from sonde.cli.options import verb
from sonde.core.errors import UsageError


def group(
    help: str,
    names: Collection[str],
    find: Callable[[str], Any],
    *,
    flags: Callable[..., None] = lambda: None,
    summaries: Mapping[str, str] = MappingProxyType({}),
    former: Mapping[str, str] = MappingProxyType({}),
    epilog: str | None = None,
) -> Any:
    """A command that has commands of its own, each a function or a group that `find` gives.

    A command with a line in `summaries` is listed by that line; others are imported to be listed.
    By a `former` name a command is found and never listed.
    """
    app = typer.Typer(
        callback=flags,
        help=help,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )
    command: Any = typer.main.get_command(app)
    command.commands = Verbs(names, find, former)
    command.format_commands = partial(_list_commands, command.commands, summaries)
    return command


def _list_commands(
    commands: Mapping[str, Any], summaries: Mapping[str, str], context: Any, formatter: Any
) -> None:
    """Write a line for each command, whole where click would cut it."""
    with formatter.section("Commands"):
        formatter.write_dl([(n, summaries.get(n) or summary(commands[n])) for n in commands])


def summary(command: Any) -> str:
    """The first sentence of a command's help text."""
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    return " ".join(first.split())


class Command(TyperCommand):
    """A command that rejects an option or a setting given twice, of which only one would count."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of the command line."""
        parser = super().make_parser(ctx)  # type: ignore[no-untyped-call,unused-ignore]
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            opts, rest, order = parse(args)
            for parameter, count in Counter(order).items():
                if count > 1 and not parameter.multiple and parameter.name != "help":
                    raise UsageError(_repeated(max(parameter.opts, key=len), count))
            flags = {parameter.name: max(parameter.opts, key=len) for parameter in order}
            for option, values in (("--set", "settings"), ("--vary", "vary")):
                for key in {text.partition("=")[0] for text in opts.get(values) or ()}:
                    if flag := flags.get(key.replace("-", "_")):
                        raise UsageError(f"{flag} and {option} both give {key}; give it once")
            return opts, rest, order

        parser.parse_args = parse_once  # type: ignore[method-assign]
        return parser


def _repeated(flag: str, count: int) -> str:
    """The message for a flag that is repeated."""
    if flag == "--model":
        return (
            f"--model is given {count} times, but several models in one command are not supported "
            "yet; run the command once per model and compare the runs with 'sonde compare'"
        )
    return f"{flag} is given {count} times; give it once"


class Verbs(Mapping[str, Any]):
    """The commands of a group by name; none is imported or made before it is looked up."""

    def __init__(
        self,
        names: Collection[str],
        find: Callable[[str], Any],
        former: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._names = names
        self._find = find
        self._former = former

    def __getitem__(self, name: str) -> Any:
        """The command of that name."""
        name = self._former.get(name, name)
        if name not in self._names:
            raise KeyError(name)
        found = self._find(name)
        if hasattr(found, "commands"):
            return found
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, cls=Command)(found)
        return typer.main.get_command(app)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)


def components(
    help: str,
    act: Callable[..., None],
    kinds: Mapping[str, type],
    example: str,
    summaries: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """A command with one of its own for each component, whose settings are flags.

    An `example` has {name} where that of the component stands.
    """

    def find(name: str) -> Callable[..., None]:
        return verb(act, kinds[name], f"Example: {example.format(name=name)}")

    return group(help, sorted(kinds), find, summaries=summaries)


VERBS = {
    "demo": (
        "sonde.cli.run:demo",
        "Probe SmolLM2-135M, a real model, on the bundled facts.",
    ),
    "profile": (
        "sonde.cli.profile:profile",
        "Measure what a model knows, by every way to ask it.",
    ),
    "run": (
        "sonde.cli.run:app",
        "Put a probe's questions to a model and report what it knows.",
    ),
    "report": (
        "sonde.cli.report:report",
        "Recompute a run's report from its stored answers.",
    ),
    "show": (
        "sonde.cli.show:show",
        "Print the prompts of one fact with their top answers.",
    ),
    "compare": (
        "sonde.cli.compare:compare",
        "Report which of two or more finished runs is better, and on what.",
    ),
    "plan": (
        "sonde.cli.plan:app",
        "Say what a run would cost, without making it.",
    ),
    "doctor": (
        "sonde.cli.doctor:doctor",
        "Check that sonde talks to a model correctly.",
    ),
    "data": (
        "sonde.cli.data:app",
        "List, show, check, count, convert, judge and build datasets.",
    ),
    "probes": (
        "sonde.cli.run:probes",
        "List the probes and their settings.",
    ),
    "models": (
        "sonde.cli.run:models",
        "List the ways to name a model.",
    ),
    "optimise": (
        "sonde.cli.optimise:app",
        "Make templates out of training facts, to ask with.",
    ),
    "attribute": (
        "sonde.cli.attribute:attribute",
        "Show which words of a prompt an answer comes from.",
    ),
    "lab": (
        "sonde.cli.lab:app",
        "Do the probes tell the truth? Ask models taught invented facts.",
    ),
}
"""In order of use, where the command of each verb is and the first line of its help text.

The lines stand here too, so that the list is written without importing any verb.
"""

FORMER = {"analyse": "compare"}
"""What verbs were called before; no list has these names."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


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


def _find(name: str) -> Any:
    module, attribute = VERBS[name][0].split(":")
    return getattr(import_module(module), attribute)


app = group(
    "What does this language model actually know, and how far can you trust it?",
    VERBS,
    _find,
    flags=options,
    former=FORMER,
    summaries={name: line for name, (_, line) in VERBS.items()},
    epilog="Start with: sonde demo. Exit codes are listed in docs/formats.md.",
)
