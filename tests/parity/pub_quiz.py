"""BEAR through sonde and through lm-pub-quiz, token by token; `python -m tests.parity.pub_quiz`.

Needs SONDE_SHARED, the model smollm2 and, but for the golden scores, lm-pub-quiz 0.3.3, which
brings pandas, scikit-learn and datasets with it and is therefore no part of the tests' environment.
`--write` makes the golden scores anew; they hold numbers and ids, none of BEAR's sentences.
benchmarks/bear.py compares more, and the time.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import sonde
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset, Selection
from sonde.probes.bear import Bear
from sonde.probes.lama import Lama
from tests.rows import asked

GOLDEN = Path(__file__).parent.parent / "golden" / "lm-pub-quiz.jsonl"
MASKED = GOLDEN.with_name("lm-pub-quiz-masked.jsonl")
CHOSEN = {"P27": 3, "P105": 6}
"""Relations of the golden scores with how many facts: 25 objects, which end the sentence or open
it; and five inside it, some of whose subjects begin with a small letter."""

TOLERANCE = 2e-4
SEED = 2

FEW = {"P27": 1, "P105": 2}
"""The same for masked models, whose sentences are scored in several modes."""

MODES: Mapping[str, tuple[Bear, dict[str, Any]]] = {
    "words": (Bear(), {"pll_metric": "within_word_l2r"}),
    "answer": (Bear(mask="answer"), {"pll_metric": "answer_l2r+word_l2r"}),
    "answer alone": (
        Bear(mask="answer", score="answer"),
        {"pll_metric": "answer_l2r+word_l2r", "conditional_score": True},
    ),
    "words of the answer": (
        Bear(score="answer"),
        {"pll_metric": "within_word_l2r", "conditional_score": True},
    ),
}
"""Modes of masked models: the probe, and lm-pub-quiz's settings."""

ENCODER = "models/encoder-11m"

Rows = Sequence[Sequence[float]]
"""Log-probabilities of the tokens of a sentence, for each option."""

Scores = list[list[float]]


def bear(shared: Path, relation: str, facts: int) -> Dataset:
    """A relation of BEAR, asking about some of its facts; one begins with a small letter."""
    dataset = sonde.dataset(f"bear:{shared / 'data/bear'}")
    return dataset.select(Selection(relations=(relation,), limit=facts, seed=SEED))


def ours(model: Any, probe: Lama | Bear, dataset: Dataset) -> dict[tuple[str, int], Scores]:
    """What sonde stores: the tokens that count, by fact and number of the template."""
    prompts = asked(probe.suited(frozenset({"score"})), dataset)
    found = {}
    for i, answer in one_by_one(model.score(prompts)):
        after = answer.suffix_logps or ((),) * len(answer.options)
        rows = [[*own, *rest] for own, rest in zip(answer.logps, after, strict=True)]
        key = prompts[i].key
        found[key.fact, int(key.template.rpartition("-")[2])] = rows
    return found


def theirs(evaluator: Any, dataset: Dataset, template: int) -> dict[tuple[str, int], Scores]:
    """What lm-pub-quiz scores: the tokens of the sentence that count, by fact."""
    (relation,) = dataset.asked_relations()
    options = list(dataset.object_names(relation.id))
    found = {}
    for fact in dataset.asked(relation.id):
        scored = evaluator.score_answers(
            template=relation.templates[template - 1].text,
            answers=options,
            subject=fact.subject.name,
            reduction=None,
            batch_size=len(options),
        )
        rows = [[float(score) for _, score in tokens] for tokens, _ in scored]
        found[fact.id, template] = rows
    return found


def as_lm_pub_quiz(template: int) -> Lama:
    """The probe with the settings that lm-pub-quiz has."""
    return Lama(template_no=template, capitalize=True, punctuation=True)


def opened(name: str = "smollm2") -> Any:
    """SmolLM2, its texts opened with BOS as lm-pub-quiz opens them."""
    return sonde.model(name, bos="always", device="cpu", dtype="float32")


