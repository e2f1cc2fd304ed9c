"""What an estimator says about each fact of a model, beside what is true of it; and as a file.

A file is a small JSON for each estimator, written whole, read back as it was. Knows facts, numbers
and files, nothing of how estimators work or of what is made of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.errors import StoreError
from sonde.lab.worlds.truth import Bools, Floats, Known, Trial, Truth, Verdicts
from sonde.store.files import explain_os_errors, take_lock, write_whole

Ints = NDArray[np.int64]
Words = NDArray[np.str_]

ANY = "at least one"
"""Stands for several estimators together: a fact is known if it is to one of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """One estimator on one model, with the truth about the facts it was asked; all by fact."""

    verdicts: Verdicts
    relation: Ints
    exposure: Ints
    guess: Words
    shown: Bools
    stored: Bools

    @cached_property
    def taught(self) -> Bools:
        """Which facts the text states at least once."""
        return np.asarray(self.exposure > 0)

    @cached_property
    def decided(self) -> Floats:
        """1 for each fact that is decided to be known, else 0."""
        return self.verdicts.decision.astype(np.float64)

    def true(self, truth: Truth) -> Bools:
        """Which facts are known by one of the two truths."""
        return self.taught if truth == "taught" else self.stored

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Where each fact stands."""
        return {fact: i for i, fact in enumerate(self.verdicts.facts)}

    def found(self, facts: Sequence[str]) -> Floats:
        """1 for each of some facts that was decided to be known, else 0."""
        return self.decided[[self.rows[fact] for fact in facts]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A trial, with every estimator's verdicts beside the truth, in their order."""

    trial: Trial
    asked: Mapping[str, Asked] = field(repr=False)


def model(trial: Trial, together: Sequence[str] = ()) -> Model:
    """Set every estimator's verdicts beside the truth; `ANY` of those that go together is added."""
    known = {one.taught.fact: one for one in trial.known}
    numbers: dict[str, int] = {}
    for one in trial.known:
        numbers.setdefault(one.taught.relation, len(numbers))
    some = [v for v in trial.verdicts if v.estimator in together]
    verdicts = [*trial.verdicts, *([_any(some)] if some else [])]
    return Model(
        trial=trial, asked={v.estimator: _beside(v, known, numbers, trial.model) for v in verdicts}
    )


def _beside(
    verdicts: Verdicts, known: Mapping[str, Known], numbers: Mapping[str, int], model: str
) -> Asked:
    if strange := next((fact for fact in verdicts.facts if fact not in known), None):
        raise ValueError(f"{verdicts.estimator} judges {strange!r}, no fact of {model}")
    own = [known[fact] for fact in verdicts.facts]
    return Asked(
        verdicts=verdicts,
        relation=np.array([numbers[one.taught.relation] for one in own], dtype=np.int64),
        exposure=np.array([one.taught.exposure for one in own], dtype=np.int64),
        guess=np.array([one.taught.guess for one in own], dtype=np.str_),
        shown=np.array([one.taught.shown for one in own], dtype=np.bool_),
        stored=np.array([one.stored for one in own], dtype=np.bool_),
    )


def _any(some: Sequence[Verdicts]) -> Verdicts:
    """What is known to at least one: the highest of every fact's scores, decisions and counts."""
    facts = tuple(dict.fromkeys(fact for v in some for fact in v.facts))
    rows = {fact: i for i, fact in enumerate(facts)}
    score, decision, counts = (np.zeros(len(facts)) for _ in range(3))
    for v in some:
        at = np.array([rows[fact] for fact in v.facts], dtype=np.int64)
        for total, own in ((score, v.score), (decision, v.decision), (counts, v.counts)):
            total[at] = np.maximum(total[at], own)
    return Verdicts(
        estimator=ANY,
        facts=facts,
        score=score,
        decision=decision > 0,
        counts=counts,
        chance=np.full(len(facts), np.nan),
        seconds=sum(v.seconds for v in some),
        prompts=sum(v.prompts for v in some),
    )


FORMAT = 1
COLUMNS = {"score": np.float64, "decision": np.bool_, "counts": np.float64, "chance": np.float64}
PLAIN = {"estimator": str, "seconds": float, "prompts": int, "learns": bool, "control": bool}


def save_verdicts(verdicts: Verdicts, path: Path) -> None:
    """Keep what an estimator says; the folder must be there."""
    values: dict[str, Any] = {"format": FORMAT}
    values.update({name: getattr(verdicts, name) for name in PLAIN})
    values["facts"] = list(verdicts.facts)
    values.update({name: getattr(verdicts, name).tolist() for name in COLUMNS})
    save_json(values, path)


def load_verdicts(path: Path) -> Verdicts | None:
    """What was kept; None where there is nothing yet, or a reason why there is nothing."""
    found = load_json(path)
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
    save_json({"format": FORMAT, "left_out": reason}, path)


def save_json(values: dict[str, Any], path: Path) -> None:
    """Write JSON so that it is there whole or not at all."""
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(values, ensure_ascii=False) + "\n").encode())


def load_json(path: Path) -> dict[str, Any] | None:
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
