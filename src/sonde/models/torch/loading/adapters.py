"""Put adapters of peft on a model, such as LoRA: found sound, made for it, and merged if exact.

Merged weights are what a plain model has: nothing else is computed. In half precision, and where
weights are quantised, merging would round the adapter away, so that it stays beside the weights and
its numbers are peft's own. Safetensors only; pickled adapters are never read.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from sonde.core.errors import ModelError, SondeError
from sonde.core.fingerprints import fingerprint
from sonde.models.options import read_config, read_json
from sonde.models.torch.loading.spread import is_fetched
from sonde.models.torch.loading.weight_files import (
    ADAPTER,
    count_tensors,
    quantisation,
    refuse_outside,
    remembered_hash,
)
from sonde.models.torch.loading.weights import Loaded, first_line

WEIGHTS = "adapter_model.safetensors"
HUB = re.compile(r"[\w.-]+/[\w.-]+")
EXACT = ("float32", "float64")
"""Dtypes in which merging loses nothing but rounding."""


def adapted(loaded: Loaded, folders: Sequence[Path], base: str) -> Loaded:
    """The model with adapters put on it in turn; `base` is what was asked for as their base."""
    merges = loaded.dtype in EXACT and not loaded.quantised
    if len(folders) > 1 and not merges:
        raise ModelError(
            f"{loaded.name}: several adapters are merged in turn, which in {loaded.dtype} would "
            "lose some of them; use --dtype float32 and weights that are not quantised, or one"
        )
    for folder in folders:
        loaded = _with(loaded, folder, base, merges=merges)
    return loaded


def _with(loaded: Loaded, folder: Path, base: str, *, merges: bool) -> Loaded:
    """The model with one adapter."""
    config = read_json(folder / ADAPTER, "give a folder that peft has saved")
    refuse_unfit(loaded, folder, config, base)
    try:
        model, silent = put(loaded, folder, merges=merges)
    except SondeError:
        raise
    except Exception as error:  # peft and torch raise their own, over names and shapes
        lines = [line.strip() for line in str(error).splitlines() if "mismatch" in line]
        why = f"{type(error).__name__}: {(lines or [first_line(error)])[0]}"
        raise ModelError(
            f"{folder} does not fit {loaded.name} ({why.rstrip('.')}); it says it was made for "
            f"{config.get('base_model_name_or_path') or 'no model'}"
        ) from error
    hashes = [remembered_hash(folder / name) for name in (ADAPTER, WEIGHTS)]
    rank = f" of rank {config['r']}" if type(config.get("r")) is int else ""
    how = f"merged into {loaded.weights}" if merges else f"beside {loaded.weights}"
    what = f"{config.get('peft_type')}{rank} from {folder.name} ({fingerprint(hashes)}), {how}"
    return replace(
        loaded,
        model=model,
        weights=fingerprint([loaded.weights, *hashes]),
        adapters=(*loaded.adapters, what + (", changes nothing" if silent else "")),
    )


def refuse_unfit(loaded: Loaded, folder: Path, config: dict[str, Any], base: str) -> None:
    """Refuse what peft would read otherwise, and what was made for another model."""
    if not (folder / WEIGHTS).is_file():
        raise ModelError(
            f"{folder} holds no {WEIGHTS}; pickled adapters are never read: save it again with "
            "safe_serialization=True"
        )
    refuse_outside(folder, folder / WEIGHTS)
    count_tensors(folder / WEIGHTS)
    if is_fetched(loaded.model):
        raise ModelError(
            f"{loaded.name}: an adapter needs all weights in memory, and --device-map leaves some "
            "on disk or on the CPU; merge the adapter into a folder of its own with peft"
        )
    named = str(config.get("base_model_name_or_path") or "")
    folders = [Path(name).expanduser() for name in (named, base) if name]
    if loaded.quantised or _quantised(folders[0] if named else None):
        other = False  # an adapter fits its base in fewer bits too
    elif len(folders) == 2 and all(each.is_dir() for each in folders):
        other = len({fingerprint(map(remembered_hash, _files(each))) for each in folders}) > 1
    else:  # what is elsewhere cannot be looked at; a name of the hub is the same everywhere
        other = all(map(HUB.fullmatch, (named, base))) and named != base
    if other:
        raise ModelError(
            f"{folder} was made for {named} and not for {base}; write hf:{named}+peft:{folder}, "
            "or give the folder of a copy of that model"
        )


def _quantised(folder: Path | None) -> bool:
    return folder is not None and folder.is_dir() and bool(quantisation(read_config(folder)))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def put(loaded: Loaded, folder: Path, *, merges: bool) -> tuple[Any, bool]:
    """The model with an adapter in it, and whether that changes none of its weights."""
    import peft

    config = peft.PeftConfig.from_pretrained(str(folder))
    if config.is_prompt_learning:
        raise ModelError(
            f"{folder} holds a prompt ({config.peft_type.value}) and no change of weights; "
            "sonde takes adapters such as LoRA, and soft prompts of its own (soft:FOLDER)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is missing is looked for below
        wrapped = peft.PeftModel.from_pretrained(
            loaded.model, str(folder), torch_device=str(loaded.model.device)
        )
    wanted = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
    _refuse_parts(folder, set(wanted), {f"base_model.model.{n}" for n in loaded.model.state_dict()})
    outputs = [weight for name, weight in wanted.items() if "lora_B" in name]
    silent = bool(outputs) and not any(bool(torch.any(weight != 0)) for weight in outputs)
    inside: Any = wrapped.base_model
    model: Any = wrapped.merge_and_unload(safe_merge=True) if merges else inside.model
    return model.eval(), silent


def _refuse_parts(folder: Path, wanted: set[str], own: set[str]) -> None:
    """Refuse an adapter that lacks a part, or of which a part finds no place in the model."""
    with safe_open(folder / WEIGHTS, framework="numpy") as file:
        found = set(file.keys())
    if lost := sorted(wanted - found):
        raise ModelError(
            f"{folder} lacks {lost[0]}, which its {ADAPTER} says it has; save it again with peft"
        )
    if spare := sorted(found - wanted - own):
        raise ModelError(
            f"{folder} changes {spare[0]}, which the model does not have; give the model that the "
            "adapter was made for"
        )
