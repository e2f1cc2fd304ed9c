"""Load a transformers folder: weights from safetensors only, the tokenizer, its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import torch
import transformers
from tokenizers import Tokenizer

from sonde.core.abilities import TEMPLATE, Identity
from sonde.core.errors import ModelError, SondeError, UsageError
from sonde.core.fingerprints import fingerprint
from sonde.models.chat import template_of
from sonde.models.options import LoadOptions, local_folder, read_config, read_json
from sonde.models.torch.loading.spread import is_fetched, placement, places, placing, settle
from sonde.models.torch.loading.weight_files import (
    quantisation,
    refuse_unopened,
    remembered_hash,
    weight_files,
)
from sonde.models.torch.masked.logits import first_position

UNLIMITED = 10**9  # tokens, for models that keep no positions

# read by transformers where they are there, and passed over or misread where they are broken
TOKENIZER = ("tokenizer", "tokenizer_config", "special_tokens_map", "added_tokens")
BESIDE = tuple(f"{name}.json" for name in ("generation_config", *TOKENIZER))
STRANGE = "a \u2603"  # ends with what few tokenizers have a token for

# what torch's allocator for the CPU says on Linux and on Windows, and cuBLAS on a full GPU
NO_MEMORY = ("can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")

Kind = Literal["causal", "masked", "seq2seq"]

AUTO: Mapping[Kind, Any] = {
    "causal": transformers.AutoModelForCausalLM,
    "masked": transformers.AutoModelForMaskedLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
}

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,  # slow: to see how much of a score is rounding
}

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
# what it has to say is said where all messages are
transformers.logging.disable_default_handler()
transformers.logging.enable_propagation()
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model in memory with what is needed to name it and to feed it.

    `context`: how many tokens it takes. `vocabulary`: how many it has; its tokenizer may have fewer
    or more. `vectors`: the ids among these that are vectors of a soft prompt, which it reads and
    never answers. `quantised`: how its weights are, `places`: where they are if not on one device,
    `adapters`: what was added to them; each in words, empty where there is nothing to say.
    """

    name: str
    model: Any
    tokenizer: Any
    weights: str
    device: str
    dtype: str
    options: LoadOptions
    context: int
    vocabulary: int
    vectors: range = range(0)
    quantised: str = ""
    places: str = ""
    adapters: tuple[str, ...] = ()

    @property
    def answerable(self) -> list[int]:
        """The ids of the tokens that may be answered, rising."""
        # a model may have more rows than its tokenizer has tokens, to fill up a round number
        rows = (id for id in range(self.rows) if id not in self.vectors)
        return [id for id in rows if self.backend.id_to_token(id) is not None]

    @property
    def rows(self) -> int:
        """How many logits the model gives at each place."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def backend(self) -> Tokenizer:
        """The fast tokenizer, which knows character offsets."""
        return cast(Tokenizer, self.tokenizer.backend_tokenizer)


def load_folder(
    name: str,
    folder: Path,
    options: LoadOptions,
    *,
    weights: str = "",
    change: Callable[[Loaded], Loaded] | None = None,
) -> Loaded:
    """Load the model of a folder onto its device.

    `change` is made before anything goes through it: some quantised weights then take another form.
    """
    with explained(folder), placing(options):
        loaded = read_folder(name, folder, options, weights)
        loaded = change(loaded) if change else loaded
        try_out(loaded.model)
    return loaded


def read_folder(name: str, folder: Path, options: LoadOptions, weights: str) -> Loaded:
    """The model of a folder, untried."""
    config = read_config(folder)
    files = weight_files(folder, config)
    device = pick_device(options.device)
    quantised = quantisation(config)
    refuse_unopened(name, config, options.dtype)
    dtype = _dtype(options.dtype, device, config)
    # quantised weights are made for the device they are read onto, and cannot be moved
    where = placement(options) or ({"device_map": {"": device}} if quantised else {})
    trust, auto = options.trust_remote_code, AUTO[kind_of(config)]
    tokenizer, model, found = pretrained(auto, folder, DTYPES[dtype], trust=trust, **where)
    refuse_missing(folder, model, found)
    refuse_slow(folder, tokenizer)
    settle(model.eval() if where else model.to(device).eval())
    return Loaded(
        name=name,
        model=model,
        tokenizer=tokenizer,
        # the config too: the same weights under other settings answer otherwise
        weights=weights or fingerprint(map(remembered_hash, [folder / "config.json", *files])),
        device=str(model.device) if options.device_map else device,
        dtype=_computed(name, model, options.dtype, quantised) if quantised else dtype,
        options=options,
        context=context_of(model),
        vocabulary=int(model.config.get_text_config().vocab_size),
        quantised=quantised,
        places=places(model) if options.device_map else "",
    )


def pretrained(
    auto: Any, folder: Path, dtype: Any, *, trust: bool, **where: Any
) -> tuple[Any, Any, Any]:
    """A folder's tokenizer, its model, and what was found of its weights, which were looked at.

    `where`: onto which devices, as transformers takes it.
    """
    for name in BESIDE:
        if (folder / name).exists():
            read_json(folder / name)
    common = {"trust_remote_code": trust, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **common)
    model, found = auto.from_pretrained(
        folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **common, **where
    )
    return tokenizer, model, found


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn whatever a library raises over what a folder holds into an error that names it."""
    try:
        yield
    except SondeError:
        raise
    except Exception as error:  # transformers, tokenizers, safetensors and torch raise their own
        raise ModelError(
            f"{folder} does not load with transformers ({type(error).__name__}: "
            f"{first_line(error)}); if a file of it is damaged, fetch or save the model again"
        ) from error


