"""Open a table of the Hugging Face Hub as a dataset: OWNER/NAME, and :CONFIG where it has several.

The library `datasets` fetches it and keeps it in a cache, which needs no network later. A split
called test is asked about; where there is none, that of validation, else the first one.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sonde.core.errors import DataError, MissingExtra
from sonde.core.facts import Dataset
from sonde.data.lines import Row
from sonde.data.tables import HUB
from sonde.data.tables.columns import PAGE, Faults, Given
from sonde.data.tables.dataset import ADVICE, Table, dataset_of
from sonde.data.tables.files import decode_row

log = logging.getLogger(__name__)

ENDPOINT = "https://huggingface.co"
PATIENCE = 3.0
"""Seconds until the Hub must have answered; the library itself would try for half a minute."""

ASKED = ("test", "validation", "dev")
"""Splits that are asked about, the likeliest first."""


def open_hub(name: str, given: Given) -> Dataset:
    """The dataset OWNER/NAME[:CONFIG] of the Hub, or of a folder that is laid out as there."""
    place, _, config = name.partition(":")
    source = f"{HUB}:{name}"
    splits = _fetched(source, place, config or None)
    asked = next((split for split in ASKED if split in splits), next(iter(splits), ""))
    if asked != "test":
        log.info("%s has no split called test: %s is asked about", source, asked)
    rows = list(_rows(source, splits, asked))
    file = f"{Path(place).name}:{config}" if config else Path(place).name
    table = Table(
        source=source, file=f"{HUB}:{name}", title=file.replace(":", "-"), rows=rows, published=True
    )
    # a published table may count its rows anew in each split: its ids are taken if asked for
    return dataset_of(table, {"id": "", **given, "split": "split"}, Faults(source, ADVICE))


def _rows(source: str, splits: Mapping[str, Any], asked: str) -> Iterator[Row]:
    for split, rows in splits.items():
        named = {"split": "test" if split == asked else split}
        for number, values in enumerate(rows, 1):
            yield decode_row({**values, **named}, f"{source}, {split} row {number}")


def _fetched(source: str, place: str, config: str | None) -> Mapping[str, Any]:
    """The rows of each split."""
    if find_spec("datasets") is None:
        raise MissingExtra(f"{source} needs datasets; run: pip install 'sonde[hub]'")
    away = not Path(place).is_dir() and not _reachable()
    try:
        with _offline() if away else nullcontext():
            import datasets

            datasets.disable_progress_bars()
            datasets.logging.set_verbosity_error()
            found = datasets.load_dataset(place, config)
            return {split: rows.to_list() for split, rows in found.items()}
    except Exception as error:  # whatever the library, the data or the network may raise
        raise DataError(_why(source, error, away=away)) from error


@contextmanager
def _offline() -> Iterator[None]:
    """No use to try for long: the library reads what is in the cache, this time."""
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


def _why(source: str, error: Exception, *, away: bool) -> str:
    if away or isinstance(error, ConnectionError):
        return (
            f"{source} is not in the cache, and the Hub cannot be reached; try with a network, "
            f"or give a table as a file ({PAGE})"
        )
    said = str(error).strip().splitlines() or [type(error).__name__]
    several = "config" in said[0].lower()
    which = "; name one of its parts: hub:OWNER/NAME:CONFIG" if several else ""
    return f"{source} cannot be read: {' '.join(said[:2])}{which} ({PAGE})"


def _reachable() -> bool:
    """Whether the Hub's machine answers, or another asks it for us."""
    from urllib.request import getproxies

    address = urlsplit(os.environ.get("HF_ENDPOINT", ENDPOINT))
    if os.environ.get("HF_HUB_OFFLINE") or getproxies():
        return not os.environ.get("HF_HUB_OFFLINE")
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), PATIENCE).close()
    except OSError:
        return False
    return True
