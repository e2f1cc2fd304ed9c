"""Models by scheme, in light files; `MODULES` is how they are found.

What needs torch lies in `models/torch` and is imported when a model is loaded, not before. Schemes
of other packages come through `sonde.models`.
"""

MODULES = {
    "control": "sonde.models.controls.counting",
    "ensemble": "sonde.models.optimised:ENSEMBLE",
    "finetuned": "sonde.models.optimised:FINETUNED",
    "gguf": "sonde.models.gguf",
    "hf": "sonde.models.hf",
    "random-embeddings": "sonde.models.randomised:EMBEDDINGS",
    "random": "sonde.models.randomised:WEIGHTS",
    "scripted": "sonde.models.scripted",
    "smollm2": "sonde.models.gguf:SMOLLM2",
    "soft": "sonde.models.optimised:SOFT",
}
