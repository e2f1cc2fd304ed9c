"""MONITOR: how far the probability of a right answer moves with the question's frame and context.

Knows probabilities and which answers were right, nothing of prompts or models. The anchor of a fact
is the probability of its object when the object's own name stands in front of the base question.
PFD is how far it lies from what other frames give, IRD from what wrong names in front give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from sonde.core.columns import Given
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.fingerprints import draw_key
from sonde.core.reports import Estimate, Metric
from sonde.metrics.judged import Bools, Floats, Ints, Judged, judge_texts
from sonde.stats.intervals import percentile_interval, resampled_sums, wilson

Rule = Literal["exact", "prefix", "any"]
RULES: tuple[Rule, ...] = ("exact", "prefix", "any")

Alphas = tuple[float, float, float]
EQUAL: Alphas = (1 / 3, 1 / 3, 1 / 3)

SOLID = 0.8
"""An anchor above this probability is a solid one."""

MONITOR = Metric("monitor", "MONITOR", "number", "0: nothing moves the answer", better="lower")
PFD = Metric("pfd", "PFD", "number", "mean distance of other frames' answers", better="lower")
IRD = Metric("ird", "IRD", "number", "mean distance of answers after wrong names", better="lower")
ANCHOR = Metric("anchor_probability", "anchor", "number", "mean probability of valid anchors")
SOLID_ANCHORS = Metric(
    "solid_anchors", f"> {SOLID:g}", "percent", f"share of valid anchors above {SOLID:g}"
)

PULLED = ("max", "min", "stdev")
"""What drawing facts anew moves to one side: extremes and spreads grow. Intervals are centred."""

ROUNDING = 1e-12
"""Equal rates leave a little of this size."""


def mean_distance(anchor: Floats, others: Floats) -> float:
    """Mean over prompts and tokens of how far a probability lies from the anchor's; in 0..1.

    anchor [tokens], others [prompts, tokens]; nan without prompts.

    >>> mean_distance(np.array([0.9]), np.array([[0.5], [0.7]])).__round__(3)
    0.3
    """
    return float(np.abs(others - anchor).mean()) if len(others) else float("nan")


def combined(pfd: Floats, ird: Floats, alphas: Alphas = EQUAL) -> Floats:
    """The two distances of each fact as one: sqrt(α1 PFD² + α2 IRD² + α3 PFD·IRD)."""
    one, two, three = alphas
    return np.asarray(np.sqrt(one * pfd**2 + two * ird**2 + three * pfd * ird))


def over_prompts(rates: Floats) -> dict[str, Floats]:
    """What the accuracies of a relation's prompts come to, the base frame's first; by name.

    rates [rows, prompts], nan where a prompt was not asked; one prompt has no standard deviation.
    """
    spread = np.full(len(rates), np.nan)
    if rates.shape[1] > 1:
        spread = np.nanstd(rates, axis=1, ddof=1)
    return {
        "avg": np.nanmean(rates, axis=1),
        "max": np.nanmax(rates, axis=1),
        "min": np.nanmin(rates, axis=1),
        "stdev": np.where(spread < ROUNDING, 0.0, spread),
        "base": rates[:, 0],
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Monitored:
    """What a run of MONITOR measured, one entry per fact that was asked about.

    `relation` is each fact's place in `relations`, `frames[r]` are the relation's frames, the base
    first. Probabilities are of each token of the fact's object: `anchor[c]` [tokens] with the
    object in front of the base frame, `framed[c]` [frames, tokens] with nothing in front,
    `misled[c]` [wrong names, tokens] with each of `wrong[c]` in front of the base frame. `said` are
    the answers that were written, cleaned, in the order: anchor, frames, wrong names; `right` says
    which of them name a correct object, `abstained` which say that the model does not know; without
    it none does. `valid[rule]`: whose anchor counts, by each rule.
    """

    relations: tuple[Relation, ...]
    frames: tuple[tuple[Template, ...], ...]
    facts: tuple[Fact, ...]
    relation: Ints
    anchor: tuple[Floats, ...]
    framed: tuple[Floats, ...]
    misled: tuple[Floats, ...]
    wrong: tuple[tuple[str, ...], ...]
    said: tuple[tuple[str, ...], ...]
    right: tuple[Bools, ...]
    valid: Mapping[Rule, Bools]
    rule: Rule
    alphas: Alphas
    seed: int
    abstained: tuple[Bools, ...] = ()

    def anchors(self) -> Floats:
        """The mean probability of each anchor's tokens."""
        return np.array([a.mean() for a in self.anchor], dtype=np.float64)

    def pfd(self, frames: Sequence[int] | None = None) -> Floats:
        """The prompt-framing degree of each fact, from all frames or from some, counted from 0."""
        return np.array(
            [
                mean_distance(a, f if frames is None else f[[i for i in frames if i < len(f)]])
                for a, f in zip(self.anchor, self.framed, strict=True)
            ],
            dtype=np.float64,
        )

    def ird(self) -> Floats:
        """The interference-relevance degree of each fact; nan where no wrong name is left."""
        found = (mean_distance(a, m) for a, m in zip(self.anchor, self.misled, strict=True))
        return np.fromiter(found, dtype=np.float64, count=len(self.facts))

    def counted(self) -> Bools:
        """The facts that MONITOR is computed from: a valid anchor, and some wrong name."""
        some = np.array([len(m) > 0 for m in self.misled], dtype=np.bool_)
        return np.asarray(self.valid[self.rule] & some)

    def judged(self) -> Judged:
        """The answers to bare questions as other analyses take them; every frame is a template."""
        from polars import DataFrame

        asked = [len(framed) for framed in self.framed]
        sides = list(zip(range(len(asked)), asked, strict=True))
        silent = self.abstained or [np.zeros(len(said), np.bool_) for said in self.said]
        rows = {
            "fact": [c for c, frames in sides for _ in range(frames)],
            "template": [j for _, frames in sides for j in range(frames)],
            "said": [text for c, frames in sides for text in self.said[c][1 : 1 + frames]],
            "right": [right for c, frames in sides for right in self.right[c][1 : 1 + frames]],
            "abstained": [each for c, frames in sides for each in silent[c][1 : 1 + frames]],
        }
        return judge_texts(
            DataFrame(rows),
            relations=self.relations,
            facts=self.facts,
            relation=self.relation,
            templates=self.frames,
        )


