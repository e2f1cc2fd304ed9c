"""BEAR through sonde and through lm-pub-quiz: the same weights, the same sentences, token by token.

Scores of every sentence and first answers are compared over several relations; the time is taken
on one relation with sixty answers. Causal models, and masked ones in both modes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from benchmarks.common import Result, parser, seconds, tell
from sonde import dataset, model
from sonde.core.answers import Scored
from sonde.core.columns import one_by_one
from sonde.core.facts import Dataset, Selection
from sonde.core.prompts import Block
from sonde.probes.bear import Bear
from sonde.runs.shards import SHARD_WEIGHT, shards

NAME = "bear"
RELATIONS = "P19 P27 P30 P103 P105 P177 P291 P403 P412 P413 P2632 P4552"
SIXTY = "P36"
BATCHES = (1, 64)  # lm-pub-quiz takes one sentence at a time unless it is told otherwise
TOLERANCE = 2e-4

Rows = list[list[float]]
"""Log-probabilities of the tokens that count, for each answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A model and how its sentences are scored, in both programs."""

    name: str
    model: str
    probe: Bear
    mode: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What lm-pub-quiz calls such a model."""
        return "MLM" if self.mode else "CLM"


def ways(shared: Path, causal: str) -> Iterator[Way]:
    """SmolLM2, and two encoders in both modes."""
    yield Way(name="SmolLM2-135M", model=causal, probe=Bear(), mode={})
    for name in ("encoder-24m", "encoder-11m"):
        path = f"hf:{shared / 'models' / name}"
        words = {"pll_metric": "within_word_l2r"}
        yield Way(name=f"{name}, within_word_l2r", model=path, probe=Bear(), mode=words)
        alone = Bear(score="answer", mask="answer")
        given = {"pll_metric": "answer_l2r+word_l2r", "conditional_score": True}
        conditional = f"{name}, answer_l2r+word_l2r, conditional"
        yield Way(name=conditional, model=path, probe=alone, mode=given)


@dataclass(frozen=True)
class Both:
    """The two programs, with the same weights in the same precision."""

    way: Way
    device: str
    dtype: str

    @cached_property
    def ours(self) -> Any:
        """sonde's model."""
        return model(self.way.model, device=self.device, dtype=self.dtype)

    @cached_property
    def theirs(self) -> Any:
        """lm-pub-quiz's evaluator, which loads the weights by itself."""
        import torch
        from lm_pub_quiz import Evaluator

        return Evaluator.from_model(
            self.ours.loaded.tokenizer.name_or_path,
            model_type=self.way.kind,
            device=self.device,
            model_kw={"dtype": getattr(torch, self.dtype)},
            **self.way.mode,
        )

    def by_sonde(self, asked: Dataset, templates: int) -> dict[tuple[str, str], Rows]:
        """Every token's score by fact and template, shard by shard as a run goes."""
        found = {}
        for shard in shards(blocks(self.way.probe, asked, templates), SHARD_WEIGHT):
            for i, answer in one_by_one(self.ours.score(shard)):
                key = shard[i].key
                found[key.fact, key.template] = rows_of(answer)
        return found

    def by_quiz(self, asked: Dataset, templates: int) -> dict[tuple[str, str], Rows]:
        """The same by lm-pub-quiz, all answers of a fact in one batch."""
        found = {}
        for block in blocks(self.way.probe, asked, templates):
            for prompt in block.prompts():
                scored = self.scored(asked, prompt, None, 64)
                key = prompt.key
                found[key.fact, key.template] = [[float(s) for _, s in row] for row, _ in scored]
        return found

    def scored(self, asked: Dataset, prompt: Any, reduction: str | None, batch: int) -> Any:
        """What lm-pub-quiz gives for one sentence with a gap."""
        templates = asked.relation(prompt.key.relation).templates
        return self.theirs.score_answers(
            template=next(t.text for t in templates if t.id == prompt.key.template),
            answers=list(prompt.want.options),
            subject=prompt.key.subject,
            reduction=reduction,
            batch_size=batch,
        )

    def seconds_each(self, asked: Dataset, few: int) -> tuple[float, list[float]]:
        """Seconds for a gap with its answers: sonde's, and lm-pub-quiz's by batch size.

        sonde is asked about all facts, since they share work, lm-pub-quiz about the first few.
        """
        every = list(blocks(self.way.probe, asked, 3))
        prompts = [prompt for block in every for prompt in block.prompts()]

        def ask() -> None:
            for shard in shards(every, SHARD_WEIGHT):
                list(self.ours.score(shard))

        ours = seconds(ask, warm=lambda: list(self.ours.score(prompts[:2]))) / len(prompts)
        some = prompts[: 3 * few]

        def quiz(batch: int) -> None:
            for prompt in some:
                self.scored(asked, prompt, "sum", batch)

        self.scored(asked, prompts[0], "sum", 64)
        return ours, [seconds(partial(quiz, batch)) / len(some) for batch in BATCHES]


def blocks(probe: Bear, asked: Dataset, templates: int) -> Iterator[Block]:
    """What the probe asks, in the first few templates of each relation."""
    for block in probe.ask(asked):
        relation = asked.relation(block.frame["relation"][0])
        kept = [template.id for template in relation.templates[:templates]]
        yield replace(block, frame=block.frame.filter(block.frame["template"].is_in(kept)))


