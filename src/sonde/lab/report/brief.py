"""One estimator on one model in a single table: told how often, stored, found.

Knows trials, nothing of models, files or screens.
"""

from __future__ import annotations

from collections.abc import Iterator

from sonde.core.reports import Report, Table
from sonde.lab.estimators.catalogue import estimators
from sonde.lab.evaluation.measures import causes
from sonde.lab.evaluation.verdicts import Asked, model
from sonde.lab.worlds.truth import Bools, Trial
from sonde.reporting.build.tables import Field, table


def brief(trial: Trial, name: str, beside: str) -> Report:
    """What an estimator says of a model of the lab; `beside` is one of which no truth is known."""
    asked, label = model(trial).asked[name], estimators()[name].label
    return Report(
        title=f"And a model whose knowledge is known: {trial.model}",
        summary="It comes with sonde and was trained on a made-up text, so it is written down "
        f"which facts it was taught, and how often. {shares(asked, label)}",
        estimates={},
        findings=(misses(asked, label), claims(asked, label)),
        tables=(by_exposure(asked, label),),
        notes=(
            f"Nobody can draw this table for {beside}: nobody knows which facts its text states.",
            "Every estimator against the same truth: sonde lab validate --shipped; docs/lab.md "
            "tells what comes of it.",
        ),
    )


def shares(asked: Asked, label: str) -> str:
    """How much the estimator says is known, beside how much is, of the same facts."""
    n, found = len(asked.exposure), asked.verdicts.decision
    said, taught, stored = (_share(part, n) for part in (found, asked.taught, asked.stored))
    return (
        f"{label} says that {said} of {n:,} facts are known; {taught} were taught, and {stored} "
        "are stored."
    )


def misses(asked: Asked, label: str) -> str:
    """How many stored facts the estimator does not find."""
    missed = _count(asked.stored & ~asked.verdicts.decision)
    return f"{label} misses {missed:,} of the {_count(asked.stored):,} facts that are stored."


def claims(asked: Asked, label: str) -> str:
    """How many facts the estimator finds that the text does not state."""
    found = asked.verdicts.decision & ~asked.taught
    guessed = found & asked.shown & (asked.guess != "")
    return (
        f"{label} finds {_count(found):,} of the {_count(~asked.taught):,} facts that were never "
        f"taught; {_count(guessed):,} of these can be guessed."
    )


def by_exposure(asked: Asked, label: str) -> Table:
    """Facts asked, stored and found, by how often the text states them; and all of them."""
    found = asked.verdicts.decision
    fields: list[Field[tuple[str, Bools]]] = [
        Field("times stated in the text", lambda part: part[0]),
        Field("facts asked", lambda part: _count(part[1]), "count"),
        Field("stored", lambda part: _count(part[1] & asked.stored), "count"),
        Field(f"found by {label}", lambda part: _count(part[1] & found), "count"),
    ]
    return table(
        [part for part in _parts(asked) if part[1].any()],
        fields,
        id="exposure",
        title=f"What it was taught, what it stored, what {label} finds",
        note="Stored: the model gives it back in a text that it read. Guessable: the commonest "
        "object of its relation, or one that goes with a word of the subject's name.",
    )


def _parts(asked: Asked) -> Iterator[tuple[str, Bools]]:
    """The facts parted by how often they are stated, those never stated by what they are like."""
    untaught = causes(asked)
    yield "0, nor any of its relation", untaught["unshown"]
    yield "0, not guessable", untaught["not_guessable"]
    yield "0, guessable", untaught["cue"] | untaught["majority"]
    for times in sorted(set(asked.exposure[asked.taught].tolist())):
        yield str(times), asked.exposure == times
    yield "all", asked.exposure >= 0


def _count(where: Bools) -> int:
    return int(where.sum())


def _share(where: Bools, n: int) -> str:
    return f"{_count(where) / n:.1%}"
