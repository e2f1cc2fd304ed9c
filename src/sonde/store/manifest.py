"""What a run says of itself: the manifest, everything that decides its answers; once it is whole,
how much it holds and the digests of all that it rests on; the digest of every shard while they are
written; how long each session took."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sonde.core.abilities import deciding
from sonde.core.components import fits
from sonde.core.costs import Batches
from sonde.core.errors import RunMismatch, StoreError
from sonde.core.facts import Selection
from sonde.core.files import add_line, parsed, write_whole
from sonde.core.fingerprints import canonical, fingerprint

FORMAT = 2
SHAPE: dict[str, Any] = {
    "dataset": {"name": str, "fingerprint": str, "notes": dict[str, int]},
    "selection": Selection,
    "probe": {"name": str, "settings": dict[str, Any], "reading": dict[str, Any]},
    "model": {"name": str, "weights": str, "details": dict[str, Any]},
    "shard_weight": int,
    "surroundings": dict[str, Any],
}
"""What must be there to read a run, with its types; settings are checked by their probe."""

OPTIONAL = ("batches", "certificate")
"""What runs of older versions have not, nor models that need none."""

LIBRARIES = ("sonde", "torch", "transformers", "tokenizers", "numpy", "pyarrow")

# a checkout may have come with settings of its own, and `git status` runs what these name
QUIET = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
PROGRAMS = r"^(filter|remote)\..*\.(clean|process|promisor)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A run's settings. `decides` must be equal for two runs to share a folder."""

    dataset: Mapping[str, Any]
    selection: Mapping[str, Any]
    probe: Mapping[str, Any]
    model: Mapping[str, Any]
    shard_weight: int
    surroundings: Mapping[str, Any] = field(default_factory=dict)
    batches: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] = field(default_factory=dict)

    @property
    def decides(self) -> dict[str, Any]:
        """What decides the answers."""
        dataset = {k: self.dataset[k] for k in ("name", "fingerprint")}
        return {
            "dataset": dataset,
            "selection": dict(self.selection),
            "probe": {k: v for k, v in self.probe.items() if k != "reading"},
            "model": deciding(self.model),
            "shard_weight": self.shard_weight,
        }

    @property
    def fingerprint(self) -> str:
        """A short name for the run."""
        return fingerprint([canonical(_plain(self.decides))])

    def to_json(self) -> str:
        """The manifest as it is written."""
        body = {"format": FORMAT, "fingerprint": self.fingerprint, **asdict(self)}
        for name in OPTIONAL:
            if not body[name]:
                del body[name]
        return json.dumps(_plain(body), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read one back; raises ValueError on anything else."""
        body = parsed(text)
        if not isinstance(body, dict) or "format" not in body:
            raise ValueError("it has no 'format'")
        if body["format"] != FORMAT:
            other = "made by sonde 0.1" if body["format"] == 1 else "of another version"
            raise ValueError(
                f"it has run format {body['format']}, {other}, and this version reads and writes "
                f"{FORMAT}: read it with that version, or ask again"
            )
        for name, kind in SHAPE.items():
            _check(body, name, kind)
        for name in OPTIONAL:
            body.setdefault(name, {})
        _check_batches(body)
        _check(body, "certificate", dict[str, str])
        found = cls(**{field.name: body[field.name] for field in fields(cls)})
        if body.get("fingerprint") != found.fingerprint:
            raise ValueError("its content is not what its fingerprint names")
        return found


def _check(body: Mapping[str, Any], name: str, kind: Any) -> None:
    """Raise ValueError unless a value is there, and of its type."""
    if name not in body:
        raise ValueError(f"it has no {name!r}")
    if isinstance(kind, dict):
        _check(body, name, dict[str, Any])
        for inner, each in kind.items():
            _check(body[name], inner, each)
    elif not fits(body[name], kind):
        raise ValueError(f"its {name!r} cannot be {body[name]!r:.80}")


def _check_batches(body: Mapping[str, Any]) -> None:
    """Raise ValueError unless batches, where there are any, are of at least one."""
    _check(body, "batches", Batches)
    found = Batches(**body["batches"])
    if min([found.shards, *found.tokens.values(), *found.halved.values()]) < 1:
        raise ValueError(f"its 'batches' cannot be {body['batches']!r:.80}")


def differences(found: Manifest, asked: Manifest) -> list[str]:
    """What differs between two runs, one line each."""
    lines: list[str] = []
    _compare("", _plain(found.decides), _plain(asked.decides), lines)
    return lines


def mismatch(path: Path, unlike: Sequence[str]) -> RunMismatch:
    """Says in what the run of a folder differs from the one asked for."""
    return RunMismatch(
        f"{path} holds a different run:\n  "
        + "\n  ".join(unlike)
        + "\ngive another folder with -o, or the settings of the run that is there"
    )


def _compare(path: str, found: Any, asked: Any, lines: list[str]) -> None:
    if isinstance(found, dict) and isinstance(asked, dict):
        for key in sorted({*found, *asked}):
            _compare(f"{path}.{key}".lstrip("."), found.get(key), asked.get(key), lines)
    elif found != asked:
        lines.append(f"{path}: {found!r} in the folder, {asked!r} asked for")


def surroundings() -> dict[str, Any]:
    """Versions, machine and the state of the git checkout one stands in, for the record."""
    return {
        "versions": versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git": _git(),
    }


def versions() -> dict[str, str]:
    """The versions of the libraries that can change an answer."""
    return {name: _version(name) for name in LIBRARIES}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _git() -> dict[str, Any]:
    def ask(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return {}
    programs = ask("config", "--includes", "--show-scope", "--get-regexp", PROGRAMS) or ""
    if any(line.startswith(("local", "worktree")) for line in programs.splitlines()):
        return {"commit": commit}  # finding out would run them
    status = ask(*QUIET, "status", "--porcelain", "--ignore-submodules=dirty")
    return {"commit": commit, "changed": bool(status)}


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON gives them back."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


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


FIELDS: dict[str, Any] = {
    "began": int | float,
    "seconds": int | float,
    "prompts": int,
    "model": dict[str, str | int | float | bool | None],
    "versions": dict[str, str],
    "batches": dict[str, int],
    "workers": int,
}
LONGEST = 2**40  # seconds


def read_timings(path: Path) -> list[dict[str, Any]]:
    """The sessions; a line that is none, cut off by a kill or damaged, is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; remove it") from None
    return [entry for line in lines if (entry := _session(line)) is not None]


def _session(line: str) -> dict[str, Any] | None:
    try:
        found = parsed(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or "seconds" not in found:
        return None
    entry = {name: found[name] for name in FIELDS if name in found}
    sound = all(fits(value, FIELDS[name]) for name, value in entry.items())
    return entry if sound and 0 <= entry["seconds"] < LONGEST else None


class Digests:
    """The SHA-256 of every shard, a line each; `sha256sum -c shards.sha256` reads it too.

    A shard's line is written before the shard, so that no shard stands without one. What a
    finished run is held against stands in its complete.json.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, shard: Path, data: bytes | memoryview) -> str:
        """Note the digest of a shard that is about to be written; the last line counts."""
        digest = hashlib.sha256(data).hexdigest()
        add_line(self.path, self._line(shard, digest))
        return digest

    def settle(self, digests: Mapping[Path, str]) -> None:
        """Let there be these lines and no others."""
        data = "".join(f"{self._line(*pair)}\n" for pair in digests.items()).encode()
        if not self.path.is_file() or self.path.read_bytes() != data:
            write_whole(self.path, data)

    def read(self) -> dict[Path, str]:
        """The digest of each shard."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}; remove it") from None
        pairs = (line.split("  ", 1) for line in text.splitlines())
        return {self.path.parent / pair[1]: pair[0] for pair in pairs if len(pair) == 2}

    def _line(self, shard: Path, digest: str) -> str:
        return f"{digest}  {shard.relative_to(self.path.parent).as_posix()}"