@runtime_checkable
class Monitors(Protocol):
    """A probe that can tell what MONITOR is computed from, so that its runs can be compared."""

    def monitored(self, dataset: Dataset, answered: Given) -> Monitored:
        """The probabilities and answers of every fact, whatever order they come in."""


class Ratios:
    """MONITOR: sums of distances over sums of anchors, by relation, with a bootstrap over subjects.

    values [facts] and weights [facts] lie in 0..1. Subjects are resampled within their relation,
    each with its own stream. Where no draw differs (one subject, or nothing that moves) the
    interval is that of a share of as many independent trials, over the mean weight.
    """

    def __init__(
        self,
        values: Mapping[str, Floats],
        weights: Mapping[str, Floats],
        subjects: Mapping[str, Ints],
        seed: int,
    ) -> None:
        self.sizes = {name: len(v) for name, v in values.items() if weights[name].sum() > 0}
        self.values = {n: float(values[n].sum() / weights[n].sum()) for n in self.sizes}
        self.weights = {n: float(weights[n].mean()) for n in self.sizes}
        self.subjects = {n: len(np.unique(subjects[n])) for n in self.sizes}
        self.draws = {
            name: _drawn(values[name], weights[name], subjects[name], draw_key(seed, name))
            for name in self.sizes
        }

    def relation(self, name: str) -> Estimate:
        """One relation; not measured where it has no facts or no weight."""
        return self._mean([name] if name in self.values else [])

    def mean_over_relations(self) -> Estimate:
        """Every relation that was measured counts the same; n is the number of facts behind it."""
        return self._mean(list(self.values))

    def _mean(self, names: Sequence[str]) -> Estimate:
        if not names:
            return Estimate.not_measured()
        value = float(np.mean([self.values[n] for n in names]))
        low, high = percentile_interval(np.mean([self.draws[n] for n in names], axis=0))
        if low == high:
            weight = float(np.mean([self.weights[n] for n in names]))
            trials = len(names) ** 2 / sum(1 / self.subjects[n] for n in names)
            ends = wilson(min(value * weight, 1.0) * trials, trials)
            low, high = ends[0] / weight, ends[1] / weight
        n = sum(self.sizes[name] for name in names)
        return Estimate(value=value, low=min(low, value), high=max(high, value), n=n)


def _drawn(values: Floats, weights: Floats, subjects: Ints, seed: int) -> Floats:
    _, index = np.unique(subjects, return_inverse=True)
    columns = [np.bincount(index, weights=v).astype(np.float64) for v in (values, weights)]
    sums: Floats = np.stack(columns, axis=1)
    drawn = resampled_sums(sums, np.random.default_rng(seed))
    # a draw in which no anchor has any probability says nothing
    some = drawn[:, 1] > 0
    whole = np.full(len(drawn), values.sum() / weights.sum())
    return np.asarray(np.divide(drawn[:, 0], drawn[:, 1], out=whole, where=some))
