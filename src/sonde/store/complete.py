"""What a run says once it is whole: how much it holds, and the digests of all that it rests on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from sonde.core.files import parsed
from sonde.core.shapes import fits

MANIFEST, DATASET = "manifest.json", "dataset/dataset.json"


def shard_name(number: int) -> str:
    """Where a shard stands in its run folder.

    >>> shard_name(7)
    'shards/00007.parquet'
    """
    return f"shards/{number:05d}.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Number of shards and prompts; `sealed` has the SHA-256 of each file that decides a number.

    Of the dataset that is its head alone, which has the hash of the rest. Runs that were made
    before there were seals have none.
    """

    shards: int
    prompts: int
    sealed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Complete:
        """Read it back; raises ValueError on anything else."""
        body = parsed(text)
        if not isinstance(body, dict):
            raise ValueError("it is no JSON object")
        for name in ("shards", "prompts"):
            if not fits(body.get(name), int) or body[name] < 1:
                raise ValueError(f"its {name!r} must be a number from 1 on, not {body.get(name)!r}")
        sealed = body.get("sealed", {})
        if not fits(sealed, dict[str, str]):
            raise ValueError("its 'sealed' must be digests of files")
        # compared by number first: a damaged one may be too large to name so many shards
        named = len(sealed) == body["shards"] + 2 and set(sealed) == set(names(body["shards"]))
        if sealed and not named:
            raise ValueError("its 'sealed' names other files than such a run has")
        return cls(shards=body["shards"], prompts=body["prompts"], sealed=sealed)


def names(shards: int) -> list[str]:
    """The files that a run of so many shards rests on."""
    return [MANIFEST, DATASET, *map(shard_name, range(shards))]
