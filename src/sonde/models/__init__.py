"""Models by scheme, one light file each; `MODULES` is how they are found.

What needs torch lies in `models/torch` and is imported when a model is loaded, not before. Schemes
of other packages come through `sonde.models`.
"""

MODULES = {
    "control": "sonde.models.controls.counting",
    "ensemble": "sonde.models.wrappers.ensemble",
    "finetuned": "sonde.models.wrappers.finetuned",
    "gguf": "sonde.models.gguf",
    "hf": "sonde.models.hf",
    "random-embeddings": "sonde.models.wrappers.random_embeddings",
    "random": "sonde.models.wrappers.random_weights",
    "scripted": "sonde.models.scripted",
    "smollm2": "sonde.models.smollm2",
    "soft": "sonde.models.wrappers.soft",
}
