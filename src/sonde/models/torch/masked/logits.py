"""Logits at the masked positions of many texts: body on all tokens, head at the mask alone.

On a GPU short texts lie end to end, because attention over many tiny texts costs it more than over
few longer ones: in one row (`unpadded`), or else those of equal length in rows of about a hundred
tokens. What a model takes is tried, not assumed. Knows columns of token ids, nothing of prompts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from sonde.engine.batching import packing
from sonde.engine.masked_batch import MaskedText, MaskedTexts, columns
from sonde.models.torch.loading.device import onto, steady_attention
from sonde.models.torch.loading.spread import recordable
from sonde.models.torch.loading.trials import largest, tried, unlike
from sonde.models.torch.masked.unpadded import LONGEST, Recorder, keeping

log = logging.getLogger("sonde")

ROW = 128  # tokens of a packed row


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a model may be fed.

    `narrow`: the head at the mask alone; `last`: what follows attention in the last layer too;
    `pads`: beside longer texts; `packs`: end to end in rows of like length; `joins`: short ones end
    to end in a single row. Positions are then counted from `first`. `slow` says what is not done,
    and why; empty if nothing.
    """

    narrow: bool = False
    last: bool = False
    pads: bool = True
    packs: bool = False
    joins: bool = False
    first: int = 0
    slow: str = ""


@torch.inference_mode()
def mask_logits(
    model: Any, masked: MaskedTexts, chosen: Sequence[int] | np.ndarray, ways: Ways
) -> Any:
    """Logits at the masks of some texts, float32, [texts, vocabulary], still on the device."""
    lengths = masked.lengths[chosen]
    if ways.joins and lengths.max() <= LONGEST:
        return Recorder(model, last=ways.last, first=ways.first).logits(masked, chosen)
    ids = onto(model.device, masked.rows(chosen))
    places = onto(model.device, masked.places[chosen].astype(np.int64))
    if lengths.min() < lengths.max():
        kept = onto(model.device, np.arange(lengths.max())[None] < lengths[:, None])
        inputs = {"input_ids": ids, "attention_mask": padding_mask(model, kept, ways)}
    elif ways.packs and 2 * lengths.max() <= ROW:
        inputs = packed(model, ids, ways.first)
    else:
        inputs = {"input_ids": ids}
    with steady_attention(model):
        return _at_masks(model, inputs, ids.shape, places, ways)


def padding_mask(model: Any, kept: Any, ways: Ways) -> Any:
    """A mask that hides the padding."""
    if not ways.packs:
        return kept.long()
    # such a model takes masks as they are added; of others transformers asks whether they hide
    # anything at all, and waits for the device to say so
    mask = torch.zeros(kept.shape, dtype=model.dtype, device=kept.device)
    return mask.masked_fill_(~kept, torch.finfo(model.dtype).min)[:, None, None]


def packed(model: Any, ids: Any, first: int) -> dict[str, Any]:
    """Texts of equal length end to end, as many to a row as fit; the last row is filled up."""
    count, length = ids.shape
    each = packing(count, length, ROW)
    missing = -count % each
    if missing:
        ids = torch.cat([ids, ids[-1:].expand(missing, length)])
    own = torch.arange(each, device=ids.device).repeat_interleave(length)
    mask = torch.zeros(each * length, each * length, dtype=model.dtype, device=ids.device)
    mask.masked_fill_(own[:, None] != own[None], torch.finfo(model.dtype).min)
    places = torch.arange(length, device=ids.device).repeat(each) + first
    rows = len(ids) // each
    return {
        "input_ids": ids.reshape(rows, each * length),
        "position_ids": places[None].expand(rows, -1),
        "attention_mask": mask[None, None].expand(rows, -1, -1, -1),
    }


def _at_masks(
    model: Any, inputs: dict[str, Any], shape: tuple[int, int], places: Any, ways: Ways
) -> Any:
    """Run the model and keep one row per text; packed texts are told apart again first."""
    count, length = shape
    rows = torch.arange(count, device=places.device)

    def at(states: Any) -> Any:
        here = (rows.to(states.device), places.to(states.device))
        return states.reshape(-1, length, states.shape[-1])[here][:, None]

    return kept_logits(model, inputs, at, narrow=ways.narrow, last=ways.last)[:, 0]


