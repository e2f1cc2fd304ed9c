"""vLLM in this process, spoken with as its server is: the same requests, replies of the same form.

So the same dialect writes the ones and checks the others. The only file that imports vLLM.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sonde.core.errors import ModelError, ServerError
from sonde.core.fingerprints import fingerprint
from sonde.models.options import LoadOptions, read_config
from sonde.models.served.dialect import Malformed, Request, Setting
from sonde.models.served.model import Served, served_model
from sonde.models.served.tokens import read_tokens
from sonde.models.served.transport import Read, Split, Untaken
from sonde.models.served.trials import about, tried
from sonde.models.served.vllm import Vllm
from sonde.models.torch.loading.weight_files import remembered_hash, weight_files
from sonde.models.torch.loading.weights import resolve

log = logging.getLogger("sonde")

T = TypeVar("T")

TOGETHER = 16
"""Requests that go into the engine at once, each of several prompts."""

SURROUNDINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Set before vLLM is imported, unless the user has: in this process, quiet, telling nobody."""

CPU_BLOCK = 32
"""Tokens that the prefix cache holds together on a CPU: as few as it can, where 128 is usual."""

ROOM = ("gpu_memory_utilization", "kv_cache_memory_bytes", "max_model_len", "swap_space")
"""Settings that say how much is held, and leave numbers as they are."""

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "max_tokens",
    "n",
    "seed",
    "stop",
    "prompt_logprobs",
    "logprob_token_ids",
)
"""Fields of a request that an engine takes as they are."""


class EngineTransport:
    """Carries requests to an engine; `name` is the model's, as a server would list it."""

    def __init__(self, engine: Any, name: str) -> None:
        self.engine, self.name = engine, name

    @property
    def config(self) -> Any:
        """What vLLM says of the model."""
        return self.engine.llm_engine.model_config

    @property
    def device(self) -> str:
        """What it runs on."""
        from vllm.platforms import current_platform

        return str(current_platform.device_type)

    def look(self, path: str) -> Any:
        """What a server would say under a path."""
        import vllm

        length = int(self.config.max_model_len)
        return {
            "/version": {"version": vllm.__version__},
            "/v1/models": {"data": [{"id": self.name, "max_model_len": length}]},
        }.get(path)

    def send(
        self, requests: Iterable[Request], read: Read[T], split: Split
    ) -> Iterator[tuple[Request, T]]:
        """Each request with what is read of its reply, many of them in the engine at once."""
        every = iter(requests)
        while some := list(islice(every, TOGETHER)):
            for request, reply in self._answered(some, split):
                try:
                    yield request, read(request, reply)
                except Malformed as error:
                    raise ServerError(f"vLLM gives what cannot be taken: {error}") from None

    def _answered(self, requests: Sequence[Request], split: Split) -> Iterator[tuple[Request, Any]]:
        """Requests with their replies; what is refused goes in parts, to name the one."""
        try:
            yield from zip(requests, self._replies(requests), strict=True)
        except Exception as error:  # vLLM raises errors of its own over what it does not take
            parts = requests if len(requests) > 1 else split(requests[0])
            if not parts:
                raise Untaken(f"vLLM refuses a prompt: {_first_line(error)}", requests[0]) from None
            for part in parts:
                yield from self._answered([part], split)

    def _replies(self, requests: Sequence[Request]) -> list[Any]:
        spelled = [request for request in requests if request.path == "/detokenize"]
        if spelled:
            decode = self.engine.get_tokenizer().decode
            return [{"prompt": decode(request.body["tokens"])} for request in spelled]
        prompts, params = [], []
        for request in requests:
            own = request.body["prompt"]
            prompts += [{"prompt_token_ids": ids} for ids in own]
            params += [sampling(request.body)] * len(own)
        done = iter(self.engine.generate(prompts, params, use_tqdm=False))
        return [reply(list(islice(done, len(r.body["prompt"])))) for r in requests]


