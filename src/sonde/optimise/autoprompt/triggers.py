"""Which tokens may be triggers, and how triggers are written as text. Knows tokenizers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT
from sonde.core.markers import OPENS
from sonde.engine.encode import literal
from sonde.models.torch.masked.answers import token_name
from sonde.models.torch.masked.model import MaskedModel
from sonde.optimise.texts import WORD

NEUTRAL = ("the", "a", "is", ",", ".")
"""What a causal model's triggers are at first: the first of these that is one token."""


class Writer:
    """Writes tokens as words behind a subject, where they are read back as the same tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = literal(tokenizer)
        self.before = self.tokenizer.encode(WORD, add_special_tokens=False).ids

    def text(self, ids: Sequence[int]) -> str | None:
        """The tokens as text, a space before each; None where that is read otherwise."""
        return self.texts([ids])[0]

    def texts(self, sequences: Sequence[Sequence[int]]) -> list[str | None]:
        """What `text` gives for each of many sequences."""
        written = ["".join(f" {self._word(id)}" for id in ids) for ids in sequences]
        encodings = self.tokenizer.encode_batch(
            [WORD + text for text in written], add_special_tokens=False
        )
        return [
            text if encoding.ids == [*self.before, *ids] and plain(text) else None
            for ids, text, encoding in zip(sequences, written, encodings, strict=True)
        ]

    def _word(self, id: int) -> str:
        return str(self.tokenizer.decode([id], skip_special_tokens=False)).strip()


def plain(text: str) -> bool:
    """Whether a text means nothing else in a template."""
    return not any(mark in text for mark in (SUBJECT_SLOT, ANSWER_SLOT, OPENS))


def candidates(model: Any, *, text: bool) -> np.ndarray:
    """Which tokens may be triggers, [vocabulary]: neither special nor capitalised.

    `text`: only those that are read back as they are when they are written as a word.
    """
    loaded = model.loaded
    rows = len(loaded.model.get_input_embeddings().weight)
    added = loaded.backend.get_added_tokens_decoder()
    special = {id for id, token in added.items() if token.special}
    special |= set(loaded.tokenizer.all_special_ids)
    ids = [
        id
        for id in loaded.answerable
        if id < rows and id not in special and not capitalised(token_name(loaded, id))
    ]
    if text:
        written = Writer(loaded.backend).texts([(id,) for id in ids])
        ids = [id for id, word in zip(ids, written, strict=True) if word is not None]
    allowed = np.zeros(rows, dtype=bool)
    allowed[ids] = True
    return allowed


def capitalised(token: str) -> bool:
    """Whether a token's first letter is a capital.

    >>> capitalised("Paris"), capitalised("##ing"), capitalised("(The")
    (True, False, True)
    """
    return next((c for c in token if c.isalpha()), "").isupper()


def start_token(model: Any, allowed: np.ndarray) -> int | None:
    """What every trigger is at first: the mask, or a word that says little; None if none is."""
    if isinstance(model, MaskedModel):
        return model.encoder.mask_id
    tokenizer = literal(model.loaded.backend)
    before = tokenizer.encode(WORD, add_special_tokens=False).ids
    for word in NEUTRAL:
        ids = tokenizer.encode(f"{WORD} {word}", add_special_tokens=False).ids[len(before) :]
        if len(ids) == 1 and allowed[ids[0]]:
            return int(ids[0])
    return int(allowed.argmax()) if allowed.any() else None
