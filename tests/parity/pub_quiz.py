"""BEAR through sonde and through lm-pub-quiz, token by token; `python -m tests.parity.pub_quiz`.

Needs SONDE_SHARED, the model smollm2 and, but for the golden scores, lm-pub-quiz 0.3.3, which
brings pandas, scikit-learn and datasets with it and is therefore no part of the tests' environment.
`--write` makes the golden scores anew; they hold numbers and ids, none of BEAR's sentences.
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
from sonde.core.facts import Dataset, Fact, Selection
from sonde.probes.lama.probe import Lama
from tests import worlds
from tests.rows import asked
from tests.worlds import dataset_of, entity

GOLDEN = Path(__file__).parent.parent / "golden" / "lm-pub-quiz.jsonl"
CHOSEN = {"P27": 3, "P105": 6}
"""Relations of the golden scores with how many facts: 25 objects, which end the sentence or open
it; and five inside it, some of whose subjects begin with a small letter."""

TOLERANCE = 2e-4

Rows = Sequence[Sequence[float]]
"""Log-probabilities of the tokens of a sentence, for each option."""


def bear(shared: Path, relation: str, facts: int) -> Dataset:
    """A relation of BEAR, asking about some of its facts; its objects are the answer space."""
    folder = shared / "data/bear"
    known = json.loads((folder / "metadata_relations.json").read_text("utf-8"))[relation]
    lines = (folder / f"{relation}.jsonl").read_text("utf-8").splitlines()
    made = [_fact(relation, json.loads(line)) for line in lines]
    dataset = dataset_of(made, worlds.relation(relation, *known["templates"]), name="bear")
    assert set(dataset.object_names(relation)) == set(known["answer_space_labels"])
    return dataset.select(Selection(relations=(relation,), limit=facts))


def _fact(relation: str, row: Mapping[str, str]) -> Fact:
    subject = entity(row["sub_label"], id=row["sub_id"])
    right = entity(row["obj_label"], id=row["obj_id"])
    return worlds.fact(relation, subject, right, id=f"{relation}:{row['sub_id']}")


def ours(model: Any, probe: Lama, dataset: Dataset) -> dict[str, list[list[float]]]:
    """What sonde stores: the tokens from the answer on, by fact."""
    prompts = asked(probe.suited(frozenset({"score"})), dataset)
    found = {}
    for i, answer in one_by_one(model.score(prompts)):
        after = answer.suffix_logps or ((),) * len(answer.options)
        rows = [[*own, *rest] for own, rest in zip(answer.logps, after, strict=True)]
        found[prompts[i].key.fact] = rows
    return found


def theirs(evaluator: Any, dataset: Dataset, template: int) -> dict[str, list[list[float]]]:
    """What lm-pub-quiz scores: all tokens of the sentence, by fact."""
    (relation,) = dataset.relations
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
        found[fact.id] = [[float(score) for _, score in tokens] for tokens, _ in scored]
    return found


def as_lm_pub_quiz(template: int) -> Lama:
    """The probe with the settings that lm-pub-quiz has."""
    return Lama(template=template, capitals=True, punctuation=True)


def opened(name: str = "smollm2") -> Any:
    """SmolLM2, its texts opened with BOS as lm-pub-quiz opens them."""
    return sonde.model(name, bos="always", device="cpu", dtype="float32")


def evaluator(model: Any) -> Any:
    """lm-pub-quiz on the same weights, loaded anew by itself."""
    from lm_pub_quiz import Evaluator

    folder = model.loaded.tokenizer.name_or_path
    return Evaluator.from_model(folder, model_type="CLM", device="cpu")


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
    bare = ours(without_bos(model), Lama(template=template), dataset)
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
            for fact, rows in theirs(quiz, dataset, template).items():
                scores = [[round(score, 5) for score in row] for row in rows]
                yield json.dumps({"fact": fact, "template": template, "scores": scores})


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
        GOLDEN.write_text("".join(f"{line}\n" for line in golden(quiz, shared)), encoding="utf-8")
        return
    for relation in given.relations:
        dataset = bear(shared, relation, given.facts)
        for template in (1, 2, 3):
            print(relation, template, compared(model, quiz, dataset, template), flush=True)


if __name__ == "__main__":
    main()
