"""BELIEF-ICL's report: what every multi-prompt probe has, and what written answers add to it.

Knows judged answers, no prompts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Cell, Estimate, Estimates, Metric, Report, Table
from sonde.metrics.accuracy import one_word_rate
from sonde.metrics.calibration import calibration, overconf_by, overconf_by_template
from sonde.metrics.consistency import consist_of_texts
from sonde.metrics.estimates import Sample
from sonde.metrics.grid import Bools, Floats
from sonde.probes.belief_icl.ask import Settings
from sonde.probes.belief_icl.judge import Outcomes
from sonde.probes.belief_icl.metrics import BY_LENGTH, LONGEST, METRICS, WITHIN
from sonde.prompting.matching import alike
from sonde.prompting.pairs import World
from sonde.reporting.build.multi_prompt.metrics import ACC, MAJORITY, ONE_WORD, OVERCONF
from sonde.reporting.build.multi_prompt.sections import sections
from sonde.reporting.build.parts import headline, shown
from sonde.reporting.build.tables import Field, browse, measured, table, titled

MANY = 0.2
"""The share from which answers that are not as they should be are worth a sentence."""


def build_report(dataset: Dataset, world: World, outcomes: Outcomes, settings: Settings) -> Report:
    """Everything BELIEF-ICL reports about some answers."""
    seed, grid = dataset.selection.seed, outcomes.judged.grid
    shared = sections(
        grid,
        relations=world.relations,
        templates=world.templates,
        draw=settings.draw,
        draws=settings.draws,
        seed=seed,
        majority=outcomes.by_majority,
        consist=lambda part: consist_of_texts(part, outcomes.judged.answers, alike, seed),
    )
    sure = outcomes.judged.sure
    estimates = {
        **shared.estimates,
        ONE_WORD.id: one_word_rate(outcomes.judged.words, seed, grid.pair),
        **by_length(outcomes, seed),
        **overconf_by_template(grid, sure, settings.floor, seed),
    }
    return Report(
        title=f"BELIEF-ICL ({settings.title}) on {dataset.name}",
        summary=_summary(estimates, shared.counts),
        metrics=METRICS,
        estimates=estimates,
        counts={**dataset.notes, **shared.counts, **_counts(world, outcomes)},
        headlines=(
            *shared.headlines,
            headline(ONE_WORD.named("One-word rate, answers of exactly one word")),
        ),
        tables=shown(
            (
                *shared.tables,
                _length_table(estimates, outcomes),
                _template_table(world, outcomes, sure, settings.floor),
                _prompt_table(world, outcomes),
            )
        ),
        figures=shared.figures,
        findings=shown((*shared.findings, *_findings(estimates, outcomes))),
        notes=_notes(settings),
        judged=outcomes.judged,
    )


def by_length(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Overconf from the probability of the whole answer, for each number of tokens and pooled."""
    grid, tokens, likely = outcomes.judged.grid, outcomes.tokens, outcomes.likely
    short = _short(outcomes)
    rows = overconf_by(tokens[short], likely[short], grid.right[short], grid.pair[short])
    by_tokens = {length: estimate for length, estimate, _ in rows}
    pooled = calibration(likely[short], grid.right[short], grid.pair[short], seed=seed)
    share = Sample(values=short.astype(np.float64), clusters=grid.pair)
    missing = Estimate.not_measured()
    lengths = [by_tokens.get(length, missing) for length in range(1, LONGEST + 1)]
    values = (*lengths, pooled.overconf if pooled else missing)
    return {
        **{metric.id: value for metric, value in zip(BY_LENGTH, values, strict=True)},
        WITHIN.id: share.estimate(share.draws(seed)) if len(short) else missing,
    }


def _short(outcomes: Outcomes) -> Bools:
    return (outcomes.tokens >= 1) & (outcomes.tokens <= LONGEST)


def _counts(world: World, outcomes: Outcomes) -> dict[str, int]:
    return {
        "empty_answers": _empty(outcomes),
        "unfinished_answers": int((~outcomes.finished).sum()),
        "longer_than_5_tokens": int((outcomes.tokens > LONGEST).sum()),
        "right_and_in_subject": int((outcomes.judged.grid.right & outcomes.given).sum()),
        "relations_without_templates": len(world.relations)
        - len(np.unique(world.template_relations)),
    }


def _empty(outcomes: Outcomes) -> int:
    """How many answers have no word; the texts are sorted, so that an empty one comes first."""
    return (
        int((outcomes.judged.grid.answer == 0).sum()) if outcomes.judged.answers[:1] == ("",) else 0
    )


