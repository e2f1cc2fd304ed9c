"""Models by scheme, in light files; `MODULES` is how they are found.

What needs torch lies in `models/torch` and is imported when a model is loaded, not before. Schemes
of other packages come through `sonde.models`.
"""

MODULES = {
    "control": "sonde.models.controls",
    "ensemble": "sonde.models.optimised:ENSEMBLE",
    "finetuned": "sonde.models.optimised:FINETUNED",
    "gguf": "sonde.models.pretrained:GGUF",
    "hf": "sonde.models.pretrained:HF",
    "llamacpp": "sonde.models.llamacpp",
    "random-embeddings": "sonde.models.pretrained:EMBEDDINGS",
    "random": "sonde.models.pretrained:WEIGHTS",
    "scripted": "sonde.models.scripted",
    "server": "sonde.models.server",
    "smollm2": "sonde.models.pretrained:SMOLLM2",
    "soft": "sonde.models.optimised:SOFT",
    "vllm": "sonde.models.vllm",
}

ELSEWHERE = frozenset({"llamacpp", "server", "vllm"})
"""Schemes of models that other programs compute: what these give needs a certificate."""
