"""llama.cpp's own server on loopback, with a tiny model that is also here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from sonde.models.served.dialect import Request
from sonde.models.served.transport import Read, Split, Untaken
from tests import tiny
from tests.models.gguf_file import write_gguf

T = TypeVar("T")

CONTEXT = 128


def write_model(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """A tiny Llama as transformers has it, and the same in GGUF, unquantised."""
    plain = tiny.llama(folder / "plain", **changes)
    return plain, write_gguf(folder / "tiny.gguf", plain, adds_bos=True)


def started(path: Path, *, slots: int = 1, settings: Any = None) -> Any:
    """A server of one thread, as llama-server is by default but for what makes numbers exact."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="pip install 'sonde[llamacpp]'")
    asked = xllamacpp.CommonParams()
    asked.model.path = str(path)
    asked.n_ctx, asked.n_parallel, asked.kv_unified = CONTEXT * slots, slots, False
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
    asked.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    asked.cache_type_k = asked.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    asked.warmup, asked.verbosity = False, 0
    if settings is not None:
        settings(asked)
    return xllamacpp.Server(asked)


class Web:
    """Carries requests to an address, one after the other; a refusal is raised as it is."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, timeout=60)
        self.sent: list[Request] = []

    def look(self, path: str) -> Any:
        answer = self.client.get(path)
        return answer.json() if answer.status_code == 200 else None

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        for request in requests:
            self.sent.append(request)
            answer = self.client.post(request.path, json=dict(request.body))
            if answer.status_code != 200:
                raise Untaken(f"HTTP {answer.status_code}: {answer.text[:200]}", request)
            yield request, read(request, answer.json())
