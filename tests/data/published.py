"""Read published results of in-context estimation: prompts with the probability of each option.

A file is one relation, one model and one seed: JSON with `base_prompts`, the options'
probabilities as they were scored and renormalised, `accuracy` and `prob_mass`. The names of the
options are not in it; the right one is the last. It is no dataset, so it is found by no name:
what reads it compares a reading with the published one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.core.errors import DataError
from sonde.prompting.sequences import Line

INSIDE, BETWEEN = " : ", " , "
FIELDS = ("base_prompts", "post_processed_outputs", "post_processed_outputs_normalized")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Scored items and what was published about them.

    `probabilities[i]` are those of the options of `prompts[i]`, not adding up to 1; in `normalised`
    they do. `gold` is the place of the right option in every item.
    """

    prompts: tuple[str, ...]
    probabilities: tuple[tuple[float, ...], ...]
    normalised: tuple[tuple[float, ...], ...]
    gold: int
    accuracy: float
    mass: float


def read_published(path: Path) -> Published:
    """The results in a file; refuses one of another form, saying what it lacks."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON file of published results; {error}") from None
    held = given if isinstance(given, dict) else {}
    lacking = [name for name in (*FIELDS, "accuracy", "prob_mass") if name not in held]
    if lacking:
        raise DataError(f"{path}: published results need the fields {', '.join(lacking)}")
    prompts, raw, normalised = (given[name] for name in FIELDS)
    options = _options(path, prompts, raw, normalised)
    return Published(
        prompts=tuple(prompts),
        probabilities=_rows(raw),
        normalised=_rows(normalised),
        gold=options - 1,
        accuracy=float(given["accuracy"]),
        mass=float(given["prob_mass"]),
    )


def examples(prompt: str) -> tuple[tuple[Line, ...], str]:
    """The examples of a published prompt and what follows them: its last object and its subject.

    Nothing separates the last example from the subject that is asked about.

    >>> examples("Peru : Lima , Chile : Santiago France : ")
    ((Line(fact='0', subject='Peru', object='Lima'),), 'Chile : Santiago France : ')
    """
    *shown, last = prompt.split(BETWEEN)
    pairs = [one.partition(INSIDE) for one in shown]
    lines = [Line(fact=str(i), subject=s, object=o) for i, (s, _, o) in enumerate(pairs)]
    return tuple(lines), last


def _options(path: Path, prompts: Any, *tables: Any) -> int:
    """How many options every item has."""
    sizes = {len(row) for table in tables for row in table}
    if any(len(table) != len(prompts) for table in tables) or len(sizes) != 1 or 0 in sizes:
        raise DataError(
            f"{path}: every prompt needs the probabilities of its options, as many in each; found "
            f"{len(prompts)} prompts and {sorted(sizes)} options"
        )
    return int(sizes.pop())


def _rows(table: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in table)
