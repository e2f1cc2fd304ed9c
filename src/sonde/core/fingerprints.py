"""Short names for content, and draws that depend on a seed and a name alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path


def canonical(value: object) -> str:
    """JSON with sorted keys and no spare spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def fingerprint(parts: Iterable[str]) -> str:
    """Sixteen hex digits that name a sequence of texts.

    >>> fingerprint(["a", "b"]) == fingerprint(["ab"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:16]


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def draw_key(seed: int, name: str) -> int:
    """A number between 0 and 2**64 that depends only on the seed and the name."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big")


def draw_keys(seed: int, names: Iterable[str]) -> list[bytes]:
    """The same of several names, as bytes, which sort as the numbers do.

    >>> draw_keys(0, ["a"]) == [draw_key(0, "a").to_bytes(8, "big")]
    True
    """
    return [hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8] for name in names]
