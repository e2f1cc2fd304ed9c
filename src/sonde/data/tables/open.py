"""Open a table as a dataset, by its file. Knows nothing of what is done with it."""

from __future__ import annotations

from pathlib import Path

from sonde.core.errors import DataError
from sonde.core.facts import Dataset
from sonde.data.tables.columns import PAGE, Given
from sonde.data.tables.dataset import ADVICE, Table, dataset_of
from sonde.data.tables.faults import Faults
from sonde.data.tables.files import read_table


def open_table(path: Path, given: Given) -> Dataset:
    """The dataset of a file; `given` says which column is what where their names do not."""
    if not path.is_file():
        raise DataError(f"{path} is missing; give the path of a table that is there ({PAGE})")
    faults = Faults(str(path), ADVICE)
    rows = list(read_table(path, faults.add))
    table = Table(source=str(path), file=path.name, title=path.stem, rows=rows)
    return dataset_of(table, given, faults)
