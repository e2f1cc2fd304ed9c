"""Turn a GGUF file, or its tokenizer alone, once into a transformers folder in the user's cache.

Reading GGUF takes many seconds each time. Whether texts open with a beginning-of-text token is
taken from the GGUF metadata, since the converted tokenizer forgets it.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import transformers

from sonde.core.errors import ModelError
from sonde.models.options import LoadOptions, cache_folder, read_json
from sonde.models.torch.loading.weight_files import remembered_hash
from sonde.models.torch.loading.weights import first_line, refuse_missing

FORM = 1  # raise when what is written below changes

SAID = "sonde.json"

BOS_FIELDS = tuple(f"tokenizer.ggml.{name}" for name in ("add_bos_token", "model", "pre"))

# pre-tokenizers for which llama.cpp adds a beginning of text by itself (llama-vocab.cpp)
OPENED = frozenset(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 tekken chameleon".split()
)


def plain_copy(path: Path, *, weights: bool = True) -> Path:
    """The folder of a GGUF file's plain copy, made first where it is missing.

    Without `weights` it has the tokenizer and the config alone, unless all of it is there.
    """
    name = f"{remembered_hash(path)[:16]}-{FORM}"
    whole, partly = (cache_folder() / kind / name for kind in ("gguf", "gguf-tokenizers"))
    folder = whole if weights or (whole / SAID).is_file() else partly
    if not (folder / SAID).is_file():
        _convert(path, folder, weights=weights)
    return folder


def opened_as_said(folder: Path, options: LoadOptions) -> LoadOptions:
    """The options with what the GGUF file of a copy says of how texts open, if nobody chose."""
    if options.bos != "auto" or options.chat == "always":
        return options
    adds = read_json(folder / SAID, f"delete {folder}, and it is made again").get("adds_bos")
    return replace(options, bos="always" if adds else "never")


def _convert(path: Path, folder: Path, *, weights: bool) -> None:
    """Write the plain copy whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
    try:
        with _parsed_once():
            adds_bos = gguf_adds_bos(path)
            model, tokenizer = _read(path, weights=weights)
        tokenizer.save_pretrained(partial)
        config = model
        if weights:  # save_pretrained refuses a model that still carries its quantiser
            model.hf_quantizer, config = None, model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        model.save_pretrained(partial)
        (partial / SAID).write_text(json.dumps({"adds_bos": adds_bos, "from": path.name}))
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


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let all who read a GGUF file share one reader and one table of names: transformers makes
    several, each of which takes seconds to find the vocabulary, and a table for every module."""
    import gguf  # not installed wherever torch is

    reader: Any = gguf.GGUFReader
    names: Any = gguf.get_tensor_name_map
    parsed = cache(reader)
    gguf.GGUFReader = lambda path: parsed(Path(path).resolve())  # type: ignore[assignment,misc]
    gguf.get_tensor_name_map = cache(names)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = reader, names  # type: ignore[misc]


def _read(path: Path, *, weights: bool) -> tuple[Any, Any]:
    """The model, or its config, and the tokenizer of a GGUF file; none of what lies beside it."""
    quiet = nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as bare, quiet:
        (Path(bare) / "model.gguf").symlink_to(path.resolve())
        source: dict[str, Any] = {"gguf_file": "model.gguf", "local_files_only": True}
        source["trust_remote_code"] = False
        tokenizer = transformers.AutoTokenizer.from_pretrained(bare, **source)
        if not weights:
            return transformers.AutoConfig.from_pretrained(bare, **source), tokenizer
        auto: Any = transformers.AutoModelForCausalLM
        model, found = auto.from_pretrained(bare, output_loading_info=True, **source)
        refuse_missing(path, model, found)
        return model, tokenizer


def _settle(partial: Path, folder: Path) -> None:
    """Move the copy to its place, unless another process was faster."""
    try:
        partial.rename(folder)
    except OSError:
        if not (folder / SAID).is_file():
            raise


def gguf_adds_bos(path: Path) -> bool:
    """Whether texts open with a beginning-of-text token, by the file's metadata.

    Where the metadata is silent, sentencepiece ("llama") and WordPiece ("bert") vocabularies do
    and byte-pair ("gpt2") ones do only with some pre-tokenizers, which is llama.cpp's rule.
    """
    from gguf import GGUFReader  # not installed wherever torch is

    fields = GGUFReader(path).fields
    said = {name: field.contents() for name in BOS_FIELDS if (field := fields.get(name))}
    flag, kind, pre = (said.get(name) for name in BOS_FIELDS)
    if flag is not None:
        return bool(flag)
    return kind in ("llama", "bert") or (kind == "gpt2" and pre in OPENED)