def open_vllm(
    name: str, reference: str, options: LoadOptions, settings: Mapping[str, Any]
) -> Served:
    """A model in vLLM's engine, found able to do what it can as one behind a server is.

    `settings` are vLLM's own, such as tensor_parallel_size.
    """
    folder = resolve(reference, options)
    config = read_config(folder)
    tokens = read_tokens(str(folder), options, name)
    transport = EngineTransport(start(name, folder, options, settings), reference)
    trial = tried(Vllm(Setting(model=reference, pieces=tokens.pieces)), transport, tokens)
    if not trial.can:
        raise ModelError(f"{name} cannot be used: {next(iter(trial.why.values()))}")
    files = [folder / "config.json", *weight_files(folder, config)]
    found = replace(
        trial.found(reference),
        name=name,
        about=about(trial.dialect, transport),
        architecture=architecture(config, settings),
        weights=fingerprint(map(remembered_hash, files)),
        dtype=str(transport.config.dtype).removeprefix("torch."),
        notes={**trial.notes, "device": transport.device},
    )
    model = served_model(found, trial.dialect, transport, tokens)
    for ability, why in model.lacks().items():
        log.warning("%s cannot %s: %s", name, ability, why)
    return model


def architecture(config: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """What computes, with the settings that may change its numbers: a run keeps to them.

    >>> architecture({"architectures": ["GPT2LMHeadModel"]}, {"kv_cache_dtype": "fp8"})
    'GPT2LMHeadModel (vLLM, kv_cache_dtype="fp8")'
    """
    kept = sorted(item for item in settings.items() if item[0] not in ROOM)
    told = ["vLLM", *(f"{name}={json.dumps(value)}" for name, value in kept)]
    return f"{', '.join(config.get('architectures') or ['unnamed'])} ({', '.join(told)})"


def start(name: str, folder: Path, options: LoadOptions, settings: Mapping[str, Any]) -> Any:
    """vLLM's engine on a folder, in float32 on a CPU unless another dtype is asked for."""
    for key, value in SURROUNDINGS.items():
        os.environ.setdefault(key, value)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")
    from vllm import LLM
    from vllm.platforms import current_platform

    on_cpu = current_platform.is_cpu()
    usual: dict[str, Any] = {"enable_prefix_caching": True, "use_tqdm_on_load": False}
    usual |= {"block_size": CPU_BLOCK} if on_cpu else {}
    dtype = "float32" if on_cpu and options.dtype == "auto" else options.dtype
    try:
        return LLM(
            str(folder),
            dtype=dtype,
            trust_remote_code=options.trust_remote_code,
            **(usual | dict(settings)),
        )
    except Exception as error:  # vLLM raises whatever its parts do
        raise ModelError(f"vLLM cannot load {name}: {_first_line(error)}") from error


def sampling(body: Mapping[str, Any]) -> Any:
    """A request's fields as an engine takes them; texts are put together only where they end."""
    from vllm import SamplingParams

    fields = {key: body[key] for key in SAMPLING if key in body}
    if "logprob_token_ids" not in body:  # which say by themselves how many are told
        fields["logprobs"] = body.get("logprobs")
    return SamplingParams(**fields, detokenize="stop" in body)


def reply(done: Sequence[Any]) -> dict[str, Any]:
    """What an engine gave for the prompts of a request, in the form of a server's reply."""
    choices = [_choice(prompt, text) for prompt in done for text in prompt.outputs]
    return {"choices": [{"index": i, **choice} for i, choice in enumerate(choices)]}


def _choice(prompt: Any, text: Any) -> dict[str, Any]:
    steps = text.logprobs or ()
    pairs = list(zip(steps, text.token_ids, strict=False))
    return {
        "text": text.text,
        "finish_reason": text.finish_reason,
        "token_ids": list(text.token_ids),
        "prompt_token_ids": list(prompt.prompt_token_ids),
        "prompt_logprobs": [_told(step) for step in prompt.prompt_logprobs or ()],
        "logprobs": {
            "tokens": [f"token_id:{id}" for _, id in pairs],
            "token_logprobs": [step[id].logprob for step, id in pairs],
            "top_logprobs": [
                {f"token_id:{id}": told.logprob for id, told in step.items()} for step in steps
            ],
        },
    }


def _told(step: Any) -> Any:
    return step and {str(id): {"logprob": told.logprob} for id, told in step.items()}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
