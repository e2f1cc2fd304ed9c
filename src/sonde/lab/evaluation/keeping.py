"""Verdicts as files: a small JSON for each estimator, written whole, read back as it was.

Knows numbers and files, nothing of estimators.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sonde.core.errors import StoreError
from sonde.lab.worlds.truth import Verdicts
from sonde.store.files import explain_os_errors, take_lock, write_whole

FORMAT = 1
COLUMNS = {"score": np.float64, "decision": np.bool_, "counts": np.float64, "chance": np.float64}
PLAIN = {"estimator": str, "seconds": float, "prompts": int, "learns": bool, "control": bool}


def save_verdicts(verdicts: Verdicts, path: Path) -> None:
    """Keep what an estimator says; the folder must be there."""
    values: dict[str, Any] = {"format": FORMAT}
    values.update({name: getattr(verdicts, name) for name in PLAIN})
    values["facts"] = list(verdicts.facts)
    values.update({name: getattr(verdicts, name).tolist() for name in COLUMNS})
    save(values, path)


def load_verdicts(path: Path) -> Verdicts | None:
    """What was kept; None where there is nothing yet, or a reason why there is nothing."""
    found = load(path)
    if found is None or "left_out" in found:
        return None
    try:
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}, not {FORMAT}")
        columns: dict[str, Any] = {n: np.array(found[n], dtype=d) for n, d in COLUMNS.items()}
        plain: dict[str, Any] = {name: kind(found[name]) for name, kind in PLAIN.items()}
        return Verdicts(facts=tuple(found["facts"]), **plain, **columns)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, error) from None


def save_reason(reason: str, path: Path) -> None:
    """Keep why an estimator says nothing."""
    save({"format": FORMAT, "left_out": reason}, path)


def save(values: dict[str, Any], path: Path) -> None:
    """Write JSON so that it is there whole or not at all."""
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(values, ensure_ascii=False) + "\n").encode())


def load(path: Path) -> dict[str, Any] | None:
    """Read JSON back; None where there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise damaged(path, error) from None
    if not isinstance(found, dict):
        raise damaged(path, ValueError("it holds no object"))
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While no other process writes its report: several may share a folder."""
    with explain_os_errors(folder):
        lock = take_lock(folder / ".lock")
    with lock:
        yield


def damaged(path: Path, error: Exception) -> StoreError:
    """What to say of a file that does not read back."""
    return StoreError(f"{path} does not read back ({error}); delete it, and it is made again")
