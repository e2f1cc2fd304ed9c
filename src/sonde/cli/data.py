"""`sonde data`: list, show, check, count, convert and build datasets."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sonde.cli import build, counted
from sonde.cli.annotate import annotate
from sonde.cli.console import cells, output, say, waiting
from sonde.cli.run import Device, Drop, Guesser, Wording
from sonde.cli.vocabulary import vocabulary as write_vocabulary
from sonde.core.errors import DataError, UsageError
from sonde.core.facts import Dataset, Relation
from sonde.data import catalog
from sonde.data.check import Fault, check_folder, faults
from sonde.data.format import is_dataset, open_dataset, seal, write_dataset
from sonde.data.vocabulary import read_words, restricted

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, show, check, count, convert, judge and build datasets.\n\n"
    "Example: sonde data show atlas --relation P36",
)

MOST = 100
"""Faults of a kind that are printed; the rest is counted."""

Name = Annotated[
    str,
    typer.Argument(help="A bundled name, a folder, or READER:FOLDER; +SOURCE:FOLDER adds to it."),
]


@app.command("ls")
def ls() -> None:
    """List the bundled datasets and the readers of public ones.

    Example: sonde data ls
    """
    table = Table("dataset", "what it is", box=None, padding=(0, 2, 0, 0))
    for name, path in catalog.bundled().items():
        table.add_row(*cells(name, open_dataset(path).card.description))
    for reader in catalog.readers().values():
        table.add_row(*cells(f"{reader.name}:FOLDER", reader.summary))
    for addition in catalog.additions().values():
        table.add_row(*cells(f"…+{addition.name}:FOLDER", addition.summary))
    output().print(table)


@app.command("show")
def show(
    name: Name,
    relation: Annotated[str, typer.Option(help="Show this relation in full.")] = "",
    facts: Annotated[int, typer.Option(help="How many facts to show.")] = 5,
) -> None:
    """Show where a dataset comes from and what stands in it.

    Example: sonde data show atlas --relation P36
    """
    dataset = catalog.load(name)
    card = dataset.card
    say(f"{card.name} {card.version}  ({dataset.fingerprint})")
    if card.description:
        say(card.description)
    say(f"licence: {card.licence}\nsources: {'; '.join(card.sources) or 'not given'}")
    if relation:
        show_relation(dataset, dataset.relation(relation), facts)
        return
    table = Table("relation", "label", "type", "first template", box=None, padding=(0, 2, 0, 0))
    for r in dataset.relations:
        first = r.templates[0].text if r.templates else ""
        table.add_row(*cells(r.id, r.label, r.kind, first))
    output().print(table)


def show_relation(dataset: Dataset, relation: Relation, facts: int) -> None:
    """Print a relation's templates and some of its facts."""
    say(f"\n{relation.id} {relation.label} ({relation.kind})")
    for template in relation.templates:
        say(f"  {template.id:10} {template.source:10} {template.style:9} {template.text}")
    for fact in islice(dataset.facts(relation.id), facts):
        objects = "; ".join(" / ".join(entity.names) for entity in fact.objects)
        say(f"  {fact.id} [{fact.split}] {' / '.join(fact.subject.names)} -> {objects}")


@app.command("check")
def check(
    path: Annotated[Path, typer.Argument(help="A dataset folder.")],
    write: Annotated[
        bool,
        typer.Option("--seal", help="Write the content's hash into dataset.json if it is sound."),
    ] = False,
) -> None:
    """Check every line of a dataset and say what is wrong with it.

    Example: sonde data check ./my-dataset
    """
    told = Told()
    if is_dataset(path):
        check_folder(path, told)
    else:
        dataset = catalog.load(str(path))
        if write:
            raise UsageError(
                f"--seal is for a folder in sonde's own form, which {path} is not; make one with: "
                f"sonde data convert {path} -o FOLDER"
            )
        for fault in faults(dataset):
            told(fault)
        counted.show_notes(dataset)
    told.close(path, "; not sealed" if write else "")
    if is_dataset(path):
        if write:
            say(f"sealed with {seal(path)}")
        dataset = open_dataset(path)
    facts = sum(1 for r in dataset.relations for _ in dataset.facts(r.id))
    doubts = f", with {told.warnings:,} warning{'s' * (told.warnings > 1)}" if told.warnings else ""
    say(f"{path} is sound{doubts}. Relations: {len(dataset.relations)}, facts: {facts:,}")


class Told:
    """Prints faults as they come, the first `MOST` of each kind, and counts all of them."""

    def __init__(self) -> None:
        self.errors = self.warnings = 0
        self._first = ""

    def __call__(self, fault: Fault) -> None:
        """Take one fault."""
        self.errors += fault.error
        self.warnings += not fault.error
        self._first = self._first or (str(fault) if fault.error else "")
        if (self.errors if fault.error else self.warnings) <= MOST:
            kind = "error" if fault.error else "warning"
            output().print(f"{kind}: {fault}", markup=False, highlight=False, soft_wrap=True)

    def close(self, path: Path, more: str) -> None:
        """Count what was not printed; refuse where there was an error."""
        left = max(self.errors - MOST, 0) + max(self.warnings - MOST, 0)
        if left:
            say(f"… and {left:,} more")
        if self.errors:
            number = f"{self.errors:,} error{'s' * (self.errors > 1)}"
            raise DataError(f"{path}: {number}, listed above{more}; the first: {self._first}")


@app.command("stats")
def stats(
    names: Annotated[
        list[str], typer.Argument(help="Datasets; several are set side by side, totals only.")
    ],
    diversity: Annotated[
        bool, typer.Option("--diversity", help="Also how much templates differ (slow).")
    ] = False,
) -> None:
    """Count relations, templates, facts, objects, names and prompts.

    Example: sonde data stats atlas --diversity
    """
    datasets = [catalog.load(name) for name in names]
    counted.show(datasets, diversity=diversity)


@app.command("convert")
def convert(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")],
    wording: Wording = None,
    drop_guessable: Drop = None,
    guesser: Guesser = None,
    device: Device = "auto",
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Keep only facts whose object is in this list of words, one a line."),
    ] = None,
) -> None:
    """Write any dataset, joined or not, as a folder in sonde's own form.

    Example: sonde data convert lama:./LAMA+pararel:./pararel -o ./joined
    """
    from sonde import api

    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is there and not empty; give a new folder")
    with waiting(f"opening {name}"):
        dataset = api.whole_dataset(name, wording or (), drop_guessable, guesser, device)
    if vocabulary is not None:
        dataset = restricted(dataset, read_words(vocabulary))
    if vocabulary is not None or drop_guessable is not None:
        counted.show_notes(dataset)
    write_dataset(dataset, out)
    facts = sum(1 for r in dataset.relations for _ in dataset.facts(r.id))
    say(f"{out}: {len(dataset.relations)} relations, {facts:,} facts")


app.command("annotate")(annotate)
app.command("vocabulary")(write_vocabulary)
app.add_typer(build.app, name="build")
