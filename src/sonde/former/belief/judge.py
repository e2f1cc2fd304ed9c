"""Judge BELIEF's answers in columns: some bytes per prompt, so that millions fit in memory.

Beside them, how far templates lean towards some answers when they are asked about nothing: the bias
level, its table, and what each template favours. Knows nothing of the rest of the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonde.core.columns import Answers, Given, in_blocks
from sonde.core.reports import Estimate, Estimates, Metric, Table
from sonde.core.scores import shares as among
from sonde.core.texts import folded
from sonde.core.threads import side_by_side
from sonde.metrics.calibration import bias_level, bias_of, drawn_bias, most_inflated
from sonde.metrics.judged import AnswerKind, Floats, Grid, Judged, Rows, in_words
from sonde.metrics.verdicts import judge_block
from sonde.prompting.pairs import AskedPairs, Keys
from sonde.reporting.build.tables import listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Every judged prompt, in the order of pair, template and name.

    `contents`: the log-probability of each of a relation's `candidates`, a row per template and
    content-free subject, nan where a candidate cannot be answered. `unanswerable` counts prompts
    for which no correct name is one token.
    """

    judged: Judged
    contents: Mapping[int, Mapping[tuple[int, str], Floats]]
    candidates: Mapping[int, tuple[str, ...]]
    pairs_unanswerable: int
    prompts_unanswerable: int
    ties: int


COLUMNS: dict[str, type[Any]] = {
    **dict.fromkeys(("pair", "template", "answer", "rank"), np.int32),
    **dict.fromkeys(("name", "helped", "compared"), np.int16),
    **dict.fromkeys(("confidence", "gold_logprob"), np.float32),
    "tied": np.bool_,
}
"""What is kept of each prompt, in few bytes."""


def judge(known: AskedPairs, answers: Given, way: AnswerKind = "filled") -> Outcomes:
    """Judge every answer, in whatever order they come; of two for a prompt the later one counts."""
    keys, columns = Keys(known), Rows("pair", "template", "name", kinds=COLUMNS)
    said: dict[str, int] = {}
    contents: dict[int, dict[tuple[int, str], Floats]] = {}
    candidates: dict[int, tuple[str, ...]] = {}
    correct = {number: pair.objects for number, pair in enumerate(known.pairs)}
    for block in in_blocks(answers):
        place = keys.places(block)
        empty = place["pair"] < 0
        for row in np.flatnonzero(empty).tolist():
            relation, template, subject = keys.content_free(block, row)
            candidates[relation], logps = _candidates(block, row)
            contents.setdefault(relation, {})[template, subject] = logps
        owners = np.where(empty, 0, place["pair"])
        verdicts = judge_block(block, owners, correct if correct else {0: ()})
        place |= verdicts.columns(said)
        columns.add({name: place[name][~empty] for name in COLUMNS})
    return _outcomes(known, columns.whole(), said, contents, candidates, way)


