"""Which files hold a model's weights, safetensors in its folder alone, and in how many bits.

Reading pickled weights runs code, so none is ever opened here or by what loads these files. The
hash of a file is computed once, and remembered while nothing has happened to the file: size and
time of change can be set back; inode and time of status change cannot. Weights in fewer bits are
opened by transformers: here is only what a user is told about them, and what they need.
"""

from __future__ import annotations

import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

from safetensors import SafetensorError, safe_open

from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.core.fingerprints import file_hash
from sonde.models.options import cache_folder, read_json

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
ENDING = ".safetensors"
PICKLED = ("*.bin", "*.pt", "*.pth")

# layers or labels; to build more than there are weights for would take all time and memory
MANY = 1000
BUILT = re.compile(r"(n|num|encoder|decoder)(_\w+)?_(layers?|labels)")

# a snapshot of the hub is a folder of links into one of these
BLOBS = ("../../blobs", "../../../blobs")

OUTSIDE = "lies outside {folder}; copy the file into the folder"

PACKAGES = {
    "bitsandbytes": ("bitsandbytes", "accelerate"),
    "gptq": ("gptqmodel", "optimum"),
    "awq": ("gptqmodel", "accelerate"),
    "compressed-tensors": ("compressed_tensors",),
    "torchao": ("torchao",),
    "fp8": ("accelerate",),
    "hqq": ("hqq",),
    "quanto": ("optimum.quanto",),
    "aqlm": ("aqlm", "accelerate"),
}
"""What transformers needs to open weights of a method; of others it says so itself."""

BITS = ("bits", "num_bits", "w_bit", "nbits")

# it says before every product that inputs are rounded
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)


def weight_files(folder: Path, config: dict[str, Any]) -> list[Path]:
    """Every file of weights of a folder; those that will be read are sound.

    What transformers would take from elsewhere, or under another form, is refused.
    """
    if (folder / ADAPTER).exists():
        raise ModelError(
            f"{folder} holds an adapter ({ADAPTER}), which would change the model's answers; name "
            f"it behind its base (hf:BASE+peft:{folder}), or merge it and give the merged folder"
        )
    read = [folder / WHOLE]
    refuse_outside(folder, read[0])
    if not read[0].exists():
        read = list(shards(folder)) if (folder / INDEX).exists() else []
    found = sorted({*folder.glob(f"*{ENDING}"), *read})
    for path in found:
        if path.exists() and not path.is_file():  # reading a named pipe would never end
            raise ModelError(f"{path} is not a regular file; copy its content into a file")
    check_config(folder, config, max(MANY, sum(map(count_tensors, read))))
    return found or _refuse_empty(folder)


def check_config(folder: Path, config: dict[str, Any], most: int) -> None:
    """Refuse a config that names other weights, or more layers than there can be."""
    for key, value in settings(config):
        if key == "transformers_weights":
            raise ModelError(
                f"{folder}: config.json names weights of its own ({key}); sonde reads {WHOLE}, or "
                f"what {INDEX} names. Take that line out"
            )
        if BUILT.fullmatch(key) and isinstance(value, int) and value > most:
            raise ModelError(
                f"{folder}: config.json says {key} is {value:,}, and there are fewer weights than "
                "that; fetch or save the model again"
            )


def shards(folder: Path) -> Iterator[Path]:
    """The files that a folder's index names, each once."""
    index = folder / INDEX
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise ModelError(
            f"{index} has no weight_map that says in which file each weight is; fetch or save the "
            "model again"
        )
    for name in sorted(set(map(_text, names.values()))):
        said = f"{index} names {name!r},"
        if not name.endswith(ENDING) or "\0" in name:
            raise ModelError(
                f"{said} which is no {ENDING} file; sonde never reads anything else, because "
                "reading pickled weights runs code"
            )
        path = folder / name
        outside = PurePath(name).is_absolute() or ".." in PurePath(name).parts
        if outside or not _inside(folder, path):
            raise ModelError(f"{said} which {OUTSIDE.format(folder=folder)}")
        if not path.is_file():
            raise ModelError(f"{said} which is not there; fetch or save the model again")
        yield path


