"""LAMA's prompts through a masked model: sonde, the fill-mask pipeline, padded batches.

All three answer with the ten likeliest tokens of the full vocabulary; sonde ranks the relation's
objects besides, as the LAMA probe wants. Needs SONDE_SHARED (see README.md).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.common import Inside, Result, best_of, parser, seconds, tell
from sonde import dataset, model, probe
from sonde.core.answers import Filled
from sonde.core.columns import one_by_one
from sonde.core.prompts import Prompt, prompts_of

NAME = "lama_fill"
BATCHES = (1, 8, 32, 64, 128)
PADDED = 32
TOP = 10
NEAR = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of filling, measured: the likeliest token of each prompt, and its probability."""

    name: str
    rate: float
    first: list[int]
    shares: list[float]


def main() -> None:
    """Measure, print, and store where asked."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--prompts", type=int, default=3000)
    options.add_argument("--trial", type=int, default=400, help="prompts to find the best batch")
    options.add_argument("--model", default="models/encoder-24m", help="folder in SONDE_SHARED")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    folder = os.environ.get("SONDE_SHARED")
    if not folder:
        raise SystemExit("set SONDE_SHARED to the folder that holds models/ and data/lama")
    subject: Any = model(f"hf:{Path(folder) / given.model}")
    prompts = questions(Path(folder) / "data/lama", given.prompts)
    texts = [p.prefix + subject.loaded.tokenizer.mask_token + p.suffix for p in prompts]
    ours, share = by_sonde(subject, prompts)
    pipeline, trials = by_pipeline(subject, texts, given.trial)
    ways = (ours, pipeline, by_batches(subject, texts))
    tell(as_result(ways, len(prompts), given.model, share, trials), write=given.write)


def questions(folder: Path, count: int) -> list[Prompt]:
    """Some prompts of the LAMA probe, from every relation, in the order they are asked."""
    asking = probe("lama", answer="fill", vocabulary="full")
    asked = list(prompts_of(asking.ask(dataset(str(folder)))))
    kept = sorted(Random("lama_fill").sample(range(len(asked)), min(count, len(asked))))
    return [asked[i] for i in kept]


def by_sonde(subject: Any, prompts: Sequence[Prompt]) -> tuple[Way, float]:
    """Fill through the engine; also the share of the time that the model itself took."""
    found: dict[int, Filled] = {}
    list(one_by_one(subject.fill(prompts[:64])))
    with Inside(subject.model) as inside:
        took = seconds(lambda: found.update(one_by_one(subject.fill(prompts))))
    ids = token_ids(subject)
    best = [found[i] for i in range(len(prompts))]
    way = Way(
        name="sonde",
        rate=len(prompts) / took,
        first=[ids[answer.top[0]] for answer in best],
        shares=[answer.top_logps[0] for answer in best],
    )
    return way, inside.seconds / took


def by_pipeline(subject: Any, texts: Sequence[str], trial: int) -> tuple[Way, str]:
    """The fill-mask pipeline at its best batch size, found on a part."""
    from math import log

    from transformers import pipeline

    pipe = pipeline(
        "fill-mask",
        model=subject.model,
        tokenizer=subject.loaded.tokenizer,
        top_k=TOP,
        device="cpu",
    )
    part = Random("trial").sample(list(texts), min(trial, len(texts)))
    rates: dict[int, float] = {}

    def rate(batch: int) -> float:
        rates[batch] = len(part) / seconds(lambda: pipe(part, batch_size=batch))
        return rates[batch]

    pipe(part[:8], batch_size=8)
    batch, _ = best_of(BATCHES, rate)
    found: list[Any] = []
    took = seconds(lambda: found.extend(pipe(list(texts), batch_size=batch)))
    way = Way(
        name=f"fill-mask pipeline, batches of {batch}",
        rate=len(texts) / took,
        first=[answers[0]["token"] for answers in found],
        shares=[log(answers[0]["score"]) for answers in found],
    )
    return way, ", ".join(f"{size}: {rates[size]:.0f}/s" for size in BATCHES)


def by_batches(subject: Any, texts: Sequence[str]) -> Way:
    """Padded batches as one would write them: logits of every position, then the mask's."""
    found: list[tuple[float, int]] = []
    padded(subject, texts[:PADDED])

    def fill() -> None:
        for start in range(0, len(texts), PADDED):
            found.extend(padded(subject, texts[start : start + PADDED]))

    took = seconds(fill)
    return Way(
        name=f"transformers, padded batches of {PADDED}, full logits",
        rate=len(texts) / took,
        first=[token for _, token in found],
        shares=[logp for logp, _ in found],
    )


def padded(subject: Any, texts: Sequence[str]) -> list[tuple[float, int]]:
    """The likeliest token at each text's mask with its log-probability."""
    import torch

    tokenizer = subject.loaded.tokenizer
    batch = tokenizer(list(texts), padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = subject.model(**batch).logits
    at_mask = logits[batch["input_ids"] == tokenizer.mask_token_id]
    values, tokens = at_mask.log_softmax(-1).topk(TOP)
    return list(zip(values[:, 0].tolist(), tokens[:, 0].tolist(), strict=True))


def token_ids(subject: Any) -> dict[str, int]:
    """The token that each shown name stands for; of several with one name the first."""
    from sonde.models.torch.masked.answers import token_name

    names: dict[str, int] = {}
    for id in range(subject.loaded.vocabulary):
        names.setdefault(token_name(subject.loaded, id), id)
    return names


def as_result(ways: Sequence[Way], prompts: int, folder: str, share: float, trials: str) -> Result:
    """The table, and what it shows."""
    ours = ways[0]
    rows = tuple(
        (
            way.name,
            f"{way.rate:.0f}",
            "" if way is ours else f"{ours.rate / way.rate:.2f}×",
            "" if way is ours else str(differing(way, ours)),
        )
        for way in ways
    )
    return Result(
        name=NAME,
        title=f"LAMA on {Path(folder).name}: {prompts:,} prompts",
        columns=("way", "prompts/s", "sonde is faster by", "other first answers"),
        rows=rows,
        findings=(
            f"{share:.0%} of sonde's time was spent in the model.",
            f"The pipeline by batch size: {trials}.",
        ),
    )


def differing(way: Way, ours: Way) -> int:
    """How many prompts get another first answer that is not as likely, to rounding."""
    pairs = zip(way.first, ours.first, way.shares, ours.shares, strict=True)
    return sum(a != b and abs(x - y) > NEAR for a, b, x, y in pairs)


if __name__ == "__main__":
    main()
