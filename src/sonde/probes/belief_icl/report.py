"""BELIEF-ICL's report: what every multi-prompt probe has, and what written answers add to it.

Knows judged answers, no prompts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Cell, Column, Estimate, Headline, Report, Table
from sonde.metrics.accuracy import one_word_rate
from sonde.metrics.calibration import calibration, overconf_by, overconf_by_template
from sonde.metrics.consistency import consist_of_texts
from sonde.metrics.estimates import Sample
from sonde.metrics.grid import Floats
from sonde.probes.belief_icl.pairs import World
from sonde.probes.belief_icl.tally import Outcomes
from sonde.prompting.few_shot import Context, Style
from sonde.prompting.matching import alike
from sonde.reporting.build.multi_prompt.sections import Draw, sections

LONGEST = 5
"""Overconf by length goes up to answers of so many tokens, as in the paper."""

POOLED = f"1-{LONGEST}"

MANY = 0.2
"""The share from which answers that are not as they should be are worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a run was asked and is read, as far as the report has to say so."""

    style: Style
    context: Context
    shots: int
    samples: int
    most: int
    draw: Draw
    draws: int
    floor: int

    @property
    def title(self) -> str:
        """The setting as the papers name it: mask 4-template."""
        few = "" if self.context == "zero-shot" else f"{self.shots}-"
        return f"{self.style} {few}{self.context}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Overconf of answers by their number of tokens, and how many there are of each."""

    rows: tuple[tuple[str, Estimate, int], ...]
    within: Estimate


def build_report(dataset: Dataset, world: World, outcomes: Outcomes, reading: Reading) -> Report:
    """Everything BELIEF-ICL reports about some answers."""
    seed, grid = dataset.selection.seed, outcomes.grid
    shared = sections(
        grid,
        relations=world.relations,
        templates=world.templates,
        draw=reading.draw,
        draws=reading.draws,
        seed=seed,
        majority=world.by_majority,
        consist=lambda part: consist_of_texts(part, outcomes.texts, alike, seed),
    )
    lengths = by_length(outcomes, seed)
    # of one token, whose probability is the answer's
    sure = np.where(outcomes.tokens == 1, outcomes.likely, np.nan)
    estimates = {
        **shared.estimates,
        "one_word_rate": one_word_rate(outcomes.words, seed, grid.pair),
        **{f"overconf.tokens.{name}": estimate for name, estimate, _ in lengths.rows},
        "within_5_tokens": lengths.within,
        **overconf_by_template(grid, sure, reading.floor, seed),
    }
    one_word = Headline(
        label="One-word rate, answers of exactly one word", estimate="one_word_rate"
    )
    return Report(
        title=f"BELIEF-ICL ({reading.title}) on {dataset.name}",
        summary=_summary(estimates, shared.counts),
        estimates=estimates,
        counts={**dataset.notes, **shared.counts, **_counts(world, outcomes)},
        headlines=(*shared.headlines, one_word),
        tables=(
            *shared.tables,
            _length_table(lengths),
            _template_table(world, outcomes, sure, reading.floor),
            _prompt_table(world, outcomes),
        ),
        figures=shared.figures,
        findings=(*shared.findings, *_findings(outcomes, lengths)),
        notes=_notes(reading),
    )


def by_length(outcomes: Outcomes, seed: int) -> Lengths:
    """Overconf from the probability of the whole answer, for each number of tokens and pooled."""
    grid, tokens, likely = outcomes.grid, outcomes.tokens, outcomes.likely
    short = (tokens >= 1) & (tokens <= LONGEST)
    found = overconf_by(tokens[short], likely[short], grid.right[short], grid.pair[short])
    measured = {length: (estimate, n) for length, estimate, n in found}
    missing = (Estimate.not_measured(), 0)
    rows = [(str(length), *measured.get(length, missing)) for length in range(1, LONGEST + 1)]
    pooled = calibration(likely[short], grid.right[short], grid.pair[short], seed=seed)
    overall = pooled.overconf if pooled else Estimate.not_measured()
    share = Sample(values=short.astype(np.float64), clusters=grid.pair)
    return Lengths(
        rows=(*rows, (POOLED, overall, int(short.sum()))),
        within=share.estimate(share.draws(seed)) if len(short) else Estimate.not_measured(),
    )


def _counts(world: World, outcomes: Outcomes) -> dict[str, int]:
    return {
        "empty_answers": _empty(outcomes),
        "unfinished_answers": int((~outcomes.finished).sum()),
        "longer_than_5_tokens": int((outcomes.tokens > LONGEST).sum()),
        "right_and_in_subject": int((outcomes.grid.right & outcomes.given).sum()),
        "relations_without_templates": world.relations_without_templates,
    }


