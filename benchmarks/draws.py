"""Draws that change with the batch, in every precision: down the tree, and tokens laid end to end.

Twenty prompts are drawn from all at once, and then one by one, with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import torch

import sonde
from benchmarks.common import Result, parser, tell
from sonde.core.answers import Sampled
from sonde.core.prompts import Key, Prompt, Sample
from sonde.doctor.precision import moved_draws
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.decode import writer

NAME = "draws"
PLACES = ("France", "Norway", "Japan", "Peru", "Ghana", "Nepal", "Cuba", "Chad", "Italy", "Kenya")
TEXTS = tuple(
    f"{what} {place} is" for what in ("The capital of", "A famous person from") for place in PLACES
)
WAYS = {"down the tree": (torch.bfloat16, torch.float16, torch.float32), "end to end": ()}


def prompts(count: int, most: int) -> list[Prompt]:
    want = Sample(count=count, most=most)
    keys = [Key(fact=text, relation="P36", template="t", subject=text) for text in TEXTS]
    return [Prompt(key=key, prefix=key.fact, want=want) for key in keys]


def drawn(model: CausalModel, asked: Sequence[Prompt], part: int) -> list[Sampled]:
    found: list[Sampled] = []
    for i in range(0, len(asked), part):
        answers = sorted(model.sample(asked[i : i + part]), key=lambda pair: pair[0])
        found += [answer for _, answer in answers]
    return found


def moved(model: CausalModel, asked: Sequence[Prompt]) -> int:
    pairs = zip(drawn(model, asked, 1), drawn(model, asked, len(asked)), strict=True)
    return sum(moved_draws(one, other) for one, other in pairs)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--device", default="auto", help="auto, cpu or cuda (auto)")
    options.add_argument("--draws", type=int, default=100, help="texts drawn per prompt (100)")
    chosen = options.parse_args()
    rows = []
    for dtype in ("bfloat16", "float16", "float32"):
        model = sonde.model("smollm2", device=chosen.device, dtype=dtype)
        assert isinstance(model, CausalModel)
        for way, steady in WAYS.items():
            with patch.object(writer, "HALVES", steady):
                found = [moved(model, prompts(chosen.draws, most)) for most in (1, 8)]
            rows.append((f"{dtype}, {way}", *(f"{count:,}" for count in found)))
        device = model.model.device
    count = f"{len(TEXTS) * chosen.draws:,}"
    title = f"Of {count} draws, those that change with the batch (SmolLM2-135M, {device})"
    columns = ("", "texts of one token", "texts of eight")
    tell(Result(name=NAME, title=title, columns=columns, rows=tuple(rows)), write=chosen.write)


if __name__ == "__main__":
    main()
