"""`vllm:FOLDER_OR_ID`: a model in vLLM's engine in this process, as one behind its server.

Settings of vLLM's own follow a question mark: vllm:FOLDER?tensor_parallel_size=2.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from sonde.core.abilities import Model
from sonde.core.errors import UsageError
from sonde.core.facts import Dataset
from sonde.models.options import LoadOptions, local_folder, needs_extra, read_config

OURS = ("dtype", "model", "revision", "tokenizer", "trust_remote_code")
"""Settings of vLLM's that are the model itself or options here."""


@dataclass(frozen=True, slots=True)
class VllmScheme:
    """A causal model in vLLM."""

    name: ClassVar[str] = "vllm"
    usage: ClassVar[str] = "vllm:PATH_OR_ID"
    summary: ClassVar[str] = (
        "a causal transformers folder or hub id in vLLM's engine, in an environment of its own; "
        "scores and writes (vllm:PATH?SETTING=VALUE&… with settings of vLLM's)"
    )

    def check(self, rest: str) -> None:
        """A folder must be there and have a config; settings must be readable."""
        reference, _ = parted(rest)
        if not reference:
            raise UsageError("vllm: needs a folder or a hub id, as in vllm:./my-model")
        if (folder := local_folder(reference)) is not None:
            read_config(folder)

    def load(self, rest: str, options: LoadOptions, dataset: Dataset | None) -> Model:
        """Start the engine and find out, as with a server, what it can do."""
        needs_extra("vllm", f"model 'vllm:{rest}'", "vllm", "transformers")
        from sonde.models.served.vllm_engine import open_vllm

        reference, settings = parted(rest)
        return open_vllm(f"vllm:{rest}", reference, options, settings)


def parted(rest: str) -> tuple[str, dict[str, Any]]:
    """The folder or hub id, and vLLM's settings behind a question mark.

    >>> parted("gpt2?max_model_len=512&enforce_eager=true&load_format=auto")
    ('gpt2', {'max_model_len': 512, 'enforce_eager': True, 'load_format': 'auto'})
    """
    reference, _, asked = rest.partition("?")
    settings = {}
    for part in filter(None, asked.split("&")):
        pairs = parse_qsl(part, keep_blank_values=True)
        name, value = pairs[0] if pairs else (part, "")
        if not name.isidentifier() or not value:
            raise UsageError(
                f"{part!r} in vllm:{rest} is no setting of vLLM's; write NAME=VALUE, as in "
                "vllm:FOLDER?max_model_len=2048"
            )
        if name in OURS:
            raise UsageError(
                f"{part!r} in vllm:{rest} is not among vLLM's settings here; name the model before "
                "the question mark, and use --dtype, --revision or --trust-remote-code"
            )
        settings[name] = _value(value)
    return reference, settings


def _value(text: str) -> Any:
    """A setting's value: as JSON where it is some, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


COMPONENT = VllmScheme()
