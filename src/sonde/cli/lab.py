"""`sonde lab`: invent worlds, train models on them, and see which probes tell the truth."""

from __future__ import annotations

import typer

from sonde.cli import lab_train, lab_validate, lab_world

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Do the probes tell the truth? Train models on invented facts and ask.\n\n"
    "Example: sonde lab world -o worlds/0 --seed 0",
)
app.command("world")(lab_world.world)
app.command("train")(lab_train.train)
app.command("validate")(lab_validate.validate)