def refuse_outside(folder: Path, path: Path) -> None:
    """Refuse a file that is there and links out of its folder."""
    if path.exists() and not _inside(folder, path):
        raise ModelError(f"{path} {OUTSIDE.format(folder=folder)}")


def _inside(folder: Path, path: Path) -> bool:
    """Whether a file is in its folder or, behind a link, among the blobs of the hub's cache."""
    homes = ((folder / way).resolve() for way in (".", *BLOBS))
    return any(path.resolve().is_relative_to(home) for home in homes)


def count_tensors(path: Path) -> int:
    """How many weights a file says it holds; refused unless it begins as safetensors does."""
    try:
        with safe_open(path, framework="numpy") as file:
            return len(file.keys())
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{path} does not read as safetensors ({error}); fetch or save the model again"
        ) from None


def settings(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, wherever it stands in what was read from JSON."""
    if isinstance(value, dict):
        yield from value.items()
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from settings(part)


def _text(name: object) -> str:
    """A file's name; what is none is shown as it is, and ends otherwise."""
    return name if isinstance(name, str) else repr(name)


def _refuse_empty(folder: Path) -> list[Path]:
    pickled = sorted(path for ending in PICKLED for path in folder.glob(ending))
    if pickled:
        raise ModelError(
            f"{folder} holds only pickled weights ({pickled[0].name}), which sonde never reads; "
            "convert them with model.save_pretrained(folder, safe_serialization=True)"
        )
    raise ModelError(
        f"{folder} holds no *.safetensors file; pickled weights are never read or downloaded"
    )


def remembered_hash(path: Path) -> str:
    """SHA-256 of a file, in hex, out of the cache where it is there."""
    stat = path.stat()
    memory = cache_folder() / "hashes.json"
    marks = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_dev, stat.st_ino)
    key = ":".join(map(str, (path.resolve(), *marks)))
    known = _remembered(memory)
    if key not in known:
        known[key] = file_hash(path)
        _remember(memory, known)
    return known[key]


def _remembered(memory: Path) -> dict[str, str]:
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: value for key, value in known.items() if isinstance(value, str)}


def _remember(memory: Path, known: dict[str, str]) -> None:
    partial = memory.with_suffix(f".{os.getpid()}")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known))
        partial.replace(memory)
    except OSError:
        warnings.warn(f"{memory} cannot be written; hashes are not remembered", stacklevel=3)


def quantisation(config: dict[str, Any]) -> str:
    """How the weights of a config are quantised: "bitsandbytes, 4 bits"; empty if they are not."""
    found = config.get("quantization_config")
    if not isinstance(found, dict):
        return ""
    bits = bits_of(found)
    return f"{method_of(found)}, {bits} bits" if bits else method_of(found)


def method_of(found: dict[str, Any]) -> str:
    """The name of the method; bitsandbytes once wrote none."""
    old = any(found.get(name) for name in ("load_in_4bit", "load_in_8bit"))
    return str(found.get("quant_method") or ("bitsandbytes" if old else "unknown method"))


def bits_of(found: dict[str, Any]) -> int | None:
    """How many bits a weight has, where that is said."""
    for bits in (4, 8):
        if found.get(f"load_in_{bits}bit"):
            return bits
    if method_of(found) in ("fp8", "fbgemm_fp8"):
        return 8
    said = [v for k, v in settings(found) if k in BITS and type(v) is int]
    return min(said, default=None)


def refuse_unopened(name: str, config: dict[str, Any], dtype: str) -> None:
    """Refuse quantised weights where what opens them is missing, or a dtype that none have."""
    quantised = quantisation(config)
    if not quantised:
        return
    method = method_of(config["quantization_config"])
    missing = [p for p in PACKAGES.get(method, ()) if find_spec(p.split(".")[0]) is None]
    if missing:
        packages = " ".join(p.split(".")[0].replace("_", "-") for p in missing)
        raise MissingExtra(
            f"{name} has quantised weights ({quantised}), which transformers opens with "
            f"{' and '.join(missing)}; run: pip install {packages}"
        )
    if dtype == "float64":
        raise UsageError(
            f"{name} has quantised weights ({quantised}), which no dtype makes more exact; leave "
            "out --dtype float64"
        )
