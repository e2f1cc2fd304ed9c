"""Short texts end to end in one row without padding, each seeing itself alone: on a GPU.

Attention over them, normalised sums and GELU are kernels of our own. A pass of full size that comes
again is recorded as a CUDA graph, so that Python has one thing to launch and not hundreds. `logits`
tries whether a model takes this, and says which texts go so. However texts are fed, a model's
states are kept at the masks alone (`keeping`): behind its body, or in its last layer already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import torch

from sonde.engine.masked_batch import MaskedTexts
from sonde.models.torch.loading.device import OwnAttention, onto, scale_of
from sonde.models.torch.loading.spread import recordable
from sonde.models.torch.loading.trials import HALVES
from sonde.models.torch.recorded import Graph, agree

log = logging.getLogger("sonde")

LONGEST = 64  # tokens of a text that goes so: attention is over tiles of as many
RECORDED = 2**16  # tokens of a pass: more are no faster, and the last one of a few is not full
FULL = 0.98  # share of a recorded pass that has to be used
TURNS = 4  # passes whose numbers may wait to be copied to the device
SHORT = 8  # tokens that texts have on average at least, in a recorded pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many numbers of each sort a pass has: tokens, tiles with an end, places to read."""

    tokens: int
    tiles: int
    reads: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ids, positions, owners, where tiles start, places."""
        return (self.tokens, self.tokens, self.tokens, self.tiles, self.reads)

    @classmethod
    def full(cls, tokens: int) -> Room:
        """What a pass of so many tokens may need, if its texts are not all very short."""
        # a tile is more than half full, but for one of each length
        tiles = 2 * tokens // LONGEST + LONGEST + 1
        return cls(tokens=tokens, tiles=tiles, reads=tokens // SHORT)


def laid_out(
    masked: MaskedTexts, chosen: Sequence[int] | np.ndarray, first: int
) -> tuple[np.ndarray, ...]:
    """Some texts end to end, positions counted from `first`: numbers of the sorts in `Room`."""
    lengths = masked.lengths[chosen]
    starts = np.cumsum(lengths) - lengths
    own = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(own)) - starts[own]
    ids = masked.ids[masked.offsets[:-1][chosen][own] + within]
    # texts of one length are neighbours: so many of them are a tile
    news = np.flatnonzero(np.diff(lengths, prepend=-1))
    number = np.arange(len(lengths)) - np.repeat(news, np.diff(news, append=len(lengths)))
    tiles = np.append(starts[number % (LONGEST // lengths) == 0], len(own))
    return ids, within + first, own, tiles, starts + masked.places[chosen]


def filled(parts: Sequence[np.ndarray], room: Room, into: np.ndarray | None = None) -> np.ndarray:
    """The parts of a pass as one array, each filled up to the room that it has."""
    whole = np.empty(sum(room.sizes), dtype=np.int32) if into is None else into
    # tiles that are not there begin where they end
    rests = (0, 0, 0, parts[3][-1], 0)
    at = 0
    for part, size, rest in zip(parts, room.sizes, rests, strict=True):
        whole[at : at + len(part)] = part
        whole[at + len(part) : at + size] = rest
        at += size
    return whole


class Feed:
    """The numbers of a pass on a device, as views of one tensor."""

    def __init__(self, numbers: Any, room: Room) -> None:
        self.ids, self.positions, self.owners, self.tiles, self.places = numbers.split(room.sizes)

    def inputs(self) -> dict[str, Any]:
        """What the model is given: one row."""
        return {"input_ids": self.ids.long()[None], "position_ids": self.positions.long()[None]}

    def keep(self, states: Any) -> Any:
        """The states at the masks, of those at all tokens."""
        return states[:, self.places]


def attend(
    _module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """Attention in which each text sees itself alone, as transformers calls it."""
    from sonde.models.torch.masked import kernels

    if sliding_window or attention_mask is not None or query.shape != key.shape:
        raise ValueError(
            "attention that does not see the whole text, or has fewer keys than queries"
        )
    feed, scale = UNPADDED.now, scale_of(query, scaling, others)
    return kernels.attend(query, key, value, feed.tiles, feed.owners, scale, LONGEST), None


UNPADDED: OwnAttention[Feed] = OwnAttention("sonde_unpadded", attend)


@contextmanager
def fusing(model: Any) -> Iterator[None]:
    """Let norms, sums that are normalised, and GELU each be computed by one kernel."""
    from sonde.models.torch.masked import kernels

    with ExitStack() as stack:
        for module in model.base_model.modules():
            forward: Any = None
            if sums(module):
                forward = partial(_sum, module, kernels.normalise)
            elif norm(module):
                forward = partial(kernels.normalise, None, module)
            elif getattr(module, "act", None) is torch.nn.functional.gelu:
                forward = kernels.gelu
            if forward is not None:
                module.__dict__["forward"] = forward
                stack.callback(module.__dict__.pop, "forward")
        yield


def norm(module: Any) -> bool:
    """Whether a module is a layer norm over the last dimension, with weights."""
    plain = isinstance(module, torch.nn.LayerNorm) and "forward" not in module.__dict__
    return plain and len(module.normalized_shape) == 1 and module.bias is not None


def sums(module: Any) -> bool:
    """Whether a module normalises the sum of a projection and its second input, as BERT has it."""
    parts = {name: type(part).__name__ for name, part in module.named_children()}
    known = {"dense": "Linear", "LayerNorm": "LayerNorm", "dropout": "Dropout"}
    return parts == known and [*signature(module.forward).parameters] == [
        "hidden_states",
        "input_tensor",
    ]


def _sum(module: Any, normalise: Any, states: Any, others: Any) -> Any:
    return normalise(others, module.LayerNorm, module.dense(states))


def body(model: Any, feed: Feed, inputs: dict[str, Any], *, last: bool) -> Any:
    """What a model's body gives for one pass, kept at the masks: [1, places, …] in its output."""
    with UNPADDED.used(model, feed), fusing(model), keeping(model, feed.keep, last=last):
        return model.base_model(**inputs)


