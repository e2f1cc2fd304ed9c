"""What estimators say about the facts of a model, beside what is true of them; and as files.

Both are frames, a row for each fact. A file is a small JSON for each estimator, written whole, read
back as it was. Knows nothing of how estimators work or of what is made of what they say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars
from polars import DataFrame, col

from sonde.core.errors import StoreError
from sonde.lab.training.train import Kind
from sonde.store.files import explain_os_errors, take_lock, write_whole

ANY = "at least one"
"""Stands for several estimators together: a fact is known if it is to one of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdicts:
    """What one estimator says about the facts of one model.

    frame: the ids of the facts it was asked about (fact), and of each: score, in 0..1, how far it
    holds the fact to be known; decision, whether it says that it is; counts, what the fact adds to
    its estimate of the share known (the decision, or the score of an estimator that averages);
    chance, what `counts` would be on average for the objects of other facts of the relation, with
    the same answers. learns: it was trained on other facts, or counts them. control: it is no
    estimator but what one is held against, such as the same method on random weights.
    """

    estimator: str
    frame: DataFrame = field(repr=False)
    seconds: float
    prompts: int
    learns: bool = False
    control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One model of one world: both truths about its facts, and what every estimator says.

    step: training steps the model has behind it; `final` is the end of its training. facts: what
    `Taught` says of each, and whether it is `stored`: the model gives the object back in one of the
    texts that it was taught the fact in, which is never true of a fact that was not taught.
    """

    world: str
    model: str
    kind: Kind
    seed: int
    step: int
    final: bool
    facts: DataFrame = field(repr=False)
    verdicts: tuple[Verdicts, ...]

    def beside(self, verdicts: Verdicts) -> DataFrame:
        """What an estimator says, with the truth about its facts; relations are numbered."""
        numbers = polars.Enum(self.facts["relation"].unique(maintain_order=True))
        truth = self.facts.select(
            *("fact", "exposure", "guess", "shown", "stored"),
            col("relation").cast(numbers).to_physical().cast(polars.Int64),
            taught=col("exposure") > 0,
        )
        strange = verdicts.frame.join(truth, on="fact", how="anti")["fact"]
        if len(strange):
            raise ValueError(f"{verdicts.estimator} judges {strange[0]!r}, no fact of {self.model}")
        return verdicts.frame.join(truth, on="fact", how="left", maintain_order="left")

    def together(self, names: Sequence[str]) -> Trial:
        """The same with what `ANY` of some estimators says, where there is one."""
        some = [verdicts for verdicts in self.verdicts if verdicts.estimator in names]
        return replace(self, verdicts=(*self.verdicts, _any(some))) if some else self


def _any(some: Sequence[Verdicts]) -> Verdicts:
    """What is known to at least one: the highest of every fact's scores, decisions and counts."""
    every = polars.concat(verdicts.frame for verdicts in some)
    highest = every.group_by("fact", maintain_order=True).agg(
        col("score", "decision", "counts").max()
    )
    return Verdicts(
        estimator=ANY,
        frame=highest.with_columns(chance=polars.lit(None, polars.Float64)),
        seconds=sum(verdicts.seconds for verdicts in some),
        prompts=sum(verdicts.prompts for verdicts in some),
    )


FORMAT = 1
COLUMNS = {
    "score": polars.Float64,
    "decision": polars.Boolean,
    "counts": polars.Float64,
    "chance": polars.Float64,
}
PLAIN = {"estimator": str, "seconds": float, "prompts": int, "learns": bool, "control": bool}


def save_verdicts(verdicts: Verdicts, path: Path) -> None:
    """Keep what an estimator says; the folder must be there."""
    plain = {name: getattr(verdicts, name) for name in PLAIN}
    columns = verdicts.frame.select(col("fact").alias("facts"), *COLUMNS).to_dict(as_series=False)
    save_json({"format": FORMAT, **plain, **columns}, path)


def load_verdicts(path: Path) -> Verdicts | None:
    """What was kept; None where there is nothing yet, or a reason why there is nothing."""
    found = load_json(path)
    if found is None or "left_out" in found:
        return None
    try:
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}, not {FORMAT}")
        columns = {"fact": found["facts"], **{name: found[name] for name in COLUMNS}}
        plain: dict[str, Any] = {name: kind(found[name]) for name, kind in PLAIN.items()}
        frame = DataFrame(columns, schema={"fact": polars.String, **COLUMNS})
        return Verdicts(frame=frame, **plain)
    except (KeyError, TypeError, ValueError, polars.exceptions.PolarsError) as error:
        raise damaged(path, error) from None


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
