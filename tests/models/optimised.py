"""Folders as `sonde optimise` leaves them, written by hand: nothing is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file as save_vectors
from safetensors.torch import save_file

from sonde.core.texts import marker
from sonde.models.load import load
from sonde.models.options import LoadOptions


def made(folder: Path, method: str, reference: str, weights: str = "", tokenizer: str = "") -> Path:
    """A folder that a method made for a model, with nothing in it."""
    folder.mkdir(parents=True, exist_ok=True)
    model = {"reference": reference, "weights": weights, "tokenizer": tokenizer}
    (folder / "manifest.json").write_text(json.dumps({"method": method, "model": model}))
    return folder


def made_for(folder: Path, method: str, model: Path) -> tuple[Path, Any]:
    """The same for a model that is there, and the model."""
    base: Any = load(f"hf:{model}", LoadOptions(device="cpu"))
    own = base.identity
    return made(folder, method, f"hf:{model}", own.weights, own.tokenizer), base


def soft(model: Path, folder: Path) -> Path:
    """One vector for P36."""
    made_for(folder, "optiprompt", model)
    save_vectors({marker("P36", 1): np.zeros(32, np.float32)}, folder / "vectors.safetensors")
    return folder


def finetuned(model: Path, folder: Path) -> Path:
    """Weights of P36 that change nothing."""
    _, base = made_for(folder, "finetune", model)
    (folder / "weights").mkdir(exist_ok=True)
    change = {name: torch.zeros_like(p) for name, p in base.model.named_parameters()}
    save_file(change, folder / "weights" / "P36.safetensors")
    return folder


def ensemble(model: Path, folder: Path) -> Path:
    """One template for P36."""
    made_for(folder, "lpaqa", model)
    row = {"id": "t", "relation": "P36", "text": "the capital of [X] is [Y] ."}
    (folder / "templates.jsonl").write_text(json.dumps(row) + "\n")
    return folder
