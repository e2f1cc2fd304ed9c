"""Readers of public sets, one file each: whole datasets, and what can be added to one with a plus.

The tables are how they are found; readers of other packages come through `sonde.readers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sonde.core.facts import Dataset

DATASETS = {
    "bear": "sonde.data.readers.bear",
    "bmlama": "sonde.data.readers.bmlama",
    "counterfact": "sonde.data.readers.counterfact",
    "entityquestions": "sonde.data.readers.questions:ENTITYQUESTIONS",
    "fktc": "sonde.data.readers.fktc",
    "kamel": "sonde.data.readers.questions:KAMEL",
    "lama": "sonde.data.readers.lama",
    "mlama": "sonde.data.readers.mlama:MLAMA",
    "mpararel": "sonde.data.readers.mlama:MPARAREL",
    "myriadlama": "sonde.data.readers.myriadlama",
    "popqa": "sonde.data.readers.questions:POPQA",
    "templama": "sonde.data.readers.templama",
}

ADDITIONS = {
    "aliases": "sonde.data.readers.aliases",
    "autoprompt": "sonde.data.readers.templates:AUTOPROMPT",
    "lpaqa": "sonde.data.readers.templates:LPAQA",
    "optimised": "sonde.data.readers.templates:OPTIMISED",
    "pararel": "sonde.data.readers.templates:PARAREL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A reader of one public dataset's files, as published.

    `recognises` says whether a folder looks like it, `read` opens it; with `takes_file` that may be
    a single file, too.
    """

    name: str
    summary: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Dataset]
    takes_file: bool = False