def head(model: Any, output: Any, inputs: dict[str, Any]) -> Any:
    """Logits from what the body gave, [places, vocabulary] in float32."""
    base = model.base_model
    base.__dict__["forward"] = lambda *_args, **_more: output
    try:
        return model(**inputs).logits[0].float()
    finally:
        del base.__dict__["forward"]


class Recorder:
    """Runs passes, and records those of full size as CUDA graphs once they come again."""

    kept: ClassVar[int] = 2

    def __init__(self, model: Any, *, last: bool, first: int) -> None:
        self.model = model
        self.last = last
        self.first = first
        self.usable = model.device.type == "cuda" and recordable(model)
        self._seen: set[int] = set()
        self._recorded: dict[int, Recorded] = {}

    def logits(self, masked: MaskedTexts, chosen: Sequence[int] | np.ndarray, full: int = 0) -> Any:
        """Logits at the masks of some texts; a pass of nearly `full` tokens may be recorded."""
        parts = laid_out(masked, chosen, self.first)
        room = Room.full(full)
        if not FULL * full <= len(parts[0]) <= full or len(parts[4]) > room.reads:
            room = Room(tokens=len(parts[0]), tiles=len(parts[3]), reads=len(parts[4]))
        elif full in self._seen and self.usable:
            found = self._replayed(parts, room)
            if found is not None:
                return head(self.model, *found)
        else:  # it has the same shapes, and so the same answers, before it is recorded
            self._seen.add(full)
        return head(self.model, *self._plain(parts, room))

    def _plain(self, parts: tuple[np.ndarray, ...], room: Room) -> tuple[Any, dict[str, Any]]:
        """What the body gives at the masks of a pass, and what it was given."""
        feed = Feed(onto(self.model.device, filled(parts, room)), room)
        inputs = feed.inputs()
        output = body(self.model, feed, inputs, last=self.last)
        output.last_hidden_state = output.last_hidden_state[:, : len(parts[4])]
        return output, inputs

    def _replayed(
        self, parts: tuple[np.ndarray, ...], room: Room
    ) -> tuple[Any, dict[str, Any]] | None:
        """The same by a recorded pass; None where there can be none, or it gives something else."""
        if room.tokens in self._recorded:
            return self._recorded[room.tokens].run(parts)
        while len(self._recorded) >= self.kept:
            self._recorded.pop(next(iter(self._recorded)))
        try:
            recorded = Recorded(self.model, room, last=self.last)
            found, inputs = recorded.run(parts)
            plain, _ = self._plain(parts, room)
            states = (each.last_hidden_state for each in (found, plain))
            self.usable = agree(*states, half=self.model.dtype in HALVES)
        except Exception:  # each architecture has its own that cannot be recorded
            log.debug("a pass is not recorded", exc_info=True)
            self.usable = False
        if not self.usable:
            self._recorded.clear()
            return None
        self._recorded[room.tokens] = recorded
        return found, inputs


class Recorded:
    """A pass of one size, launched as a whole."""

    def __init__(self, model: Any, room: Room, *, last: bool) -> None:
        self.room = room
        # all tiles are empty yet
        size = sum(room.sizes)
        self.numbers = torch.zeros(size, dtype=torch.int32, device=model.device)
        self.here = [torch.empty(size, dtype=torch.int32, pin_memory=True) for _ in range(TURNS)]
        event: Any = torch.cuda.Event
        self.copied = [event() for _ in range(TURNS)]
        self.turn = 0
        feed = Feed(self.numbers, room)

        def work() -> None:
            self.inputs = feed.inputs()
            self.output = body(model, feed, self.inputs, last=last)
            self.states = self.output.last_hidden_state

        self.graph = Graph(work, model.device)

    def run(self, parts: tuple[np.ndarray, ...]) -> tuple[Any, dict[str, Any]]:
        """What the body gives at the masks of a pass, and what it was given."""
        self.turn = (self.turn + 1) % TURNS
        here, copied = self.here[self.turn], self.copied[self.turn]
        copied.synchronize()  # what lay there before is on the device long since
        filled(parts, self.room, here.numpy())
        self.numbers.copy_(here, non_blocking=True)
        copied.record(torch.cuda.current_stream(self.numbers.device))
        self.graph.replay()
        self.output.last_hidden_state = self.states[:, : len(parts[4])]
        return self.output, self.inputs


@contextmanager
def keeping(model: Any, keep: Callable[[Any], Any], *, last: bool) -> Iterator[None]:
    """Let a model's body give what `keep` takes out of its states [texts, tokens, …].

    `last`: they are taken out behind the attention of the last layer.
    """

    def before(_module: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(keep, states))

    def after(_module: Any, _inputs: Any, output: Any) -> Any:
        output.last_hidden_state = keep(output.last_hidden_state)
        return output

    if last:
        hook = last_sum(model).register_forward_pre_hook(before)
    else:
        hook = model.base_model.register_forward_hook(after)
    try:
        yield
    finally:
        hook.remove()


def last_sum(model: Any) -> Any:
    """What adds up, in the last layer, its input and what attention found, as in BERT and its kin.

    It is given both, and after it every token goes its own way.
    """
    for module in model.base_model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module):
            layer: Any = module[-1]
            return layer.attention.output
    raise ValueError("it has no list of layers")
