"""The texts of soft prompts before training, and the vectors they begin with.

Either a few random vectors between subject and answer, or one for each token of a sentence that
people wrote, in its place. Knows tokenizers and embeddings, nothing of training.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Template
from sonde.core.markers import marker
from sonde.engine.encode import literal
from sonde.models.torch.causal.model import CausalModel
from sonde.models.torch.masked.model import MaskedModel

WORD = "Paris"
"""Stands in the slots while a sentence is cut into tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A text with markers, and the vector each begins with, [markers, width] in float32.

    `ids` are the tokens that the vectors were taken from; none if they are random.
    """

    text: str
    vectors: np.ndarray
    ids: tuple[int, ...] = ()


def random_form(model: CausalModel | MaskedModel, relation: str, count: int, seed: int) -> Form:
    """`count` random vectors between subject and answer, drawn for this relation alone."""
    # no space before the first: byte-level vocabularies would make a token of it
    written = "".join(marker(relation, i + 1) for i in range(count))
    draws = np.random.default_rng(Random(f"{seed}:{relation}").getrandbits(64))
    width = int(model.model.get_input_embeddings().weight.shape[1])
    vectors = draws.normal(0.0, spread(model.model), (count, width))
    text = f"{SUBJECT_SLOT}{written} {ANSWER_SLOT} ."
    return Form(text=text, vectors=vectors.astype(np.float32))


def spread(model: Any) -> float:
    """The standard deviation that a model's embeddings were initialised with."""
    config = model.config.get_text_config()
    for name in ("initializer_range", "init_std"):
        if isinstance(getattr(config, name, None), float):
            return float(getattr(config, name))
    return 0.02


def manual_form(model: CausalModel | MaskedModel, relation: str, template: Template) -> Form:
    """A vector for each token of a sentence, in its place; the slots stay where they are.

    A space before a slot belongs to what fills the slot. A causal model predicts what follows the
    answer, so there the sentence stays as it is.
    """
    text, regions, slots = laid_out(model, template.text)
    tokenizer = literal(model.loaded.backend)
    tokenizer.encode_special_tokens = False  # the mask is one token
    encoding = tokenizer.encode(text, add_special_tokens=False)
    own = [
        (a, b, id)
        for id, (a, b) in zip(encoding.ids, encoding.offsets, strict=True)
        if any(start <= a and b <= stop and a < stop for start, stop in regions)
    ]
    places = {(a, b): [id for x, y, id in own if (x, y) == (a, b)] for a, b, _ in own}
    written, ids, at = "", [], 0
    for (a, b), tokens in sorted(places.items()):
        written += _slotted(text, at, a, slots)
        for token in tokens:
            ids.append(token)
            written += marker(relation, len(ids))
        at = max(at, b)  # tokens may share a character
    written += _slotted(text, at, len(text), slots)
    return Form(text=written, vectors=_embedded(model.model, ids), ids=tuple(ids))


def laid_out(
    model: CausalModel | MaskedModel, text: str
) -> tuple[str, list[tuple[int, int]], list[tuple[int, int, str]]]:
    """A sentence with words in its slots: its text, the ranges that may become vectors, the slots.

    Slots are (start, stop, name) in the text.
    """
    filler = {SUBJECT_SLOT: WORD, ANSWER_SLOT: WORD}
    if isinstance(model, MaskedModel):
        filler[ANSWER_SLOT] = model.encoder.mask
    found = sorted((text.index(slot), slot) for slot in filler)
    laid, at, answered = "", 0, False
    regions: list[tuple[int, int]] = []
    slots: list[tuple[int, int, str]] = []
    for place, slot in found:
        piece = text[at:place]
        if not answered:
            regions.append((len(laid), len(laid) + len(piece.rstrip())))
        laid += piece
        slots.append((len(laid), len(laid) + len(filler[slot]), slot))
        laid += filler[slot]
        at = place + len(slot)
        answered = answered or (slot == ANSWER_SLOT and isinstance(model, CausalModel))
    if not answered:
        regions.append((len(laid), len(laid) + len(text[at:])))
    return laid + text[at:], regions, slots


def _slotted(text: str, start: int, stop: int, slots: list[tuple[int, int, str]]) -> str:
    """A part of a laid-out text with its slots written as slots again."""
    written, at = "", start
    for a, b, slot in slots:
        if start <= a and b <= stop:
            written += text[at:a] + slot
            at = b
    return written + text[at:stop]


def _embedded(model: Any, ids: list[int]) -> np.ndarray:
    module = model.get_input_embeddings()
    with torch.inference_mode():
        found = module(torch.tensor([ids], dtype=torch.long, device=module.weight.device))[0]
    return np.asarray(found.float().cpu().numpy())
