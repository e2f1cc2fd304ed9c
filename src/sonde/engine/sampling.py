"""Draw many continuations at once by splitting counts. Knows arrays and token ids, no model.

Where n continuations begin alike, n uniform numbers say which token each takes next, and the counts
per token go on from there: each distinct continuation is computed once, and what comes out is
distributed exactly as n independent draws. The uniforms of a place are named by the seed, the
prompt and the tokens that lead there, so no draw depends on batches, order or other prompts.

One caveat: where the model's own rounding differs, as between two devices or batch sizes, the
borders between tokens move, and uniforms that lie among tokens rarer than that fall on others. In
float32 these are a few in a thousand; in half precision draws go another way (decisions/041).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.fingerprints import canonical

Floats = NDArray[np.floating[Any]]


def draw_name(seed: int, *parts: str) -> bytes:
    """The name under which a prompt draws.

    >>> draw_name(0, "a", "b") == draw_name(0, "ab", "")
    False
    """
    return hashlib.sha256(canonical([seed, *parts]).encode()).digest()


def uniforms(name: bytes, path: Sequence[int], count: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) that depend on the name and on the tokens since the prompt alone."""
    digest = hashlib.sha256(name + np.asarray(path, dtype="<i8").tobytes()).digest()
    key = int.from_bytes(digest[:16], "big")
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def cumulative(weights: Floats) -> NDArray[np.float64]:
    """Running sum of weights per token, in double precision because there are many small ones."""
    return np.cumsum(weights, dtype=np.float64)


def split(running: NDArray[np.float64], draws: NDArray[np.float64]) -> dict[int, int]:
    """How many of the draws take each token; tokens that none takes are left out.

    >>> split(cumulative(np.array([0.5, 0.0, 0.5])), np.array([0.1, 0.5, 0.9]))
    {0: 1, 2: 2}
    """
    total = running[-1]
    # the last token that has any weight, lest rounding lead past it
    last = np.searchsorted(running, total, side="left")
    tokens = np.minimum(np.searchsorted(running, draws * total, side="right"), last)
    return tally(tokens)


def tally(tokens: NDArray[np.integer[Any]]) -> dict[int, int]:
    """How often each token occurs, by token."""
    found, counts = np.unique(tokens, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