def context_of(model: Any) -> int:
    """How many tokens a model can take."""
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return int(longest or UNLIMITED) - first_position(model)


def token_id(loaded: Loaded, name: str, value: Any) -> int:
    """The token that a setting of a model names; whether the model has it is not looked at."""
    if type(value) is int:
        return value
    raise ModelError(
        f"{loaded.name}: {name} is {value!r} and not the number of a token; mend its config.json "
        "or generation_config.json"
    )


def refuse_missing(path: Path, model: Any, found: dict[str, Any]) -> None:
    """Refuse weights with something missing, which transformers would fill in at random."""
    if missing := sorted(found["missing_keys"]):
        raise ModelError(
            f"{path} lacks {len(missing)} of the weights of {type(model).__name__}, such as "
            f"{missing[0]}; they would be random. Give a whole model with its language-model head"
        )


def refuse_fixed(loaded: Loaded, name: str, what: str) -> None:
    """Refuse to change weights that are quantised, not all in memory, or not those of a config."""
    if loaded.quantised:
        raise ModelError(
            f"{name}: the weights of {loaded.name} are quantised ({loaded.quantised}) and cannot "
            f"be {what}; name the model that they were made from"
        )
    if is_fetched(loaded.model):
        raise ModelError(
            f"{name}: the weights of {loaded.name} are not all in memory and cannot be {what}; "
            "leave out --device-map"
        )
    if hasattr(loaded.model, "peft_config"):
        raise ModelError(
            f"{name}: the adapter of {loaded.name} stays beside its weights, which cannot be "
            f"{what}; use --dtype float32, in which it is merged"
        )


def refuse_slow(folder: Path, tokenizer: Any) -> None:
    """Refuse a tokenizer that knows no offsets, or has nothing for what it does not know."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"{folder}: its tokenizer has no fast form, so answers cannot be located")
    tokenizer.backend_tokenizer.encode(STRANGE)


@torch.no_grad()
def try_out(model: Any) -> None:
    """Let a model read one token, so that settings it cannot work with fail here."""
    ids = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    model(ids, **({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}))


def kind_of(config: dict[str, Any]) -> Kind:
    """What kind of language model a config describes."""
    named = config.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    if config.get("is_encoder_decoder") and any("ForConditionalGeneration" in n for n in names):
        return "seq2seq"
    if any("MaskedLM" in name or name.endswith("ForPreTraining") for name in names):
        return "masked"
    if any("CausalLM" in name or "LMHead" in name for name in names):
        return "causal"
    raise ModelError(
        f"cannot tell what kind of model this is: config.json names {names or 'no architecture'}; "
        "sonde takes …ForCausalLM, …ForMaskedLM and encoder-decoder …ForConditionalGeneration"
    )


def resolve(reference: str, options: LoadOptions) -> Path:
    """The folder of a model: a local one, or a hub repository fetched once."""
    path = local_folder(reference)
    if path is not None:
        return path
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from huggingface_hub import snapshot_download

    try:
        patterns = ["*.json", "*.safetensors", "*.model", "*.txt"]
        patterns += ["*.py"] if options.trust_remote_code else []
        found = snapshot_download(reference, revision=options.revision, allow_patterns=patterns)
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
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(s in str(error) for s in NO_MEMORY)


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _dtype(wanted: str, device: str, config: dict[str, Any]) -> str:
    if wanted != "auto":
        if wanted not in DTYPES:
            raise UsageError(f"unknown dtype {wanted!r}; use auto, {', '.join(DTYPES)}")
        return wanted
    if device == "cpu":
        return "float32"
    stored = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return stored if stored in DTYPES and stored != "float64" else "float32"


def _computed(name: str, model: Any, wanted: str, quantised: str) -> str:
    """The dtype in which quantised weights compute, which they may say themselves."""
    found = str(model.dtype).removeprefix("torch.")
    if wanted not in ("auto", found):
        raise UsageError(
            f"{name} has quantised weights ({quantised}) that compute in {found}; leave out "
            f"--dtype {wanted}"
        )
    return found


@lru_cache(maxsize=4)
def _tokenizer_hash(tokenizer: Any, _tokens: int) -> str:
    """What names a tokenizer with so many tokens; one with a long vocabulary is long to write."""
    return fingerprint([tokenizer.backend_tokenizer.to_str()])


def identify(
    loaded: Loaded, *, bos: str, scoring: str, chat: Mapping[str, str] | None = None
) -> Identity:
    """The identity of a loaded model; how texts open and how options are scored are part of it."""
    known = {
        "weights on": loaded.places,
        "quantised": loaded.quantised,
        "adapter": "; ".join(loaded.adapters),
        TEMPLATE: fingerprint([text]) if (text := template_of(loaded.tokenizer)) else "",
    }
    return Identity(
        name=loaded.name,
        architecture=type(loaded.model).__name__,
        weights=loaded.weights,
        tokenizer=_tokenizer_hash(loaded.tokenizer, len(loaded.tokenizer)),
        dtype=loaded.dtype,
        bos=bos,
        chat=chat or {},
        details={
            "device": loaded.device,
            "parameters": f"{parameter_count(loaded):,}",
            "context": f"{loaded.context} tokens" if loaded.context < UNLIMITED else "any length",
            "scoring": scoring,
            "revision": loaded.options.revision or "",
            **{what: said for what, said in known.items() if said},
        },
    )


def parameter_count(loaded: Loaded) -> int:
    """How many weights a model has; where several are one number, as many as it was made with."""
    model = loaded.model
    if loaded.quantised:
        with torch.device("meta"):
            model = type(model)(model.config)
    return sum(parameter.numel() for parameter in model.parameters())
