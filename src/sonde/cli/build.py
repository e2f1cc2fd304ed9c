"""`sonde data build`: make datasets out of triples, tables and others; say what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from sonde.cli.build_fktc import build_fktc
from sonde.cli.building import Force, Out, Seed, loaded
from sonde.cli.console import cells, output, progress, say, waiting
from sonde.core.errors import UsageError

if TYPE_CHECKING:
    from sonde.data.builders import nobel, trex_mc
    from sonde.data.builders.triples import Source

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Build datasets from triples, tables and other datasets.\n\n"
    "Example: sonde data build trex-mc ./t_rex -o ./trex-mc",
)

NAMED = 100


@app.command("trex-mc")
def build_trex_mc(
    out: Out,
    triples: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders of .jsonl or .jsonl.gz: head, relation, tail."),
    ] = None,
    facts: Annotated[
        list[str] | None, typer.Option(help="A dataset whose facts are taken; may be repeated.")
    ] = None,
    templates: Annotated[
        list[str] | None,
        typer.Option(help="A dataset whose templates are taken; may be repeated."),
    ] = None,
    least_facts: Annotated[int, typer.Option(help="Facts that a relation needs.")] = 500,
    least_objects: Annotated[int, typer.Option(help="Distinct objects that it needs.")] = 100,
    train: Annotated[int, typer.Option(help="Training facts of a relation.")] = 100,
    test: Annotated[int, typer.Option(help="Test facts of a relation.")] = 400,
    options: Annotated[int, typer.Option(help="Wrong options of a test fact.")] = 99,
    seed: Seed = 0,
    skip: Annotated[
        int, typer.Option(min=0, help="Faulty rows to pass over before giving up.")
    ] = 100,
    name: Annotated[str, typer.Option(help="What the dataset is called.")] = "trex-mc",
    force: Force = False,
) -> None:
    """Build multiple-choice facts in the manner of T-REx-MC.

    Example: sonde data build trex-mc ./LAMA/train --facts lama:./LAMA -o ./trex-mc
    """
    from sonde.data.builders.survey import Recipe
    from sonde.data.builders.trex_mc import build
    from sonde.data.builders.triples import DatasetTriples, triple_files
    from sonde.data.builders.writing import check_place, write_whole

    recipe = Recipe(
        least_facts=least_facts,
        least_objects=least_objects,
        train=train,
        test=test,
        options=options,
        seed=seed,
    )
    check_place(out, force=force)
    if not triples and not facts:
        raise UsageError("name a file or folder of triples, or --facts with a dataset")
    files = [triple_files(place) for place in triples or ()]
    with waiting("reading datasets"):
        datasets = loaded(facts)
        worded = loaded(templates) if templates else datasets
    sources: list[Source] = [*files, *(DatasetTriples(dataset=dataset) for dataset in datasets)]
    with progress("reading triples, MiB") as tick:
        built = build(sources, recipe, name=name, templates=worded, skip=skip, progress=tick)
    with waiting(f"writing {out}"):
        write_whole(built.dataset, out, force=force)
    show_trex_mc(built, recipe.options, out)


@app.command("nobel")
def build_nobel(
    table: Annotated[Path, typer.Argument(help="A CSV of laureates, a prize a row.")],
    out: Out,
    train: Annotated[int, typer.Option(help="Laureates for examples, half at most.")] = 250,
    limit: Annotated[
        int | None, typer.Option(help="Keep that many laureates, drawn by seed.")
    ] = None,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(help="What the dataset is called.")] = "nobel",
    force: Force = False,
) -> None:
    """Build laureate → birth year from a table of Nobel prizes.

    Example: sonde data build nobel laureates.csv -o ./nobel
    """
    from sonde.data.builders.nobel import build
    from sonde.data.builders.writing import check_place, write_whole

    check_place(out, force=force)
    built = build(table, train=train, limit=limit, seed=seed, name=name)
    write_whole(built.dataset, out, force=force)
    show_nobel(built, out)


def show_trex_mc(built: trex_mc.Built, options: int, out: Path) -> None:
    """Print what was built, and what became of every relation and row."""
    columns = ("relation", "label", "rows", "facts", "objects", "train", "test", "options")
    table = Table(*columns[:2], box=None, padding=(0, 2, 0, 0))
    for column in (*columns[2:], "templates"):
        table.add_column(column, justify="right")
    for t in built.kept:
        counts = (t.train, t.test, t.options, t.templates)
        sizes = (f"{t.rows:,}", str(t.facts), str(t.objects))
        table.add_row(*cells(t.id, t.label), *sizes, *map(str, counts))
    output().print(table)
    for t in built.kept:
        if t.short:
            among = f" among the {t.objects.value:,} drawn" if t.objects.more else ""
            say(
                f"{t.id}: {t.short} of {t.test} test facts have fewer than {options} wrong "
                f"objects{among} and use all of them, {t.options} at least"
            )
    _show_failed(built.failed)
    _show_rows(built)
    train, test = sum(t.train for t in built.kept), sum(t.test for t in built.kept)
    say(f"{out}: {len(built.kept)} relations, {train:,} training and {test:,} test facts")


def _show_failed(failed: Sequence[trex_mc.Tally]) -> None:
    if not failed:
        return
    say(f"\n{len(failed):,} relations do not qualify:")
    table = Table("relation", "label", box=None, padding=(0, 2, 0, 0))
    for column in ("rows", "facts", "objects"):
        table.add_column(column, justify="right")
    table.add_column("too few")
    for t in failed[:NAMED]:
        sizes = (f"{t.rows:,}", str(t.facts), str(t.objects))
        table.add_row(*cells(t.id, t.label), *sizes, t.lacks)
    output().print(table)
    if len(failed) > NAMED:
        say(f"and {len(failed) - NAMED:,} with no more facts than these")


def _show_rows(built: trex_mc.Built) -> None:
    kept, left = (sum(t.rows for t in some) for some in (built.kept, built.failed))
    say(f"\nrows: {built.rows:,} read = {kept:,} of relations kept + {left:,} of others")
    if built.faults.count:
        say(f"rows passed over as faulty: {built.faults.count:,}")
        for fault in built.faults.first:
            say(f"  {fault}")
    if bare := sum(not t.templates for t in built.kept):
        say(f"relations without a template: {bare} (--templates takes them from a dataset)")


def show_nobel(built: nobel.Built, out: Path) -> None:
    """Print what was built and what became of the rows."""
    rows = built.rows
    say(f"rows read              {rows.read:6,}")
    for what, count in (
        ("organisations", rows.organisations),
        ("without date of birth", rows.without_date),
        ("implausible years", rows.implausible),
        ("contradicting years", rows.contradicting),
        ("further prizes", rows.further_prizes),
    ):
        say(f"- {what:21}{count:6,}")
    say(f"= laureates            {len(rows.laureates):6,}")
    say(f"{out}: {built.train + built.test} laureates, {built.train} training, {built.test} test")


app.command("fktc")(build_fktc)
