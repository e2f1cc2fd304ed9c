"""Readers of public sets, one file each: whole datasets, and what can be added to one with a plus.

The tables are how they are found; readers of other packages come through `sonde.readers`.
"""

DATASETS = {
    "fktc": "sonde.data.readers.fktc",
    "lama": "sonde.data.readers.lama",
    "myriadlama": "sonde.data.readers.myriadlama",
}

ADDITIONS = {
    "aliases": "sonde.data.readers.aliases",
    "autoprompt": "sonde.data.readers.templates:AUTOPROMPT",
    "lpaqa": "sonde.data.readers.templates:LPAQA",
    "optimised": "sonde.data.readers.templates:OPTIMISED",
    "pararel": "sonde.data.readers.templates:PARAREL",
}
