"""100 samples of BELIEF-ICL-like prompts: counts split down a tree, against transformers' generate.

Prompts are made from the bundled dataset: an instruction, four examples of the same relation and
template, and the question. Both draw from SmolLM2 as it is (full vocabulary, temperature 1) up to
the end of the line, on the same machine in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from time import perf_counter

import torch

import sonde
from benchmarks.common import Positions, Result, parser, tell
from sonde.core.facts import Dataset, Fact, Relation, Template
from sonde.core.prompts import Key, Prompt, Sample
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode.steps import end_tokens

NAME = "samples"
INSTRUCTION = "Predict the [MASK] in each sentence in one word."
SHOTS = 4
PER_RELATION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Token positions fed, seconds taken, and the texts drawn for each prompt with their counts."""

    positions: int
    seconds: float
    texts: list[dict[str, int]]


def prompts(data: Dataset, want: Sample, number: int) -> Iterator[Prompt]:
    """Prompts of one relation after the other, several behind the same examples."""
    made = 0
    while True:
        for relation in data.asked_relations():
            if made >= number:
                return
            template = next(t for t in relation.templates if t.answer_last)
            for prompt in of_relation(data, relation, template, want):
                if made < number:
                    yield prompt
                    made += 1
        want = Sample(count=want.count, most=want.most, until=want.until, seed=want.seed + 1)


def of_relation(
    data: Dataset, relation: Relation, template: Template, want: Sample
) -> Iterator[Prompt]:
    facts = list(data.facts(relation.id))
    chosen = Random(f"{want.seed}:{relation.id}").sample(facts, SHOTS + PER_RELATION)
    lines = [INSTRUCTION]
    for fact in chosen[:SHOTS]:
        lines += [question(template, fact), f"A: {fact.objects[0].name}."]
    for fact in chosen[SHOTS:]:
        key = Key(
            fact=fact.id, relation=relation.id, template=template.id, subject=fact.subject.name
        )
        yield Prompt(key=key, prefix="\n".join([*lines, question(template, fact), "A:"]), want=want)


def question(template: Template, fact: Fact) -> str:
    before, after = template.fill(fact.subject.name)
    return f"Q: {before}[MASK]{after}"


def ours(model: CausalModel, asked: list[Prompt]) -> Measured:
    began = perf_counter()
    with Positions(model.model) as fed:
        found = dict(model.sample(asked))
    took = perf_counter() - began
    texts = [dict(zip(found[i].texts, found[i].counts, strict=True)) for i in range(len(asked))]
    return Measured(positions=fed.count, seconds=took, texts=texts)


def theirs(model: CausalModel, asked: list[Prompt], stops: list[int]) -> tuple[Measured, int]:
    """transformers, a prompt at a time; also the least that independent samples would need.

    That least: the prompt once, and of each sample the tokens up to the one that ends it.
    """
    torch.manual_seed(0)
    texts, least, taken, fed_in_all = [], 0, 0.0, 0
    for prompt in asked:
        ids, want = list(model.encoder.open(prompt.prefix)), prompt.want
        assert isinstance(want, Sample)
        began = perf_counter()
        with Positions(model.model) as fed:
            rows = generate(model, ids, want, stops)
            texts.append(tallied(model, [row[len(ids) :] for row in rows], want.until))
        taken += perf_counter() - began
        fed_in_all += fed.count
        least += len(ids) + sum(own_length(row[len(ids) :], stops) - 1 for row in rows)
    return Measured(positions=fed_in_all, seconds=taken, texts=texts), least


def generate(model: CausalModel, ids: list[int], want: Sample, stops: list[int]) -> list[list[int]]:
    given = torch.tensor([ids])
    made = model.model.generate(
        given,
        attention_mask=torch.ones_like(given),
        do_sample=True,
        num_return_sequences=want.count,
        max_new_tokens=want.most,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        eos_token_id=stops,
        pad_token_id=stops[0],
    )
    rows: list[list[int]] = made.tolist()
    return rows


def own_length(row: list[int], stops: list[int]) -> int:
    """Tokens up to the first that ends the text, with it."""
    known = set(stops)
    return next((i + 1 for i, token in enumerate(row) if token in known), len(row))


def tallied(model: CausalModel, rows: list[list[int]], until: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in model.loaded.tokenizer.batch_decode(rows, skip_special_tokens=True):
        counts[text.split(until)[0]] = counts.get(text.split(until)[0], 0) + 1
    return counts


def stopping(model: CausalModel, until: str) -> list[int]:
    """Tokens that end a line or the text, so that generate can stop without decoding."""
    backend = model.loaded.backend
    lines = [i for i in range(backend.get_vocab_size()) if until in backend.decode([i])]
    return sorted({*lines, *end_tokens(model.loaded)})


def result(asked: int, count: int, tree: Measured, rows: Measured, least: int) -> Result:
    def row(name: str, positions: int, seconds: float | None) -> tuple[str, ...]:
        time = "" if seconds is None else f"{seconds:.1f}"
        faster = "" if seconds is None else f"{seconds / tree.seconds:.1f}×"
        return name, f"{positions:,}", f"{positions / tree.positions:.1f}×", time, faster

    distinct = sum(len(texts) for texts in tree.texts) / asked
    return Result(
        name=NAME,
        title=f"{count} samples of each of {asked} BELIEF-ICL-like prompts, SmolLM2-135M",
        columns=("", "token positions", "of sonde's", "seconds", "of sonde's"),
        rows=(
            row("sonde", tree.positions, tree.seconds),
            row(f"generate(num_return_sequences={count})", rows.positions, rows.seconds),
            row("prompt once, each sample's own tokens", least, None),
        ),
        findings=(
            f"{distinct:.0f} distinct texts of {count} per prompt on average.",
            "The commonest text has "
            f"{share(tree):.1%} of the draws with sonde and {share(rows):.1%} with generate.",
            "The last row is counted, not run: what independent samples need at least if the "
            "prompt is computed once and no row waits for another.",
        ),
    )


def share(measured: Measured) -> float:
    """Mean share of the commonest text."""
    shares = [max(texts.values()) / sum(texts.values()) for texts in measured.texts]
    return sum(shares) / len(shares)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--prompts", type=int, default=16, help="how many prompts (16)")
    options.add_argument("--count", type=int, default=100, help="samples of each (100)")
    options.add_argument("--most", type=int, default=16, help="tokens of a sample at most (16)")
    chosen = options.parse_args()
    model = sonde.model("smollm2")
    assert isinstance(model, CausalModel)
    want = Sample(count=chosen.count, most=chosen.most)
    asked = list(prompts(sonde.dataset("atlas"), want, chosen.prompts))
    stops = stopping(model, want.until)
    ours(model, asked[:1])
    model.prefixes.clear()
    tree = ours(model, asked)
    rows, least = theirs(model, asked, stops)
    tell(result(len(asked), chosen.count, tree, rows, least), write=chosen.write)


if __name__ == "__main__":
    main()
