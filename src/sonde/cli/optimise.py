"""`sonde optimise METHOD`: make templates out of training facts; a method's settings are flags."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from sonde.cli.console import cells, output, print_json, say, tell, training, waiting
from sonde.cli.run import (
    Data,
    Drop,
    Guesser,
    Model,
    Relations,
    Revision,
    Seed,
    Tokens,
    Trust,
    Wording,
    command,
    flags_of,
)
from sonde.core.errors import UsageError
from sonde.core.settings import build
from sonde.optimise.making import Made, Method, Order, methods, optimise

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=(
        "Make templates out of training facts, for `sonde run` to ask with.\n\n"
        "Example: sonde optimise optiprompt -m hf:FOLDER -d lama:FOLDER -o prompts/opti\n\n"
        "Then: sonde run lama -m soft:prompts/opti -d lama:FOLDER --wording optimised:prompts/opti"
    ),
)


@app.callback()
def _group() -> None:
    """Keep the method a word of its own, even while there is only one."""


Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="Folder for what is made; a killed command goes on there."),
]
Limit = Annotated[
    int | None, typer.Option(help="Learn from at most this many facts per relation and split.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Dtype = Annotated[
    str, typer.Option(help="Of the model: float32, float16 or bfloat16; vectors are float32.")
]
Leaked = Annotated[
    bool,
    typer.Option("--drop-leaked", help="Leave training facts out that are test facts too."),
]
Json = Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")]


def run_method(
    method: Callable[..., Method],
    settings: dict[str, Any],
    *,
    model: Model,
    data: Data,
    wording: Wording = None,
    drop_guessable: Drop = None,
    guesser: Guesser = None,
    out: Out,
    relations: Relations = "",
    limit: Limit = None,
    seed: Seed = 0,
    drop_leaked: Leaked = False,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_tokens: Tokens = None,
    revision: Revision = None,
    trust_remote_code: Trust = False,
    as_json: Json = False,
) -> None:
    """Run one method; what every method's command has in common."""
    from sonde import api

    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    if batch_tokens is not None and batch_tokens < 1:
        raise UsageError(f"--batch-tokens must be at least 1, not {batch_tokens}")
    kind = cast(type, method)
    chosen: Method = build(kind, settings)
    wanted = tuple(name for name in relations.split(",") if name)
    with waiting(f"opening {data}"):
        dataset = api.whole_dataset(data, wording or (), drop_guessable, guesser, device)
    with waiting(f"loading {model} (the first time takes longest)"):
        loaded = api.model(
            model,
            data=dataset,
            device=device,
            dtype=dtype,
            revision=revision,
            batch_tokens=batch_tokens,
            trust_remote_code=trust_remote_code,
        )
    order = Order(relations=wanted, limit=limit, seed=seed, drop_leaked=drop_leaked)
    with training(f"{chosen.name} on {dataset.name}") as tick:
        found = optimise(chosen, loaded, dataset, out, reference=model, order=order, tick=tick)
    show(chosen.name, found, out, as_json=as_json)


def show(method: str, found: Sequence[Made], out: Path, *, as_json: bool) -> None:
    """Print each relation's result, and what could not be made."""
    if as_json:
        rows = [{k: v for k, v in asdict(each).items() if k != "vectors"} for each in found]
        told = {"method": method, "folder": str(out), "relations": rows}
        print_json(told)
        return
    output().print(summary(method, found))
    for each in found:
        if each.problem:
            tell(f"{each.relation}: {each.problem}")
    for line in notes(found):
        tell(line)
    say(f"folder: {out}")


def summary(method: str, found: Sequence[Made]) -> Table:
    """One row a relation, and their mean."""
    table = Table(
        "relation",
        *("train facts", "dev facts", "dev before", "dev after", "epochs"),
        title=f"{method}: share of dev facts answered correctly",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in found:
        counts = [f"{each.counts.get(key, 0):,}" for key in ("train", "dev")]
        shares = [_percent(each.before), _percent(each.after)]
        table.add_row(*cells(each.relation), *counts, *shares, f"{each.epochs:.1f}")
    both = [(m.before, m.after) for m in found if m.before is not None and m.after is not None]
    if len(found) > 1 and both:
        means = (sum(part) / len(both) for part in zip(*both, strict=True))
        table.add_row(f"mean over {len(both)}", "", "", *map(_percent, means), "")
    return table


def notes(found: Sequence[Made]) -> list[str]:
    """What was left out, in sentences."""
    told = {
        "leaked": "training and dev facts were test facts too, and left out",
        "outside_vocabulary": "training and dev facts have no object that may be answered",
        "too_long": "training and dev facts are too long for the model",
        "held_out": "training facts were held out, for relations without dev facts",
        "tokenised_otherwise": "facts are tokenised otherwise around the vectors than in the text",
        "as_vectors": "relations have triggers that no text gives: vectors, for soft:FOLDER",
        "templates_unfit": "templates have a hole that no allowed answer fits, and were left out",
    }
    totals = {key: sum(each.counts.get(key, 0) for each in found) for key in told}
    return [f"{totals[key]:,} {sentence}" for key, sentence in told.items() if totals[key]]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


for _name, _method in sorted(methods().items()):
    _call = command("optimise", _method, cast(Any, run_method), flags_of(run_method))
    _call.__doc__ = (
        f"{inspect.getdoc(_method)}\n\n"
        f"Example: sonde optimise {_name} -m hf:FOLDER -d lama:FOLDER -o prompts/{_name}"
    )
    app.command(_name)(_call)
