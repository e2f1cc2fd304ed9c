"""Commands that have commands of their own, none of which is imported before it is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import typer

from sonde.cli.options import verb


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
        app.command(name)(found)
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