def _empty(outcomes: Outcomes) -> int:
    """How many answers have no word; the texts are sorted, so that an empty one comes first."""
    return int((outcomes.grid.answer == 0).sum()) if outcomes.texts[:1] == [""] else 0


def _summary(estimates: dict[str, Estimate], counts: dict[str, int]) -> str:
    value, control = (estimates[n].value for n in ("acc_at_1", "control.majority.acc_at_1"))
    if value is None or control is None:
        return "No prompt was answered."
    return (
        f"{value:.1%} of a pair's prompts are answered correctly, on average over "
        f"{counts['pairs']:,} pairs ({counts['prompts']:,} prompts); always answering the "
        f"commonest object gives {control:.1%}."
    )


def _length_table(lengths: Lengths) -> Table:
    total = lengths.within.n
    return Table(
        id="overconf-by-length",
        title="Overconf by number of generated tokens",
        columns=(
            Column(title="tokens", help="of the answer, without a closing full stop"),
            Column(title="answers", kind="count"),
            Column(title="share", kind="percent", help="of all answers"),
            Column(
                title="Overconf",
                kind="percent",
                help="mean probability of the whole answer minus the accuracy",
            ),
        ),
        rows=tuple(
            (name, n, n / total if total else None, estimate) for name, estimate, n in lengths.rows
        ),
        note="From the probability of the tokens that were written, not from drawn answers.",
    )


def _template_table(world: World, outcomes: Outcomes, sure: Floats, floor: int) -> Table:
    grid = outcomes.grid
    rows: list[tuple[Cell, ...]] = [
        (
            world.relations[world.template_relations[number]].id,
            world.templates[number].text,
            n,
            estimate,
        )
        for number, estimate, n in overconf_by(grid.template, sure, grid.right, grid.pair, floor)
    ]
    asked = len(np.unique(grid.template))
    return Table(
        id="overconf-by-template",
        title="Overconf of one-token answers by template",
        columns=(
            Column(title="relation"),
            Column(title="template"),
            Column(title="answers", kind="count", help="of one token"),
            Column(title="Overconf", kind="percent", help="mean probability minus accuracy"),
        ),
        rows=tuple(rows),
        note=f"{len(rows)} of {asked} templates have at least {floor} answers of one token.",
        browsable=True,
    )


def _prompt_table(world: World, outcomes: Outcomes) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for shown, right, confidence in outcomes.shown:
        template = world.templates[shown.place.template]
        relation = world.relations[world.template_relations[shown.place.template]]
        rows.append(
            (
                f"{relation.id} {relation.label}",
                shown.subject,
                shown.question,
                template.source,
                shown.correct,
                shown.answer,
                None if np.isnan(confidence) else confidence,
                "right" if right else "wrong",
            )
        )
    total = len(outcomes.grid)
    some = f"{len(rows):,} of the {total:,} prompts, drawn by the seed; every number counts all."
    return Table(
        id="prompts",
        title="Prompts",
        columns=(
            Column(title="relation"),
            Column(title="subject"),
            Column(title="question", help="the last one; what stands before it is not shown"),
            Column(title="template", help="where it comes from"),
            Column(title="correct", help="every object that counts, by its usual name"),
            Column(title="answer", help="as the model wrote it"),
            Column(title="confidence", kind="percent", help="share of drawn answers that match"),
            Column(title="verdict", kind="verdict"),
        ),
        rows=tuple(rows),
        note=some if len(rows) < total else "",
        browsable=True,
    )


def _findings(outcomes: Outcomes, lengths: Lengths) -> tuple[str, ...]:
    total = len(outcomes.grid)
    cut, empty = int((~outcomes.finished).sum()), _empty(outcomes)
    found = []
    if empty > MANY * total:
        found.append(f"{empty:,} of {total:,} answers are empty; these are wrong, and alike.")
    if cut > MANY * total:
        found.append(
            f"{cut:,} of {total:,} answers did not end within the most tokens allowed: the model "
            "goes on instead of closing the line."
        )
    within = lengths.within.value
    if within is not None and within < 1 - MANY:
        found.append(
            f"Only {within:.1%} of answers have 1 to {LONGEST} tokens; Overconf by length "
            "describes these alone."
        )
    return tuple(found)


def _notes(reading: Reading) -> tuple[str, ...]:
    drawn = (
        f"Confidence is the share of {reading.samples} drawn answers (whole vocabulary, "
        "temperature 1) that match the written one, for one prompt of each pair."
        if reading.samples
        else "No answers were drawn (samples=0), so Overconf and ECE are not measured."
    )
    return (
        f"Answers were written greedily to the end of the line, {reading.most} tokens at most. "
        "Words are compared by their lemmas: right if the words of a correct name stand in the "
        "answer, consistent if those of one answer stand in the other. An empty answer is wrong.",
        drawn,
    )
