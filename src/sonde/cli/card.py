"""`sonde data card`: what a dataset holds and what it gives away, as a page and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sonde import __version__
from sonde.cards.alike import LEAST
from sonde.cards.croissant import croissant
from sonde.cards.report import card as card_of
from sonde.cards.report import citation
from sonde.cli.console import waiting, writing
from sonde.cli.options import ALL_TABLES, JSON, SEED, SPLIT, SourceOptions, argument, option, verb
from sonde.cli.report import show_report
from sonde.core.errors import UsageError
from sonde.core.files import whole
from sonde.core.plain import json_text, plain
from sonde.data.catalog import folder_of
from sonde.data.format import open_dataset

PAGE = Path("card.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOptions:
    """Of which dataset a card is made, how, and what is written."""

    name: str = argument("The dataset; 'sonde data ls' lists the ways to name one.")
    source: SourceOptions
    out: Path | None = option(
        "The page to write (default: card.html; with --json none).", None, "--out", "-o"
    )
    croissant: Path | None = option(
        "Write Croissant metadata here; of a folder in sonde's own form, beside dataset.json.", None
    )
    split: str = option(SPLIT, "test")
    alike: float = option(
        "Share of character trigrams in common from which on texts are near-duplicates.", LEAST
    )
    seed: int = option(SEED, 0, least=0)
    all_tables: bool = option(ALL_TABLES, False, "--all-tables")
    as_json: bool = option(JSON, False, "--json")


@verb
def card(wanted: CardOptions) -> None:
    """Write a page about a dataset: what it holds and what it gives away.

    Example: sonde data card atlas -o card.html

    Example: sonde data card ./my-dataset --croissant ./my-dataset/croissant.json
    """
    folder = _folder(wanted) if wanted.croissant is not None else None
    with waiting(f"opening {wanted.name}"):
        dataset = wanted.source.load(wanted.name)
    with waiting(f"reading {wanted.name}"):
        report = card_of(dataset, split=wanted.split, alike=wanted.alike, seed=wanted.seed)
    lines = []
    if wanted.croissant is not None and folder is not None:
        _write_croissant(folder, wanted.croissant)
        lines = [f"croissant: {wanted.croissant}"]
    settings = {"split": wanted.split, "alike": wanted.alike, "seed": wanted.seed}
    provenance = {
        "dataset": {"named": wanted.name, "fingerprint": dataset.fingerprint, "card": dataset.card},
        "settings": settings,
        "sonde": __version__,
    }
    show_report(
        report,
        provenance,
        lines,
        html=wanted.out or (None if wanted.as_json else PAGE),
        as_json=wanted.as_json,
        brief=not wanted.all_tables,
    )


def _folder(wanted: CardOptions) -> Path:
    """The folder whose files are described; refuses what is none."""
    folder = folder_of(wanted.name)
    if folder is None or wanted.source.template:
        raise UsageError(
            f"--croissant describes the files of a folder in sonde's own form, which {wanted.name} "
            f"{'with a --template ' * bool(wanted.source.template)}is not; make one with: "
            f"sonde data convert {wanted.name} -o FOLDER"
        )
    return folder


def _write_croissant(folder: Path, path: Path) -> None:
    dataset = open_dataset(folder)
    text = json_text(
        {n: plain(v) for n, v in croissant(dataset, folder, citation(dataset)).items()}
    )
    with writing(path), whole(path) as file:
        file.write(f"{text}\n".encode())
