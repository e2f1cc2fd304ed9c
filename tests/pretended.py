"""Devices that are pretended: tensors of the CPU that refuse to meet those of another device.

So a model can be spread over two devices, with real numbers, on a machine that has one. Run as a
program, for what it registers cannot be taken back.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

if __name__ == "__main__":
    # in inference mode torch asks such tensors for more than they have
    setattr(torch, "inference_mode", torch.no_grad)  # noqa: B010

from accelerate.hooks import attach_align_device_hook_on_blocks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from sonde.core.columns import one_by_one
from sonde.core.prompts import Generate, Sample
from sonde.models.options import LoadOptions, read_config
from sonde.models.torch.causal import shared_prefix
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.causal.rows import why_not_rows
from sonde.models.torch.loading.spread import settle
from sonde.models.torch.loading.weights import kind_of, load_folder
from sonde.models.torch.masked import answers
from sonde.models.torch.masked.model import MaskedModel
from sonde.models.torch.seq2seq import Seq2SeqModel
from sonde.optimise import losses
from sonde.optimise.making import Job, Order, tasks
from sonde.optimise.optiprompt import OptiPrompt
from sonde.optimise.optiprompt import vectors as soft
from sonde.optimise.training import with_soft_prompts
from tests.optimise.world import dataset
from tests.tiny import CITIES, fill, score, trace

TEXTS = (
    "The capital of France is",
    "Marie Curie was born in",
    "The capital of France is Paris, and that of Norway is",
)
KINDS: dict[str, Any] = {
    "causal": CausalModel,
    "masked": MaskedModel,
    "seq2seq": Seq2SeqModel,
}
NAME = "pretended"
INDEXING = {"index", "index_put_", "index_put", "_index_put_impl_"}  # an index may be on the CPU


class Placed(torch.Tensor):
    """A tensor that says it is elsewhere."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor, device: torch.device) -> Placed:
        made: Placed = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=device,
        )
        made.held = inner
        return made

    def tolist(self) -> Any:
        """Its numbers, which torch itself does not give of such a tensor."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return run(func, args, kwargs or {})


class Pretending(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What is made on a pretended device says so."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute on the CPU; the result is where its arguments are, which must be one place."""
    name = func._schema.name.removeprefix("aten::")
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    named = [argument.name for argument in func._schema.arguments]
    kwargs = {**dict(zip(named, args, strict=False)), **kwargs}
    wanted = kwargs.get("device")
    moves = name in ("to", "_to_copy", "copy_")
    if name in INDEXING:
        tensors = tensors[:1]
    homes = {x.device for x in tensors if x.dim() or x.device.type == NAME}
    if len(homes) > 1 and not moves:
        raise RuntimeError(f"{name} got tensors on {sorted(map(str, homes))}")
    home = tensors[0].device if moves and tensors else next(iter(homes), torch.device("cpu"))
    place = home if wanted is None else torch.device(wanted)
    inside = tree_map(lambda x: x.held if isinstance(x, Placed) else x, kwargs)
    if wanted is not None:
        inside["device"] = torch.device("cpu")
    found = func(**inside)
    if name.endswith("_") and args and isinstance(args[0], Placed):
        return args[0]
    if place.type != NAME:
        return found
    return tree_map(lambda x: Placed(x, place) if isinstance(x, torch.Tensor) else x, found)


def pretend() -> None:
    """Make the devices pretended:0, pretended:1 … known to torch."""
    _setup_privateuseone_for_python_backend(NAME)
    made = torch.tensor

    def tensor(values: Any, device: Any = None, **more: Any) -> Any:
        plain = made(values, **more)
        return plain if device is None else plain.to(device)

    # its C++ fills memory that is not there
    setattr(torch, "tensor", tensor)  # noqa: B010


