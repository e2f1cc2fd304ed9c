"""Readers of public sets, one file each: whole datasets, and what can be added to one with a plus.

The tables are how they are found; readers of other packages come through `sonde.readers`.
"""

DATASETS = {
    "bear": "sonde.data.readers.bear",
    "bmlama": "sonde.data.readers.bmlama",
    "counterfact": "sonde.data.readers.counterfact",
    "entityquestions": "sonde.data.readers.entityquestions",
    "fktc": "sonde.data.readers.fktc",
    "kamel": "sonde.data.readers.kamel",
    "lama": "sonde.data.readers.lama",
    "mlama": "sonde.data.readers.mlama:MLAMA",
    "mpararel": "sonde.data.readers.mlama:MPARAREL",
    "myriadlama": "sonde.data.readers.myriadlama",
    "popqa": "sonde.data.readers.popqa",
    "templama": "sonde.data.readers.templama",
}

ADDITIONS = {
    "aliases": "sonde.data.readers.aliases",
    "autoprompt": "sonde.data.readers.templates:AUTOPROMPT",
    "lpaqa": "sonde.data.readers.templates:LPAQA",
    "optimised": "sonde.data.readers.templates:OPTIMISED",
    "pararel": "sonde.data.readers.templates:PARAREL",
}
