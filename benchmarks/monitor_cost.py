"""MONITOR's prompts against accuracy over the full grid of frames and wrong names.

MONITOR scores R + 1 + M prompts of a fact and writes one answer; an accuracy over every frame after
every wrong name writes R × (1 + M) answers. The same facts, model and machine, one after the other;
both share what begins alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import sonde
from benchmarks.common import Positions, Result, parser, tell
from sonde.core.prompts import Generate, Prompt, Score, prompts_of
from sonde.models.torch.causal.model import CausalModel
from sonde.probes.monitor import Monitor
from sonde.runs.shards import answer

NAME = "monitor_cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of the probe's prompts, answered."""

    name: str
    prompts: int
    positions: int
    seconds: float


def of_monitor(prompt: Prompt) -> bool:
    """Whether MONITOR needs the prompt: every score, and what is written after the right name."""
    return isinstance(prompt.want, Score) or prompt.own["cue"] == "right"


def of_grid(prompt: Prompt) -> bool:
    """Whether the accuracy over the full grid needs it."""
    return isinstance(prompt.want, Generate) and prompt.own["cue"] != "right"


def texts(prompts: list[Prompt]) -> int:
    """Prompts as the paper counts them: a text asked twice is one."""
    return len({(prompt.key.fact, prompt.prefix) for prompt in prompts})


def measured(name: str, model: CausalModel, prompts: list[Prompt]) -> Part:
    """Answer some prompts, with nothing kept from before."""
    model.prefixes.clear()
    began = perf_counter()
    with Positions(model.model) as fed:
        for _ in answer(model, prompts):
            pass
    taken = perf_counter() - began
    return Part(name=name, prompts=texts(prompts), positions=fed.count, seconds=taken)


def result(facts: int, parts: list[Part]) -> Result:
    """The parts beside each other, as multiples of the first."""
    first = parts[0]
    return Result(
        name=NAME,
        title=f"MONITOR and the full grid of {facts} facts (qa, 4 shots), SmolLM2-135M",
        columns=("", "prompts", "of MONITOR", "token positions", "of MONITOR", "time of MONITOR"),
        rows=tuple(
            (
                part.name,
                f"{part.prompts:,}",
                f"{part.prompts / first.prompts:.2f}×",
                f"{part.positions:,}",
                f"{part.positions / first.positions:.2f}×",
                f"{part.seconds / first.seconds:.2f}×",
            )
            for part in parts
        ),
    )


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__ or "")
    options.add_argument("--relations", default="P19,P30,P37,P103,P176", help="of atlas")
    options.add_argument("--facts", type=int, default=4, help="facts of each relation (4)")
    given = options.parse_args()
    relations = tuple(given.relations.split(","))
    data = sonde.dataset("atlas", relations=relations, limit=given.facts)
    prompts = list(prompts_of(Monitor(frame="qa", shots=4, frames=7, full=True).ask(data)))
    model = sonde.model("smollm2")
    assert isinstance(model, CausalModel)
    measured("warm-up", model, prompts[:4])
    parts = [
        measured("MONITOR", model, [p for p in prompts if of_monitor(p)]),
        measured("accuracy over the full grid", model, [p for p in prompts if of_grid(p)]),
    ]
    facts = len({(prompt.key.relation, prompt.key.fact) for prompt in prompts})
    tell(result(facts, parts), write=given.write)


if __name__ == "__main__":
    main()
