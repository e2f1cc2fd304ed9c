"""BELIEF-ICL's report: what every multi-prompt probe has, and what written answers add to it.

Knows judged answers, no prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sonde.core.facts import Dataset
from sonde.core.reports import Curves, Estimate, Estimates, Metric, Report, Table
from sonde.metrics.abstention import ABSTENTION
from sonde.metrics.accuracy import one_word_rate
from sonde.metrics.calibration import (
    Strata,
    calibration,
    overconf_by,
    overconf_by_each,
    overconf_by_template,
)
from sonde.metrics.consistency import consist_of_texts
from sonde.metrics.estimates import FACTS, Sample
from sonde.former.belief_icl.judge import Outcomes
from sonde.prompting.few_shot import Style, question
from sonde.prompting.matching import alike
from sonde.reporting.build.figures import WHISKERS, curve
from sonde.reporting.build.multi_prompt.numbers import (
    ACC,
    BY_TEMPLATE,
    MAJORITY,
    ONE_WORD,
    OVERCONF,
)
from sonde.reporting.build.multi_prompt.numbers import METRICS as MULTI_PROMPT
from sonde.reporting.build.multi_prompt.sections import Draw, Sections, sections
from sonde.reporting.build.parts import (
    Written,
    abstentions,
    headline,
    nothing_said,
    shown,
    unconcluded,
)
from sonde.reporting.build.tables import Field, browse, drawn, table, titled

MANY = 0.2
"""The share from which answers that are not as they should be are worth a sentence."""

SHOWN = 2_000
"""The most prompts in the table of them."""

LONGEST = 5
"""Overconf by length goes up to answers of so many tokens, as in the paper."""

BY_LENGTH = tuple(
    Metric(
        f"overconf.tokens.{tokens}",
        tokens,
        "percent",
        "Overconf of answers of so many tokens, from their probability",
        better="nearer 0",
    )
    for tokens in (*map(str, range(1, LONGEST + 1)), f"1-{LONGEST}")
)
WITHIN = Metric(
    f"within_{LONGEST}_tokens",
    f"1 to {LONGEST} tokens",
    "percent",
    f"share of answers of 1 to {LONGEST} tokens",
    better="",
)
WRITTEN = (ONE_WORD, *BY_LENGTH, WITHIN, *BY_TEMPLATE)
"""Of written answers, and over everything only."""


def build_report(
    dataset: Dataset,
    outcomes: Outcomes,
    *,
    title: str,
    style: Style,
    draw: Draw,
    draws: int,
    floor: int,
    notes: tuple[str, ...],
    attempts: Sequence[str],
) -> Report:
    """Everything BELIEF-ICL reports about some answers; `title` says how they were asked for.

    `attempts`: settings to try where most answers are empty.
    """
    seed, judged = dataset.selection.seed, outcomes.judged
    shared = _sections(outcomes, draw, draws, seed)
    silent, answers = abstentions(judged, seed, over=FACTS), _written(outcomes)
    estimates = {
        **shared.estimates,
        **silent.estimates,
        ONE_WORD.id: one_word_rate(judged.words, seed, judged.grid.clusters),
        **_by_length(outcomes, seed),
        **overconf_by_template(judged.grid, judged.sure, floor, seed),
    }
    return Report(
        title=f"BELIEF-ICL ({title}) on {dataset.name}",
        summary=_summary(estimates, shared.counts, answers),
        metrics=(*MULTI_PROMPT, *WRITTEN, *ABSTENTION),
        estimates=estimates,
        counts={**shared.counts, **_counts(outcomes), **silent.counts},
        headlines=(
            *(unconcluded(h) if answers.mostly_empty else h for h in shared.headlines),
            *silent.headlines,
            headline(ONE_WORD.named("One-word rate, answers of exactly one word")),
        ),
        tables=shown(
            *shared.tables,
            *silent.tables,
            _length_table(estimates, outcomes),
            _template_table(outcomes, floor),
            _prompt_table(outcomes, style, seed),
        ),
        figures=(
            *shared.figures,
            *shown(_length_figure(estimates)),
        ),
        findings=shown(
            nothing_said([answers], attempts),
            *(() if answers.mostly_empty else shared.findings),
            *silent.findings,
            *_findings(estimates, outcomes),
        ),
        notes=notes,
        judged=judged,
    )


def _sections(outcomes: Outcomes, draw: Draw, draws: int, seed: int) -> Sections:
    """What BELIEF reports of many prompts; two written answers agree if one holds the other."""
    judged, known = outcomes.judged, outcomes.known
    return sections(
        judged.grid,
        relations=known.relations,
        templates=known.templates,
        draw=draw,
        draws=draws,
        seed=seed,
        majority=outcomes.by_majority,
        consist=lambda part: consist_of_texts(part, judged.answers, alike, seed),
    )


def _by_length(outcomes: Outcomes, seed: int) -> dict[str, Estimate]:
    """Overconf from the probability of the whole answer, for each number of tokens and pooled."""
    grid, prompts = outcomes.judged.grid, outcomes.prompts
    short = prompts["tokens"].is_between(1, LONGEST).to_numpy()
    tokens, likely = (prompts[name].to_numpy()[short] for name in ("tokens", "likely"))
    right, pair = grid.right[short], grid.pair[short]
    clusters = grid.clusters[short]
    by_tokens = {length: value for length, value, _ in overconf_by(tokens, likely, right, clusters)}
    strata = Strata(grid.relations, grid.subjects, grid.ids)
    pooled = calibration(likely, right, pair, seed=seed, strata=strata)
    share = Sample(values=short.astype(np.float64), clusters=grid.clusters)
    missing = Estimate.not_measured()
    lengths = [by_tokens.get(length, missing) for length in range(1, LONGEST + 1)]
    values = (*lengths, pooled.overconf if pooled else missing)
    return {
        **{metric.id: value for metric, value in zip(BY_LENGTH, values, strict=True)},
        WITHIN.id: share.estimate(share.draws(seed)) if len(short) else missing,
    }


def _counts(outcomes: Outcomes) -> dict[str, int]:
    prompts, known = outcomes.prompts, outcomes.known
    asked = len(np.unique(known.template_relations))
    return {
        "empty_answers": _written(outcomes).empty,
        "unfinished_answers": int((~prompts["finished"]).sum()),
        "longer_than_5_tokens": int((prompts["tokens"] > LONGEST).sum()),
        "right_and_in_subject": int(outcomes.judged.grid.right[prompts["given"].to_numpy()].sum()),
        "relations_without_templates": len(known.relations) - asked,
    }


def _written(outcomes: Outcomes) -> Written:
    said = outcomes.prompts["said"]
    return Written(what="answers", empty=int((said == "").sum()), total=len(said))


def _summary(estimates: Estimates, counts: dict[str, int], answers: Written) -> str:
    if answers.mostly_empty:
        return f"{answers.empty:,} of {answers.total:,} answers are empty."
    value, control = (estimates[metric.id].value for metric in (ACC, MAJORITY))
    if value is None or control is None:
        return "No prompt was answered."
    return (
        f"{value:.1%} of a pair's prompts are answered correctly, on average over "
        f"{counts['pairs']:,} pairs ({counts['prompts']:,} prompts); always answering the "
        f"commonest object gives {control:.1%}."
    )


def _length_table(estimates: Estimates, outcomes: Outcomes) -> Table:
    tokens = outcomes.prompts["tokens"]
    counts = [int((tokens == length).sum()) for length in range(1, LONGEST + 1)]
    answers = dict(zip(BY_LENGTH, (*counts, sum(counts)), strict=True))
    fields: list[Field[Metric]] = [
        Field("tokens", lambda m: m.label, help="of the answer, without a closing full stop"),
        Field("answers", lambda m: answers[m], "count"),
        Field(
            "share",
            lambda m: answers[m] / len(tokens) if len(tokens) else None,
            "percent",
            "of all answers",
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


def _length_figure(estimates: Estimates) -> Curves:
    """Overconf of answers of one token, of two, and so on."""
    lengths = enumerate(BY_LENGTH[:LONGEST], 1)
    return Curves(
        id="overconf-by-length",
        title="Overconf by number of generated tokens",
        x_axis="tokens of the answer",
        y_axis="mean probability of the whole answer minus the accuracy",
        x_kind="number",
        curves=(curve("Overconf", ((float(n), estimates[m.id]) for n, m in lengths)),),
        note=f"Above 0 the model is too sure. {WHISKERS}",
    )


def _template_table(outcomes: Outcomes, floor: int) -> Table:
    grid, known = outcomes.judged.grid, outcomes.known
    rows = overconf_by_each(grid, outcomes.judged.sure, floor)
    fields: list[Field[tuple[int, Estimate, int]]] = [
        Field("relation", lambda row: known.relations[known.template_relations[row[0]]].id),
        Field("template", lambda row: known.templates[row[0]].text),
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


def _prompt_table(outcomes: Outcomes, style: Style, seed: int) -> Table:
    grid, known = outcomes.judged.grid, outcomes.known
    places = np.column_stack([grid.pair, grid.template, grid.name])
    chosen = drawn([":".join(map(str, place)) for place in places.tolist()], seed, SHOWN)
    pairs = [known.pairs[pair] for pair in grid.pair[chosen]]
    names = [pair.names[n] for pair, n in zip(pairs, grid.name[chosen], strict=True)]
    templates = [known.templates[number] for number in grid.template[chosen]]
    asked = [question(t, name, style) for t, name in zip(templates, names, strict=True)]
    owners = known.pair_relations[grid.pair[chosen]]
    correct = [", ".join(each[0] for each in pair.objects) for pair in pairs]
    texts = [text.strip() for text in outcomes.prompts["text"][chosen]]
    sure, verdicts = grid.confidence[chosen], outcomes.judged.verdicts().gather(chosen)
    fields: list[Field[int]] = [
        Field("relation", [titled(known.relations[owner]) for owner in owners]),
        Field("subject", names),
        Field("question", asked, help="the last one; what stands before it is not shown"),
        Field("template", [template.source for template in templates], help="where it comes from"),
        Field("correct", correct, help="every object that counts, by its usual name"),
        Field("answer", texts, help="as the model wrote it"),
        Field("confidence", sure, "percent", "share of drawn answers that match"),
        Field("verdict", verdicts.replace("empty", "wrong").to_list(), "verdict"),
    ]
    rows, total = range(len(chosen)), len(places)
    return browse(rows, fields, id="prompts", title="Prompts", total=total, what="prompts")


def _findings(estimates: Estimates, outcomes: Outcomes) -> Iterator[str]:
    total, within = len(outcomes.prompts), estimates[WITHIN.id].value
    counts = _counts(outcomes)
    cut, empty = counts["unfinished_answers"], counts["empty_answers"]
    if MANY * total < empty <= total / 2:
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