def kept_logits(
    model: Any,
    inputs: dict[str, Any],
    keep: Callable[[Any], Any],
    *,
    narrow: bool,
    last: bool = False,
    run: Callable[..., Any] | None = None,
) -> Any:
    """Logits at the places that `keep` takes out of [texts, tokens, …], in float32.

    `narrow`: the head is applied there alone; `last`: the last layer's second half too. `run` calls
    the model, with other weights say.
    """
    run = run or model
    if not narrow:
        return keep(run(**inputs).logits).float()
    with keeping(model, keep, last=last):
        return run(**inputs).logits.float()


def first_position(model: Any) -> int:
    """The position of the first token; RoBERTa and its kin keep those up to the padding's."""
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return int(padding) + 1
    return 0


def ways_of(model: Any) -> Ways:
    """How a model may be fed, by trying."""
    return tried(model, partial(_ways, model))


def _ways(model: Any) -> Ways:
    first = first_position(model)
    gpu = model.device.type == "cuda"
    head = differs(model, Ways(narrow=True), LONG)
    last = not head and not differs(model, Ways(narrow=True, last=True), LONG)
    padding = padding_shows(model)
    ends = differs(model, Ways(packs=True, first=first), EQUAL, LONG) if gpu else ""
    joins = Ways(narrow=True, last=last, joins=True, first=first)
    lost = {
        "its head is computed 15 times in a text of 15 tokens, not at the mask alone": head,
        "only texts of equal length go together, in smaller batches": padding,
        "short texts take a row each, not one for many": ends,
    }
    return Ways(
        narrow=not head,
        last=last,
        pads=not padding,
        packs=gpu and not ends,
        joins=gpu and recordable(model) and not head and not differs(model, joins, EQUAL, LONG),
        first=first,
        slow="; ".join(f"{what}, because {why}" for what, why in lost.items() if why),
    )


LONG: list[MaskedText] = [((5, 6, 7, 8), 2), ((9, 5), 1)]
EQUAL: list[MaskedText] = [((5, 6, 7), 2), ((9, 5, 8), 0), ((7, 5, 6), 1)]


def differs(model: Any, ways: Ways, *trials: list[MaskedText]) -> str:
    """Why a model fed so does not answer as it does when fed plainly; empty if it does."""
    return next(filter(None, (_differs(model, ways, texts) for texts in trials)), "")


def _differs(model: Any, ways: Ways, texts: list[MaskedText]) -> str:
    masked = trial(model, texts)
    expected = mask_logits(model, masked, range(len(masked)), Ways())
    try:
        found = mask_logits(model, masked, range(len(masked)), ways)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # architectures refuse in their own ways
        log.debug("%s failed", ways, exc_info=True)
        return f"it does not take texts otherwise ({type(error).__name__})"
    return _unlike(model, expected, found)


def padding_shows(model: Any) -> str:
    """Why a text is not answered the same beside a longer one: convolutions look into padding."""
    masked = trial(model, LONG)
    alone = mask_logits(model, masked, [1], Ways())
    return _unlike(model, alone, mask_logits(model, masked, [0, 1], Ways())[1:])


def _unlike(model: Any, plain: Any, other: Any) -> str:
    if plain.shape != other.shape:
        return f"it gives {tuple(other.shape)} logits and not {tuple(plain.shape)}"
    one, two = torch.log_softmax(plain, -1), torch.log_softmax(other, -1)
    return unlike(model, one, two, noise=_noise(model), logits=plain)


def _noise(model: Any) -> float:
    """How far log-probabilities of a text lie apart when it is fed alone and with others."""
    masked = trial(model, EQUAL)
    whole = mask_logits(model, masked, range(len(masked)), Ways())
    alone = [mask_logits(model, masked, [i], Ways()) for i in range(len(masked))]
    return largest(torch.log_softmax(whole, -1) - torch.log_softmax(torch.cat(alone), -1))


def trial(model: Any, texts: list[MaskedText]) -> MaskedTexts:
    """Short texts of tokens that the model has."""
    size = model.config.get_text_config().vocab_size
    return columns([(tuple(id % size for id in ids), place) for ids, place in texts])