def _summary(estimates: Estimates, counts: dict[str, int]) -> str:
    value, control = (estimates[metric.id].value for metric in (ACC, MAJORITY))
    if value is None or control is None:
        return "No prompt was answered."
    return (
        f"{value:.1%} of a pair's prompts are answered correctly, on average over "
        f"{counts['pairs']:,} pairs ({counts['prompts']:,} prompts); always answering the "
        f"commonest object gives {control:.1%}."
    )


def _length_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    counts = np.bincount(outcomes.tokens[_short(outcomes)], minlength=LONGEST + 1)[1:].tolist()
    answers = dict(zip(BY_LENGTH, (*counts, sum(counts)), strict=True))
    total = len(outcomes.tokens)
    fields: list[Field[Metric]] = [
        Field("tokens", lambda m: m.label, help="of the answer, without a closing full stop"),
        Field("answers", lambda m: answers[m], "count"),
        Field(
            "share", lambda m: answers[m] / total if total else None, "percent", "of all answers"
        ),
        Field(
            OVERCONF.label,
            lambda m: estimates[m.id],
            "percent",
            "mean probability of the whole answer minus the accuracy",
        ),
    ]
    return table(
        BY_LENGTH,
        fields,
        id="overconf-by-length",
        title="Overconf by number of generated tokens",
        note="From the probability of the tokens that were written, not from drawn answers.",
    )


def _template_table(world: World, outcomes: Outcomes, sure: Floats, floor: int) -> Table:
    grid = outcomes.judged.grid
    rows = overconf_by(grid.template, sure, grid.right, grid.pair, floor)
    fields: list[Field[tuple[int, Estimate, int]]] = [
        Field("relation", lambda row: world.relations[world.template_relations[row[0]]].id),
        Field("template", lambda row: world.templates[row[0]].text),
        Field("answers", lambda row: row[2], "count", "of one token"),
        Field(OVERCONF.label, lambda row: row[1], "percent", "mean probability minus accuracy"),
    ]
    asked = len(np.unique(grid.template))
    return browse(
        rows,
        fields,
        id="overconf-by-template",
        title="Overconf of one-token answers by template",
        note=f"{len(rows)} of {asked} templates have at least {floor} answers of one token.",
    )


def _prompt_table(world: World, outcomes: Outcomes) -> Table:
    grid = outcomes.judged.grid
    rows: list[dict[str, Cell]] = []
    for row, question, answer in outcomes.shown:
        pair, template = world.pairs[grid.pair[row]], int(grid.template[row])
        rows.append(
            {
                "relation": titled(world.relations[world.template_relations[template]]),
                "subject": pair.names[grid.name[row]],
                "question": question,
                "template": world.templates[template].source,
                "correct": ", ".join(names[0] for names in pair.objects),
                "answer": answer,
                "confidence": measured(grid.confidence[row]),
                "verdict": "right" if grid.right[row] else "wrong",
            }
        )
    fields: list[Field[dict[str, Cell]] | str] = [
        "relation",
        "subject",
        Field("question", help="the last one; what stands before it is not shown"),
        Field("template", help="where it comes from"),
        Field("correct", help="every object that counts, by its usual name"),
        Field("answer", help="as the model wrote it"),
        Field("confidence", kind="percent", help="share of drawn answers that match"),
        Field("verdict", kind="verdict"),
    ]
    total = len(outcomes.judged.grid)
    return browse(rows, fields, id="prompts", title="Prompts", total=total, what="prompts")


def _findings(estimates: Estimates, outcomes: Outcomes) -> Iterator[str]:
    total, within = len(outcomes.judged.grid), estimates[WITHIN.id].value
    cut, empty = int((~outcomes.finished).sum()), _empty(outcomes)
    if empty > MANY * total:
        yield f"{empty:,} of {total:,} answers are empty; these are wrong, and alike."
    if cut > MANY * total:
        yield (
            f"{cut:,} of {total:,} answers did not end within the most tokens allowed: the model "
            "goes on instead of closing the line."
        )
    if within is not None and within < 1 - MANY:
        yield (
            f"Only {within:.1%} of answers have 1 to {LONGEST} tokens; Overconf by length "
            "describes these alone."
        )


def _notes(settings: Settings) -> tuple[str, ...]:
    drawn = (
        f"Confidence is the share of {settings.samples} drawn answers (whole vocabulary, "
        "temperature 1) that match the written one, for one prompt of each pair."
        if settings.samples
        else "No answers were drawn (samples=0), so Overconf and ECE are not measured."
    )
    return (
        f"Answers were written greedily to the end of the line, {settings.most} tokens at most. "
        "Words are compared by their lemmas: right if the words of a correct name stand in the "
        "answer, consistent if those of one answer stand in the other. An empty answer is wrong.",
        drawn,
    )