def rows_of(answer: Any) -> Rows:
    """All tokens of each answer's sentence that count."""
    assert isinstance(answer, Scored)
    after = answer.suffix_logps or ((),) * len(answer.options)
    return [[*own, *rest] for own, rest in zip(answer.logps, after, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two programs agree: sentences with a gap, answers, and the largest differences.

    `over` of `tokens` differ by more than the tolerance; `where` the largest difference stands.
    """

    gaps: int
    sentences: int
    tokens: int
    over: int
    where: str
    token: float
    sentence: float
    other: int


def agreement(ours: Mapping[Any, Rows], theirs: Mapping[Any, Rows]) -> Agreement:
    """Compare what both gave; they must have scored as many tokens."""
    if ours.keys() != theirs.keys():
        raise SystemExit("the programs were asked other things; there is nothing to compare")
    tokens, sums, other = [(0.0, "")], [0.0], 0
    for key, rows in ours.items():
        known = theirs[key]
        if [len(row) for row in rows] != [len(row) for row in known]:
            raise SystemExit(f"{key}: the programs score other tokens")
        for answer, (row, their) in enumerate(zip(rows, known, strict=True)):
            place = f"{key}, answer {answer}"
            pairs = zip(row, their, strict=True)
            tokens += [(abs(a - b), f"{place}: {a:.4f} and {b:.4f}") for a, b in pairs]
            sums.append(abs(sum(row) - sum(their)))
        other += first(rows) != first(known)
    sentences = sum(map(len, ours.values()))
    largest, where = max(tokens)
    return Agreement(
        gaps=len(ours),
        sentences=sentences,
        tokens=len(tokens) - 1,
        over=sum(gap > TOLERANCE for gap, _ in tokens),
        where=where,
        token=largest,
        sentence=max(sums),
        other=other,
    )


def first(rows: Rows) -> int:
    """The answer whose tokens are likeliest together."""
    totals = [sum(row) for row in rows]
    return totals.index(max(totals))


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--relations", nargs="+", default=RELATIONS.split())
    options.add_argument("--facts", type=int, default=40, help="facts of each relation")
    options.add_argument("--templates", type=int, default=3, help="templates of each relation")
    options.add_argument("--speed", default=SIXTY, help="relation that the time is taken on")
    options.add_argument("--timed", type=int, default=24, help="facts that sonde is timed on")
    options.add_argument("--few", type=int, default=2, help="facts that lm-pub-quiz is timed on")
    options.add_argument("--device", default="cpu")
    options.add_argument("--dtype", default="float32")
    options.add_argument("--causal", default="smollm2", help="what SmolLM2 is called here")
    options.add_argument("--only", nargs="+", default=[""], help="only ways that begin so")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    shared = Path(os.environ["SONDE_SHARED"])
    bear = dataset(f"bear:{shared / 'data/bear'}")
    asked = bear.select(Selection(relations=tuple(given.relations), limit=given.facts))
    sixty = bear.select(Selection(relations=(given.speed,), limit=given.timed))
    found = []
    for way in ways(shared, given.causal):
        if way.name.startswith(tuple(given.only)):
            both = Both(way, given.device, given.dtype)
            ours = both.by_sonde(asked, given.templates)
            same = agreement(ours, both.by_quiz(asked, given.templates))
            found.append((way, same, *both.seconds_each(sixty, given.few)))
            print(*found[-1], sep="\n", flush=True)
    tell(as_result(asked, sixty, found), write=given.write)


def as_result(asked: Dataset, sixty: Dataset, found: Sequence[Any]) -> Result:
    """The table, and what it shows."""
    relations = asked.asked_relations()
    facts = sum(asked.asked_frame(relation.id).height for relation in relations)
    answers = len(sixty.object_names(sixty.asked_relations()[0].id))
    rows = [
        (
            way.name,
            f"{same.gaps:,}",
            f"{same.sentences:,}",
            f"{same.over:,} of {same.tokens:,}",
            f"{same.token:.1e}",
            f"{same.sentence:.1e}",
            str(same.other),
            f"{1000 * ours:,.1f}",
            *(f"{1000 * each:,.0f}" for each in theirs),
            *(f"{each / ours:,.0f}" for each in theirs),
        )
        for way, same, ours, theirs in found
    ]
    token, sentence = (
        max(getattr(same, what) for _, same, *_ in found) for what in ("token", "sentence")
    )
    other = sum(same.other for _, same, *_ in found)
    within = "within" if token <= TOLERANCE else "not within"
    return Result(
        name=NAME,
        title="BEAR beside lm-pub-quiz",
        columns=(
            *("way", "gaps", "sentences", f"tokens over {TOLERANCE:g}"),
            *("largest Δ, token", "largest Δ, sentence", "other answers"),
            *("sonde, ms/gap", *(f"lm-pub-quiz, batches of {size}, ms/gap" for size in BATCHES)),
            *(f"times, {size}" for size in BATCHES),
        ),
        rows=tuple(rows),
        findings=(
            f"{len(relations)} relations and {facts:,} facts. A gap is a fact in a template, a "
            "sentence that with one of the answers. Largest difference of a token's score: "
            f"{token:.1e} nats, {within} {TOLERANCE:g}; of a whole sentence's: {sentence:.1e}. "
            f"Other first answers: {other}.",
            f"The time is that of {sixty.asked_relations()[0].title} with {answers} answers: "
            f"{sixty.selection.limit} facts by sonde, the first few of them by lm-pub-quiz, whose "
            "own default is batches of 1.",
        ),
    )


if __name__ == "__main__":
    main()
