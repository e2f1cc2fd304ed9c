"""`sonde lab world`: invent a world, write its dataset, its truth and its text, and count them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.table import Table

from sonde.cli.building import Force, Out
from sonde.cli.console import output, progress, say, waiting
from sonde.cli.run import command, flags_of
from sonde.core.settings import build
from sonde.lab.worlds.settings import WorldSettings

if TYPE_CHECKING:
    from sonde.lab.worlds.world import World


def make(kind: type, settings: dict[str, Any], *, out: Out, force: Force = False) -> None:
    """Make a world and write it; what the command does."""
    from sonde.data.builders.writing import check_place
    from sonde.lab.worlds.folder import write_world
    from sonde.lab.worlds.world import make_world

    chosen = cast(WorldSettings, build(kind, settings))
    check_place(out, force=force)
    with waiting("inventing a world"):
        found = make_world(chosen)
    with progress("writing sentences") as tick:
        write_world(found, out, force=force, tick=tick)
    show(found, out)


def show(world: World, out: Path) -> None:
    """Print what the world holds."""
    from sonde.lab.worlds.summary import counts, length

    columns = ("facts", "taught", "statements", "guessed by name", "as commonest")
    table = Table("relations", "number", *columns, box=None, padding=(0, 2, 0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    for each in counts(world):
        kind = each.kind if each.shown else f"{each.kind}, unshown"
        numbers = (each.relations, each.facts, each.taught, each.mentions)
        shares = (_percent(part, each.facts) for part in (each.cue, each.majority))
        table.add_row(kind, *(f"{number:,}" for number in numbers), *shares)
    output().print(table)
    text = length(world)
    say(
        f"text: {text.sentences:,} sentences, {text.words:,} words and marks; "
        f"{text.different:,} different ones in all"
    )
    say(f"world {world.fingerprint}, folder: {out}")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if part else "–"


world = command("lab", WorldSettings, cast(Any, make), flags_of(make))
world.__doc__ = (
    f"{inspect.getdoc(WorldSettings)}\n\n"
    "The folder is a dataset for every probe, with truth.jsonl and text.txt beside it.\n\n"
    "Example: sonde lab world -o worlds/0 --seed 0 --skew 1 --cues 0.3 --ladder 0,1,10,50"
)
