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
from sonde.core.prompts import Prompt, Sample

Floats = NDArray[np.floating[Any]]


def draw_name(seed: int, *parts: str) -> bytes:
    """The name under which a prompt draws.

    >>> draw_name(0, "a", "b") == draw_name(0, "ab", "")
    False
    """
    return hashlib.sha256(canonical([seed, *parts]).encode()).digest()


def prompt_name(prompt: Prompt) -> bytes:
    """The name under which a prompt draws: its seed, what it is about, and its text."""
    assert isinstance(prompt.want, Sample)
    key = prompt.key
    about = (key.fact, key.relation, key.template, key.subject, "samples")
    return draw_name(prompt.want.seed, *about, *map(str, prompt.own.values()), prompt.prefix)


def uniforms(name: bytes, path: Sequence[int], count: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) that depend on the name and on the tokens since the prompt alone."""
    digest = hashlib.sha256(name + np.asarray(path, dtype="<i8").tobytes()).digest()
    key = int.from_bytes(digest[:16], "big")
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def many_uniforms(
    names: Sequence[bytes], paths: Sequence[bytes], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The `uniforms` of many places, laid end to end; paths are the bytes of their tokens."""
    digests = [
        hashlib.sha256(name + path).digest()[:16] for name, path in zip(names, paths, strict=True)
    ]
    keys = np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2).astype(np.uint64)
    blocks = -(-counts // 4)
    places = np.repeat(np.arange(len(counts)), blocks)
    numbers = np.arange(len(places)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    words = philox(keys[places, ::-1], (numbers + 1).astype(np.uint64))
    wanted = 4 * numbers[:, None] + np.arange(4)[None] < counts[places, None]
    return np.asarray((words[wanted] >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))


def philox(keys: NDArray[np.uint64], counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Philox 4x64 of ten rounds, for many keys [n, 2] at once: [n, 4] words each for a counter.

    They are the words that `numpy.random.Philox(key=...)` gives when it has counted so far.
    """
    one, two = keys[:, 0].copy(), keys[:, 1].copy()
    a, b, c, d = counters, *(np.zeros_like(counters) for _ in range(3))
    for _ in range(10):
        high, low = _product(a, MULTIPLIERS[0])
        other_high, other_low = _product(c, MULTIPLIERS[1])
        a, b, c, d = other_high ^ b ^ one, other_low, high ^ d ^ two, low
        one += STEPS[0]
        two += STEPS[1]
    return np.stack([a, b, c, d], axis=1)


def _product(words: NDArray[np.uint64], factor: int) -> tuple[Any, Any]:
    """The upper and the lower 64 bits of words times a factor."""
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    above, below = np.uint64(factor >> 32), np.uint64(factor & (2**32 - 1))
    upper, lower = words >> half, words & mask
    middle = upper * below + (lower * below >> half)
    crossed = lower * above + (middle & mask)
    return upper * above + (middle >> half) + (crossed >> half), words * np.uint64(factor)


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
