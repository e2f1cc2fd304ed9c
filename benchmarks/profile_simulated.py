"""The profile's gate and estimate on simulated answers, whose truth is known.

In each relation some facts are known. An instrument answers a known fact correctly with its
sensitivity, and else guesses. Four designs: instruments miss and guess independently; they miss the
same facts; they all guess the same object; both. Knows no prompts and no models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.common import Result, parser, tell
from sonde.evaluation import known
from sonde.evaluation.known import Bools, Floats, Ints

NAME = "profile_simulated"
DESIGNS = ("independent", "shared misses", "shared guesses", "both")
SHARES = (0.0, 0.3, 0.7)
INSTRUMENTS = (3, 7)
FACTS = (24, 500)
RELATION = 50  # facts, at most
POPULARITY = 1 / np.arange(1, 13)  # of the twelve objects of a relation, as frequencies
SENSITIVITY = 0.4, 0.9


@dataclass(frozen=True, kw_only=True)
class World:
    """How answers are simulated."""

    design: str
    share: float  # of facts that are known
    instruments: int
    facts: int

    def relations(self, rng: np.random.Generator) -> Iterator[tuple[Bools, Ints, Ints]]:
        """Of each relation: which facts are known, objects, answers [instruments, facts]."""
        popularity = POPULARITY / POPULARITY.sum()
        sensitivity = rng.uniform(*SENSITIVITY, (self.instruments, 1))
        for n in map(len, np.array_split(np.arange(self.facts), -(-self.facts // RELATION))):
            gold = rng.choice(len(popularity), n, p=popularity)
            is_known = rng.random(n) < self.share
            easy = np.clip(rng.normal(0, 0.35, n), -0.6, 0.6)
            easy = easy if self.design in ("shared misses", "both") else np.zeros(n)
            guesses = rng.choice(len(popularity), (self.instruments, n), p=popularity)
            if self.design in ("shared guesses", "both"):
                guesses[:] = 0
            hit = rng.random(guesses.shape) < np.clip(sensitivity + easy, 0.02, 0.98)
            yield is_known, gold, np.where(is_known & hit, gold, guesses)


def measure(world: World, samples: int, draws: bool = True) -> dict[str, float]:
    """How often the gate opens; bias and coverage of the estimate in samples in which it did.

    Bias is that of the mean estimate; coverage is of the share in the population.
    """
    rows = []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        parts = list(world.relations(rng))
        dealt = [
            known.deal_answers([*answers], [gold] * len(answers),
                               [np.eye(len(POPULARITY), dtype=bool)] * len(answers), rng)
            for _, gold, answers in parts
        ]  # fmt: skip
        correct = np.concatenate([(a == gold).T.astype(float) for _, gold, a in parts])
        chance = np.concatenate([each.chance for each in dealt])
        means = np.concatenate([each.hits.mean(axis=2) for each in dealt], axis=1).mean(axis=1)
        is_open = correct.mean() > known.evidence_threshold(means)
        estimate = low = high = np.nan
        if is_open:
            estimate = known.estimate_share_known(correct, chance).share
        if is_open and draws and world.share:
            relation = np.repeat(np.arange(len(parts)), [len(gold) for _, gold, _ in parts])
            facts = np.arange(len(correct))
            low, high = known.share_known_intervals(correct, chance, relation, facts, rng)[None]
        inside = low <= world.share <= high
        rows.append((is_open, estimate - world.share, inside, high - low, correct.mean()))
    table: Floats = np.array(rows, dtype=float)
    opened = table[table[:, 0] > 0]
    names = ("bias", "coverage", "width", "mean")
    values = opened[:, 1:].mean(axis=0) if len(opened) else np.full(len(names), np.nan)
    spread = {"sd": opened[:, 1].std()} if len(opened) else {}
    return {"open": table[:, 0].mean(), **dict(zip(names, values, strict=True)), **spread}


def main() -> None:
    """Simulate, print, and store where asked."""
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument("--samples", type=int, default=200)
    arguments = options.parse_args()
    rows = []
    coverages = []
    for design, share, instruments, facts in product(DESIGNS, SHARES, INSTRUMENTS, FACTS):
        world = World(design=design, share=share, instruments=instruments, facts=facts)
        values = measure(world, arguments.samples)
        estimates = share > 0 and values["open"] > 0
        rows.append(
            (
                design, f"{share:.0%}", str(instruments), str(facts), f"{values['open']:.1%}",
                f"{100 * values['bias']:+.1f}" if values["open"] else "–",
                f"{100 * values['sd']:.1f}" if estimates else "–",
                f"{values['coverage']:.1%}" if estimates else "–",
                f"{100 * values['width']:.1f}" if estimates else "–",
                f"{100 * (values['mean'] - share):+.1f}" if values["open"] else "–",
            )
        )  # fmt: skip
        print(*rows[-1], sep="\t", flush=True)
        if design == "independent" and estimates:
            coverages.append(values["coverage"])
    result = Result(
        name=NAME,
        title=f"Gate and estimate of the profile in {arguments.samples} simulated data sets each",
        columns=(
            "design", "known", "instruments", "facts", "gate open", "bias, points",
            "SD, points", "coverage of 95%", "width, points", "bias of mean accuracy",
        ),
        rows=tuple(rows),
        findings=(
            "Bias, SD, coverage and width are of data sets in which the gate is open. Coverage is "
            "of the share in the population, from which the facts are drawn.",
        ),
    )  # fmt: skip
    tell(result, write=arguments.write)


if __name__ == "__main__":
    main()