def spread(model: Any) -> None:
    """Put the second of every two layers, and what comes after all of them, on another device."""
    devices = {}
    for part in parts(model):
        last = part.rsplit(".", 1)[-1]
        devices[part] = f"{NAME}:{int((last.isdigit() and int(last) % 2) or 'norm' in last)}"
    for part, device in {"": f"{NAME}:0", **devices}.items():
        own = model.get_submodule(part).modules() if part else [model]
        for module in own:
            for table in (module._parameters, module._buffers):
                for name, tensor in list(table.items()):
                    if tensor is not None:
                        table[name] = torch.nn.Parameter(tensor.detach().to(device), False)
    attach_align_device_hook_on_blocks(
        model,
        execution_device={**devices, "": f"{NAME}:0"},
        offload=dict.fromkeys(devices, False),
        skip_keys=model._skip_keys_device_placement,
    )
    settle(model)


def parts(model: Any, name: str = "") -> list[str]:
    """The parts of a model that go onto a device: layers, and what stands beside lists of them."""
    module = model.get_submodule(name)
    lists = any(isinstance(each, torch.nn.ModuleList) for each in module.modules())
    if not lists or name.rsplit(".", 1)[-1].isdigit():
        return [name]
    children = [f"{name}.{child}".lstrip(".") for child, _ in module.named_children()]
    return [part for child in children for part in parts(model, child)]


def main(folder: Path) -> None:
    """Say what every model in a folder answers when it is spread over two devices."""
    loaded = {
        path.name: load_folder(path.name, path, LoadOptions(device="cpu"), weights=path.name)
        for path in sorted(folder.iterdir())
    }
    pretend()
    shared_prefix._fits = lambda queries: False  # kernels know no such device
    for module, name in ((answers, "SPARE"), (losses, "ENOUGH"), (soft, "TOKENS")):
        known: dict[str, Any] = getattr(module, name)
        setattr(module, name, {**known, NAME: known["cpu"]})
    found = {}
    with Pretending():  # type: ignore[no-untyped-call]
        for kind, own in loaded.items():
            spread(own.model)
            model = KINDS[kind_of(read_config(folder / kind))](own)
            found[kind] = {"scoring": model.identity.details["scoring"], **asked(model)}
    print(json.dumps(found))


def asked(model: Any) -> dict[str, Any]:
    """What a model answers in all the ways it can, as plain numbers and texts."""
    if hasattr(model, "fill"):
        prompts = [score(text, CITIES, ".") for text in TEXTS]
        fills = [fill(f"{text} ", ".", watched=CITIES) for text in TEXTS]
        answered = {"score": plain(model.score(prompts)), "fill": plain(model.fill(fills))}
        return {**answered, "soft": softened(model)}
    found = written(model)
    if hasattr(model, "trace"):
        found["soft"] = softened(model)
        found["trace"] = plain(model.trace([trace(text, (4, len(text))) for text in TEXTS]))
    if getattr(model, "tree", False) and not why_not_rows(model.model):
        model.rows = True  # the way of GPUs
        found["rows"] = written(model)
        model.rows = False
    return found


def written(model: Any) -> dict[str, Any]:
    """Options that are scored, and texts that are written and drawn."""
    prompts = [score(text, tuple(f" {city}" for city in CITIES)) for text in TEXTS]
    return {
        "score": plain(model.score(prompts)),
        "generate": plain(model.generate([replace(p, want=Generate(most=6)) for p in prompts])),
        "sample": plain(model.sample([replace(p, want=Sample(count=9, most=4)) for p in prompts])),
    }


def softened(model: Any) -> list[list[float]]:
    """Share right and loss of facts that are asked with vectors, as these are trained."""
    data, method, found = dataset(), OptiPrompt(), []
    job = Job(
        model=model,
        tasks=tasks(data, data.relations, Order()),
        vocabulary=None,
        folder=Path(),
        seed=0,
        tick=lambda *_: None,
    )

    def train(model: Any, embedding: Any, drafts: Any) -> Any:
        found.extend(soft.Vectors(method, job, model, embedding, drafts).scores([0, 1]))
        return iter(())

    prompts: Any = [soft.prompt_of(method, model, task, 0) for task in job.tasks]
    list(with_soft_prompts(job, method.name, prompts, train))
    return [list(map(float, each)) for each in found]  # type: ignore[arg-type]


def plain(answers: Any) -> list[Any]:
    """Answers in the order of their prompts, as JSON has them."""
    ordered = sorted(one_by_one(answers), key=lambda pair: pair[0])
    return json.loads(json.dumps([asdict(answer) for _, answer in ordered]))  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
