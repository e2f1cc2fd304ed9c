"""`sonde data`: list, show, check and count datasets."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sonde.cli.console import output
from sonde.core.errors import DataError
from sonde.core.facts import Dataset, Relation
from sonde.data import catalog
from sonde.data.check import problems
from sonde.data.format import is_dataset, open_dataset, seal
from sonde.data.statistics import relation_statistics

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, show, check and count datasets.\n\nExample: sonde data show atlas --relation P36",
)

Name = Annotated[str, typer.Argument(help="A bundled name, a folder, or READER:FOLDER.")]


@app.command("ls")
def ls() -> None:
    """List the bundled datasets and the readers of public ones.

    Example: sonde data ls
    """
    table = Table("dataset", "what it is", box=None, padding=(0, 2, 0, 0))
    for name, path in catalog.bundled().items():
        table.add_row(name, open_dataset(path).card.description)
    for reader in catalog.readers().values():
        table.add_row(f"{reader.name}:FOLDER", reader.summary)
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
        table.add_row(r.id, r.label, r.kind, r.templates[0].text if r.templates else "")
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
        bool, typer.Option("--seal", help="Write the content's hash into dataset.json first.")
    ] = False,
) -> None:
    """Check every line of a dataset and say what is wrong with it.

    Example: sonde data check ./my-dataset
    """
    if write and is_dataset(path):
        say(f"sealed with {seal(path)}")
    dataset = catalog.load(str(path))
    found = list(problems(dataset))
    for problem in found:
        say(problem)
    if found:
        raise DataError(f"{path}: {len(found)} problem{'s' * (len(found) > 1)}, listed above")
    facts = sum(1 for r in dataset.relations for _ in dataset.facts(r.id))
    say(f"{path} is sound. Relations: {len(dataset.relations)}, facts: {facts:,}")


@app.command("stats")
def stats(name: Name) -> None:
    """Count relations, templates, facts, objects and names.

    Example: sonde data stats atlas
    """
    dataset = catalog.load(name)
    rows = [relation_statistics(dataset, r) for r in dataset.relations]
    splits = sorted({split for row in rows for split in row.splits})
    titles = ("relation", "label", "type", "manual", "paraphr.", "questions", "answer last")
    counted = ("hard", "objects", "per fact", "names/subject", "names/object")
    table = Table(*titles, *splits, *counted, box=None, padding=(0, 1, 0, 0))
    for row in rows:
        templates = row.relation.templates
        table.add_row(
            row.relation.id,
            row.relation.label,
            row.relation.kind,
            str(sum(t.source == "manual" for t in templates)),
            str(sum(t.source == "paraphrase" for t in templates)),
            str(sum(t.style == "question" for t in templates)),
            str(sum(t.answer_last and t.style == "statement" for t in templates)),
            *(str(row.splits.get(split, 0)) for split in splits),
            str(row.hard),
            str(row.objects),
            f"{row.objects_per_fact:.1f}",
            f"{row.subject_names:.1f}",
            f"{row.object_names:.1f}",
        )
    output().print(table)
    say(
        f"{len(rows)} relations, {sum(len(r.relation.templates) for r in rows):,} templates, "
        f"{sum(r.facts for r in rows):,} facts"
    )


def say(text: str) -> None:
    """Print text as it is."""
    output().print(text, markup=False, highlight=False)
