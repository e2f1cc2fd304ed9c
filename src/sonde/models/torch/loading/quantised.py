"""Weights in fewer bits, as config.json names them: by which method, and what that needs.

transformers opens them; here only what a user is told about them. Imports none of the packages.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

from sonde.core.errors import MissingExtra, UsageError
from sonde.models.torch.loading.weight_files import settings

PACKAGES = {
    "bitsandbytes": ("bitsandbytes", "accelerate"),
    "gptq": ("gptqmodel", "optimum"),
    "awq": ("gptqmodel", "accelerate"),
    "compressed-tensors": ("compressed_tensors",),
    "torchao": ("torchao",),
    "fp8": ("accelerate",),
    "hqq": ("hqq",),
    "quanto": ("optimum.quanto",),
    "aqlm": ("aqlm", "accelerate"),
}
"""What transformers needs to open weights of a method; of others it says so itself."""

BITS = ("bits", "num_bits", "w_bit", "nbits")

# it says before every product that inputs are rounded
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)


def quantisation(config: dict[str, Any]) -> str:
    """How the weights of a config are quantised: "bitsandbytes, 4 bits"; empty if they are not."""
    found = config.get("quantization_config")
    if not isinstance(found, dict):
        return ""
    bits = bits_of(found)
    return f"{method_of(found)}, {bits} bits" if bits else method_of(found)


def method_of(found: dict[str, Any]) -> str:
    """The name of the method; bitsandbytes once wrote none."""
    old = any(found.get(name) for name in ("load_in_4bit", "load_in_8bit"))
    return str(found.get("quant_method") or ("bitsandbytes" if old else "unknown method"))


def bits_of(found: dict[str, Any]) -> int | None:
    """How many bits a weight has, where that is said."""
    for bits in (4, 8):
        if found.get(f"load_in_{bits}bit"):
            return bits
    if method_of(found) in ("fp8", "fbgemm_fp8"):
        return 8
    said = [v for k, v in settings(found) if k in BITS and type(v) is int]
    return min(said, default=None)


def refuse_unopened(name: str, config: dict[str, Any], dtype: str) -> None:
    """Refuse quantised weights where what opens them is missing, or a dtype that none have."""
    quantised = quantisation(config)
    if not quantised:
        return
    method = method_of(config["quantization_config"])
    missing = [p for p in PACKAGES.get(method, ()) if find_spec(p.split(".")[0]) is None]
    if missing:
        packages = " ".join(p.split(".")[0].replace("_", "-") for p in missing)
        raise MissingExtra(
            f"{name} has quantised weights ({quantised}), which transformers opens with "
            f"{' and '.join(missing)}; run: pip install {packages}"
        )
    if dtype == "float64":
        raise UsageError(
            f"{name} has quantised weights ({quantised}), which no dtype makes more exact; leave "
            "out --dtype float64"
        )
