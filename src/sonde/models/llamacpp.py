"""`llamacpp:PATH`: a GGUF file as llama.cpp runs it, in this process, quantised as it is.

Settings follow a question mark, as in llamacpp:FILE.gguf?threads=4. Knows nothing of llama.cpp.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from sonde.core.abilities import Model
from sonde.core.errors import ModelError, UsageError
from sonde.core.facts import Dataset
from sonde.core.threads import cores
from sonde.models.options import LoadOptions, needs_extra

FORMS = ("f32", "f16", "bf16", "q8_0")


def usual_threads() -> int:
    """As many threads as torch would take, but one processor is left to all else."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else max(cores() - 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSettings:
    """How llama.cpp runs a file; as it is here, numbers depend on nothing but their text.

    `slots`: texts that are computed side by side. `batch`: tokens of a text that are computed at
    once. `kv`: the form in which keys and values are kept. `flash`: attention in half precision.
    """

    threads: int = field(default_factory=usual_threads)
    slots: int = 1
    batch: int = 1
    kv: str = "f32"
    flash: bool = False

    @property
    def told(self) -> str:
        """How tokens are computed, for the manifest."""
        if self.slots == self.batch == 1:
            return "token by token"
        return f"{self.slots} texts side by side, up to {self.batch} tokens of each at once"

    @property
    def changes(self) -> list[str]:
        """What of it gives other numbers than the usual settings, in words."""
        found = [] if self.slots == self.batch == 1 else [self.told]
        found += [f"keys and values in {self.kv}"] * (self.kv != "f32")
        return found + ["flash attention"] * self.flash


@dataclass(frozen=True, slots=True)
class LlamaCppScheme:
    """A GGUF file in llama.cpp."""

    name: ClassVar[str] = "llamacpp"
    usage: ClassVar[str] = "llamacpp:PATH"
    summary: ClassVar[str] = (
        "a GGUF file as llama.cpp runs it, quantised; scores, writes and reads "
        "(llamacpp:PATH?threads=4 for more threads)"
    )

    def check(self, rest: str) -> None:
        """The file must be there; settings must be some."""
        path, _ = parted(rest)
        if not path.is_file():
            raise ModelError(
                f"llamacpp:{rest}: {path} is not a file; give the path of a .gguf file"
            )

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Start llama.cpp on the file and find out, as with a server, what it can do."""
        name = f"llamacpp:{rest}"
        needs_extra("llamacpp", f"model {name!r}", "xllamacpp", "gguf", "httpx", "tenacity")
        needs_extra("llamacpp", f"model {name!r}", "torch", "transformers")
        if options.dtype != "auto":
            raise UsageError(
                f"--dtype {options.dtype}: {name} is computed as its file has it; leave out --dtype"
            )
        from sonde.models.served.llamacpp_engine import open_llamacpp

        return open_llamacpp(name, *parted(rest), options)


def parted(rest: str) -> tuple[Path, LlamaSettings]:
    """The file, and the settings behind a question mark.

    >>> path, settings = parted("my.gguf?threads=2&kv=f16")
    >>> path.name, settings.threads, settings.slots, settings.kv
    ('my.gguf', 2, 1, 'f16')
    """
    file, _, asked = rest.partition("?")
    if not file:
        raise UsageError("llamacpp: needs a file, as in llamacpp:./model.gguf")
    given: dict[str, Any] = {}
    for name, value in parse_qsl(asked, keep_blank_values=True):
        if name in ("threads", "slots", "batch") and value.isdigit() and int(value):
            given[name] = int(value)
        elif name == "kv" and value in FORMS:
            given[name] = value
        elif name == "flash" and value in ("on", "off"):
            given[name] = value == "on"
        else:
            known = ", ".join(each.name for each in fields(LlamaSettings))
            raise UsageError(
                f"llamacpp:{rest}: {name}={value} is no setting; there are {known}, as in "
                "llamacpp:FILE.gguf?threads=4&slots=2&batch=512&kv=f16&flash=on"
            )
    if given.get("kv") == "q8_0" and not given.get("flash"):
        raise UsageError(f"llamacpp:{rest}: kv=q8_0 works with flash attention only; add &flash=on")
    return Path(file).expanduser(), LlamaSettings(**given)


COMPONENT = LlamaCppScheme()
