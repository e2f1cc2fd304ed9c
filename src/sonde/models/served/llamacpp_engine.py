"""llama.cpp in this process, asked over loopback as its server is. Alone imports xllamacpp.

Its sums depend on how many tokens are computed together, and where activations are quantised, or
weights are in half precision, the last bit of a sum moves answers by tenths of a nat. So tokens go
one at a time, unless settings say otherwise: numbers are then their text's own.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sonde.core.errors import ModelError, UsageError
from sonde.http.address import Address
from sonde.http.server import connected
from sonde.models.llamacpp import LlamaSettings
from sonde.models.options import LoadOptions, read_config
from sonde.models.served.asks import Ask, Draw, Write
from sonde.models.served.dialect import About, Request, Setting
from sonde.models.served.lanes import Lanes
from sonde.models.served.llamacpp import LlamaCpp
from sonde.models.served.model import Served, served_model
from sonde.models.served.tokens import read_tokens
from sonde.models.served.transport import HttpTransport, Read, Split
from sonde.models.served.trials import tried
from sonde.models.torch.loading.gguf_copies import opened_as_said, plain_copy
from sonde.models.torch.loading.weight_files import remembered_hash

T = TypeVar("T")

SHORTEST = 1024
"""Tokens of context to begin with; doubled for longer texts."""

MEMORY = 2**31
"""Bytes that keys and values may take before there are fewer slots."""

DAY = 86_400.0
"""Seconds that an answer may take; there is nobody else to wait for."""

os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # takes minutes where a debugger is installed


class Engine:
    """Carries requests to llama.cpp; started again where a text needs more context."""

    def __init__(
        self, name: str, path: Path, settings: LlamaSettings, options: LoadOptions
    ) -> None:
        self.name, self.path, self.settings = name, path, settings
        self.device = _device(options.device)
        self.per_token = 0
        self.context = 0
        self._stack = ExitStack()
        self._lanes: Lanes | None = None
        weakref.finalize(self, self._stack.close)

    def look(self, path: str) -> Any:
        """What lies under a path."""
        return self._fitted(1).look(path)

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply, slots side by side."""
        every = list(requests)
        longest = max((needs(ask) for request in every for ask in request.asks), default=1)
        yield from self._fitted(longest).send(every, read, split)

    def _fitted(self, tokens: int) -> Lanes:
        """What carries requests, with room for texts of so many tokens."""
        if self._lanes is None or tokens > self.context:
            context = SHORTEST
            while context < tokens:
                context *= 2
            self._lanes = None  # should it not start again, nothing is asked of what was stopped
            self._stack.close()
            self._lanes = self._started(context)
            self.context = context
        return self._lanes

    def _started(self, context: int) -> Lanes:
        slots = self.settings.slots
        if self.per_token:
            slots = max(min(slots, MEMORY // (self.per_token * context)), 1)
        key = secrets.token_hex()
        server = self._server(context, slots, key)
        self._stack.callback(lambda held: held.clear(), [server])  # freed with what is held
        address = Address(
            url=server.listening_address,
            kind="llama.cpp",
            concurrency=slots,
            timeout=DAY,
            retries=1,
            health="/health",
            key=key,
        )
        del server
        return Lanes(HttpTransport(self._stack.enter_context(connected(address, self.name))), slots)

    def _server(self, context: int, slots: int, key: str) -> Any:
        import xllamacpp

        settings, asked = self.settings, xllamacpp.CommonParams()
        asked.model.path = str(self.path)
        asked.n_ctx, asked.n_parallel, asked.n_ubatch = context * slots, slots, settings.batch
        asked.kv_unified = False  # or else sums would depend on where in memory a text lies
        asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = settings.threads
        kind, flash = xllamacpp.ggml_type, xllamacpp.llama_flash_attn_type
        asked.cache_type_k = asked.cache_type_v = getattr(kind, f"GGML_TYPE_{settings.kv.upper()}")
        chosen = "ENABLED" if settings.flash else "DISABLED"
        asked.flash_attn_type = getattr(flash, f"LLAMA_FLASH_ATTN_TYPE_{chosen}")
        asked.swa_full = True  # so that texts behind the same beginning find all of it
        asked.cache_ram_mib, asked.fit_params, asked.warmup, asked.ui = 0, False, False, False
        asked.api_keys, asked.verbosity = [key], 0
        if self.device == "cpu":
            asked.n_gpu_layers = 0
        try:
            return xllamacpp.Server(asked)
        except RuntimeError as error:
            changes = " and ".join(settings.changes)
            advice = f"; it may also not take {changes}: leave that out" if changes else ""
            raise ModelError(
                f"llama.cpp cannot run {self.path} with {context * slots:,} tokens of context "
                f"({error}); the file may be damaged, of a kind that xllamacpp "
                f"{xllamacpp.__version__} does not know, or larger than the memory" + advice
            ) from None


def open_llamacpp(name: str, path: Path, settings: LlamaSettings, options: LoadOptions) -> Served:
    """A GGUF file in llama.cpp, with the tokenizer that the file has."""
    import xllamacpp

    folder = plain_copy(path, weights=False)
    tokens = read_tokens(str(folder), opened_as_said(folder, options), name)
    tokens = replace(tokens, name=path.name)
    config = read_config(folder)
    engine = Engine(name, path, settings, options)
    engine.per_token = kept_bytes(config, settings.kv)
    dialect = LlamaCpp(Setting(model=path.name, pieces=tokens.pieces))
    trial = tried(dialect, engine, tokens)
    if not trial.scores:
        raise ModelError(f"{name} cannot be used: {next(iter(trial.why.values()))}")
    form = str(engine.look("/props").get("model_ftype", "")).removeprefix("(guessed) ")
    version = f"xllamacpp {xllamacpp.__version__}"
    found = replace(
        trial.found(path.name),
        name=name,
        about=About(version=version),
        # what else decides numbers stands beside these, so that no run goes on with another
        architecture=f"{config.get('model_type', 'unnamed')} (llama.cpp, {version})",
        weights=f"gguf:{remembered_hash(path)[:16]}",
        dtype=", ".join([form, *settings.changes]),
        notes={
            **trial.notes,
            "device": engine.device,
            "keys and values": settings.kv,
            "flash attention": "on" if settings.flash else "off",
            "computed": settings.told,
        },
    )
    return served_model(found, trial.dialect, engine, tokens)


def needs(ask: Ask) -> int:
    """The tokens of context that an ask takes."""
    return len(ask.ids) + (ask.most if isinstance(ask, Write | Draw) else 1)


def kept_bytes(config: Mapping[str, Any], kv: str) -> int:
    """Bytes that the keys and values of a token take; 0 where a config does not say."""
    try:
        heads = config.get("num_key_value_heads") or config["num_attention_heads"]
        size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        return int(2 * config["num_hidden_layers"] * heads * size * (4 if kv == "f32" else 2))
    except KeyError:
        return 0


def _device(wanted: str) -> str:
    """What it runs on: the chips that this build of llama.cpp knows, unless the CPU is wanted."""
    import xllamacpp

    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    chips = [each for each in xllamacpp.get_device_info() if each["type"] != cpu]
    if wanted == "cpu" or (wanted == "auto" and not chips):
        return "cpu"
    if not chips:
        raise UsageError(
            f"device {wanted!r} was asked for, but this xllamacpp sees no GPU; use --device cpu or "
            "install one that was built for yours"
        )
    return ", ".join(each["description"] for each in chips)
