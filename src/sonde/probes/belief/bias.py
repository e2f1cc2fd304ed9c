"""How far templates lean towards some answers when they are asked about nothing.

Knows log-probabilities of candidates under content-free subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sonde.core.reports import Estimate, Estimates, Metric, Table
from sonde.core.scores import shares as among
from sonde.metrics.calibration import DrawnBias, bias, bias_level, bias_of, drawn_bias
from sonde.metrics.judged import Floats
from sonde.probes.belief.judge import Outcomes
from sonde.prompting.pairs import World
from sonde.reporting.build.tables import listing

BIAS_SINGLE = Metric(
    "bias.single",
    "bias level, single prompt",
    "number",
    "of a template asked about nothing; 0: even over the candidates, 1: one only",
    better="lower",
)
BIAS_MULTI = Metric(
    "bias.multi",
    "bias level, all prompts",
    "number",
    "the same, of the average of a relation's templates",
    better="lower",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lean:
    """What one template leans to: its bias level, the candidate it inflates most against the
    relation's average, and that candidate's share under the template and on average."""

    level: float
    candidate: str
    share: float
    average: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Bias levels by estimate name, and what each template leans to."""

    estimates: dict[str, Estimate]
    leans: Mapping[int, Lean]


def measure_bias(known: World, outcomes: Outcomes, seed: int) -> Bias:
    """Bias levels per relation, and over all of them."""
    estimates: dict[str, Estimate] = {}
    leans: dict[int, Lean] = {}
    every: list[DrawnBias | None] = []
    for number, relation in enumerate(known.relations):
        templates, candidates, shares = _shares(outcomes, number)
        every.append(drawn_bias(shares, f"bias:{number}", seed))
        single, multi = bias_of(every[-1:])
        estimates[f"bias.single.relation.{relation.id}"] = single
        estimates[f"bias.multi.relation.{relation.id}"] = multi
        leans |= _leans(templates, candidates, shares)
    single, multi = bias_of(every)
    overall = {"bias.single": single, "bias.multi": multi}
    return Bias(estimates=overall | estimates, leans=leans)


def bias_table(estimates: Estimates) -> Table:
    """The bias level of a single prompt, and of all together."""
    return listing(
        estimates,
        [
            BIAS_SINGLE.named("a single prompt", "of a template"),
            BIAS_MULTI.named("all prompts", "of the average of a relation's templates"),
        ],
        head="asked about nothing",
        value="bias level",
        id="bias",
        title="Bias: how far templates lean towards some answers",
        note="Of templates asked about nothing; 0: even over the candidates, 1: one only.",
    )


def _shares(outcomes: Outcomes, relation: int) -> tuple[list[int], list[str], Floats]:
    """Templates, candidates, and the share of each, averaged over content-free subjects.

    A candidate is a name that can be answered under every template; names that are the same token
    are one candidate. Fewer than two candidates have no distribution.
    """
    asked = outcomes.contents.get(relation, {})
    keys = sorted(asked)
    if not keys:
        return [], [], np.empty((0, 0))
    logps = np.stack([asked[key] for key in keys])
    able = np.flatnonzero(~np.isnan(logps).any(axis=0))
    _, first = np.unique(logps[:, able], axis=1, return_index=True)
    able = able[np.sort(first)]
    if len(able) < 2:
        return [], [], np.empty((0, 0))
    weights = among(logps[:, able])
    templates = sorted({template for template, _ in keys})
    owners = np.array([template for template, _ in keys])
    shares = np.stack([weights[owners == template].mean(axis=0) for template in templates])
    names = outcomes.candidates[relation]
    return templates, [names[i] for i in able], shares


def _leans(templates: list[int], candidates: list[str], shares: Floats) -> dict[int, Lean]:
    if not shares.size:
        return {}
    inflated = bias(shares)[2]
    average = shares.mean(axis=0)
    return {
        template: Lean(
            level=bias_level(shares[i]),
            candidate=candidates[int(inflated[i])],
            share=float(shares[i, inflated[i]]),
            average=float(average[inflated[i]]),
        )
        for i, template in enumerate(templates)
    }
