"""Spread the weights of a model over devices that cannot hold them all, as accelerate does it.

Layers lie on GPUs, on the CPU or on disk, and inputs follow them; what is on the CPU or on disk is
fetched for every pass. Knows modules and devices; nothing of tokens.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from sonde.core.errors import UsageError
from sonde.models.options import MAPS, LoadOptions, memory_of, needs_extra, read_json

FETCHED = ("cpu", "disk")

# it says of weights on disk that they are not in memory
logging.getLogger("accelerate.big_modeling").setLevel(logging.ERROR)


def placement(options: LoadOptions) -> dict[str, Any]:
    """What transformers is told about where weights go; nothing where all go onto one device."""
    if not options.device_map:
        return {}
    needs_extra("hf", "--device-map", "accelerate")
    named = options.device_map in MAPS
    # where what stays on disk is written, if it is stored otherwise than it is held
    folder = tempfile.mkdtemp(prefix="sonde-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    told: dict[str, Any] = {
        "device_map": options.device_map if named else read_map(Path(options.device_map)),
        "offload_folder": folder,
    }
    if options.max_memory:
        told["max_memory"] = memory_of(options.max_memory)
    return told


@contextmanager
def placing(options: LoadOptions) -> Iterator[None]:
    """Say of a model that does not go where a map says that the map is at fault."""
    try:
        yield
    except (KeyError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else ""
        shared = isinstance(error, KeyError) or "meta device" in why
        if not options.device_map or not (shared or "device" in why):
            raise
        if shared:  # accelerate finds them nowhere
            why = f"two parts of the model share a weight, so put both on one device ({why})"
        raise UsageError(f"--device-map {options.device_map} cannot be followed: {why}") from error


def read_map(path: Path) -> dict[str, int | str]:
    """The device of each part of a model, as a file has it."""
    found = read_json(path, 'give a file such as {"model.embed_tokens": 0, "model.layers": "cpu"}')
    for part, device in found.items():
        gpu = isinstance(device, int) and not isinstance(device, bool) and device >= 0
        if not gpu and device not in FETCHED:
            raise UsageError(
                f"{path} puts {part!r} on {device!r}; a device is the number of a GPU, cpu or disk"
            )
        if gpu and device >= (count := torch.cuda.device_count()):
            raise UsageError(f"{path} puts {part!r} on GPU {device}, and there are {count} here")
    return found


def settle(model: Any) -> None:
    """Make a model that was spread take its inputs as one on a single device does."""
    hook = getattr(model, "_hf_hook", None)
    if hook is None:  # one device held all of it
        return
    model.requires_grad_(False)  # what is fetched for a pass cannot be trained
    if model.device.type == "meta":
        # transformers takes the place of the first weight, which is nowhere while nobody asks
        kind, own = type(model), {"device": computes_on(model), "__doc__": type(model).__doc__}
        model.__class__ = type(kind.__name__, (kind,), own)
    # the places whose logits are wanted are looked up where the last layer is, not the first
    skipped = hook.skip_keys or []
    skipped = [skipped] if isinstance(skipped, str) else skipped
    hook.skip_keys = [*skipped, "logits_to_keep"]


def computes_on(module: Any) -> torch.device:
    """The device on which a module computes; its weights may be elsewhere until then."""
    hook = getattr(module, "_hf_hook", None)
    place = getattr(hook, "execution_device", None)
    return next(module.parameters()).device if place is None else torch.device(place)


def is_spread(model: Any) -> bool:
    """Whether parts of a model compute, or are kept, in different places."""
    return hasattr(model, "_hf_hook")


def recordable(model: Any) -> bool:
    """Whether a pass may be recorded: one device computes it, from weights that stay there."""
    return not is_spread(model) and getattr(model, "hf_quantizer", None) is None


def is_fetched(model: Any) -> bool:
    """Whether some weights of a model are fetched for every pass."""
    return any(parameter.is_meta for parameter in model.parameters())


def places(model: Any) -> str:
    """Where the weights of a model are, the most first: "cuda:0 70%, the CPU 30%"."""
    shares: Counter[str] = Counter()
    spread: dict[str, Any] = getattr(model, "hf_device_map", {})
    for name, parameter in model.named_parameters():
        parts = [part for part in spread if f"{name}.".startswith(f"{part}." if part else "")]
        # weights that two parts share are named after one of them
        found = spread[max(parts, key=len)] if parts else parameter.device
        shares[_said(found)] += parameter.numel()
    whole = sum(shares.values())
    return ", ".join(f"{place} {count / whole:.0%}" for place, count in shares.most_common())


def _said(device: Any) -> str:
    name = f"cuda:{device}" if isinstance(device, int) else str(device)
    return {"cpu": "the CPU", "meta": "disk"}.get(name, name)


def each_weight(model: Any) -> Iterator[tuple[str, Any]]:
    """Every parameter with its name, fetched from where it is."""
    if not is_fetched(model):
        yield from model.named_parameters()
        return
    from accelerate.utils import align_module_device

    seen: set[int] = set()
    for prefix, module in model.named_modules():
        own = {name for name, p in module.named_parameters(recurse=False) if id(p) not in seen}
        seen |= {id(p) for p in module.parameters(recurse=False)}
        with align_module_device(module):
            for name, parameter in module.named_parameters(recurse=False):
                if name in own:
                    yield f"{prefix}.{name}".lstrip("."), parameter
