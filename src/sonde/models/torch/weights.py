"""Load a transformers folder: weights from safetensors only, the tokenizer, and their hashes."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from tokenizers import Tokenizer

from sonde.core.errors import ModelError, UsageError
from sonde.core.fingerprints import file_hash, fingerprint
from sonde.models.options import LoadOptions, cache_folder

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model in memory with what is needed to name it and to feed it."""

    name: str
    model: Any
    tokenizer: Any
    folder: Path
    weights: str
    device: str
    dtype: str
    options: LoadOptions

    @property
    def backend(self) -> Tokenizer:
        """The fast tokenizer, which knows character offsets."""
        return cast(Tokenizer, self.tokenizer.backend_tokenizer)

    @property
    def context(self) -> int:
        """How many tokens the model can take."""
        longest = getattr(self.model.config, "max_position_embeddings", None) or 10**9
        offset = 2 if self.model.config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
        return int(longest) - offset


def load_folder(name: str, folder: Path, options: LoadOptions, *, weights: str = "") -> Loaded:
    """Load the model of a folder onto its device."""
    files = safetensors(folder)
    device = pick_device(options.device)
    dtype = _dtype(options.dtype, device, folder)
    config = read_config(folder)
    common = {"trust_remote_code": options.trust_remote_code, "local_files_only": True}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **common)
        model = _auto(config).from_pretrained(
            folder, dtype=DTYPES[dtype], use_safetensors=True, **common
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"{folder} does not load with transformers: {error}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"{folder}: its tokenizer has no fast form, so answers cannot be located")
    return Loaded(
        name=name,
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        folder=folder,
        weights=weights or fingerprint(_cached_hash(path) for path in files),
        device=device,
        dtype=dtype,
        options=options,
    )


def is_causal(config: dict[str, Any]) -> bool:
    """Whether a model config describes a left-to-right language model."""
    names = config.get("architectures") or []
    if any("MaskedLM" in name or name.endswith("ForPreTraining") for name in names):
        return False
    if any("CausalLM" in name or "LMHead" in name for name in names):
        return True
    raise ModelError(
        f"cannot tell what kind of model this is: config.json names {names or 'no architecture'}; "
        "sonde takes …ForCausalLM and …ForMaskedLM"
    )


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's config.json."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise ModelError(f"{folder} has no readable config.json: {error}") from None
    return config


def safetensors(folder: Path) -> list[Path]:
    """The weight files of a folder; pickled weights are refused because loading them runs code."""
    files = sorted(folder.glob("*.safetensors"))
    if files:
        return files
    pickled = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")])
    if pickled:
        raise ModelError(
            f"{folder} holds only pickled weights ({pickled[0].name}), which sonde never reads; "
            "convert them with model.save_pretrained(folder, safe_serialization=True)"
        )
    raise ModelError(f"{folder} holds no *.safetensors file")


def resolve(reference: str, revision: str | None) -> Path:
    """The folder of a model: a local one, or a hub repository fetched once."""
    path = Path(reference).expanduser()
    if path.is_dir():
        return path
    if path.exists() or reference.startswith((".", "/", "~")):
        raise ModelError(f"{reference} is not a folder; give a folder with config.json in it")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from huggingface_hub import snapshot_download

    try:
        patterns = ["*.json", "*.safetensors", "*.model", "*.txt"]
        found = snapshot_download(reference, revision=revision, allow_patterns=patterns)
    except Exception as error:  # the hub client raises many unrelated types
        raise ModelError(
            f"{reference!r} is neither a folder here nor a model the hub gave: {first_line(error)}"
        ) from error
    return Path(found)


def pick_device(wanted: str) -> str:
    """The device to use; `auto` prefers a GPU."""
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(
            f"device {wanted!r} was asked for, but torch sees no GPU; use --device cpu"
        )
    if wanted != "cpu" and not wanted.startswith("cuda"):
        raise UsageError(f"unknown device {wanted!r}; use auto, cpu or cuda")
    return wanted


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the CPU."""
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "not enough memory" in str(error)


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _auto(config: dict[str, Any]) -> Any:
    if is_causal(config):
        return transformers.AutoModelForCausalLM
    return transformers.AutoModelForMaskedLM


def _dtype(wanted: str, device: str, folder: Path) -> str:
    if wanted != "auto":
        if wanted not in DTYPES:
            raise UsageError(f"unknown dtype {wanted!r}; use auto, {', '.join(DTYPES)}")
        return wanted
    if device == "cpu":
        return "float32"
    config = read_config(folder)
    stored = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return stored if stored in DTYPES else "float32"


def _cached_hash(path: Path) -> str:
    """SHA-256 of a weight file, remembered while its size and time stay the same."""
    stat = path.stat()
    memory = cache_folder() / "hashes.json"
    key = f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}"
    try:
        known: dict[str, str] = json.loads(memory.read_text())
    except (OSError, json.JSONDecodeError):
        known = {}
    if key not in known:
        known[key] = file_hash(path)
        try:
            memory.parent.mkdir(parents=True, exist_ok=True)
            partial = memory.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(known))
            partial.replace(memory)
        except OSError:
            warnings.warn(f"{memory} cannot be written; hashes are not remembered", stacklevel=2)
    return known[key]
