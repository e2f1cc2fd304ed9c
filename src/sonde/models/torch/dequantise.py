"""Turn a GGUF file into a plain transformers folder, once, in the user's cache.

Reading GGUF takes many seconds each time, the plain copy about one. Whether texts open with a
beginning-of-text token is taken from the GGUF metadata, since the converted tokenizer forgets it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import transformers
from gguf import GGUFReader

from sonde.core.errors import ModelError
from sonde.core.fingerprints import file_hash
from sonde.models.options import LoadOptions, cache_folder
from sonde.models.torch.causal import CausalModel
from sonde.models.torch.weights import first_line, load_folder

FORM = 1  # raise when what is written below changes


def open_gguf(name: str, path: Path, options: LoadOptions) -> CausalModel:
    """Load a GGUF file through its plain copy, making that first where it is missing."""
    weights = file_hash(path)
    folder = cache_folder() / "gguf" / f"{weights[:16]}-{FORM}"
    if not (folder / "sonde.json").is_file():
        _convert(path, folder)
    if options.bos == "auto":
        adds = json.loads((folder / "sonde.json").read_text())["adds_bos"]
        options = replace(options, bos="always" if adds else "never")
    return CausalModel(load_folder(name, folder, options, weights=f"gguf:{weights[:16]}"))


def _convert(path: Path, folder: Path) -> None:
    """Write the plain copy whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
    try:
        adds_bos = gguf_adds_bos(path)
        source: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(path.parent, **source)
        transformers.AutoTokenizer.from_pretrained(path.parent, **source).save_pretrained(partial)
        # save_pretrained refuses a model that still carries its quantiser
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(partial, safe_serialization=True)
        (partial / "sonde.json").write_text(json.dumps({"adds_bos": adds_bos, "from": path.name}))
        if not folder.exists():
            partial.rename(folder)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"{path} cannot be read as GGUF: {first_line(error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def gguf_adds_bos(path: Path) -> bool:
    """Whether texts open with a beginning-of-text token, by the file's metadata.

    Where the metadata is silent, sentencepiece ("llama") and WordPiece ("bert") vocabularies do
    and byte-pair ("gpt2") ones do not, which is llama.cpp's rule.
    """
    fields = GGUFReader(path).fields
    flag = fields.get("tokenizer.ggml.add_bos_token")
    if flag is not None:
        return bool(flag.contents())
    kind = fields.get("tokenizer.ggml.model")
    return kind is not None and kind.contents() in ("llama", "bert")