def encoder(shared: Path) -> Any:
    """A masked model in full precision."""
    return sonde.model(f"hf:{shared / ENCODER}", device="cpu", dtype="float32")


def evaluator(model: Any, kind: str = "CLM", **mode: Any) -> Any:
    """lm-pub-quiz on the same weights, loaded anew by itself."""
    import torch
    from lm_pub_quiz import Evaluator

    folder = model.loaded.tokenizer.name_or_path
    precise = {"dtype": torch.float32}
    return Evaluator.from_model(folder, model_type=kind, device="cpu", model_kw=precise, **mode)


def gaps(own: Rows, other: Rows) -> list[float]:
    """The difference of every token that sonde scores: those at the end of the sentence."""
    pairs = zip(own, other, strict=True)
    return [
        abs(a - b) for mine, all_ in pairs for a, b in zip(mine, all_[-len(mine) :], strict=True)
    ]


def first(rows: Rows) -> int:
    """The option whose tokens are likeliest together."""
    return int(np.argmax([sum(row) for row in rows]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Some facts in one sentence: the largest difference of a token, and other first answers.

    `plain`: first answers that differ where neither BOS nor the two settings are given.
    """

    facts: int
    tokens: int
    largest: float
    differing: int
    plain: int


def compared(model: Any, quiz: Any, dataset: Dataset, template: int) -> Compared:
    """Ask both the same."""
    own = ours(model, as_lm_pub_quiz(template), dataset)
    other = theirs(quiz, dataset, template)
    bare = ours(without_bos(model), Lama(template_no=template), dataset)
    found = [gap for fact, rows in own.items() for gap in gaps(rows, other[fact])]
    return Compared(
        facts=len(own),
        tokens=len(found),
        largest=max(found),
        differing=sum(first(rows) != first(other[fact]) for fact, rows in own.items()),
        plain=sum(first(rows) != first(other[fact]) for fact, rows in bare.items()),
    )


def without_bos(model: Any) -> Any:
    """The same model as it is asked by default."""
    loaded = model.loaded
    return type(model)(replace(loaded, options=replace(loaded.options, bos="auto")))


def golden(quiz: Any, shared: Path) -> Iterator[str]:
    """The golden scores, a line for each fact in each sentence."""
    for relation, facts in CHOSEN.items():
        dataset = bear(shared, relation, facts)
        for template in (1, 2, 3):
            for (fact, _), rows in theirs(quiz, dataset, template).items():
                yield _line(fact, template, rows)


def masked_golden(model: Any, shared: Path) -> Iterator[str]:
    """The golden scores of a masked model, a line for each fact in each sentence and mode."""
    for name, (_, mode) in MODES.items():
        quiz = evaluator(model, "MLM", **mode)
        for relation, facts in FEW.items():
            dataset = bear(shared, relation, facts)
            for template in (1, 2, 3):
                for (fact, _), rows in theirs(quiz, dataset, template).items():
                    yield _line(fact, template, rows, mode=name)


def _line(fact: str, template: int, rows: Rows, **more: str) -> str:
    scores = [[round(score, 5) for score in row] for row in rows]
    return json.dumps({"fact": fact, "template": template, **more, "scores": scores})


def main() -> None:
    """Compare, or write the golden scores."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--relations", nargs="+", default=list(CHOSEN))
    options.add_argument("--facts", type=int, default=40)
    options.add_argument("--write", action="store_true", help=f"write {GOLDEN.name}")
    given = options.parse_args()
    shared, model = Path(os.environ["SONDE_SHARED"]), opened()
    quiz = evaluator(model)
    if given.write:
        made = {GOLDEN: golden(quiz, shared), MASKED: masked_golden(encoder(shared), shared)}
        for path, lines in made.items():
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return
    for relation in given.relations:
        dataset = bear(shared, relation, given.facts)
        for template in (1, 2, 3):
            print(relation, template, compared(model, quiz, dataset, template), flush=True)


if __name__ == "__main__":
    main()
