"""BELIEF-ICL's answers judged, a row for each prompt, whatever order they come in.

Knows written and drawn answers, nothing of estimates or tables. Texts are compared in a loop; what
is asked twice of the same words is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, nan
from typing import TYPE_CHECKING, cast

import numpy as np

from sonde.core.answers import Generated, Sampled
from sonde.core.columns import Given, in_blocks
from sonde.core.facts import Dataset, commonest_objects
from sonde.metrics.judged import Bools, Grid, Judged, in_words
from sonde.prompting.matching import alike, normal, within, word_count
from sonde.prompting.pairs import AskedPairs, Keys

if TYPE_CHECKING:
    from polars import DataFrame

PLACE = {"pair": int, "template": int, "name": int}
WRITTEN = {"text": str, "tokens": int, "likely": float, "words": float, "finished": bool}

Place = tuple[int, int, int]
"""The numbers of a prompt's pair, template and name."""

Holds = Callable[[int, str], bool]
"""Whether a correct name of a pair stands in a text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Every judged prompt, by pair, template and name, and what else is known of each.

    `prompts` has as many rows: the `text` that was written, its `tokens` without a closing full
    stop, how `likely` these are together, its `words`, whether it `finished`, what it comes to
    (`said`), whether it says that the model does not know (`abstained`), and `given`: a correct
    name stands in the subject's, so that repeating the question is right. `by_majority`: for each
    pair, whether the commonest object is right.
    """

    known: AskedPairs
    judged: Judged
    prompts: DataFrame
    by_majority: Bools


def judge(
    dataset: Dataset,
    known: AskedPairs,
    answers: Given,
    *,
    languages: Sequence[str],
    abstains: Callable[[str], bool],
) -> Outcomes:
    """Judge answers in any order; of two to the same prompt the later one counts.

    `languages` that the answers to each relation are compared in.
    """
    from polars import DataFrame

    own = [languages[relation] for relation in known.pair_relations.tolist()]
    prompts, drawn = _gathered(known, answers, own)
    gold = [
        {normal(name, language) for names in pair.objects for name in names} - {""}
        for pair, language in zip(known.pairs, own, strict=True)
    ]

    @cache
    def holds(pair: int, text: str) -> bool:
        return any(within(name, text) for name in gold[pair])

    def says(text: str, names: Collection[str], template: int) -> bool:
        language = languages[known.template_relations[template]]
        return any(within(normal(name, language), text) for name in names)

    places: list[Place] = prompts.select(*PLACE).rows()
    said = [normal(text, own[p]) for (p, _, _), text in zip(places, prompts["text"], strict=True)]
    right = [holds(pair, text) for (pair, _, _), text in zip(places, said, strict=True)]
    given = [holds(p, normal(known.pairs[p].names[name], own[p])) for p, _, name in places]
    shares = [
        share_alike(text, drawn[place], own[place[0]]) if place in drawn else nan
        for place, text in zip(places, said, strict=True)
    ]
    silent = [abstains(text) for text in prompts["text"]]
    kinds = {"said": str, "given": bool, "abstained": bool}
    columns = DataFrame({"said": said, "given": given, "abstained": silent}, schema=kinds)
    prompts = prompts.hstack(columns)
    return Outcomes(
        known=known,
        judged=replace(_judged(known, prompts, right, shares), says=says),
        prompts=prompts,
        by_majority=_by_majority(dataset, known, holds, languages),
    )


def _gathered(
    known: AskedPairs, answers: Given, own: Sequence[str]
) -> tuple[DataFrame, dict[Place, Sampled]]:
    """What was written, a row for each prompt in order, and what was drawn, by place.

    Words are counted in each pair's `own` language.
    """
    import polars

    keys, drawn = Keys(known), dict[Place, Sampled]()
    blocks = [polars.DataFrame(schema={**PLACE, **WRITTEN})]
    for block in in_blocks(answers):
        places = polars.DataFrame(keys.places(block))
        if block.kind == "sampled":
            drawn.update(zip(places.rows(), cast(list[Sampled], block.columns), strict=True))
        elif block.kind == "generated":
            texts = cast(list[Generated], block.columns)
            pairs = zip(texts, places["pair"].to_list(), strict=True)
            logps = [answer_logps(answer) for answer in texts]
            columns = {
                "text": [answer.text for answer in texts],
                "tokens": [len(tokens) for tokens in logps],
                "likely": [exp(sum(tokens)) for tokens in logps],
                "words": [word_count(answer.text, own[pair]) for answer, pair in pairs],
                "finished": [answer.finished for answer in texts],
            }
            blocks.append(places.hstack(polars.DataFrame(columns, schema=WRITTEN)))
    prompts = polars.concat(blocks, how="vertical_relaxed")
    return prompts.unique(list(PLACE), keep="last", maintain_order=True).sort(*PLACE), drawn


def _judged(
    known: AskedPairs, prompts: DataFrame, right: Sequence[bool], shares: Sequence[float]
) -> Judged:
    answers = prompts["said"].unique().sort().to_list()
    numbers = {text: number for number, text in enumerate(answers)}
    tokens, likely = (prompts[name].to_numpy() for name in ("tokens", "likely"))
    return Judged(
        grid=Grid(
            **{name: prompts[name].to_numpy().astype(np.int64) for name in PLACE},
            right=np.array(right, dtype=np.bool_),
            answer=np.array([numbers[text] for text in prompts["said"]], dtype=np.int64),
            confidence=np.array(shares, dtype=np.float64),
            relations=known.pair_relations,
            template_relations=known.template_relations,
            subjects=known.subjects,
            ids=tuple(relation.id for relation in known.relations),
        ),
        relations=known.relations,
        pairs=tuple(pair.fact for pair in known.pairs),
        names=tuple(pair.names for pair in known.pairs),
        objects=tuple(in_words(names[0] for names in pair.objects) for pair in known.pairs),
        templates=known.templates,
        answers=tuple(answers),
        way="written",
        sure=np.where(tokens == 1, likely, nan),  # of one token, whose probability is the answer's
        matches=alike,
        words=prompts["words"].to_numpy(),
        abstained=prompts["abstained"].to_numpy() & ~np.array(right, dtype=np.bool_),
    )


def answer_logps(written: Generated) -> tuple[float, ...]:
    """The log-probabilities of an answer's tokens, less that of the full stop which closes it.

    The examples end so. It is a token of its own in nearly every tokenizer.
    """
    closed = written.text.rstrip().endswith((".", "。")) and len(written.logps) > 1
    return written.logps[:-1] if closed else written.logps


def share_alike(said: str, drawn: Sampled, language: str) -> float:
    """The share of drawn answers that match the written one, in either direction."""
    counts = zip(drawn.texts, drawn.counts, strict=True)
    return sum(n for text, n in counts if alike(said, normal(text, language))) / sum(drawn.counts)


def _by_majority(
    dataset: Dataset, known: AskedPairs, holds: Holds, languages: Sequence[str]
) -> Bools:
    ranked = [commonest_objects(dataset.split_frame(relation.id)) for relation in known.relations]
    guesses = [
        normal(objects[0][0], language) if objects else ""
        for objects, language in zip(ranked, languages, strict=True)
    ]
    owners = enumerate(known.pair_relations.tolist())
    return np.array([holds(pair, guesses[owner]) for pair, owner in owners], dtype=np.bool_)
