"""Turn a GGUF file into a plain transformers folder, once, in the user's cache.

Reading GGUF takes many seconds each time, the plain copy about one. Whether texts open with a
beginning-of-text token is taken from the GGUF metadata, since the converted tokenizer forgets it.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from contextlib import nullcontext, redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import transformers
from gguf import GGUFReader

from sonde.core.errors import ModelError
from sonde.models.options import LoadOptions, cache_folder, read_json
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.weights import (
    explained,
    first_line,
    load_folder,
    refuse_missing,
    remembered_hash,
)

FORM = 1  # raise when what is written below changes

BOS_FIELDS = tuple(f"tokenizer.ggml.{name}" for name in ("add_bos_token", "model", "pre"))

# pre-tokenizers for which llama.cpp adds a beginning of text by itself (llama-vocab.cpp)
OPENED = frozenset(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 tekken chameleon".split()
)


def open_gguf(name: str, path: Path, options: LoadOptions) -> CausalModel:
    """Load a GGUF file through its plain copy, making that first where it is missing."""
    weights = remembered_hash(path)
    folder = cache_folder() / "gguf" / f"{weights[:16]}-{FORM}"
    if not (folder / "sonde.json").is_file():
        _convert(path, folder)
    if options.bos == "auto":
        said = read_json(folder / "sonde.json", f"delete {folder}, and it is made again")
        adds = said.get("adds_bos")
        options = replace(options, bos="always" if adds else "never")
    with explained(folder):
        return CausalModel(load_folder(name, folder, options, weights=f"gguf:{weights[:16]}"))


def _convert(path: Path, folder: Path) -> None:
    """Write the plain copy whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
    try:
        adds_bos = gguf_adds_bos(path)
        model, tokenizer = _read(path)
        tokenizer.save_pretrained(partial)
        # save_pretrained refuses a model that still carries its quantiser
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(partial)
        (partial / "sonde.json").write_text(json.dumps({"adds_bos": adds_bos, "from": path.name}))
        _settle(partial, folder)
    except ModelError:
        raise
    except Exception as error:  # the reader raises whatever the bytes lead it to
        raise ModelError(
            f"{path} cannot be turned from GGUF into a plain copy in {folder.parent}: "
            f"{first_line(error)}"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _read(path: Path) -> tuple[Any, Any]:
    """The model and tokenizer of a GGUF file alone: other files beside it are not looked at."""
    quiet = nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as bare, quiet:
        (Path(bare) / "model.gguf").symlink_to(path.resolve())
        source: dict[str, Any] = {"gguf_file": "model.gguf", "local_files_only": True}
        source["trust_remote_code"] = False
        auto: Any = transformers.AutoModelForCausalLM
        model, found = auto.from_pretrained(bare, output_loading_info=True, **source)
        refuse_missing(path, model, found)
        return model, transformers.AutoTokenizer.from_pretrained(bare, **source)


def _settle(partial: Path, folder: Path) -> None:
    """Move the copy to its place, unless another process was faster."""
    try:
        partial.rename(folder)
    except OSError:
        if not (folder / "sonde.json").is_file():
            raise


def gguf_adds_bos(path: Path) -> bool:
    """Whether texts open with a beginning-of-text token, by the file's metadata.

    Where the metadata is silent, sentencepiece ("llama") and WordPiece ("bert") vocabularies do
    and byte-pair ("gpt2") ones do only with some pre-tokenizers, which is llama.cpp's rule.
    """
    fields = GGUFReader(path).fields
    said = {name: field.contents() for name in BOS_FIELDS if (field := fields.get(name))}
    flag, kind, pre = (said.get(name) for name in BOS_FIELDS)
    if flag is not None:
        return bool(flag)
    return kind in ("llama", "bert") or (kind == "gpt2" and pre in OPENED)
