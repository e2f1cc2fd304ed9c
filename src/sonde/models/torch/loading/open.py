"""Open a model: a folder as the kind that it is, a GGUF file, or a loaded one with random weights.

A folder may also be opened as an encoder of sentences: the mean of its last hidden states.

Reading GGUF takes many seconds each time, so a file is turned once into a plain transformers folder
in the user's cache. Whether texts open with a beginning-of-text token is taken from the GGUF
metadata, since the converted tokenizer forgets it.

Random weights are as the architecture begins with; all else stays: tokenizer, config, device,
dtype. The draws depend on the seed and the architecture, never on the device or on the weights that
were there.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from sonde.core.errors import ModelError
from sonde.core.fingerprints import fingerprint
from sonde.models.options import LoadOptions, cache_folder, read_config, read_json
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.loading.adapters import adapted
from sonde.models.torch.loading.hashes import remembered_hash
from sonde.models.torch.loading.weight_files import weight_files
from sonde.models.torch.loading.weights import (
    Loaded,
    explained,
    first_line,
    kind_of,
    load_folder,
    pretrained,
    refuse_fixed,
    refuse_missing,
)
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel

if TYPE_CHECKING:
    from sonde.models.sentences import Encoder

Ours = CausalModel | MaskedModel | Seq2SeqModel
One = TypeVar("One", bound=Ours)

BATCH = 64  # sentences
FORM = 1  # raise when what is written below changes

BOS_FIELDS = tuple(f"tokenizer.ggml.{name}" for name in ("add_bos_token", "model", "pre"))

# pre-tokenizers for which llama.cpp adds a beginning of text by itself (llama-vocab.cpp)
OPENED = frozenset(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 tekken chameleon".split()
)


def open_model(
    name: str, folder: Path, options: LoadOptions, adapters: Sequence[Path] = (), base: str = ""
) -> Ours:
    """A causal, a masked or an encoder-decoder model, as config.json says.

    `adapters` are put on it; `base` is how the model itself was asked for.
    """
    kind = kind_of(read_config(folder))
    put = partial(adapted, folders=adapters, base=base)
    loaded = load_folder(name, folder, options, change=put)
    with explained(folder):
        if kind == "causal":
            return CausalModel(loaded)
        return MaskedModel(loaded) if kind == "masked" else Seq2SeqModel(loaded)


def open_gguf(
    name: str, path: Path, options: LoadOptions, adapters: Sequence[Path] = ()
) -> CausalModel:
    """Load a GGUF file through its plain copy, making that first where it is missing."""
    weights = remembered_hash(path)
    folder = cache_folder() / "gguf" / f"{weights[:16]}-{FORM}"
    if not (folder / "sonde.json").is_file():
        _convert(path, folder)
    if options.bos == "auto":
        said = read_json(folder / "sonde.json", f"delete {folder}, and it is made again")
        adds = said.get("adds_bos")
        options = replace(options, bos="always" if adds else "never")
    put = partial(adapted, folders=adapters, base="")
    named = f"gguf:{weights[:16]}"
    with explained(folder):
        return CausalModel(load_folder(name, folder, options, weights=named, change=put))


def _convert(path: Path, folder: Path) -> None:
    """Write the plain copy whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
    try:
        with _parsed_once():
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


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let all who read a GGUF file share one reader: transformers makes several, each of which
    takes seconds to find the vocabulary's names."""
    import gguf  # not installed wherever torch is

    reader: Any = gguf.GGUFReader
    parsed = cache(reader)
    gguf.GGUFReader = lambda path: parsed(Path(path).resolve())  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        gguf.GGUFReader = reader  # type: ignore[misc]


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
    from gguf import GGUFReader  # not installed wherever torch is

    fields = GGUFReader(path).fields
    said = {name: field.contents() for name in BOS_FIELDS if (field := fields.get(name))}
    flag, kind, pre = (said.get(name) for name in BOS_FIELDS)
    if flag is not None:
        return bool(flag)
    return kind in ("llama", "bert") or (kind == "gpt2" and pre in OPENED)


def mean_encoder(folder: Path, *, unit: bool = True) -> Encoder:
    """A transformers folder as an encoder of sentences: mean states, or these of length one."""
    with explained(folder):
        weight_files(folder, read_config(folder))
        tokenizer, model, _ = pretrained(transformers.AutoModel, folder, "auto", trust=False)
    model.eval()

    def embed(texts: Sequence[str]) -> NDArray[np.floating]:
        batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        found = []
        with torch.inference_mode():
            for batch in batches:
                inputs = tokenizer(list(batch), padding=True, truncation=True, return_tensors="pt")
                states = model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
                means = (states * mask).sum(1) / mask.sum(1)
                rows = torch.nn.functional.normalize(means, dim=1) if unit else means
                found.append(rows.float().numpy())
        return np.concatenate(found)

    return embed


def randomised(model: Any, name: str, seed: int, *, embeddings: bool) -> Ours:
    """The model with all its weights drawn anew, or only its token embeddings."""
    if not isinstance(model, Ours):
        raise ModelError(
            f"{name}: {model.identity.name} has no weights that could be drawn anew; name a "
            "transformers or GGUF model, as in random:hf:FOLDER"
        )
    refuse_fixed(model.loaded, name, "drawn anew")
    change = with_random_embeddings if embeddings else with_random_weights
    return rebuilt(model, replace(change(model.loaded, seed), name=name))


def rebuilt(model: One, loaded: Loaded) -> One:
    """A model of the same kind around what was loaded and changed."""
    if isinstance(model, CausalModel):
        return cast(One, CausalModel(loaded, start=model.start))
    return type(model)(loaded)


def with_random_weights(loaded: Loaded, seed: int) -> Loaded:
    """Every parameter drawn anew, in place, as the architecture itself initialises it."""
    fresh = _fresh(loaded, seed)
    values = dict(fresh.named_parameters())
    with torch.no_grad():
        for name, parameter in loaded.model.named_parameters():
            parameter.copy_(values[name])
    return replace(loaded, weights=f"random:{_digest(sorted(values.items()))}")


def with_random_embeddings(loaded: Loaded, seed: int) -> Loaded:
    """Token embeddings drawn anew, in place, and with them output embeddings that are tied.

    Positions and types keep their embeddings, and so do output embeddings of their own.
    """
    drawn = _fresh(loaded, seed).get_input_embeddings().weight
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight.copy_(drawn)
    digest = _digest([("embeddings", drawn)])
    return replace(loaded, weights=f"random:{fingerprint([loaded.weights, digest])}")


def _fresh(loaded: Loaded, seed: int) -> Any:
    """The same architecture as nobody trained it, in float32 on the CPU."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return type(loaded.model)(loaded.model.config).float()
    except Exception as error:  # whatever an architecture's own code raises
        raise ModelError(
            f"{loaded.name} cannot be built anew from its config: {first_line(error)}"
        ) from error


def _digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Sixteen hex digits that name some tensors, bit for bit."""
    digest = hashlib.sha256()
    for name, tensor in tensors:
        digest.update(f"{name}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
