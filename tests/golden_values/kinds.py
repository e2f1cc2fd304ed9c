"""The kinds of golden cases: runs, what is read from them, and what commands say beside them.

Each makes a document of plain data in a workshop. Knows nothing of which cases there are.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars
import pyarrow

import sonde
from sonde.compare.conditions import conditions, open_runs
from sonde.compare.learned import with_learning
from sonde.evaluation.estimate import estimate
from sonde.reports.model import Report

from . import inside
from .plain import Document, Plain, plain_report
from .workshop import DATA, Asked, Workshop, shard_hashes

EXACT, ROUNDED, SPREAD = 1e-9, 1e-5, 1e-4
"""How near a number must be to the frozen one, relative to the larger of that and 1.

EXACT: models that count. ROUNDED: torch computes in float32, and sums in another order on another
processor or in other batches; the probabilities in these cases differ by up to 1.7e-6 between
AVX-512 and no vector instructions. SPREAD: the ends of intervals of these (up to 2.1e-5, of a
correlation over six points), and what a doctor measures of just that rounding.
"""

NOISE = re.compile(r"(?<=Δ log p\| )\S+|\d[\d.]*e-\d+")
"""Differences by rounding, in the doctor's sentences."""

MACHINE = ("weights", "tokenizer", "details", "folder", "pace", "time")
"""What commands say of this machine and this moment."""

SHARD = 32
"""Weight of a shard, small enough that small runs have several."""


class Case(Protocol):
    """Makes a document; `near` says how near to it the numbers of each section must stay."""

    def near(self, shop: Workshop) -> dict[str, float]:
        """By section; in others nothing may differ."""

    def document(self, name: str, shop: Workshop) -> Document:
        """What is found now."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a probe and its report; the hashes of its shards, where they are the same always."""

    asked: Asked

    def near(self, shop: Workshop) -> dict[str, float]:
        return nearness(self.asked)

    def document(self, name: str, shop: Workshop) -> Document:
        run = shop.run(name)
        found = plain_report(run.report())
        return {**found, "bytes": shard_bytes(run)} if self.asked.exact else found


@dataclass(frozen=True, slots=True)
class Resumed:
    """The bytes of a run that was interrupted and went on, which are those of a calm one."""

    asked: Asked

    def near(self, shop: Workshop) -> dict[str, float]:
        return {}

    def document(self, name: str, shop: Workshop) -> Document:
        calm = shard_bytes(shop.ask(self.asked, shop.folder / "calm" / name, shard_weight=SHARD))
        place = shop.folder / "resumed" / name
        with contextlib.suppress(Interrupted):
            shop.ask(self.asked, place, shard_weight=SHARD, progress=_stop_half_way)
        resumed = shard_bytes(shop.ask(self.asked, place, shard_weight=SHARD))
        assert resumed == calm, "a resumed run has other bytes than a calm one"
        assert len(calm) > 4, "too few shards to be interrupted between them"
        return {"bytes": calm}


class Interrupted(BaseException):
    """Ends a run half way."""


def _stop_half_way(done: int, total: int) -> None:
    if done > total / 2:
        raise Interrupted


@dataclass(frozen=True, slots=True)
class Reread:
    """The report of a run that is made already, read with other settings."""

    of: str
    reading: Mapping[str, Any]

    def near(self, shop: Workshop) -> dict[str, float]:
        return nearness(shop.asked[self.of])

    def document(self, name: str, shop: Workshop) -> Document:
        return plain_report(shop.run(self.of).report(**self.reading))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared, by `sonde.compare`."""

    of: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def near(self, shop: Workshop) -> dict[str, float]:
        return nearness(*(shop.asked[one] for one in self.of))

    def document(self, name: str, shop: Workshop) -> Document:
        return plain_report(sonde.compare(*map(shop.run, self.of), **self.options).report)


@dataclass(frozen=True, slots=True)
class Learning:
    """What runs may have learned, as in `--paper optiprompt`; each is named as its case is."""

    of: tuple[str, ...]
    easy: tuple[str, ...] = ()

    def near(self, shop: Workshop) -> dict[str, float]:
        return nearness(*(shop.asked[one] for one in self.of))

    def document(self, name: str, shop: Workshop) -> Document:
        runs = [f"{one}={shop.run(one).path}" for one in self.of]
        learned, _ = with_learning(conditions(open_runs(runs)), self.easy)
        frames = [
            estimate(c.results, c.metrics, groups=("relation", "kind")).with_columns(
                run=polars.lit(name)
            )
            for name, c in learned.items()
        ]
        return plain_report(Report(title="", estimates=polars.concat(frames), runs="run"))


@dataclass(frozen=True, slots=True)
class Lab:
    """The report of the lab: on the models that come with sonde, or on made-up trials."""

    estimators: tuple[str, ...]
    made_up: bool = False

    def near(self, shop: Workshop) -> dict[str, float]:
        return within(EXACT, EXACT) if self.made_up else within(ROUNDED, SPREAD)

    def document(self, name: str, shop: Workshop) -> Document:
        if self.made_up:
            return plain_report(inside.made_up_lab(self.estimators))
        models = [inside.SHIPPED / kind for kind in ("causal", "masked")]
        return plain_report(inside.lab(models, shop.folder / name, self.estimators, 4))


@dataclass(frozen=True, slots=True)
class Told:
    """What a command says of a run that is not made, as JSON, less what only this machine knows."""

    verb: str
    asked: Asked
    words: tuple[str, ...] = ()

    def near(self, shop: Workshop) -> dict[str, float]:
        return {"values": SPREAD if self.verb == "doctor" else EXACT}

    def document(self, name: str, shop: Workshop) -> Document:
        return {"values": _lasting(shop.told(*shop.words(self.asked, self.verb), *self.words))}


@dataclass(frozen=True, slots=True)
class Card:
    """The card of a dataset."""

    data: str

    def near(self, shop: Workshop) -> dict[str, float]:
        return within(EXACT, EXACT)

    def document(self, name: str, shop: Workshop) -> Document:
        return plain_report(inside.to_report(sonde.card(DATA.get(self.data, self.data))))


def nearness(*asked: Asked) -> dict[str, float]:
    """How near the numbers of a report on these runs must be."""
    return within(EXACT, EXACT) if all(one.exact for one in asked) else within(ROUNDED, SPREAD)


def within(values: float, intervals: float) -> dict[str, float]:
    """Tolerances. Ends of intervals that are drawn may move where the draws are made otherwise."""
    return {"values": values, "intervals": intervals}


def shard_bytes(run: sonde.Run) -> dict[str, str]:
    """The hashes of a run's shards, and of which library they are: another may write otherwise."""
    return {"pyarrow": pyarrow.__version__, **shard_hashes(run)}


def _lasting(value: Plain) -> Plain:
    """What is the same on every machine; findings and relations by their names."""
    if isinstance(value, dict):
        return {key: _lasting(member) for key, member in value.items() if key not in MACHINE}
    if isinstance(value, list):
        for key in ("check", "relation"):
            names = [member[key] for member in value if isinstance(member, dict) and key in member]
            if value and len(set(names)) == len(value):
                return {name: _lasting(member) for name, member in zip(names, value, strict=True)}
        return [_lasting(member) for member in value]
    return NOISE.sub("…", value) if isinstance(value, str) else value
