"""What vLLM's library looks like to sonde, answering from a tiny model: for where vLLM is not.

The real one is asked by `test_real_vllm.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.servers.answering import Answering


class ClientError(Exception):
    """What vLLM raises over a prompt that it does not take; no ValueError."""


class Engine:
    """vLLM's `LLM`; refuses a setting that it does not have, and a prompt that is too long."""

    def __init__(self, folder: str, *, dtype: str, max_model_len: int = 64, **given: Any) -> None:
        if "nonsense" in given:
            raise TypeError("EngineArgs.__init__() got an unexpected keyword argument 'nonsense'")
        assert given["block_size"] == 32
        self.answering = Answering(Path(folder), max_model_len)
        config = SimpleNamespace(max_model_len=max_model_len, dtype=f"torch.{dtype}")
        self.llm_engine = SimpleNamespace(model_config=config)
        self.calls: list[int] = []

    def get_tokenizer(self) -> Any:
        return self.answering.tokenizer

    def generate(self, prompts: Sequence[Any], params: Sequence[Any], use_tqdm: bool) -> list[Any]:
        self.calls.append(len(prompts))
        pairs = zip((prompt["prompt_token_ids"] for prompt in prompts), params, strict=True)
        return [self.answered(list(ids), how) for ids, how in pairs]

    def answered(self, ids: list[int], how: Any) -> Any:
        if len(ids) + how.max_tokens > self.answering.context:
            raise ClientError(f"This model's maximum context length is {self.answering.context}")
        steps = None
        if how.prompt_logprobs is not None:
            rated = zip(ids, self.answering.rated(ids), strict=True)
            steps = [value and {id: SimpleNamespace(logprob=value)} for id, value in rated]
        outputs = [self.text(ids, how, number) for number in range(how.n)]
        return SimpleNamespace(prompt_token_ids=ids, prompt_logprobs=steps, outputs=outputs)

    def text(self, ids: list[int], how: Any, number: int) -> Any:
        draw = None
        if how.temperature:
            draw = torch.Generator().manual_seed(how.seed + number)
        path, _, why = self.answering.written(ids, how.max_tokens, how.stop, draw)
        text = self.answering.text(ids, path) if how.detokenize else ""
        for word in how.stop:
            text = text.split(word)[0]
        told = None
        if how.logprobs is not None or how.logprob_token_ids:
            wanted = how.logprob_token_ids or ()
            told = [
                {id: SimpleNamespace(logprob=float(row[id])) for id in (path[n], top, *wanted)}
                for n, (top, _) in enumerate(self.answering.tops(ids, path))
                for row in [self.answering.table([*ids, *path[:n]])[-1]]
            ]
        return SimpleNamespace(text=text, token_ids=path, logprobs=told, finish_reason=why)


class SamplingParams:
    """How a text is written; a field that vLLM does not have is refused."""

    def __init__(
        self,
        *,
        temperature: float,
        max_tokens: int,
        detokenize: bool,
        n: int = 1,
        seed: int | None = None,
        stop: Sequence[str] = (),
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        logprob_token_ids: Sequence[int] | None = None,
        **even: float,
    ) -> None:
        assert even == {
            "top_p": 1,
            "top_k": 0,
            "min_p": 0,
            "repetition_penalty": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
        }
        self.temperature, self.max_tokens, self.detokenize = temperature, max_tokens, detokenize
        self.n, self.seed, self.stop, self.logprobs = n, seed, stop, logprobs
        self.prompt_logprobs, self.logprob_token_ids = prompt_logprobs, logprob_token_ids


def installed(patch: pytest.MonkeyPatch) -> None:
    """As if vLLM were installed, on a machine without a GPU."""
    library, platforms = ModuleType("vllm"), ModuleType("vllm.platforms")
    library.__spec__ = ModuleSpec("vllm", None)
    vars(library).update(LLM=Engine, SamplingParams=SamplingParams, __version__="0.32.0")
    platform = SimpleNamespace(is_cpu=lambda: True, device_type="cpu")
    vars(platforms).update(current_platform=platform)
    patch.setitem(sys.modules, "vllm", library)
    patch.setitem(sys.modules, "vllm.platforms", platforms)
