"""MONITOR's prompts: the object scored and an answer written after the same text, against apart.

Prompts are those of `monitor` on the bundled dataset, as questions and answers after four examples.
Together is what a run does; apart is the same model asked for all scores and then for all texts,
each prompt read twice. Both on the same machine in the same run, in turns. Seconds are those of the
processor, so that it matters little what else the machine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from time import process_time

import torch

import sonde
from benchmarks.common import Positions, Result, parser, tell
from sonde.core.answers import Answer, Generated, Scored
from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt, Score, prompts_of
from sonde.models.torch.causal.model import CausalModel
from sonde.probes.monitor import Monitor
from sonde.runs.shards import answer

NAME = "together"

Way = Callable[[CausalModel, list[Prompt]], Iterator[tuple[int, Answer]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Token positions fed, processor seconds of every turn, and the answers."""

    positions: int
    seconds: list[float]
    answers: dict[int, Answer]


def asked(facts: int) -> list[Prompt]:
    """Every prompt of some facts, relation by relation."""
    data = sonde.dataset("atlas")
    prompts = prompts_of(Monitor(frame="qa", shots=4).ask(data))
    found: dict[str, dict[str, list[Prompt]]] = {}
    for prompt in prompts:
        found.setdefault(prompt.key.relation, {}).setdefault(prompt.key.fact, []).append(prompt)
    per_relation = -(-facts // len(found))
    chosen = [own for of in found.values() for own in islice(of.values(), per_relation)]
    return [prompt for own in chosen[:facts] for prompt in own]


def together(model: CausalModel, prompts: list[Prompt]) -> Iterator[tuple[int, Answer]]:
    """As a run asks them."""
    return one_by_one(answer(model, prompts))


def apart(model: CausalModel, prompts: list[Prompt]) -> Iterator[tuple[int, Answer]]:
    """All scores, then all texts."""
    scores = [i for i, prompt in enumerate(prompts) if isinstance(prompt.want, Score)]
    writes = [i for i, prompt in enumerate(prompts) if not isinstance(prompt.want, Score)]
    for k, scored in one_by_one(model.score([prompts[i] for i in scores])):
        yield scores[k], scored
    for k, written in model.generate([prompts[i] for i in writes]):
        yield writes[k], written


def turn(way: Way, model: CausalModel, prompts: list[Prompt]) -> Measured:
    model.prefixes.clear()
    began = process_time()
    with Positions(model.model) as fed:
        answers = dict(way(model, prompts))
    return Measured(positions=fed.count, seconds=[process_time() - began], answers=answers)


def merged(turns: list[Measured]) -> Measured:
    seconds = [second for each in turns for second in each.seconds]
    return Measured(positions=turns[0].positions, seconds=seconds, answers=turns[0].answers)


def farthest(one: Measured, other: Measured) -> tuple[float, int, int]:
    """The largest difference of two log-probabilities, texts that are equal, and texts."""
    gap, same, texts = 0.0, 0, 0
    for i, a in one.answers.items():
        b = other.answers[i]
        if isinstance(a, Scored) and isinstance(b, Scored):
            pairs = zip(sum(a.logps, ()), sum(b.logps, ()), strict=True)
            gap = max(gap, *(abs(x - y) for x, y in pairs))
        elif isinstance(a, Generated) and isinstance(b, Generated):
            texts, same = texts + 1, same + (a.text == b.text)
    return gap, same, texts


def result(prompts: list[Prompt], one: Measured, other: Measured, threads: int) -> Result:
    facts = len({prompt.key.fact for prompt in prompts})
    gap, same, texts = farthest(one, other)
    ratios = sorted(b / a for a, b in zip(one.seconds, other.seconds, strict=True))

    def row(name: str, measured: Measured) -> tuple[str, ...]:
        of = measured.positions / one.positions
        took = median(measured.seconds)
        times = f"{took / median(one.seconds):.2f}×"
        return name, f"{measured.positions:,}", f"{of:.2f}×", f"{took:.1f}", times

    return Result(
        name=NAME,
        title=f"{len(prompts)} prompts of monitor about {facts} facts (qa, 4 shots), SmolLM2-135M",
        columns=("", "token positions", "of together", "processor seconds (median)", "of together"),
        rows=(row("together", one), row("apart", other)),
        findings=(
            f"{same} of {texts} written texts are equal; log-probabilities differ by {gap:.1e} "
            "at most.",
            f"Apart took {ratios[0]:.2f} to {ratios[-1]:.2f} times as long in {len(ratios)} turns, "
            f"torch on {threads} thread{'s' if threads > 1 else ''}.",
        ),
    )


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--facts", type=int, default=6, help="facts that are asked about (6)")
    options.add_argument("--turns", type=int, default=3, help="how often each is measured (3)")
    chosen = options.parse_args()
    model = sonde.model("smollm2")
    assert isinstance(model, CausalModel)
    prompts = asked(chosen.facts)
    for way in (together, apart):
        turn(way, model, prompts[:4])
    pairs = [
        (turn(together, model, prompts), turn(apart, model, prompts)) for _ in range(chosen.turns)
    ]
    one, other = merged([a for a, _ in pairs]), merged([b for _, b in pairs])
    tell(result(prompts, one, other, torch.get_num_threads()), write=chosen.write)


if __name__ == "__main__":
    main()