def _outcomes(
    known: AskedPairs,
    columns: dict[str, NDArray[Any]],
    said: dict[str, int],
    contents: Mapping[int, Mapping[tuple[int, str], Floats]],
    candidates: Mapping[int, tuple[str, ...]],
    way: AnswerKind,
) -> Outcomes:
    asked = np.count_nonzero(np.bincount(columns["pair"]))
    answerable = ~np.isnan(columns["gold_logprob"])
    prompts = len(answerable)
    if not answerable.all():
        columns = {name: columns.pop(name)[answerable] for name in COLUMNS}
    left = np.count_nonzero(np.bincount(columns["pair"]))
    answers = sorted(said)
    places = np.empty(len(answers), dtype=np.int32)
    places[[said[answer] for answer in answers]] = np.arange(len(answers))
    rank, confidence = columns["rank"], columns["confidence"].astype(np.float64)
    grid = Grid(
        pair=columns["pair"],
        template=columns["template"],
        name=columns["name"],
        right=rank == 1,
        answer=places[columns["answer"]],
        confidence=confidence,
        relations=known.pair_relations,
        template_relations=known.template_relations,
        subjects=known.subjects,
        ids=tuple(relation.id for relation in known.relations),
    )
    judged = Judged(
        grid=grid,
        relations=known.relations,
        pairs=tuple(pair.fact for pair in known.pairs),
        names=tuple(pair.names for pair in known.pairs),
        objects=tuple(in_words(names[0] for names in pair.objects) for pair in known.pairs),
        templates=known.templates,
        answers=tuple(answers),
        way=way,
        sure=confidence,
        rank=rank,
        gold_logprob=columns["gold_logprob"],
        helped=columns["helped"],
        compared=columns["compared"],
    )
    return Outcomes(
        judged=judged,
        contents=contents,
        candidates=candidates,
        pairs_unanswerable=int(asked - left),
        prompts_unanswerable=prompts - len(rank),
        ties=int(columns["tied"].sum()),
    )


def _candidates(block: Answers, row: int) -> tuple[tuple[str, ...], Floats]:
    """The candidates of a content-free prompt with their log-probabilities."""
    if block.kind == "filled":
        filled = block.filled
        logps = np.where(filled.watched_ranks[row] > 0, filled.watched_logps[row], np.nan)
        return filled.watched, logps.astype(np.float64)
    rated = block.rated.rows(slice(row, row + 1))
    assert rated.options is not None
    return tuple(rated.names[i] for i in rated.options.tolist()), rated.sums()


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
class TemplateBias:
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
    leans: Mapping[int, TemplateBias]


def measure_bias(known: AskedPairs, outcomes: Outcomes, seed: int) -> Bias:
    """Bias levels per relation, and over all of them."""
    estimates: dict[str, Estimate] = {}
    leans: dict[int, TemplateBias] = {}
    found = [_shares(outcomes, number) for number in range(len(known.relations))]
    every = side_by_side(lambda of: drawn_bias(of[1][2], f"bias:{of[0]}", seed), enumerate(found))
    for relation, own, drawn in zip(known.relations, found, every, strict=True):
        single, multi = bias_of([drawn])
        estimates[f"bias.single.relation.{relation.id}"] = single
        estimates[f"bias.multi.relation.{relation.id}"] = multi
        leans |= _leans(*own)
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

    A candidate is a name that can be answered under every template; names of one spelling that are
    always equally likely are one token and so one candidate (decision 051). Fewer than two
    candidates have no distribution.
    """
    asked = outcomes.contents.get(relation, {})
    keys = sorted(asked)
    if not keys:
        return [], [], np.empty((0, 0))
    logps = np.stack([asked[key] for key in keys])
    able = np.flatnonzero(~np.isnan(logps).any(axis=0))
    names = outcomes.candidates[relation]
    spellings = np.unique([folded(names[i]) for i in able], return_inverse=True)[1]
    _, first = np.unique(np.vstack([logps[:, able], spellings]), axis=1, return_index=True)
    able = able[np.sort(first)]
    if len(able) < 2:
        return [], [], np.empty((0, 0))
    weights = among(logps[:, able])
    templates = sorted({template for template, _ in keys})
    owners = np.array([template for template, _ in keys])
    shares = np.stack([weights[owners == template].mean(axis=0) for template in templates])
    return templates, [names[i] for i in able], shares


def _leans(templates: list[int], candidates: list[str], shares: Floats) -> dict[int, TemplateBias]:
    if not shares.size:
        return {}
    inflated = most_inflated(shares)
    average = shares.mean(axis=0)
    return {
        template: TemplateBias(
            level=bias_level(shares[i]),
            candidate=candidates[int(inflated[i])],
            share=float(shares[i, inflated[i]]),
            average=float(average[inflated[i]]),
        )
        for i, template in enumerate(templates)
    }
