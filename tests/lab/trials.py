"""Made-up trials: estimators with known habits, judging the facts of models with known truths."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars
from polars import DataFrame

from sonde.evaluation.stats import Bools, Floats
from sonde.lab.evaluation.judging import Trial, Verdicts
from sonde.lab.training.train import Kind
from sonde.lab.worlds.world import Guess, Taught

LADDER = (0, 1, 2, 5, 10, 50)

HABITS: dict[str, tuple[float, float, float, int]] = {
    "lama": (0.90, 0.30, 0.02, 1),
    "lama-unused": (0.65, 0.30, 0.02, 1),
    "belief-average": (0.85, 0.30, 0.02, 10),
    "belief-max": (0.92, 0.40, 0.03, 10),
    "belief-oracle": (0.98, 0.80, 0.20, 10),
    "belief-icl": (0.75, 0.20, 0.03, 20),
    "ic-lke": (0.80, 0.30, 0.05, 1),
    "eic-lke": (0.82, 0.30, 0.05, 1),
    "monitor-anchor": (0.99, 0.95, 0.90, 12),
    "monitor-distance": (0.60, 0.30, 0.10, 12),
    "optiprompt": (0.95, 0.80, 0.05, 1),
    "autoprompt": (0.85, 0.60, 0.05, 1),
    "lpaqa": (0.92, 0.40, 0.02, 6),
    "finetune": (0.90, 0.85, 0.06, 1),
    "class-prior": (0.15, 0.60, 0.04, 0),
    "naive-bayes": (0.25, 0.80, 0.04, 0),
    "optiprompt-random": (0.25, 0.80, 0.05, 1),
    "optiprompt-random-embeddings": (0.40, 0.80, 0.05, 1),
    "finetune-random": (0.30, 0.84, 0.06, 1),
}
"""How often each says that a fact is known: stored, guessable, neither; and its prompts a fact."""

LEARN = tuple(HABITS)[10:]
CONTROL = tuple(HABITS)[14:]
CAUSAL_ONLY = tuple(HABITS)[5:10]


def verdicts(
    name: str,
    facts: Sequence[str],
    score: Sequence[float],
    *,
    decision: Sequence[bool] | None = None,
    counts: Sequence[float] | None = None,
    chance: float | Sequence[float] = 0.0,
    learns: bool = False,
    control: bool = False,
) -> Verdicts:
    """Verdicts that hold a fact to be known from a score of a half on, and count that."""
    given = np.asarray(score, dtype=np.float64)
    known = given >= 0.5 if decision is None else np.asarray(decision, dtype=np.bool_)
    counted = known.astype(np.float64) if counts is None else np.asarray(counts, dtype=np.float64)
    return Verdicts(
        estimator=name,
        frame=said(facts, given, known, counted, np.zeros(len(facts)) + chance),
        seconds=2.0,
        prompts=len(facts),
        learns=learns,
        control=control,
    )


def said(
    facts: Sequence[str], score: Floats, decision: Bools, counts: Floats, chance: Floats
) -> DataFrame:
    """What an estimator says, as a frame."""
    columns = {"score": score, "decision": decision, "counts": counts, "chance": chance}
    return DataFrame({"fact": polars.Series(facts, dtype=polars.String), **columns})


@dataclass(frozen=True)
class Known(Taught):
    """A fact, and whether a model has it stored."""

    stored: bool = False


def known(
    fact: str, exposure: int = 0, *, stored: bool = False, guess: Guess = "", shown: bool = True
) -> Known:
    """One fact; its relation is the first letter of its id."""
    return Known(
        fact=fact,
        relation=fact[0],
        split="test",
        exposure=exposure,
        guess=guess,
        shown=shown,
        stored=stored,
    )


def trial(
    facts: Sequence[Known],
    verdicts: Sequence[Verdicts],
    *,
    world: str = "plain-1",
    kind: Kind = "masked",
    step: int = 100,
    final: bool = True,
) -> Trial:
    """A trial of these facts."""
    return Trial(
        world=world,
        model=f"{world}-{kind}",
        kind=kind,
        seed=0,
        step=step,
        final=final,
        facts=DataFrame([asdict(fact) for fact in facts]),
        verdicts=tuple(verdicts),
    )


def likely(
    world: str,
    kind: Kind,
    *,
    facts: int = 60,
    step: int = 1000,
    last: int = 1000,
    names: Collection[str] = HABITS,
) -> Trial:
    """A trial with the estimators that fit the kind, and plausible random numbers.

    Facts of worlds whose names begin with "skew" can be guessed, those of others cannot.
    """
    # the world, told apart from the model: checkpoints have the same facts
    random = np.random.default_rng([sum(map(ord, world)), kind == "causal", step])
    some = [_fact(r, i, world, step / last, random) for r in range(5) for i in range(facts)]
    fit = [name for name in HABITS if kind == "causal" or name not in CAUSAL_ONLY]
    made = [_said(name, some, step / last, random) for name in fit if name in names]
    return trial(some, made, world=world, kind=kind, step=step, final=step == last)


def _fact(relation: int, i: int, world: str, done: float, random: np.random.Generator) -> Known:
    shown = relation < 4
    exposure = LADDER[i % len(LADDER)] if shown else 0
    guess: Guess = ""
    if world.startswith("skew"):
        guess = ("cue", "majority", "", "")[(i // len(LADDER)) % 4]
    stored = bool(random.random() < done * (1 - 0.6 ** (exposure * done)))
    return known(f"{relation}-{i}", exposure, stored=stored, guess=guess, shown=shown)


def _said(name: str, facts: Sequence[Known], done: float, random: np.random.Generator) -> Verdicts:
    stored, guessed, neither, prompts = HABITS[name]
    rates = np.array(
        [stored if one.stored else guessed * done if one.guess else neither for one in facts]
    )
    decision = random.random(len(facts)) < rates
    score = np.clip(np.where(decision, 0.75, 0.2) + random.normal(0, 0.12, len(facts)), 0, 1)
    averages = name in ("belief-average", "belief-icl")
    return Verdicts(
        estimator=name,
        frame=said(
            [one.fact for one in facts],
            score,
            decision,
            np.round(score, 1) if averages else decision.astype(np.float64),
            np.full(len(facts), 0.2 if averages else neither),
        ),
        seconds=0.01 * prompts * len(facts) + 1,
        prompts=prompts * len(facts),
        learns=name in LEARN,
        control=name in CONTROL,
    )


def study(
    sorts: Sequence[str] = ("plain",),
    worlds: int = 3,
    facts: int = 60,
    names: Collection[str] = HABITS,
) -> list[Trial]:
    """Both kinds of model in so many worlds of each sort."""
    kinds: tuple[Kind, ...] = ("causal", "masked")
    return [
        likely(f"{sort}-{i}", kind, facts=facts, names=names)
        for kind in kinds
        for sort in sorts
        for i in range(1, worlds + 1)
    ]


def timeline(world: str = "plain-1", facts: int = 60) -> list[Trial]:
    """Checkpoints of one model of each kind."""
    kinds: tuple[Kind, ...] = ("causal", "masked")
    return [
        likely(world, kind, facts=facts, step=step) for kind in kinds for step in (100, 250, 500)
    ]
